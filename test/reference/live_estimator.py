#!/usr/bin/env python3
"""Write golden/columns_whole.json: what the TabICL package's estimators answer, preprocessing,
views and averages included, with the random models of column_models.py and the tables below.

    live_estimator.py               needs the package (pip install tabicl) and PyTorch

SPDX-License-Identifier: PostgreSQL
"""
import json
import os
import tempfile
import warnings

import numpy as np
import torch
from tabicl import TabICLClassifier, TabICLRegressor

from checking import HERE
from column_models import MODELS, weights, whole_tables

GOLDEN = os.path.join(HERE, "golden", "columns_whole.json")


def answers(path, c, x, y, queries, estimators):
    # With a cache, as the engine has one: without, the package puts the columns of classifiers
    # without groups in the inverse orders.
    kind = TabICLClassifier if c["max_classes"] else TabICLRegressor
    model = kind(n_estimators=estimators, model_path=path, device="cpu", use_amp=False,
                 use_fa3=False, kv_cache=True)
    model.fit(x, y.astype(int) if c["max_classes"] else y)
    if c["max_classes"]:
        return model.predict_proba(queries)
    return model.predict(queries, output_type="raw_quantiles")


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    golden = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "random.ckpt")
        for name, c in MODELS.items():
            state = {tensor: torch.tensor(values, dtype=torch.float32)
                     for tensor, values in weights(name, c).items()}
            torch.save({"config": c, "state_dict": state}, path)
            golden[name] = [
                [[float(f"{v:.8g}") for v in row] for row in answers(path, c, *table, estimators)]
                for table in whole_tables(name, c) for estimators in (1, 4)]
    with open(GOLDEN, "w", encoding="ascii") as file:
        json.dump(golden, file)
        file.write("\n")
    print(GOLDEN, os.path.getsize(GOLDEN), "bytes")


if __name__ == "__main__":
    main()
