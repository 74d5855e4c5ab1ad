"""Digests of the rows of a prefix (docs/model-format.md section 5, "Digests").

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from trees import MASK, mix


def place(values, x):
    """How many of the values are less than x, minus how many are more."""
    return int(np.sum(values < x)) - int(np.sum(values > x))


def digests(x, kinds, told):
    """A number for every row: x [n0, F] raw cells, told [n0] targets as labels compare them."""
    n, target = len(told), [place(told, t) for t in told]
    sums = [0] * n
    for column, kind in zip(x.T, kinds):
        there = np.flatnonzero(~np.isnan(column))
        values = column[there]
        if kind == "categorical":
            for i in there:
                own = np.flatnonzero(column == column[i])
                sums[i] += mix(sum(mix(target[k] & MASK) for k in own) & MASK)
        else:
            places = [place(values, v) for v in values]
            rise = sum(p * target[i] for p, i in zip(places, there))
            for p, i in zip(places, there):
                sums[i] += mix((p if rise > 0 else -p if rise < 0 else abs(p)) & MASK)
    return [mix((total + t) & MASK) for total, t in zip(sums, target)]
