#!/usr/bin/env python3
"""Write test/unit/prepare_golden.h: what the TabICL package's preprocessing makes of some tables.

    golden_preparation.py           needs the package (pip install tabicl), scipy and scikit-learn

SPDX-License-Identifier: PostgreSQL
"""
import os

import numpy as np
import pandas
import scipy.stats
from tabicl._sklearn.preprocessing import EnsembleGenerator, TransformToNumerical

from checking import HERE
from column_models import uniform

OUT = os.path.join(os.path.dirname(HERE), "unit", "prepare_golden.h")
ROWS, QUERIES = 40, 6
LEVELS = [3.0, 17.0, 4e9, 2.0 ** 52]


def table():
    """(x [rows + queries, 7], categorical columns): NaN is missing."""
    n = ROWS + QUERIES
    u = [uniform(f"preparation {i}", n) for i in range(7)]
    x = np.stack([
        3.0 + 2.0 * u[0],                                   # plain
        np.exp(6.0 * u[1]),                                 # a long tail
        np.array(LEVELS)[(np.abs(u[2]) * 3.99).astype(int)],    # categories
        np.full(n, 7.5),                                    # constant
        np.where(np.abs(u[4]) < 0.3, np.nan, 1e6 + 10 * u[4]),  # missing numbers, a large mean
        -np.abs(u[5]) ** 3,                                 # negative
        np.where(np.abs(u[6]) < 0.1, 500.0, u[6]),          # outliers
    ], axis=1)
    x[3, 2] = x[ROWS + 1, 2] = np.nan
    x[ROWS + 2, 2] = 5.0                                    # no category of the context
    x[ROWS + 3] *= 1e5                                      # far away
    return x, [2]


def numbers(values):
    return ", ".join("NAN" if np.isnan(v) else f"{v:.17g}" for v in np.ravel(values))


def frame(x, categorical):
    columns = {}
    for f in range(x.shape[1]):
        # codes follow the order of identities: as text of equal length
        columns[f"c{f}"] = ([None if np.isnan(v) else f"{v:025.1f}" for v in x[:, f]]
                            if f in categorical else x[:, f])
    return pandas.DataFrame(columns)


def main():
    x, categorical = table()
    encoder = TransformToNumerical()
    context = encoder.fit_transform(frame(x[:ROWS], categorical))
    queries = encoder.transform(frame(x[ROWS:], categorical))
    y = uniform("preparation y", ROWS)
    generator = EnsembleGenerator(classification=False, n_estimators=8, random_state=42)
    generator.fit(context, y)
    lines = [
        "/*",
        " * prepare_golden.h: answers of the TabICL package's preprocessing, and of scipy, written"
        " by",
        " * test/reference/golden_preparation.py.",
        " *",
        " * SPDX-License-Identifier: PostgreSQL",
        " */",
        f"#define ROWS {ROWS}", f"#define QUERIES {QUERIES}", f"#define COLUMNS {x.shape[1]}",
        f"#define KEPT {generator.n_features_in_}",
    ]

    def array(name, values, kind="double"):
        text = numbers(values) if kind == "double" else ", ".join(map(str, np.ravel(values)))
        words, row = text.split(" "), "\t"
        lines.append(f"static const {kind} {name}[] = {{")
        for word in words:
            if len(row) + len(word) > 90:
                lines.append(row.rstrip())
                row = "\t"
            row += word + " "
        lines.append(row.rstrip())
        lines.append("};")

    array("golden_x", x)
    for method in ("none", "power"):
        prepared = generator.preprocessors_[method]
        array(f"golden_context_{method}", prepared.X_transformed_)
        array(f"golden_queries_{method}", prepared.transform(
            generator.unique_filter_.transform(queries)))
    array("golden_powers", generator.preprocessors_["power"].normalizer_.lambdas_)

    samples = [np.exp(3 * uniform("power 0", 50)), uniform("power 1", 50), -np.exp(
        2 * uniform("power 2", 50)), 100 * uniform("power 3", 50) ** 3]
    array("golden_samples", samples)
    array("golden_sample_powers", [scipy.stats.yeojohnson(sample)[1] for sample in samples])

    orders, shifts, methods = [], [], []
    classes = np.arange(ROWS) % 3
    for label, target in (("regression", None), ("classes", classes)):
        generator = EnsembleGenerator(classification=target is not None, n_estimators=8,
                                      random_state=42)
        generator.fit(context, y if target is None else target)
        # in the order of the estimators: the methods take turns
        views = [pair for pairs in zip(*(generator.ensemble_configs_[m]
                                         for m in ("none", "power"))) for pair in pairs]
        orders += [view[0] for view in views]
        if target is not None:
            shifts = [list(view[1]).index(0) for view in views]
    array("golden_orders", orders, "int")
    array("golden_shifts", shifts, "int")
    with open(OUT, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
