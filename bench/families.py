"""Measure models of the other families, with random weights, against the arithmetic limit of the
machine. Prints a Markdown table.

    families.py [--rows 1024] [--seconds 1] [--rounds 3] [--threads T] [--kernels NAME]
                [--engine FILE ...] [--only NAME]

Width 64, 4 heads, 6 layers, feed-forward 128, one column. What each must do is counted below from
docs/families.md: multiply-adds of linear layers, of scores and of weighted values, exponentials of
weights and features, and what is kept of the context, and the weights, read once. Sums that the
page asks for in float64 are counted as two multiply-adds each, as vectors hold half as many. Where
the first rows alone may be seen ("causal", linear attention of decoupled values) a row reads the
sums up to the mark before it, and one by one half of the rows to the next mark in the mean; a
question reads what is behind the last mark.

SPDX-License-Identifier: PostgreSQL
"""
import os
import tempfile

from against_limit import Engine, Need, arguments, head, make_families, measure, write_model

D, H, L, FF, P, R = 64, 4, 6, 128, 32, 64       # P latents, R features
BLOCK = 4 * D ** 2 + 2 * D * FF                 # a row that makes keys, asks and is updated
ASKS = BLOCK - 2 * D ** 2                       # one that only asks
KEYS = 2 * D ** 2


def need(n, m, build, asked, kept, exponentials=0, weights=L * BLOCK):
    """Of building (m 0), or of m questions: multiply-adds, exponentials of a row and a question,
    numbers that are kept, and of weights."""
    if m == 0:
        return Need(build, exponentials * n, 4 * kept)
    return Need(m * asked, m * exponentials, 4 * (weights + kept))


def packed_like(row, asks, keys=2 * D * L):
    """Rows that read all rows; what a row and a question cost beside pairs; numbers kept a row."""
    def counted(n, m):
        pairs = 2 * D * L * n
        return need(n, m, n * (L * row + pairs), L * asks + pairs, n * keys, L * H * n)
    return counted


def mean(n, m):
    return need(n, m, n * 3 * D ** 2, 2 * D ** 2, D, weights=2 * D ** 2)


def latent(n, m):
    of_rows = n * KEYS + P * (2 * D * n + ASKS)
    among = P * (BLOCK + 2 * D * P) + P * KEYS
    exponentials = L * H * P
    return need(n, m, L * (of_rows + among), L * (ASKS + 2 * D * P), 2 * L * P * D, exponentials)


def one_by_one(n, m, apart, numbers):
    """Of rows behind marks, with so many features and values in a layer."""
    rest = apart / 2 if m == 0 else n % apart
    return 2 * numbers * rest


def deep_kernel(n, m, apart=1):
    phi, rest = D * D + D * R, D ** 2 + 2 * D * FF
    behind = one_by_one(n, m, apart, R + D) if apart > 1 else 0
    row = phi + rest + 2 * 2 * R * D + behind   # its product is added, then it reads: float64
    return need(n, m, n * L * row, L * (phi + 2 * D * FF + 2 * R * D + behind), L * R * D)


def random_features(n, m, apart=1):
    phi = R * D                                 # of all heads
    behind = one_by_one(n, m, apart, H * R + D) if apart > 1 else 0
    row = BLOCK + 2 * phi + 2 * 2 * R * D + behind
    return need(n, m, n * L * row, L * (ASKS + phi + 2 * R * D + behind), L * H * R * (D / H + 1),
                2 * L * H * R)


def linear(n, m):
    sums = D * D // H
    behind = one_by_one(n, m, 16, 2 * D)
    return need(n, m, n * L * (BLOCK + 2 * 2 * sums + behind), L * (ASKS + 2 * sums + behind),
                L * sums, 2 * L * D if m == 0 else L * D)


def recurrence(gates, exponentials):
    """Rows one after the other through all layers, of gates and states; attention reads once."""
    def counted(n, m):
        layers, ends = L * 2 * gates * D ** 2, 2 * D ** 2
        return need(n, m, n * (layers + ends), layers + ends + 2 * D * n, 2 * D * n,
                    L * exponentials * D + (H * n if m else 0), layers + 2 * ends)
    return counted


DEEP = {"heads": 1, "embedder": {**make_families.XY, "hidden": [D]}, "attention": {
    "kind": "deep-kernel", "bias": "all", "features": R, "hidden": [D]}}
RANDOM = {"embedder": {**make_families.XY, "hidden": [D]}, "attention": {
    "kind": "random-features", "bias": "all", "features": R}}
MODELS = {
    "CNP": ("mean", {"architecture": "mean", "layers": None, "heads": None, "feedforward": None,
                     "norm": None, "attention": None, "embedder": {
                         "kind": "concat", "hidden": [D, D, D], "flag": False},
                     "context": "prefix-causal", "chain": {"buffer": None}}, mean),
    "LBANP": ("latent", {"latents": P}, latent),
    "DVA": ("decoupled", {}, packed_like(BLOCK, BLOCK - KEYS)),
    "nanoACE": ("buffered", {}, packed_like(BLOCK + 2 * KEYS, ASKS, 4 * D * L)),
    "DVA distance": ("decoupled_distance", {}, packed_like(BLOCK, BLOCK - KEYS)),
    "DVA RNN": ("decoupled_rnn", {"feedforward": None}, recurrence(1, 1)),
    "DVA LSTM": ("decoupled_lstm", {"feedforward": None}, recurrence(4, 5)),
    "DVA linear": ("decoupled_linear", {}, linear),
    "deep kernel": ("deep_kernel", DEEP, deep_kernel),
    "deep kernel causal": ("deep_kernel", {**DEEP, **make_families.CAUSAL},
                           lambda n, m: deep_kernel(n, m, 64)),
    "Performer": ("random_features", RANDOM, random_features),
    "Performer causal": ("random_features", {**RANDOM, **make_families.CAUSAL},
                         lambda n, m: random_features(n, m, 32)),
}
WORK = [("build", 0), ("predict", 1), ("predict", 16), ("predict", 256)]


def configuration(name):
    family, more, _ = MODELS[name]
    config = {**make_families.family(family), "inputs": {"features": 1, "scaling": "none"},
              "target": {"scaling": "none"}, "min_rows": 1, "width": D, "layers": L, "heads": H,
              "feedforward": FF, "head": {"kind": "gaussian", "hidden": [D], "std": "softplus",
                                          "floor": 0.01}, **more}
    return {key: value for key, value in config.items() if value is not None}


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    print(head(a, "operation", "model"))
    with tempfile.TemporaryDirectory() as place:
        for name in MODELS:
            if a.only not in name:
                continue
            path = os.path.join(place, "model.safetensors")
            write_model(path, configuration(name))
            engines = [Engine(program, path, a.rows, a.threads, a.kernels) for program in a.engine]
            measure(a, engines, WORK, {w: MODELS[name][2](a.rows, w[1]) for w in WORK}, name)


if __name__ == "__main__":
    main()
