"""Classification: cells, target encoder, head and loss of models whose targets are classes
(docs/model-format.md, sections 3 to 5 and 8).

A target is the index of its class, 0 … K - 1, where K, the number of classes of the task, is given:
a class may be known and still be absent from the prefix. The model has room for C classes; those
from K on have probability 0.
"""
import math

import torch
from torch import nn

from . import class_prior, logistic, ridge
from .class_order import class_places
from .clip import soft_clip
from .digests import ordered_labels
from .donors import Slots, Variants, join_classes, lend
from .far import near_cells
from .labels import add_class_labels, settled
from .normalise import (MISSING_BIN, Inputs, ask, codes_by_targets, encode_categories,
                        numeric_bins, oriented, plain_features,
                        scale_features, slot_bins, slot_order)
from .questions import chain_passes, statistics_rows, training_questions, whole_prefix
from .split import split_labels
from .tasks import Tasks

COMMON = 8                     # numbers of a cell before its class shares


def is_classifier(config):
    """Whether the targets of this model are classes."""
    return config["target"]["scaling"] == "classes"


def cell_width(config):
    """Numbers per cell of the row tokeniser."""
    return COMMON + config["head"]["classes"] if is_classifier(config) else COMMON


class ClassEncoder(nn.Embedding):
    """E_y of a class: its row of a table."""

    def forward(self, y):
        """y [..., 1]: class indices as numbers; returns [..., d]."""
        return super().forward(y[..., 0].long())


def correlation_ratio(z, onehot, present):
    """The square of the correlation ratio of a number and the classes, adjusted and as it is, [B,
    F] each: z, present [B, n, F]; onehot [B, n, C].

    The share of the variance of z that lies between the classes, adjusted as in `between`. With two
    classes its root is the size of the Pearson correlation, but for the adjustment.
    """
    w = present.to(z.dtype)
    count = w.sum(1)
    z = (z - ((z * w).sum(1) / count.clamp_min(1))[:, None]) * w
    members = torch.einsum("bnf,bnc->bcf", w, onehot)
    sums = torch.einsum("bnf,bnc->bcf", z, onehot)
    inside = (sums.square() / members.clamp_min(1)).sum(1)
    total = z.square().sum(1)
    classes = (members > 0).sum(1)
    tiny = torch.finfo(z.dtype).eps ** 2 * 16
    flat = total <= tiny * count
    ratio = torch.where(flat, torch.zeros_like(total), inside / total.clamp_min(1e-30))
    share = 1 - (1 - ratio) * (count - 1) / (count - classes).clamp_min(1)
    return torch.where(flat | (count <= classes), torch.zeros_like(share),
                       share.clamp(0, 1)), ratio


def between(counts, excess, share, n):
    """The share of the classes' variance between bins (Goodman and Kruskal's tau), adjusted and as
    it is, [B, F] each.

    counts [B, bins, F]; excess [B, bins, C, F]: members of a class beyond those expected; share [B,
    C] of the classes.
    """
    inside = (excess.square() / counts.clamp_min(1)[:, :, None]).sum((1, 2))
    total = (n * (1 - share.square().sum(1)))[:, None]
    bins = (counts > 0).sum(1)
    tau = torch.where(total <= 1e-9, torch.zeros_like(inside), inside / total.clamp_min(1e-30))
    e = 1 - (1 - tau) * (n - 1) / (n - bins).clamp_min(1)
    return torch.where((bins >= n) | (total <= 1e-9), torch.zeros_like(e), e.clamp_min(0)), tau


def class_cells(tasks, y, classes, prefix, config, found=None):
    """Cell vectors in slot order, flat, [B, N, min(F, max_features) * (8 + C)], with `ridge` and
    `logistic` followed by their numbers; y [B, N] long, classes [B]. `found` as of normalise.cells.
    """
    most = config["head"]["classes"]
    # What codes and orientations compare; only places of ordered classes mean anything.
    x, categorical = oriented(tasks, -y.to(tasks.x.dtype), prefix, config), tasks.categorical
    rows, features = x.shape[1:]
    bins = numeric_bins(x, prefix)
    if categorical.any():
        told = -y[:, :prefix] if config["embedder"]["x"].get("codes") == "targets" else None
        codes, category_bins = encode_categories(x, prefix, categorical, told,
                                                 "split" in config["embedder"]["x"])
        if told is not None:
            codes = codes_by_targets(codes.isnan(), category_bins, told).to(x.dtype)
        x = torch.where(categorical[:, None, :], codes, x)
        bins = torch.where(categorical[:, None, :], category_bins, bins)
    missing = x.isnan()
    bins = torch.where(missing, torch.full_like(bins, MISSING_BIN), bins)
    z = soft_clip(scale_features(x, prefix), config["inputs"].get("clip", 0)).nan_to_num(0.0)

    onehot = nn.functional.one_hot(y, most).to(z.dtype)
    share = onehot[:, :prefix].mean(1)
    members = torch.zeros(x.shape[0], (MISSING_BIN + 1) * most, features, dtype=z.dtype,
                          device=x.device)
    place = bins[:, :prefix] * most + y[:, :prefix, None]
    members.scatter_add_(1, place, torch.ones_like(z[:, :prefix]))
    members = members.unflatten(1, (MISSING_BIN + 1, most))
    counts = members.sum(2)
    excess = members - counts[:, :, None] * share[:, None, :, None]

    square, ratio = correlation_ratio(z[:, :prefix], onehot[:, :prefix], ~missing[:, :prefix])
    r = square.sqrt()
    e, tau = between(counts, excess, share, prefix)
    w = missing[:, :prefix].to(z.dtype).mean(1)
    order, used = slot_order(torch.maximum(e, r.square()), tau + ratio, x, prefix,
                             config["inputs"]["max_features"])

    def slots(v):
        """The used columns of v [B, …, F] in slot order."""
        wide = order.reshape(len(order), *[1] * (v.dim() - 2), -1)
        return v.gather(-1, wide.expand(*v.shape[:-1], -1))

    # A row of the prefix does not count itself.
    own = torch.zeros(rows, dtype=z.dtype, device=x.device)
    own[:prefix] = 1
    bins = slots(bins)
    count = slots(counts).gather(1, bins)
    gained = slots(excess).gather(1, bins[:, :, None].expand(-1, -1, most, -1))
    gained = gained - (own[:, None] * (onehot - share[:, None]))[..., None]
    t = gained / (count + 1.5 - own[:, None])[:, :, None]
    z = slots(z)
    if found is not None:
        absent, many = slots(excess)[:, MISSING_BIN], slots(counts)[:, MISSING_BIN]
        expected = (many.clamp_min(1)[:, None] * share[..., None]).clamp_min(1e-30)
        degrees = ((share > 0).sum(1, keepdim=True) - 1).expand(-1, many.shape[1])
        found.append(Slots(order, used, z, bins == MISSING_BIN,
                           many, (absent.square() / expected).sum(1), degrees, bins=bins))
    common = [z, slots(missing).to(z.dtype), slots(categorical)[:, None].to(z.dtype).expand_as(z),
              (classes.to(z.dtype) / most)[:, None, None].expand_as(z),
              torch.full_like(z, math.log1p(prefix) / 8)]
    common += [slots(v)[:, None].expand_as(z) for v in (r, e, w)]
    flat = (torch.cat([torch.stack(common, -1), t.transpose(2, 3)], -1)
            * used[:, None, :, None]).flatten(2)
    return torch.cat(
        [flat, *regressions(z, bins, slot_bins(counts, order) & used[:, None],
                            categorical.gather(1, order), y, classes, prefix, config)], 2)


def regressions(z, bins, filled, categorical, y, classes, prefix, config):
    """What regressions of the prefix say about every row, a list of [B, N, numbers]; z …
    categorical as for ridge.design.
    """
    most, clip, tokeniser = config["head"]["classes"], config["inputs"].get(
        "clip", 0), config["embedder"]["x"]
    wanted = [name for name in ("ridge", "logistic") if tokeniser.get(name, False)]

    def design(splines):
        return ridge.design(z, bins, filled, categorical, splines)[0]

    said = {
        "ridge": lambda: torch.cat(
            [ridge.classification(design(s), y, classes, most, prefix, clip)
             for s in (False, True)], 2),
            "logistic": lambda: logistic.opinions(design(False), y, classes, most, prefix, clip)}
    with torch.no_grad():
        return [said[name]().to(z.dtype) for name in wanted]


def known_classes(y, rows, most):
    """Classes as the first `rows` rows have them: (indices [B, N], their number [B], whether each
    row's class is one of them).

    Classes that the rows have are numbered anew from 0, in their order.
    """
    present = torch.zeros(len(y), most, dtype=torch.bool, device=y.device)
    present.scatter_(1, y[:, :rows].long(), True)
    code = present.long().cumsum(1) - 1
    known = present.gather(1, y.long())
    return torch.where(known, code.gather(1, y.long()), torch.zeros_like(code[:, :1])), present.sum(
        1), known


def as_labels(tasks, y, classes, prefix, config):
    """normalise.as_labels of a classifier: y [B, N] places of classes, classes [B]."""
    def split(given, named):
        return split_labels(given, y, prefix, config, named)

    if not config["embedder"]["x"].get("labels", False) or tasks.number is not None:
        return split(tasks, None)
    return settled(add_class_labels(tasks, y, classes, prefix, config, class_cells, split))


def prepare_classes(tasks, rows, prefix, config, numbered=None):
    """(Inputs, classes [B], known [B, N]) of tasks whose statistics are frozen after `prefix` and
    whose classes are those of `rows` rows, or numbered as `known_classes` says."""
    y, classes, known = numbered or known_classes(tasks.y, rows, config["head"]["classes"])
    if "max_features" in config["inputs"]:
        tasks = as_labels(tasks, y, classes, prefix, config)
        x = class_cells(tasks, y, classes, prefix, config)
    else:
        x = plain_features(tasks.x, prefix, config["inputs"])
    targets = y.to(tasks.x.dtype)
    one = torch.ones_like(targets[:, 0])
    return Inputs(x, targets, targets, torch.zeros_like(one), one), classes, known


def log_probabilities(outputs, classes):
    """Log probabilities [B, M, C] from head outputs; -inf for the classes that a task does not
    have.
    """
    absent = torch.arange(outputs.shape[-1], device=outputs.device) >= classes[:, None]
    return outputs.masked_fill(absent[:, None], float("-inf")).log_softmax(-1)


def class_loss(model, tasks, rows, prefix):
    """Mean negative log probability per task, averaged over tasks (see trainer.batch_loss)."""
    asked = training_questions(model.config, rows, tasks.y.shape[1], prefix, tasks.y.device)
    inputs, classes, known = prepare_classes(tasks, rows, asked.statistics, model.config)
    outputs = ask(model, inputs, asked)
    y, kept = inputs.y[:, asked.first:].long(), known[:, asked.first:]
    log_p = log_probabilities(outputs, classes).gather(2, y[..., None])[..., 0]
    log_p = torch.where(kept, log_p, torch.zeros_like(log_p))
    return -(log_p.sum(1) / kept.sum(1).clamp_min(1)).mean()


@torch.no_grad()
def classify(model, tasks, rows, prefix=None, visible=None, statistics=None, numbered=None):
    """Log probabilities [B, M, C] of the rows of `tasks` after the first `rows`, the number of
    classes [B], and the indices [B, M] and known [B, M] of the true ones.

    prefix, visible, statistics: as of predict.predict; numbered: as of prepare_classes.
    """
    config = model.config
    prefix = whole_prefix(config, rows) if prefix is None else prefix
    statistics = statistics_rows(config, prefix) if statistics is None else statistics
    if visible is None:
        visible = torch.full((tasks.y.shape[1] - rows,), rows)
    given, classes, known = numbered or known_classes(tasks.y, rows, config["head"]["classes"])
    place = class_places(tasks, given, statistics, config)
    y = place.gather(1, given.long()).to(given.dtype)
    tasks = near_cells(tasks, statistics, config)
    if "max_features" in config["inputs"]:
        tasks = ordered_labels(tasks, -y, statistics, config)
        tasks = as_labels(tasks, y, classes, statistics, config)
    asked = Variants(tasks, 1, torch.ones(*tasks.y[:, rows:].shape, 1))
    most, found = config["embedder"].get("x", {}).get("donors"), []
    leans = any(config["head"].get(key) for key in ("class_process", "trees"))
    if most or leans:
        class_cells(tasks, y, classes, statistics, config, found)
    if most:
        asked = lend(tasks, y, rows, statistics, found[0], most, classes=True)
    both = (torch.cat([v[:, :rows], v[:, rows:].repeat_interleave(asked.count, 1)], 1)
            for v in (y, known))
    many = next(both), classes, next(both)
    inputs, _, _ = prepare_classes(asked.tasks, rows, statistics, config, many)
    outputs = model(inputs.x[:, :rows], inputs.y_input[:, :rows], inputs.x[:, rows:], prefix,
                    visible.repeat_interleave(asked.count))
    if leans:
        class_cells(asked.tasks, many[0].long(), classes, statistics, config, found)
        outputs = class_prior.lean(outputs, asked.tasks, *found, inputs.x, y, classes, rows,
                                   statistics, config)
    there = torch.nn.functional.one_hot(y[:, :statistics].long(), outputs.shape[-1]).amax(1)
    log_p = join_classes(log_probabilities(outputs, classes), asked,
                         there / there.double().sum(1, keepdim=True))
    log_p = log_p.gather(2, place[:, None].expand_as(log_p))
    return log_p, classes, given[:, rows:].long(), known[:, rows:]


@torch.no_grad()
def class_chain(model, tasks, rows):
    """As classify, of a chain over the rows after the first `rows` (predict.chain). All rows tell
    which classes there are.
    """
    out, config, total = [], model.config, tasks.y.shape[1]
    y, classes, known = known_classes(tasks.y, total, config["head"]["classes"])
    for part in chain_passes(config, rows, total):
        block = Tasks(tasks.x[:, part.order], tasks.y[:, part.order], tasks.categorical)
        numbered = y[:, part.order], classes, known[:, part.order]
        out.append(classify(model, block, part.rows, part.prefix, part.visible, part.statistics,
                            numbered))
    log_p, _, true, known = (torch.cat(parts, 1) if parts[0].dim() > 1 else parts[0]
                             for parts in zip(*out))
    return log_p, classes, true, known
