"""Measure a model of TabICL's published shape with random weights: the engine against the limits of
the machine, and beside TabICL's package where a Python has it. Prints a Markdown table.

    columns.py [--rows 1000] [--columns 20] [--seconds 2] [--threads T]

The package's side is its regressor with one estimator and its cache, preparation of the rows
included as on our side. Before anything is timed, the medians of both must agree.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
import warnings

import numpy as np

from columns_model import PUBLISHED, main as write_model, random_weights
from engine_process import EngineProcess

QUERIES = (1, 16, 128)
AGREEMENT = 0.05                         # of a standard deviation: means, whose tails differ


def steps(columns):
    """Fractions whose multiples fill the columns; the engine's rows come of them."""
    return [math.sqrt(p) % 1 for p in range(2, 1000) if math.isqrt(p) ** 2 != p][:columns]


def table(n, columns):
    """Rows 0 … n - 1 as bench/engine.c makes them."""
    place = np.arange(1, n + 1)[:, None] * np.array(steps(columns))
    x = -2 + 4 * (place - np.floor(place))
    return x, np.sin(3 * x[:, 0]) + 0.1 * np.cos(57 * x[:, -1])


class Engine(EngineProcess):
    def __init__(self, path, rows, columns, threads):
        super().__init__(path)
        self.say("features " + " ".join(map(repr, steps(columns))))
        self.say(f"threads {threads}")
        self.say(f"rows {rows} {1 << 20}")

    def time(self, operation, size, seconds):
        """Median milliseconds by the clock, and least of processors."""
        took = [tuple(map(float, line.split()))
                for line in self.say(f"time {operation} {size} {seconds}")]
        return statistics.median(wall for wall, _ in took), min(used for _, used in took)


def multiplications(c, rows, columns, queries):
    """Of an encoding (queries 0), or of queries to one: what docs/model-format.md section 16 has
    to be computed, layer by layer."""
    e, d, points = c["embed_dim"], c["embed_dim"] * c["row_num_cls"], c["col_num_inds"]
    f, cls, tokens = c["ff_factor"], c["row_num_cls"], c["row_num_cls"] + columns
    n = queries or rows

    def block(width, asked, read, kept):
        """Queries and what follows for `asked`, keys and values of `kept` states."""
        return (2 + 2 * f) * width ** 2 * asked + 2 * width ** 2 * kept + 2 * width * asked * read

    columns_stage = columns * c["col_num_blocks"] * (
        block(e, n, points, 0) + (0 if queries else
                                  block(e, points, rows, rows) + 2 * e ** 2 * points))
    rows_stage = n * ((c["row_num_blocks"] - 1) * block(e, tokens, tokens, tokens)
                      + block(e, cls, tokens, tokens))
    aware = 2 * 64 * d                   # of a state's queries, by the MLP that scales them
    layers = c["icl_num_blocks"]
    if queries:
        context = layers * (block(d, n, rows, 0) + n * aware)
        return columns_stage + rows_stage + context + n * 2 * d * (d + c["num_quantiles"])
    return columns_stage + rows_stage + layers * 2 * d ** 2 * n + (layers - 1) * (
        block(d, n, rows, 0) + n * aware)


def bytes_of_query(c, rows, columns):
    """What one query reads: weights but those of keys and values, and the encoding."""
    e, d = c["embed_dim"], c["embed_dim"] * c["row_num_cls"]
    f, layers = c["ff_factor"], c["icl_num_blocks"]
    weights = layers * (2 + 2 * f) * d ** 2 + 2 * d * (d + c["num_quantiles"]) \
        + (c["col_num_blocks"] * (2 + 2 * f) + c["row_num_blocks"] * (4 + 2 * f)) * e ** 2
    kept = 2 * columns * c["col_num_blocks"] * c["col_num_inds"] * e + 2 * layers * rows * d
    return 4 * (weights + kept)


class Package:
    """TabICL's own regressor on the same weights."""

    def __init__(self, folder, rows, columns):
        import torch
        from tabicl import TabICLRegressor

        warnings.simplefilter("ignore")
        self.torch = torch
        path = os.path.join(folder, "random.ckpt")
        torch.save({"config": PUBLISHED,
                    "state_dict": {name: torch.tensor(np.asarray(w, dtype=np.float32))
                                   for name, w in random_weights(PUBLISHED).items()}}, path)
        self.model = TabICLRegressor(n_estimators=1, model_path=path, device="cpu", use_amp=False,
                                     use_fa3=False, kv_cache=True)
        self.rows = table(rows + max(QUERIES), columns)
        self.context = self.rows[0][:rows], self.rows[1][:rows]
        self.model.fit(*self.context)

    def quantiles(self, size):
        first = len(self.context[1])
        return self.model.predict(self.rows[0][first:first + size], output_type="raw_quantiles")

    def time(self, operation, size, seconds):
        """Median milliseconds, at the better of one thread and all."""
        call = (lambda: self.model.fit(*self.context)) if operation == "build" \
            else lambda: self.quantiles(size)
        best = math.inf
        for threads in sorted({1, os.cpu_count()}):
            self.torch.set_num_threads(threads)
            found, end = [], time.perf_counter() + seconds / 2
            while time.perf_counter() < end or not found:
                start = time.perf_counter()
                call()
                found.append(1e3 * (time.perf_counter() - start))
            best = min(best, statistics.median(found))
        return best


def agree(engine, package):
    """The means of both, or the program ends: quantiles' mean leaves the tails out."""
    said = [float(line) for line in engine.say("answer predict 16")]
    means, spreads = np.array(said[0::2]), np.array(said[1::2])
    off = np.abs(means - package.quantiles(16).mean(-1)) / spreads
    if off.max() > AGREEMENT:
        sys.exit(f"nothing is timed, for means differ by {off.max():.3g} standard deviations")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2, help="per measurement and side")
    parser.add_argument("--threads", type=int, default=min(4, os.cpu_count()))
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "published.safetensors")
        sys.argv = ["columns_model.py", path]
        write_model()
        engine = Engine(path, a.rows, a.columns, a.threads)
        alone = Engine(path, a.rows, a.columns, 1)
        try:
            package = Package(folder, a.rows, a.columns)
            agree(engine, package)
        except ImportError as missing:
            package = None
            print(f"without TabICL's package ({missing}); set PYTHON to a Python that has it\n")
        rates = [json.loads(alone.say("limits 0.5")[0])["one"] for _ in range(4)]
        limits = {key: max(rate[key] for rate in rates) for key in rates[0]}
        read = max(rate for key, rate in limits.items() if key.startswith("read 2621"))
        print(f"### TabICL's shape: {a.rows} rows of {a.columns} columns, one estimator\n\n"
              f"{limits['multiply_add']:g} billion multiplications and {read:g} GB a second for "
              f"one thread; {a.threads} threads; milliseconds\n\n"
              "| | engine | one thread, of processors | its limit | times the limit | package | "
              "package / engine |\n|---|---|---|---|---|---|---|")
        for operation, size in [("build", a.rows)] + [("predict", m) for m in QUERIES]:
            queries = size if operation == "predict" else 0
            least = multiplications(PUBLISHED, a.rows, a.columns, queries) \
                / limits["multiply_add"] / 1e6
            if queries:
                least = max(least, bytes_of_query(PUBLISHED, a.rows, a.columns) / read / 1e6)
            wall, _ = engine.time(operation, size, a.seconds)
            used = alone.time(operation, size, a.seconds)[1]
            theirs = package.time(operation, size, a.seconds) if package else math.nan
            name = "build" if operation == "build" else f"predict {size}"
            print(f"| {name} | {wall:.1f} | {used:.1f} | {least:.1f} | {used / least:.2f} | "
                  f"{theirs:.1f} | {theirs / wall:.2f} |", flush=True)


if __name__ == "__main__":
    main()
