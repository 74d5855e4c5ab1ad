"""Queries that lack cells, with the cells of rows of the prefix (docs/model-format.md, section 5,
"Donors"), and the joining of their answers (section 8).
"""
import copy
from dataclasses import dataclass

import numpy as np
import torch

from .tasks import Tasks

ROWS = 256
FEW_VALUES = 16         # different targets at most that are levels
SUPPOSED_SHIFT = 4.0    # its variance beforehand, in that of the targets


@dataclass
class Slots:
    """What donors need of the statistics: columns of the slots order [B, S], used [B, S], scaled
    cells z [B, N, S] (0 where missing), missing [B, N, S]; of the slots' missing bins count [B, S]
    and the deviation square [B, S] of their targets, with its degrees of freedom [B, S]; where a
    missing cell may shift the target, what the prefix says of that [B, S, 2] (process.missed).
    """

    order: torch.Tensor
    used: torch.Tensor
    z: torch.Tensor
    missing: torch.Tensor
    count: torch.Tensor
    square: torch.Tensor
    degrees: torch.Tensor
    shift: torch.Tensor | None = None


@dataclass
class Variants:
    """The tasks with `count` variants of each query in its place, their weights [B, M, count], and
    how many, the first ones, are a sample [B, M]; or also of what they are shifted by, the weight,
    mean and variance [B, M, 3].
    """

    tasks: Tasks
    count: int
    weights: torch.Tensor
    sample: torch.Tensor | None = None
    shift: torch.Tensor | None = None


def told(count, square, degrees):
    """The weight of a row as it is that lacks the cell of a slot."""
    known = 0.5 * count / (count + 4)
    odds = (square * count / (count + 1) - degrees * np.log1p(count)) / 2
    return np.where(count > 0, known + (1 - known) / (1 + np.exp(-odds)), 0.0)


def shift_of(count, said):
    """[S, 3] weight, mean and variance of what rows without a slot's cell are shifted by; said
    [S, 2] (process.missed).
    """
    information, rest = said.T
    precision = 1 / SUPPOSED_SHIFT + information
    odds = (rest ** 2 / precision - np.log1p(SUPPOSED_SHIFT * information)) / 2
    return np.stack([np.where(count > 0, 1 / (1 + np.exp(-odds)), 0.0), rest / precision,
                     1 / precision], 1)


class Lenders:
    """The rows of one task's prefix that lend: x [n0, F] raw, y [n0], z (0 where missing) and
    missing [n0, S] of its slots.
    """

    def __init__(self, x, y, z, missing):
        order = np.lexsort([*missing.T[::-1], *z.T[::-1], y])
        m = min(len(y), ROWS)
        self.x = x[order[(2 * np.arange(m) + 1) * len(y) // (2 * m)]]
        self.levels = len(np.unique(y)) <= FEW_VALUES

    def lend(self, lacks, most):
        """(cells of the columns `lacks` [k, …], their weights [k], how many are a sample), k at
        most `most`.
        """
        cells = self.x[:, lacks]
        cells = cells[~np.isnan(cells).any(1)]
        different, first, size = np.unique(cells, axis=0, return_index=True, return_counts=True)
        if len(different) <= most:
            place = np.argsort(first)
            return different[place], size[place] / max(len(cells), 1), 0
        return (cells[(2 * np.arange(most) + 1) * len(cells) // (2 * most)],
                np.full(most, 1 / most), 0 if self.levels else most)


def variants_of(query, lacks, missing, weights_told, lenders, most):
    """Variants [k, F] of a query, their weights [k], and how many are a sample."""
    cells, weights, sample = lenders.lend(lacks, most)
    if len(lacks) == 0 or len(cells) == 0:
        return query[None], np.ones(1), 0
    made = np.repeat(query[None], len(cells), 0)
    made[:, lacks] = cells
    share = max((weights_told.get(f, 0.0) for f in missing), default=0.0)
    if share == 0:
        return made, weights, sample
    return np.concatenate([made, query[None]]), np.append(weights * (1 - share), share), sample


def task_variants(x, y, slots, b, rows, n0, most):
    """The same of the queries of task b, a list, and the shift of each."""
    kept = slots.used[b].numpy()
    used = kept & (4 * slots.count[b].numpy() <= n0)
    order, lacking = (v[b].numpy()[..., used] for v in (slots.order, slots.missing))
    share = told(*(v[b].double().numpy() for v in (slots.count, slots.square, slots.degrees)))
    share = dict(zip(order, share[used])) if slots.shift is None else {}
    shifts = {} if slots.shift is None else dict(zip(order, shift_of(
        *(v[b].double().numpy()[used] for v in (slots.count, slots.shift)))))
    lenders = Lenders(x[:n0], y[:n0], slots.z[b].numpy()[:n0, kept],
                      slots.missing[b].numpy()[:n0, kept])
    out = []
    for i in range(rows, len(x)):
        lacks = order[lacking[i]]
        missing = lacks[np.isnan(x[i, lacks])]
        variants, weights, sample = variants_of(x[i], lacks, missing, share, lenders, most)
        shift = max((shifts[f] for f in missing if f in shifts), key=lambda s: s[0],
                    default=np.zeros(3))
        lent = not np.array_equal(variants, x[i][None], equal_nan=True)
        out.append((variants, weights, sample, shift if lent else np.zeros(3)))
    return out


def lend(tasks, y, rows, n0, slots, most):
    """Variants of the tasks' rows after the first `rows`; y [B, N] orders the prefix of n0 rows."""
    x = tasks.x.numpy()
    made = [task_variants(x[b], y[b].numpy(), slots, b, rows, n0, most) for b in range(len(x))]
    count = max((len(w) for task in made for _, w, _, _ in task), default=1)
    cells = np.zeros((len(x), x.shape[1] - rows, count, x.shape[2]), x.dtype)
    weights, shift = np.zeros(cells.shape[:3]), np.zeros((*cells.shape[:2], 3))
    sample = np.zeros(cells.shape[:2], np.int64)
    for b, task in enumerate(made):
        for m, (variants, w, drawn, by) in enumerate(task):
            cells[b, m], sample[b, m], shift[b, m] = variants[0], drawn, by
            cells[b, m, :len(w)], weights[b, m, :len(w)] = variants, w
    asked = torch.cat([tasks.x[:, :rows], torch.from_numpy(cells).flatten(1, 2)], 1)
    targets = torch.cat([tasks.y[:, :rows], tasks.y[:, rows:].repeat_interleave(count, 1)], 1)
    return Variants(Tasks(asked, targets, tasks.categorical), count, torch.from_numpy(weights),
                    torch.from_numpy(sample),
                    None if slots.shift is None else torch.from_numpy(shift))


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


def widened(parts, sample):
    """Components [k, C, 3] (weight, mean, standard deviation) of the answers to variants of which
    the first `sample` stand for what lies between them.
    """
    if sample == 0:
        return parts
    own = parts[:sample]
    means = (own[..., 0] * own[..., 1]).sum(1)
    near = np.sort(abs(means[:, None] - means), 1)[:, np.minimum([1, 2, 4], sample - 1)]
    with np.errstate(divide="ignore"):
        apart = np.minimum(near[:, 2], 8 / (1 / near[:, :2]).sum(1))
    parts = parts.copy()
    parts[:sample, :, 2] = np.hypot(own[..., 2], apart[:, None] / 2)
    return parts


def join(answer, variants):
    """The answer to each query from those to its variants: a mixture or bars, [B, M * k, …]."""
    weights = variants.weights
    if weights.shape[2] == 1:
        return answer
    made = copy.copy(answer)
    if hasattr(answer, "log_mass"):
        made.log_mass = join_log(answer.log_mass, weights)
        return made
    count = answer.mean.shape[-1]
    parts = torch.stack([answer.log_weight.exp(), answer.mean, answer.sd], -1)
    parts = parts.unflatten(1, (-1, weights.shape[2])).double().clone()
    parts, weights = parts.numpy(), weights.numpy()
    joined = np.empty((*weights.shape[:2], count, 3))
    for place in np.ndindex(weights.shape[:2]):
        own, share = widened(parts[place], int(variants.sample[place])), weights[place]
        own[..., 0] *= share[:, None]
        joined[place] = reduced(own.reshape(-1, 3), count) if share[0] < 1 else own[0]
    joined = torch.from_numpy(joined)
    joined = joined.to(answer.mean)
    made.log_weight, made.mean, made.sd = joined[..., 0].log(), joined[..., 1], joined[..., 2]
    return made


def shifted(answer, shift):
    """Mixtures [B, M, C], each joined with itself plus a normal number, shift [B, M, 3] its weight,
    mean and variance.
    """
    if shift is None or not (shift[..., 0] > 0).any():
        return answer
    made = copy.copy(answer)
    weight, mean, variance = shift[..., None].unbind(2)
    own = torch.stack([answer.log_weight.exp(), answer.mean, answer.sd], -1).double()
    other = torch.stack([own[..., 0] * weight, own[..., 1] + mean,
                         (own[..., 2].square() + variance).sqrt()], -1)
    own[..., 0] *= 1 - weight
    count, parts = answer.mean.shape[-1], torch.cat([own, other], 2)
    joined = torch.tensor(np.array([[reduced(query, count) if by > 0 else query[:count]
                                     for query, by in zip(task, one)]
                                    for task, one in zip(parts.numpy(), weight[..., 0].numpy())]))
    joined = joined.to(answer.mean)
    made.log_weight, made.mean, made.sd = joined[..., 0].log(), joined[..., 1], joined[..., 2]
    return made
