"""Predictive distributions (docs/model-format.md section 8) and draws from them (section 11), in
original units.

SPDX-License-Identifier: PostgreSQL
"""
import math
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist()
TAIL = NORMAL.inv_cdf(0.75)


def softplus(r):
    return np.maximum(r, 0) + np.log1p(np.exp(-np.abs(r)))


def standard_deviation(head, raw):
    floor = head.get("floor", 0)
    return {
        "exp": lambda: np.exp(raw),
        "bounded": lambda: 0.05 + 0.95 * softplus(raw),
        "softplus": lambda: floor + softplus(raw),
        "softplus-complement": lambda: floor + (1 - floor) * softplus(raw),
        "sqrt-softplus": lambda: np.sqrt(softplus(raw)) + floor,
    }[head["std"]]()


def softmax(logits):
    e = np.exp(logits - logits.max())
    return e / e.sum()


class Mixture:
    """A mixture of normals; a Gaussian head is one component."""

    def __init__(self, weights, means, sds):
        self.weights, self.means, self.sds = weights, means, sds

    @property
    def params(self):
        return np.concatenate([self.weights, self.means, self.sds] if len(self.weights) > 1
                              else [self.means, self.sds])

    def mean(self):
        return np.sum(self.weights * self.means)

    def sd(self):
        return math.sqrt(np.sum(self.weights * (self.sds ** 2 + (self.means - self.mean()) ** 2)))

    def log_pdf(self, y):
        with np.errstate(divide="ignore"):
            parts = (np.log(self.weights) - 0.5 * ((y - self.means) / self.sds) ** 2
                     - np.log(self.sds) - 0.5 * math.log(2 * math.pi))
        return parts.max() + math.log(np.sum(np.exp(parts - parts.max())))

    def draw(self, u1, u2):
        above = np.nonzero(np.cumsum(self.weights) > u1)[0]
        c = above[0] if len(above) else len(self.weights) - 1
        return self.means[c] + self.sds[c] * NORMAL.inv_cdf(u2)


class Bars:
    """Masses [B] between borders [B + 1]; with half_normal the outer buckets are half-normals."""

    def __init__(self, masses, borders, half_normal):
        self.masses, self.borders, self.half_normal = masses, borders, half_normal

    @property
    def params(self):
        return np.concatenate([self.masses, self.borders])

    def pieces(self):
        """(mass, mean, variance) of every bucket."""
        low, high = self.borders[:-1], self.borders[1:]
        means, variances = (low + high) / 2, (high - low) ** 2 / 12
        if self.half_normal:
            for b, sign, anchor in ((0, -1, high[0]), (-1, 1, low[-1])):
                scale = (high[b] - low[b]) / TAIL
                means[b] = anchor + sign * scale * math.sqrt(2 / math.pi)
                variances[b] = scale ** 2 * (1 - 2 / math.pi)
        return self.masses, means, variances

    def mean(self):
        masses, means, _ = self.pieces()
        return np.sum(masses * means)

    def sd(self):
        masses, means, variances = self.pieces()
        return math.sqrt(np.sum(masses * (variances + (means - self.mean()) ** 2)))

    def log_pdf(self, y):
        borders = self.borders
        if not self.half_normal and (y < borders[0] or y > borders[-1]):
            return -math.inf
        b = min(max(int(np.sum(borders < y)) - 1, 0), len(self.masses) - 1)
        if self.half_normal and b in (0, len(self.masses) - 1):
            anchor = borders[1] if b == 0 else borders[-2]
            scale = (borders[b + 1] - borders[b]) / TAIL
            density = (math.log(2) - 0.5 * ((y - anchor) / scale) ** 2 - math.log(scale)
                       - 0.5 * math.log(2 * math.pi))
        else:
            density = -math.log(borders[b + 1] - borders[b])
        return math.log(self.masses[b]) + density

    def draw(self, u1, u2):
        """The quantile at u1."""
        total = np.cumsum(self.masses)
        above = np.nonzero(total >= u1)[0]
        b = int(above[0]) if len(above) else len(self.masses) - 1
        inside = (u1 - (total[b] - self.masses[b])) / self.masses[b]
        low, high = self.borders[b], self.borders[b + 1]
        if self.half_normal and b == 0:
            return high + (high - low) / TAIL * NORMAL.inv_cdf(inside / 2)
        if self.half_normal and b == len(self.masses) - 1:
            return low + (high - low) / TAIL * NORMAL.inv_cdf((1 + inside) / 2)
        return low + inside * (high - low)


class Classes:
    """Probabilities of the classes 0, 1, …"""

    def __init__(self, probabilities):
        self.params = probabilities

    def of_places(self, place):
        """Those of the classes that the network sees at these places."""
        rest = self.params[len(place):]
        return Classes(np.concatenate([self.params[place.astype(int)], rest]))

    def mean(self):
        return math.nan

    def sd(self):
        return math.nan

    def log_pdf(self, y):
        return math.log(self.params[int(y)])

    def draw(self, u1, u2):
        return float(np.nonzero(np.cumsum(self.params) > u1)[0][0])


class Targets:
    """Independent distributions of the targets of one row."""

    def __init__(self, each):
        self.each = each

    @property
    def params(self):
        return np.concatenate([one.params for one in self.each])

    def mean(self):
        return np.array([one.mean() for one in self.each])

    def sd(self):
        return np.array([one.sd() for one in self.each])

    def log_pdf(self, y):
        return sum(one.log_pdf(value) for one, value in zip(self.each, y))

    def draw(self, uniforms):
        """uniforms: a pair for every target."""
        return np.array([one.draw(*u) for one, u in zip(self.each, uniforms)])


class Joint:
    """y ~ N(mean, C Cᵀ) for the targets of all queries, flat [M * D]."""

    def __init__(self, mean, factor):
        self.mean, self.factor = mean, factor

    @property
    def covariance(self):
        return self.factor @ self.factor.T

    def log_pdf(self, y):
        y = np.atleast_1d(y)
        white, size = np.zeros(len(y)), len(y)
        for i in range(size):
            rest = y[i] - self.mean[i] - self.factor[i, :i] @ white[:i]
            white[i] = rest / self.factor[i, i]
        spread = np.log(np.diag(self.factor)).sum()
        return -0.5 * white @ white - spread - 0.5 * size * math.log(2 * math.pi)

    def draw(self, z):
        return self.mean + self.factor @ z


def separate_targets(head, outputs, borders, centers, scales):
    """The answer for several targets: every chunk of the outputs is [D, …]."""
    count = len(centers)
    if head["kind"] == "bars":
        each = np.split(outputs, count)
    else:
        chunks = 2 if head["kind"] == "gaussian" else 3
        parts = outputs.reshape(chunks, count, -1)
        each = [parts[:, d].ravel() for d in range(count)]
    return Targets([distribution(head, one, borders, centers[d], scales[d])
                    for d, one in enumerate(each)])


def distribution(head, outputs, borders, center, scale, classes=None):
    """The answer of the head's outputs, mapped back by y = center + scale * z; of a classifier,
    over the first `classes`.
    """
    if np.ndim(center):
        return separate_targets(head, outputs, borders, center, scale)
    if head["kind"] == "classes":
        return Classes(
            np.concatenate(
                [softmax(outputs[:classes]), np.zeros(len(outputs[classes:]) if classes else 0)]))
    if head["kind"] == "bars":
        return Bars(softmax(outputs), center + scale * borders, head["tails"] == "half-normal")
    if head["kind"] == "gaussian":
        logits, means, raw = np.zeros(1), outputs[:1], outputs[1:]
    else:
        logits, means, raw = np.split(outputs, 3)
    return Mixture(softmax(logits), center + scale * means,
                   abs(scale) * standard_deviation(head, raw))
