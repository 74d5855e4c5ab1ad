"""Queries that lack cells, with the cells of rows of the prefix (docs/model-format.md, section 5,
"Donors"), and the joining of their answers (section 8).
"""
import copy
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import torch

from .related import Related
from .shift import TOGETHER
from .split import REST
from .tasks import Tasks

ROWS = 256
FEW_VALUES = 16         # different targets at most that are levels
FEWEST_DRAWN = 5        # different cells that tell of more
MOST_NEW = 8            # new labels of a row that count
GOLDEN = 0.6180339887498949     # multiples of it are spread evenly over the unit interval
MOST_VARIANCE = 16.0    # of groups of which few are known, times theirs
OF_BETWEEN = 4.0        # times the share of labels in all variance: how much they matter
MORE_LABELS = 3.0       # of any class, that are added to those there are


@dataclass
class Slots:
    """What donors need of the statistics: columns of the slots order [B, S], used [B, S], scaled
    cells z [B, N, S] (0 where missing), missing [B, N, S]; of the slots' missing bins count [B, S]
    and the deviation square [B, S] of their targets, with its degrees of freedom [B, S]; where a
    missing cell may shift the target, a shift.Known of each task. Of the prefix: what regressions
    say [B, n, 6], the mean log density of the process [B]. Of a classifier: bins [B, N, S].
    """

    order: torch.Tensor
    used: torch.Tensor
    z: torch.Tensor
    missing: torch.Tensor
    count: torch.Tensor
    square: torch.Tensor
    degrees: torch.Tensor
    known: list | None = None
    ridge: torch.Tensor | None = None
    density: torch.Tensor | None = None
    bins: torch.Tensor | None = None


@dataclass
class Variants:
    """The tasks with `count` variants of each query in its place, their weights [B, M, count], and
    how many, the first ones, are a sample [B, M]; of new labels the variants' own [B, M, count, L]
    and how probably two rows have the same, or 0 [B, M, L]; or also what they may be shifted by,
    weights, means and variances [B, M, k, 3].
    """

    tasks: Tasks
    count: int
    weights: torch.Tensor
    sample: torch.Tensor | None = None
    labels: torch.Tensor | None = None
    alike: torch.Tensor | None = None
    shift: torch.Tensor | None = None


def told(count, square, degrees):
    """The weight of a row as it is that lacks the cell of a slot."""
    known = 0.5 * count / (count + 4)
    odds = (square * count / (count + 1) - degrees * np.log1p(count)) / 2
    return np.where(count > 0, known + (1 - known) / (1 + np.exp(-odds)), 0.0)


class Lenders:
    """The rows of one task's prefix that lend: x [n0, F] raw, y [n0], z (0 where missing) and
    missing [n0, S] of its slots; features in the order of slots, labels [F].
    """

    def __init__(self, x, y, z, missing, features=(), labels=()):
        order = np.lexsort([*missing.T[::-1], *z.T[::-1], y])
        m = min(len(y), ROWS)
        self.x = x[order[(2 * np.arange(m) + 1) * len(y) // (2 * m)]]
        self.levels = len(np.unique(y)) <= min(FEW_VALUES, len(y) / 2)
        self.labels = np.array(labels, bool)
        self.related = Related(self.whole(self.x), list(features), labels)

    def whole(self, x):
        """Raw cells [..., F], those of parts as those of their features."""
        return np.where(self.labels, whole_labels(x), x).astype(float) if len(self.labels) else x

    def lend(self, lacks, most, query=None, has=(), missing=()):
        """(cells of the columns `lacks` [k, …], their weights [k], how many are a sample), k at
        most `most`, for a query that has the cells of the features `has` and misses `missing`.
        """
        rows, weights, moved = np.flatnonzero(~np.isnan(self.x[:, lacks]).any(1)), None, {}
        if query is not None:
            rows, weights, moved = self.related.lend(self.whole(query), has, missing, rows)
        cells = self.x[rows]
        for f, own in moved.items():
            cells[:, f] = own
        cells = cells[:, lacks]
        different, first, place = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        if len(different) <= most:
            order = np.argsort(first)
            share = np.full(len(cells), 1 / max(len(cells), 1)) if weights is None else weights
            drawn = len(different) == len(cells) >= FEWEST_DRAWN and not self.levels
            return (different[order], np.bincount(place.ravel(), share, len(different))[order],
                    len(cells) if drawn else 0)
        places = (2 * np.arange(most) + 1) * len(cells) // (2 * most)
        if weights is not None:
            places = np.minimum(np.searchsorted(np.cumsum(weights), (np.arange(most) + 0.5) / most,
                                                side="right"), len(cells) - 1)
        return cells[places], np.full(most, 1 / most), 0 if self.levels else most


def whole_labels(x):
    """Cells of parts as those of their features."""
    return np.where(x >= REST, x - REST, x)


def variants_of(query, lacks, has, missing, weights_told, lenders, most):
    """Variants [k, F] of a query, their weights [k], and how many are a sample."""
    cells, weights, sample = lenders.lend(lacks, most, query, has, missing)
    if len(lacks) == 0 or len(cells) == 0:
        return query[None], np.ones(1), 0
    made = np.repeat(query[None], len(cells), 0)
    made[:, lacks] = cells
    share = max((weights_told.get(f, 0.0) for f in missing), default=0.0)
    if share == 0:
        return made, weights, sample
    return np.concatenate([made, query[None]]), np.append(weights * (1 - share), share), sample


class Task:
    """What the prefix of n0 rows of task b of `tasks` lends; y [N] orders its rows. Those that lack
    cells of the columns `kept` are lent none of these.
    """

    def __init__(self, tasks, y, slots, b, n0, classes=False, kept=()):
        x, self.classes = tasks.x[b].numpy(), classes
        self.number = np.full(x.shape[1], -1) if tasks.number is None else tasks.number[b].numpy()
        self.kept, used = kept, slots.used[b].numpy()
        self.used = used & (4 * slots.count[b].numpy() <= n0)
        self.order, self.lacking = (v[b].numpy()[..., self.used]
                                    for v in (slots.order, slots.missing))
        self.count, self.x = slots.count[b].numpy()[self.used], x
        share = told(*(v[b].double().numpy() for v in (slots.count, slots.square, slots.degrees)))
        self.told = dict(zip(self.order, share[self.used])) if slots.known is None else {}
        self.head = x[:n0]
        labels = tasks.categorical[b].numpy()
        self.slots, self.absent = slots.order[b].numpy()[used], slots.missing[b].numpy()[:, used]
        self.lenders = Lenders(x[:n0], y[:n0], slots.z[b].numpy()[:n0, used],
                               self.absent[:n0], self.features(self.slots, labels), labels)

    def features(self, columns, labels):
        """Those of columns, in their order, each once: the first part of one, or its number."""
        out = []
        for f in columns:
            f = f if self.number[f] < 0 else self.number[f]
            if f not in out and not (labels[f] and any(labels[g] and np.array_equal(
                    whole_labels(self.head[:, f]), whole_labels(self.head[:, g]),
                    equal_nan=True) for g in out)):
                out.append(int(f))
        return out

    def lacks(self, row):
        """Columns that are lent to a row; a number whose label is unknown is there."""
        lacks, own = self.order[self.lacking[row]], self.x[row]
        return lacks[np.where(np.isnan(own[lacks]), ~np.isin(lacks, self.kept),
                              self.number[lacks] < 0)]

    def new_labels(self, row):
        """{column: how probably two rows that may lend have the same label of it} of the columns of
        which a row has a label that the prefix does not have, each feature once.
        """
        out, seen = {}, []
        for f in [] if self.lenders.levels and not self.classes else self.lacks(row):
            column = self.lenders.x[:, f]
            column = column[~np.isnan(column)]
            whole = whole_labels(column)
            if np.isnan(self.x[row, f]) or len(out) == MOST_NEW or any(
                    np.array_equal(whole, other) for other in seen):
                continue
            counts = np.unique(column, return_counts=True)[1]
            alike = (counts ** 2).sum() / max(counts.sum() ** 2, 1)
            seen.append(whole)
            if 0 < alike < 1:
                out[f] = alike
        return out

    def variants(self, row, most):
        """Variants [k, F] of a row, their weights [k], and how many are a sample."""
        lacks, own = self.lacks(row), self.x[row]
        absent = set(self.slots[self.absent[row]])
        has = [f for f in self.lenders.related.features
               if f not in lacks and f not in absent and not np.isnan(own[f])]
        return variants_of(own, lacks, has, lacks[np.isnan(own[lacks])], self.told, self.lenders,
                           most)


def lend(tasks, y, rows, n0, slots, most, shifts=None, classes=False):
    """Variants of the tasks' rows after the first `rows`; y [B, N] orders the prefix of n0 rows;
    shifts: a shift.Shifts of each task; classes: whether y are indices of classes.
    """
    x, made = tasks.x.numpy(), []
    for b, own in enumerate(x):
        kept = () if shifts is None else shifts[b].kept
        task = Task(tasks, y[b].numpy(), slots, b, n0, classes, kept)
        made.append([(*task.variants(row, most), task.new_labels(row))
                     for row in range(rows, len(own))])
    count = max((len(w) for task in made for _, w, *_ in task), default=1)
    cells = np.zeros((len(x), x.shape[1] - rows, count, x.shape[2]), x.dtype)
    weights = np.zeros(cells.shape[:3])
    sample = np.zeros(cells.shape[:2], np.int64)
    labels = np.zeros((*cells.shape[:3], MOST_NEW))
    alike = np.zeros((*cells.shape[:2], MOST_NEW))
    shift = np.zeros((*cells.shape[:2], 1 + TOGETHER, 3))
    for b, task in enumerate(made):
        for m, (variants, w, drawn, new) in enumerate(task):
            cells[b, m], sample[b, m] = variants[0], drawn
            labels[b, m, :len(w), :len(new)] = variants[:, list(new)]
            alike[b, m, :len(new)] = list(new.values())
            cells[b, m, :len(w)], weights[b, m, :len(w)] = variants, w
            query = x[b, rows + m]
            if shifts is not None and not np.array_equal(variants, query[None], equal_nan=True):
                found = shifts[b].of_query(query)
                shift[b, m, :len(found)] = found
    asked = torch.cat([tasks.x[:, :rows], torch.from_numpy(cells).flatten(1, 2)], 1)
    targets = torch.cat([tasks.y[:, :rows], tasks.y[:, rows:].repeat_interleave(count, 1)], 1)
    return Variants(replace(tasks, x=asked, y=targets), count,
                    torch.from_numpy(weights), torch.from_numpy(sample), torch.from_numpy(labels),
                    torch.from_numpy(alike),
                    None if shifts is None else torch.from_numpy(shift))


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


def join_classes(log_p, variants, share):
    """Log probabilities [B, M, C] of queries from those [B, M * k, C] of their variants; share
    [B, C]: that each class has of a new label before anything is known.
    """
    joined = join_log(log_p, variants.weights)
    if variants.alike is None or not (variants.alike > 0).any():
        return joined
    out, weights = joined.double().exp(), variants.weights.double().numpy()
    said = log_p.double().exp().unflatten(1, (-1, weights.shape[2])).numpy()
    for b, m in np.ndindex(weights.shape[:2]):
        every = weights[b, m] @ said[b, m]
        total = (every * (1 - every)).sum()
        for column, q in told_apart(variants.labels[b, m].numpy(),
                                    variants.alike[b, m].tolist(), weights[b, m]):
            if total > 0:
                groups = np.unique(column, return_inverse=True)[1]
                of = np.eye(groups.max() + 1)[groups] * weights[b, m][:, None]
                rows = of.sum(0)
                mean = of.T @ said[b, m] / np.maximum(rows, 1e-300)[:, None]
                between = (rows[:, None] * (mean - every) ** 2).sum()
                other = min(OF_BETWEEN * between / total, 1) * MORE_LABELS / (MORE_LABELS + 1 / q)
                out[b, m] += other * (share[b] - out[b, m])
    return out.log().to(joined)


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


def variances_of_few(count, alike):
    """What the variance of groups, of which few are known, may be instead of theirs, [count]: a
    scaled inverse chi-square variable by quantiles of Wilson & Hilferty 1931.
    """
    ninth = 2 / 9 / max(1 / alike - 1, 1)
    places = [NormalDist().inv_cdf((k + 0.5) * GOLDEN % 1) for k in range(count)]
    root = np.maximum(1 - ninth + np.sqrt(ninth) * np.array(places), 0)
    return 1 / np.maximum(root ** 3, 1 / MOST_VARIANCE)


def told_apart(labels, alike, weights):
    """Of columns of labels [k, L], where their alike [L] is no 0, those that tell other variants of
    some weight [k] apart than all before them do, and their alike.
    """
    rows = weights > 0
    ways = [tuple((column[:, None] == column).ravel()) for column in labels[rows].T]
    return [(labels[:, i], q) for i, (way, q) in enumerate(zip(ways, alike))
            if q > 0 and way not in ways[:i]]


def apart_as_new(parts, weights, labels, alike):
    """The deviations [k] that answers of components [k, C, 3] (weight, mean, standard deviation)
    and of these weights [k] get, whose rows have other labels [k, L] where the query has new ones;
    alike [L]: how probably two rows have the same, or 0 where nothing is new.
    """
    if (weights > 0).sum() < 2:
        return np.zeros(len(weights))
    means, more = (parts[..., 0] * parts[..., 1]).sum(1), np.zeros(len(weights))
    for column, q in told_apart(labels, alike, weights):
        place = np.unique(column, return_inverse=True)[1]
        share = np.bincount(place, weights)
        each = np.bincount(place, weights * means) / np.maximum(share, 1e-300)
        between = (share * (each - (weights * means).sum()) ** 2).sum()
        more += between * np.maximum((1 + q) / (1 - q) * variances_of_few(len(weights), q) - 1, 0)
    return more ** 0.5


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
        share, more = weights[place], apart_as_new(
            parts[place], weights[place], variants.labels[place].numpy(),
            variants.alike[place].numpy())
        own = widened(parts[place], int(variants.sample[place])).copy()
        own[..., 2] = np.hypot(own[..., 2], more[:, None])
        own[..., 0] *= share[:, None]
        joined[place] = reduced(own.reshape(-1, 3), count) if share[0] < 1 else own[0]
    joined = torch.from_numpy(joined)
    joined = joined.to(answer.mean)
    made.log_weight, made.mean, made.sd = joined[..., 0].log(), joined[..., 1], joined[..., 2]
    return made


def shifted(answer, shift):
    """Mixtures [B, M, C], each plus one of normal numbers, shift [B, M, k, 3] their weights, means
    and variances; of no weight at all where nothing changes.
    """
    if shift is None or not (shift[..., 0] > 0).any():
        return answer
    made, count = copy.copy(answer), answer.mean.shape[-1]
    own = torch.stack([answer.log_weight.exp(), answer.mean, answer.sd], -1).double().numpy()
    joined = own.copy()
    for place in zip(*np.nonzero((shift[..., 0] > 0).any(-1).numpy())):
        weight, mean, sd = own[place].T
        parts = [np.stack([weight * w, mean + m, np.hypot(sd, v ** 0.5)], 1)
                 for w, m, v in shift[place].numpy()]
        joined[place] = reduced(np.concatenate(parts), count)
    joined = torch.from_numpy(joined).to(answer.mean)
    made.log_weight, made.mean, made.sd = joined[..., 0].log(), joined[..., 1], joined[..., 2]
    return made
