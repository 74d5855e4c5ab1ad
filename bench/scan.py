"""Measure models of scan attention (TNP-KR) with random weights against the arithmetic limit of
the machine. Prints a Markdown table.

    scan.py [--rows 1024] [--basis 5 ...] [--seconds 1] [--rounds 3] [--threads T]
            [--kernels NAME] [--engine FILE ...] [--write FILE] [--scale N M]

Width 64, 4 heads, 6 layers, feed-forward 128, one column. Of each pair of rows a head must do
`width / heads` multiply-adds for the score and as many for the values, one exponential for the
weight, and of each of `basis` bumps one exponential and 3 multiply-adds: a difference, a square
times a rate, and the height times the exponential. What that takes at the rates that bench/limits.c
measures, one after the other, is the limit, or reading keys, values, places and weights once, if
that takes longer, as one prediction does. Several engines are taken in turns; --write only
writes the model of the first basis. --scale encodes N, N/2 and N/4 rows and asks about M, M/2 and
M/4 rows, all pairs at once: how time and the most memory of the process grow, and what 100,000 rows
and 1,000,000 queries take by that.

SPDX-License-Identifier: PostgreSQL
"""
import os
import tempfile

from against_limit import Engine, Need, arguments, head, make_families, measure, write_model

WORK = [("build", 0), ("predict", 1), ("predict", 256), ("append", 64)]
BUMP = 3                                 # multiply-adds beside a bump's exponential
PLACE = 8                                # bytes of a row's place


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


def need(c, operation, size, rows):
    """What an operation must do, and the keys, values, places and weights that it reads."""
    width, layers, heads = c["width"], c["layers"], c["heads"]
    done, pairs = {"build": (rows, rows * rows), "predict": (size, size * rows),
                   "append": (size, size * (rows + size / 2))}[operation]
    basis = c["attention"]["kernel"]["basis"]
    row = layers * (4 * width ** 2 + 2 * width * c["feedforward"])
    return Need(done * row + layers * pairs * (2 * width + heads * BUMP * basis),
                layers * heads * pairs * (1 + basis),
                4 * row + rows * (8 * layers * width + PLACE))


def limit(c, operation, size, rows, engine):
    """Milliseconds that it takes one thread at its measured rates."""
    what = need(c, operation, size, rows)
    return what.least(engine.rates(0.25, what.bytes))


def measured(a, basis, place):
    path, config = os.path.join(place, f"{basis}.safetensors"), configuration(basis)
    write_model(path, config)
    engines = [Engine(program, path, a.rows, a.threads, a.kernels) for program in a.engine]
    measure(a, engines, WORK, {w: need(config, *w, a.rows) for w in WORK}, basis)


def most_memory(engine):
    """Megabytes that a process has had at most."""
    with open(f"/proc/{engine.process.pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def scaled(a, n, m, path, config):
    """Processors' seconds of n rows and m queries, at the limit, megabytes, those for queries; and
    seconds of 100,000 rows and 1,000,000 queries at the limit.
    """
    engine = Engine(a.engine[0], path, n, a.threads, a.kernels)
    start = most_memory(engine)
    ask = min(engine.times("predict", m, 0))
    memory = most_memory(engine)
    build = min(engine.times("build", 0, 0))
    least = sum(limit(config, *work, n, engine) for work in (("build", 0), ("predict", m)))
    large = (limit(config, "build", 0, 10 ** 5, engine)
             + limit(config, "predict", 10 ** 6, 10 ** 5, engine))
    engine.process.stdin.close()
    engine.process.wait()
    return 1e-3 * (build + ask), 1e-3 * least, memory, memory - start, 1e-3 * large


def scale(a, basis, place):
    n, m = a.scale
    path, config = os.path.join(place, f"{basis}.safetensors"), configuration(basis)
    write_model(path, config)
    print("| rows | queries | seconds of a processor | / limit | most memory, MB | "
          "of it for queries |\n|---|---|---|---|---|---|")
    for part in (4, 2, 1):
        took, least, memory, asked, large = scaled(a, n // part, m // part, path, config)
        print(f"| {n // part:,} | {m // part:,} | {took:.1f} | {took / least:.1f} | {memory:.0f} | "
              f"{asked:.1f} |", flush=True)
    hours = large / 3600
    print(f"\n100,000 rows and 1,000,000 queries: {hours:.2f} hours of a processor at the limit, "
          f"{hours * took / least:.2f} by the last line")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--basis", type=int, nargs="+", default=[5])
    parser.add_argument("--scale", type=int, nargs=2)
    a = parser.parse_args()
    if a.write:
        write_model(a.write, configuration(a.basis[0]))
        return
    if a.scale:
        with tempfile.TemporaryDirectory() as place:
            scale(a, a.basis[0], place)
        return
    print(head(a, "operation", "bumps"))
    with tempfile.TemporaryDirectory() as place:
        for basis in a.basis:
            measured(a, basis, place)


if __name__ == "__main__":
    main()
