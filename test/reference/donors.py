"""Rows of the prefix that lend cells to queries (docs/model-format.md section 5, "Donors"), and
the joining of their answers (section 8).

SPDX-License-Identifier: PostgreSQL
"""
from statistics import NormalDist

import numpy as np

from heads import Bars, Classes, Mixture
from related import Related
from shift import Shifts

ROWS, FEWEST_DRAWN = 256, 5


class Donors:
    """tokeniser: that of the prefix, whose raw rows are x [n0, F], y [n0]; `most` donors of a
    query; whether a missing cell may shift the target.
    """

    def __init__(self, tokeniser, x, y, most, shift=False):
        self.tokeniser, self.most = tokeniser, most
        z = tokeniser.scaling.features(x)
        cells = z[:, tokeniser.slots].T
        ties = [*np.nan_to_num(cells), *np.isnan(cells)]
        order = np.lexsort([*ties[::-1], y * np.sign(tokeniser.scaling.y_scale)])
        m = min(len(y), ROWS)
        self.x = x[[order[(2 * i + 1) * len(y) // (2 * m)] for i in range(m)]]
        self.levels = len(np.unique(y)) <= min(16, len(y) / 2)
        codes = tokeniser.scaling.encode(self.x)
        whole = np.where(np.isnan(codes[:, :self.x.shape[1]]), np.nan, self.x)
        self.related = Related(whole, self.features(), [
            kind == "categorical" for kind in tokeniser.scaling.kinds[:self.x.shape[1]]])
        self.kept = []
        self.shifts = Shifts(self, x, y) if shift else None

    def told(self, card):
        """The weight of a row as it is, that lacks this column's cell."""
        count, excess = card.count[-1], np.atleast_1d(card.sum[-1])
        if count == 0:
            return 0.0
        if self.tokeniser.classes:
            filled = card.share > 0
            square, degrees = (np.sum(excess[filled] ** 2 / card.share[filled]) / count,
                               np.sum(filled) - 1)
        else:
            square, degrees = excess[0] ** 2 / count, 1
        known = 0.5 * count / (count + 4)
        odds = np.exp((square * count / (count + 1) - degrees * np.log(1 + count)) / 2)
        return known + (1 - known) * (1 - 1 / (1 + odds))

    def lacks(self, query):
        """Features whose cells are lent."""
        codes = self.tokeniser.scaling.encode(query[None])[0]
        return list(dict.fromkeys(f for f in self.tokeniser.features if np.isnan(codes[f])
                                  and 4 * self.tokeniser.cards[f].count[-1] <= self.tokeniser.n0
                                  and not (np.isnan(query[f]) and f in self.kept)))

    def features(self):
        """Those of the slots, in their order, each once."""
        return list(dict.fromkeys(self.tokeniser.features))

    def new_labels(self, query):
        """Features of which the query has a label that the prefix does not have, and how probably
        two rows that may lend have the same label.
        """
        found = [f for f in self.lacks(query)
                 if (self.tokeniser.classes or not self.levels) and not np.isnan(query[f])]
        alike = []
        for f in found:
            _, counts = np.unique(self.x[~np.isnan(self.x[:, f]), f], return_counts=True)
            alike.append(np.sum(counts ** 2) / max(np.sum(counts) ** 2, 1))
        kept = [(f, q) for f, q in zip(found, alike) if 0 < q < 1][:8]
        return [f for f, _ in kept], [q for _, q in kept]

    def shifted(self, answer, query):
        """The answer of the variants where missing cells may shift the target."""
        if self.shifts is None or len(self.lent(query)[1]) == 0:
            return answer
        found = self.shifts.of_query(query)
        if found is None:
            return answer
        weights, means, variances = found
        return join([Mixture(answer.weights, answer.means + mean,
                             np.hypot(answer.sds, np.sqrt(variance)))
                     for mean, variance in zip(means, variances)], weights)

    def lent(self, query):
        """Variants [k, F] of a query with the cells of rows that have all which it lacks, their
        weights [k], and how many of them, the first ones, are a sample; none where it lacks
        nothing, or no row has all of that.
        """
        lacks = self.lacks(query)
        rows = np.flatnonzero(~np.isnan(self.x[:, lacks]).any(axis=1)) if lacks else []
        sample = 0
        if len(rows) == 0:
            return query[None][:0], np.ones(0), sample
        codes = self.tokeniser.scaling.encode(query[None])[0]
        rows, weights, moved = self.related.lend(
            query, [f for f in self.features() if f not in lacks and not np.isnan(codes[f])],
            [f for f in lacks if np.isnan(query[f])], rows)
        able = self.x[rows]
        for f, own in moved.items():
            able[:, f] = own
        cells = [tuple(row) for row in able[:, lacks]]
        different = list(dict.fromkeys(cells))
        shares = np.full(len(cells), 1 / len(cells)) if weights is None else weights
        if len(different) <= self.most:
            if len(different) == len(cells) >= FEWEST_DRAWN and not self.levels:
                sample = len(cells)
            weights = np.array([sum(w for w, cell in zip(shares, cells) if cell == one)
                                for one in different])
        else:
            places = (2 * np.arange(self.most) + 1) * len(cells) // (2 * self.most)
            if weights is not None:
                places = np.minimum(np.searchsorted(
                    np.cumsum(shares), (np.arange(self.most) + 0.5) / self.most, side="right"),
                    len(cells) - 1)
            different = [cells[i] for i in places]
            weights = np.full(self.most, 1 / self.most)
            sample = 0 if self.levels else self.most
        variants = np.repeat(query[None], len(different), axis=0)
        variants[:, lacks] = different
        return variants, weights, sample

    def __call__(self, query):
        """The same with the query as it is: alone where it has no donors, or, without shifts, last
        with a weight of its own.
        """
        variants, weights, sample = self.lent(query)
        if len(weights) == 0:
            return query[None], np.ones(1), sample
        if self.shifts is not None:
            return variants, weights, sample
        told = max((self.told(self.tokeniser.cards[f]) for f in self.lacks(query)
                    if np.isnan(query[f])), default=0.0)
        if told > 0:
            variants = np.concatenate([variants, query[None]])
            weights = np.append(weights * (1 - told), told)
        return variants, weights, sample


def widened(answers, sample, more):
    """Answers of which the first `sample` stand for what lies between them, with these deviations
    more [k].
    """
    if np.any(more > 0):
        return [Mixture(a.weights, a.means, np.hypot(a.sds, s))
                for a, s in zip(widened(answers, sample, np.zeros(1)), more)]
    if sample == 0 or not isinstance(answers[0], Mixture):
        return answers
    means = np.array([answer.mean() for answer in answers[:sample]])
    near = np.sort(abs(means[:, None] - means), axis=1)[:, np.minimum([1, 2, 4], sample - 1)]
    with np.errstate(divide="ignore"):
        apart = np.minimum(near[:, 2], 8 / (1 / near[:, :2]).sum(axis=1))
    return [Mixture(a.weights, a.means, np.hypot(a.sds, s / 2))
            for a, s in zip(answers, apart)] + answers[sample:]


def told_apart(labels, alike):
    """Of columns of labels [k, L] those that tell other rows apart than all before them do, and
    their alike [L].
    """
    ways = [tuple((column[:, None] == column).ravel()) for column in labels.T]
    return [(labels[:, i], alike[i]) for i, way in enumerate(ways) if way not in ways[:i]]


def apart_as_new(answers, weights, labels, alike):
    """The deviations [k] that answers of these weights get, whose rows have other labels [k, L]
    where the query has new ones; alike [L]: how probably two rows have the same.
    """
    if len(answers) < 2 or not isinstance(answers[0], Mixture):
        return np.zeros(len(answers))
    means, more = np.array([a.mean() for a in answers]), np.zeros(len(answers))
    places = [NormalDist().inv_cdf((k + 0.5) * 0.6180339887498949 % 1)
              for k in range(len(answers))]
    for column, q in told_apart(labels, alike):
        of = [column == label for label in np.unique(column)]
        shares = np.array([np.sum(weights[own]) for own in of])
        each = np.array([np.sum((weights * means)[own]) for own in of]) / shares
        between = np.sum(shares * (each - np.sum(weights * means)) ** 2)
        ninth = 2 / 9 / max(1 / q - 1, 1)
        root = np.maximum(1 - ninth + np.sqrt(ninth) * np.array(places), 0)
        known = 1 / np.maximum(root ** 3, 1 / 16)
        more += between * np.maximum((1 + q) / (1 - q) * known - 1, 0)
    return np.sqrt(more)


def as_new_class(joined, answers, weights, labels, alike, share):
    """Classes of a query with new labels, as joined from answers of these weights, whose rows have
    other labels [k, L]; alike [L] as above; share [C]: that each class has before anything is
    known.
    """
    if len(answers) < 2 or not isinstance(joined, Classes):
        return joined
    said, out = np.array([a.params[:len(share)] for a in answers]), joined.params.copy()
    all_of = weights @ said
    for column, q in told_apart(labels, alike):
        between = 0.0
        for label in np.unique(column):
            own = column == label
            rows = np.sum(weights[own])
            between += rows * np.sum((weights[own] @ said[own] / rows - all_of) ** 2)
        total = np.sum(all_of * (1 - all_of))
        if between > 0 and total > 0:
            other = min(4 * between / total, 1) * 3 / (3 + 1 / q)
            out[:len(share)] += other * (share - out[:len(share)])
    return Classes(out)


def merged(a, b):
    """Components (weights, means, variances) a and b, by pairs, as one each."""
    weight = a[0] + b[0]
    mean = (a[0] * a[1] + b[0] * b[1]) / weight
    variance = (a[0] * (a[2] + (a[1] - mean) ** 2) + b[0] * (b[2] + (b[1] - mean) ** 2)) / weight
    return np.array([weight, mean, variance])


def losses(parts):
    """What merging loses, of each part [3, n] with the next."""
    def entropy(of):
        return of[0] * np.log(of[2])

    a, b = parts[:, :-1], parts[:, 1:]
    return entropy(merged(a, b)) - entropy(a) - entropy(b)


def join(answers, weights):
    """One distribution in place of several of a kind."""
    one = answers[0]
    if len(answers) == 1:
        return one
    if isinstance(one, Classes):
        return Classes(sum(w * a.params for w, a in zip(weights, answers)))
    if isinstance(one, Bars):
        return Bars(sum(w * a.masses for w, a in zip(weights, answers)), one.borders,
                    one.half_normal)
    count = len(one.weights)
    parts = sorted(((share * w, mean, sd ** 2) for a, share in zip(answers, weights)
                    for w, mean, sd in zip(a.weights, a.means, a.sds) if share * w > 0),
                   key=lambda part: (part[1], part[2], part[0]))
    parts = np.array(parts).T
    while parts.shape[1] > count:
        i = np.argmin(losses(parts))
        parts[:, i] = merged(parts[:, i], parts[:, i + 1])
        parts = np.delete(parts, i + 1, axis=1)
    nothing = np.array([[0.0], parts[1, -1:], parts[2, -1:]])
    weights, means, variances = np.append(
        parts, np.repeat(nothing, count - parts.shape[1], axis=1), axis=1)
    return Mixture(weights, means, np.sqrt(variances))
