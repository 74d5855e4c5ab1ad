"""Contexts that are sums over rows (docs/sums.md) in float64, from rows: nothing is kept, added up
or taken away here.

SPDX-License-Identifier: PostgreSQL
"""
import itertools
import math

import numpy as np

from directions import REACH, Directions, regressed, squashed, waves
from heads import NORMAL, Mixture
from random_numbers import MASK, permutation, uniforms

UNIT, TARGET = 8191, 2.0 ** 28


def moments(values):
    """Mean and standard deviation of those that are there."""
    known = values[~np.isnan(values)]
    if len(known) == 0 or not np.any(known):
        return 0.0, 0.0
    unit = np.max(np.abs(known))
    mean = unit * np.mean(known / unit)
    return mean, unit * math.sqrt(np.mean((known / unit - mean / unit) ** 2))


def scale_of(mean, sd):
    scale = max(sd, 1e-12 * abs(mean))
    return scale if scale >= 1e-290 else 1.0


def scaling_of(how, values, fixed):
    mean, sd = moments(values) if how == "prefix" else fixed if how == "fixed" else (0.0, 1.0)
    return mean, scale_of(mean, sd)


class Basis:
    """What is learnt of a sample of rows."""

    def __init__(self, config, kinds, x, y):
        self.config, self.kinds = config, kinds
        inputs, target = config["inputs"], config["target"]
        self.center, self.scale = scaling_of(target["scaling"], y,
                                             (target.get("center"), target.get("scale")))
        if target["scaling"] == "prefix" and np.all(y == y[:1]):
            self.scale = scale_of(self.center, abs(self.center))
        self.columns = []
        for f, kind in enumerate(kinds):
            if kind == "categorical":
                cells, counts = np.unique(x[~np.isnan(x[:, f]), f], return_counts=True)
                frequent = sorted(zip(-counts, cells))[:config["levels"]]
                self.columns.append(sorted(cell for _, cell in frequent))
            else:
                fixed = ((inputs["center"][f], inputs["scale"][f]) if inputs["scaling"] == "fixed"
                         else None)
                self.columns.append(scaling_of(inputs["scaling"], x[:, f], fixed))
        self.pairs = self.choose(x, y)
        self.directions = []
        if config.get("directions"):
            self.directions = self.direct(x, y)

    def squash(self, f, values, size=1):
        center, scale = self.columns[f]
        return squashed((values - center) / (size * scale))

    def scores(self, x):
        """Standard scores [n, numeric columns], squashed at twice the size; 0 where missing."""
        return np.nan_to_num(
            np.stack([2 * self.squash(f, x[:, f], 2) for f, kind in enumerate(self.kinds)
                      if kind == "numeric"], axis=1))

    def parts(self, f, values):
        z = self.squash(f, values)
        return np.concatenate([z[:, None] / REACH, waves(z, self.config["pair_waves"])], axis=1)

    def choose(self, x, y):
        """The pairs of columns whose products say most about what columns alone leave."""
        numeric = [f for f, kind in enumerate(self.kinds) if kind == "numeric"]
        if len(numeric) < 2 or self.config["pairs"] == 0:
            return []
        if len(x) > 4096:
            chosen = np.arange(4096) * len(x) // 4096
            x, y = x[chosen], y[chosen]
        u = (y - self.center) / self.scale
        design = [np.ones((len(x), 1))]
        for f in numeric:
            z = self.squash(f, x[:, f])
            design.append(np.nan_to_num(np.concatenate([z[:, None] / REACH, waves(z, 4)], axis=1)))
        design = np.concatenate(design, axis=1)
        weights = np.linalg.solve(design.T @ design + 0.1 * np.eye(design.shape[1]), design.T @ u)
        rest = u - design @ weights
        scores = []
        for i, j in itertools.combinations(numeric, 2):
            products = np.nan_to_num(self.parts(i, x[:, i])[:, :, None]
                                     * self.parts(j, x[:, j])[:, None, :]).reshape(len(x), -1)
            products = products - products.mean(axis=0)
            score = ((products.T @ (rest - rest.mean())) ** 2
                     / ((products ** 2).sum(axis=0) * (rest @ rest) + 1e-12))
            scores.append((-score.max(), i, j))
        return sorted((i, j) for _, i, j in sorted(scores)[:self.config["pairs"]])

    def direct(self, x, y):
        """Directions of at most 4,096 rows at even distances."""
        if "numeric" not in self.kinds:
            return []
        chosen = np.arange(4096) * len(x) // 4096 if len(x) > 4096 else np.arange(len(x))
        room = (1024 - self.features(x[:1])[0].shape[1]) // (1 + self.config["waves"])
        return Directions(self.scores(x[chosen]), (y[chosen] - self.center) / self.scale,
                          self.config["directions"], room).found

    def category(self, f, cells):
        out = np.zeros((len(cells), self.config["levels"] + self.config["buckets"]))
        for row, cell in enumerate(cells):
            if np.isnan(cell):
                continue
            if cell in self.columns[f]:
                out[row, self.columns[f].index(cell)] = 1
            else:
                hashed = int(cell) * 0x9E3779B97F4A7C15 % 2 ** 64 >> 32
                out[row, self.config["levels"] + hashed % self.config["buckets"]] = 1
        return out

    def features(self, x):
        """(features [n, r], groups [r], squared frequencies [r])."""
        x = np.asarray(x, dtype=float)
        parts, groups, squares, group = [np.ones((len(x), 1))], [0], [0], 3
        for f, kind in enumerate(self.kinds):
            parts.append(np.isnan(x[:, f:f + 1]).astype(float))
            groups, squares = groups + [2], squares + [0]
            if kind == "categorical":
                cells = self.category(f, x[:, f])
                squares += [0] * cells.shape[1]
            else:
                z = self.squash(f, x[:, f])
                cells = waves(z, self.config["waves"])
                squares += ([0] * self.config["linear"]
                            + [k * k for k in range(1, self.config["waves"] + 1)])
                if self.config["linear"]:
                    parts.append(z[:, None] / REACH)
                    groups = groups + [1]
            parts.append(cells)
            groups, group = groups + [group] * cells.shape[1], group + 1
        for i, j in self.pairs:
            products = (self.parts(i, x[:, i])[:, :, None]
                        * self.parts(j, x[:, j])[:, None, :]).reshape(len(x), -1)
            parts.append(products)
            groups, group = groups + [group] * products.shape[1], group + 1
            most = range(self.config["pair_waves"] + 1)
            squares += [a * a + b * b for a in most for b in most]
        for weights in self.directions:
            z = squashed(self.scores(x) @ weights)
            parts.append(np.concatenate([z[:, None] / REACH, waves(z, self.config["waves"])],
                                        axis=1))
            groups, group = groups + [group] * (1 + self.config["waves"]), group + 1
            squares += [k * k for k in range(self.config["waves"] + 1)]
        phi = np.nan_to_num(np.concatenate(parts, axis=1))
        return (np.clip(np.rint(phi * UNIT), -UNIT, UNIT)
                / UNIT, np.array(groups), np.array(squares, dtype=float))

    def target(self, y):
        return np.rint((np.asarray(y) - self.center) / self.scale * TARGET) / TARGET


class Setting:
    """Precisions found at the first rows, and the regression of any rows under them."""

    def __init__(self, config, length, groups, squares, phi, y, start):
        step = (math.pi / (2 * REACH)) ** 2
        w2 = squares * step * length ** 2
        density = ((1 + w2 / 5) ** 3 if config["profile"] == "matern"
                   else np.exp(np.minimum(w2 / 2, 100)))
        self.profile = np.minimum(np.where(squares > 0, density / length, 1.0), 1e12)
        self.config, self.groups = config, groups
        self.group = np.array(start, dtype=float)
        count = max(groups) + 1
        for _ in range(config["steps"] if length == config["lengths"][0]
                       else (config["steps"] + 1) // 2):
            inverse, mean, _, rest = self.regress(phi, y)
            scale = (config["noise_shape"] + len(y) / 2) / (config["noise_rate"] + rest / 2)
            trace = np.bincount(groups, self.profile * np.diag(inverse), count)
            size = np.bincount(groups, self.profile * mean ** 2 * scale, count)
            determined = np.maximum(np.bincount(groups, minlength=count) - self.group * trace, 0)
            fresh = (determined + 2 * config["prior_shape"]) / (size + 2 * config["prior_rate"])
            self.group[1:] = np.clip(fresh, 1e-4, 1e7)[1:]
        _, _, self.determinant, self.rest = self.regress(phi, y)
        shape, rate = config["noise_shape"] + len(y) / 2, config["noise_rate"] + self.rest / 2
        self.evidence = (-self.determinant - shape * math.log(rate)
                         + 0.5 * np.sum(np.log(self.precision)))
        if config["steps"]:
            self.evidence += np.sum(config["prior_shape"] * np.log(self.group[1:])
                                    - config["prior_rate"] * self.group[1:])
        z = np.array(
            [NORMAL.inv_cdf((q + 0.5) / config["points"]) for q in range(config["points"])])
        roots = np.maximum(1 - 1 / (9 * shape) + z * math.sqrt(1 / (9 * shape)), 0.1)
        variance = roots ** -3.0
        want = shape / (shape - 1) if shape > 1 else 1
        self.noise = np.sqrt(variance / variance.mean() * want * rate / shape)

    @property
    def precision(self):
        return self.group[self.groups] * self.profile

    def regress(self, phi, y):
        """(inverse of A, mean, half its log determinant, what is left of y'y)."""
        gram = phi.T @ phi
        a = gram + np.diag(np.diag(gram)) * 2.0 ** -40 + np.diag(self.precision)
        inverse = np.linalg.inv(a)
        mean = np.linalg.solve(a, phi.T @ y)
        rest = max(y @ y - mean @ (phi.T @ y), 1e-12 * (1 + len(y)))
        return inverse, mean, 0.5 * np.linalg.slogdet(a)[1], rest


class SumsEncoding:
    """A context, with the verbs of reference.Encoding."""

    def __init__(self, model, x, y, prefix, statistics):
        self.model, self.x, self.y, self.prefix, self.statistics = model, x, y, prefix, statistics
        basis = statistics.basis
        phi, target = basis.features(x)[0], basis.target(y)
        self.answers, logs = [], []
        for setting in statistics.settings:
            inverse, mean, determinant, rest = setting.regress(phi, target)
            self.answers.append((inverse, mean, setting.noise))
            for noise in setting.noise:
                logs.append(setting.evidence - (len(y) - statistics.n) * math.log(noise)
                            - (determinant - setting.determinant) - (rest - setting.rest)
                            / (2 * noise ** 2))
        self.weights = np.exp(np.array(logs) - max(logs))
        self.weights /= self.weights.sum()

    def predict(self, queries):
        basis, out = self.statistics.basis, []
        for phi in basis.features(queries)[0]:
            means = np.repeat([phi @ mean for _, mean, _ in self.answers], len(self.answers[0][2]))
            sds = np.concatenate(
                [noise * math.sqrt(1 + phi @ inverse @ phi) for inverse, _, noise in self.answers])
            out.append(Mixture(self.weights, basis.center + basis.scale * means, basis.scale * sds))
        return out

    def append(self, x, y):
        return SumsEncoding(self.model, np.concatenate([self.x, x]), np.concatenate([self.y, y]),
                            self.prefix, self.statistics)

    def step(self, x, y):
        return self.append(np.reshape(x, (1, -1)), np.reshape(y, 1))

    def conditionals(self, x, y):
        at, out = self, []
        for i, (row, target) in enumerate(zip(x, y)):
            at = at.step(x[i - 1], y[i - 1]) if i > 0 else at
            out.append(at.predict([row])[0].log_pdf(target))
        return np.array(out)

    def score(self, x, y, orders=0, seed=0):
        logs = [np.sum(self.conditionals(x[places], y[places]))
                for places in ([np.arange(len(y))] if orders == 0
                               else [permutation(seed, order, len(y)) for order in range(orders)])]
        return max(logs) + math.log(np.mean(np.exp(np.array(logs) - max(logs))))

    def sample(self, queries, seed, draws, first=0):
        """Joint draws: a setting and its noise, then weights, then targets."""
        basis, out = self.statistics.basis, []
        phi = basis.features(queries)[0]
        for draw in range(first, first + draws):
            number = draw & MASK, draw >> 32 & MASK
            u = uniforms(seed, (*number, 0, 3))[0]
            above = np.nonzero(np.cumsum(self.weights) > u)[0]
            choice = above[0] if len(above) else len(self.weights) - 1
            inverse, mean, noise = self.answers[choice // len(self.answers[0][2])]
            noise = noise[choice % len(noise)]
            z = np.array(
                [NORMAL.inv_cdf(uniforms(seed, (*number, i, 2))[1]) for i in range(len(mean))])
            factor = np.linalg.cholesky(np.linalg.inv(inverse))
            weights = mean + noise * np.linalg.solve(factor.T, z)
            e = np.array(
                [NORMAL.inv_cdf(uniforms(seed, (*number, i, 0))[1]) for i in range(len(phi))])
            out.append(basis.center + basis.scale * (phi @ weights + noise * e))
        return np.array(out)


def statistics_of(config, kinds, x, y):
    """(basis, settings) of the rows that they are of."""
    basis = Basis(config, kinds, x, y)
    phi, groups, squares = basis.features(x)
    start = [0.01] + [config["start"]] * max(groups)
    start += [config["start"]] * (3 - len(start))
    settings = []
    for length in config["lengths"]:
        settings.append(Setting(config, length, groups, squares, phi, basis.target(y), start))
        start = settings[-1].group
    return basis, settings
