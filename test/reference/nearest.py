"""The nearest rows of the prefix (docs/model-format.md section 5, "Nearest rows"), by sorting all
distances and one dense solve for each row.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from process import correlation
from scaling import soft_clip
from trees import mix

FEWEST_ROWS, MOST_ROWS, MOST_SLOTS = 32, 2 ** 15, 3
JUDGED_BY, ANSWERED_BY = 12, 32         # neighbours
LEVELS, NOISE, REST = (4.0, 7.0, 10.0), 0.03, -3.0
STEPS, SWEEPS, BETTER = (1.2, 0.5), 2, 2.0 ** -10
LEAST, MOST = -16.0, 12.0               # of every log
AHEAD, TOGETHER = 0.05, 6.0              # nats a row, and of all rows
AT_ONCE = 128                           # rows answered at once, to spare memory


def judges(n):
    """How many of n rows judge parameters."""
    return min(n, max(32, min(128, 2 ** 17 // n)))


class Nearest:
    """A process given the nearest rows alone, that says what a process says; process: that of the
    prefix, whose rows, targets, weights and noise it begins with.
    """

    is_certain = False

    def __init__(self, process):
        self.cards, self.knee, self.y = process.cards, process.knee, process.y
        self.label = np.array([2.0 if card.categorical else 1.0 for card in self.cards])
        slots, n = len(self.cards), len(process.y)
        lying = sorted(range(n), key=mix)           # places among the sorted rows
        self.points = process.points[process.order[lying], :slots]
        self.targets = process.y[process.order[lying]]
        self.place = np.argsort(process.order[lying])   # where each row of the prefix lies
        self.judged = np.array([(2 * i + 1) * n // (2 * judges(n)) for i in range(judges(n))])
        axes = process.points.shape[1]
        self.search(np.append(process.theta[:slots], process.theta[axes]))
        self.weight, self.noise = np.exp(self.theta[:-1]), np.exp(self.theta[-1])
        self.tell()

    # the parameters

    def score(self, rough, theta):
        """The score and s^2, by rows that know of those alone which lie before them."""
        at = self.judged
        hidden = np.arange(len(self.targets)) >= at[:, None]
        mean, rest = self.neighbourly(rough, theta, self.points[at], JUDGED_BY, hidden)
        variance = (np.sum((self.targets[at] - mean) ** 2 / rest) + 1e-6) / len(at)
        return -0.5 * (np.log(variance) + np.mean(np.log(rest))), variance

    def starts(self, first):
        """Parameters that are tried of each kind, those of the process first."""
        yield first
        slots = len(self.cards)
        others = [first[:-1], np.full(slots, REST - np.log(slots))]
        for f, card in enumerate(self.cards):
            for level in LEVELS if not card.categorical else ():
                for rest in others if slots > 1 else others[:1]:
                    theta = np.append(rest, np.log(NOISE))
                    theta[f] = level
                    yield theta

    def better(self, rough, theta):
        """Whether these are better than the best so far, which they are from now on."""
        score, variance = self.score(rough, theta)
        if not score > self.best + BETTER:
            return False
        self.rough, self.theta, self.best, self.variance = rough, theta, score, variance
        return True

    def search(self, first):
        self.best = -np.inf
        for rough in (False, True):
            for theta in self.starts(first):
                self.better(rough, theta)
        for step in STEPS:
            for _ in range(SWEEPS):
                for k in range(len(first)):
                    for move in (step, -step):
                        while self.better(self.rough, self.moved(k, move)):
                            pass

    def moved(self, k, move):
        theta = self.theta.copy()
        theta[k] += move
        return np.clip(theta, LEAST, MOST)

    # the answers

    def distances(self, weight, a, b):
        """D of points a [..., slots, 2] and b [..., slots, 2], as of different rows."""
        numbers = (a[..., 0] - b[..., 0]) ** 2
        labels = (a[..., 1] != b[..., 1]) * self.label
        return np.sum(weight * (numbers + labels), axis=-1)

    def neighbourly(self, rough, theta, points, most, hidden=None, more=None):
        """Means and c of points [n, slots, 2] by their `most` nearest rows; hidden [n, rows]: those
        that they do not know of; more: points and targets of rows behind the prefix.
        """
        rows, y = self.points, self.targets
        if more is not None:
            rows, y = np.concatenate([rows, more[0]]), np.concatenate([y, more[1]])
        if hidden is None:
            hidden = np.zeros((len(points), len(rows)), dtype=bool)
        parts = [self.solved(rough, theta, points[at:at + AT_ONCE], most, rows, y,
                             hidden[at:at + AT_ONCE])
                 for at in range(0, len(points), AT_ONCE)]
        return (np.concatenate(part) for part in zip(*parts))

    def solved(self, rough, theta, points, most, rows, y, hidden):
        weight, noise = np.exp(theta[:-1]), np.exp(theta[-1])
        apart = self.distances(weight, points[:, None], rows[None]).astype(np.float32)
        apart[hidden] = np.inf
        near = np.argsort(apart, axis=1, kind="stable")[:, :most]
        # where there are fewer, what is not there is like nothing
        there = ~np.take_along_axis(hidden, near, axis=1)
        around, k = rows[near], near.shape[1]
        known = self.alike(rough, self.distances(weight, around[:, :, None], around[:, None]))
        known *= there[:, :, None] & there[:, None]
        known[:, np.arange(k), np.arange(k)] = 1 + noise
        along = there * self.alike(rough, self.distances(weight, points[:, None], around))
        a = np.linalg.solve(known, along[:, :, None])[:, :, 0]
        return np.sum(a * y[near], axis=1), np.maximum(1 - np.sum(a * along, axis=1), 0) + noise

    @staticmethod
    def alike(rough, distance):
        """Correlations of rows at these distances."""
        return np.exp(-np.sqrt(distance)) if rough else correlation(distance)

    def tell(self):
        """What it says of the rows of the prefix, in their own order."""
        own = self.place[:, None] == np.arange(len(self.y))
        mean, rest = self.neighbourly(self.rough, self.theta, self.points[self.place], ANSWERED_BY,
                                      own)
        variance = (np.sum((self.y - mean) ** 2 / rest) + 1e-6) / len(mean)
        self.variance = max(variance, self.variance)
        self.means, self.variances, self.rest = mean, self.variance * rest, self.noise / rest
        self.left_out = np.stack([soft_clip(mean, self.knee), 0.5 * np.log(self.variances)], axis=1)
        self.density = np.mean(-0.5 * (np.log(2 * np.pi * self.variances)
                                       + (mean - self.y) ** 2 / self.variances))
        self.quality = soft_clip(np.array([self.density]), self.knee)[0]

    def wins(self, process):
        """Whether it stands in the place of the process."""
        return self.density > process.density + AHEAD + TOGETHER / len(self.y)

    def without(self):
        """Means and variances of the prefix rows, each without its own target."""
        return self.means, self.variances

    def left(self):
        return self.rest

    def point(self, codes, z):
        """(number, label) of every slot, as a process has them."""
        out = []
        for card, code, value in zip(self.cards, codes, z):
            if card.categorical:
                found = card.bins(code)
                out.append((0.0, float(found) if found < card.bins.count - 1 else np.nan))
            else:
                out.append((0.0, np.nan) if np.isnan(code) else (value, 0.0))
        return np.array(out)

    def given(self, codes, z, before_codes, before_z, before_y):
        """The first two numbers of a row, given rows behind the prefix and their scaled targets,
        not clipped.
        """
        more = None
        if len(before_y):
            more = (np.array([self.point(*row) for row in zip(before_codes, before_z)]),
                    soft_clip(np.asarray(before_y, dtype=float), self.knee))
        mean, rest = self.neighbourly(self.rough, self.theta, self.point(codes, z)[None],
                                      ANSWERED_BY, more=more)
        return soft_clip(mean, self.knee)[0], 0.5 * np.log(self.variance * rest[0])

    def __call__(self, codes, z, row):
        """The numbers of a row; row: its place if it is one of the prefix, else None."""
        said = self.given(codes, z, [], [], []) if row is None else self.left_out[row]
        return [*said, 0.5 * np.log(self.variance * self.noise), self.quality]


def instead(process):
    """Nearest rows where they stand in the place of the process, else that."""
    if not (FEWEST_ROWS <= len(process.y) <= MOST_ROWS and 1 <= len(process.cards) <= MOST_SLOTS):
        return process
    nearest = Nearest(process)
    return nearest if nearest.wins(process) else process
