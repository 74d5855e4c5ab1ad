"""Queries that lack cells, with the cells of rows of the prefix (docs/model-format.md, section 5,
"Donors"), and the joining of their answers (section 8).
"""
import copy
from dataclasses import dataclass

import numpy as np
import torch

from .tasks import Tasks

ROWS, TIES = 256, 8


@dataclass
class Slots:
    """What donors need of the statistics: columns of the slots order [B, S], used [B, S], scaled
    cells z [B, N, S] (0 where missing), missing [B, N, S]; of the slots' missing bins count [B, S]
    and the deviation square [B, S] of their targets, with its degrees of freedom [B, S].
    """

    order: torch.Tensor
    used: torch.Tensor
    z: torch.Tensor
    missing: torch.Tensor
    count: torch.Tensor
    square: torch.Tensor
    degrees: torch.Tensor


@dataclass
class Variants:
    """The tasks with `count` variants of each query in its place, and their weights [B, M, count].
    """

    tasks: Tasks
    count: int
    weights: torch.Tensor


def told(count, square, degrees):
    """The weight of a row as it is that lacks the cell of a slot."""
    known = 0.5 * count / (count + 4)
    odds = (square * count / (count + 1) - degrees * np.log1p(count)) / 2
    return np.where(count > 0, known + (1 - known) / (1 + np.exp(-odds)), 0.0)


class Lenders:
    """The rows of one task's prefix that lend: x [n0, F] raw, y [n0], z [n0, S] of its slots."""

    def __init__(self, x, y, z):
        order = np.lexsort([*z.T[:TIES][::-1], y])
        m = min(len(y), ROWS)
        self.x = x[order[(2 * np.arange(m) + 1) * len(y) // (2 * m)]]

    def lend(self, lacks, most):
        """(cells of the columns `lacks` [k, …], their weights [k]), k at most `most`."""
        cells = self.x[:, lacks]
        cells = cells[~np.isnan(cells).any(1)]
        different, first, size = np.unique(cells, axis=0, return_index=True, return_counts=True)
        if len(different) <= most:
            place = np.argsort(first)
            return different[place], size[place] / max(len(cells), 1)
        return cells[(2 * np.arange(most) + 1) * len(cells) // (2 * most)], np.full(most, 1 / most)


def variants_of(query, lacks, missing, weights_told, lenders, most):
    """Variants [k, F] of a query and their weights [k]."""
    cells, weights = lenders.lend(lacks, most)
    if len(lacks) == 0 or len(cells) == 0:
        return query[None], np.ones(1)
    made = np.repeat(query[None], len(cells), 0)
    made[:, lacks] = cells
    share = max((weights_told[f] for f in missing), default=0.0)
    if share == 0:
        return made, weights
    return np.concatenate([made, query[None]]), np.append(weights * (1 - share), share)


def task_variants(x, y, slots, b, rows, n0, most):
    """The same of the queries of task b, a list."""
    kept = slots.used[b].numpy()
    used = kept & (4 * slots.count[b].numpy() <= n0)
    order, lacking = (v[b].numpy()[..., used] for v in (slots.order, slots.missing))
    share = told(*(v[b].double().numpy() for v in (slots.count, slots.square, slots.degrees)))
    share = dict(zip(order, share[used]))
    lenders = Lenders(x[:n0], y[:n0], slots.z[b].numpy()[:n0, kept])
    out = []
    for i in range(rows, len(x)):
        lacks = order[lacking[i]]
        out.append(variants_of(x[i], lacks, lacks[np.isnan(x[i, lacks])], share, lenders, most))
    return out


def lend(tasks, y, rows, n0, slots, most):
    """Variants of the tasks' rows after the first `rows`; y [B, N] orders the prefix of n0 rows."""
    x = tasks.x.numpy()
    made = [task_variants(x[b], y[b].numpy(), slots, b, rows, n0, most) for b in range(len(x))]
    count = max((len(w) for task in made for _, w in task), default=1)
    cells = np.zeros((len(x), x.shape[1] - rows, count, x.shape[2]), x.dtype)
    weights = np.zeros(cells.shape[:3])
    for b, task in enumerate(made):
        for m, (variants, w) in enumerate(task):
            cells[b, m] = variants[0]
            cells[b, m, :len(w)], weights[b, m, :len(w)] = variants, w
    asked = torch.cat([tasks.x[:, :rows], torch.from_numpy(cells).flatten(1, 2)], 1)
    targets = torch.cat([tasks.y[:, :rows], tasks.y[:, rows:].repeat_interleave(count, 1)], 1)
    return Variants(Tasks(asked, targets, tasks.categorical), count, torch.from_numpy(weights))


def merged(a, b):
    """Two components [weight, mean, variance] as one."""
    weight = a[0] + b[0]
    mean = (a[0] * a[1] + b[0] * b[1]) / weight
    variance = (a[0] * (a[2] + (a[1] - mean) ** 2) + b[0] * (b[2] + (b[1] - mean) ** 2)) / weight
    return np.array([weight, mean, variance])


def loss(a, b):
    m = merged(a, b)
    return m[0] * np.log(m[2]) - a[0] * np.log(a[2]) - b[0] * np.log(b[2])


def reduced(parts, count):
    """Components [n, 3] (weight, mean, standard deviation) as `count` of them."""
    parts = parts[parts[:, 0] > 0]
    parts = list(parts[np.lexsort(parts.T[[0, 2, 1]])] ** [1, 1, 2])
    losses = [loss(a, b) for a, b in zip(parts, parts[1:])]
    while len(parts) > count:
        i = int(np.argmin(losses))
        parts[i:i + 2] = [merged(parts[i], parts[i + 1])]
        del losses[i]
        for k in (i - 1, i):
            if 0 <= k < len(losses):
                losses[k] = loss(parts[k], parts[k + 1])
    parts += [parts[-1] * [0, 1, 1]] * (count - len(parts))
    return np.array(parts) ** [1, 1, 0.5]


def join_log(values, weights):
    """Log masses or probabilities [B, M * k, …] of variants of weights [B, M, k], added up."""
    split = values.unflatten(1, (-1, weights.shape[2]))
    return torch.logsumexp(split + weights.to(values)[..., None].log(), 2)


def join(answer, weights):
    """The answer to each query from those to its variants: a mixture or bars, [B, M * k, …]."""
    if weights.shape[2] == 1:
        return answer
    made = copy.copy(answer)
    if hasattr(answer, "log_mass"):
        made.log_mass = join_log(answer.log_mass, weights)
        return made
    count = answer.mean.shape[-1]
    parts = torch.stack([answer.log_weight.exp(), answer.mean, answer.sd], -1)
    parts = parts.unflatten(1, (-1, weights.shape[2])).double().clone()
    parts[..., 0] *= weights[..., None]
    joined = torch.tensor(np.array([[reduced(query.reshape(-1, 3), count) if alone < 1
                                     else query[0] for query, alone in zip(task, one)]
                                    for task, one in zip(parts.numpy(), weights[..., 0].numpy())]))
    joined = joined.to(answer.mean)
    made.log_weight, made.mean, made.sd = joined[..., 0].log(), joined[..., 1], joined[..., 2]
    return made
