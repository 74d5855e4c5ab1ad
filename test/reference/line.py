"""The line of the prefix (docs/model-format.md section 5, "Line"), by singular values.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from scaling import soft_clip

FARTHEST = 2.0 ** 20
AHEAD, BEHIND, EXACT, FREE, CERTAIN, SAYS_CERTAIN = 0.1, 0.3, 4.0, 5.0, 3.0, 8.0


class Line:
    """A linear regression that says what a process says. design of the slots; codes [n0, slots] of
    the prefix; center and scale [slots] of their numbers; scaled targets y [n0], not clipped; the
    targets' clip.
    """

    noise, knee = 1.0, 0

    def __init__(self, design, codes, center, scale, y, clip):
        self.design, self.center, self.scale, self.y = design, center, scale, np.asarray(y)
        u = self.rows(codes)
        left, size, right = np.linalg.svd(u, full_matrices=False)
        n, best, along = len(y), -np.inf, left.T @ self.y
        apart = np.sum((self.y - left @ along) ** 2)
        for penalty in 4.0 ** np.arange(-10, 9):
            shrunk = size ** 2 + penalty
            variance = max((apart + np.sum(along ** 2 * penalty / shrunk)) / n, 1e-8)
            evidence = -0.5 * (n * np.log(variance) + np.sum(np.log(shrunk / penalty)))
            if evidence > best:
                best, self.penalty = evidence, penalty
                self.variance = (apart + np.sum(along ** 2 * penalty / shrunk) + 1e-6) / n
                self.inside = np.sum(left ** 2 * (size ** 2 / shrunk), axis=1)
        # of the features, which are the design over the root of the penalty
        shrunk, root = size ** 2 + self.penalty, np.sqrt(self.penalty)
        self.inverse = (right.T * (self.penalty / shrunk - 1)) @ right + np.eye(u.shape[1])
        self.weights = root * (right.T @ (size / shrunk * along))
        self.phi = u / root
        self.free = np.sum(1 - self.inside)
        mean, variance = self.answer(self.phi, self.y)
        self.left_out = np.stack([soft_clip(mean, clip), 0.5 * np.log(variance)], axis=1)
        self.density = np.mean(-0.5 * (np.log(2 * np.pi * variance)
                                       + (mean - self.y) ** 2 / variance))
        self.is_certain = self.density > CERTAIN
        self.quality = SAYS_CERTAIN if self.is_certain else float(soft_clip(self.density, clip))

    def wins(self, process, y):
        """Whether it stands for a process of targets y."""
        least = process.density + AHEAD
        if np.any(y != y[0]):
            least = min(process.density - BEHIND if self.is_certain else least,
                        EXACT + np.log(len(y)) / 2)
        return self.free >= FREE and self.density > least

    def rows(self, codes):
        with np.errstate(invalid="ignore"):
            z = np.where(np.abs(codes) > 1e300, codes / self.scale - self.center / self.scale,
                         (codes - self.center) / self.scale)
        return self.design.rows(codes, np.clip(z, -FARTHEST, FARTHEST))

    def point(self, codes, _):
        return codes

    def features(self, points):
        return self.rows(points) / np.sqrt(self.penalty)

    def alike(self, points):
        phi = self.features(points)
        return phi @ phi.T

    def apart_of(self, phi):
        return np.ones(len(phi))

    def answer(self, phi, target=None):
        """As a process's, with the shares of the prefix by what does not drown in rounding."""
        mean, share = phi @ self.weights, np.sum((phi @ self.inverse) * phi, axis=1)
        if target is None:
            return mean, self.variance * (1 + share)
        rest = self.left()
        return target - (target - mean) / rest, self.variance / rest

    def without(self):
        return self.answer(self.phi, self.y)

    def left(self):
        return np.maximum(1 - self.inside, 1e-9)

    def __call__(self, codes, _, row):
        if row is None:
            mean, variance = self.answer(self.features(codes[None]))
            said = [mean[0], 0.5 * np.log(variance[0])]
        else:
            said = list(self.left_out[row])
        return said + [0.5 * np.log(self.variance), self.quality]
