"""The search for directions (docs/sums.md, "The basis"): weighted sums of columns whose sine and
cosine say much of what lines leave of the targets.

SPDX-License-Identifier: PostgreSQL
"""
import math

import numpy as np

from random_numbers import uniforms

REACH = 4.0                     # of squashed scores


def waves(z, count):
    angle = np.pi * (z + REACH) / (2 * REACH)
    return (np.stack([np.sin(k * angle) for k in range(1, count + 1)], axis=-1) if count
            else np.zeros((len(z), 0)))


def squashed(z):
    size = np.maximum(np.abs(z), 1e-300)
    return np.where(size <= 2, z, np.sign(z) * (REACH - 4 / size))


def regressed(design, y, penalty=0.1):
    gram = design.T @ design + penalty * np.eye(design.shape[1])
    return np.linalg.solve(gram, design.T @ y)


def length(at):
    """From a half to four as `at` goes from 0 to 3: twice as long per unit, straight in between."""
    return (1 + at - math.floor(at)) * 2.0 ** (math.floor(at) - 1)


class Directions:
    """Those of scores z [n, columns], 0 where missing, and scaled targets u [n]: `found` has at
    most `most` and `room` of them, weights that are multiples of 1/1024.
    """

    RANDOM, ALONG, KEPT, STEPS = 256, 8, 4, 8

    def __init__(self, z, u, most, room):
        self.found = []
        columns = z.shape[1]
        if columns < 2 or len(z) < 16 * (columns + 2):
            return
        self.z = z
        slope = regressed(self.z, u)
        norm = np.linalg.norm(slope)
        self.slope = slope / norm if norm > 0 else slope
        self.rest = u
        self.leave(np.concatenate([np.ones((len(u), 1)), self.z], axis=1))
        for search in range(2 * most):
            w = self.best(search) if len(self.found) < min(room, most) else None
            if w is None:
                break
            sd = (self.z @ w).std()
            if not (sd > 0 and np.all(np.abs(w / sd) <= 2 ** 14)):
                break
            # the column with the largest weight may say as much by itself
            column = np.where(np.arange(columns) == np.argmax(np.abs(w)), w, 0.0)
            along, alone = self.left(w), self.left(column)
            if alone is not None and not self.says_more(alone @ alone, along @ along):
                self.rest = alone
                continue
            self.rest = along
            self.found.append(np.rint(w / sd * 1024) / 1024)

    def leave(self, design):
        self.rest = self.rest - design @ regressed(design, self.rest)

    def left(self, w):
        """What a smooth function of a direction leaves of the rest."""
        score = self.z @ w
        sd = score.std()
        if not sd > 0:
            return None
        design = np.concatenate([np.ones((len(score), 1)), waves(squashed(score / sd), 8),
                                 np.sin(score)[:, None], np.cos(score)[:, None]], axis=1)
        return self.rest - design @ regressed(design, self.rest)

    def says_more(self, before, after):
        """Whether squares sink by more than a direction's parameters cost."""
        n, columns = self.z.shape
        cost = (columns + 2) / 2 * math.log(n) + 2 * math.sqrt(columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            return n / 2 * np.log(before / after) >= cost

    def candidates(self, direction):
        """[candidates, columns], fixed but for those along the slope of the targets."""
        columns = self.z.shape[1]
        out = np.zeros((self.RANDOM + self.ALONG, columns))
        for i in range(self.RANDOM):
            w = np.array([sum(uniforms(0, (direction, 0, i * columns + f, 5))) - 1
                          for f in range(columns)])
            out[i] = w / np.linalg.norm(w) * length(3 * (i + 0.5) / self.RANDOM)
        for i in range(self.ALONG):
            out[self.RANDOM + i] = self.slope * length(3 * i / (self.ALONG - 1))
        return out

    def screen(self, candidates):
        """The candidates whose sine and cosine take most squares from the rest, best first."""
        rows = min(512, len(self.rest))
        chosen = np.arange(rows) * len(self.rest) // rows
        angle = self.z[chosen] @ candidates.T
        rest = self.rest[chosen] - self.rest[chosen].mean()
        sine, cosine = (wave - wave.mean(axis=0) for wave in (np.sin(angle), np.cos(angle)))
        ss, sc, cc = ((a * b).sum(axis=0)
                      for a, b in ((sine, sine), (sine, cosine), (cosine, cosine)))
        with_sine, with_cosine = sine.T @ rest, cosine.T @ rest
        gain = ((cc * with_sine ** 2 - 2 * sc * with_sine * with_cosine + ss * with_cosine ** 2)
                / np.maximum(ss * cc - sc ** 2, 1e-9))
        return np.argsort(-gain, kind="stable")[:self.KEPT]

    def fit(self, w):
        """(squares left, errors, sine, cosine, coefficients) of a constant and a wave along w."""
        angle = self.z @ w
        if not np.all(np.abs(angle) <= 2 ** 20):
            return math.inf, None, None, None, None
        design = np.stack([np.ones(len(angle)), np.sin(angle), np.cos(angle)], axis=1)
        k = regressed(design, self.rest, 1e-6)
        error = self.rest - design @ k
        return error @ error, error, design[:, 1], design[:, 2], k

    def move(self, w):
        """(squares left, w) after steps by Levenberg and Marquardt."""
        damping, at = 1e-2, self.fit(w)
        for _ in range(self.STEPS):
            _, error, sine, cosine, k = at
            slope = (k[1] * cosine - k[2] * sine)[:, None]
            jacobian = np.concatenate([slope * self.z, np.ones((len(sine), 1)), sine[:, None],
                                       cosine[:, None]], axis=1)
            gram = jacobian.T @ jacobian
            gram += damping * np.diag(np.diag(gram) + 1e-6)
            step = np.linalg.solve(gram, jacobian.T @ error)[:len(w)]
            after = self.fit(w + step)
            if after[0] < at[0]:
                w, at, damping = w + step, after, damping * 0.3
            else:
                damping *= 5
        return at[0], w

    def best(self, direction):
        """The frequency vector that is taken, or None."""
        candidates, least, best = self.candidates(direction), math.inf, None
        for i in self.screen(candidates):
            squares, w = self.move(candidates[i])
            if squares < (1 - 1e-9) * least:
                least, best = squares, w
        before = np.sum((self.rest - self.rest.mean()) ** 2)
        return best if self.says_more(before, least) else None
