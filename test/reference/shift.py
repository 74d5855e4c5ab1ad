"""By what missing cells shift targets (docs/model-format.md section 5, "Shift"), by inverses.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

SUPPOSED = 4.0
CLEAR, CLEAR_EACH = 3.0, 0.06
FEATURES, TOGETHER = 64, 8
OUTLYING = 3.0


def least_squares(lacking, apart, weight):
    """Covariance and means of the shifts of each feature, for rows that lack these [n, features]
    and are so far apart from what donors say [n], each with the inverse of a variance.
    """
    precision = (lacking.T * weight) @ lacking + np.eye(lacking.shape[1]) / SUPPOSED
    covariance = np.linalg.inv(precision)
    return covariance, covariance @ (lacking.T @ (weight * apart))


def log_normal(apart, variance):
    return -0.5 * (apart ** 2 / variance + np.log(2 * np.pi * variance))


class Shifts:
    """donors of a prefix whose raw rows are x [n0, F], y [n0]. `kept` are the features whose
    missing cells are not lent.
    """

    def __init__(self, donors, x, y):
        donors.kept = self.kept = []
        self.fit(donors, x, y)
        if self.kept:
            donors.kept = list(self.kept)
            self.fit(donors, x, y)

    def fit(self, donors, x, y):
        tokeniser = donors.tokeniser
        cards, n0 = tokeniser.cards, tokeniser.n0
        self.features = [f for f in dict.fromkeys(tokeniser.features)
                         if 0 < 4 * cards[f].count[-1] <= n0
                         and f not in self.kept][:min(FEATURES, n0 // 4)]
        lacking = np.isnan(x[:, self.features])
        rows = [i for i in range(n0) if lacking[i].any() and len(donors.lent(x[i])[1]) > 0]
        found = [self.compare(donors, x[i], y[i]) for i in rows]
        lacking, (apart, weight) = lacking[rows].astype(float), np.array(
            [one[:2] for one in found]).reshape(-1, 2).T
        self.scale = tokeniser.scaling.y_scale
        if not self.features:
            return
        covariance, mean = least_squares(lacking, apart, weight)
        known = np.sum((lacking @ covariance) * lacking, axis=1)
        rest = np.maximum(1 - known * weight, 1e-9)
        away = (apart - lacking @ mean) / rest
        weight = 1 / np.maximum(1 / weight, (away / OUTLYING) ** 2 - known / rest)
        mean = least_squares(lacking, apart, weight)[1]
        squares = lacking.T @ (weight * (apart - lacking @ mean) ** 2)
        scale = np.maximum((1 + squares) / np.maximum(lacking.sum(axis=0), 1), 1)
        weight = weight / np.max(lacking * scale, axis=1, initial=1e-300)
        self.covariance, self.mean = least_squares(lacking, apart, weight)
        if not donors.kept:
            self.keep(lacking, apart, weight, [one[2:] for one in found])

    def keep(self, lacking, apart, weight, said):
        """Which cells rows lacking [n, features] had better keep missing."""
        own = np.sum((lacking @ self.covariance) * lacking, axis=1)
        share = own * weight
        rest = np.maximum(1 - share, 1e-9)
        ahead = np.zeros((len(apart), 2))
        for i, (alone, variances, weights, away) in enumerate(said):
            mean = (lacking[i] @ self.mean - share[i] * apart[i]) / rest[i]
            each = log_normal(away - mean, np.array(variances)[:, None] + own[i] / rest[i])
            most = each.max(axis=1)
            lent = most + np.log(np.exp(each - most[:, None]) @ weights)
            ahead[i] = alone - lent
        kept, lacking = [], lacking.astype(bool)
        while True:
            free = ~lacking[:, kept].any(axis=1)
            sums = (lacking.T @ np.where(free[:, None], ahead - CLEAR_EACH, 0)).min(axis=1)
            if not np.any(sums > CLEAR):
                break
            kept.append(int(np.argmax(sums)))
        self.kept = [self.features[j] for j in kept]

    @staticmethod
    def compare(donors, row, y):
        """How far the target of a row of the prefix is from what the process says of it without its
        target and with the cells of its donors, and the inverse of the variance of that; its log
        density by the row as it is, the variances with a donor's cells, the donors' weights, and
        how far the target is from what each says.
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
        beyond = process.apart_of(own)[0]
        share = np.sum((own @ process.inverse) * own)
        rest = max(1 - share / beyond, 1e-9)
        away = (y - own @ process.weights)[0] / rest
        means = means - mixed @ process.inverse @ own[0] / beyond * away
        known = mixed @ process.inverse @ mixed
        variance = process.variance * (process.apart_of(mixed[None])[0] + known)
        spread = weights @ (means - weights @ means) ** 2
        return (y[0] - weights @ means, 1 / (variance + spread),
                log_normal(away, process.variance * (beyond + share / rest)),
                (variance, process.variance * (process.noise + known)), weights, y[0] - means)

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
