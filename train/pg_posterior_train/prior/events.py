"""Targets that are few values, or one value most of the time: events, counts, amounts, levels."""
import torch

from .source import standardise

LEAST_SHARE, MOST_SHARE = 0.02, 0.5    # of rows with an event
MOST_LEVELS = 9


def largest(score, share):
    """Whether the score of a row, [B, N], is among the largest `share` [B, 1] of their task's."""
    rows = score.shape[1]
    last = (share * rows).long().clamp(1, rows - 1)
    return score >= score.sort(1, descending=True).values.gather(1, last - 1)


def levels(s, f):
    """Two to nine levels [B, N], unevenly likely and unevenly far apart, by the order of f [B, N]
    and noise; in a third of the tasks by chance alone.
    """
    tasks, rows = f.shape
    size = s.log_uniform(0.05, 3, tasks, 1)
    size = torch.where(s.coin(0.33, tasks, 1), torch.full_like(size, 1e3), size)
    place = (f + size * s.randn(tasks, rows)).argsort(1).argsort(1) / rows
    used = torch.arange(MOST_LEVELS, device=s.device) < s.integers(2, MOST_LEVELS, tasks, 1)
    share = s.log_uniform(0.1, 1, tasks, MOST_LEVELS) * used
    bound = (share / share.sum(1, keepdim=True)).cumsum(1)
    level = (place[:, :, None] >= bound[:, None]).sum(2).clamp_max(MOST_LEVELS - 1)
    even = s.coin(0.5, tasks, 1)
    apart = torch.where(even, torch.ones_like(share), s.log_uniform(0.3, 5, tasks, MOST_LEVELS))
    return apart.cumsum(1).gather(1, level)


def target(s, f):
    """y [B, N] from a function f [B, N]: 0 and 1, counts, levels, or amounts that are mostly 0.

    Each task has one kind: whether f and noise exceed a bound; a Poisson number whose rate is the
    exponential of f, mixed by a gamma-like factor in half of the tasks; how far the bound is
    exceeded (Tobit); an amount of its own where it is exceeded; levels (below).
    """
    tasks, rows = f.shape
    f = standardise(f)
    noise = torch.where(s.coin(0.2, tasks, 1), s.student(3, tasks, rows), s.randn(tasks, rows))
    score = f + s.log_uniform(0.05, 3, tasks, 1) * noise
    share = s.log_uniform(LEAST_SHARE, MOST_SHARE, tasks, 1)
    event = largest(score, share)
    bound = torch.where(event, score, score.amax(1, keepdim=True)).amin(1, keepdim=True)

    spread = s.uniform(0, 1, tasks, 1) * s.coin(0.5, tasks, 1)
    rate = s.log_uniform(0.05, 6, tasks, 1) * torch.exp(
        (s.uniform(0.2, 1.2, tasks, 1) * f).clamp(-4, 3) + spread * s.randn(tasks, rows))
    count = torch.poisson(rate.clamp_max(200), generator=s.generator)

    beyond = torch.where(event, score - bound, torch.zeros_like(score))
    size = torch.exp(s.uniform(0, 1, tasks, 1) * s.randn(tasks, rows)
                     + s.uniform(-0.5, 0.5, tasks, 1) * f)
    amount = torch.where(event, size, torch.zeros_like(size))

    kind = s.rand(tasks, 1)
    y = torch.where(kind < 0.3, event.to(f.dtype), count)
    y = torch.where((kind >= 0.6) & (kind < 0.7), beyond, y)
    y = torch.where((kind >= 0.7) & (kind < 0.8), amount, y)
    y = torch.where(kind >= 0.8, levels(s, f), y)
    return y * (1 - 2 * s.coin(0.2, tasks, 1).float())
