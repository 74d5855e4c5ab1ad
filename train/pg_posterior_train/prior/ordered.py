"""Series of many steps: means of the season, a trend, and what wanders from step to step and is
seen by no column.

A row says little about its own deviation, but the rows before it do: in order, answers should
follow each other.
"""
import math

import torch

from .source import standardise


def wandering(s, tasks, rows):
    """A stationary autoregression of unit variance [B, N]: Matern 1/2 over 1 to some hundred steps,
    in half of the tasks smoothed once.
    """
    memory = torch.exp(-1 / s.log_uniform(1, 200, tasks))
    kick, v = s.randn(tasks, rows), []
    smooth = s.coin(0.5, tasks).float() * memory
    level = s.randn(tasks)
    slope = torch.zeros_like(level)
    for i in range(rows):
        level = memory * level + (1 - memory.square()).sqrt() * kick[:, i]
        slope = smooth * slope + (1 - smooth) * level
        v.append(slope)
    return standardise(torch.stack(v, 1))


def sample(s, tasks, rows, features):
    """Features [B, N, F], target [B, N]; most tasks keep the order of time. Columns: time, the step
    in the season, its cycle, numbers.
    """
    step = torch.arange(rows, device=s.device).expand(tasks, -1) + s.integers(0, 100, tasks, 1)
    period = s.integers(4, 48, tasks, 1)
    season = step % period
    angle = 2 * math.pi * season / period
    time = step / rows
    means = s.randn(tasks, 48)
    round_means = sum(s.randn(tasks, 1) / k * torch.sin(k * angle + s.uniform(0, 6.3, tasks, 1))
                      for k in (1, 2))
    seasonal = torch.where(s.coin(0.5, tasks, 1), round_means, means.gather(1, season))
    cycle = torch.div(step, period, rounding_mode="floor")
    columns = torch.stack([time, season.float(), torch.sin(angle), cycle.float(), torch.cos(angle),
                           (step % 7).float()], 2)
    extra = max(features - columns.shape[2], 0)
    own = (standardise(s.randn(tasks, rows, max(extra, 1)).cumsum(1))
           + 0.3 * s.randn(tasks, rows, max(extra, 1)))
    if extra:
        columns = torch.cat([columns, own], 2)
    share = s.rand(tasks, 4) + 0.02
    parts = [standardise(seasonal), standardise(time) * (1 - 2 * s.coin(0.5, tasks, 1).float()),
             wandering(s, tasks, rows), standardise(own[..., 0])]
    y = sum(share[:, i:i + 1] * part for i, part in enumerate(parts))
    y = y + share[:, 2:3] * wandering(s, tasks, rows)
    keep = s.order(tasks, columns.shape[2])[:, :features]
    # Time itself is nearly always among the columns.
    keep[:, 0] = torch.where((keep == 0).any(1) | s.coin(0.2, tasks), keep[:, 0],
                             torch.zeros_like(keep[:, 0]))
    place = torch.where(s.coin(0.2, tasks, 1), s.order(tasks, rows),
                        torch.arange(rows, device=s.device))
    x = columns.gather(2, keep[:, None].expand(-1, rows, -1))
    return x.gather(1, place[..., None].expand_as(x)), y.gather(1, place)
