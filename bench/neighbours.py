#!/usr/bin/env python3
"""What neighbours => k of a named context gives and costs: the tables of docs/neighbours.md.

    test/with-server --conf shared_preload_libraries=pg_posterior \
        --conf posterior.cache_size=2GB bench/neighbours.py FOLDER [--rows 2000,5000,10000]

Tables are elevators, protein and skillcraft of a folder (bench/sums_quality.py) and made-up
functions, in random order, so that the latest rows are random ones. All ways answer the same
questions; figures are in standard deviations of the context's target. Seconds are those of all
questions in one statement, the first time and again, from the server's own clock. Needs NumPy;
LightGBM for boosted trees.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import io
import math
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sums_quality as quality  # noqa: E402
from pg_posterior_train.baselines import Boosted  # noqa: E402

SCORES = """
SELECT clock_timestamp() AS began \\gset
CREATE TEMP TABLE answers AS SELECT a.y, p FROM asked a, LATERAL posterior.predict('{0}'::name, a) p
    OFFSET 0;
SELECT extract(epoch FROM clock_timestamp() - :'began') AS first, clock_timestamp() AS began \\gset
SELECT sum(posterior.mean(p)) FROM asked a, LATERAL posterior.predict('{0}'::name, a) p \\gset
SELECT -avg(posterior.log_pdf(p, y)), sqrt(avg((posterior.mean(p) - y) ^ 2)),
    avg(posterior.crps(p, y)),
    avg((abs(posterior.cdf(p, y) - 0.5) < 0.25)::int),
    avg((abs(posterior.cdf(p, y) - 0.5) < 0.4)::int),
    avg((abs(posterior.cdf(p, y) - 0.5) < 0.45)::int),
    :first, extract(epoch FROM clock_timestamp() - :'began') FROM answers;
DROP TABLE answers;
SELECT posterior.drop_context('{0}');
"""

CLASS_SCORES = """
SELECT clock_timestamp() AS began \\gset
CREATE TEMP TABLE answers AS SELECT a.y, p FROM asked a, LATERAL posterior.predict('{0}'::name, a) p
    OFFSET 0;
SELECT extract(epoch FROM clock_timestamp() - :'began') AS first, clock_timestamp() AS began \\gset
SELECT count(p) FROM asked a, LATERAL posterior.predict('{0}'::name, a) p \\gset
SELECT -avg(ln(posterior.probability(p, y))), 1 - avg((posterior.most_probable(p) = y)::int),
    0, 0, 0, 0, :first, extract(epoch FROM clock_timestamp() - :'began') FROM answers;
DROP TABLE answers;
SELECT posterior.drop_context('{0}');
"""


def sql(script):
    done = subprocess.run(["psql", "-XqAt", "-F", " ", "-v", "ON_ERROR_STOP=1"], input=script,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.split("\n")


def copied(name, columns, rows):
    """A table of these columns and rows as a script."""
    out = io.StringIO()
    np.savetxt(out, rows, fmt="%.17g", delimiter="\t")
    return (f"DROP TABLE IF EXISTS {name};\nCREATE TABLE {name} ({columns});\n"
            f"COPY {name} FROM STDIN;\n{out.getvalue()}\\.\n")


def load(options, x, y, asked, truth):
    kind = "text" if options.classes else "float8"
    features = ", ".join(f"x{f} float8" for f in range(x.shape[1]))
    number = np.arange(len(x))[:, None]
    sql(copied("known", f"id int PRIMARY KEY, y {kind}, {features}", np.hstack([number, y, x]))
        + copied("asked", f"y {kind}, {features}", np.hstack([truth, asked])))


def scored(options, arguments, columns):
    features = ",".join(f"x{f}" for f in range(columns))
    model = "tabular_class" if options.classes else "tabular"
    script = (f"SELECT posterior.create_context('c', 'known', 'y', '{{{features}}}', 'id', "
              f"model => '{model}', maintain => 'read'{arguments});\n"
              + (CLASS_SCORES if options.classes else SCORES).format("c"))
    lines = [line for line in sql(script) if line.count(" ") == 7]
    return np.array(lines[-1].split(), dtype=float)


def data(options, name, n, seed):
    if name in quality.TABLES:
        x, y = quality.read(options.folder, name)
        order = np.random.default_rng(seed).permutation(len(y))
        x, y = x[order], y[order]
    else:
        more = options.queries - quality.QUERIES["functions"]
        x, y, _ = quality.made(name, n + more, seed)
    n = min(n, len(y) - options.queries)
    if options.classes:
        y = np.searchsorted(np.quantile(y[:n], [0.25, 0.5, 0.75]), y).astype(float)
    else:
        y = (y - y[:n].mean()) / y[:n].std()
    return x[:n], y[:n], x[n:n + options.queries], y[n:n + options.queries]


def boosted(x, y, asked, truth):
    scores = quality.by_baseline(Boosted, x, y, asked, truth)
    inside = [np.mean(np.abs(scores[:, 3] - 0.5) < level / 2) for level in (0.5, 0.8, 0.9)]
    return np.array([scores[:, 0].mean(), math.sqrt(scores[:, 1].mean()), scores[:, 2].mean(),
                     *inside, math.nan, math.nan])


def boosted_classes(x, y, asked, truth):
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(n_estimators=200, learning_rate=0.05, min_child_samples=5,
                           num_leaves=15, random_state=0, n_jobs=1, deterministic=True,
                           force_row_wise=True, verbose=-1).fit(x, y)
    shares = np.maximum(trees.predict_proba(asked)[np.arange(len(truth)), truth.astype(int)], 1e-9)
    wrong = np.mean(trees.predict(asked) != truth)
    return np.array([-np.log(shares).mean(), wrong, 0, 0, 0, 0, math.nan, math.nan])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", help="of the tables")
    parser.add_argument("--rows", default="2000,5000,10000")
    parser.add_argument("--k", default="128,256,512")
    parser.add_argument("--names", default="elevators,protein,skillcraft,product_noisy,friedman,"
                        "direction,additive,cycles,arm")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=100, help="seed")
    parser.add_argument("--boosted", action="store_true")
    parser.add_argument("--classes", action="store_true", help="targets cut into quarters, by "
                        "tabular_class; the share of wrong labels stands for the RMSE")
    options = parser.parse_args()
    sql("CREATE EXTENSION IF NOT EXISTS pg_posterior;")
    print("| | rows | from | log loss | RMSE | CRPS | 50 / 80 / 90 % | first | again |\n"
          + "|---" * 9 + "|")
    for name in options.names.split(","):
        for n in map(int, options.rows.split(",")):
            found = {}
            for seed in range(options.first, options.first + options.seeds):
                x, y, asked, truth = data(options, name, n, seed)
                load(options, x, y[:, None], asked, truth[:, None])
                ways = {"all rows": ""}
                for k in options.k.split(","):
                    ways[f"{k} latest"] = f", filter => 'id >= {len(x) - int(k)}'"
                    ways[f"{k} nearest"] = f", neighbours => {k}"
                for way, arguments in ways.items():
                    found.setdefault(way, []).append(scored(options, arguments, x.shape[1]))
                if options.boosted:
                    trees = boosted_classes if options.classes else boosted
                    found.setdefault("boosted trees", []).append(trees(x, y, asked, truth))
            for way, runs in found.items():
                m = np.mean(runs, axis=0)
                print(f"| {name} | {len(x)} | {way} | {m[0]:.3f} | {m[1]:.3f} | {m[2]:.4f} | "
                      f"{100 * m[3]:.0f} / {100 * m[4]:.0f} / {100 * m[5]:.0f} | {m[6]:.1f} | "
                      f"{m[7]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
