"""Time series: a time column, seasonal columns, exogenous columns; trend plus harmonics plus smooth
wandering.
"""
import math

import torch

from .source import standardise


def smooth(s, t, scale, frequencies=32):
    """Smooth random functions of t [B, N, 1] with frequency scale [B, 1, 1]; [B, N]."""
    tasks = t.shape[0]
    w = s.randn(tasks, 1, frequencies) * scale
    return (torch.cos(t * w + s.uniform(0, 2 * math.pi, tasks, 1, frequencies))
            @ s.randn(tasks, frequencies, 1))[..., 0]


def sample(s, tasks, rows, features):
    """Features [B, N, F], target [B, N]; half of the tasks keep the order of time."""
    regular = torch.arange(rows, device=s.device).expand(tasks, -1) / rows
    t = torch.where(s.coin(0.5, tasks, 1), regular, s.rand(tasks, rows).sort(1).values)[..., None]
    period = 1 / s.log_uniform(1.5, 12, tasks, 1, 1)
    phase = (t / period) % 1
    columns = [
        t,
        phase,
        torch.sin(2 * math.pi * phase),
        (phase * s.integers(4, 24, tasks, 1, 1)).floor(),
        smooth(s, t, s.log_uniform(2, 40, tasks, 1, 1))[..., None],
        torch.cos(2 * math.pi * phase),
    ]
    extra = max(features - len(columns), 0)
    if extra:
        wander = s.randn(tasks, rows, extra) * s.rand(tasks, 1, extra)
        columns.append(wander + columns[4] * s.randn(tasks, 1, extra)
                       * s.coin(0.3, tasks, 1, extra))
    harmonics = sum(
        s.randn(tasks, 1, 1) / k
        * torch.sin(2 * math.pi * k * phase + s.uniform(0, 6.3, tasks, 1, 1))
                    for k in (1, 2, 3))[..., 0]
    parts = [standardise(smooth(s, t, s.log_uniform(1, 25, tasks, 1, 1))), standardise(harmonics),
             standardise(t[..., 0]), standardise(columns[4][..., 0])]
    y = sum(part * s.rand(tasks, 1) * s.coin(0.6, tasks, 1) for part in parts) + 1e-3 * parts[0]
    x = torch.cat(columns, 2)
    x = x[:, :, :features] if features == 1 else x
    if x.shape[2] > features:
        keep = s.order(tasks, x.shape[2])[:, :features]
        x = x.gather(2, keep[:, None].expand(-1, rows, -1))
    shuffled = s.order(tasks, rows)
    place = torch.where(s.coin(0.5, tasks, 1), shuffled, torch.arange(rows, device=s.device))
    return x.gather(1, place[..., None].expand_as(x)), y.gather(1, place)
