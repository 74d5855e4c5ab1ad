"""Numbers that name groups of rows (docs/model-format.md section 5, "Named groups").

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

WANTED = 3.0
CLASS_AHEAD, CLASS_TOGETHER = 0.02, 4.0
AHEAD, REGRESSION_AHEAD, TOGETHER, BEHIND = 0.03, 0.1, 6.0, 0.05


def names_groups(column, left, deviations=5.0, degrees=1):
    """Whether the numbers of a column [n0], NaN where missing, name groups of rows whose targets a
    regression leaves `left` [n0, C] of, that have so many degrees of freedom.
    """
    present = ~np.isnan(column)
    groups = [left[present & (column == v)] for v in np.unique(column[present])]
    x = [v for v, g in zip(np.unique(column[present]), groups) if len(g) > 1]
    groups = [g for g in groups if len(g) > 1]
    n, m = np.array([len(g) for g in groups]), np.sum(present)
    k, rows = len(n), np.sum(n)
    if k < 6 or 2 * rows < m or 2 * n.max() > m:
        return False
    mean, all_of_them = np.array([g.mean(axis=0) for g in groups]), np.concatenate(groups)
    within = sum(np.sum((g - g.mean(axis=0)) ** 2) for g in groups)
    variance = max(within / (rows - k), 1e-6 * np.sum(np.var(all_of_them, axis=0)))
    x = np.array(x)
    share = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
    weights = np.stack([share ** 2, np.ones(k - 2), (1 - share) ** 2])
    apart = np.sum((share * mean[:-2].T + (1 - share) * mean[2:].T - mean[1:-1].T) ** 2)

    def by_chance(of):
        return np.sum(weights * np.stack([of[:-2], of[1:-1], of[2:]]))

    noise = max(by_chance(variance / n),
                by_chance(np.array([np.sum(np.var(g, axis=0, ddof=1)) / len(g) for g in groups])))
    between = np.sum(n * (mean - all_of_them.mean(axis=0)).T ** 2) - (k - 1) * variance
    between /= rows - np.sum(n ** 2) / rows
    rough = (apart - noise) / np.sum(weights)
    return bool(0 < between and 0.3 * between < rough and apart > noise * (
        1 + deviations * np.sqrt((3.9 / (k - 2) + 2 / (rows - k)) / degrees)))


def regressions(tokeniser, codes, z, targets):
    """Means [n0] of the linear regression, each row left out, and the mean log density of the
    better one; zeros and None without.
    """
    means, densities = [np.zeros(len(targets))], []
    for ridge in tokeniser.ridges:
        mean, leverage = ridge.answer(codes, z, targets)
        variance = ridge.noise * (1 + leverage + np.sum(np.isnan(codes) * ridge.absent, axis=1))
        means.append(mean)
        densities.append(np.mean(-0.5 * (np.log(2 * np.pi * variance)
                                         + (targets - mean) ** 2 / variance)))
    return means[min(1, len(means) - 1)], max(densities, default=None)


def with_labels(make, kinds, x, y):
    """The tokeniser of the prefix x [n0, F], y [n0]: make(named) makes one in which these features
    stand as labels, too; it has labels of numbers that name groups if these help.
    """
    plain = make(())
    if plain.classes:
        return class_labels(plain, make, kinds, x, y)
    if plain.processes[0].density > WANTED:
        return plain

    def said(tokeniser):
        scaling, slots = tokeniser.scaling, tokeniser.slots
        return regressions(tokeniser, scaling.encode(x)[:, slots], scaling.features(x)[:, slots],
                           scaling.target(y))

    means, density = said(plain)
    left = plain.scaling.target(y) - means
    named = [f for f, kind in enumerate(kinds)
             if kind == "numeric" and names_groups(x[:, f], left[:, None])]
    if not named:
        return plain
    labelled = make(named)
    ahead = labelled.processes[0].density - plain.processes[0].density
    together = TOGETHER / len(y)
    if ahead > max(AHEAD, together):
        return labelled
    more = -np.inf if density is None else said(labelled)[1] - density
    return labelled if ahead > -BEHIND and more > max(REGRESSION_AHEAD, together) else plain


def class_labels(plain, make, kinds, x, y):
    """The same of a classifier; y [n0] are the places of classes."""
    own = (y[:, None] == np.arange(plain.classes)).astype(float)
    degrees = np.sum(own.any(axis=0)) - 1
    left = own - np.exp(plain.logistics[0].left_out)
    named = [f for f, kind in enumerate(kinds) if kind == "numeric" and degrees > 0
             and names_groups(x[:, f], left, 3.0, degrees)]
    if not named:
        return plain
    labelled = make(named)
    ahead = labelled.logistics[0].quality - plain.logistics[0].quality
    return labelled if ahead > max(CLASS_AHEAD, CLASS_TOGETHER / len(y)) else plain
