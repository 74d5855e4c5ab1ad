"""Scaling of inputs and targets (docs/model-format.md section 3) and the codes of categorical
columns (section 5).

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from sets import PowerColumn


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


class Codes:
    """Identities of one categorical column -> ranks among the identities of the prefix; unknown
    ones become missing.
    """

    def __init__(self, column):
        self.known, self.rank = sorted(set(column[~np.isnan(column)])), None

    def by_targets(self, column, y):
        """From now on, codes are ranks of bins by the mean of the targets y in them, of the prefix.
        """
        counts = {identity: np.sum(column == identity) for identity in self.known}
        told = {identity: np.rint(2 ** 20 * np.sum(y[column == identity]))
                for identity in self.known}
        frequent = sorted(self.known, key=lambda identity: (-counts[identity], told[identity],
                                                            identity))
        bins = [[identity] for identity in frequent[:15]] + [frequent[15:]] * (len(frequent) > 15)
        inside = [np.isin(column, members) for members in bins]
        mean = [np.rint(2 ** 20 * np.sum(y[rows]) / (np.sum(rows) + 1.5)) for rows in inside]
        order = sorted(range(len(bins)), key=lambda b: (mean[b], b))
        self.rank = {identity: float(place) for place, b in enumerate(order)
                     for identity in bins[b]}

    def __call__(self, column):
        if self.rank:
            return np.array([self.rank.get(value, np.nan) for value in column])
        rank = {identity: float(i) for i, identity in enumerate(self.known)}
        return np.array([rank.get(value, np.nan) for value in column])


class Scaling:
    """The frozen statistics of a prefix. x [n, F] and y [n] are raw; kinds [F] says which columns
    are categorical.
    """

    def __init__(self, config, kinds, x, y):
        self.config = config
        self.orients = config["embedder"].get("x", {}).get("orient", False)
        self.signs = np.ones(x.shape[1])
        self.codes = [Codes(x[:, f]) if kind == "categorical" else None
                      for f, kind in enumerate(kinds)]
        if config["embedder"].get("x", {}).get("codes") == "targets":
            self.y_center, self.y_scale = self.target_statistics(y)
            for f, codes in enumerate(self.codes):
                if codes:
                    codes.by_targets(x[:, f], self.target(y))
        raw, x = x, self.encode(x)
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
            self.turn_columns(raw, self.target(y))

    def encode(self, x):
        """Categorical cells become codes, numbers of columns that are turned their negatives."""
        columns = [codes(x[:, f]) if codes else x[:, f] * self.signs[f]
                   for f, codes in enumerate(self.codes)]
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

    def target(self, y):
        """What the network sees of raw targets [n]."""
        return soft_clip((y - self.y_center) / self.y_scale, self.config["target"].get("clip", 0))
