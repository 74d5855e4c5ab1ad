#!/usr/bin/env python3
"""Compare the float64 reference of column models, and the engine with its preprocessing, with the
TabICL package's answers in golden/, which live_columns.py and live_estimator.py wrote. Prints TAP.

SPDX-License-Identifier: PostgreSQL
"""
import json
import os
import tempfile

import numpy as np

from checking import HERE, KERNELS, Tap, Tool, arguments, cells, table as rows_of
from column_models import MODELS, TABLES, shapes, table, weights, whole_tables, write_models
from column_stages import ColumnModel

MANY_CELLS, MANY_ROWS = 2000, 1000
# of large tables the reference kernels are asked with a regression and a classifier that have all
SLOW = ("columns", "columns_first")


def tables_of(place):
    """Numbers of the tables of a model: of those with many rows, which take most of the time, every
    second model has one.
    """
    return [number for number, (rows, *_) in enumerate(TABLES)
            if rows <= MANY_ROWS or place % 2 == 0]


def golden(name):
    with open(os.path.join(HERE, "golden", name), encoding="ascii") as file:
        return json.load(file)


def check_reference(tap):
    answers = golden("columns.json")
    for place, (name, c) in enumerate(MODELS.items()):
        made = weights(name, c)
        tap.ok({tensor: array.shape for tensor, array in made.items()} == shapes(c),
               f"{name}: tensors have the shapes that the configuration says")
        model = ColumnModel(c, made)
        worst = max(np.abs(model.predict(*table(name, c, number)) - answers[name][number]).max()
                    for number in tables_of(place))
        tap.ok(worst < 1e-6, f"{name}: reference = the package's answers",
               f"largest difference {worst:g}")


def difference(c, y, said, wanted):
    """Largest difference in units of the target's standard deviation, or of probabilities."""
    if "error" in said:
        return float("inf")
    wanted = np.array(wanted)
    got = np.array(said["params"], dtype=float)[:, :wanted.shape[1]]
    return float(np.abs(got - wanted).max() / (1.0 if c["max_classes"] else y.std() or 1.0))


def check_engine(tap, tool, folder, answers):
    """Compare with answers[name][table, estimators 1 and 4]."""
    write_models(folder)
    for name, c in MODELS.items():
        with Tool(tool, os.path.join(folder, name + ".safetensors")) as engine:
            for kernels in KERNELS:
                worst = {1: 0.0, 4: 0.0}
                for number, (x, y, queries, categorical) in enumerate(whole_tables(name, c)):
                    for k, estimators in enumerate((1, 4)):
                        # slow, and shown by smaller tables, and by these with the other kernels
                        if kernels == "reference" and x.size > MANY_CELLS and (
                                estimators > 1 or name not in SLOW):
                            continue
                        asked = {"classes": int(y.max()) + 1} if c["max_classes"] else {}
                        if categorical:
                            asked["kinds"] = ["categorical" if f in categorical else "numeric"
                                              for f in range(x.shape[1])]
                        said = engine.ask(kernels=kernels, context=rows_of(x, y),
                                          prefix="whole", queries=cells(queries),
                                          estimators=estimators, **asked)
                        off = difference(c, y, said, answers[name][2 * number + k])
                        worst[estimators] = max(worst[estimators], off)
                        if off == float("inf"):
                            tap.ok(False, f"{name}, table {number}", said)
                tap.ok(worst[1] < 1e-4 and worst[4] < 1e-3,
                       f"{name}, kernels {kernels}: engine = the package's estimators",
                       f"one estimator {worst[1]:g}, four {worst[4]:g}")
                print(f"# one estimator {worst[1]:.2g}, four {worst[4]:.2g}")


def main():
    options = arguments(__doc__)
    tap = Tap()
    check_reference(tap)
    with tempfile.TemporaryDirectory() as folder:
        check_engine(tap, options.tool, folder, golden("columns_whole.json"))
    tap.done()


if __name__ == "__main__":
    main()
