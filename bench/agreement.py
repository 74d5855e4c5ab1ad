"""Hold what the benchmarks' sides say against the float64 reference (test/reference). Reads one
JSON object, prints what does not agree; status 1 then.

    {"path": model, "steps": [...], "n": rows, "period": number,
     "claims": [{"who", "operation", "size", "values", "narrow": 16 bits, "free": draws from random
     numbers of its own}, ...]}

The context is encoded once, row by row as distinct ones: rows repeat after `period` of them, so
that 10,000 take seconds. Everything else is test/reference's: its embedder, its blocks with masks,
its heads and its random numbers. A joint question is many chains beside the context, each of which
sees the context and itself.

SPDX-License-Identifier: PostgreSQL
"""
import json
import math
import os
import sys

import numpy as np

sys.path.insert(0,
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "reference"))
from heads import NORMAL, distribution
from layers import block, norm
from random_numbers import permutation, value_uniforms
from reference import Model, build
from trunk import embed_features, encode, head_outputs

STEPS = 16
TOGETHER = 16           # chains
ROWS = 256              # at a time through a block
DRAWS = 16              # of a claim that are looked at, the first and the last among them
OWN_DRAWS = 64  # the same, where random numbers are its own, so that only many draws say something
MOMENTS, LOG_DENSITY, DRAW, CHANCE = 1e-4, 1e-3, 1e-3, 1e-5
NARROW = 0.03  # 16 bits: standard deviations (docs/decisions/arithmetic.md), and nats per row
NARROW_CHANCE = 0.01
# Kolmogorov's statistic times the root of the number, which chance exceeds once in ten thousand
OWN_RANDOM = 2.2


class Context:
    """Encoded rows, and what is asked beside them."""

    def __init__(self, model, x, y, distinct):
        """Rows x, y, of which the first `distinct` repeat."""
        config = model.config
        chain = config["chain"]
        assert config["architecture"] == "packed" and config["context"] == "prefix-causal"
        assert chain["mask"] == "inclusive" and chain["buffer"] is None
        assert not config["embedder"].get("roles") and not config["embedder"].get("positions")
        self.model, self.statistics = model, build(model, x, y, len(x)).statistics
        sinks = config["attention"].get("sinks", 0)
        h = self.rows(x[:distinct], y[:distinct], y[:distinct])
        if sinks:
            h = np.concatenate([model.tensors["sinks"], h])
        place = np.concatenate([np.arange(sinks), sinks + np.arange(len(x)) % distinct])
        self.states = []
        for i in range(config["layers"]):
            self.states.append(h[place])
            h = self.block(i, h, self.states[i])

    def rows(self, x, y, prefix_y):
        return embed_features(self.model, self.statistics, x, prefix_y) + encode(
            self.model, "embed.y", self.model.config["embedder"]["y"],
            self.statistics.scaling.target(y).reshape(-1, 1))

    def block(self, i, h, source, visible=None):
        config = self.model.config
        return np.concatenate([
            block(self.model.tensors, f"layer.{i}", config, config["heads"], h[at:at + ROWS],
                  source, None if visible is None else visible[at:at + ROWS])
            for at in range(0, len(h), ROWS)
        ])

    def ask(self, x, y, queries, seen):
        """Chains of rows x [c, r, F], y [c, r]; queries [c, q, F], of which number j sees the first
        seen[j] rows of its chain. Distributions [c][q]."""
        out = []
        for at in range(0, len(queries), TOGETHER):
            out += self.ask_together(x[at:at + TOGETHER], y[at:at + TOGETHER],
                                     queries[at:at + TOGETHER], np.asarray(seen))
        return out

    def ask_together(self, x, y, queries, seen):
        model, config, scaling = self.model, self.model.config, self.statistics.scaling
        (chains, length), asked = y.shape, len(seen)
        features, stored = queries.shape[2], chains * length
        h = embed_features(model, self.statistics, queries.reshape(-1, features),
                           y[:0, 0] if length else y.ravel())
        if length:
            h = np.concatenate([self.rows(x.reshape(-1, features), y.ravel(), y[:0, 0]), h])
        owner = np.concatenate(
            [np.repeat(np.arange(chains), length),
             np.repeat(np.arange(chains), asked)])
        sees = np.concatenate([np.tile(np.arange(length) + 1, chains), np.tile(seen, chains)])
        place = np.tile(np.arange(length), chains)
        own = (owner[:, None] == owner[None, :stored]) & (place[None, :] < sees[:, None])
        visible = np.concatenate([np.ones((len(h), len(self.states[0])), dtype=bool), own], axis=1)
        for i, context in enumerate(self.states):
            h = self.block(i, h, np.concatenate([context, h[:stored]]), visible)
        h = h[stored:]
        if config["norm"]["final"]:
            h = norm(model.tensors, "final_norm", config, h)
        answers = [
            distribution(config["head"], raw, None, scaling.y_center, scaling.y_scale)
            for raw in head_outputs(model, h)
        ]
        return [answers[c * asked:(c + 1) * asked] for c in range(chains)]

    def after(self, x, y, queries):
        """What all queries say once rows x, y are appended."""
        return self.ask(x[None], y[None], queries[None], [len(y)] * len(queries))[0]

    def steps(self, x, y):
        """x [c, m, F], y [c, m]: distributions [c][m] of each row given those of its chain before
        it."""
        return self.ask(x[:, :-1], y[:, :-1], x, range(x.shape[1]))


class Referee:
    """Answers of the reference to each operation, computed once for all sides."""

    def __init__(self, path, steps, n, period):
        total = 2 * n + 2 * STEPS
        place = (np.arange(total) % period + 1)[:, None] * np.array(steps)
        self.x = -2 + 4 * (place - np.floor(place))
        self.y = np.sin(3 * self.x[:, 0]) + 0.1 * np.cos(57 * self.x[:, -1])
        self.model, self.n = Model.open(path), n
        self.context = Context(self.model, self.x[:n], self.y[:n], min(n, period))
        self.said = {}

    def next(self, rows):
        return self.x[self.n:self.n + rows], self.y[self.n:self.n + rows]

    def once(self, key, make):
        if key not in self.said:
            self.said[key] = make()
        return self.said[key]

    def moments(self, operation, size):
        """Distributions that are told by mean and standard deviation."""
        x, y = self.next(size + STEPS)
        nothing = x[:0], y[:0]
        if operation == "append":
            return self.context.after(x[:size], y[:size], x[size:])
        return self.context.after(*nothing, x[:size if operation == "predict" else STEPS])

    def density(self, orders):
        x, y = self.next(STEPS)
        places = np.array([permutation(1, order, STEPS)
                           for order in range(orders)]) if orders > 1 else np.arange(STEPS)[None]
        logs = np.array([
            sum(d.log_pdf(v) for d, v in zip(chain, values))
            for chain, values in zip(self.context.steps(x[places], y[places]), y[places])
        ])
        return logs.max() + math.log(np.mean(np.exp(logs - logs.max())))

    def conditionals(self, drawn):
        """Distributions that each value was drawn from, given those drawn before it."""
        return self.context.steps(np.repeat(self.next(STEPS)[0][None], len(drawn), axis=0), drawn)

    def last_step(self, drawn):
        """The same of the last value, where every step encodes context and drawn rows anew."""
        n = self.n + STEPS - 1
        anew = Context(self.model, self.x[:n], np.concatenate([self.y[:self.n], drawn[:-1]]), n)
        return anew.after(self.x[:0], self.y[:0], self.x[n:n + 1])[0]

    # ---- what is wrong with a claim, or None

    def check(self, claim):
        values, narrow = np.array(claim["values"], dtype=float), claim.get("narrow", False)
        operation, size = claim["operation"], claim["size"]
        if operation in ("predict", "append", "build"):
            return self.check_moments(
                values.reshape(-1, 2),
                self.once((operation, size), lambda: self.moments(operation, size)), narrow)
        if operation == "density":
            wanted = self.once((operation, size), lambda: self.density(size))
            off, most = abs(values[0] - wanted), STEPS * (NARROW if narrow else LOG_DENSITY)
            if len(values) == 1 and off <= most:
                return None
            return f"log density {values[0]:.9g} instead of {wanted:.9g}, more than {most:g} off"
        drawn = values.reshape(-1, STEPS)
        most = min(OWN_DRAWS if claim.get("free") else DRAWS, len(drawn))
        which = sorted({round(b) for b in np.linspace(0, len(drawn) - 1, most)})
        if operation == "again":
            given = [{0: d[0], STEPS - 1: self.last_step(drawn[0])}
                     for d in self.conditionals(drawn[:1])]
        else:
            given = self.once((operation, drawn[which].tobytes()),
                              lambda: [dict(enumerate(d)) for d in self.conditionals(drawn[which])])
        if claim.get("free"):
            return self.check_own_random(
                [below(d, drawn[b, k]) for b, steps in zip(which, given) for k, d in steps.items()])
        wrong = [
            bad for b, steps in zip(which, given) for k, d in steps.items()
            if (bad := self.check_draw(d, drawn[b, k], b, k, narrow))
        ]
        return f"{len(drawn)} draws instead of {size}" if len(drawn) != size else "; ".join(
            wrong[:2]) or None

    @staticmethod
    def check_moments(values, wanted, narrow):
        if len(values) != len(wanted):
            return f"{len(values)} predictions instead of {len(wanted)}"
        sds = np.array([d.sd() for d in wanted])
        off = np.abs(values - np.stack([[d.mean() for d in wanted], sds], axis=1))
        off /= NARROW * sds[:, None] if narrow else MOMENTS
        if np.all(off <= 1):
            return None
        i = int(np.argmax(np.where(np.isnan(off), np.inf, off).max(axis=1)))
        expected = [float(wanted[i].mean()), float(sds[i])]
        return f"mean and standard deviation of query {i} are {values[i]} instead of {expected}"

    @staticmethod
    def check_draw(d, value, b, k, narrow):
        """A draw that is where the reference's is, or would be were the number that chooses the
        component a little more or less."""
        u, v = value_uniforms(1, b, k)
        chance, most = (NARROW_CHANCE, NARROW * d.sd()) if narrow else (CHANCE, DRAW)
        if any(abs(d.draw(w, v) - value) <= most for w in (u, u - chance, u + chance)):
            return None
        return f"step {k} of draw {b} is {value:.9g} instead of {d.draw(u, v):.9g}"

    @staticmethod
    def check_own_random(places):
        """Places of draws in their distributions are spread evenly."""
        places, n = np.sort(places), len(places)
        most = max(np.max(np.arange(1, n + 1) / n - places), np.max(places - np.arange(n) / n))
        if most * math.sqrt(n) <= OWN_RANDOM:
            return None
        return f"draws are off their distributions by {most:.3g}"


def below(d, y):
    """The chance of less than y under a mixture."""
    return float(sum(w * NORMAL.cdf((y - m) / s) for w, m, s in zip(d.weights, d.means, d.sds)))


def main():
    asked = json.load(sys.stdin)
    referee = Referee(asked["path"], asked["steps"], asked["n"], asked["period"])
    found = False
    for claim in asked["claims"]:
        wrong = referee.check(claim)
        if wrong:
            found = True
            print(
                f"{claim['who']}, {claim['operation']} {claim['size']}, N = {asked['n']}: {wrong}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
