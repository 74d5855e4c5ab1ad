"""Real tables from a folder of CSV files; those that are absent are skipped.

The UCI-style files have no header: elevators and protein end with the target, skillcraft starts with an identifier and its target
is the second column. penguins.csv has a header, text and missing cells.
"""
import csv
import gzip
import os

import numpy as np

TABLES = {
    "elevators": dict(file="elevators.csv.gz", target=-1),
    "protein": dict(file="protein.csv.gz", target=-1),
    "skillcraft": dict(file="skillcraft.csv.gz", target=1, drop=[0]),
    "penguins": dict(file="penguins.csv", target="body_mass_g", header=True),
}


def read_rows(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as f:
        return [row for row in csv.reader(f) if row]


def encode(column):
    """(numbers with NaN for missing, whether categorical); text becomes identities in alphabetical order."""
    missing = [v in ("", "NA", "nan") for v in column]
    try:
        return np.array([np.nan if m else float(v) for v, m in zip(column, missing)]), False
    except ValueError:
        identity = {v: i for i, v in enumerate(sorted(set(column)))}
        return np.array([np.nan if m else identity[v] for v, m in zip(column, missing)], float), True


def load_table(folder, name):
    """(x [n, F], y [n], categorical [F]) or None when the file is absent."""
    spec = TABLES[name]
    path = os.path.join(folder, spec["file"])
    if not os.path.exists(path):
        return None
    rows = read_rows(path)
    names = rows.pop(0) if spec.get("header") else list(range(len(rows[0])))
    target = names.index(spec["target"]) if spec.get("header") else range(len(names))[spec["target"]]
    columns = [encode(column) for column in zip(*rows)]
    kept = [j for j in range(len(names)) if j != target and j not in spec.get("drop", [])]
    y = columns[target][0]
    x = np.stack([columns[j][0] for j in kept], 1)
    known = ~np.isnan(y)
    return x[known], y[known], np.array([columns[j][1] for j in kept])
