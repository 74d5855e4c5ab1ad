"""The process of a classifier's prefix (docs/model-format.md, section 8, "Process of classes"), by
inverses and sums over pairs.

SPDX-License-Identifier: PostgreSQL
"""
import itertools

import numpy as np

from process import NARROW, NARROW_STEPS, STEPS, Process, correlations, slope
from trees import log_softmax

SHARPEST, SHARPNESS, SHARPENINGS = 16.0, 4.0, 8
OF_WEIGHT, SLOPE_OF_SHARE = 2.0, 2.0


class ClassProcess(Process):
    """cards of the slots, codes and scaled features [n0, slots] and classes y [n0] of the prefix.
    One correlation and one noise are those of all classes.
    """

    def __init__(self, cards, codes, z, y, classes):
        self.cards, self.classes = cards, classes
        self.directions = np.zeros((0, len(cards)))
        y = np.asarray(y).astype(int)
        known = np.where(np.isnan(codes), 0.0, z)
        self.order = np.lexsort([*[*known.T, *np.isnan(codes).T][::-1], y])
        self.points = np.array([self.point(c, v) for c, v in zip(codes, z)])
        self.shares = (np.bincount(y, minlength=classes) + 0.5) / (len(y) + classes / 2)
        self.y = self.channels((y[:, None] == np.arange(classes)) - self.shares)
        (most, steps, rate), (carriers, _, _) = STEPS
        chosen = self.spread(most)
        self.targets, self.own = self.y[chosen], self.points[chosen]
        self.apart = self.pairs(self.own, self.own)
        self.theta = self.start()
        self.climb(steps, rate, NARROW_STEPS)
        self.apart = None
        self.weight, self.noise, self.share = self.unpack(self.theta)
        self.carriers = self.points[self.spread(carriers)]
        alike = correlations(self.weight, 0.0, self.pairs(self.carriers, self.carriers))
        np.fill_diagonal(alike, 1)
        self.unmixed = np.linalg.inv(np.linalg.cholesky(alike + 1e-8 * np.eye(len(alike))))
        self.phi = self.features(self.points)
        own = self.apart_of(self.phi)[:, None]
        self.inverse = np.linalg.inv(np.eye(len(alike)) + (self.phi.T / own[:, 0]) @ self.phi)
        self.weights = self.inverse @ (self.phi.T @ (self.y / own))
        means = self.y - (self.y - self.phi @ self.weights) / self.left()[:, None]
        self.judge(self.scores(means), y)

    def channels(self, values):
        """Of two classes the second."""
        return values[:, 1:] if self.classes == 2 else values

    @property
    def freedom(self):
        return max(self.classes - 1, 1)

    # the weights and the noise

    def start(self):
        self.tau = NARROW
        axes = self.points.shape[1]
        ways = [np.append([level - np.log(axes)] * axes, np.log(noise))
                for level, noise in itertools.product((-1.0, 0.0, 1.5), (0.03, 0.3))]
        return ways[int(np.argmax([self.value(way) for way in ways]))]

    def spread_of(self, answers):
        return (np.sum(answers * self.targets) + 1e-6) / (len(self.targets) * self.freedom)

    def value(self, theta):
        system, n = self.system(theta), len(self.targets)
        variance = self.spread_of(np.linalg.solve(system, self.targets))
        prior = np.sum(((theta - self.mean(theta)) / self.tau) ** 2)
        return -0.5 * (self.freedom * (n * np.log(variance) + np.linalg.slogdet(system)[1]) + prior)

    def gradient(self, theta):
        weight, noise, _ = self.unpack(theta)
        inverse = np.linalg.inv(self.system(theta))
        b = inverse @ self.targets
        pull = 0.5 * (b @ b.T / self.spread_of(b) - self.freedom * inverse)
        trace = np.trace(pull)
        np.fill_diagonal(pull, 0)
        along = weight[:, None, None] * self.apart
        each = np.einsum("ij,aij->a", pull * slope(np.sum(along, 0)), along)
        return np.append(each, noise * trace) - (theta - self.mean(theta)) / self.tau ** 2

    # answers

    def scores(self, means):
        """[n, classes] of means [n, channels]."""
        means = np.clip(means, -1, 1)
        return np.concatenate([-means, means], axis=1) if self.classes == 2 else means

    def judge(self, scores, y):
        """What the scores of rows left out are best multiplied by, and what they lose then."""
        found, rows, prior = SHARPNESS, np.arange(len(y)), np.log(self.shares)
        for _ in range(SHARPENINGS):
            p = np.exp(log_softmax(prior + found * scores))
            mean = (p * scores).sum(axis=1)
            spread = np.maximum((p * scores ** 2).sum(axis=1) - mean ** 2, 0)
            curve = np.rint(spread * 2 ** 20).sum()
            if curve > 0:
                along = np.rint((scores[rows, y] - mean) * 2 ** 20).sum()
                found = min(max(found + along / curve, 1 / SHARPEST), SHARPEST)
        self.sharpness = found
        lost = log_softmax(prior + found * scores)[rows, y]
        self.loss = (np.rint(-lost * 2 ** 20).sum() / 2 ** 20
                     + OF_WEIGHT * len(self.theta)) / len(y)

    def would_share(self, most, least_loss):
        """How much of the logits it says, beside predictions that lose so much."""
        return min(max(SLOPE_OF_SHARE * (1 - self.loss / max(least_loss, 1e-6)), 0), most)

    def __call__(self, codes, z):
        """Logits [n, classes] of rows."""
        points = np.array([self.point(c, v) for c, v in zip(codes, z)])
        scores = self.scores(self.features(points) @ self.weights)
        return (log_softmax(np.log(self.shares) + self.sharpness * scores)
                + np.log(self.classes))
