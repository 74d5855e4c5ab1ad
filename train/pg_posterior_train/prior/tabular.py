"""The tabular prior: a mixture of families with shared corruptions.

One call has one number of columns; the tasks of a batch are split over the families in small
groups.
"""
import math
from collections import Counter

import torch

from ..tasks import Tasks, concatenate
from . import (additive, corrupt, events, factor, formula, gp, linear, ordered, panel, scm, sharp,
               timeseries, trees)
from .inputs import draw_inputs, relevance
from .source import Source, standardise

FUNCTIONS = {"trees": trees.function, "gp": gp.function, "linear": linear.function,
             "additive": additive.function}
SAMPLERS = {"scm": scm.sample, "timeseries": timeseries.sample, "factor": factor.sample,
            "ordered": ordered.sample, "formula": formula.sample}
WEIGHTS = {"scm": 0.20, "trees": 0.12, "gp": 0.13, "linear": 0.15, "additive": 0.08,
           "timeseries": 0.06, "panel": 0.16,
           "factor": 0.10}
FEWEST_COLUMNS = {"panel": 2, "factor": 12}
NOISE = {"sharp": (0.003, 0.5)}    # where it is not that of most families
MOST_NOISE = 0.6    # of a padded task's columns
GROUP = 4    # tasks of one family in a row


def choose_features(rng, most):
    """Number of columns: mostly few, sometimes many."""
    u = rng.random()
    low, high = (1, 16) if u < 0.5 else (6, 32) if u < 0.8 else (24, most)
    low, high = min(low, most), min(high, most)
    return int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))


def functional(s, family, tasks, rows, features, near_copies):
    """Inputs and a function of them; 30 % are sums of two families."""
    x = corrupt.drift(s, draw_inputs(s, tasks, rows, features, near_copies))
    weight = relevance(s, tasks, features)
    f = standardise(FUNCTIONS[family](s, x, weight))
    other = list(FUNCTIONS)[s.one(0, len(FUNCTIONS) - 1)]
    second = standardise(FUNCTIONS[other](s, x, relevance(s, tasks, features)))
    return x, f + second * s.coin(0.3, tasks, 1) * s.rand(tasks, 1)


def noise_columns(s, x, count):
    """`count` columns that say nothing, [B, N, count]: Gaussian numbers, or columns of x [B, N, F]
    with their rows in another order.
    """
    tasks, rows, features = x.shape
    column = s.integers(0, features - 1, tasks, 1, count).expand(-1, rows, -1)
    shuffled = x.gather(2, column).gather(1, s.rand(tasks, rows, count).argsort(1))
    # none, half or all of a task's
    gaussian = s.rand(tasks, 1, count) < s.integers(0, 2, tasks, 1, 1) / 2
    return torch.where(gaussian, s.randn(tasks, rows, count), shuffled)


def one_family(s, family, tasks, rows, features, near_copies, padded=0.0, absent=0.0, rare=0.0,
               breaks=0.0):
    """`tasks` corrupted tasks of one family; with probability `padded` up to 60 % of the columns
    are noise beside what the family draws, with probability `absent` a task lacks cells from some
    row on, and numbers are mirrored at random, with probability `rare` its targets are events,
    counts or amounts that are mostly 0, with probability `breaks` another relation from some row
    on.
    """
    added, spare = 0, features - FEWEST_COLUMNS.get(family, 1)
    if padded and spare > 0 and s.coin(padded, 1):
        added = min(1 + int(s.uniform(0, MOST_NOISE, 1) * (features - 1)), spare)
        features -= added
    x, categorical, hidden = None, torch.zeros(tasks, features, dtype=torch.bool,
                                               device=s.device), None
    if family == "panel":
        x, f, categorical, hidden = panel.sample(s, tasks, rows, features)
    elif family in SAMPLERS:
        x, f = SAMPLERS[family](s, tasks, rows, features)
    elif family == "sharp":
        x = draw_inputs(s, tasks, rows, features, 0.1)
        f = standardise(sharp.function(s, x))
    else:
        x, f = functional(s, family, tasks, rows, features, near_copies)
    y = f if family == "formula" else corrupt.noisy_target(s, f, x, *NOISE.get(family, ()))
    if rare:
        y = torch.where(s.coin(rare, tasks, 1), events.target(s, f), y)
    if breaks:
        y = corrupt.broken(s, y, breaks)
    if added:
        x = torch.cat([x, noise_columns(s, x, added)], 2)
        features += added
        categorical, hidden = (m if m is None else torch.cat([m, m.new_zeros(*m.shape[:-1], added)],
                                                             -1) for m in (categorical, hidden))
    missing = corrupt.missing_cells(s, x, y, 0.7 if family == "factor" else 0.35)
    if absent:
        missing = missing | corrupt.absent_later(s, x, absent)
        mirrored = s.coin(0.5, tasks, 1, features) & ~categorical[:, None]
        x = torch.where(mirrored, -x, x)
    if family in ("sharp", "formula"):
        x, categorical = (corrupt.categories(s, x, categorical) if s.coin(0.1, 1)
                          else (x, categorical))
    elif family not in ("panel", "factor"):
        x = corrupt.dull_columns(s, corrupt.warped_columns(s, x))
        x, categorical = corrupt.categories(s, x, categorical)
    x = torch.where(missing, torch.full_like(x, float("nan")), x)
    if hidden is not None:
        x = torch.where(hidden, torch.full_like(x, float("nan")), x)
    column = s.order(tasks, features)
    x = x.gather(2, column[:, None].expand(-1, rows, -1))
    return Tasks(x, y, categorical.gather(1, column))


def sample(generator, tasks, rows, shared, max_features=64, families=None, weights=None,
           near_copies=0.25, padded=0.0, absent=0.0, events=0.0, breaks=0.0):
    """A batch of tasks; `shared` decides the number of columns alike for all workers.

    families: the names that take part (default: all); weights: their shares where they differ from
    WEIGHTS; near_copies: share of the functional tasks whose columns are nearly collinear; padded:
    probability that a family's tasks get added columns of noise; absent: share of the tasks that
    lack cells from some row on; events: share of the tasks whose targets are events, counts or
    amounts that are mostly 0; breaks: share of the tasks whose targets follow another relation from
    some row on. The families `sharp`, `ordered` and `formula` take part where weights
    name them.
    """
    s = Source(generator)
    shares = {**WEIGHTS, **(weights or {})}
    wanted = families or shares
    features = max(choose_features(shared, max_features),
                   min(FEWEST_COLUMNS.get(f, 1) for f in wanted))
    allowed = [f for f in wanted if features >= FEWEST_COLUMNS.get(f, 1)]
    weight = torch.tensor([float(shares.get(f, 0.1)) for f in allowed], device=s.device)
    groups = -(-tasks // GROUP)
    picks = torch.multinomial(weight, groups, replacement=True, generator=generator).tolist()
    counts = Counter(picks)
    drawn = concatenate(
        [one_family(s, allowed[i], counts[i] * GROUP, rows, features, near_copies, padded, absent,
                    events, breaks)
         for i in sorted(counts)])
    return usable(Tasks(drawn.x[:tasks], drawn.y[:tasks], drawn.categorical[:tasks]))


def usable(tasks):
    """Replace tasks with non-finite or enormous targets by noise."""
    bad = (~torch.isfinite(tasks.y).all(1, keepdim=True)
           | (tasks.y.abs().amax(1, keepdim=True) > 1e6))
    y = torch.where(bad,
                    torch.arange(tasks.y.shape[1], device=tasks.y.device).to(tasks.y.dtype).sin(),
                    tasks.y)
    return Tasks(tasks.x.clamp(-1e6, 1e6), y, tasks.categorical)
