#!/usr/bin/env python3
"""Sums whose noise is not normal, a prototype: docs/sums-tried.md, "heads".

    bench/sums_heads.py FOLDER

FOLDER has elevators, protein and skillcraft as bench/sums_quality.py takes them. What a row's
target differs from its prediction by the other rows, over the standard deviation of that, has a
shape, which stands in the normal distribution's place: Student's t, or a histogram of 16 bins of
equal mass, each a normal distribution as wide as its distance from its neighbours. Or the target is
bent beforehand, so that its quantiles are the normal ones, or half of that, or as the rows without
their own targets are likeliest. Features, evidence, and noise that varies are those of
bench/sums_noise.py.

SPDX-License-Identifier: PostgreSQL
"""
import math
import sys

import numpy as np
import sums_noise as noise
import sums_quality as quality
from safetensors_io import read_model
from scipy.special import gammaln, ndtr, ndtri
from scipy.stats import t as student
from sums import Basis

BINS, KNOTS = 16, 24
FREEDOM = (2, 3, 4, 5, 7, 10, 15, 25, 50, 200)
LEVELS = (np.arange(400) + 0.5) / 400


def standardised(fit, phi, u, ratio=1.0):
    """Leave-one-out errors over their standard deviations; the mean over settings."""
    means, leverage = fit.at(phi)
    room = np.maximum(1 - leverage / ratio, 0.05)
    sds = np.sqrt(fit.weights @ [np.mean(sd ** 2) for _, _, sd in fit.settings] * ratio)
    return (fit.weights @ ((u - means) / np.sqrt(room))) / sds


def spread(fit, phi, ratio=1.0):
    """Mean and standard deviation of answers, over settings."""
    means, leverage = fit.at(phi)
    mean, variance = fit.weights @ means, fit.variance * (ratio + fit.weights @ leverage)
    return mean, np.sqrt(variance + fit.weights @ (means - mean) ** 2)


def histogram(r):
    """(means, sds) of BINS normal distributions of equal weight."""
    parts = np.array_split(np.sort(r), BINS)
    means = np.array([p.mean() for p in parts])
    gaps = np.diff(means)
    sds = np.maximum(np.concatenate([gaps[:1], gaps]), np.concatenate([gaps, gaps[-1:]])) / 2
    sds[[0, -1]] = parts[0].std(), parts[-1].std()
    return means, np.maximum(sds, 0.02)


def by_histogram(r, mean, sd, truth):
    means, sds = histogram(r)
    n = len(mean)
    params = np.concatenate([np.full((n, BINS), 1 / BINS), mean[:, None] + sd[:, None] * means,
                             sd[:, None] * sds], axis=1)
    return quality.mixture_scores(params, truth)


def by_student(r, mean, sd, truth):
    """Freedom and size by the likelihood of the leave-one-out errors."""
    sizes = np.exp(np.linspace(-1.2, 0.4, 33))
    best = max((student.logpdf(r / s, v).sum() - len(r) * math.log(s), v, s)
               for v in FREEDOM for s in sizes)
    _, v, s = best
    z = (truth - mean) / (s * sd)
    quantiles = student.ppf(LEVELS, v)
    scores = from_quantiles(mean[:, None] + (s * sd)[:, None] * quantiles, truth)
    scores[:, 0] = np.log(s * sd) - (gammaln((v + 1) / 2) - gammaln(v / 2)
                                     - 0.5 * math.log(v * math.pi)
                                     - (v + 1) / 2 * np.log1p(z * z / v))
    scores[:, 1], scores[:, 3] = (truth - mean) ** 2, student.cdf(z, v)
    return scores


def from_quantiles(q, truth):
    """Scores [n, 4] of distributions by their quantiles at LEVELS, but for the log loss."""
    below = truth[:, None] < q
    pinball = 2 * np.mean((below - LEVELS) * (q - truth[:, None]), axis=1)
    return np.stack([np.zeros(len(q)), (truth - q.mean(axis=1)) ** 2, pinball,
                     1 - below.mean(axis=1)], axis=1)


def left_out(fit, phi, u):
    """Log density of rows without their own targets, as one normal distribution each."""
    leverage = fit.weights @ fit.at(phi)[1]
    variance = fit.variance / np.maximum(1 - leverage, 0.05)
    return -0.5 * np.sum(fit.errors(phi, u) ** 2 / variance + np.log(2 * math.pi * variance))


class Bend:
    """A monotone map, straight between knots, after which targets are about normal; of less
    strength, that far from the targets themselves.
    """

    def __init__(self, u, strength):
        levels = (np.arange(KNOTS) + 0.5) / KNOTS
        at = np.quantile(u, levels)
        at, first = np.unique(at, return_index=True)
        far = np.concatenate([[True], np.diff(at) > 1e-3])
        self.at = at[far]
        self.to = (1 - strength) * self.at + strength * ndtri(levels[first][far])
        self.slopes = np.diff(self.to) / np.diff(self.at)

    def __call__(self, u):
        inside = np.clip(np.searchsorted(self.at, u) - 1, 0, len(self.slopes) - 1)
        slope = self.slopes[inside]
        return self.to[inside] + slope * (u - self.at[inside]), np.log(slope)

    def back(self, v):
        inside = np.clip(np.searchsorted(self.to, v) - 1, 0, len(self.slopes) - 1)
        return self.at[inside] + (v - self.to[inside]) / self.slopes[inside]


def by_bend(config, strength, phi, groups, squares, u, queries, truth):
    bend = Bend(u, strength)
    v = bend(u)[0]
    center, scale = v.mean(), v.std()
    fit = noise.Fit(config, phi, (v - center) / scale, groups, squares)
    gain = left_out(fit, phi, (v - center) / scale) + np.sum(bend(u)[1]) - len(u) * math.log(scale)
    mean, sd = spread(fit, queries)
    mean, sd = center + scale * mean, scale * sd
    seen, slope = bend(truth)
    scores = from_quantiles(bend.back(mean[:, None] + sd[:, None] * ndtri(LEVELS)), truth)
    z = (seen - mean) / sd
    scores[:, 0] = 0.5 * z * z + np.log(sd) + 0.5 * math.log(2 * math.pi) - slope
    scores[:, 3] = ndtr(z)
    return scores, gain


def run(config, x, y, n):
    """Scores [n, 4] by name of a head."""
    basis = Basis(config, ["numeric"] * x.shape[1], x[:n], y[:n])
    (rows, groups, squares), queries = basis.features(x[:n]), basis.features(x[n:])[0]
    u, truth = ((t - basis.center) / basis.scale for t in (y[:n], y[n:]))
    fit = noise.Fit(config, rows, u, groups, squares)
    there, here = noise.ratios(config, fit, fit.errors(rows, u), groups < 3 + x.shape[1], rows,
                               queries, groups, squares)
    r = standardised(fit, rows, u)
    varied = standardised(fit, rows, u, there)
    normal = quality.mixture_scores(fit.mixtures(queries), truth)
    half, bent = (by_bend(config, strength, rows, groups, squares, u, queries, truth)
                  for strength in (0.5, 1))
    chosen = max((left_out(fit, rows, u), normal), half[::-1], bent[::-1], key=lambda way: way[0])
    return {"normal": normal,
            "Student's t": by_student(r, *spread(fit, queries), truth),
            "histogram": by_histogram(r, *spread(fit, queries), truth),
            "histogram, noise varies": by_histogram(varied, *spread(fit, queries, here), truth),
            "bent target": bent[0], "half bent": half[0], "the likeliest bend": chosen[1]}


def main():
    config = read_model(quality.ROOT + "/models/tabular_sums.safetensors")[0]
    quality.header("", "rows", "head", "log loss", "less", "CRPS", "RMSE",
                   "50 / 80 / 90 / 95 % intervals")
    for n, name in ((n, name) for n in (256, 1024, 10000) for name in quality.TABLES):
        tasks = [noise.rows_of(sys.argv[1], name, n, seed) for seed in (100, 101, 102)]
        runs = [run(config, x, y, n) for x, y in tasks if len(y) == n + 1000]
        for head in runs[0] if runs else ():
            scores = [r[head] for r in runs]
            less = [np.mean(r[head][:, 0] - r["normal"][:, 0]) for r in runs]
            mean, _ = quality.summary(scores)
            quality.row(name, n, head, f"{mean[0]:.3f}",
                        f"{np.mean(less):.3f} ± {np.std(less, ddof=1) / math.sqrt(3):.3f}",
                        f"{mean[2]:.4f}", f"{mean[1]:.4f}",
                        quality.percent(quality.covered(scores)))


if __name__ == "__main__":
    main()
