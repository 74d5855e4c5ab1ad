#!/usr/bin/env python3
"""Compare the float64 reference of column models with the TabICL package, live. Prints TAP.

    live_columns.py [--write]       --write renews golden/columns.json from the package's answers

Needs the package (pip install tabicl) and PyTorch; the package computes in float64 here, so that
what remains of a difference is an error.

SPDX-License-Identifier: PostgreSQL
"""
import json
import os
import sys

import numpy as np
import torch
from tabicl._model.layers import OneHotAndLinear
from tabicl._model.tabicl import TabICL

from checking import HERE, Tap
from column_models import MODELS, TABLES, table, weights
from column_stages import ColumnModel

GOLDEN = os.path.join(HERE, "golden", "columns.json")


def embed_classes(self, classes):
    """What OneHotAndLinear.forward computes, which is written for float32 alone."""
    hot = torch.nn.functional.one_hot(classes.long(), self.num_classes)
    return torch.nn.functional.linear(hot.to(self.weight.dtype), self.weight, self.bias)


def package_answers(name, c):
    """The package's quantiles or logits of every table, [queries, outputs] each."""
    model = TabICL(**c).double().eval()
    loaded = {tensor: torch.tensor(values) for tensor, values in weights(name, c).items()}
    model.load_state_dict(loaded)
    answers = []
    for number in range(len(TABLES)):
        x, y, queries = table(name, c, number)
        cells = torch.tensor(np.concatenate([x, queries]))[None]
        with torch.no_grad():
            rows = model.row_interactor._train_forward(
                model.col_embedder._train_forward(cells, torch.tensor(y)[None]))
            said = model.icl_predictor._icl_predictions(rows, torch.tensor(y)[None])
        answers.append(said[0, len(y):].numpy())
    return answers


def main():
    torch.set_num_threads(1)
    OneHotAndLinear.forward = embed_classes
    tap = Tap()
    golden = {}
    for name, c in MODELS.items():
        ours = ColumnModel(c, weights(name, c))
        worst = 0.0
        golden[name] = []
        for number, theirs in enumerate(package_answers(name, c)):
            said = ours.predict(*table(name, c, number))
            worst = max(worst, float(np.abs(said - theirs).max()))
            golden[name].append([[float(f"{v:.9g}") for v in row] for row in theirs])
        tap.ok(worst < 1e-6, f"{name}: reference = package", f"largest difference {worst:g}")
    if "--write" in sys.argv:
        with open(GOLDEN, "w", encoding="ascii") as file:
            json.dump(golden, file)
            file.write("\n")
    tap.done()


if __name__ == "__main__":
    main()
