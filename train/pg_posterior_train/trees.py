"""Boosted trees of a classifier's prefix, of which its head takes a share (docs/model-format.md,
section 8, "Trees").

A network of smooth attention needs many rows for steps and combinations of cells. Three times the
rows of two folds grow trees that the third judges; sums are of whole numbers, and folds follow from
the cells, so that no order of the rows changes anything. Not part of training, as the share of the
logistic regression is not (model.py).
"""
import math

import numpy as np
import torch

from . import logistic, ridge
from .mix import mix
from .normalise import CATEGORY_BINS, MISSING_BIN
from .split import REST

EDGES, DEPTH, FOLDS, ROUNDS, RATE, OF_TREE = 31, 5, 3, 40, 0.2, 12
LEAST_ROWS, SLOPE, SHARPER = 512, 1.5, 1.5
SHARPNESS_STEPS, MOST_SHARPNESS = 6, 4.0
BINS = EDGES + 2
LOSS_UNIT = 2.0 ** 20
LEAST_OF_LEAF = 8             # rows with a number, and so many of a value on average


def bins(x, labels, n):
    """Bins [N, S] of cells x [N, S], of which the first n are of the prefix; labels [S]."""
    out = np.zeros(x.shape, dtype=np.int64)
    for s, column in enumerate(x.T):
        there = column[:n][~np.isnan(column[:n])]
        if labels[s]:
            levels, counts = np.unique(there, return_counts=True)
            # What a part does not tell apart comes last.
            order = np.lexsort((levels, np.where(levels < REST, -counts, 0)))
            own = (levels < REST).sum()
            rank = dict(zip(levels[order], np.minimum(np.arange(len(levels)), own
                                                      if own < len(levels) else len(levels))))
            out[:, s] = [min(rank[v], CATEGORY_BINS - 1) if v in rank else MISSING_BIN
                         for v in column]
        else:
            there = np.sort(there)
            cuts = there[((len(there) - 1) * np.arange(1, EDGES + 1) + 16) // 32
                         ] if len(there) else there
            out[:, s] = np.where(np.isnan(column), 0, 1 + np.searchsorted(cuts, column))
    return out


def folds(b, y):
    """The fold of every row of the prefix."""
    key = np.zeros(len(b), dtype=np.uint64)
    for column in b.T:
        key = mix(key ^ column.astype(np.uint64))
    out = np.empty(len(b), dtype=np.int64)
    out[np.lexsort((y, key))] = np.arange(len(b)) % FOLDS
    return out


def unknown(x, n):
    """Which rows of x [N, S] have a cell that the first n lack in a column of few values, [N]."""
    x, out = np.where(np.isnan(x), np.inf, x), np.zeros(len(x), dtype=bool)
    for column in x.T:
        values = np.unique(column[:n])
        if 1 < len(values) <= n // LEAST_OF_LEAF:
            out |= ~np.isin(column, values)
    return out


def log_softmax(z):
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def sharpness(z, y):
    """What scores z [n, C] of rows of classes y [n] are best multiplied by: Newton's steps."""
    found = 1.0
    for _ in range(SHARPNESS_STEPS):
        p = np.exp(log_softmax(found * z))
        mean = (p * z).sum(1)
        curve = np.rint(np.maximum((p * z * z).sum(1) - mean ** 2, 0) * LOSS_UNIT).sum()
        slope = np.rint((z[np.arange(len(y)), y] - mean) * LOSS_UNIT).sum()
        if curve > 0:
            found = min(max(found + slope / curve, 1 / MOST_SHARPNESS), MOST_SHARPNESS)
    return found


class Tree:
    """Of rows with bins b [n, S], slopes and curvatures [n, C] in whole numbers, units of 1/unit;
    leaves have a curvature of `least` or more.
    """

    def __init__(self, b, labels, slots, slope, curve, unit, least=1):
        self.labels, self.split = labels, []
        node, both = np.zeros(len(b), dtype=np.int64), np.concatenate([slope, curve], 1)
        kinds = labels[slots][None, :, None, None]
        for level in range(DEPTH):
            nodes = 2 ** level
            place = ((node[:, None] * len(slots) + np.arange(len(slots))) * BINS
                     + b[:, slots]).ravel()
            cells = np.stack([np.bincount(place, np.repeat(v, len(slots)),
                                          nodes * len(slots) * BINS) for v in both.T], -1)
            cells = cells.reshape(nodes, len(slots), BINS, -1)
            whole = cells.sum(2, keepdims=True)
            left = np.where(kinds, cells, cells.cumsum(2))[:, :, :-1]
            (gain, less), (more_gain, more), (base, _) = (
                self.gain(v, unit) for v in (left, whole - left, whole))
            enough = np.minimum(less, more) >= least * unit
            gain = np.where(enough, gain + more_gain - base, -np.inf)
            gain = gain.reshape(nodes, -1)
            best = gain.argmax(1)
            found = gain.max(1) > 1e-6
            self.split.append((np.where(found, slots[best // (BINS - 1)], -1), best % (BINS - 1)))
            node = self.step(level, b, node)
        sums = np.stack([np.bincount(node, v, 2 ** DEPTH) for v in both.T], -1) / unit
        slope, curve = np.split(sums, 2, axis=1)
        self.value = (-RATE * slope / (curve + 1)).astype(np.float32).astype(float)

    @staticmethod
    def gain(sums, unit):
        slope, curve = np.split(sums, 2, axis=-1)
        return ((slope / unit) ** 2 / (curve / unit + 1)).sum(-1), curve.sum(-1)

    def step(self, level, b, node):
        slot, at = (v[node] for v in self.split[level])
        own = b[np.arange(len(b)), np.maximum(slot, 0)]
        left = (slot < 0) | np.where(self.labels[np.maximum(slot, 0)], own == at, own <= at)
        return 2 * node + ~left

    def __call__(self, b):
        node = np.zeros(len(b), dtype=np.int64)
        for level in range(DEPTH):
            node = self.step(level, b, node)
        return self.value[node]


class Trees:
    """Of prefix rows with cells x [N, S], the first n, of slots that are labels or not [S], and
    their classes y [n], below `classes`; level [N, S] are the bins of labels, if not by identity.

    log_p [N, K] of all rows, and the mean loss of the prefix rows, each by its fold.
    """

    def __init__(self, x, labels, y, n, classes, level=None):
        b = bins(x, labels, n)
        b = b if level is None else np.where(labels, level, b)
        first = 1 if classes == 2 else 0      # of two classes only the second's score changes
        fold = np.concatenate([folds(b[:n], y), np.full(len(b) - n, -1)])
        unit = 2.0 ** (30 - math.ceil(math.log2(n)))
        onehot = np.eye(classes)[y]
        scores, losses = np.zeros((ROUNDS + 1, len(b), classes)), np.zeros(ROUNDS + 1)
        left_out = np.zeros((ROUNDS + 1, n, classes))
        for f in range(FOLDS):
            given, judged = (np.flatnonzero(v) for v in (fold[:n] != f, fold[:n] == f))
            share = np.log((np.bincount(y[given], minlength=classes) + 0.5)
                           / (len(given) + 0.5 * classes))
            score = np.tile(share - share[0] if first else share, (len(b), 1))
            for t in range(ROUNDS + 1):
                scores[t] += score / FOLDS
                left_out[t, judged] = score[judged]
                log_p = log_softmax(score)
                losses[t] += np.rint(-log_p[judged, y[judged]] * LOSS_UNIT).sum()
                if t == ROUNDS:
                    break
                p = np.exp(log_p[given, first:])
                score[:, first:] += Tree(
                    b[given], labels, self.slots(t, len(labels)),
                    np.rint((p - onehot[given, first:]) * unit),
                    np.rint(p * (1 - p) * unit), unit)(b)
        self.rounds = int(losses.argmin())
        self.loss = float(losses.min() / LOSS_UNIT / n)
        self.sharpness = float(sharpness(left_out[self.rounds], y))
        self.log_p = log_softmax(SHARPER * self.sharpness * scores[self.rounds])

    @staticmethod
    def slots(t, n):
        if n <= OF_TREE:
            return np.arange(n)
        return np.sort(mix(np.uint64(256 * t) + np.arange(n, dtype=np.uint64)).argsort()[:OF_TREE])


def qualities(features, most, config):
    """The qualities of the regressions [B, some] from the features of a row [B, numbers]."""
    at = features.shape[1] - logistic.opinions_width(most)
    found = [features[:, -1]]
    if config["embedder"]["x"].get("ridge", False):
        begin = at - ridge.opinions_width(most)
        found += [features[:, begin + most], features[:, begin + 2 * most + 2]]
    return torch.stack(found, 1)
