#!/usr/bin/env python3
"""Evidence that begins where a network says, a prototype: "an amortised start" of
docs/sums-tried.md.

    bench/sums_start.py FOLDER [TASKS]

FOLDER has elevators, protein and skillcraft as bench/sums_quality.py takes them. The network sees
of each group of features what the sums say after one step of the evidence, and answers what its
precision is after 32; it is taught by TASKS (300) tables of the trainer's prior. Beside it more
steps, and steps that are extrapolated. Needs PyTorch and scikit-learn.

SPDX-License-Identifier: PostgreSQL
"""
import math
import random
import sys
import time

import numpy as np
import sums_noise as noise
import sums_quality as quality
import torch
from pg_posterior_train.prior import PRIORS
from safetensors_io import read_model
from sklearn.neural_network import MLPRegressor
from sums import Basis

LONG = 32
SIZES = (64, 128, 256, 512)


class Sums(noise.Fit):
    """The sums, their precisions after a step under the first length, and what a network is told
    of them.
    """

    def __init__(self, config, phi, u, groups, squares):
        self.config, self.groups, self.n = config, groups, len(u)
        self.gram, self.moments, self.square = phi.T @ phi, phi.T @ u, u @ u
        self.size = np.bincount(groups, minlength=3)
        w2 = squares * (math.pi / 8) ** 2 * config["lengths"][0] ** 2
        self.profile = np.where(squares > 0, (1 + w2 / 5) ** 3 / config["lengths"][0], 1.0)
        self.begin = np.where(np.arange(len(self.size)) > 0, config["start"], 0.01)
        self.first = self.climb(self.begin, self.profile, 1)

    def told(self, columns):
        """[groups, numbers]."""
        _, mean, _, rest = self.regress(self.first[self.groups] * self.profile)
        share = self.moments ** 2 / (np.diag(self.gram) * self.square + 1e-9)
        count, group = len(self.size), np.arange(len(self.size))
        most, total = np.zeros(count), np.bincount(self.groups, share, count)
        np.maximum.at(most, self.groups, share)
        weight = np.bincount(self.groups, self.profile * mean ** 2, count) * self.n / (rest + 1e-9)
        log = np.log(self.first)
        kinds = [group == 1, group == 2, (group > 2) & (group < 3 + columns), group >= 3 + columns]
        return np.stack([*(np.array(k, float) for k in kinds), np.log(self.size + 1.0), log,
                         np.log(weight + 1e-3), np.log(most + 1e-4), np.log(total + 1e-4),
                         log - log[1:].min(), np.full(count, math.log(self.n)),
                         np.full(count, math.log(count)), np.full(count, math.log(rest / self.n))],
                        axis=1)


def lesson(config, seed):
    """(what the network is told, how far the logs of the precisions go) of one table."""
    n = SIZES[seed % len(SIZES)]
    task = PRIORS["numbers"](torch.Generator().manual_seed(seed), 1, n, shared=random.Random(seed),
                             columns=18)
    x, y = task.x[0].double().numpy(), task.y[0].double().numpy()
    x = x[:, x.std(axis=0) > 0]
    basis = Basis(config, ["numeric"] * x.shape[1], x, y)
    phi, groups, squares = basis.features(x)
    sums = Sums(config, phi, (y - basis.center) / basis.scale, groups, squares)
    last = sums.climb(sums.first, sums.profile, LONG - 1)
    kept = (sums.size > 0) & (np.arange(len(last)) > 0)
    return sums.told(x.shape[1])[kept], np.log(last / sums.first)[kept]


def starts(config, network, phi, u, groups, squares, columns):
    """Configurations by name, each with a start and a number of steps."""
    sums = Sums(config, phi, u, groups, squares)
    said = np.clip(network.predict(sums.told(columns)), -6, 6)
    jumped = np.where(sums.size > 0, sums.first * np.exp(said), sums.first)
    second = sums.climb(sums.first, sums.profile, 1)
    third = sums.climb(second, sums.profile, 1)
    # the logs' last difference, as if the next ones sank by a constant factor (Aitken)
    a, b = np.log(second / sums.first), np.log(third / second)
    rate = np.clip(b / np.where(np.abs(a) > 1e-9, a, 1), 0, 0.9)
    far = third * np.exp(b * rate / (1 - rate))
    return {"4 steps": config, "16 steps": {**config, "steps": 16},
            "8 steps": {**config, "steps": 8},
            "one step, network": {**config, "start": jumped, "steps": 0, "later": 2},
            "one step, network, three": {**config, "start": jumped, "steps": 3},
            "three steps, extrapolated, one": {**config, "start": far, "steps": 1, "later": 2}}


def main():
    config = read_model(quality.ROOT + "/models/tabular_sums.safetensors")[0]
    began = time.process_time()
    lessons = [lesson({**config, "directions": 0}, seed)
               for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 300)]
    told, far = (np.concatenate(part) for part in zip(*lessons))
    center, scale = told.mean(axis=0), told.std(axis=0) + 1e-9
    network = MLPRegressor(hidden_layer_sizes=(32, 32), random_state=0, max_iter=200,
                           early_stopping=True)
    network.fit((told - center) / scale, far)
    plain = network.predict
    network.predict = lambda numbers: plain((numbers - center) / scale)
    print(f"{len(far)} groups, {time.process_time() - began:.0f} s of processor time; of the "
          f"logs' variance {1 - np.var(far - network.predict(told)) / np.var(far):.2f} is known")
    quality.header("", "rows", "", "log loss", "less", "RMSE", "80 / 90 %")
    for n in (64, 256, 1024):
        for name in (*quality.NAMES, *quality.TABLES):
            found = {}
            for seed in (100, 101, 102):
                if name in quality.TABLES:
                    x, y = noise.rows_of(sys.argv[1], name, n, seed)
                else:
                    x, y, _ = quality.made(name, n, seed)
                basis = Basis(config, ["numeric"] * x.shape[1], x[:n], y[:n])
                (phi, groups, squares), asked = basis.features(x[:n]), basis.features(x[n:])[0]
                u, truth = ((t - basis.center) / basis.scale for t in (y[:n], y[n:]))
                for way, c in starts(config, network, phi, u, groups, squares,
                                     x.shape[1]).items():
                    fit = noise.Fit(c, phi, u, groups, squares)
                    found.setdefault(way, []).append(
                        quality.mixture_scores(fit.mixtures(asked), truth))
            for way, runs in found.items():
                less = [np.mean(a[:, 0] - b[:, 0]) for a, b in zip(runs, found["4 steps"])]
                mean, _ = quality.summary(runs)
                quality.row(name, n, way, f"{mean[0]:.3f}",
                            f"{np.mean(less):.3f} ± {np.std(less, ddof=1) / math.sqrt(3):.3f}",
                            f"{mean[1]:.4f}", quality.percent(quality.covered(runs)[1:3]))


if __name__ == "__main__":
    main()
