#!/usr/bin/env python3
"""Compare the float64 reference of column models with the TabICL package's answers in
golden/columns.json, which live_columns.py wrote. Prints TAP.

SPDX-License-Identifier: PostgreSQL
"""
import json
import os

import numpy as np

from checking import HERE, Tap
from column_models import MODELS, TABLES, shapes, table, weights
from column_stages import ColumnModel


def main():
    tap = Tap()
    with open(os.path.join(HERE, "golden", "columns.json"), encoding="ascii") as file:
        golden = json.load(file)
    for name, c in MODELS.items():
        made = weights(name, c)
        tap.ok({tensor: array.shape for tensor, array in made.items()} == shapes(c),
               f"{name}: tensors have the shapes that the configuration says")
        model = ColumnModel(c, made)
        worst = max(np.abs(model.predict(*table(name, c, number)) - golden[name][number]).max()
                    for number in range(len(TABLES)))
        tap.ok(worst < 1e-6, f"{name}: reference = the package's answers",
               f"largest difference {worst:g}")
    tap.done()


if __name__ == "__main__":
    main()
