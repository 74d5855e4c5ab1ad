"""By what missing cells shift targets (docs/model-format.md section 5, "Shift"), by inverses.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

SUPPOSED = 4.0
FEATURES, TOGETHER = 64, 8


def least_squares(lacking, apart, weight):
    """Covariance and means of the shifts of each feature, for rows that lack these [n, features]
    and are so far apart from what donors say [n], each with the inverse of a variance.
    """
    precision = (lacking.T * weight) @ lacking + np.eye(lacking.shape[1]) / SUPPOSED
    covariance = np.linalg.inv(precision)
    return covariance, covariance @ (lacking.T @ (weight * apart))


class Shifts:
    """donors of a prefix whose raw rows are x [n0, F], y [n0]."""

    def __init__(self, donors, x, y):
        tokeniser = donors.tokeniser
        cards, n0 = tokeniser.cards, tokeniser.n0
        self.features = [f for f in dict.fromkeys(tokeniser.features)
                         if 0 < 4 * cards[f].count[-1] <= n0][:min(FEATURES, n0 // 4)]
        lacking = np.isnan(x[:, self.features])
        rows = [i for i in range(n0) if lacking[i].any() and len(donors.lent(x[i])[1]) > 0]
        found = np.array([self.compare(donors, x[i], y[i]) for i in rows]).reshape(-1, 2)
        lacking, (apart, weight) = lacking[rows].astype(float), found.T
        self.scale = tokeniser.scaling.y_scale
        if not self.features:
            return
        mean = least_squares(lacking, apart, weight)[1]
        squares = lacking.T @ (weight * (apart - lacking @ mean) ** 2)
        scale = np.maximum((1 + squares) / np.maximum(lacking.sum(axis=0), 1), 1)
        self.covariance, self.mean = least_squares(
            lacking, apart, weight / np.max(lacking * scale, axis=1, initial=1e-300))

    @staticmethod
    def compare(donors, row, y):
        """How far the target of a row of the prefix is from what the process says of it without its
        target and with the cells of its donors, and the inverse of the variance of that.
        """
        tokeniser = donors.tokeniser
        scaling, process = tokeniser.scaling, tokeniser.shifting
        variants, weights, _ = donors.lent(row)

        def features(x):
            codes, z = (part[:, tokeniser.slots] for part in (scaling.encode(x),
                                                              scaling.features(x)))
            return process.features(np.array([process.point(*pair) for pair in zip(codes, z)]))

        phi, own = features(variants), features(row[None])
        means, mixed = phi @ process.weights, weights @ phi
        y = (scaling.target if process.knee else scaling.scaled)(np.array([y]))
        share = np.sum((own @ process.inverse) * own) / process.apart_of(own)[0]
        away = (y - own @ process.weights)[0] / max(1 - share, 1e-9)
        mean = weights @ means - mixed @ process.inverse @ own[0] / process.apart_of(own)[0] * away
        variance = process.variance * (process.apart_of(mixed[None])[0]
                                       + mixed @ process.inverse @ mixed)
        return y[0] - mean, 1 / (variance + weights @ (means - weights @ means) ** 2)

    def of_query(self, query):
        """Weights, means and variances of what the target may be shifted by, in its own units; the
        first is no shift. None where the query lacks no cell that might.
        """
        asked = [j for j, f in enumerate(self.features) if np.isnan(query[f])]
        if not asked:
            return None
        precision = np.linalg.inv(self.covariance[np.ix_(asked, asked)])
        rest = precision @ self.mean[asked]
        known = precision - np.eye(len(asked)) / SUPPOSED
        np.fill_diagonal(known, np.maximum(np.diagonal(known), 0))
        taken, out, left = [], [], 1.0
        total = np.zeros(2)
        while len(taken) < len(asked) and len(taken) < TOGETHER:
            odds = {}
            inside = np.linalg.inv(known[np.ix_(taken, taken)] + np.eye(len(taken)) / SUPPOSED)
            for g in set(range(len(asked))) - set(taken):
                along = known[g, taken] @ inside
                a, b = known[g, g] - along @ known[taken, g], rest[g] - along @ rest[taken]
                odds[g] = (b ** 2 / (1 / SUPPOSED + a) - np.log1p(SUPPOSED * a)) / 2
            best = max(sorted(odds), key=odds.get)
            with np.errstate(over="ignore"):
                out.append((left / (1 + np.exp(odds[best])), *total))
                left /= 1 + np.exp(-odds[best])
            taken.append(best)
            inside = np.linalg.inv(known[np.ix_(taken, taken)] + np.eye(len(taken)) / SUPPOSED)
            total = np.array([np.sum(inside @ rest[taken]), np.sum(inside)])
        out.append((left, *total))
        weights, means, variances = np.array(out).T
        return weights, means * self.scale, variances * self.scale ** 2
