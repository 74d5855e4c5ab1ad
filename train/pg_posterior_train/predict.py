"""Answers of a trained model: predictive distributions for query rows, and one-pass chain
densities.
"""
import copy
import math
from dataclasses import replace

import numpy as np
import torch

from .digests import ordered_labels
from .donors import Task, Variants, join as join_variants, lend, shifted
from .far import near_cells, near_targets
from .heads import Joint, distribution
from .normalise import as_labels, cells, prepare, scale_targets
from .process import NUMBERS
from .process_chain import Chain
from .questions import chain_passes, statistics_rows, whole_prefix
from .rare import put_rare
from .shift import Shifts, features_of, parts_of
from .target_levels import put_levels
from .tasks import Tasks
from .trees_numbers import pull


class Prediction:
    """Predictive mixtures or bars in raw target units; one per query, [B, M], of several targets
    [B, M, D].
    """

    def __init__(self, mixture, center, scale):
        if (scale < 0).any():           # targets that are turned
            mixture = copy.copy(mixture)
            mixture.mean = mixture.mean * scale.sign()[:, None, None]
        self.mixture, self.center, self.scale = mixture, center[:, None], scale.abs()[:, None]

    def standard(self, y):
        return (y - self.center) / self.scale

    def log_prob(self, y):
        """Log density of raw targets y [B, M]."""
        density = self.mixture.log_prob(self.standard(y)) - self.scale.log()
        return density.sum(-1) if y.ndim == 3 else density

    def cdf(self, y):
        return self.mixture.cdf(self.standard(y))

    def moments(self):
        mean, sd = self.mixture.moments()
        return self.center + self.scale * mean, self.scale * sd

    def quantile(self, p):
        return self.center + self.scale * self.mixture.quantile(p)

    def crps(self, y):
        """Continuous ranked probability score, [B, M]: closed form for Gaussian mixtures (Grimit et
        al. 2006).
        """
        m = self.mixture
        w = m.log_weight.exp()
        first = (w * folded(self.standard(y)[..., None] - m.mean, m.sd)).sum(-1)
        difference = m.mean[..., :, None] - m.mean[..., None, :]
        spread = (m.sd.square()[..., :, None] + m.sd.square()[..., None, :]).sqrt()
        second = (w[..., :, None] * w[..., None, :] * folded(difference, spread)).sum((-2, -1))
        return (first - 0.5 * second) * self.scale


def folded(mean, sd):
    """E|X| of a Gaussian."""
    z = mean / sd
    normal = torch.distributions.Normal(0.0, 1.0)
    return (mean * (2 * normal.cdf(z) - 1) + 2 * sd * torch.exp(-0.5 * z.square())
            / math.sqrt(2 * math.pi))


@torch.no_grad()
def predict(model, tasks, rows, prefix=None, visible=None, statistics=None, chained=None):
    """Predictions for the rows of `tasks` after the first `rows`.

    prefix: rows that see each other (default: all context rows, or none of a causal model).
    visible [M]: context rows that each query sees (default: all).
    statistics: rows that the statistics come from (default: the prefix, and at least min_rows).
    chained: the first of the context rows that are of a chain, of a model whose process learns from
    them (default: none are).
    """
    prefix = whole_prefix(model.config, rows) if prefix is None else prefix
    statistics = statistics_rows(model.config, prefix) if statistics is None else statistics
    if visible is None:
        visible = torch.full((tasks.y.shape[1] - rows,), rows)
    tasks = near_cells(tasks, statistics, model.config)
    if "max_features" in model.config["inputs"]:
        y_input = scale_targets(tasks.y, statistics, model.config, tasks.x)[1]
        tasks = ordered_labels(tasks, y_input, statistics, model.config)
        tasks = as_labels(tasks, y_input, statistics, model.config)
    asked = variants(tasks, rows, statistics, model.config)
    visible = visible.repeat_interleave(asked.count)
    inputs = prepare(asked.tasks, statistics, model.config)
    known = torch.full_like(visible, statistics)
    said, head = {}, model.config["head"]
    if chained is not None and head.get("process_chain", False):
        # Tokens have what the process says of a row alone; the gate reads what it has learnt.
        steps = Chain(chained, rows, visible)
        learnt = prepare(asked.tasks, statistics, model.config, steps)
        said = {"said": learnt.x[:, rows:, -NUMBERS:]}
        known = known + (visible - chained).clamp_min(0)
    if head.get("process_behind", False):
        said["behind"] = (visible - known).clamp_min(0)
    outputs = model(inputs.x[:, :rows], inputs.y_input[:, :rows], inputs.x[:, rows:], prefix,
                    visible, **said)
    answer = distribution(model, outputs)
    if head.get("process"):
        known = near_targets(tasks.y, statistics, model.config, tasks.x)[:, :statistics]
        put_levels(answer, known, inputs, model.config)
        put_rare(answer, known, inputs, model.config)
        pull(answer, asked.tasks, inputs, rows, statistics, model.config)
    answer = shifted(join_variants(answer, asked), asked.shift)
    return Prediction(answer, inputs.center, inputs.scale)


def variants(tasks, rows, statistics, config):
    """The rows of `tasks` after the first `rows`, those that lack cells with the cells of donors.
    """
    most = config["embedder"].get("x", {}).get("donors")
    if not most:
        return Variants(tasks, 1, torch.ones(len(tasks.y), tasks.y.shape[1] - rows, 1))
    keep = []
    _, y_input, _, scale = scale_targets(tasks.y, statistics, config, tasks.x)
    cells(tasks, y_input, statistics, config, keep)
    known = near_targets(tasks.y, statistics, config, tasks.x) * scale.sign()[:, None]
    shifts = None
    if keep[0].known is not None:
        shifts = shifts_of(tasks, known, statistics, config, keep[0], most)
    return lend(tasks, known, rows, statistics, keep[0], most, shifts)


def shifts_of(tasks, y, statistics, config, slots, most):
    """A shift.Shifts of each task; where cells had better stay missing, of the others anew."""
    first = lending(tasks, y, statistics, config, slots, most, [()] * len(tasks.x))
    kept = [[g for f in own.tells for g in parts_of(x, task.order, f, task.number)]
            for own, x, task in first]
    if not any(kept):
        return [own for own, *_ in first]
    again = lending(tasks, y, statistics, config, slots, most, kept)
    return [new if cells else old for (new, *_), (old, *_), cells in zip(again, first, kept)]


def lending(tasks, y, statistics, config, slots, most, kept):
    """(a shift.Shifts, rows, the donors.Task) of each task: rows of the prefix that lack cells, but
    for those of the columns `kept` of each, with those of their donors, as further rows, so that
    the process speaks of them too. y [B, N] orders the prefix.
    """
    x, found = tasks.x.numpy(), []
    for b, own in enumerate(x):
        task = Task(tasks, y[b].numpy(), slots, b, statistics, kept=kept[b])
        features = features_of(own, task.order, task.count, statistics, task.number, kept[b])
        lacking = np.isnan(own[:statistics][:, features])
        made = [(row, *task.variants(row, most)[:2]) for row in np.flatnonzero(lacking.any(1))]
        made = [(row, variants, weight) for row, variants, weight in made
                if not np.array_equal(variants, own[row][None], equal_nan=True)]
        found.append((features, lacking, made, task))
    count = max(sum(len(w) for *_, w in made) for _, _, made, _ in found)
    more = np.repeat(x[:, :1], count, 1)
    for b, (_, _, made, _) in enumerate(found):
        variants = [v for _, v, _ in made]
        if variants:
            more[b, :sum(map(len, variants))] = np.concatenate(variants)
    asked = replace(tasks, x=torch.cat([tasks.x[:, :statistics], torch.from_numpy(more)], 1),
                    y=torch.cat([tasks.y[:, :statistics], tasks.y[:, :1].expand(-1, count)], 1))
    keep, out = [], []
    y_input = scale_targets(asked.y, statistics, config, asked.x)[1]
    cells(asked, y_input, statistics, config, keep)
    for known, (features, lacking, made, task), own, cell in zip(keep[0].known, found, x, kept):
        at, said = statistics, []
        for row, variants, weight in made:
            said.append(known.compare(row, slice(at, at + len(variants)), weight))
            at += len(variants)
        shifts = Shifts(features, lacking[[row for row, *_ in made]], said)
        shifts.kept = cell
        out.append((shifts, own, task))
    return out


@torch.no_grad()
def joint_density(model, tasks, rows):
    """Joint log density [B] of the rows after the first `rows`, by a joint head."""
    prefix = whole_prefix(model.config, rows)
    inputs = prepare(tasks, statistics_rows(model.config, prefix), model.config)
    asked = inputs.y[:, rows:]
    visible = torch.full((asked.shape[1],), rows)
    seen = inputs.x[:, :rows], inputs.y_input[:, :rows]
    outputs = model(*seen, inputs.x[:, rows:], prefix, visible)
    units = inputs.scale.log().flatten(1).sum(1) if inputs.scale.ndim > 1 else inputs.scale.log()
    return Joint(outputs).log_prob(asked.flatten(1)) - asked.shape[1] * units


def join(predictions):
    """Predictions of the blocks of a chain as one."""
    one = predictions[0]
    for name in ("log_weight", "mean", "sd", "log_mass"):
        if hasattr(one.mixture, name):
            parts = [getattr(p.mixture, name) for p in predictions]
            setattr(one.mixture, name, torch.cat(parts, 1))
    return one


@torch.no_grad()
def chain(model, tasks, rows):
    """Predictions of a chain over the rows after the first `rows`, each given the context and the
    true rows before it.

    The chain rows enter as later context rows and, in the same pass, as queries that see the rows
    before them; a model with a limit in chain.buffer merges every full block into the context,
    whose statistics stay.
    """
    out = []
    for part in chain_passes(model.config, rows, tasks.y.shape[1]):
        block = Tasks(tasks.x[:, part.order], tasks.y[:, part.order], tasks.categorical)
        out.append(predict(model, block, part.rows, part.prefix, part.visible, part.statistics,
                           rows))
    return join(out)
