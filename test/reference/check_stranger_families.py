#!/usr/bin/env python3
"""An exporter and reader written from docs/families.md alone (and the sections of
docs/model-format.md that it names), held against the engine. Prints TAP.

As check_stranger.py, this program shares nothing with the reference implementation: it says whether
the page suffices. A model's tensors are those that its arithmetic asks for, by name and shape: the
engine refuses a file with one more or less. All tokens go through the layers at once, each with the
set of those that it sees; numbers are float64.

SPDX-License-Identifier: PostgreSQL
"""
import math
import os
import tempfile

import numpy as np

from check_stranger import ACTIVATIONS, TOLERANCE, export
from checking import Tap, Tool, arguments, close, table

N, CHAIN, WIDTH, HEADS, FF, LAYERS = 21, 3, 12, 2, 10, 2


def softplus(r):
    return np.maximum(r, 0) + np.log1p(np.exp(-np.abs(r)))


def sigmoid(r):
    return 1 / (1 + np.exp(-r))


def normalise(logits, seen):
    """Softmax over what is seen, zeros where that is nothing."""
    logits = np.where(seen, logits, -np.inf)
    top = np.max(logits, axis=1, keepdims=True)
    e = np.where(seen, np.exp(logits - np.where(np.isfinite(top), top, 0)), 0)
    total = e.sum(axis=1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


class Network:
    """A configuration and the tensors that were asked for."""

    def __init__(self, config, seed):
        self.c, self.tensors, self.random = config, {}, np.random.RandomState(seed)
        self.act = ACTIVATIONS[config["activation"]]

    def tensor(self, name, *shape):
        if name not in self.tensors:
            size = 1.3 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.3
            made = size * self.random.standard_normal(shape)
            if "norm" in name and name.endswith("weight"):
                made += 1
            self.tensors[name] = made.astype("<f4").astype(float)
        assert self.tensors[name].shape == shape, name
        return self.tensors[name]

    def linear(self, name, x, out, bias=True):
        y = x @ self.tensor(name + ".weight", out, x.shape[-1]).T
        return y + self.tensor(name + ".bias", out) if bias else y

    def mlp(self, name, x, sizes, bias=True, act=None):
        for i, size in enumerate(sizes):
            x = self.linear(f"{name}.{i}", x, size, bias)
            if i < len(sizes) - 1:
                x = (act or self.act)(x)
        return x

    def norm(self, name, x, kind=None):
        c = self.c["norm"]
        weight = self.tensor(name + ".weight", x.shape[-1])
        if (kind or c["kind"]) == "rms":
            return x / np.sqrt(np.mean(x ** 2, -1, keepdims=True) + c["eps"]) * weight
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt(np.mean(x ** 2, -1, keepdims=True) + c["eps"])
        return x * weight + self.tensor(name + ".bias", x.shape[-1])

    # ---- blocks ----------------------------------------------------------------------------------

    def projections(self, name, h, source, d, bias):
        return (self.linear(name + ".attn.q", h, d, bias),
                self.linear(name + ".attn.k", source, d, bias),
                self.linear(name + ".attn.v", source, d, bias))

    def heads(self, q, k, v, seen, heads=HEADS, more=None):
        parts = []
        for j, (a, b, w) in enumerate(zip(np.split(q, heads, -1), np.split(k, heads, -1),
                                          np.split(v, heads, -1))):
            logits = a @ b.T / math.sqrt(a.shape[-1])
            parts.append(normalise(logits if more is None else logits + more(j), seen) @ w)
        return np.concatenate(parts, -1)

    def block(self, name, h, source, seen, bias="all", heads=HEADS, ff=FF, act=None, kind=None,
              turn=lambda x: x):
        """Pre-norm; one norm for queries and source."""
        d = h.shape[-1]
        u, s = self.norm(name + ".norm1", h, kind), self.norm(name + ".norm1", source, kind)
        q, k, v = self.projections(name, u, s, d, bias == "all")
        mixed = self.heads(turn(q), turn(k), v, seen, heads)
        h = h + self.linear(name + ".attn.o", mixed, d, bias != "none")
        return self.feed(name, h, ff, act, kind)

    def feed(self, name, h, ff=FF, act=None, kind=None, norm=".norm2"):
        return h + self.mlp(name + ".ff", self.norm(name + norm, h, kind), [ff, h.shape[-1]],
                            act=act)

    # ---- rows and answers ------------------------------------------------------------------------

    def concat(self, x, y):
        """y None: queries."""
        e, known = self.c["embedder"], y is not None
        y = y if known else np.zeros((len(x), self.c["target"].get("count", 1)))
        parts = [x, y] + ([np.full((len(x), 1), 0.0 if known else 1.0)] if e["flag"] else [])
        return self.mlp("embed.xy", np.concatenate(parts, 1), [*e["hidden"], WIDTH])

    def additive(self, x, y, role, positions=()):
        h = self.linear("embed.x", x, WIDTH)
        return self.add_target(h, y, role, positions)

    def add_target(self, h, y, role, positions):
        if y is not None:
            h = h + self.linear("embed.y", y, WIDTH)
        if self.c["embedder"]["roles"]:
            h = h + self.tensor("role", 3, WIDTH)[role]
        if len(positions):
            h = h + self.tensor("pos", self.c["embedder"]["positions"], WIDTH)[list(positions)]
        return h

    def parts(self, x, y):
        e, known = self.c["embedder"], y is not None
        observed = self.tensor("embed.observed", 2, e["observed"])[int(known)]
        value = self.mlp("embed.y", y if known else np.zeros((len(x), 1)),
                         [*e["y"]["hidden"], e["y"]["width"]])
        token = np.concatenate([np.tile(observed, (len(x), 1)), self.linear(
            "embed.x", x, e["x"]["width"]), value], 1)
        return self.norm("embed.norm", self.mlp("embed.xy", token, [*e["hidden"], WIDTH]))

    def tokens(self, embed, x, y, chain_x, chain_y, query_x):
        """Context rows, chain rows and queries; what each sees; queries see the chain before."""
        n, k = len(x), len(chain_x)
        h = np.concatenate([embed(x, y), embed(chain_x, chain_y), embed(query_x, None)])
        seen = np.zeros((len(h), len(h)), dtype=bool)
        seen[:, :n] = True
        for j in range(k):
            seen[n + j, n:n + j + 1] = True
        for j in range(len(query_x)):
            seen[n + k + j, n:n + min(j, k)] = True
        return h, seen

    def density(self, h, y, scale=1.0):
        """ln p of targets y [M, D] in the network's units, for each query."""
        targets, head = y.shape[1], self.c["head"]
        out = self.mlp("head", h, [*head["hidden"], 2 * targets])
        mean, raw = out[:, :targets], out[:, targets:]
        sd = head["floor"] + softplus(raw)
        each = -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi)
        return each.sum(1) - np.sum(np.log(scale * np.ones(targets)))

    def last(self, h):
        return self.norm("final_norm", h) if self.c["norm"]["final"] else h


# ---- configurations ------------------------------------------------------------------------------

PRE = {"kind": "layer", "placement": "pre", "eps": 1e-5, "final": True}
COMMON = {
    "format": 1, "inputs": {"features": 2, "scaling": "none"}, "target": {"scaling": "none"},
    "min_rows": 1, "context": "full", "chain": {"buffer": 4, "mask": "inclusive"},
    "width": WIDTH, "layers": LAYERS, "heads": HEADS, "feedforward": FF, "norm": PRE,
    "activation": "gelu", "attention": {"bias": "all"},
    "embedder": {"kind": "concat", "hidden": [9], "flag": True},
    "head": {"kind": "gaussian", "hidden": [7], "std": "softplus", "floor": 0.1},
}
NOTHING = {"buffer": None, "mask": "inclusive"}
PARTS = {"kind": "parts", "observed": 3, "x": {"kind": "linear", "width": 4},
         "y": {"kind": "mlp", "hidden": [5], "width": 3}, "hidden": [11], "norm": True}


def several(net, x, y, cx, cy, qx, qy):
    """Targets scaled by their prefix, each for itself."""
    center, scale = y.mean(0), y.std(0)
    y, cy, qy = ((v - center) / scale for v in (y, cy, qy))
    h, seen = net.tokens(net.concat, x, y, cx, cy, qx)
    for i in range(LAYERS):
        h = net.block(f"layer.{i}", h, h, seen)
    return net.density(net.last(h)[-len(qx):], qy, scale)


def joint(net, x, y, cx, cy, qx, qy):
    """One distribution of all queries, which the chain does not enter."""
    h, seen = net.tokens(net.concat, x, y, cx[:0], cy[:0], qx)
    for i in range(LAYERS):
        h = net.block(f"layer.{i}", h, h, seen)
    h, head = net.last(h)[-len(qx):], net.c["head"]
    mean, u = net.mlp("head.mean", h, [*head["hidden"], 1]), h
    for i in range(head["layers"]):
        u = net.block(f"head.block.{i}", u, u, np.ones((len(u), len(u)), dtype=bool))
    w = net.mlp("head.projector", u, [*head["projector"], head["rank"]])
    c = np.tril(w @ w.T) + head["jitter"] * np.eye(len(w))
    z = np.linalg.solve(c, qy - mean)
    return [-0.5 * np.sum(z ** 2) - np.sum(np.log(np.diag(c)))
            - 0.5 * len(w) * math.log(2 * math.pi)]


def mean(net, x, y, cx, cy, qx, qy):
    rows = np.concatenate([x, cx]), np.concatenate([y, cy])
    e = net.mlp("embed.xy", np.concatenate(rows, 1), [*net.c["embedder"]["hidden"], WIDTH])
    states = [e[:len(x) + min(j, len(cx))].mean(0) for j in range(len(qx))]
    return net.density(np.concatenate([states, qx], 1), qy)


def latent(net, x, y, cx, cy, qx, qy):
    """U reads rows, then itself; queries and chain rows read U."""
    z, b, t = net.concat(x, y), net.concat(cx, cy), net.concat(qx, None)
    u = net.tensor("latents", net.c["latents"], WIDTH)
    size = len(u)
    for i in range(LAYERS):
        u = net.block(f"read.{i}", u, z, np.ones((size, len(z)), dtype=bool), "output")
        u = net.block(f"self.{i}", u, u, np.ones((size, size), dtype=bool), "output")
        h = np.concatenate([b, t])
        seen = np.zeros((len(h), size + len(b)), dtype=bool)
        seen[:, :size] = True
        for j in range(len(h)):
            seen[j, size:size + (j + 1 if j < len(b) else min(j - len(b), len(b)))] = True
        h = net.block(f"cross.{i}", h, np.concatenate([u, b]), seen, "output")
        b, t = h[:len(b)], h[len(b):]
    return net.density(net.last(t), qy)


def scan(net, x, y, cx, cy, qx, qy):
    """One kernel for each column; a token sees nothing that is later in the second."""
    h, seen = net.tokens(net.parts, x, y, cx, cy, qx)
    s, a = np.concatenate([x, cx, qx]), net.c["attention"]
    seen = seen & (s[None, :, 1] <= s[:, None, 1])
    for i in range(LAYERS):
        name = f"layer.{i}"
        kernel = [net.tensor(f"{name}.attn.kernel.{p}", 2, HEADS, a["kernel"]["basis"])
                  for p in "abc"]

        def bumps(j):
            total = 0
            for g in range(2):
                far = np.abs(s[:, None, g] - s[None, :, g])[..., None]
                heights, rates, centers = (p[g, j] for p in kernel)
                total = total + np.sum(
                    heights * np.exp(-np.abs(rates) * (far - centers) ** 2), -1)
            return total
        u = net.norm(name + ".norm1", h)
        q = net.linear(name + ".attn.q", u, a["query_width"])
        k = net.linear(name + ".attn.k", u, a["query_width"])
        v = net.mlp(name + ".attn.v", u, [*a["value_hidden"], a["value_width"]],
                    act=ACTIVATIONS[a["value_activation"]])
        h = h + net.linear(name + ".attn.o", net.heads(q, k, v, seen, more=bumps), WIDTH)
        h = net.feed(name, h)
    return net.density(net.last(h)[-len(qx):], qy)


def deep_kernel(net, x, y, cx, cy, qx, qy):
    h, seen = net.tokens(net.parts, x, y, cx, cy, qx)
    s, a = np.concatenate([x, cx, qx]), net.c["attention"]
    for i in range(LAYERS):
        name = f"layer.{i}"
        u = net.norm(name + ".norm1", h)
        phi = net.mlp(name + ".attn.qk", np.concatenate([s, u], 1), [*a["hidden"], a["features"]])
        phi = phi / WIDTH ** 0.25
        v = net.linear(name + ".attn.v", u, WIDTH)
        sums = np.einsum("ik,kf,kv->ifv", seen / seen.sum(1, keepdims=True), phi, v)
        h = h + net.norm(name + ".attn.norm", np.einsum("if,ifv->iv", phi, sums))
        h = net.feed(name, h)
    return net.density(net.last(h)[-len(qx):], qy)


def performer(net, x, y, cx, cy, qx, qy):
    h, seen = net.tokens(net.concat, x, y, cx, cy, qx)
    m, dh = net.c["attention"]["features"], WIDTH // HEADS
    for i in range(LAYERS):
        name = f"layer.{i}"
        u = net.norm(name + ".norm1", h)
        q, k, v = net.projections(name, u, u, WIDTH, False)
        omega, mixed = net.tensor(name + ".attn.omega", m, dh), []
        for a, b, w in zip(*(np.split(p, HEADS, -1) for p in (q, k, v))):
            fq, fk = (np.exp(p @ omega.T - np.sum(p ** 2, -1, keepdims=True) / 2) / math.sqrt(m)
                      for p in (a * dh ** -0.25, b * dh ** -0.25))
            weights = (fq @ fk.T) * seen
            mixed.append(weights @ w / np.maximum(weights.sum(1, keepdims=True), 1e-6))
        h = h + net.linear(name + ".attn.o", np.concatenate(mixed, -1), WIDTH)
        h = net.feed(name, h)
    return net.density(net.last(h)[-len(qx):], qy)


def streams(net, x, y, cx, cy, qx):
    """Of decoupled values: e and h of all tokens, and what each sees."""
    def features(some, _):
        return net.linear("embed.x", some, WIDTH)

    def values(some, targets):
        return np.zeros((len(some), WIDTH)) if targets is None else net.mlp(
            "embed.y", targets, [8, WIDTH])
    e, seen = net.tokens(features, x, y, cx, cy, qx)
    return e, net.tokens(values, x, y, cx, cy, qx)[0], seen


def decoupled(net, x, y, cx, cy, qx, qy):
    e, h, seen = streams(net, x, y, cx, cy, qx)
    kind, tied = net.c["attention"]["kind"], net.c["attention"].get("tied")
    for i in range(LAYERS):
        name = f"layer.{i}"
        tau = net.tensor(name + ".tau", 1)[0]
        q = net.linear(name + ".attn.q", net.norm(name + ".norm_q", e), WIDTH)
        k = net.linear(name + (".attn.q" if tied else ".attn.k"), net.norm(name + ".norm_k", e),
                       WIDTH)
        v = net.linear(name + ".attn.v", net.norm(name + ".norm_v", h), WIDTH)
        mixed = []
        for a, b, w in zip(*(np.split(p, HEADS, -1) for p in (q, k, v))):
            if kind == "linear":
                f = [np.where(u > 0, u + 1, np.exp(np.minimum(u, 0))) for u in (tau * a, b)]
                weights = (f[0] @ f[1].T) * seen
                weights = weights / weights.sum(1, keepdims=True)
            elif kind == "distance":
                weights = normalise(-tau * np.sum((a[:, None] - b[None]) ** 2, -1), seen)
            else:
                weights = normalise(tau * (a @ b.T) / math.sqrt(a.shape[-1]), seen)
            mixed.append(weights @ w)
        h = h + net.linear(name + ".attn.o", np.concatenate(mixed, -1), WIDTH)
        h = net.feed(name, h, norm=".norm_ff")
    return net.density(net.last(h)[-len(qx):], qy)


def one_by_one(answer):
    """Chain rows become context, one after the other (a buffer of one row)."""
    def all_rows(net, x, y, cx, cy, qx, qy):
        steps = [answer(net, np.concatenate([x, cx[:j]]), np.concatenate([y, cy[:j]]),
                        qx[j:j + 1], qy[j:j + 1]) for j in range(len(qx))]
        return np.concatenate(steps)
    return all_rows


@one_by_one
def convolution(net, x, y, qx, qy):
    n, nothing = len(x), np.zeros((0, 2))
    e, h, seen = streams(net, x, y, nothing, y[:0], qx)
    for i in range(LAYERS):
        name = f"layer.{i}"
        taps, u = net.tensor(name + ".conv.weight", WIDTH, 5), net.norm(name + ".norm_c", e)
        moved = e.copy()
        for row in range(n + 1):
            for o in range(-2, 3):
                other = row + o
                if 0 <= other < n or other == row:
                    moved[row] = moved[row] + taps[:, o + 2] * u[other]
        e = moved
        u = net.norm(name + ".norm_qk", e)
        q, k = (net.linear(f"{name}.attn.{p}", u, WIDTH) for p in "qk")
        v = net.linear(name + ".attn.v", net.norm(name + ".norm_v", h), WIDTH)
        h = h + net.linear(name + ".attn.o", net.heads(q, k, v, seen), WIDTH)
    return net.density(net.last(h)[-1:], qy)


@one_by_one
def recurrent(net, x, y, qx, qy):
    n, nothing = len(x), np.zeros((0, 2))
    e, h, seen = streams(net, x, y, nothing, y[:0], qx)
    for i in range(LAYERS):
        name, out = f"layer.{i}.rec", []
        s = memory = np.zeros(WIDTH)
        for row in e:
            if net.c["backbone"]["kind"] == "rnn":
                s = np.tanh(net.linear(name + ".ih", row, WIDTH) + net.linear(
                    name + ".hh", s, WIDTH))
            else:
                gates = net.linear(name + ".ih", row, 4 * WIDTH) + net.linear(
                    name + ".hh", s, 4 * WIDTH)
                a, f, g, o = np.split(gates, 4)
                memory = sigmoid(f) * memory + sigmoid(a) * np.tanh(g)
                s = sigmoid(o) * np.tanh(memory)
            out.append(s)
        e = np.array(out)
    q, k = (net.linear(f"read.attn.{p}", e, WIDTH) for p in "qk")
    v = net.linear("read.attn.v", net.norm("read.norm_v", h), WIDTH)
    h = net.linear("read.attn.o", net.heads(q, k, v, seen), WIDTH)
    return net.density(net.last(h)[n:], qy)


def yeo_johnson(z, power):
    up, down = np.maximum(z, 0), np.maximum(-z, 0)
    rising = np.log1p(up) if power == 0 else ((up + 1) ** power - 1) / power
    falling = np.log1p(down) if power == 2 else ((1 + down) ** (2 - power) - 1) / (2 - power)
    return np.where(z >= 0, rising, -falling)


def power_column(x):
    """The scaling of a column whose prefix is x, as a function."""
    mu, sigma = x.mean(), x.std() + 1e-6
    z = np.clip((x - mu) / sigma, -100, 100)
    low, high = z.min(), z.max()
    h = 486 * math.log(2) / math.log(1 + 20 * np.abs(z).max())

    def likelihood(p):
        return (-0.5 * len(z) * math.log(np.var(yeo_johnson(z, p)))
                + (p - 1) * np.sum(np.sign(z) * np.log1p(np.abs(z))))
    least, most = 2 - h, h
    for _ in range(300):
        a, b = least + (most - least) / 3, most - (most - least) / 3
        least, most = (a, most) if likelihood(a) < likelihood(b) else (least, b)
    p = 1.0 if np.var(z) < 1e-20 else (least + most) / 2
    t = yeo_johnson(z, p)
    center, spread = t.mean(), t.std() if np.var(t) >= 1e-20 else 1.0
    t = (t - center) / spread
    near = t[np.abs(t - t.mean()) <= 4 * max(t.std(ddof=1), 1e-6)]
    m, s = near.mean(), max(near.std(ddof=1), 1e-6)

    def scaled(v):
        v = np.clip(np.clip((v - mu) / sigma, -100, 100), low, high)
        v = (yeo_johnson(v, p) - center) / spread
        v = np.maximum(v, m - 4 * s - np.log1p(np.abs(v)))
        return np.minimum(v, m + 4 * s + np.log1p(np.abs(v)))
    return scaled


def rotation(length, heads, base):
    """Turn pairs of each head of tokens at positions 0, 1, …"""
    def turn(x):
        out = x.copy()
        dh = x.shape[-1] // heads
        for j in range(heads):
            for i in range(dh // 2):
                angle = np.arange(length)[:len(x)] * base ** (-2 * i / dh)
                a, b = x[:, j * dh + 2 * i], x[:, j * dh + 2 * i + 1]
                out[:, j * dh + 2 * i] = a * np.cos(angle) - b * np.sin(angle)
                out[:, j * dh + 2 * i + 1] = a * np.sin(angle) + b * np.cos(angle)
        return out
    return turn


def set_encoder(net, x, y, cx, cy, qx, qy):
    columns, rows = net.c["embedder"]["columns"], net.c["embedder"]["rows"]
    size, n, everything = columns["width"], len(x), np.concatenate([x, cx, qx])
    stage = {"heads": columns["heads"], "ff": columns["feedforward"], "kind": "layer"}
    vectors = []
    for f in range(x.shape[1]):
        z = power_column(x[:, f])(everything[:, f])[:, None]
        a = net.linear("embed.column.in", z, size)
        for i in range(columns["layers"]):
            name = f"embed.column.{i}"
            points = net.tensor(name + ".inducing", columns["inducing"], size)
            b = net.block(name + ".a", points, a[:n], np.ones((len(points), n), dtype=bool),
                          **stage)
            a = net.block(name + ".b", a, b, np.ones((len(a), len(b)), dtype=bool), **stage)
        w, shift = (net.norm(f"embed.column.{p}_norm", net.linear(f"embed.column.{p}", a, size),
                             "layer") for p in ("scale", "shift"))
        vectors.append(z * w + shift)
    readouts, e = net.tensor("embed.row.readout", rows["readouts"], size), []
    turn = rotation(len(readouts) + len(vectors), rows["heads"], rows["rotary"])
    for r in range(len(everything)):
        h = np.concatenate([readouts, [v[r] for v in vectors]])
        for i in range(rows["layers"]):
            h = net.block(f"embed.row.{i}", h, h, np.ones((len(h), len(h)), dtype=bool),
                          heads=rows["heads"], ff=rows["feedforward"], kind="layer", turn=turn)
        e.append(net.norm("embed.row.norm", h[:len(readouts)], "layer").ravel())
    e, k = np.array(e), len(cx)
    center, scale = y.mean(), y.std()
    y, cy, qy = ((v - center) / scale for v in (y, cy, qy))
    h = np.concatenate([net.add_target(e[:n], y, 1, ()),
                        net.add_target(e[n:n + k], cy, 2, range(k)),
                        net.add_target(e[n + k:], None, 0, ())])
    seen = net.tokens(lambda some, _: some, x, y, cx, cy, qx)[1]
    for i in range(LAYERS):
        h = net.block(f"layer.{i}", h, h, seen)
    return net.density(net.last(h)[-len(qx):], qy, scale)


def buffered(net, x, y, cx, cy, qx, qy):
    c, b = net.additive(x, y, 1), net.additive(cx, cy, 2)
    t, n, k = net.additive(qx, None, 0), len(x), len(cx)
    for i in range(LAYERS):
        after = net.block(f"self.{i}", c, c, np.ones((n, n), dtype=bool))
        seen = np.concatenate([np.ones((k, n)), np.tril(np.ones((k, k)))], 1) > 0
        b = net.block(f"buffer.{i}", b, np.concatenate([c, b]), seen)
        name, c = f"cross.{i}", after
        source = net.norm(name + ".norm_kv", np.concatenate([c, b]))
        q, keys, v = net.projections(name, net.norm(name + ".norm1", t), source, WIDTH, True)
        constant = net.tensor(name + ".attn.buffer", HEADS)
        seen = np.array([[col < n or col - n < j for col in range(n + k)] for j in range(len(qx))])
        mixed = net.heads(q, keys, v, seen,
                          more=lambda j: constant[j] * (np.arange(n + k) >= n)[None, :])
        t = net.feed(name, t + net.linear(name + ".attn.o", mixed, WIDTH))
    return net.density(net.last(t), qy)


ADDITIVE = {"kind": "additive", "x": {"kind": "linear"}, "y": {"kind": "linear"}, "roles": True,
            "positions": 0}
SEPARATE = {"kind": "separate", "x": {"kind": "linear"}, "y": {"kind": "mlp", "hidden": [8]}}
STAGE = {"layers": 2, "heads": 3, "feedforward": 9}
MODELS = {
    "several targets": (several, {"target": {"scaling": "prefix", "count": 3}, "min_rows": 2}),
    "joint Gaussian": (joint, {"chain": {"buffer": 1}, "head": {
        "kind": "joint-gaussian", "hidden": [7], "rank": 6, "layers": 2, "projector": [8],
        "jitter": 0.2}}),
    "mean": (mean, {"architecture": "mean", "context": "causal", "chain": NOTHING, "min_rows": 0,
                    "embedder": {"kind": "concat", "hidden": [9], "flag": False}}),
    "latents": (latent, {"architecture": "latent", "latents": 5,
                         "attention": {"bias": "output"}}),
    "kernel bias": (scan, {"embedder": PARTS, "attention": {
        "bias": "all", "query_width": 8, "value_width": 6, "value_hidden": [7],
        "value_activation": "relu",
        "kernel": {"basis": 3, "components": [[0], [1]], "causal": 1}}}),
    "deep kernel": (deep_kernel, {"embedder": PARTS, "heads": 1, "context": "prefix-causal",
                                  "chain": NOTHING, "attention": {
                                      "kind": "deep-kernel", "bias": "all", "features": 5,
                                      "hidden": [6]}}),
    "random features": (performer, {"attention": {"kind": "random-features", "features": 9,
                                                  "bias": "output"}}),
    **{f"decoupled, {kind}{', tied' if tied else ''}": (decoupled, {
        "architecture": "decoupled", "embedder": SEPARATE,
        "attention": {"bias": "all", "kind": kind, "tied": tied}})
       for kind, tied in (("softmax", False), ("distance", True), ("linear", False))},
    "decoupled, convolution": (convolution, {
        "architecture": "decoupled", "embedder": SEPARATE, "chain": {"buffer": 1},
        "backbone": {"kind": "convolution"}}),
    **{f"decoupled, {kind}": (recurrent, {
        "architecture": "decoupled", "embedder": SEPARATE, "context": "causal", "chain": NOTHING,
        "backbone": {"kind": kind}}) for kind in ("rnn", "lstm")},
    "set encoder": (set_encoder, {
        "inputs": {"max_features": 4, "scaling": "power"}, "target": {"scaling": "prefix"},
        "min_rows": 2, "embedder": {
            "kind": "set", "columns": {"width": 6, "inducing": 4, **STAGE},
            "rows": {"readouts": 2, "take": "all", "rotary": 1000, "layout": "interleaved",
                     **STAGE},
            "y": {"kind": "linear"}, "roles": True, "positions": 3}}),
    "buffered": (buffered, {"architecture": "buffered", "embedder": ADDITIVE}),
}


def configuration(name):
    """The configuration of a model: what COMMON says, and what the page excludes left out."""
    config = {**COMMON, "architecture": "packed", **MODELS[name][1]}
    if config["architecture"] == "mean":
        lacks = ("layers", "heads", "feedforward", "norm", "attention")
    elif config.get("backbone"):
        lacks = ("feedforward",)
    else:
        lacks = ()
    return {key: value for key, value in config.items() if key not in lacks}


def check(tap, tool_path, name, folder):
    answer, config = MODELS[name][0], configuration(name)
    random = np.random.RandomState(len(name))
    targets = config["target"].get("count", 1)
    x = random.uniform(-2, 2, (N + CHAIN, 2))
    x[:, 1] = np.exp(x[:, 1])
    y = np.stack([np.sin(x[:, 0] + t) + 0.2 * random.standard_normal(len(x))
                  for t in range(targets)], 1)
    # tensors have names when they are first asked for; norms of a model without any are not
    net = Network({"norm": PRE, **config}, len(name))
    if "norm" not in config:
        net.c = {**net.c, "norm": {**PRE, "final": False}}
    rows = x[:N], y[:N], x[N:-1], y[N:-1], x[N:], y[N:]
    chain = answer(net, *rows)
    alone = [np.sum(answer(net, x[:N], y[:N], x[:0], y[:0], x[i:i + 1], y[i:i + 1]))
             for i in (N, N + 1)]
    path = os.path.join(folder, "model.safetensors")
    export(path, config, net.tensors)
    flat = y if targets > 1 else y[:, 0]
    with Tool(tool_path, path) as tool:
        common = {"kernels": "cpu", "context": table(x[:N], flat[:N]),
                  "prefix": 0 if config["context"] == "causal" else N}
        said = tool.ask(**common, score=table(x[N:], flat[N:]))
        bad = close(said.get("log_density", math.nan), np.sum(chain), CHAIN * TOLERANCE)
        tap.ok(bad is None, f"{name}: {CHAIN} rows, jointly", bad, said)
        said = [tool.ask(**common, score=table(x[i:i + 1], flat[i:i + 1])).get("log_density")
                for i in (N, N + 1)]
        bad = close(said, alone, TOLERANCE)
        tap.ok(bad is None, f"{name}: rows alone", bad)


def main():
    options = arguments(__doc__.split("\n\n")[0])
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            if options.only in name:
                check(tap, options.tool, name, folder)
    tap.done()


if __name__ == "__main__":
    main()
