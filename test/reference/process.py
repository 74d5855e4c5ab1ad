"""The Gaussian process of the prefix (docs/model-format.md section 5, "Process"), by inverses and
sums over pairs.

SPDX-License-Identifier: PostgreSQL
"""
import itertools

import numpy as np

from directions import Directions
from scaling import soft_clip

STEPS = ((128, 48, 0.8), (256, 12, 0.5))
NARROW, WIDE, NARROW_STEPS = 5.0, 20.0, 24
SHARES = (0.0, 2.0, 4.0)
FEW = 32


def correlation(distance):
    """(1 + distance / 8)^-4, by products, which take a tenth of the time of powers."""
    square = 1 + distance / 8
    square *= square
    square *= square
    return 1 / square


def slope(distance):
    """-0.5 (1 + distance / 8)^-5."""
    return -0.5 / (1 + distance / 8) * correlation(distance)


def correlations(weight, share, pairs):
    """Of rows whose squared distances along the axes are pairs [axes, ...]: that of all axes
    together, and in part the mean of those of each alone, where weights are doubled.
    """
    product = correlation(np.tensordot(weight, pairs, 1))
    if not share:
        return product
    alone = [correlation(2 * w * d) for w, d in zip(weight, pairs)]
    return (1 - share) * product + share * np.mean(alone, axis=0)


class Process:
    """cards of the slots, codes and scaled features [n0, slots] and targets [n0] of the prefix, its
    raw targets [n0]; the knee of targets; how many directions it may have; whether its correlation
    may be a mean over axes in part.
    """

    is_certain = False

    def __init__(self, cards, codes, z, y, raw, knee, directions=0, additive=False):
        self.cards, self.knee, self.y = cards, knee, np.asarray(y, dtype=float)
        self.directions = np.zeros((0, len(cards)))
        known = np.where(np.isnan(codes), 0.0, z)
        ties = [*known.T, *np.isnan(codes).T]
        self.order = np.lexsort([*ties[::-1], np.asarray(raw, dtype=float)])
        if directions > 0:
            self.directions = self.direct(codes, z, directions)
        self.points = np.array([self.point(c, v) for c, v in zip(codes, z)])       # [n0, axes, 2]
        known = np.concatenate([known, self.points[:, len(cards):, 0]], axis=1)
        self.theta = None
        for most, steps, rate in STEPS:
            if self.theta is not None and len(y) <= STEPS[0][0]:
                break
            chosen = self.spread(most)
            self.own, self.targets = self.points[chosen], self.y[chosen]
            self.apart = self.pairs(self.own, self.own)
            ends = []
            for theta in [self.theta] if self.theta is not None else self.starts(known[chosen]):
                self.theta = theta
                self.climb(steps, rate, 0 if most > STEPS[0][0] else NARROW_STEPS)
                ends.append(self.theta)
            self.theta = max(ends, key=self.value) if len(ends) > 1 else ends[0]
            if most == STEPS[0][0]:
                self.climb_pair(steps, rate)
            if additive and most == STEPS[0][0]:
                self.share_out(rate)
        self.apart = None               # large, and known again from the points
        self.carry()
        mean, variance = self.answer(self.phi, self.y)
        self.left_out = np.stack([soft_clip(mean, knee), 0.5 * np.log(variance)], axis=1)
        density = -0.5 * (np.log(2 * np.pi * variance) + (mean - self.y) ** 2 / variance)
        self.density = np.mean(density)
        self.quality = soft_clip(np.array([self.density]), knee)[0]

    def spread(self, most):
        n = len(self.y)
        m = min(n, most)
        return self.order[[(2 * i + 1) * n // (2 * m) for i in range(m)]]

    def direct(self, codes, z, most):
        """Weights of the slots' numbers, [directions, slots]."""
        numeric = [s for s, card in enumerate(self.cards) if not card.categorical]
        chosen = self.spread(1024)
        numbers = np.array([self.point(codes[i], z[i])[numeric, 0] for i in chosen])
        found = Directions(numbers.reshape(len(chosen), len(numeric)), self.y[chosen], most,
                           most).found
        out = np.zeros((len(found), len(self.cards)))
        for direction, weights in zip(out, found):
            direction[numeric] = weights
        return out

    def point(self, codes, z):
        """(number, label) of every slot, the label NaN where missing, which differs from all; then
        of every direction.
        """
        out = []
        for card, code, value in zip(self.cards, codes, z):
            if card.categorical:
                found = float(card.bins(code))
                out.append((0.0, found if found < card.bins.count - 1 else float("nan")))
            else:
                out.append((0.0, code) if np.isnan(code) else (value, 0.0))
        slots = np.array(out).reshape(len(self.cards), 2)
        along = self.directions @ slots[:, 0]
        return np.concatenate([slots, np.stack([along, np.zeros(len(along))], axis=1)])

    def pairs(self, a, b):
        """Squared distances along every axis, [axes, len(a), len(b)]."""
        label = np.array([2.0 if card.categorical else 1.0 for card in self.cards]
                         + [0.0] * len(self.directions))
        numbers = (a[:, None, :, 0] - b[None, :, :, 0]) ** 2
        labels = (a[:, None, :, 1] != b[None, :, :, 1]) * label
        return np.moveaxis(numbers + labels, 2, 0)

    # the weights and the noise

    def mean(self, theta):
        """Of the logs under their prior, and of the share's logit where theta has one."""
        axes = self.points.shape[1]
        return np.array([-np.log(axes)] * axes + [-3.0, 0.0])[:len(theta)]

    def unpack(self, theta):
        """Weights, noise and share."""
        axes = self.points.shape[1]
        share = 1 / (1 + np.exp(-theta[axes + 1])) if len(theta) > axes + 1 else 0.0
        return np.exp(theta[:axes]), np.exp(theta[axes]), share

    def system(self, theta):
        weight, noise, share = self.unpack(theta)
        known = correlations(weight, share, self.apart)
        np.fill_diagonal(known, 1)
        return known + noise * np.eye(len(known))

    def value(self, theta):
        n, system = len(self.targets), self.system(theta)
        variance = (self.targets @ np.linalg.solve(system, self.targets) + 1e-6) / n
        prior = np.sum(((theta - self.mean(theta)) / self.tau) ** 2)
        return -0.5 * (n * np.log(variance) + np.linalg.slogdet(system)[1] + prior)

    def gradient(self, theta):
        weight, noise, share = self.unpack(theta)
        inverse = np.linalg.inv(self.system(theta))
        b = inverse @ self.targets
        variance = (b @ self.targets + 1e-6) / len(b)
        pull = 0.5 * (np.outer(b, b) / variance - inverse)
        trace = np.trace(pull)
        np.fill_diagonal(pull, 0)
        along = weight[:, None, None] * self.apart
        slopes, last = slope(np.sum(along, 0)), []
        if share:
            slopes = (1 - share) * slopes + share * 2 * slope(2 * along) / len(along)
            last = [share * (1 - share) * np.sum(pull * (correlations(weight, 1.0, self.apart)
                                                         - correlations(weight, 0.0, self.apart)))]
        each = np.einsum("aij,aij->a" if share else "ij,aij->a", pull * slopes, along)
        return np.concatenate([each, [noise * trace], last]) - ((theta - self.mean(theta))
                                                                 / self.tau ** 2)

    def climb(self, steps, rate, narrow=0):
        first = second = np.zeros(len(self.theta))
        for k in range(1, steps + 1):
            self.tau = NARROW if k <= narrow else WIDE
            gradient = self.gradient(self.theta)
            first, second = 0.9 * first + 0.1 * gradient, 0.98 * second + 0.02 * gradient ** 2
            step = first / (1 - 0.9 ** k) / (np.sqrt(second / (1 - 0.98 ** k)) + 1e-8)
            self.theta = np.clip(self.theta + rate * np.sqrt((steps - k + 1) / steps) * step,
                                 -16.0 if len(self.targets) >= FEW else -13.0, 9.0)

    def starts(self, z):
        """The best one, the best one along directions, and that of groups if it is likelier."""
        self.tau = NARROW
        axes = z.shape[1]
        rough = [np.rint(2 ** 20 * self.roughness(z[:, s])) for s in range(len(self.cards))]
        finest = np.arange(axes) == np.argmin(rough)
        usual = -np.log(axes) * np.ones(axes)
        levels = [usual + shift for shift in (-1.0, 0.0, 1.5)]
        levels += [np.where(finest, fine, usual - 3.0) for fine in (1.5, 3.0, 4.5)]
        directions = np.arange(axes) >= len(self.cards)
        along = [np.where(directions, level, usual - 3.0) for level in (-1.0, 0.5, 2.0)]
        out = []
        for group in [levels, along] if directions.any() else [levels]:
            ways = [np.append(level, np.log(noise))
                    for level, noise in itertools.product(group, (0.03, 0.3))]
            out.append(ways[int(np.argmax([self.value(way) for way in ways]))])
        shares = [-1.0 if card.categorical else self.group_share(z[:, s])
                  for s, card in enumerate(self.cards)]
        if shares and max(shares) > 0:
            groups = np.arange(axes) == np.argmax(shares)
            ways = [np.append(np.where(groups, 7.5, usual + rest), np.log(noise))
                    for rest, noise in itertools.product((0.0, -3.0), (0.03, 0.3))]
            values = [self.value(way) for way in ways]
            if max(values) > self.value(out[0]):
                out.append(ways[int(np.argmax(values))])
        return out

    def climb_pair(self, steps, rate):
        """The steps from a start along a pair of axes, if it is likelier than their end so far."""
        axes, end = len(self.apart), self.theta
        if len(self.targets) < 16 or axes < 2:
            return
        rest = -np.log(axes) - 3.0 + np.zeros(axes)
        left = np.linalg.solve(self.system(end), self.targets)

        def start(pair, others, level):
            both = np.isin(np.arange(axes), pair)
            return np.append(np.where(both, level, others), np.log(0.03))

        ways = [(pair, others) for y, others in ((self.targets, rest), (left, end[:axes]))
                for pair in self.best_pairs(y)]
        best = ways[int(np.argmax([self.value(start(*way, 0.5)) for way in ways]))]
        ways = [start(*best, level) for level in (0.5, -1.0, 2.5)]
        values = [self.value(way) for way in ways]
        if max(values) > self.value(end) + 1:
            self.theta = ways[int(np.argmax(values))]
            self.climb(steps, rate, NARROW_STEPS)
            if not self.value(self.theta) > self.value(end):
                self.theta = end

    def best_pairs(self, y):
        """The two pairs of axes along both of which alike rows have the most alike targets y."""
        m = min(len(y), 64)
        rows = [(2 * i + 1) * len(y) // (2 * m) for i in range(m)]
        before, after = np.triu_indices(m, 1)
        y = y[rows] - np.mean(y[rows])
        product = y[before] * y[after]
        alike = correlation(8 * self.apart[:, rows][:, :, rows][:, before, after])
        pairs, scores = list(itertools.combinations(range(len(alike)), 2)), []
        for a, b in pairs:
            both = alike[a] * alike[b]
            spread, square = np.sum((both - both.mean()) ** 2), np.sum(product ** 2)
            told = spread > 1e-6 * np.sum(both ** 2) and square > 0
            score = np.sum((both - both.mean()) * product) / np.sqrt(spread * square) if told else 0
            scores.append(np.rint(2 ** 20 * score))
        return [pairs[k] for k in np.argsort(-np.array(scores), kind="stable")[:2]]

    def group_share(self, z):
        """The adjusted share of the targets' variance between rows of different cells."""
        values, group, count = np.unique(z, return_inverse=True, return_counts=True)
        n, y = len(z), self.targets
        if len(values) < 5 or len(values) > 0.75 * n or np.all(y == y[0]):
            return -1.0
        within = np.sum((y - (np.bincount(group, y) / count)[group]) ** 2) / (n - len(values))
        return np.rint(2 ** 20 * (1 - within / (np.sum((y - y.mean()) ** 2) / (n - 1)))) / 2 ** 20

    def share_out(self, rate):
        """Further steps with a share of means over axes, where it is likelier at once."""
        axes = self.points.shape[1]
        ways = [np.append(self.theta, logit) for logit in SHARES]
        ways.append(np.array([1.5 - np.log(axes)] * axes + [np.log(0.03), SHARES[1]]))
        values = [self.value(way) for way in ways]
        if self.points.shape[1] > 1 and max(values) > self.value(self.theta) + 1:
            self.theta = ways[int(np.argmax(values))]
            self.climb(12, rate)

    def roughness(self, z):
        values = sorted(set(z))
        if len(values) < 16:
            return 1.0
        groups = [self.targets[z == v] for v in values]
        between = sum((b.mean() - a.mean()) ** 2 for a, b in zip(groups, groups[1:]))
        chance = (sum(1 / len(a) + 1 / len(b) for a, b in zip(groups, groups[1:]))
                  * np.mean(self.targets ** 2))
        return between / max(chance, 1e-30)

    # the answers

    def carry(self):
        """The process that 256 rows carry, given all rows."""
        self.weight, self.noise, self.share = self.unpack(self.theta)
        self.carriers = self.points[self.spread(STEPS[-1][0])]
        known = correlations(self.weight, self.share, self.pairs(self.carriers, self.carriers))
        np.fill_diagonal(known, 1)
        self.unmixed = np.linalg.inv(np.linalg.cholesky(known + 1e-8 * np.eye(len(known))))
        self.phi = phi = self.features(self.points)
        own = self.apart_of(phi)
        self.inverse = np.linalg.inv(np.eye(len(known)) + (phi.T / own) @ phi)
        self.weights = self.inverse @ (phi.T @ (self.y / own))
        # the page's difference of squares, as a sum of them
        rest = self.y - phi @ self.weights
        square = np.sum(rest ** 2 / own) + self.weights @ self.weights
        self.variance = (square + 1e-6) / len(self.y)

    def features(self, points):
        """[len(points), carriers]"""
        known = correlations(self.weight, self.share, self.pairs(self.carriers, points))
        return (self.unmixed @ known).T

    def alike(self, points):
        """The correlations of points [n], as of different rows."""
        return correlations(self.weight, self.share, self.pairs(points, points))

    def apart_of(self, phi):
        return np.maximum(1 - np.sum(phi ** 2, axis=-1), 0.0) + self.noise

    def answer(self, phi, target=None):
        """Means and variances of rows of these features [n, carriers]; target [n] are those of
        prefix rows, which are then left out.
        """
        own, mean = self.apart_of(phi), phi @ self.weights
        share = np.sum((phi @ self.inverse) * phi, axis=1)
        if target is None:
            return mean, self.variance * (own + share)
        rest = self.left()
        return target - (target - mean) / rest, self.variance * own / rest

    def without(self):
        """Means and variances of the prefix rows, each without its own target."""
        return self.answer(self.phi, self.y)

    def left(self):
        """Of each prefix row, what its own answer leaves to the others."""
        share = np.sum((self.phi @ self.inverse) * self.phi, axis=1)
        return np.maximum(1 - share / self.apart_of(self.phi), 1e-9)

    def __call__(self, codes, z, row):
        """The numbers of a row; row: its place if it is one of the prefix, else None."""
        if row is None:
            mean, variance = self.answer(self.features(self.point(codes, z)[None]))
            said = [soft_clip(mean, self.knee)[0], 0.5 * np.log(variance[0])]
        else:
            said = list(self.left_out[row])
        return said + [0.5 * np.log(self.variance * self.noise), self.quality]
