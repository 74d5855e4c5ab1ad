"""By what missing cells shift targets (docs/model-format.md, section 5, "Shift").

Rows of the prefix that lack cells are asked about as queries are, with those of their donors; how
far their targets are from what the process says then, without them, is what absence says. Of one
task at a time, in float64.
"""
from dataclasses import dataclass

import numpy as np
import torch

from .split import REST

SUPPOSED = 4.0          # the variance of a shift beforehand, in that of the targets
FEATURES = 64           # that may shift, at most, and of them
TOGETHER = 8            # those that a query lacks together
OUTLYING = 3.0                   # deviations from what other rows foretell
CLEAR = 3.0             # nats by which rows as they are must be ahead for a cell to stay missing,
CLEAR_EACH = 0.06       # and for each of these rows


@dataclass
class Known:
    """What a process, or a line in its place, makes of the rows of a task: features phi [m, N] of
    all, what they do not reach own [N], weights [m, 1] and factor outer [m, m] of these, the
    variance [1], targets y [n] of the prefix as the process reads them.
    """

    phi: torch.Tensor
    own: torch.Tensor
    weights: torch.Tensor
    outer: torch.Tensor
    variance: torch.Tensor
    y: torch.Tensor
    noise: float = 1.0
    is_line: bool = False

    def compare(self, row, variants, weight):
        """How far the target of prefix row `row` is from what is said of it without its own target
        and as the rows `variants` of these weights [k], and the inverse of the variance of that;
        its log density as the row itself, the variances as one of the others, wide and narrow,
        their weights, and how far the target is from what is said of each.
        """
        weight = torch.as_tensor(weight, dtype=self.phi.dtype)
        own, phi = self.phi[:, row], self.phi[:, variants]
        mixed = phi @ weight
        half = torch.linalg.solve_triangular(self.outer, torch.stack([mixed, own], 1), upper=False)
        means = self.weights[:, 0] @ phi
        beyond = self.own[row]
        share = half[:, 1].square().sum()
        rest = (1 - share / beyond).clamp_min(1e-9)
        away = (self.y[row] - self.weights[:, 0] @ own) / rest
        means = means - half[:, 0] @ half[:, 1] / beyond * away
        mean, known = weight @ means, half[:, 0].square().sum()
        alone = log_normal(away, self.variance[0] * (beyond + share / rest))
        narrow = 1.0 if self.is_line else self.noise
        wide = 1.0 if self.is_line else (1 - mixed.square().sum()).clamp_min(0) + narrow
        wide, narrow = (self.variance[0] * (by + known) for by in (wide, narrow))
        spread = weight @ (means - mean).square()
        return (float(self.y[row] - mean), float(1 / (wide + spread)), float(alone),
                np.array([float(wide), float(narrow)]), weight.cpu().numpy(),
                (self.y[row] - means).cpu().numpy())


def log_normal(apart, variance):
    """But for a constant."""
    log = torch.log if torch.is_tensor(variance) else np.log
    return -0.5 * (apart ** 2 / variance + log(variance))


def parts_of(x, features, f, number):
    """Those of the columns that are parts of the same feature as f; x [N, F] raw, number [F] as in
    Tasks.
    """
    whole = np.where(x >= REST, x - REST, x)
    of = np.where(number < 0, np.arange(len(number)), number)
    return [g for g in features if of[f] == of[g] or (x[:, [f, g]] >= REST).any()
            and np.array_equal(whole[:, f], whole[:, g], equal_nan=True)]


def features_of(x, order, count, rows, number, kept=()):
    """Columns of the slots order [S], one of each feature, whose cells at most a quarter of the
    prefix's rows lack, count [S], but some do, and that are not kept.
    """
    out = []
    for f, lacking in zip(order, count):
        if 0 < 4 * lacking <= rows and f not in kept and not parts_of(x, out, f, number):
            out.append(f)
    return out[:min(FEATURES, rows // 4)]


def least_squares(lacking, apart, weight):
    """Covariance [S, S] and means [S] of the shifts of cells that rows lack [n, S]."""
    precision = (lacking.T * weight) @ lacking + np.eye(lacking.shape[1]) / SUPPOSED
    covariance = np.linalg.inv(precision)
    return covariance, covariance @ (lacking.T @ (weight * apart))


class Shifts:
    """features: columns; lacking [n, S] which of them rows of the prefix lack, and said, of each
    what Known.compare does. `tells` [S]: of which it is better not to lend cells to such rows.
    """

    def __init__(self, features, lacking, said):
        self.features, self.kept = features, ()
        self.tells = []
        if not features:
            return
        lacking = lacking.astype(float)
        apart, weight = np.reshape([one[:2] for one in said], (-1, 2)).T
        covariance, mean = least_squares(lacking, apart, weight)
        known = ((lacking @ covariance) * lacking).sum(1)
        rest = np.maximum(1 - known * weight, 1e-9)
        # One mistake among the targets shifts nothing that other rows do not.
        away = (apart - lacking @ mean) / rest
        weight = 1 / np.maximum(1 / weight, (away / OUTLYING) ** 2 - known / rest)
        mean = least_squares(lacking, apart, weight)[1]
        squares = lacking.T @ (weight * (apart - lacking @ mean) ** 2)
        scale = np.maximum((1 + squares) / np.maximum(lacking.sum(0), 1), 1)
        weight = weight / np.max(lacking * scale, axis=1, initial=1e-300)
        self.covariance, self.mean = least_squares(lacking, apart, weight)
        self.judge(lacking, apart, weight, said)

    def judge(self, lacking, apart, weight, said):
        """The surest cell first; of the others only rows that have it tell."""
        own = ((lacking @ self.covariance) * lacking).sum(1)
        share = own * weight
        rest = np.maximum(1 - share, 1e-9)
        mean, own = (lacking @ self.mean - share * apart) / rest, own / rest
        ahead = np.zeros((len(apart), 2))
        for i, (_, _, alone, variances, weights, away) in enumerate(said):
            each = log_normal(away - mean[i], variances[:, None] + own[i])
            most = each.max(1)
            ahead[i] = alone - most - np.log(np.exp(each - most[:, None]) @ weights)
        free = np.ones(len(apart), bool)
        while True:
            sums = (lacking.T @ np.where(free[:, None], ahead - CLEAR_EACH, 0)).min(1)
            best = int(np.argmax(sums))
            if sums[best] <= CLEAR:
                return
            self.tells.append(self.features[best])
            free &= lacking[:, best] == 0

    def of_query(self, query):
        """[k, 3] weights, means and variances of what the target of a query [F] may be shifted by,
        no shift first; [0, 3] where it lacks no cell that might.
        """
        asked = [j for j, f in enumerate(self.features) if np.isnan(query[f])]
        if not asked:
            return np.zeros((0, 3))
        known = np.linalg.inv(self.covariance[np.ix_(asked, asked)])
        rest, one = known @ self.mean[asked], np.ones(len(asked))
        known = known - np.eye(len(asked)) / SUPPOSED
        np.fill_diagonal(known, np.maximum(np.diagonal(known), 0))
        free, out, left = np.ones(len(asked), bool), [], 1.0
        mean = variance = 0.0
        for _ in range(min(len(asked), TOGETHER)):
            # One cell more at a time, that which shifts most surely given those before it.
            own = np.diagonal(known)
            odds = (rest ** 2 / (1 / SUPPOSED + own) - np.log1p(SUPPOSED * own)) / 2
            best = int(np.argmax(np.where(free, odds, -np.inf)))
            pivot = 1 / SUPPOSED + own[best]
            with np.errstate(over="ignore"):
                out.append((left / (1 + np.exp(odds[best])), mean, variance))
                left /= 1 + np.exp(-odds[best])
            mean, variance = (mean + one[best] * rest[best] / pivot,
                              variance + one[best] ** 2 / pivot)
            free[best] = False
            along = np.where(free, known[:, best], 0) / pivot
            rest, one = rest - along * rest[best], one - along * one[best]
            known = known - np.outer(along, np.where(free, known[best], 0))
        return np.array([*out, (left, mean, variance)])
