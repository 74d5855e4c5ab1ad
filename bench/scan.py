"""Measure models of scan attention (TNP-KR) with random weights against the arithmetic limit of
the machine. Prints a Markdown table.

    scan.py [--rows 1024] [--basis 5 ...] [--seconds 1] [--rounds 3] [--threads T]
            [--kernels NAME] [--engine FILE ...] [--write FILE] [--scale N M]

Width 64, 4 heads, 6 layers, feed-forward 128, one column. Of each pair of rows a head must do
`width / heads` multiply-adds for the score and as many for the values, one exponential for the
weight, and of each of `basis` bumps one exponential and 3 multiply-adds: a difference, a square
times a rate, and the height times the exponential. What that takes at the rates that bench/limits.c
measures, one after the other, is the limit. Several engines are taken in turns; --write only
writes the model of the first basis. --scale encodes N, N/2 and N/4 rows and asks about M, M/2 and
M/4 rows, all pairs at once: how time and the most memory of the process grow, and what 100,000 rows
and 1,000,000 queries take by that.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from engine_process import EngineProcess

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "reference"))
import make_families  # noqa: E402
import make_models  # noqa: E402

WORK = [("build", 0), ("predict", 1), ("predict", 256), ("append", 64)]
BUMP = 3                                 # multiply-adds beside a bump's exponential


def configuration(basis):
    return {
        **{key: value for key, value in make_families.BASE.items() if value is not None},
        "description": "scan attention, random weights, for benchmarks",
        "inputs": {"features": 1, "scaling": "none"},
        "min_rows": 1, "context": "prefix-causal",
        "chain": {"buffer": None, "mask": "inclusive"},
        "width": 64, "layers": 6, "heads": 4, "feedforward": 128,
        "norm": make_families.PRE, "activation": "gelu-tanh",
        "embedder": {**make_families.PARTS, "hidden": [64]},
        "attention": {"bias": "all", "kernel": {"basis": basis}},
        "head": {"kind": "mixture", "hidden": [64], "components": 1, "std": "softplus",
                 "floor": 0.001},
    }


def write_model(path, config):
    make_models.write_model(path, config, make_families.family_weights(config, 1), "F32")


class Engine(EngineProcess):
    def __init__(self, program, path, rows, threads, kernels):
        super().__init__(path, program)
        if kernels:
            self.say(f"kernels {kernels}")
        self.say(f"threads {threads}")
        self.say(f"rows {rows} {1 << 20}")

    def times(self, operation, size, seconds):
        """Milliseconds of all processors, of each call."""
        return [float(line.split()[1]) for line in self.say(f"time {operation} {size} {seconds}")]


def least(c, operation, size, rows, rates):
    """Milliseconds that the arithmetic takes one thread at its measured rates."""
    width, layers, heads = c["width"], c["layers"], c["heads"]
    done, pairs = {"build": (rows, rows * rows), "predict": (size, size * rows),
                   "append": (size, size * (rows + size / 2))}[operation]
    basis = c["attention"]["kernel"]["basis"]
    multiply_adds = layers * (done * (4 * width ** 2 + 2 * width * c["feedforward"])
                              + pairs * (2 * width + heads * BUMP * basis))
    exponentials = layers * heads * pairs * (1 + basis)
    return 1e-6 * (multiply_adds / rates["multiply_add"] + exponentials / rates["exp"])


def measure(a, basis, place):
    path, config = os.path.join(place, f"{basis}.safetensors"), configuration(basis)
    write_model(path, config)
    engines = [Engine(program, path, a.rows, a.threads, a.kernels) for program in a.engine]
    took = {(w, e): [] for w in WORK for e in range(len(engines))}
    limit = {w: [] for w in WORK}
    for _ in range(a.rounds):
        rates = json.loads("".join(engines[0].say(f"limits {a.seconds / 4}")))["one"]
        for w in WORK:
            limit[w].append(least(config, *w, a.rows, rates))
            for e, engine in enumerate(engines):
                took[w, e] += engine.times(*w, a.seconds)
    for w in WORK:
        best = statistics.median(limit[w])
        cells = [statistics.median(took[w, e]) for e in range(len(engines))]
        print(f"| {w[0]} {w[1] or a.rows:,} | {basis} | {best:.2f} | "
              + " | ".join(f"{t:.2f} | {t / best:.1f}" for t in cells) + " |", flush=True)


def most_memory(engine):
    """Megabytes that a process has had at most."""
    with open(f"/proc/{engine.process.pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def scaled(a, n, m, path, config):
    """Processors' seconds of n rows and m queries, at the limit, megabytes, those for queries,
    rates.
    """
    engine = Engine(a.engine[0], path, n, a.threads, a.kernels)
    start = most_memory(engine)
    ask = min(engine.times("predict", m, 0))
    memory = most_memory(engine)
    build = min(engine.times("build", 0, 0))
    rates = json.loads("".join(engine.say("limits 0.25")))["one"]
    limit = sum(least(config, *work, n, rates) for work in (("build", 0), ("predict", m)))
    engine.process.stdin.close()
    engine.process.wait()
    return 1e-3 * (build + ask), 1e-3 * limit, memory, memory - start, rates


def scale(a, basis, place):
    n, m = a.scale
    path, config = os.path.join(place, f"{basis}.safetensors"), configuration(basis)
    write_model(path, config)
    print("| rows | queries | seconds of a processor | / limit | most memory, MB | "
          "of it for queries |\n|---|---|---|---|---|---|")
    for part in (4, 2, 1):
        took, limit, memory, asked, rates = scaled(a, n // part, m // part, path, config)
        print(f"| {n // part:,} | {m // part:,} | {took:.1f} | {took / limit:.1f} | {memory:.0f} | "
              f"{asked:.1f} |", flush=True)
    least_of = 1e-3 * (least(config, "build", 0, 10 ** 5, rates)
                       + least(config, "predict", 10 ** 6, 10 ** 5, rates))
    hours = least_of / 3600
    print(f"\n100,000 rows and 1,000,000 queries: {hours:.2f} hours of a processor at the limit, "
          f"{hours * took / limit:.2f} by the last line")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--basis", type=int, nargs="+", default=[5])
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kernels", default="")
    parser.add_argument("--engine", nargs="+", default=["build/bench-engine"])
    parser.add_argument("--write")
    parser.add_argument("--scale", type=int, nargs=2)
    a = parser.parse_args()
    if a.write:
        write_model(a.write, configuration(a.basis[0]))
        return
    if a.scale:
        with tempfile.TemporaryDirectory() as place:
            scale(a, a.basis[0], place)
        return
    print("| operation | bumps | limit, ms of a thread | "
          + " | ".join(f"{os.path.basename(e)}, ms of processors | / limit" for e in a.engine)
          + " |\n|---|---|---|" + "---|---|" * len(a.engine))
    with tempfile.TemporaryDirectory() as place:
        for basis in a.basis:
            measure(a, basis, place)


if __name__ == "__main__":
    main()
