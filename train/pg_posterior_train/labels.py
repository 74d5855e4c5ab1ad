"""Numbers that name groups of rows, as an id does, stand as labels, too, where these help
(docs/model-format.md, section 5, "Named groups").

In float64, without gradients.
"""
import math
from dataclasses import replace

import numpy as np
import torch

from .clip import unclip
from .ridge import NUMBERS as REGRESSIONS

WANTED = 3.0                    # mean log density of rows left out that needs no labels
FEWEST_GROUPS = 6
SMALLEST_WITHIN = 1e-6          # variance within groups, of all of it
BEYOND_NOISE = 5.0              # standard deviations of what noise alone would make
SPREAD_OF_SQUARES = 3.9
LEAST_ROUGH = 0.3               # of the variance between groups: what neighbours do not tell
AHEAD, REGRESSION_AHEAD = 0.03, 0.1     # nats a row by which labels are ahead, but in all
TOGETHER, BEHIND = 6.0, 0.05    # at least that; where regressions are, the process may lose this
CLASS_BEYOND_NOISE = 3.0        # and the same of classes, which say less
CLASS_AHEAD, CLASS_TOGETHER = 0.02, 4.0


def names_groups(column, left, deviations=BEYOND_NOISE, degrees=1):
    """Whether the numbers of a column [n], NaN where missing, name groups of rows; left [n], or of
    classes [n, C], is what a regression leaves of their targets, of so many degrees of freedom.
    """
    left = left.reshape(len(left), -1)
    there = ~np.isnan(column)
    numbers, place, n = np.unique(column[there], return_inverse=True, return_counts=True)
    kept = n > 1
    m, left, place = len(place), left[there][kept[place]], (kept.cumsum() - 1)[place[kept[place]]]
    x, n = numbers[kept], n[kept]
    k, rows = len(n), n.sum()
    if k < FEWEST_GROUPS or 2 * rows < m or 2 * n.max() > m:
        return False
    mean = np.stack([np.bincount(place, c, k) / n for c in left.T])
    squares = np.bincount(place, ((left - mean.T[place]) ** 2).sum(1), k)
    between = (n * (mean - left.mean(0)[:, None]) ** 2).sum()
    variance = max(squares.sum() / (rows - k), SMALLEST_WITHIN * (squares.sum() + between) / rows)
    below = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
    apart = ((below * mean[:, :-2] + (1 - below) * mean[:, 2:] - mean[:, 1:-1]) ** 2).sum()
    noise = max((below ** 2 * v[:-2] + (1 - below) ** 2 * v[2:] + v[1:-1]).sum()
                for v in (variance / n, squares / n / (n - 1)))
    rough = (apart - noise) / (below ** 2 + (1 - below) ** 2 + 1).sum()
    between = (between - (k - 1) * variance) / (rows - (n ** 2).sum() / rows)
    beyond = deviations * math.sqrt((SPREAD_OF_SQUARES / (k - 2) + 2 / (rows - k)) / degrees)
    return bool(0 < between and LEAST_ROUGH * between < rough and apart > noise * (1 + beyond))


def normal_density(y, mean, log_sd):
    return -0.5 * math.log(2 * math.pi) - log_sd - 0.5 * ((y - mean) / log_sd.exp()) ** 2


def said(found, y, clip):
    """(mean log density of rows left out by the process, or the line, [B], by the better of the
    regressions [B], what the linear one leaves of the targets y [B, n]) of the prefix; found: a
    donors.Slots.
    """
    if found.ridge is None:
        return found.density, torch.full_like(found.density, -math.inf), y
    linear, splines = found.ridge.double().split(REGRESSIONS // 2, -1)
    densities = []
    for part in (linear, splines):
        mean, log_noise, log_leverage = part.unbind(-1)
        densities.append(normal_density(y, unclip(mean, clip), log_noise + log_leverage).mean(1))
    return (found.density, torch.maximum(*densities), y - unclip(linear[..., 0], clip))


def add_labels(tasks, y_input, prefix, config, cells, split):
    """Tasks in which numbers that name groups stand as labels, too, where rows of the prefix that
    are left out are predicted better, as split(tasks, numbers) makes them of the columns of each;
    cells: normalise.cells. Others are as split(tasks, None) makes them.
    """
    plain, y, clip = split(tasks, None), y_input[:, :prefix].double(), config["target"]["clip"]
    before = []
    cells(plain, y_input, prefix, config, before)
    density, regression, left = said(before[0], y, clip)
    x, labels = tasks.x[:, :prefix].double().cpu().numpy(), tasks.categorical.cpu().numpy()
    named = [[f for f in np.flatnonzero(~labels[b]) if names_groups(x[b, :, f], left[b].numpy())]
             if density[b] <= WANTED else [] for b in range(len(x))]
    if not any(named):
        return plain
    after = []
    cells(split(tasks, named), y_input, prefix, config, after)
    more, better, _ = said(after[0], y, clip)
    more, better = more - density, better - regression
    together = TOGETHER / prefix
    helps = (more > max(AHEAD, together)) | (
        (more > -BEHIND) & (better > max(REGRESSION_AHEAD, together)))
    return split(tasks, [own if helped else [] for own, helped in zip(named, helps)])


def add_class_labels(tasks, y, classes, prefix, config, cells, split):
    """The same of a classifier: y [B, N] places of classes, classes [B] how many there are; cells:
    classes.class_cells, whose last numbers are what the logistic regression says.
    """
    most, plain = config["head"]["classes"], split(tasks, None)
    chance = classes.double().log()

    def regression(of):
        numbers = cells(of, y, classes, prefix, config)[:, :prefix, -most - 1:].double()
        log_p = unclip(numbers[..., :-1], config["inputs"]["clip"]) - chance[:, None, None]
        return log_p.exp().cpu().numpy(), numbers[:, 0, -1]

    said, quality = regression(plain)
    x, labels = tasks.x[:, :prefix].double().cpu().numpy(), tasks.categorical.cpu().numpy()
    own = (y[:, :prefix, None] == torch.arange(most, device=y.device)).cpu().numpy()
    named = []
    for b, count in enumerate(classes.tolist()):
        degrees, left = int(own[b].any(0).sum()) - 1, (own[b] - said[b])[:, :count]
        named.append([f for f in np.flatnonzero(~labels[b]) if degrees > 0
                      and names_groups(x[b, :, f], left, CLASS_BEYOND_NOISE, degrees)])
    if not any(named):
        return plain
    ahead = regression(split(tasks, named))[1] - quality
    helps = ahead > max(CLASS_AHEAD, CLASS_TOGETHER / prefix)
    return split(tasks, [of if helped else [] for of, helped in zip(named, helps)])


def settled(tasks):
    """Tasks that are not looked at again."""
    if tasks.number is not None:
        return tasks
    return replace(tasks, number=torch.full_like(tasks.categorical, -1, dtype=torch.int64))
