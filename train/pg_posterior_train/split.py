"""Features of many labels, each split into columns that tell some of them apart
(docs/model-format.md, section 5, "Splitting").

A split feature has its first part in its place and the others behind all features. A part's own
labels keep their identities; those that it does not tell apart have theirs plus REST, so that cells
are equal where labels are.
"""
import numpy as np
import torch

from .mix import mix
from .tasks import Tasks

OWN = 15
REST = 2.0 ** 20
TOLD_STEPS = 2.0 ** 20
BEYOND_CHANCE = 2.0


def lots(places):
    """What orders labels of equal counts, from their places without, as integers in ascending
    order.
    """
    made = mix(np.asarray(places).astype(np.uint64))
    return (made ^ np.uint64(1 << 63)).view(np.int64)


def ranked(column, y):
    """(labels of the cells [n] of a column by descending count, their counts); y [n] scaled targets
    where codes follow these, or None.
    """
    present = ~np.isnan(column)
    labels, place, counts = np.unique(column[present], return_inverse=True, return_counts=True)
    if y is None:
        order = np.lexsort((labels, -counts))
    else:
        told = np.rint(TOLD_STEPS * np.bincount(place, y[present], len(labels)))
        order = np.lexsort((labels, told, -counts))
        if len(labels) > OWN + 1:
            order = order[np.lexsort((lots(np.arange(len(labels))), -counts[order]))]
    return labels[order], counts[order]


def says_more_than_chance(group, targets):
    """Whether targets [n, C], numbers or the indicators of classes, differ between groups [n] by
    more than chance.
    """
    n, place = len(targets), np.unique(group, return_inverse=True)[1]
    k = place.max() + 1
    center = targets - targets.mean(0)
    between = sum(np.bincount(place, c, k) ** 2 for c in center.T)
    total, free = (center ** 2).sum(), max((targets != 0).any(0).sum() - 1, 1)
    if total <= 1e-12 or n <= k:
        return False
    e = 1 - (1 - (between / np.bincount(place)).sum() / total) * (n - 1) / (n - k)
    return e > (1 - e) * BEYOND_CHANCE * np.sqrt(2 * (k - 1) / ((n - 1) * (n - k) * free))


def parts_of(column, y, targets, most):
    """The labels that each part of a column with the prefix's cells [n] tells apart, a list, or
    None of a column that is not split.
    """
    labels, counts = ranked(column, y)
    apart = labels
    if 2 * len(labels) > counts.sum():
        apart = labels[counts > 1]
    count = min(-(-len(apart) // OWN), most)
    if len(labels) <= OWN + 1 or count < 2:
        return None
    place = {label: i for i, label in enumerate(apart)}
    group = np.array([-1 if np.isnan(v) else place.get(v, len(apart)) for v in column])
    if not says_more_than_chance(group, targets):
        return None
    return [(apart if i else labels)[OWN * i:OWN * (i + 1)] for i in range(count)]


def parts_of_number(column, y, most):
    """The labels that each part of a number with the prefix's cells [n] tells apart; `most` parts
    at most.
    """
    labels, counts = ranked(column, y if most > 1 else None)
    apart = labels if 2 * len(labels) <= counts.sum() else labels[counts > 1]
    count = min(-(-len(apart) // OWN), most)
    if len(labels) <= OWN + 1 or count < 2:
        return [labels]
    return [(apart if i else labels)[OWN * i:OWN * (i + 1)] for i in range(count)]


def label_columns(column, prefix, y, most):
    """Columns [N] of labels for the numbers [N], NaN where missing; one that the prefix does not
    have is one more label.
    """
    numbers = np.unique(column[:prefix][~np.isnan(column[:prefix])])
    place = np.searchsorted(numbers, column)
    known = numbers[np.minimum(place, len(numbers) - 1)] == column
    named = np.where(np.isnan(column), np.nan, np.where(known, place, len(numbers)))
    parts, whole = parts_of_number(named[:prefix], y, most), np.unique(named[:prefix])
    return [part_cells(named, own, whole) for own in parts] if len(parts) > 1 else [named]


def part_cells(column, own, known):
    """The cells [N] of a part."""
    return np.where(np.isin(column, known) & ~np.isin(column, own), column + REST, column)


def split_labels(tasks, y_input, prefix, config, named=None):
    """Tasks whose features of many labels are split as the prefix says, and the numbers `named` of
    each task stand as labels, too: F grows to the most columns of a task, and those that others
    lack are missing there. y_input [B, N]: scaled and clipped targets, or a classifier's classes.
    Tasks that have been split stay as they are.
    """
    most = config["embedder"].get("x", {}).get("split")
    cells = tasks.x[tasks.categorical[:, None].expand_as(tasks.x)] if most else None
    some = bool(most) and len(cells) > 0 and not (cells >= REST).any()
    if tasks.number is not None or not some and not (named and any(named)):
        return tasks
    by_targets = config["embedder"]["x"].get("codes") == "targets"
    x = tasks.x.double().cpu().numpy().copy()
    y = y_input[:, :prefix].double().cpu().numpy()
    told = -y if config["target"]["scaling"] == "classes" else y
    more, number = [], []
    for b, labelled in enumerate(tasks.categorical.cpu().numpy()):
        targets = y[b, :, None]
        if config["target"]["scaling"] == "classes":
            targets = (targets == np.unique(targets)).astype(float)
        more.append([])
        number.append([])
        own = set(named[b]) if named else set()
        for f in range(x.shape[2]):
            column = x[b, :, f].copy()      # the first part takes its place
            if f in own:
                made = label_columns(column, prefix, told[b] if by_targets else None, most or 1)
                more[-1] += made
                number[-1] += [f] * len(made)
            if not labelled[f] or not some:
                continue
            parts = parts_of(column[:prefix], told[b] if by_targets else None, targets, most)
            known = np.unique(column[:prefix])
            made = [part_cells(column, own, known) for own in parts or []]
            if made:
                x[b, :, f] = made[0]
                more[-1] += made[1:]
                number[-1] += [-1] * len(made[1:])
    wide = max(len(columns) for columns in more)
    grown = np.full((*x.shape[:2], x.shape[2] + wide), np.nan)
    grown[..., :x.shape[2]] = x
    of = torch.full(grown.shape[::2], -1, device=tasks.x.device)
    for b, columns in enumerate(more):
        for i, column in enumerate(columns):
            grown[b, :, x.shape[2] + i] = column
            of[b, x.shape[2] + i] = number[b][i]
    labelled = torch.ones(len(x), wide, dtype=torch.bool, device=tasks.x.device)
    return Tasks(torch.from_numpy(grown).to(tasks.x), tasks.y,
                 torch.cat([tasks.categorical, labelled], 1), of, tasks.all_slots)
