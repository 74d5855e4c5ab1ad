"""The engine alone, in turns, against what its arithmetic takes at the rates that bench/limits.c
measures: what the benchmarks of families of models have in common.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import os
import statistics
import sys

from engine_process import EngineProcess

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "reference"))
import make_families  # noqa: E402
import make_models  # noqa: E402


class Need:
    """What an operation must do: multiply-adds, exponentials, and reading keys, values and weights
    of so many bytes from where they lie, `again` bytes of them once more."""

    def __init__(self, multiply_adds, exponentials, bytes, again=0):
        self.multiply_adds, self.exponentials = multiply_adds, exponentials
        self.bytes, self.again = bytes, again

    def least(self, rates):
        """Milliseconds of one thread: arithmetic one after the other, bytes arrive meanwhile."""
        arithmetic = (self.multiply_adds / rates["multiply_add"]
                      + self.exponentials / rates["exp"])
        read = (self.bytes + self.again) / rates[f"read {kibibytes(self.bytes)} KiB"]
        return 1e-6 * max(arithmetic, read)


def kibibytes(bytes):
    """Sets of these sizes are measured: reading takes longer the more there is to be read."""
    return max(1024, round(bytes / (1 << 20)) << 10)


class Engine(EngineProcess):
    """An engine that has encoded rows of `columns` columns."""

    def __init__(self, program, path, rows, threads, kernels, columns=1):
        super().__init__(path, program)
        if kernels:
            self.say(f"kernels {kernels}")
        if columns > 1:
            self.say("features " + " ".join(str(0.6180339887 * (i + 1) % 1)
                                            for i in range(columns)))
        self.say(f"threads {threads}")
        self.say(f"rows {rows} {1 << 20}")

    def times(self, operation, size, seconds):
        """Milliseconds of all processors, of each call."""
        return [float(line.split()[1]) for line in self.say(f"time {operation} {size} {seconds}")]

    def rates(self, seconds, bytes=1 << 20):
        """1e9 per second of one thread."""
        return json.loads("".join(self.say(f"limits {seconds} {kibibytes(bytes)}")))["one"]


def write_model(path, config, dtype="F32"):
    make_models.write_model(path, config, make_families.family_weights(config, 1), dtype)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kernels", default="")
    parser.add_argument("--engine", nargs="+", default=["build/bench-engine"])
    parser.add_argument("--write")
    return parser


def head(a, *columns):
    return ("| " + " | ".join(columns) + " | limit, ms of a thread | "
            + " | ".join(f"{os.path.basename(e)}, ms of processors | / limit | least / limit"
                         for e in a.engine)
            + " |\n" + "|---" * (len(columns) + 1 + 3 * len(a.engine)) + "|")


def measure(a, engines, work, needs, *cells):
    """A line for each operation (name, size): the limit and every engine, medians of rounds in
    which all are taken in turns, and the least time that was seen."""
    took = {(w, e): [] for w in work for e in range(len(engines))}
    limit = {w: [] for w in work}
    for _ in range(a.rounds):
        rates = {size: engines[0].rates(a.seconds / 2, size)
                 for size in {needs[w].bytes for w in work}}
        for w in work:
            limit[w].append(needs[w].least(rates[needs[w].bytes]))
            for e, engine in enumerate(engines):
                took[w, e] += engine.times(*w, a.seconds)
    for w in work:
        best = statistics.median(limit[w])
        cells_of = []
        for e in range(len(engines)):
            median = statistics.median(took[w, e])
            cells_of.append(f"{median:.2f} | {median / best:.1f} | {min(took[w, e]) / best:.1f}")
        print(f"| {w[0]} {w[1] or a.rows:,} | " + "".join(f"{cell} | " for cell in cells)
              + f"{best:.2f} | " + " | ".join(cells_of) + " |", flush=True)
