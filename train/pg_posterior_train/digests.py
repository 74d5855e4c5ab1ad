"""Digests of rows, by which labels that are equally frequent and equal in their targets are ordered
(docs/model-format.md, section 5, "Digests"). Not part of training, whose labels have any names.
"""
import numpy as np
import torch

from .mix import mix
from .tasks import Tasks


def from_middle(values, x):
    """How many of the values are less than each of x, minus how many are more."""
    values = np.sort(values)
    below, until = (np.searchsorted(values, x, side) for side in ("left", "right"))
    return below + until - len(values)


def digests(x, categorical, told):
    """A number for every row: x [n, F] cells, told [n] what labels compare of the targets."""
    target = from_middle(told, told)
    total = np.zeros(len(x), dtype=np.uint64)
    for column, labels in zip(x.T, categorical):
        there = np.flatnonzero(~np.isnan(column))
        cells = column[there]
        if labels:
            place = np.unique(cells, return_inverse=True)[1]
            of_label = np.zeros(len(cells), dtype=np.uint64)
            np.add.at(of_label, place, mix(target[there].astype(np.uint64)))
            stands = of_label[place]
        else:
            stands = from_middle(cells, cells)
            rise = sum(int(a) * int(b) for a, b in zip(stands, target[there]))
            stands = (stands * np.sign(rise) if rise else abs(stands)).astype(np.uint64)
        total[there] += mix(stands)
    return mix(total + target.astype(np.uint64))


def renamed(column, known, digest):
    """The labels [N] of a column, numbered by the sum of the digests [n] of their rows among the
    first n, and behind them those that these rows do not have; known: its labels, ascending.
    """
    place = np.searchsorted(known, column)
    head = ~np.isnan(column[:len(digest)])
    count = np.bincount(place[:len(digest)][head], minlength=len(known))
    company = np.zeros(len(known), dtype=np.uint64)
    np.add.at(company, place[:len(digest)][head], digest[head])
    new = np.argsort(np.lexsort((known, company, count == 0)))
    return np.where(np.isnan(column), np.nan, new[np.minimum(place, len(known) - 1)])


def ordered_labels(tasks, told, statistics, config):
    """Tasks whose labels are numbered so that identity decides as digests do: told [B, N] what
    labels compare of the targets, statistics the rows that say so. As they are where codes do not
    follow the targets.
    """
    if config["embedder"].get("x", {}).get("codes") != "targets" or not tasks.categorical.any():
        return tasks
    x = tasks.x.double().cpu().numpy().copy()
    told = told[:, :statistics].double().cpu().numpy()
    for own, labels, y in zip(x, tasks.categorical.cpu().numpy(), told):
        digest = digests(own[:statistics], labels, y)
        for f in np.flatnonzero(labels):
            known = np.unique(own[~np.isnan(own[:, f]), f])
            if len(known):
                own[:, f] = renamed(own[:, f], known, digest)
    return Tasks(torch.from_numpy(x).to(tasks.x), tasks.y, tasks.categorical)
