"""Scaling of inputs and targets (docs/model-format.md section 3) and the codes of categorical
columns (section 5).

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from digests import digests
from sets import PowerColumn
from trees import MASK, mix


def soft_clip(z, knee):
    """Section 3's clip; a knee of 0 means none."""
    if not knee:
        return z
    size = np.abs(z)
    return np.where(size <= knee, z, np.sign(z) * (knee + np.log1p(np.maximum(size - knee, 0))))


def moments(values):
    """Mean and standard deviation, in a unit in which squares have room."""
    if values.min() == values.max():
        return values[0], 0.0
    exponent = int(np.frexp(np.abs(values).max())[1])
    scaled = np.ldexp(values, -exponent)
    scaled_mean = scaled.mean()
    scaled_mean += (scaled - scaled_mean).mean()
    return np.ldexp(scaled_mean, exponent), np.ldexp(np.sqrt(np.mean((scaled - scaled_mean) ** 2)),
                                                     exponent)


def adjusted_share(groups, values):
    """The adjusted share of the variance of values [n, C] that lies between groups [n]."""
    n, inverse = len(values), np.unique(groups, return_inverse=True)[1]
    k = inverse.max() + 1
    center = values - values.mean(axis=0)
    sums = np.stack([np.bincount(inverse, column, k) for column in center.T], axis=1)
    total = np.sum(center ** 2)
    if total <= 1e-12 or n <= k:
        return 0.0, k
    between = np.sum((sums.T ** 2) / np.bincount(inverse))
    return 1 - (1 - between / total) * (n - 1) / (n - k), k


class Codes:
    """Identities of one categorical column -> ranks among the identities of the prefix; unknown
    ones become missing.

    column [n0] has the prefix's cells; where codes follow the targets y [n0] are these, scaled, and
    digest [n0] is of its rows, but of numbers that name something.
    """

    OWN = 15

    def __init__(self, column, y=None, digest=None):
        self.column, self.y = column, y
        self.known = sorted(set(column[~np.isnan(column)]))
        counts = {identity: np.sum(column == identity) for identity in self.known}
        self.counts, self.told = counts, dict.fromkeys(self.known, 0)
        company = dict.fromkeys(self.known, 0)
        if y is not None:
            for identity, of_row in zip(column, digest or []):
                company[identity] = (company.get(identity, 0) + of_row) & MASK
            self.told = {identity: np.rint(2 ** 20 * np.sum(y[column == identity]))
                         for identity in self.known}
        self.frequent = sorted(self.known, key=lambda identity: (
            -counts[identity], self.told[identity], company[identity], identity))
        self.set_bins(self.frequent[:self.OWN])

    def set_bins(self, own):
        """Bins of these identities, and another of all others; codes follow."""
        rest = [identity for identity in self.frequent if identity not in set(own)]
        self.bins = [[identity] for identity in own] + [rest] * bool(rest)
        if self.y is not None:
            self.by_targets()
        else:
            self.rank = {identity: float(i) for i, identity in enumerate(self.known)}

    def by_targets(self):
        """Codes are ranks of bins by the mean of the targets in them."""
        inside = [np.isin(self.column, members) for members in self.bins]
        mean = [np.rint(2 ** 20 * np.sum(self.y[rows]) / (np.sum(rows) + 1.5)) for rows in inside]
        order = sorted(range(len(self.bins)), key=lambda b: (mean[b], b))
        self.rank = {identity: float(place) for place, b in enumerate(order)
                     for identity in self.bins[b]}

    def bin_of(self):
        """The bin of every code."""
        return {self.rank[identity]: b for b, members in enumerate(self.bins)
                for identity in members}

    def __call__(self, column):
        return np.array([self.rank.get(value, np.nan) for value in column])

    def draw_lots(self):
        """Of labels of equal counts."""
        if self.y is not None:                  # ties by lot
            lot = {identity: mix(place) for place, identity in enumerate(self.frequent)}
            self.frequent.sort(key=lambda identity: (-self.counts[identity], lot[identity]))
            self.set_bins(self.frequent[:self.OWN])

    def told_apart(self):
        """The labels that parts tell apart, most frequent first."""
        if 2 * len(self.known) > sum(self.counts.values()):
            return [identity for identity in self.frequent if self.counts[identity] > 1]
        return self.frequent

    def all_parts(self, most):
        """The columns that tell all labels apart, `most` at most."""
        if len(self.known) <= self.OWN + 1:
            return [self]
        if most > 1:
            self.draw_lots()
        apart = self.told_apart()
        count = max(1, min(-(-len(apart) // self.OWN), most))
        if count == 1:
            return [self]
        return [Part(self, (self.frequent if i == 0 else apart)[self.OWN * i:][:self.OWN])
                for i in range(count)]

    def parts(self, most, targets):
        """The codes of the columns that this one is split into, `most` at most; targets [n0, C]
        are scaled, or the indicators of classes.
        """
        if len(self.known) <= self.OWN + 1:
            return [self]
        self.draw_lots()
        apart = self.told_apart()
        count = min(-(-len(apart) // self.OWN), most)
        place = {identity: i for i, identity in enumerate(apart)}
        groups = [-1 if np.isnan(cell) else place.get(cell, len(apart)) for cell in self.column]
        e, k = adjusted_share(np.array(groups), targets)
        free = max(np.sum(targets.any(axis=0)) - 1, 1)
        n = len(targets)
        if count < 2 or n <= k or e <= (1 - e) * 2 * np.sqrt(
                2 * (k - 1) / ((n - 1) * (n - k) * free)):
            return [self]
        return [Part(self, (self.frequent if i == 0 else apart)[self.OWN * i:][:self.OWN])
                for i in range(count)]


class Part(Codes):
    """One of the columns that a column of many labels is split into: it tells these apart."""

    def __init__(self, whole, own):
        self.column, self.y, self.known = whole.column, whole.y, whole.known
        self.frequent = whole.frequent
        self.set_bins(own)
        if self.y is None:
            self.rank = {identity: float(sorted(own).index(identity)) if identity in own
                         else float(len(own)) for identity in self.known}


def middle_of(v):
    """The mean of the two middle ones of sorted numbers, of the middle one twice."""
    low, high = v[(len(v) - 1) // 2], v[len(v) // 2]
    return low if low == high else 0.5 * low + 0.5 * high


def near_cells(config, kinds, x):
    """A function that makes far cells of rows [n, F] missing, by the prefix x [n0, F]."""
    times = config["inputs"].get("far", 0)
    bounds = np.array([(-np.inf, np.inf) if kind == "categorical" else far_bounds(column, times)
                       for kind, column in zip(kinds, x.T)]).reshape(-1, 2)

    def near(rows):
        rows = np.asarray(rows, dtype=float)
        return np.where((rows < bounds[:, 0]) | (rows > bounds[:, 1]), np.nan, rows)
    return near


def far_bounds(column, times):
    """(low, high) of the numbers of a column that do not count as missing (section 3, "Far
    cells").
    """
    v = np.sort(column[~np.isnan(column)])
    m = len(v)
    bounds = -np.inf, np.inf
    if times == 0 or m < 8:
        return bounds
    middle = middle_of(v)
    if 2 * np.sum(v == middle) > m:
        return bounds
    order = np.argsort(-abs(v - middle), kind="stable")
    apart = abs(v - middle)[order]
    for k in range(1, m // 8 + 1):
        few = len(np.unique(v[order[:k]])) <= 2 or k <= m // 64
        if np.inf > apart[k - 1] >= times * apart[k] > 0 and few:
            reach = np.sqrt(apart[k]) * np.sqrt(apart[k - 1])
            bounds = middle - reach, middle + reach
    return bounds


def near_targets(config, y, x=None):
    """A function that moves far targets of rows [n] to the limit, by those of the prefix y [n0]
    whose cells are x [n0, F] (section 3, "Far targets").
    """
    times, m = config["target"].get("far", 0), len(y)
    if times == 0 or m == 0:
        return lambda targets: targets
    v = np.sort(y)
    middle = middle_of(v)
    apart = np.sort(abs(v - middle))[::-1]
    reach, limit = np.inf, 0.0
    for k in range(1, -(-m // 256) + 1):
        if k + 8 <= m and apart[k + 7] > 0 and np.inf > apart[k - 1] >= times * apart[k]:
            reach, limit = np.sqrt(apart[k - 1]) * np.sqrt(apart[k]), apart[k]
    far = abs(y - middle) > reach
    for column in [] if x is None or not far.any() else x.T:
        own, others = set(column[far]), set(column[~far & ~np.isnan(column)])
        if (len(own) == len(others) == 1 and own != others and not np.isnan(column[far]).any()
                and 2 * np.sum(np.isnan(column[~far])) < np.sum(~far) and apart[0] <= 50 * limit):
            reach = np.inf

    def near(targets):
        targets = np.asarray(targets, dtype=float)
        return np.where(abs(targets - middle) > reach,
                        middle + np.sign(targets - middle) * limit, targets)
    return near


class Scaling:
    """The frozen statistics of a prefix. x [n, F] and y [n] are raw, but that far targets have been
    moved by `near`; kinds [F] says which columns are categorical, named which of the others stand
    as labels, too.
    """

    def __init__(self, config, kinds, x, y, near, named=()):
        self.config, self.near = config, near
        self.orients = config["embedder"].get("x", {}).get("orient", False)
        told = digest = None
        if config["embedder"].get("x", {}).get("codes") == "targets":
            self.y_center, self.y_scale = self.target_statistics(y)
            told = self.compared(y)
            digest = digests(x, kinds, told)
        self.codes = [Codes(x[:, f], told, digest) if kind == "categorical" else None
                      for f, kind in enumerate(kinds)]
        self.kinds, self.sources = list(kinds), list(range(len(kinds)))
        labels = {f: Codes(x[:, f], told) for f in named}
        self.split(config["embedder"].get("x", {}).get("split"), y, labels)
        self.signs = np.ones(len(self.kinds))
        raw, x = x[:, self.sources], self.encode(x)
        features = x.shape[1]
        self.center, self.scale = np.zeros(features), np.ones(features)
        if config["inputs"]["scaling"] == "fixed":
            self.center, self.scale = np.array(config["inputs"]["center"]), np.array(
                config["inputs"]["scale"])
        elif config["inputs"]["scaling"] == "prefix":
            for f in range(features):
                self.center[f], self.scale[f] = self.column_statistics(x[:, f])
        self.powers = None
        if config["inputs"]["scaling"] == "power":
            self.powers = [PowerColumn(x[:, f]) for f in range(features)]
        if config["target"].get("count", 1) > 1:
            each = [self.target_statistics(y[:, d], d) for d in range(y.shape[1])]
            self.y_center, self.y_scale = (np.array(part) for part in zip(*each))
        else:
            self.y_center, self.y_scale = self.target_statistics(y)
        if self.orients:
            self.turn_columns(raw, self.compared(y))

    def split(self, most, y, labels):
        """Columns of many labels become several: the first in place, the others, and all of the
        numbers' labels, at the end.
        """
        if not most and not labels:
            return
        if self.config["target"]["scaling"] == "classes":
            targets = (y[:, None] == np.arange(int(y.max()) + 1)).astype(float)
        else:
            self.y_center, self.y_scale = self.target_statistics(y)
            targets = self.target(y)[:, None]
        for f, codes in list(enumerate(self.codes)):
            parts = codes.parts(most, targets) if codes and most else [codes]
            if f in labels:
                parts += labels[f].all_parts(most or 1)
            self.codes[f] = parts[0]
            self.codes += parts[1:]
            self.kinds += ["categorical"] * (len(parts) - 1)
            self.sources += [f] * (len(parts) - 1)

    def encode(self, x):
        """Categorical cells become codes, numbers of columns that are turned their negatives; the
        columns that features are split into come after all features.
        """
        columns = [codes(x[:, f]) if codes else x[:, f] * sign
                   for f, codes, sign in zip(self.sources, self.codes, self.signs)]
        return np.stack(columns, axis=1) if columns else x

    def turn_columns(self, x, y):
        """Turn those columns of x [n, F] that fall with the targets y [n]."""
        z = self.features(x)
        for f, codes in enumerate(self.codes):
            present = ~np.isnan(z[:, f])
            a, b = z[present, f], y[present]
            if codes or len(a) == 0 or a.min() == a.max() or b.min() == b.max():
                continue
            if np.rint(2 ** 20 * np.corrcoef(a, b)[0, 1]) < 0:
                self.signs[f], self.center[f] = -1.0, -self.center[f]

    @staticmethod
    def column_statistics(column):
        """(center, scale); scale is infinite, so that z is 0, where all values are equal."""
        column = column[~np.isnan(column)]
        if len(column) == 0 or column.min() == column.max():
            return 0.0, np.inf
        return moments(column)

    def target_statistics(self, y, which=None):
        target = self.config["target"]
        if target["scaling"] in ("none", "classes"):
            return 0.0, 1.0
        if target["scaling"] == "fixed":
            both = target["center"], target["scale"]
            return both if which is None else tuple(value[which] for value in both)
        center, deviation = moments(y)
        scale = abs(center) if np.all(y == y[0]) else max(deviation, 1e-11 * abs(center))
        scale = scale if scale >= 1e-100 else 1.0
        if self.orients and np.rint(2 ** 20 * np.mean(((y - center) / scale) ** 3)) < 0:
            scale = -scale
        return center, scale

    def features(self, x):
        """What the network sees of raw features [n, F]; missing cells are NaN."""
        x = self.encode(x)
        if self.powers:
            x = np.stack([power(x[:, f]) for f, power in enumerate(self.powers)], axis=1)
            return soft_clip(x, self.config["inputs"].get("clip", 0))
        return soft_clip(np.where(np.abs(x) > 1e300, x / self.scale - self.center / self.scale,
                                  (x - self.center) / self.scale),
                                  self.config["inputs"].get("clip", 0))

    def compared(self, y):
        """What codes and orientations compare: targets [n], of a classifier less places."""
        return -y if self.config["target"]["scaling"] == "classes" else self.target(y)

    def scaled(self, y):
        """Raw targets [n], far ones at their limit, in units of the scale."""
        return (self.near(y) - self.y_center) / self.y_scale

    def target(self, y):
        """What the network sees of raw targets [n]."""
        return soft_clip(self.scaled(y), self.config["target"].get("clip", 0))
