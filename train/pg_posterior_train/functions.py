"""Made-up functions as tables: CSV files and descriptions, so that whatever measures a folder
measures them.

    python3 -m pg_posterior_train.functions FOLDER

They are what regression models of tables are known to differ in: interactions, directions, few
relevant columns among many, fine structure along one column, kinks, labels, missing cells. Needs
NumPy alone; the same everywhere.
"""

import csv
import json
import os
import sys

import numpy as np

ROWS = 3000
SPLITS = {"context": [64, 256, 1000], "queries": 500, "repeats": 3}


def product(x):
    return x[:, 0] * x[:, 1]


def friedman(x):
    """Friedman (1991), the first of his functions, of uniform columns."""
    bend = 20 * (x[:, 2] - 0.5) ** 2
    return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + bend + 10 * x[:, 3] + 5 * x[:, 4]


def direction(x):
    return np.sin(x @ (1.5 * np.array([1, 0.8, -0.6, 0.5, 0.4, -0.3])))


def additive(x):
    return np.sin(2 * x[:, 0]) + np.abs(x[:, 1]) + np.sin(3 * x[:, 2]) + 0.5 * x[:, 3]


def arm(x):
    """As the dynamics of a robot's arm: two of 32 columns matter, together."""
    return x[:, 3] * np.cos(1.5 * x[:, 17])


def cycles(x):
    return np.sin(20 * np.pi * x[:, 0])


def linear(x):
    return x @ np.array([1, -0.8, 0.6, 0.5, -0.4, 0.3, 0.2, -0.1])


def steps(x):
    return np.floor(2 * x[:, 0]) - 2 * (x[:, 1] > 0.3) * (x[:, 2] > -0.5)


def labelled(x):
    """The last column is a label of nine kinds with an effect of its own."""
    return np.array([0, 2, -1, 1, -2, 0.5, 3, -0.5, 1.5])[x[:, -1].astype(int)] + x[:, 0]


# name: (function, columns, uniform, noise in units of the function's deviation)
FUNCTIONS = {
    "product": (product, 6, False, 0.03),
    "product_noisy": (product, 6, False, 0.3),
    "friedman": (friedman, 10, True, 0.03),
    "direction": (direction, 6, False, 0.03),
    "additive": (additive, 6, False, 0.03),
    "arm": (arm, 32, False, 0.03),
    "cycles": (cycles, 3, True, 0.1),
    "linear": (linear, 8, False, 0.5),
    "steps": (steps, 5, False, 0.1),
    "labelled": (labelled, 4, False, 0.2),
}


def make(name):
    """(columns [ROWS, F], targets [ROWS]) of one function."""
    function, columns, uniform, noise = FUNCTIONS[name]
    random = np.random.default_rng(list(name.encode()))
    shape = (ROWS, columns)
    x = random.uniform(size=shape) if uniform else random.standard_normal(shape)
    if name == "labelled":
        x[:, -1] = random.integers(0, 9, ROWS)
    f = function(x)
    return x, f / f.std() + noise * random.standard_normal(ROWS)


def write(folder):
    """All tables, with their descriptions."""
    os.makedirs(folder, exist_ok=True)
    for name in FUNCTIONS:
        x, y = make(name)
        names = [f"x{i}" for i in range(x.shape[1])]
        rows = [[f"{v:.6g}" for v in row] for row in np.column_stack([x, y])]
        if name == "labelled":
            for row in rows:
                row[-2] = "kind " + row[-2]
        with open(os.path.join(folder, name + ".csv"), "w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows([names + ["y"], *rows])
        description = {"file": name + ".csv", "target": "y", "splits": SPLITS}
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(description, f)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write(sys.argv[1])
