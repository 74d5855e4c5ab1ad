"""Boosted trees of a regression's prefix, to which the means of its answers move, and what they
move to where targets have few values (docs/model-format.md, section 8, "Trees of numbers" and
"Few values").

Grown as those of classes (trees.py). Not part of training: rows of a batch have one length, and
trees are grown of each task by itself.
"""
import math

import numpy as np
import torch

from .far import near_targets
from .normalise import cells, level_bins, oriented, scale_targets
from .line import is_certain
from .process import NUMBERS
from .trees import (FOLDS, LEAST_OF_LEAF, LEAST_ROWS, LOSS_UNIT, ROUNDS, Tree, Trees, bins, folds,
                    unknown)

FARTHEST, FARTHEST_ERROR = 8.0, 32.0
SLOPE_OF_SHARE = 2.0
FARTHEST_TILT, BISECTIONS = 3.0, 60
FEW_ROWS, MOST_VALUES, LEAST_APART = 256, 16, 1e-12
SPLINES = -NUMBERS - 3        # where a row has the mean of the second regression


class NumberTrees:
    """Of prefix rows with cells x and bins b [N, S], the first n, of slots that are labels or not
    [S], and their scaled targets z [n].

    said [N] of all rows, NaN of those with a cell that the prefix lacks in a slot of few values;
    the mean loss of the prefix rows, each by its fold; and how many rounds are good.
    """

    def __init__(self, x, b, labels, z, n):
        z = np.clip(z, -FARTHEST, FARTHEST)
        fold = folds(b[:n], z)
        unit = 2.0 ** (25 - math.ceil(math.log2(n)))
        said, losses = np.zeros((ROUNDS + 1, len(b))), np.zeros(ROUNDS + 1)
        for f in range(FOLDS):
            given, judged = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            score = np.full(len(b), np.rint(z[given] * LOSS_UNIT).sum() / LOSS_UNIT / len(given))
            for t in range(ROUNDS + 1):
                said[t] += score / FOLDS
                error = np.clip(score[:n] - z, -FARTHEST_ERROR, FARTHEST_ERROR)
                losses[t] += np.rint(error[judged] ** 2 / 2 * LOSS_UNIT).sum()
                if t < ROUNDS:
                    slope = np.rint(error[given, None] * unit)
                    score = score + Tree(b[given], labels, Trees.slots(t, len(labels)), slope,
                                         np.full_like(slope, unit), unit, LEAST_OF_LEAF)(b)[:, 0]
        self.rounds = int(losses.argmin())
        self.loss = float(losses.min() / LOSS_UNIT / n)
        self.said = np.where(unknown(x, n), np.nan, said[self.rounds])

    def share(self, left_out, z, most):
        """How far means move to what the trees say, where a process says left_out [n] of targets z
        [n].
        """
        lost = np.rint((left_out - np.clip(z, -FARTHEST, FARTHEST)) ** 2 / 2 * LOSS_UNIT).sum()
        if self.rounds == 0 or lost == 0:
            return 0.0
        return min(max(0.5 + SLOPE_OF_SHARE * (1 - self.loss * LOSS_UNIT * len(z) / lost), 0), most)


def tilts(mixture, wanted):
    """The eta [...] for which the mean of mixtures whose weights are multiplied by exp(eta mean) is
    nearest to wanted [...].
    """
    mean, sd = mixture.moments()
    away = mixture.mean - mean[..., None]
    high = FARTHEST_TILT / sd
    low = -high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        weight = (mixture.log_weight + middle[..., None] * away).softmax(-1)
        below = (weight * away).sum(-1) < wanted - mean
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2


def opinions_weights(y, targets, said):
    """The weights [2] of what the process and the second regression say [n, 2] of rows left out for
    which their sum is nearest to the scaled, clipped targets [n]: none is negative, and they are at
    most 1 together. None where the raw targets y [n] have many values, or there are few rows
    ("Few values").
    """
    n = len(y)
    if n < FEW_ROWS or not 2 <= len(np.unique(y)) <= min(n // LEAST_OF_LEAF, MOST_VALUES):
        return None
    (pp, pr), (_, rr) = said.T @ said
    py, ry = said.T @ targets
    apart, determinant = pp - 2 * pr + rr, pp * rr - pr * pr
    found = [(0.0, 0.0), (min(max(py / pp, 0), 1), 0.0), (0.0, min(max(ry / rr, 0), 1))]
    if apart > LEAST_APART * (pp + rr):
        along = min(max((py - ry - pr + rr) / apart, 0), 1)
        found.append((along, 1 - along))
    if determinant > LEAST_APART * pp * rr:
        inside = (py * rr - ry * pr) / determinant, (ry * pp - py * pr) / determinant
        if min(inside) >= 0 and sum(inside) <= 1:
            found.append(inside)
    return np.array(min(found, key=lambda w: ((targets - said @ np.array(w)) ** 2).sum()))


def pull(mixture, tasks, inputs, rows, statistics, config):
    """Change the weights of mixtures [B, M], a gated head's answers to the rows of `tasks` after
    the first `rows`, so that means move to what trees say, and where targets have few values to
    what regressions say.

    inputs: what the network sees of these tasks.
    """
    head = config["head"]
    few = head.get("few_values", 0) if statistics >= FEW_ROWS else 0
    if not head.get("trees", 0) or statistics < LEAST_ROWS and not few:
        return
    known = near_targets(tasks.y, statistics, config, tasks.x)
    z, y_input, *_ = scale_targets(known, statistics, config, tasks.x)
    z = z.double().numpy()[:, :statistics]
    grown = [None] * len(z)
    if statistics >= LEAST_ROWS:
        grown = grow(tasks, y_input, z, rows, statistics, config)
    for task, trees in enumerate(grown):
        own = inputs.x[task, :statistics, -NUMBERS:].double()
        wanted, share = 0.0, 0.0
        if is_certain(own[0, 3]):
            continue
        if trees is not None:
            share = trees.share(own[:, 0].numpy(), z[task], head["trees"])
            wanted = torch.from_numpy(trees.said[statistics:]) if share > 0 else 0.0
        weights = None
        if few:
            process, splines = (inputs.x[task, :, at].double() for at in (-NUMBERS, SPLINES))
            said = torch.stack([process, splines], 1)
            weights = opinions_weights(known[task, :statistics].numpy(),
                                       y_input[task, :statistics].double().numpy(),
                                       said[:statistics].numpy())
        if weights is not None:
            both = said[rows:] @ torch.from_numpy(weights)
            wanted, share = (1 - few) * share * wanted + few * both, 1 - (1 - share) * (1 - few)
            wanted = wanted / share
        if share > 0:
            mixture.log_weight[task] = moved(mixture[task], wanted, share)


def grow(tasks, y_input, z, rows, statistics, config):
    """The trees of every task, None of those without slots; z [B, n] scaled targets."""
    found = []
    cells(tasks, y_input, statistics, config, found)
    x = oriented(tasks, y_input, statistics, config).double().numpy()
    levels = level_bins(tasks, y_input, statistics, config).numpy()
    out = []
    for task in range(len(z)):
        slots = found[0].order[task, found[0].used[task]].numpy()
        if len(slots) == 0:
            out.append(None)
            continue
        own, level = (np.concatenate([v[task, :statistics], v[task, rows:]])[:, slots]
                      for v in (x, levels))
        labels = tasks.categorical[task, slots].numpy()
        b = np.where(labels, level, bins(own, labels, statistics))
        out.append(NumberTrees(own, b, labels, z[task], statistics))
    return out


def moved(mixture, said, share):
    """Logs of weights [M, C] for which the means of mixtures [M] are said [M], a share of the way;
    as they are where said is NaN.
    """
    mean = mixture.moments()[0]
    eta = tilts(mixture, torch.where(said.isnan(), mean, mean + share * (said - mean)))
    return (mixture.log_weight + eta[:, None] * mixture.mean).log_softmax(-1)
