"""A process given the nearest rows of the prefix alone, which takes the place of the process where
it predicts rows left out better (docs/model-format.md, section 5, "Nearest rows").

All in float64, without gradients; one task after the other.
"""
import math

import numpy as np
import torch

from . import record
from .clip import soft_clip, unclip
from .mix import mix
from .process import BINS, REST, SMALLEST, correlation, spread_rows

FEWEST_ROWS, MOST_ROWS, MOST_SLOTS = 32, 2 ** 15, 3
JUDGED_BY, ANSWERED_BY = 12, 32  # neighbours
JUDGES = (32, 128)               # rows, at least and at most,
JUDGED_PAIRS = 2 ** 17           # and pairs of one of these and a row, between
LEVELS = (4.0, 7.0, 10.0)        # log weights that are tried of each slot of numbers, with
NOISE = 0.03
STEPS, SWEEPS = (1.2, 0.5), 2    # of each parameter
BETTER = 2.0 ** -10              # in the score
LEAST, MOST = -16.0, 12.0        # of every log
AHEAD, TOGETHER = 0.05, 6.0      # nats a row that it must be ahead, and of all rows
PAIRS_AT_ONCE = 2 ** 20


def lying(rows):
    """The places of sorted rows in the order in which they lie."""
    return torch.from_numpy(mix(np.arange(rows, dtype=np.uint64)).argsort())


def judging(rows):
    """Where the rows lie that judge parameters."""
    some = min(rows, max(JUDGES[0], min(JUDGES[1], JUDGED_PAIRS // rows)))
    return torch.div((2 * torch.arange(some) + 1) * rows, 2 * some, rounding_mode="floor")


def alike(rough, distance):
    """Correlations of rows at these squared distances."""
    return (-distance.sqrt()).exp() if rough else correlation(distance)[0]


class Points:
    """Rows of a task in its slots: z (0 where missing), bins [N, F]; categorical [F]."""

    def __init__(self, z, bins, categorical):
        self.z = torch.where(categorical, torch.zeros_like(z), z)
        self.bins = torch.where(categorical | (bins == BINS - 1), bins, torch.zeros_like(bins))
        self.missing, self.categorical = bins == BINS - 1, categorical

    def distances(self, a, b, weight):
        """Those of different rows, a and b places that broadcast; weight [F]."""
        total = 0
        for s, w in enumerate(weight.tolist()):
            apart = (self.z[a, s] - self.z[b, s]).square()
            unlike = ((self.bins[a, s] != self.bins[b, s]) | self.missing[a, s]
                      | self.missing[b, s])
            total = total + w * (apart + unlike * (2.0 if self.categorical[s] else 1.0))
        return total


def nearest(distance, hidden, most):
    """Columns [n, k] of the smallest distances [n, m], rounded to single precision, the first of
    equal ones, and whether they are there [n, k]: hidden [n, m] columns are not, or None. They are
    in ascending order.
    """
    columns = torch.arange(distance.shape[1], device=distance.device)
    # bits of numbers that are not negative are in their order
    key = (distance.float().view(torch.int32).long() << 32) | columns
    last = torch.iinfo(torch.int64).max
    if hidden is not None:
        key = key.masked_fill(hidden, last)
    found, near = key.topk(min(most, len(columns)), dim=1, largest=False, sorted=True)
    return near, found < last


class Nearest:
    """points (Points) of all rows of a task, y [N] targets; order [n] the rows of the prefix,
    sorted; first [F + 1] the logs of the process's weights and noise.
    """

    def __init__(self, points, y, order, first):
        self.points, self.y, device = points, y, y.device
        self.rows = order[lying(len(order)).to(device)]
        self.judges = judging(len(order)).to(device)
        self.score = -math.inf
        for rough in (False, True):
            for theta in self.starts(first):
                self.better(rough, theta)
        for step in STEPS:
            for k in SWEEPS * list(range(len(first))):
                for move in (step, -step):
                    while self.better(self.rough, self.moved(k, move)):
                        pass

    def starts(self, first):
        """Logs that are tried of each kind, those of the process first."""
        yield first
        slots = len(first) - 1
        rests = [first[:-1], torch.full_like(first[:-1], REST - math.log(slots))]
        for f in (~self.points.categorical).nonzero()[:, 0].tolist():
            for level in LEVELS:
                for rest in rests[:1 + (slots > 1)]:
                    theta = torch.cat([rest, rest.new_tensor([math.log(NOISE)])])
                    theta[f] = level
                    yield theta

    def moved(self, k, move):
        theta = self.theta.clone()
        theta[k] += move
        return theta.clamp(LEAST, MOST)

    def judged(self, rough, theta):
        """(score, s^2) of what rows say that know of those alone which lie before them."""
        own = self.rows[self.judges]
        mean, rest = self.answer(rough, theta, own, JUDGED_BY, before=self.judges)
        variance = (((self.y[own] - mean).square() / rest).sum() + SMALLEST) / len(own)
        return float(-0.5 * (variance.log() + rest.log().mean())), variance

    def better(self, rough, theta):
        """Whether these are better than the best so far, which they are from now on."""
        score, variance = self.judged(rough, theta)
        if not score > self.score + BETTER:
            return False
        self.rough, self.theta, self.score, self.variance = rough, theta, score, variance
        return True

    def say(self, asked, own=None, more=()):
        """Means and c of rows by the best parameters; arguments as of answer()."""
        return self.answer(self.rough, self.theta, asked, ANSWERED_BY, own, more=more)

    def answer(self, rough, theta, asked, most, own=None, before=None, more=()):
        """Means and c [n] of rows asked [n], where they lie themselves own [n] if they are of the
        prefix, or, if they know of no rows behind these, before [n]; `more`: rows that lie behind
        those of the prefix.
        """
        rows = torch.cat([self.rows, *more])
        columns, size = torch.arange(len(rows), device=rows.device), PAIRS_AT_ONCE // len(rows)
        parts = []
        for at in range(0, len(asked), size):
            hidden = None
            if own is not None:
                hidden = columns == own[at:at + size, None]
            elif before is not None:
                hidden = columns >= before[at:at + size, None]
            parts.append(self.solve(rough, theta, asked[at:at + size], most, rows, hidden))
        return (torch.cat(part) for part in zip(*parts))

    def solve(self, rough, theta, asked, most, rows, hidden):
        weight, noise = theta[:-1].exp(), theta[-1].exp()
        distance = self.points.distances(asked[:, None], rows, weight)
        near, there = nearest(distance, hidden, most)
        # what is not there is like nothing
        along = alike(rough, distance.gather(1, near)) * there
        near = rows[near]
        known = alike(rough, self.points.distances(near[:, :, None], near[:, None], weight))
        known *= there[:, :, None] & there[:, None]
        known.diagonal(dim1=1, dim2=2).fill_(1).add_(noise)
        a = torch.linalg.solve(known, along)
        return (a * self.y[near]).sum(1), (1 - (a * along).sum(1)).clamp_min(0) + noise


def say(task, prefix, chain):
    """(means, variances [N] of all rows, noise's variance, q [n]) of a task's Nearest; those of the
    queries of a chain (process_chain.Chain) given the rows of the chain before them.
    """
    asked = torch.arange(len(task.y), device=task.y.device)
    mean, rest = task.say(asked[:prefix], task.rows.argsort())
    y, noise = task.y[:prefix], task.theta[-1].exp()
    variance = (((y - mean).square() / rest).sum() + SMALLEST) / prefix
    variance, leaning = torch.maximum(variance, task.variance), noise / rest
    if len(asked) > prefix:
        later = task.say(asked[prefix:])
        mean, rest = (torch.cat(pair) for pair in zip((mean, rest), later))
    for rows, queries in [] if chain is None else chain.groups():
        if len(rows):
            rows, queries = rows.to(asked), queries.to(asked)
            mean[queries], rest[queries] = task.say(queries, more=[rows])
    return mean, variance * rest, variance * noise, leaning


@torch.no_grad()
def instead(said, theta, z, bins, used, categorical, y_input, prefix, clip, chain=None,
            records=None):
    """What a process says [B, N, 4], in tasks where nearest rows predict better what they say.

    theta [B, S + 1] the logs of the process's weights of the slots and of its noise; records, a
    list, what the process has of its record, gets that of nearest rows; other arguments as of
    process.opinions().
    """
    if not FEWEST_ROWS <= prefix <= MOST_ROWS:
        return said
    said, y, wide = said.clone(), y_input.double(), z.double()
    order = spread_rows(y[:, :prefix], wide[:, :prefix], bins[:, :prefix] == BINS - 1, prefix)
    others = unclip(said[:, 0, 3].double(), clip)
    for b in (used.sum(1) <= MOST_SLOTS).nonzero()[:, 0].tolist():
        own = used[b]
        task = Nearest(Points(wide[b][:, own], bins[b][:, own], categorical[b, own]), y[b],
                       order[b], theta[b][torch.cat([own, own.new_ones(1)])])
        mean, spread, noise, rest = say(task, prefix, chain)
        away = (mean - y[b])[:prefix].square() / spread[:prefix]
        density = (-0.5 * ((2 * math.pi * spread[:prefix]).log() + away)).mean()
        if not density > others[b] + AHEAD + TOGETHER / prefix:
            continue
        numbers = [soft_clip(mean, clip), 0.5 * spread.log(), (0.5 * noise.log()).expand_as(mean),
                   soft_clip(density, clip).expand_as(mean)]
        said[b] = torch.stack(numbers, -1).to(said.dtype)
        if records is not None:
            records[0][b] = record.squares(away[None], rest[None])[0]
            records[1][b] = record.learnt(task.theta[None, :-1],
                                          own.new_ones(1, int(own.sum())))[0]
    return said
