"""What the cells that a row has tell of those that it lacks (docs/model-format.md, section 5,
"Related cells").
"""
import numpy as np


def by_count(cells):
    """The different cells, most frequent first, those of equal counts in order, and the counts."""
    own = [cell for cell in cells if not np.isnan(cell)]
    different = sorted(dict.fromkeys(own), key=lambda cell: -own.count(cell))
    return different, [own.count(cell) for cell in different]


def least_gain(numbers, rows, among):
    return numbers * np.log(rows) + 2 * np.log(max(among, 1)) + 3


class Feature:
    """x [m]: its cells of the rows that lend, NaN where missing."""

    def __init__(self, x, label):
        self.x, self.label, self.there = x, label, ~np.isnan(x)
        different, counts = by_count(x)
        self.steps = len(different) <= 16 or 2 * len(different) < len(x)
        self.bins = np.full(len(x), -1)
        if label:
            self.labels = [a for a, count in zip(different[1:9], counts[1:9]) if count >= 3]
            self.bins[self.there] = [min(different.index(a), 15) for a in x[self.there]]
            raw = [(x == a).astype(float) for a in self.labels]
        else:
            own = x[self.there]
            self.bins[self.there] = [8 * np.sum(own < a) // len(own) for a in own]
            raw = [x] if len(different) > 1 else []
        self.mean = [np.mean(u[self.there]) for u in raw]
        self.sd = [np.std(u[self.there]) for u in raw]
        self.raw = raw
        self.entries = [self.standard(u, j) for j, u in enumerate(raw)]
        for u in self.entries:
            u[~self.there] = np.nan

    def standard(self, u, j):
        z = (u - self.mean[j]) / self.sd[j]
        return z if self.label else np.clip(z, -4, 4)

    def of(self, cell):
        """The entries of a row with this cell."""
        return [self.standard(float(cell == a) if self.label else cell, j)
                for j, a in enumerate(self.labels if self.label else self.mean)]


class Related:
    """x [m, F]: raw rows that lend, NaN where a cell is missing; features in the order of slots;
    labels [F]: which are categorical.
    """

    def __init__(self, x, features, labels):
        self.features, entries = {}, 0
        for f in features[:128]:
            feature = Feature(x[:, f], labels[f])
            entries += len(feature.entries)
            if entries > 128:
                break
            self.features[f] = feature
        self.entries = [(f, j) for f, own in self.features.items() for j in range(len(own.entries))]
        u = np.array([self.features[f].entries[j] for f, j in self.entries]).reshape(-1, len(x))
        there = ~np.isnan(u)
        self.u = u
        self.moments = np.nan_to_num(u) @ np.nan_to_num(u).T / np.maximum(
            there.astype(float) @ there.T, 1)

    def terms(self, own, rows, open_, least):
        """Entries that a regression of entry `own` takes, and the rows [n] that have them all."""
        chosen, n, among = [], len(rows), len(open_)
        along = np.zeros((0, len(self.u)))
        left, shared = np.diagonal(self.moments).copy(), self.moments[own].copy()
        while len(chosen) < min(24, n // 8) and left[own] > 1e-6:
            best, most = None, 0.0
            for e in open_:
                if e in chosen or left[e] <= 1e-3:
                    continue
                gain = min(shared[e] ** 2 / (left[e] * left[own]), 1 - 1e-9)
                if gain > most + 1e-9 and np.sum(~np.isnan(self.u[e, rows])) >= least:
                    best, most = e, gain
            if best is None or (-(n - len(chosen) - 2) * np.log1p(-most)
                                < least_gain(1, n, among)):
                break
            row = (self.moments[best] - along[:, best] @ along) / np.sqrt(left[best])
            along = np.vstack([along, row])
            left, shared = left - row ** 2, shared - row * row[own]
            chosen.append(best)
            rows = rows[~np.isnan(self.u[best, rows])]
        return chosen, rows

    def regression(self, f, rows, open_, least):
        """(terms, weights, share of the variance that is left, rows) or None."""
        feature = self.features[f]
        if feature.label or not feature.entries:
            return None
        own = self.entries.index((f, 0))
        terms, kept = self.terms(own, rows, open_, least)
        if not terms:
            return None
        u, y = self.u[np.ix_(terms, kept)].T, self.u[own, kept]
        u, y = u - u.mean(axis=0), y - y.mean()
        if not y @ y > 1e-9 * len(y):
            return None
        inverse = np.linalg.inv(u.T @ u + 0.01 * np.eye(len(terms)))
        weights = inverse @ (u.T @ y)
        away = y - u @ weights
        share = np.einsum("ij,jk,ik->i", u, inverse, u) + 1 / len(y)
        missed = np.sum((away / np.maximum(1 - share, 0.05)) ** 2) / (y @ y)
        if -len(y) * np.log(max(missed, 1e-9)) < least_gain(1, len(rows), len(open_)):
            return None
        return terms, weights, max(away @ away / (y @ y), 0.01), kept

    def told(self, g, values, rows, among):
        """The ratio of variances of values [n, k] of the rows [n], between the bins of feature g
        and in them.
        """
        bins = self.features[g].bins[rows]
        values, bins = values[bins >= 0], bins[bins >= 0]
        m, filled = len(bins), np.unique(bins)
        total = np.sum((values - values.mean(axis=0)) ** 2) if m else 0.0
        if len(filled) < 2 or m < 16 or m <= len(filled) or not total > 1e-9 * m:
            return 0.0
        inside = sum(np.sum((own - own.mean(axis=0)) ** 2)
                     for own in (values[bins == b] for b in filled))
        share = min(max(1 - inside / total, 0), 1 - 1e-9)
        if -m * np.log1p(-share) < least_gain(len(filled) - 1, m, among):
            return 0.0
        share = min(1 - (1 - share) * (m - 1) / (m - len(filled)), 0.99)
        return max(share / (1 - share), 0.0)

    def lend(self, query, has, missing, rows):
        """What rows [n] lend to a query that has the cells of the features `has` and misses those
        of `missing`: the rows, their weights, or None for equal ones, and {feature: their cells}.
        """
        missing = [f for f in self.features if f in missing]
        has = [f for f in self.features if f in has]
        if not missing or len(rows) < 16:
            return rows, None, {}
        least, fits = max(16, len(rows) // 2), {}
        open_ = [e for e, (f, _) in enumerate(self.entries) if f in has]
        for f in missing:
            fits[f] = self.regression(f, rows, open_, least)
            rows = rows if fits[f] is None else fits[f][3]
        asked = {f: self.features[f].of(query[f]) for f in has}
        distance, moved, ratio = np.zeros(len(rows)), {}, dict.fromkeys(has, 0.0)
        for f in missing:
            feature = self.features[f]
            if not feature.label and not feature.entries:
                continue
            said = own = 0
            if fits[f] is not None:
                terms, weights, rest, _ = fits[f]
                said = weights @ self.u[np.ix_(terms, rows)]
                own = weights @ [asked[self.entries[e][0]][self.entries[e][1]] for e in terms]
            if feature.label:
                values = np.eye(16)[feature.bins[rows]]
            else:
                values = (feature.entries[0][rows] - said)[:, None]
            for g in has:
                ratio[g] = max(ratio[g], self.told(g, values, rows, len(has)))
            if fits[f] is None:
                continue
            if feature.steps or len(moved) == 16:
                distance += 4 * (own - said) ** 2 / rest
            else:
                there = feature.x[feature.there]
                moved[f] = np.clip(feature.x[rows] + (own - said) * feature.sd[0], there.min(),
                                   there.max())
        for g in has:
            feature = self.features[g]
            if ratio[g] == 0:
                continue
            if feature.label:
                apart = np.where(feature.x[rows] == query[g], 0.0, 2.0)
                absent = 1.0
            else:
                apart, absent = (feature.entries[0][rows] - asked[g][0]) ** 2, asked[g][0] ** 2 + 1
            distance += ratio[g] * np.where(feature.there[rows], apart, absent)
        if not any(ratio.values()) and len(moved) == sum(fit is not None for fit in fits.values()):
            return rows, None, moved
        distance, scale = distance - distance.min(), 0.5
        weights = np.exp(-scale * distance)
        while np.sum(weights) ** 2 < 8 * np.sum(weights ** 2):
            scale /= 1.25 ** 2
            weights = np.exp(-scale * distance)
        kept = weights >= 1e-6
        return (rows[kept], weights[kept] / np.sum(weights[kept]),
                {f: cells[kept] for f, cells in moved.items()})
