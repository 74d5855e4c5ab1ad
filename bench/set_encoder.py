"""Measure a set encoder with buffer with random weights against the arithmetic limit of the
machine. Prints a Markdown table.

    set_encoder.py [--rows 1024] [--columns 8] [--seconds 1] [--rounds 3] [--threads T]
                   [--kernels NAME] [--engine FILE ...] [--buffer K] [--write FILE]

The shape of Hassan et al. 2025, appendix D.4: width 128, three layers and 128 points of the column
stage, three layers and two read-outs of the row stage, 12 layers in context, a buffer of 32 rows,
20 components, 2.9 million parameters of 16 bits. --buffer 0 is the model without a buffer, whose
joint questions encode all rows again after each row.

What must be done: of a context each column's points read all cells once in each layer, and each
cell reads the points once in each layer; rows and questions go through the row stage, and read the
context, in which a row of a joint question is twice, as a row and as a question, with features that
are made once. What is kept of the context, and the weights, are read once; draws read what lies in
context once for each of their rows.

SPDX-License-Identifier: PostgreSQL
"""
import os
import tempfile

from against_limit import Engine, Need, arguments, head, make_families, measure, write_model

STEPS = 16                               # rows of a draw, of a density (bench/engine.c)
WORK = [("build", 0), ("predict", 1), ("predict", 16), ("predict", 256), ("sample", 1),
        ("sample", 16), ("density", 1), ("density", 128)]
ALONE = WORK[:4]                         # what a model without a buffer is for


def configuration(columns, buffer):
    base = make_families.family("set")
    stage = {"width": 128, "layers": 3, "heads": 4, "feedforward": 256}
    return {
        **base, "description": "set encoder, random weights, for benchmarks",
        "inputs": {"max_features": columns, "scaling": "prefix"}, "min_rows": 4,
        "width": 128, "layers": 12, "heads": 4, "feedforward": 256, "activation": "gelu",
        "chain": {"buffer": buffer or None, "mask": "inclusive"},
        "embedder": {**base["embedder"], "positions": buffer,
                     "columns": {**stage, "inducing": 128},
                     "rows": {**{k: v for k, v in stage.items() if k != "width"}, "readouts": 2,
                              "take": "first", "rotary": 100000, "layout": "interleaved"}},
        "head": {**base["head"], "hidden": [256], "components": 20},
    }


class Count:
    """Multiply-adds and exponentials."""

    def __init__(self, multiply_adds=0, exponentials=0):
        self.multiply_adds, self.exponentials = multiply_adds, exponentials

    def __add__(self, other):
        return Count(self.multiply_adds + other.multiply_adds,
                     self.exponentials + other.exponentials)

    def __mul__(self, times):
        return Count(times * self.multiply_adds, times * self.exponentials)


def block(width, stage, asked, read, kept):
    """Queries and what follows for `asked` states, which see `read` keys; keys of `kept` states."""
    return Count((2 * width ** 2 + 2 * width * stage["feedforward"]) * asked
                 + 2 * width ** 2 * kept + 2 * width * asked * read,
                 stage["heads"] * asked * read)


def row_features(c, columns):
    """Of one row: its cells read their columns' points, then each other."""
    width, cells, rows = c["width"], c["embedder"]["columns"], c["embedder"]["rows"]
    tokens = rows["readouts"] + columns
    return ((block(width, cells, 1, cells["inducing"], 0) * cells["layers"]
             + Count(2 * width ** 2)) * columns
            + block(width, rows, tokens, tokens, tokens) * (rows["layers"] - 1)
            + block(width, rows, 1, tokens, tokens))


def column_points(c, columns, n):
    """Of a context: points read the cells of n rows, and are kept."""
    cells, width = c["embedder"]["columns"], c["width"]
    points = cells["inducing"]
    return (block(width, cells, points, n, n) + Count(2 * width ** 2 * points)) * (
        cells["layers"] * columns)


def answers(c):
    hidden, = c["head"]["hidden"]
    return Count(c["width"] * hidden + 3 * hidden * c["head"]["components"])


def bytes_read(c, columns, n):
    """Weights that queries need, keys and values that are kept: of the stages, and in context."""
    width, cells, rows = c["width"], c["embedder"]["columns"], c["embedder"]["rows"]
    stages = (block(width, cells, 1, 0, 0) * cells["layers"]
              + block(width, rows, 1, 0, 1) * rows["layers"]).multiply_adds
    layers = (block(width, c, 1, 0, 1) * c["layers"]).multiply_adds
    return (2 * stages + 8 * width * columns * cells["layers"] * cells["inducing"],
            2 * layers + 8 * width * c["layers"] * n)


def need(c, operation, size, columns, n):
    tokens, keys, features, asked = {
        "build": (n, n, n, 0),
        "predict": (size, n, size, size),
        "sample": (2 * size * STEPS, n + STEPS / 2, STEPS, size * STEPS),
        "density": (2 * size * STEPS, n + STEPS / 2, STEPS, size * STEPS),
    }[operation]
    stages, layers = bytes_read(c, columns, n)
    stored = tokens - asked
    count = (row_features(c, columns) * features
             + (block(c["width"], c, 1, keys, 0) * tokens
                + Count(2 * c["width"] ** 2 * stored)) * c["layers"]
             + answers(c) * asked)
    if operation == "build":
        count += column_points(c, columns, n)
    return Need(count.multiply_adds, count.exponentials, stages + layers,
                (STEPS - 1) * layers if operation == "sample" else 0)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--buffer", type=int, nargs="+", default=[32, 0])
    a = parser.parse_args()
    if a.write:
        write_model(a.write, configuration(a.columns, a.buffer[0]), "F16")
        return
    print(head(a, "operation", "buffer"))
    with tempfile.TemporaryDirectory() as place:
        for buffer in a.buffer:
            c, path = configuration(a.columns, buffer), os.path.join(place, f"{buffer}.safetensors")
            write_model(path, c, "F16")
            engines = [Engine(program, path, a.rows, a.threads, a.kernels, a.columns)
                       for program in a.engine]
            work = WORK if buffer else ALONE
            measure(a, engines, work,
                    {w: need(c, *w, a.columns, a.rows) for w in work}, buffer or "none")


if __name__ == "__main__":
    main()
