"""Numbers that are far from all others of their column are missing (docs/model-format.md, section
3, "Far cells"). Not part of training, whose tables have none.
"""
import numpy as np
import torch

from .tasks import Tasks

ROWS_OF_FAR, FEW_DIFFERENT, ROWS_OF_MISTAKE = 8, 2, 64


def reach(column, times):
    """(middle, distance): numbers of a column that are farther away are far; by the prefix's."""
    v = np.sort(column[~np.isnan(column)])
    m = len(v)
    if m < ROWS_OF_FAR:
        return 0.0, np.inf
    middle, found = 0.5 * v[(m - 1) // 2] + 0.5 * v[m // 2], np.inf
    if 2 * (v == middle).sum() > m:
        return middle, found
    order = np.argsort(-np.abs(v - middle), kind="stable")
    apart = np.abs(v - middle)[order]
    for k in range(1, m // ROWS_OF_FAR + 1):
        few = len(np.unique(v[order[:k]])) <= FEW_DIFFERENT or k <= m // ROWS_OF_MISTAKE
        if few and apart[k] > 0 and apart[k - 1] >= times * apart[k]:
            found = np.sqrt(apart[k]) * np.sqrt(apart[k - 1])
    return middle, found


def near_cells(tasks, statistics, config):
    """Tasks whose far cells are missing, by the first `statistics` rows of each."""
    times = config["inputs"].get("far", 0)
    if not times:
        return tasks
    x = tasks.x.double().numpy().copy()
    for own, labels in zip(x, tasks.categorical.numpy()):
        for f in np.flatnonzero(~labels):
            middle, most = reach(own[:statistics, f], times)
            own[np.abs(own[:, f] - middle) > most, f] = np.nan
    return Tasks(torch.from_numpy(x).to(tasks.x), tasks.y, tasks.categorical)
