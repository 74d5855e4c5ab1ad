#!/usr/bin/env python3
"""An exporter and reader written from docs/model-format.md alone, held against the engine. Prints
TAP.

Nothing here comes from the reference implementation beside it, which has grown with the engine:
this program says whether the page suffices. Every token has its list of what it sees, every
question is computed from raw rows, and all numbers are float64. Five models of different shape are
made here, with random weights: log densities of single rows, of chains and of rows in their order
are compared.

SPDX-License-Identifier: PostgreSQL
"""

import json
import math
import os
import struct
import tempfile
from statistics import NormalDist

import numpy as np

from checking import Tap, Tool, arguments, close, table

TOLERANCE = 1e-3
ACTIVATIONS = {
    "relu": lambda v: np.maximum(v, 0),
    "gelu": lambda v: 0.5 * v * (1 + np.vectorize(math.erf, otypes=[float])(v / math.sqrt(2))),
    "gelu-tanh": lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
}


# ---- section 1: the file -------------------------------------------------------------------------


def export(path, config, tensors):
    header, data = {"__metadata__": {"pg_posterior": json.dumps(config)}}, b""
    for name, value in tensors.items():
        raw = value.astype("<f4").tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# ---- section 3: cells and scaling ----------------------------------------------------------------


def identity(label):
    h = 0xCBF29CE484222325
    for byte in label.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return float((h ^ h >> 52) % 2**52)


def clip(z, knee):
    if not knee or abs(z) <= knee:
        return z
    return math.copysign(knee + math.log(1 + abs(z) - knee), z)


class Scale:
    """Centre and scale of one column, from its prefix values where its scaling is `prefix`."""

    def __init__(self, scaling, values, center=0.0, scale=1.0, is_target=False):
        self.center, self.scale = center, scale
        if scaling != "prefix":
            return
        values = [v for v in values if not math.isnan(v)]
        self.center = float(np.mean(values)) if values else 0.0
        self.scale = float(np.std(values)) if values else 0.0
        if is_target:
            size = abs(self.center)
            alike = min(values) == max(values)
            self.scale = size if alike else max(self.scale, 1e-11 * size)
            self.scale = self.scale if self.scale >= 1e-100 else 1.0
        elif not values or min(values) == max(values):
            self.scale = math.inf

    def __call__(self, v):
        return (v - self.center) / self.scale


# ---- section 5: the row tokeniser ----------------------------------------------------------------


class Column:
    """What the prefix says about one column."""

    def __init__(self, c, cells, categorical, y, classes, share):
        self.categorical, self.y = categorical, y
        self.known = sorted({v for v in cells if not math.isnan(v)})
        codes = [self.code(v) for v in cells]
        present = [v for v in codes if not math.isnan(v)]
        self.scale, self.knee = Scale("prefix", codes), c["inputs"].get("clip", 0)
        if categorical:
            order = sorted(set(present), key=lambda v: (-present.count(v), v))
            self.bin_of = {v: min(place, 15) for place, v in enumerate(order)}
        else:
            self.edges = self.cut(sorted(present))
        bins = [self.bin(v) for v in codes]
        self.z = [0.0 if math.isnan(v) else self.feature(v) for v in codes]
        there = [not math.isnan(v) for v in codes]
        n0, k = len(y), len(set(bins))
        self.count = {b: bins.count(b) for b in set(bins)}
        self.missing = 1 - len(present) / n0
        self.says_something = 0 < self.missing < 1 or len(set(codes)) > 1
        room = c["head"].get("classes")
        if room is None:
            self.sum = {b: sum(t for t, own in zip(y, bins) if own == b) for b in self.count}
            mean = np.mean(y)
            inside = sum(
                self.count[b] * (self.sum[b] / self.count[b] - mean) ** 2 for b in self.count
            )
            total = np.sum((np.array(y) - mean) ** 2)
            self.r = self.pearson(there)
        else:
            self.sum = {
                b: np.array(
                    [
                        sum(1 for t, own in zip(y, bins) if own == b and t == c_)
                        for c_ in range(room)
                    ]
                )
                - self.count[b] * share
                for b in self.count
            }
            inside = sum(np.sum(self.sum[b] ** 2) / self.count[b] for b in self.count)
            total = n0 * (1 - np.sum(share**2))
            self.r = self.ratio(there)
        alike = len(set(y)) == 1
        self.e = (
            0.0 if n0 <= k or alike else max(0.0, 1 - (1 - inside / total) * (n0 - 1) / (n0 - k))
        )
        self.relevance = round(2**20 * max(self.e, self.r**2))
        share = 0.0 if alike else inside / total
        self.tie = round(2**20 * (share + (self.r**2 if room is None else self.plain_ratio(there))))

    def code(self, v):
        if not self.categorical:
            return v
        return float(self.known.index(v)) if v in self.known else math.nan

    @staticmethod
    def cut(v):
        edges = []
        for j in range(1, 8):
            h = (len(v) - 1) * j / 8
            low = math.floor(h)
            high = min(low + 1, len(v) - 1)
            edges.append(v[low] + (v[high] - v[low]) * (h - low))
        return edges

    def bin(self, code):
        if math.isnan(code):
            return "missing"
        if self.categorical:
            return self.bin_of[code]
        return sum(edge < code for edge in self.edges)

    def feature(self, code):
        return clip(self.scale(code), self.knee)

    def pearson(self, there):
        z, y = (np.array([v for v, t in zip(values, there) if t]) for values in (self.z, self.y))
        if len(z) == 0 or np.ptp(z) == 0 or np.ptp(y) == 0:
            return 0.0
        return float(np.corrcoef(z, y)[0, 1])

    def plain_ratio(self, there):
        z, y = (np.array([v for v, t in zip(values, there) if t]) for values in (self.z, self.y))
        if len(z) == 0 or np.ptp(z) == 0:
            return 0.0
        between = sum(np.sum(y == c) * (z[y == c].mean() - z.mean()) ** 2 for c in set(y))
        return between / np.sum((z - z.mean()) ** 2)

    def ratio(self, there):
        m, g = sum(there), len({t for t, own in zip(self.y, there) if own})
        share = self.plain_ratio(there)
        if m <= g or share == 0:
            return 0.0
        return math.sqrt(max(0.0, 1 - (1 - share) * (m - 1) / (m - g)))


class Tokeniser:
    """Raw rows to the numbers of the tokeniser, with everything frozen at the prefix x, y (y scaled
    and clipped, or classes).
    """

    def __init__(self, c, x, kinds, y, classes):
        self.c, self.x, self.y, self.classes = c, x, y, classes
        self.n0, self.room = len(y), c["head"].get("classes")
        if classes:
            self.share = np.array([sum(t == k for t in y) for k in range(self.room)]) / self.n0
        share = self.share if classes else None
        self.columns = [Column(c, x[:, f], kinds[f], y, classes, share) for f in range(x.shape[1])]
        order = sorted(
            [f for f in range(len(kinds)) if self.columns[f].says_something] or [0],
            key=lambda f: (-self.columns[f].relevance, -self.columns[f].tie, f),
        )
        self.slots = order[: c["inputs"]["max_features"]]
        own = c["embedder"]["x"]
        if own.get("prune") and len(self.slots) > 8:
            self.prune()
        self.designs = [self.entries(False), self.entries(True)] if own.get("ridge") else []
        self.ridges = [self.ridge(self.matrix(d), np.array(y)) for d in self.designs]
        self.straight = self.entries(False)
        if own.get("logistic"):
            self.fit_logistic(self.matrix(self.straight))

    def entries(self, hinges):
        out = []
        for f in self.slots:
            column = self.columns[f]
            new = [] if column.categorical else [(f, "value")]
            if hinges and not column.categorical:
                new += [(f, knot) for knot in (-0.7, 0.0, 0.7)]
            new += [(f, ("bin", b)) for b in column.count if column.categorical or b == "missing"]
            if len(out) + len(new) > 127:
                break
            out += new
        return out

    def design(self, row, entries):
        u = []
        for f, what in entries:
            column = self.columns[f]
            code = column.code(row[f])
            z = 0.0 if math.isnan(code) else column.feature(code)
            if what == "value":
                u.append(z)
            elif isinstance(what, tuple):
                u.append(float(column.bin(code) == what[1]))
            else:
                u.append(max(z - what, 0.0))
        return np.array(u + [1.0])

    def matrix(self, entries):
        return np.array([self.design(row, entries) for row in self.x])

    @staticmethod
    def ridge(u, y):
        """(weights, the inverse of A, noise) of the penalty with the largest evidence."""
        best, gram, n0 = None, u.T @ u, len(y)
        for k in range(-6, 9):
            a = gram + 4.0**k * np.eye(len(gram))
            inverse = np.linalg.inv(a)
            b = u.T @ y
            # the difference that the page names, in the form that does not drown in rounding
            s2 = max(y @ np.linalg.solve(np.eye(n0) + u @ u.T / 4.0**k, y) / n0, 1e-8)
            evidence = -0.5 * (
                n0 * math.log(s2) + np.linalg.slogdet(gram / 4.0**k + np.eye(len(gram)))[1]
            )
            if best is None or evidence > best[0]:
                best = evidence, inverse @ b, inverse, s2
        return best[1:]

    def prune(self):
        entries, g = self.entries(False), min(1, self.n0 / 100)
        u = self.matrix(entries)
        b, inverse, s2 = self.ridge(u, np.array(self.y))
        spread = np.diag(inverse @ u.T @ u @ inverse)
        heavy = {
            entries[j][0] for j in range(len(entries)) if b[j] ** 2 > 2.5**2 * g * s2 * spread[j]
        }
        self.slots = [
            f
            for place, f in enumerate(self.slots)
            if place < 8 or self.columns[f].relevance / 2**20 > 8 * g / self.n0 or f in heavy
        ]

    def fit_logistic(self, u):
        K, y = self.classes, np.array(self.y, int)
        own = np.eye(K)[y]
        self.prior = np.log((own.sum(0) + 0.5) / (self.n0 + K / 2))
        w, best = np.zeros((K, u.shape[1])), None
        for k in range(3, -4, -1):
            penalty = 4.0**k
            h = self.curvature(u, self.probabilities(u, w), penalty)
            for _ in range(6):
                p, before = self.probabilities(u, w), self.loss(u, w, y, penalty)
                step = np.array(
                    [np.linalg.solve(h[c], (own - p)[:, c] @ u - penalty * w[c]) for c in range(K)]
                )
                t = 1.0
                for _ in range(10):
                    if not self.loss(u, w + t * step, y, penalty) > (1 + 1e-9) * before:
                        break
                    t /= 2
                w = w + t * step
            p = self.probabilities(u, w)
            h = self.curvature(u, p, penalty)
            omega = p * (1 - p) * K / max(K - 1, 1)
            leverage = np.array([np.sum(u @ np.linalg.inv(h[c]) * u, axis=1) for c in range(K)]).T
            scores = (
                u @ w.T + self.prior - (own - p) * leverage / np.maximum(1 - leverage * omega, 1e-6)
            )
            left_out = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
            mean = np.mean(left_out[np.arange(self.n0), y])
            if best is None or mean > best:
                best, self.weights, self.left_out = mean, w, left_out
        self.quality = best + math.log(K)

    def probabilities(self, u, w):
        p = np.exp(u @ w.T + self.prior)
        return p / p.sum(axis=1, keepdims=True)

    def loss(self, u, w, y, penalty):
        p = self.probabilities(u, w)
        return -np.sum(np.log(p[np.arange(len(y)), y])) + 0.5 * penalty * np.sum(w**2)

    def curvature(self, u, p, penalty):
        omega = p * (1 - p) * self.classes / max(self.classes - 1, 1)
        return [(u.T * omega[:, c]) @ u + penalty * np.eye(u.shape[1]) for c in range(self.classes)]

    def ridge_numbers(self, row, place):
        out = []
        for entries, (weights, inverse, s2) in zip(self.designs, self.ridges):
            u = self.design(row, entries)
            m, h = u @ weights, u @ inverse @ u
            if place is not None:
                q = max(1 - h, 1e-6)
                m, h = self.y[place] - (self.y[place] - m) / q, h / q
            out += [clip(m, self.c["target"]["clip"]), 0.5 * math.log(s2), 0.5 * math.log(1 + h)]
        return out

    def logistic_numbers(self, row, place):
        if place is None:
            log_p = np.log(
                self.probabilities(self.design(row, self.straight)[None], self.weights)[0]
            )
        else:
            log_p = self.left_out[place]
        knee = self.c["inputs"]["clip"]
        said = [clip(math.log(self.classes) + v, knee) for v in log_p]
        return said + [0.0] * (self.room - self.classes) + [self.quality]

    def cell(self, f, value, place):
        column = self.columns[f]
        code = column.code(value)
        b, absent = column.bin(code), math.isnan(code)
        count, total = column.count.get(b, 0), column.sum.get(b, 0.0)
        if place is None:
            t = total / (count + 1.5)
        elif self.classes:
            t = (total - (np.eye(self.room)[int(self.y[place])] - self.share)) / (count + 0.5)
        else:
            t = (total - self.y[place]) / (count + 0.5)
        first = [0.0 if absent else column.feature(code), float(absent), float(column.categorical)]
        last = [math.log(1 + self.n0) / 8, column.r, column.e, column.missing]
        if self.classes:
            return first + [self.classes / self.room] + last + list(np.broadcast_to(t, self.room))
        return first + [float(t)] + last


# ---- sections 4, 6 and 7: the network ------------------------------------------------------------


class Net:
    def __init__(self, config, tensors):
        self.c, self.t = config, {
            name: value.astype(np.float32).astype(float) for name, value in tensors.items()
        }

    def linear(self, name, v):
        return v @ self.t[name + ".weight"].T + self.t.get(name + ".bias", 0.0)

    def mlp(self, name, v, activation):
        i = 0
        while f"{name}.{i}.weight" in self.t:
            v = self.linear(f"{name}.{i}", v if i == 0 else ACTIVATIONS[activation](v))
            i += 1
        return v

    def norm(self, name, v):
        eps = self.c["norm"]["eps"]
        if self.c["norm"]["kind"] == "rms":
            return v / math.sqrt(np.mean(v**2) + eps) * self.t[name + ".weight"]
        v = v - np.mean(v)
        return (
            v / math.sqrt(np.mean(v**2) + eps) * self.t[name + ".weight"] + self.t[name + ".bias"]
        )

    def attention(self, name, own, seen, heads):
        """One token reads those that it sees, all as they enter."""
        q = self.linear(name + ".q", own)
        k, v = self.linear(name + ".k", seen), self.linear(name + ".v", seen)
        size = len(q) // heads
        out = []
        for j in range(heads):
            part = slice(j * size, (j + 1) * size)
            logits = k[:, part] @ q[part] / math.sqrt(size)
            if name + ".log_scale" in self.t:
                a, b = self.t[name + ".log_scale"][j]
                logits = logits * (a * math.log(len(seen)) + b)
            weight = np.exp(logits - np.max(logits))
            out.append(weight / weight.sum() @ v[:, part])
        return self.linear(name + ".o", np.concatenate(out))

    def block(self, name, own, seen, heads, pre):
        """One layer of one token."""
        if pre:
            keys = np.array([self.norm(name + ".norm1", s) for s in seen])
            own = own + self.attention(name + ".attn", self.norm(name + ".norm1", own), keys, heads)
            return own + self.mlp(
                name + ".ff", self.norm(name + ".norm2", own), self.c["activation"]
            )
        own = self.norm(
            name + ".norm1", own + self.attention(name + ".attn", own, np.array(seen), heads)
        )
        return self.norm(name + ".norm2", own + self.mlp(name + ".ff", own, self.c["activation"]))

    def encode(self, name, config, v):
        activation = self.c["embedder"].get("activation", self.c["activation"])
        if config["kind"] == "linear":
            return self.linear(name, v)
        if config["kind"] == "mlp":
            return self.mlp(name, v, activation)
        if config["kind"] == "classes":
            return self.t[name + ".weight"][int(v[0])]
        first = self.linear(name + ".first", v)
        return first + self.mlp(name + ".rest", first, activation)

    def tokenise(self, tokeniser, row, place):
        activation = self.c["embedder"].get("activation", self.c["activation"])
        own, tokens = self.c["embedder"]["x"], self.c["embedder"]["x"]["tokens"]
        cells = [np.array(tokeniser.cell(f, row[f], place)) for f in tokeniser.slots]
        g = self.t["embed.x.slot.bias"] + sum(
            w @ cell for w, cell in zip(self.t["embed.x.slot.weight"], cells)
        )
        if own.get("ridge"):
            g = g + self.t["embed.x.ridge.weight"] @ tokeniser.ridge_numbers(row, place)
        if own.get("logistic"):
            g = g + self.t["embed.x.logistic.weight"] @ tokeniser.logistic_numbers(row, place)
        out = self.linear("embed.x.out", ACTIVATIONS[activation](g))
        if tokens is None:
            return out
        h = list(self.t["embed.x.readout"])
        h += [
            self.mlp("embed.x.cell", cell, activation) + code
            for cell, code in zip(cells, self.t["embed.x.code"])
        ]
        for i in range(tokens["layers"]):
            h = [self.block(f"embed.x.block.{i}", token, h, tokens["heads"], True) for token in h]
        return out + self.linear("embed.x.pool", np.concatenate(h[: tokens["readouts"]]))


class Context:
    """Rows with their prefix; statistics from the first n0 rows, for good."""

    def __init__(self, net, x, y, prefix, kinds=None, classes=None, frozen=None):
        self.net, self.x, self.y, self.prefix, self.frozen = net, x, y, prefix, frozen
        if frozen is None:
            self.frozen = self.freeze(x, y, kinds, classes)

    def freeze(self, x, y, kinds, classes):
        c = self.net.c
        n0 = max(self.prefix, c["min_rows"])
        inputs, target = c["inputs"], c["target"]
        centers, scales = (
            [inputs.get(key, [d] * x.shape[1])[f] for f in range(x.shape[1])]
            for key, d in (("center", 0), ("scale", 1))
        )
        frozen = {"n0": n0, "classes": classes, "tokeniser": None}
        frozen["y"] = Scale(
            target["scaling"], y[:n0], target.get("center", 0), target.get("scale", 1), True
        )
        if "max_features" in inputs:
            given = [clip(frozen["y"](v), target.get("clip", 0)) for v in y[:n0]]
            frozen["tokeniser"] = Tokeniser(c, x[:n0], kinds, given, classes)
        else:
            frozen["x"] = [
                Scale(inputs["scaling"], x[:n0, f], centers[f], scales[f])
                for f in range(x.shape[1])
            ]
        return frozen

    def embed(self, row, target, place):
        """The token of row number `place` of the context, or of a query (None)."""
        net, c = self.net, self.net.c
        embedder, frozen = c["embedder"], self.frozen
        if frozen["tokeniser"]:
            own = net.tokenise(
                frozen["tokeniser"],
                row,
                place if place is not None and place < frozen["n0"] else None,
            )
        else:
            x = [clip(scale(v), c["inputs"].get("clip", 0)) for scale, v in zip(frozen["x"], row)]
        y = None if place is None else clip(frozen["y"](target), c["target"].get("clip", 0))
        if embedder["kind"] == "concat":
            flag = [] if not embedder["flag"] else [1.0 if y is None else 0.0]
            activation = embedder.get("activation", c["activation"])
            return net.mlp("embed.xy", np.array(x + [0.0 if y is None else y] + flag), activation)
        if not frozen["tokeniser"]:
            own = net.encode("embed.x", embedder["x"], np.array(x))
        if y is not None:
            own = own + net.encode("embed.y", embedder["y"], np.array([y]))
        later = place is not None and place >= self.prefix
        if embedder["roles"]:
            own = own + net.t["role"][0 if place is None else 2 if later else 1]
        if embedder["positions"] and later:
            own = own + net.t["pos"][place - self.prefix]
        return own

    def state(self, query):
        """What the head reads of a query."""
        net, c = self.net, self.net.c
        pre, heads = c["norm"]["placement"] == "pre", c["heads"]
        sinks = c["attention"].get("sinks", 0)
        rows = list(net.t["sinks"]) if sinks else []
        rows += [self.embed(row, y, i) for i, (row, y) in enumerate(zip(self.x, self.y))]
        asked, first = self.embed(query, None, None), sinks + self.prefix
        itself = 0 if c["chain"].get("mask") == "strict" else 1
        seen = [first if i < first else i + itself for i in range(len(rows))]
        for layer in range(c["layers"]):
            name = f"layer.{layer}" if c["architecture"] == "packed" else f"self.{layer}"
            after = [net.block(name, own, rows[:n], heads, pre) for own, n in zip(rows, seen)]
            if c["architecture"] == "packed":
                asked = net.block(name, asked, rows, heads, pre)
            else:
                asked = net.block(f"cross.{layer}", asked, after, heads, pre)
            rows = after
        return net.norm("final_norm", asked) if c["norm"]["final"] else asked

    def log_density(self, query, target):
        head = self.net.c["head"]
        out = self.net.mlp(
            "head", self.state(query), head.get("activation", self.net.c["activation"])
        )
        scale = self.frozen["y"]
        if head["kind"] == "classes":
            return self.log_probability(out, query, target)
        return DENSITIES[head["kind"]](head, out, scale(target), self.net.t) - math.log(scale.scale)

    def log_probability(self, out, query, target):
        classes, share = self.frozen["classes"], self.net.c["head"].get("logistic", 0)
        if share and classes > 1:
            said = np.array(self.frozen["tokeniser"].logistic_numbers(query, None))
            s = share * min(max(said[-1] / math.log(classes), 0), 1)
            out = (1 - s) * out + s * said[:-1]
        out = out[:classes]
        return out[int(target)] - math.log(np.sum(np.exp(out)))

    def chain(self, x, y):
        """Section 9: the log density of every row given those before it."""
        at, out, limit = self, [], self.net.c["chain"]["buffer"]
        for row, target in zip(x, y):
            out.append(at.log_density(row, target))
            longer = np.concatenate([at.x, row[None]]), np.append(at.y, target)
            prefix = len(longer[1]) if limit and len(longer[1]) - at.prefix == limit else at.prefix
            at = Context(at.net, *longer, prefix, frozen=at.frozen)
        return out


# ---- section 8: heads ----------------------------------------------------------------------------


def softplus(r):
    return np.maximum(r, 0) + np.log(1 + np.exp(-np.abs(r)))


def deviation(head, raw):
    floor = head.get("floor", 0)
    return {"sqrt-softplus": np.sqrt(softplus(raw)) + floor, "softplus": floor + softplus(raw)}[
        head["std"]
    ]


def normal(y, mean, sd):
    return np.exp(-0.5 * ((y - mean) / sd) ** 2) / sd / math.sqrt(2 * math.pi)


def mixture_density(head, out, y, _):
    logits, means, raw = np.split(out, 3)
    weights = np.exp(logits) / np.sum(np.exp(logits))
    return math.log(np.sum(weights * normal(y, means, deviation(head, raw))))


def bars_density(_, out, y, tensors):
    borders, mass = tensors["head.borders"], np.exp(out) / np.sum(np.exp(out))
    unit, last = NormalDist().inv_cdf(0.75), len(mass) - 1
    b = min(max(int(np.searchsorted(borders, y)) - 1, 0), last)
    width = borders[b + 1] - borders[b]
    if 0 < b < last:
        return math.log(mass[b] / width)
    inner = borders[1] if b == 0 else borders[last]
    return math.log(mass[b] * 2 * normal(y, inner, width / unit))


DENSITIES = {
    "gaussian": lambda head, out, y, _: math.log(normal(y, out[0], deviation(head, out[1]))),
    "mixture": mixture_density,
    "bars": bars_density,
}


# ---- five models ---------------------------------------------------------------------------------

COMMON = {"format": 1, "width": 12, "layers": 2, "heads": 2, "feedforward": 16}
STREAMS = {
    **COMMON,
    "architecture": "two-stream",
    "context": "causal",
    "chain": {"buffer": None},
    "min_rows": 2,
    "inputs": {
        "features": 2,
        "scaling": "fixed",
        "center": [1.0, -2.0],
        "scale": [0.5, 4.0],
        "clip": 1.5,
    },
    "target": {"scaling": "fixed", "center": 10, "scale": 3},
    "activation": "relu",
    "norm": {"kind": "layer", "placement": "pre", "eps": 1e-5, "final": True},
    "attention": {"bias": "output"},
    "embedder": {"kind": "concat", "hidden": [9, 8], "flag": True, "activation": "gelu"},
    "head": {"kind": "gaussian", "hidden": [7], "std": "sqrt-softplus", "floor": 0.05},
}
BUFFER = {
    **COMMON,
    "architecture": "packed",
    "context": "full",
    "chain": {"buffer": 3, "mask": "strict"},
    "min_rows": 2,
    "inputs": {"features": 1, "scaling": "prefix"},
    "target": {"scaling": "prefix", "clip": 1},
    "activation": "gelu-tanh",
    "norm": {"kind": "rms", "placement": "post", "eps": 1e-3, "final": False},
    "attention": {"bias": "all", "sinks": 2, "log_scale": True},
    "embedder": {
        "kind": "additive",
        "x": {"kind": "skip-mlp", "hidden": [10]},
        "y": {"kind": "mlp", "hidden": []},
        "roles": True,
        "positions": 2,
    },
    "head": {"kind": "bars", "hidden": [], "buckets": 6, "tails": "half-normal"},
}
TABLE = {
    **COMMON,
    "architecture": "packed",
    "context": "prefix-causal",
    "chain": {"buffer": None},
    "min_rows": 4,
    "inputs": {"max_features": 40, "scaling": "prefix", "clip": 2},
    "target": {"scaling": "prefix", "clip": 2},
    "activation": "gelu",
    "norm": {"kind": "rms", "placement": "pre", "eps": 1e-6, "final": True},
    "attention": {"bias": "none", "sinks": 1, "log_scale": True},
    "embedder": {
        "kind": "additive",
        "y": {"kind": "linear"},
        "roles": False,
        "positions": 0,
        "x": {
            "kind": "rows",
            "hidden": 14,
            "ridge": True,
            "prune": True,
            "tokens": {"width": 8, "layers": 2, "heads": 2, "feedforward": 10, "readouts": 2},
        },
    },
    "head": {"kind": "mixture", "hidden": [9], "components": 3, "std": "softplus", "floor": 0.01},
}
CLASSES = {
    **TABLE,
    "target": {"scaling": "classes"},
    "min_rows": 6,
    "embedder": {
        "kind": "additive",
        "y": {"kind": "classes"},
        "roles": True,
        "positions": 0,
        "x": {"kind": "rows", "hidden": 14, "tokens": None, "logistic": True},
    },
    "head": {"kind": "classes", "hidden": [9], "classes": 5, "logistic": 0.6},
}


WIDE = json.loads(json.dumps(TABLE))
WIDE["embedder"]["x"].update(prune=False, tokens=None)


def shapes(c):
    """Section 12: every tensor's name and shape."""
    d, embedder, attention = c["width"], c["embedder"], c["attention"]
    out = {}

    def linear(name, n, m, bias=True):
        out[name + ".weight"] = (m, n)
        if bias:
            out[name + ".bias"] = (m,)

    def mlp(name, *sizes):
        for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
            linear(f"{name}.{i}", n, m)

    def norm(name, n):
        out[name + ".weight"] = (n,)
        if c["norm"]["kind"] == "layer":
            out[name + ".bias"] = (n,)

    def layer(name, n, ff, log_scale):
        for part in "qkv":
            linear(f"{name}.attn.{part}", n, n, attention["bias"] == "all")
        linear(name + ".attn.o", n, n, attention["bias"] != "none")
        if log_scale:
            out[name + ".attn.log_scale"] = (c["heads"], 2)
        mlp(name + ".ff", n, ff, n)
        norm(name + ".norm1", n)
        norm(name + ".norm2", n)

    def encoder(name, e, n):
        if e["kind"] == "linear":
            linear(name, n, d)
        elif e["kind"] == "mlp":
            mlp(name, n, *e["hidden"], d)
        elif e["kind"] == "skip-mlp":
            linear(name + ".first", n, d)
            mlp(name + ".rest", d, *e["hidden"], d)
        elif e["kind"] == "classes":
            out[name + ".weight"] = (c["head"]["classes"], d)
        else:
            rows(e)

    def rows(e):
        room, slots, h = c["head"].get("classes", 0), c["inputs"]["max_features"], e["hidden"]
        out["embed.x.slot.weight"], out["embed.x.slot.bias"] = (slots, h, 8 + room), (h,)
        if e.get("ridge"):
            out["embed.x.ridge.weight"] = (h, 2 * (room + 2) if room else 6)
        if e.get("logistic"):
            out["embed.x.logistic.weight"] = (h, room + 1)
        linear("embed.x.out", h, d)
        if e["tokens"]:
            size, n = e["tokens"]["width"], e["tokens"]["readouts"]
            mlp("embed.x.cell", 8 + room, 2 * size, size)
            out["embed.x.code"], out["embed.x.readout"] = (slots, size), (n, size)
            for i in range(e["tokens"]["layers"]):
                layer(f"embed.x.block.{i}", size, e["tokens"]["feedforward"], False)
            linear("embed.x.pool", n * size, d)

    if embedder["kind"] == "concat":
        mlp("embed.xy", c["inputs"]["features"] + 1 + embedder["flag"], *embedder["hidden"], d)
    else:
        encoder("embed.x", embedder["x"], c["inputs"].get("features"))
        encoder("embed.y", embedder["y"], 1)
        if embedder["roles"]:
            out["role"] = (3, d)
        if embedder["positions"]:
            out["pos"] = (embedder["positions"], d)
    if attention.get("sinks"):
        out["sinks"] = (attention["sinks"], d)
    for i in range(c["layers"]):
        for stack in ["layer"] if c["architecture"] == "packed" else ["self", "cross"]:
            layer(f"{stack}.{i}", d, c["feedforward"], attention.get("log_scale"))
    if c["norm"]["final"]:
        norm("final_norm", d)
    head = c["head"]
    mlp(
        "head",
        d,
        *head["hidden"],
        {"gaussian": 2, "mixture": 3 * head.get("components", 0)}.get(
            head["kind"], head.get("buckets", head.get("classes"))
        ),
    )
    if head["kind"] == "bars":
        out["head.borders"] = (head["buckets"] + 1,)
    return out


def weights(c, random):
    made = {}
    for name, shape in shapes(c).items():
        size = 1.5 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.2
        made[name] = size * random.standard_normal(shape) + (
            1 if "norm" in name and name.endswith("weight") else 0
        )
    if "head.borders" in made:
        made["head.borders"] = np.linspace(-1.5, 1.5, c["head"]["buckets"] + 1)
    return made


def rows_for(c, n, random):
    """(x, y, which columns are categorical) of n rows."""
    if "features" in c["inputs"]:
        x = random.uniform(-2, 2, (n, c["inputs"]["features"]))
        return x, 10 + 3 * np.sin(2 * x[:, 0]) + random.standard_normal(n), None
    wide = not (c["embedder"]["x"].get("prune") or c["head"]["kind"] == "classes")
    columns = 36 if wide else 12
    x = random.standard_normal((n, columns))
    if wide:
        # so that slots take four or five entries of a design
        x[::3, ::6] = math.nan
    labels = [identity(label) for label in ("red", "green", "blue", "")]
    x[:, 4] = random.choice(labels, n)
    x[:, 7] = np.round(2 * x[:, 7])
    x[random.uniform(size=n) < 0.2, 2] = math.nan
    x[random.uniform(size=n) < 0.2, 4] = math.nan
    known = np.nan_to_num(x)
    y = (
        2 * known[:, 0]
        + np.abs(known[:, 1])
        + (x[:, 4] == labels[0])
        + 0.3 * random.standard_normal(n)
    )
    if c["head"]["kind"] == "classes":
        y = np.digitize(y, [-1.0, 1.5]).astype(float)
    return x, y, [f == 4 for f in range(columns)]


def compare(tap, tool, net, name, n, prefix, chain, random):
    """Some rows each alone, and a chain of rows, given n rows of which some are the prefix."""
    x, y, kinds = rows_for(net.c, n + chain, random)
    classes = 3 if net.c["head"]["kind"] == "classes" else None
    context = Context(net, x[:n], y[:n], prefix, kinds, classes)
    common = {"kernels": "cpu", "context": table(x[:n], y[:n]), "prefix": prefix}
    if kinds:
        common["kinds"] = ["categorical" if k else "numeric" for k in kinds]
    if classes:
        common["classes"] = classes
    said = tool.ask(**common, score=table(x[n:], y[n:]))
    bad = close(said.get("per_row", []), context.chain(x[n:], y[n:]), TOLERANCE)
    tap.ok(bad is None, f"{name}: a chain of {chain} rows given {n}, prefix {prefix}", bad, said)
    alone = [
        tool.ask(**common, score=table(x[i : i + 1], y[i : i + 1])).get("log_density")
        for i in (n, n + 1)
    ]
    bad = close(alone, [context.log_density(x[i], y[i]) for i in (n, n + 1)], TOLERANCE)
    tap.ok(bad is None, f"{name}: single rows given {n}, prefix {prefix}", bad)


def canonical(c, n):
    """Section 10."""
    if c["context"] == "causal":
        return 0
    if c["context"] == "full" and c["chain"]["buffer"]:
        return c["min_rows"] + c["chain"]["buffer"] * ((n - c["min_rows"]) // c["chain"]["buffer"])
    return 2 ** int(math.log2(n)) if n else 0


def compare_evidence(tap, tool, net, name, random):
    x, y, kinds = rows_for(net.c, 12, random)
    first = net.c["min_rows"]
    if net.c["head"]["kind"] == "classes":
        return
    common = {"kinds": ["categorical" if k else "numeric" for k in kinds]} if kinds else {}
    said = tool.ask(kernels="cpu", evidence=table(x, y), **common)
    wanted = [math.nan] * first
    wanted += [
        Context(net, x[:i], y[:i], canonical(net.c, i), kinds).log_density(x[i], y[i])
        for i in range(first, 12)
    ]
    bad = close(said.get("evidence_per_row", []), wanted, TOLERANCE)
    tap.ok(bad is None, f"{name}: rows in their order", bad, said)


def main():
    options = arguments(__doc__.split("\n\n")[0])
    tap = Tap()
    models = {
        "two streams": (STREAMS, 0),
        "buffer": (BUFFER, 2),
        "table": (TABLE, 3),
        "wide table": (WIDE, 3),
        "classes": (CLASSES, 3),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (config, later) in models.items():
            random = np.random.RandomState(len(name))
            net = Net(config, weights(config, random))
            path = os.path.join(folder, "model.safetensors")
            export(path, config, net.t)
            with Tool(options.tool, path) as tool:
                for n in (8, 40):
                    prefix = 0 if config["context"] == "causal" else n - later
                    compare(tap, tool, net, name, n, prefix, 5, random)
                compare_evidence(tap, tool, net, name, random)
    tap.done()


if __name__ == "__main__":
    main()
