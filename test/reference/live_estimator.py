#!/usr/bin/env python3
"""Compare the engine, and golden/columns_whole.json, with what the TabICL package's estimators
answer, live: preprocessing, views and averages included, with the random models and the tables of
column_models.py. Prints TAP.

    live_estimator.py [--write]     --write renews the golden file from the package's answers

Needs the package (pip install tabicl), PyTorch, and build/tnp.

SPDX-License-Identifier: PostgreSQL
"""
import json
import os
import sys
import tempfile
import warnings

import numpy as np
import pandas
import torch
from tabicl import TabICLClassifier, TabICLRegressor

from check_columns import check_engine, golden
from checking import HERE, Tap
from column_models import MODELS, weights, whole_tables

GOLDEN = os.path.join(HERE, "golden", "columns_whole.json")
TOOL = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "tnp")


def as_package(x, categorical):
    """Cells as the package takes them: codes follow the order of texts, of equal length here."""
    if not categorical:
        return x
    return pandas.DataFrame({
        f"c{f}": [None if np.isnan(v) else f"{v:025.1f}" for v in x[:, f]]
        if f in categorical else x[:, f] for f in range(x.shape[1])})


def answers(path, c, x, y, queries, categorical, estimators):
    # With a cache, as the engine has one: without, the package puts the columns of classifiers
    # without groups in the inverse orders.
    kind = TabICLClassifier if c["max_classes"] else TabICLRegressor
    model = kind(n_estimators=estimators, model_path=path, device="cpu", use_amp=False,
                 use_fa3=False, kv_cache=True)
    model.fit(as_package(x, categorical), y.astype(int) if c["max_classes"] else y)
    if c["max_classes"]:
        return model.predict_proba(as_package(queries, categorical))
    return model.predict(as_package(queries, categorical), output_type="raw_quantiles")


def package_answers(folder):
    """name -> [table, estimators 1 and 4][query, output]."""
    path = os.path.join(folder, "random.ckpt")
    said = {}
    for name, c in MODELS.items():
        state = {tensor: torch.tensor(values, dtype=torch.float32)
                 for tensor, values in weights(name, c).items()}
        torch.save({"config": c, "state_dict": state}, path)
        said[name] = [
            [[float(f"{v:.8g}") for v in row] for row in answers(path, c, *table, estimators)]
            for table in whole_tables(name, c) for estimators in (1, 4)]
    return said


def check_golden(tap, live):
    """The committed answers are the package's, but for its own noise of 32 bits."""
    kept = golden("columns_whole.json")
    for name, c in MODELS.items():
        worst = 0.0
        for number, (_, y, _, _) in enumerate(whole_tables(name, c)):
            unit = 1.0 if c["max_classes"] else y.std() or 1.0
            for k in (2 * number, 2 * number + 1):
                off = np.abs(np.array(live[name][k]) - np.array(kept[name][k])).max() / unit
                worst = max(worst, float(off))
        tap.ok(worst < 3e-5, f"{name}: golden file = package", f"largest difference {worst:g}")


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        live = package_answers(folder)
        if "--write" in sys.argv:
            with open(GOLDEN, "w", encoding="ascii") as file:
                json.dump(live, file)
                file.write("\n")
        check_golden(tap, live)
        check_engine(tap, TOOL, folder, live)
    tap.done()


if __name__ == "__main__":
    main()
