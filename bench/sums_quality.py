#!/usr/bin/env python3
"""How good contexts that are sums are: the tables of docs/sums.md, "quality".

    make build/tnp
    bench/sums_quality.py process [--tasks 4096] [--seeds 3]
    bench/sums_quality.py functions | rows | bands [--seeds 3]
    bench/sums_quality.py tables FOLDER

`process` asks about draws of a Gaussian process in one dimension (Mortimer et al. 2026, table 1),
beside exact inference; `functions` compares 256 rows of made-up functions with a fitted process,
`rows` 10,000 of them with their noise; `bands` has the coverage of intervals at 64 to 100,000 rows;
`tables` compares elevators, protein and skillcraft of a folder (elevators.csv.gz …, no header, the
target last, in skillcraft second) with `tabular` and boosted trees. Answers are the engine's, by
build/tnp; functions and baselines are the trainer's. Needs NumPy; scikit-learn and LightGBM for the
baselines.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "test", "reference"), os.path.join(ROOT, "train")]
from checking import Tool, cells, table  # noqa: E402
from pg_posterior_train.baselines import Boosted, GaussianProcess  # noqa: E402
from pg_posterior_train.functions import FUNCTIONS  # noqa: E402
from safetensors_io import write_model  # noqa: E402

QUERIES = {"functions": 500, "tables": 1000}
NAMES = ("product", "product_noisy", "friedman", "direction", "additive", "cycles", "arm")
TABLES = ("elevators", "protein", "skillcraft")
LEVELS = (0.5, 0.8, 0.9, 0.95)
erf = np.vectorize(math.erf, otypes=[float])

# The process's own spectral density: lengthscales at equal distances of their logarithm, precisions
# by Solin and Särkkä (2020, eq. 56) for a domain of 8 and a noise of 0.1, which is certain.
LENGTHS = [0.25 * 4 ** ((i + 0.5) / 8) for i in range(8)]
PROCESS = {
    "format": 1, "description": "RBF functions: lengthscale 0.25 to 1, noise 0.1",
    "architecture": "sums", "inputs": {"features": 1, "scaling": "none"},
    "target": {"scaling": "none"}, "min_rows": 1, "context": "prefix-causal",
    "chain": {"buffer": None, "mask": "inclusive"}, "waves": 48, "linear": False, "pairs": 0,
    "pair_waves": 1, "levels": 1, "buckets": 1, "profile": "gaussian", "lengths": LENGTHS,
    "start": 0.01 * 4 / math.sqrt(2 * math.pi), "steps": 0, "prior_shape": 0.5, "prior_rate": 0.1,
    "noise_shape": 1e4, "noise_rate": 1e2, "points": 1,
}
VARIANTS = {
    "48 waves, 8 lengths": {},
    "32 waves": {"waves": 32},
    "4 lengths": {"lengths": [0.25 * 4 ** ((i + 0.5) / 4) for i in range(4)]},
    "2 lengths": {"lengths": [0.25 * 4 ** ((i + 0.5) / 2) for i in range(2)]},
    "noise by the rows": {"noise_shape": 2.0, "noise_rate": 0.02, "points": 4},
    "precisions by the rows": {"steps": 4, "prior_shape": 2.0,
                               "prior_rate": 2 / (0.01 * 4 / math.sqrt(2 * math.pi))},
}


# ---- answers -------------------------------------------------------------------------------------

def normal(z):
    return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def gaussian_abs(mean, sd):
    """E |X| of normal distributions."""
    z = mean / sd
    return mean * erf(z / math.sqrt(2)) + 2 * sd * normal(z)


def log_loss(params, y):
    """Of mixtures params [n, 3 K] at y [n]."""
    w, m, s = np.split(params, 3, axis=1)
    return -np.log(np.maximum(np.sum(w * normal((y[:, None] - m) / s) / s, axis=1), 1e-300))


def mixture_scores(params, y):
    """The same, and squared error, CRPS and cdf at y: [n, 4]."""
    w, m, s = np.split(params, 3, axis=1)
    z = (y[:, None] - m) / s
    cdf = np.sum(w * 0.5 * (1 + erf(z / math.sqrt(2))), axis=1)
    crps = np.sum(w * gaussian_abs(y[:, None] - m, s), axis=1)
    for k in range(w.shape[1]):
        spread = np.sqrt(s ** 2 + s[:, k:k + 1] ** 2)
        crps -= 0.5 * w[:, k] * np.sum(w * gaussian_abs(m - m[:, k:k + 1], spread), axis=1)
    return np.stack([log_loss(params, y), (y - np.sum(w * m, axis=1)) ** 2, crps, cdf], axis=1)


def as_mixtures(params):
    """Answered parameters as an array [n, 3 K]; a normal distribution is a mixture of one."""
    params = np.array(params, dtype=float)
    return np.insert(params, 0, 1.0, axis=1) if params.shape[1] == 2 else params


def ask(tool, x, y, asked):
    """Parameters [n, 3 K] of the mixtures that are answered, all rows being the prefix."""
    return np.concatenate([
        as_mixtures(tool.ask(kernels="cpu", context=table(x, y), prefix="whole",
                             queries=cells(asked[i:i + 500]))["params"])
        for i in range(0, len(asked), 500)])


def by_model(tool, x, y, asked, truth):
    """Scores [n, 4] in standard deviations of the context's target."""
    scale = y.std()
    scores = mixture_scores(ask(tool, x, y, asked), truth)
    return scores * [1, 1 / scale ** 2, 1 / scale, 1] - [math.log(scale), 0, 0, 0]


def by_baseline(make, x, y, asked, truth):
    center, scale, mean, sd = y.mean(), y.std(), x.mean(axis=0), x.std(axis=0)
    sd[sd < 1e-12] = 1      # else a query is far away along a column that is constant in the rows
    model = make()
    model.fit((x - mean) / sd, (y - center) / scale)
    m, s = model.predict((asked - mean) / sd)
    params = np.stack([np.ones(len(m)), m, np.broadcast_to(s, m.shape)], axis=1)
    return mixture_scores(params, (truth - center) / scale)


def summary(runs):
    """(mean, standard error) over runs of (log loss, RMSE, CRPS), from scores [n, 4] of each."""
    each = np.array([[r[:, 0].mean(), math.sqrt(r[:, 1].mean()), r[:, 2].mean()] for r in runs])
    return each.mean(axis=0), each.std(axis=0, ddof=1) / math.sqrt(len(each))


def with_error(runs, which, digits=3):
    mean, error = summary(runs)
    return f"{mean[which]:.{digits}f} ± {error[which]:.{digits}f}"


def covered(runs):
    """Shares of targets within the central intervals of LEVELS, of all runs together."""
    cdf = np.concatenate([r[:, 3] for r in runs])
    return [np.mean(np.abs(cdf - 0.5) < level / 2) for level in LEVELS]


def percent(shares):
    return " / ".join(f"{100 * s:.0f}" for s in shares)


def row(*entries):
    print("| " + " | ".join(str(e) for e in entries) + " |", flush=True)


def header(*names):
    row(*names)
    print("|" + "---|" * len(names))


# ---- a process -----------------------------------------------------------------------------------

def exact(x, y, asked, length):
    """(means, variances, log evidence) of the process of one lengthscale."""
    def kernel(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)
    factor = np.linalg.cholesky(kernel(x, x) + 0.01 * np.eye(len(x)))
    across, z = np.linalg.solve(factor, kernel(x, asked)), np.linalg.solve(factor, y)
    return (across.T @ z, 1.01 - np.sum(across ** 2, axis=0),
            -0.5 * z @ z - np.sum(np.log(np.diag(factor))))


def log_mean(logs, weights):
    most = logs.max(axis=0)
    return np.log(np.sum(weights[:, None] * np.exp(logs - most), axis=0)) + most


def log_normal(y, mean, variance):
    return -0.5 * ((y - mean) ** 2 / variance + np.log(2 * math.pi * variance))


def one_task(random, n):
    """(x, y) of n rows and 64 questions, and log densities of the latter's targets by the process:
    with the true lengthscale, and with the lengthscale integrated out.
    """
    x, length = random.uniform(-2, 2, n + 64), 0.25 * 4 ** random.uniform()
    full = np.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2) + 0.01 * np.eye(n + 64)
    y = np.linalg.cholesky(full) @ random.standard_normal(n + 64)
    mean, variance, _ = exact(x[:n], y[:n], x[n:], length)
    parts = [exact(x[:n], y[:n], x[n:], 0.25 * 4 ** ((i + 0.5) / 16)) for i in range(16)]
    weights = np.exp([p[2] - max(q[2] for q in parts) for p in parts])
    logs = np.stack([log_normal(y[n:], p[0], p[1]) for p in parts])
    return x, y, np.stack([log_normal(y[n:], mean, variance),
                           log_mean(logs, weights / weights.sum())])


def all_tasks(tool, model, tasks):
    """Mean log densities [tasks] by a model file."""
    lines = [json.dumps({"kernels": "cpu", "prefix": "whole",
                         "context": table(x[:-64, None], y[:-64]), "queries": cells(x[-64:, None])})
             for x, y, _ in tasks]
    answers = subprocess.run([tool, "run", model], input="\n".join(lines) + "\n", check=True,
                             capture_output=True, text=True).stdout.splitlines()
    return np.array([-np.mean(log_loss(as_mixtures(json.loads(answer)["params"]), y[-64:]))
                     for answer, (_, y, _) in zip(answers, tasks, strict=True)])


def process(options):
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "process.safetensors")
        for seed in range(options.first, options.first + options.seeds):
            random = np.random.default_rng(seed)
            for first in range(0, options.tasks, 512):
                tasks = [one_task(random, 1 + (first + i) % 64)
                         for i in range(min(512, options.tasks - first))]
                found = [np.array([t[2][i].mean() for t in tasks]) for i in range(2)]
                for changes in VARIANTS.values():
                    write_model(path, {**PROCESS, **changes}, {})
                    found.append(all_tasks(options.tool, path, tasks))
                runs.append(np.stack(found, axis=1))
    runs = np.concatenate(runs)
    rows_given = 1 + np.arange(len(runs)) % options.tasks % 64
    header("", "log density", "below exact", "49 to 64 rows, below exact")
    for i, name in enumerate(("exact", "lengthscale integrated out", *VARIANTS)):
        value, below = runs[:, i], runs[:, 0] - runs[:, i]
        row(name, *(f"{v.mean():.4f} ± {v.std() / math.sqrt(len(v)):.4f}"
                    for v in (value, below, below[rows_given > 48])))


# ---- made-up functions ---------------------------------------------------------------------------

def made(name, n, seed):
    """x and y of n rows and the queries, noise in units of the function's deviation; its noise."""
    function, columns, uniform, noise = FUNCTIONS[name]
    random = np.random.default_rng([seed, *name.encode()])
    shape = (n + QUERIES["functions"], columns)
    x = random.uniform(size=shape) if uniform else random.standard_normal(shape)
    f = function(x)
    return x, f / f.std() + noise * random.standard_normal(len(f)), noise


def functions(options):
    header("256 rows", "log loss", "RMSE", "ARD process", "RMSE", "behind it")
    with Tool(options.tool, options.model) as tool:
        for name in NAMES:
            ours, theirs = [], []
            for seed in options.those:
                x, y, _ = made(name, 256, seed)
                data = x[:256], y[:256], x[256:], y[256:]
                ours.append(by_model(tool, *data))
                theirs.append(by_baseline(GaussianProcess, *data))
            behind = [a - b for a, b in zip(ours, theirs)]
            row(name, with_error(ours, 0), with_error(ours, 1), with_error(theirs, 0),
                with_error(theirs, 1), f"{np.mean([b[:, 0].mean() for b in behind]):.2f}")


def rows(options):
    header("10,000 rows", "log loss", "RMSE by the noise", "80 and 90 % intervals")
    with Tool(options.tool, options.model) as tool:
        for name in NAMES:
            runs, ratio = [], []
            for seed in options.those:
                x, y, noise = made(name, 10000, seed)
                runs.append(by_model(tool, x[:10000], y[:10000], x[10000:], y[10000:]))
                ratio.append(math.sqrt(runs[-1][:, 1].mean()) * y[:10000].std() / noise)
            error = np.std(ratio, ddof=1) / math.sqrt(len(ratio))
            row(name, with_error(runs, 0), f"{np.mean(ratio):.2f} ± {error:.2f}",
                percent(covered(runs)[1:3]))


# ---- tables --------------------------------------------------------------------------------------

def read(folder, name):
    values = np.loadtxt(gzip.open(os.path.join(folder, name + ".csv.gz")), delimiter=",")
    return (values[:, 2:], values[:, 1]) if name == "skillcraft" else (values[:, :-1],
                                                                       values[:, -1])


def tables(options):
    header("", "rows", "", "log loss", "RMSE", "CRPS", "50 / 80 / 90 / 95 % intervals")
    with Tool(options.tool, options.model) as sums, Tool(options.tool, options.other) as other:
        for name in TABLES:
            x, y = read(options.folder, name)
            for n in (1024, min(10000, len(y) - QUERIES["tables"])):
                found = {"sums": [], "tabular": [], "boosted": []}
                for seed in options.those:
                    order = np.random.default_rng(seed).permutation(len(y))
                    c, q = order[:n], order[-QUERIES["tables"]:]
                    data = x[c], y[c], x[q], y[q]
                    found["sums"].append(by_model(sums, *data))
                    found["tabular"].append(by_model(other, *data))
                    found["boosted"].append(by_baseline(Boosted, *data))
                for predictor, runs in found.items():
                    row(name, n, predictor, *(with_error(runs, i) for i in range(3)),
                        percent(covered(runs)))


def bands(options):
    """Of functions and tables; these have 64, 256, 1,024 and 10,000 rows."""
    header("rows", "", "50 %", "80 %", "90 %", "95 %")
    with Tool(options.tool, options.model) as tool:
        for n in (64, 256, 1024, 10000, 100000):
            everything = []
            for name in (*NAMES, *(TABLES if options.folder else ())):
                runs = []
                for seed in options.those:
                    if name in TABLES:
                        x, y = read(options.folder, name)
                        order = np.random.default_rng(seed).permutation(len(y))
                        x, y = x[order], y[order]
                        end = n + QUERIES["tables"]
                    else:
                        end = n + QUERIES["functions"]
                        x, y, _ = made(name, n, seed)
                    if len(y) >= end:
                        runs.append(by_model(tool, x[:n], y[:n], x[n:end], y[n:end]))
                if runs:
                    row(n, name, *(f"{100 * s:.1f}" for s in covered(runs)))
                    everything.append(covered(runs))
            row(n, "mean", *(f"{100 * s:.1f}" for s in np.mean(everything, axis=0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=("process", "functions", "rows", "tables", "bands"))
    parser.add_argument("folder", nargs="?", help="of the tables")
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "tnp"))
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "tabular_sums.safetensors"))
    parser.add_argument("--other", default=os.path.join(ROOT, "models", "tabular.safetensors"))
    parser.add_argument("--tasks", type=int, default=4096, help="a seed, of the process")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=100, help="seed")
    options = parser.parse_args()
    if options.what == "tables" and not options.folder:
        parser.error("tables needs their folder")
    options.those = range(options.first, options.first + options.seeds)
    globals()[options.what](options)


if __name__ == "__main__":
    main()
