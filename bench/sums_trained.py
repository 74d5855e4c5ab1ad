#!/usr/bin/env python3
"""Sums beside networks with an equal budget: docs/sums-tried.md, "beside networks".

    make build/tnp
    for m in cnp tnpd lbanp tables_cnp tables_tnpd tables_lbanp; do
        for s in 1 2 3; do
            (cd train && python3 -m pg_posterior_train train configs/$m.json --minutes 1.5 \\
                --processor-time --seed $s --run FOLDER/$m-$s --out FOLDER/$m-$s.safetensors)
        done
    done
    bench/sums_trained.py process FOLDER [--tasks 4096]
    bench/sums_trained.py tables FOLDER DATA

FOLDER is an absolute path. The network of seed s is asked about tasks of seed 99 + s, as
bench/sums_quality.py makes them; ± is the standard error over seeds. DATA has elevators, protein
and skillcraft as that program takes them. Needs scikit-learn and LightGBM.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import math
import os
import tempfile

import numpy as np
import sums_quality as quality
from checking import Tool
from pg_posterior_train.baselines import BayesianRidge, Boosted, GaussianProcess
from safetensors_io import write_model

NETWORKS = {"TNP-D": "tnpd", "LBANP": "lbanp", "CNP": "cnp"}
SEEDS = (1, 2, 3)
COLUMNS = 18    # of the networks of tables; what a table lacks of them is 0


def error(values):
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.4f}"


def process(options):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        sums = os.path.join(folder, "process.safetensors")
        write_model(sums, quality.PROCESS, {})
        for seed in SEEDS:
            random = np.random.default_rng(99 + seed)
            tasks = [quality.one_task(random, 1 + i % 64) for i in range(options.tasks)]
            exact = np.array([t[2][0].mean() for t in tasks])
            many = np.arange(len(tasks)) % 64 >= 48
            logs = {"integrated": np.array([t[2][1].mean() for t in tasks]),
                    "sums": quality.all_tasks(options.tool, sums, tasks)}
            for title, name in NETWORKS.items():
                path = os.path.join(options.folder, f"{name}-{seed}.safetensors")
                logs[title] = quality.all_tasks(options.tool, path, tasks)
            for title, log in logs.items():
                below = exact - log
                found.setdefault(title, []).append((log.mean(), below.mean(), below[many].mean()))
    quality.header("", "log density", "below exact", "49 to 64 rows, below exact")
    for title, each in found.items():
        quality.row(title, *(error(values) for values in zip(*each)))


def padded(x):
    return np.concatenate([x, np.zeros((len(x), COLUMNS - x.shape[1]))], axis=1)


def table(options, name, seed, n=256):
    """(rows, targets, queries, their targets)."""
    if name not in quality.TABLES:
        x, y, _ = quality.made(name, n, seed)
    else:
        x, y = quality.read(options.data, name)
        order = np.random.default_rng(seed).permutation(len(y))
        order = np.concatenate([order[:n], order[-quality.QUERIES["tables"]:]])
        x, y = x[order], y[order]
    return x[:n], y[:n], x[n:], y[n:]


def tables(options):
    quality.header("256 rows", "", "log loss", "RMSE", "CRPS", "50 / 80 / 90 / 95 % intervals")
    for name in ("friedman", "product", *quality.TABLES):
        runs = {}
        for seed in SEEDS:
            data = table(options, name, 99 + seed)
            wide = padded(data[0]), data[1], padded(data[2]), data[3]
            with Tool(options.tool, options.model) as tool:
                runs.setdefault("sums", []).append(quality.by_model(tool, *data))
            for title, file in NETWORKS.items():
                path = os.path.join(options.folder, f"tables_{file}-{seed}.safetensors")
                with Tool(options.tool, path) as tool:
                    runs.setdefault(title, []).append(quality.by_model(tool, *wide))
            for title, baseline in (("ARD process", GaussianProcess), ("ridge", BayesianRidge),
                                    ("LightGBM", Boosted)):
                runs.setdefault(title, []).append(quality.by_baseline(baseline, *data))
        for title, each in runs.items():
            quality.row(name, title, *(quality.with_error(each, i) for i in range(3)),
                        quality.percent(quality.covered(each)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=("process", "tables"))
    parser.add_argument("folder", help="of the networks")
    parser.add_argument("data", nargs="?", help="folder of the tables")
    parser.add_argument("--tool", default=os.path.join(quality.ROOT, "build", "tnp"))
    parser.add_argument("--model", default=quality.ROOT + "/models/tabular_sums.safetensors")
    parser.add_argument("--tasks", type=int, default=4096, help="a seed, of the process")
    options = parser.parse_args()
    if options.what == "tables" and not options.data:
        parser.error("tables needs a folder of tables")
    globals()[options.what](options)


if __name__ == "__main__":
    main()
