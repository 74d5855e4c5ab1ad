"""Numbers that are far from all others: of a column they are missing, of the targets they count as
nearer (docs/model-format.md, section 3, "Far cells" and "Far targets"). Tables of the priors have
next to none.
"""
import numpy as np
import torch

from .tasks import Tasks

ROWS_OF_FAR, FEW_DIFFERENT, ROWS_OF_MISTAKE = 8, 2, 64
OTHERS_OF_TARGET, ROWS_OF_TARGET = 8, 256
MOST_TOLD = 50          # times as far as others, that a column may foretell


def reach(column, times):
    """(middle, distance): numbers of a column that are farther away are far; by the prefix's."""
    v = np.sort(column[~np.isnan(column)])
    m = len(v)
    if m < ROWS_OF_FAR:
        return 0.0, np.inf
    low, high = v[(m - 1) // 2], v[m // 2]
    middle, found = low if low == high else 0.5 * low + 0.5 * high, np.inf
    if 2 * (v == middle).sum() > m:
        return middle, found
    order = np.argsort(-np.abs(v - middle), kind="stable")
    apart = np.abs(v - middle)[order]
    for k in range(1, m // ROWS_OF_FAR + 1):
        few = len(np.unique(v[order[:k]])) <= FEW_DIFFERENT or k <= m // ROWS_OF_MISTAKE
        if few and np.inf > apart[k - 1] >= times * apart[k] > 0:
            found = np.sqrt(apart[k]) * np.sqrt(apart[k - 1])
    return middle, found


def foretold(x, far):
    """Whether a column of x [B, m, F] has one cell in all rows that are far [B, m], and another one
    in all others that have a cell, which are more than half of these, [B].
    """
    far, there, found = far[..., None], ~x.isnan(), []
    for rows in (far, ~far):
        most, least = (torch.where(rows & there, x, end).amax(1) if end < 0 else
                       torch.where(rows & there, x, end).amin(1)
                       for end in (-torch.inf, torch.inf))
        found.append((most, most == least))
    (one, equal), (other, alike) = found
    many = 2 * (~there & ~far).sum(1) < (~far).sum(1)
    return (equal & alike & many & (one != other) & (there | ~far).all(1)).any(1)


def near_targets(y, statistics, config, x=None):
    """Targets [B, N] of rows with cells x [B, N, F] whose far ones are moved to the limit, by the
    first `statistics` of each.
    """
    times = config["target"].get("far", 0)
    m = min(statistics, y.shape[1])
    if not times or not m:
        return y
    head = y[:, :m].double().sort(1).values
    low, high = head[:, (m - 1) // 2], head[:, m // 2]
    middle = torch.where(low == high, low, 0.5 * low + 0.5 * high)
    apart = (head - middle[:, None]).abs().sort(1, descending=True).values
    reach, limit = torch.full_like(middle, torch.inf), torch.zeros_like(middle)
    for k in range(1, (m - 1) // ROWS_OF_TARGET + 2):
        if k + OTHERS_OF_TARGET > m:
            break
        outer, inner = apart[:, k - 1], apart[:, k]
        found = ((apart[:, k + OTHERS_OF_TARGET - 1] > 0) & (outer >= times * inner)
                 & outer.isfinite())
        reach = torch.where(found, inner.sqrt() * outer.sqrt(), reach)
        limit = torch.where(found, inner, limit)
    away = y.double() - middle[:, None]
    near = middle[:, None] + away.sign() * limit[:, None]
    far = away.abs() > reach[:, None]
    if x is not None and far[:, :m].any():
        told = foretold(x[:, :m], far[:, :m]) & (apart[:, 0] <= MOST_TOLD * limit)
        far &= ~told[:, None]
    return torch.where(far, near.to(y), y)


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
