#!/usr/bin/env python3
"""Sums with noise that varies with x, a prototype: docs/sums-tried.md, "noise that varies".

    bench/sums_noise.py FOLDER

FOLDER has elevators, protein and skillcraft as bench/sums_quality.py takes them. Basis and features
are those of test/reference/sums.py. Needs SciPy; one thread is best (OMP_NUM_THREADS=1).

SPDX-License-Identifier: PostgreSQL
"""
import math
import sys

import numpy as np
import sums_quality as quality
from safetensors_io import read_model
from scipy.linalg import cho_factor, lapack
from scipy.special import erf
from sums import NORMAL, Basis

quality.erf = erf
MADE = ("vary_one", "vary_two", "friedman", "product_noisy")


class Fit:
    """Regressions under every setting, and their weights; docs/sums.md, "evidence"."""

    def __init__(self, config, phi, u, groups, squares):
        self.gram, self.moments, self.square, self.n = phi.T @ phi, phi.T @ u, u @ u, len(u)
        shape, points = config["noise_shape"] + self.n / 2, config["points"]
        z = np.array([NORMAL.inv_cdf((i + 0.5) / points) for i in range(points)])
        v = np.maximum(1 - 1 / (9 * shape) + z * math.sqrt(1 / (9 * shape)), 0.1) ** -3.0
        self.config, self.groups, self.size = config, groups, np.bincount(groups, minlength=3)
        level = np.where(np.arange(len(self.size)) > 0, config["start"], 0.01)
        self.settings, logs = [], []
        for number, length in enumerate(config["lengths"]):
            w2 = squares * (math.pi / 8) ** 2 * length ** 2
            profile = np.where(squares > 0, (1 + w2 / 5) ** 3 / length, 1.0)
            steps, later = config["steps"], config.get("later", (config["steps"] + 1) // 2)
            level = self.climb(level, profile, later if number else steps)
            inverse, mean, half, rest = self.regress(level[groups] * profile)
            rate = config["noise_rate"] + rest / 2
            logs.append(0.5 * np.log(level[groups] * profile).sum() - half - shape * math.log(rate)
                        + (config["prior_shape"] * np.log(level[1:])
                           - config["prior_rate"] * level[1:]).sum())
            self.settings.append((inverse, mean, np.sqrt(v / v.mean() * rate / (shape - 1))))
        self.weights = np.exp(np.array(logs) - max(logs)) / np.exp(np.array(logs) - max(logs)).sum()
        self.variance = self.weights @ [np.mean(sd ** 2) for _, _, sd in self.settings]

    def climb(self, level, profile, steps):
        """Precisions of the groups after steps of the evidence."""
        level, config, groups = level.astype(float), self.config, self.groups
        for _ in range(steps):
            inverse, mean, _, rest = self.regress(level[groups] * profile)
            scale = (config["noise_shape"] + self.n / 2) / (config["noise_rate"] + rest / 2)
            trace = np.bincount(groups, profile * np.diag(inverse), len(level))
            weight = np.bincount(groups, profile * mean ** 2 * scale, len(level))
            known = np.maximum(self.size - level * trace, 0) + 2 * config["prior_shape"]
            level[1:] = np.clip(known / (weight + 2 * config["prior_rate"]), 1e-4, 1e7)[1:]
        return level

    def regress(self, precision):
        a = self.gram + np.diag(np.diag(self.gram) * 2.0 ** -40 + precision)
        factor, _ = cho_factor(a, lower=True)
        inverse = np.tril(lapack.dpotri(factor, lower=1)[0])
        inverse += np.tril(inverse, -1).T
        mean = inverse @ self.moments
        rest = max(self.square - mean @ self.moments, 1e-12 * (1 + self.n))
        return inverse, mean, np.log(np.diag(factor)).sum(), rest

    def at(self, phi):
        """Means and leverages [settings, n]."""
        return (np.stack([phi @ mean for _, mean, _ in self.settings]),
                np.stack([((phi @ inverse) * phi).sum(axis=1) for inverse, _, _ in self.settings]))

    def errors(self, phi, u):
        """What each row's target differs from its prediction by the other rows."""
        means, leverage = self.at(phi)
        return self.weights @ ((u - means) / np.maximum(1 - leverage, 0.05))

    def mixtures(self, phi, ratio=1.0):
        """Answers [n, 3 K] where the noise's variance is multiplied by ratio [n]."""
        (means, leverage), points = self.at(phi), len(self.settings[0][2])
        sds = [sd * np.sqrt(ratio + q) for q, (_, _, some) in zip(leverage, self.settings)
               for sd in some]
        weights = np.repeat(self.weights, points) / points + np.zeros((len(phi), len(sds)))
        return np.concatenate([weights, np.repeat(means, points, axis=0).T, np.transpose(sds)], 1)


def ratios(config, fit, error, columns, rows, queries, groups, squares):
    """Variance of the noise by its mean, at rows and queries: a regression of its logarithm."""
    v = np.log(error ** 2 / fit.variance + 1e-3) + 1.27  # ln χ² has the mean -1.27
    scaled, rows, queries = (v - v.mean()) / v.std(), rows[:, columns], queries[:, columns]
    of = Fit(config, rows, scaled, groups[columns], squares[columns])
    there = v - v.std() * of.errors(rows, scaled)
    here = v.mean() + v.std() * (of.weights @ of.at(queries)[0])
    best = (-math.inf,)
    for a in (0, 0.25, 0.5, 0.75, 1):
        g = np.exp(a * np.clip(there, -5, 5))
        k = np.mean(error ** 2 / (fit.variance * g))
        found = -0.5 * np.log(k * g).sum() if a else -0.5 * len(v) * math.log(k)
        if found > best[0] + 1:
            best = found, a, (k if a else 1.0)
    return [best[2] * np.exp(best[1] * np.clip(log, -5, 5)) for log in (there, here)]


def rows_of(folder, name, n, seed):
    if name in quality.TABLES:
        x, y = quality.read(folder, name)
        order = np.random.default_rng(seed).permutation(len(y))
        chosen = np.concatenate([order[:n], order[max(n, len(y) - 1000):]])
        return x[chosen], y[chosen]
    random = np.random.default_rng([seed, *name.encode()])
    if name == "vary_one":
        x = random.standard_normal((n + 1000, 6))
        f = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
        return x, f + 0.15 * np.exp(0.8 * x[:, 3]) * random.standard_normal(len(f))
    function, columns, uniform, noise = quality.FUNCTIONS[name.replace("vary_two", "friedman")]
    shape = n + 1000, columns
    x = random.uniform(size=shape) if uniform else random.standard_normal(shape)
    f = function(x)
    noise = 0.03 + 0.5 * x[:, 0] * x[:, 3] if name == "vary_two" else noise
    return x, f / f.std() + noise * random.standard_normal(len(f))


def run(config, x, y, n):
    """Scores [3, 3] and coverage [3, 3] of constant noise, of noise that varies, and refitted."""
    basis = Basis(config, ["numeric"] * x.shape[1], x[:n], y[:n])
    (rows, groups, squares), queries = basis.features(x[:n]), basis.features(x[n:])[0]
    u, truth = ((t - basis.center) / basis.scale for t in (y[:n], y[n:]))
    fit = Fit(config, rows, u, groups, squares)
    there, here = ratios(config, fit, fit.errors(rows, u), groups < 3 + x.shape[1], rows, queries,
                         groups, squares)
    again = Fit(config, rows / np.sqrt(there)[:, None], u / np.sqrt(there), groups, squares)
    for one, ratio in ((fit, 1), (fit, here), (again, here)):
        params = one.mixtures(queries, ratio)
        scores = quality.mixture_scores(params, truth)
        yield [*scores[:, (0, 2)].mean(axis=0), math.sqrt(scores[:, 1].mean()),
               *(np.mean(abs(scores[:, 3] - 0.5) <= c / 2) for c in (0.5, 0.8, 0.9))]


def main():
    config = read_model(quality.ROOT + "/models/tabular_sums.safetensors")[0]
    quality.header("rows", "", "", "log loss", "less", "CRPS", "RMSE", "50 / 80 / 90 % intervals")
    for n, name in ((n, name) for n in (256, 1024, 10000) for name in (*quality.TABLES, *MADE)):
        tasks = [rows_of(sys.argv[1], name, n, seed) for seed in (100, 101, 102)]
        runs = np.array([list(run(config, x, y, n)) for x, y in tasks if len(y) == n + 1000])
        for i, what in enumerate(("constant", "varies", "refitted") if len(runs) else ()):
            mean, less = runs[:, i].mean(axis=0), runs[:, i, 0] - runs[:, 0, 0]
            error = f"{less.mean():.3f} ± {less.std(ddof=1) / math.sqrt(3):.3f}"
            quality.row(n, name, what, f"{mean[0]:.3f}", error, *(f"{m:.4f}" for m in mean[1:3]),
                        quality.percent(mean[3:]))


if __name__ == "__main__":
    main()
