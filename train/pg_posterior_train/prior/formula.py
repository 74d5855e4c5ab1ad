"""Targets that a formula of a few columns makes, exact or nearly so, but for some rows that are
wrong: areas and ratios, logs of other columns, totals, distances.

They are what tells a process that all but knows the targets from one that merely fits them well.
"""
import torch

from .inputs import draw_inputs
from .source import standardise

INVOLVED = 4                     # columns at most
POWERS = (-1.0, -0.5, 0.5, 1.0, 2.0)
FINEST = 1e-2                    # of a number that is divided by, or of which a log is taken


def columns(s, tasks, rows, features):
    """Columns [B, N, F], some of them skewed, some whole numbers."""
    x = draw_inputs(s, tasks, rows, features, 0.2)
    skewed = torch.exp(x.clamp(-4, 4) * s.uniform(0.3, 1, tasks, 1, features))
    x = torch.where(s.coin(0.4, tasks, 1, features), skewed, x)
    whole = (x * s.log_uniform(2, 50, tasks, 1, features)).round()
    return torch.where(s.coin(0.2, tasks, 1, features), whole, x)


def function(s, x):
    """Values f [B, N] at x [B, N, F] of up to INVOLVED columns."""
    tasks, rows, features = x.shape
    involved = min(INVOLVED, features)
    column = s.order(tasks, features)[:, :involved]
    nodes = x.gather(2, column[:, None].expand(-1, rows, -1))
    on = torch.arange(involved, device=x.device) < s.integers(1, involved, tasks, 1)
    logs = nodes.abs().clamp_min(FINEST).log()
    power = torch.tensor(POWERS, device=x.device)[s.integers(0, 4, tasks, 1, involved)]
    weight = on[:, None] * s.randn(tasks, 1, involved)
    shapes = torch.stack([nodes, nodes.square(), nodes.abs(), logs, nodes.abs().sqrt()], 3)
    shape = s.integers(0, 4, tasks, 1, involved, 1).expand(-1, rows, -1, -1)
    last = nodes[..., -1].abs().clamp_min(FINEST)
    kinds = torch.stack([
        torch.exp((on[:, None] * power * logs).sum(2).clamp(-12, 12)),
        (weight * shapes.gather(3, shape)[..., 0]).sum(2),
        (weight * nodes).sum(2) / (1 + last),
        (weight * logs).sum(2),
        (weight * nodes).square().sum(2).sqrt(),
        (weight * nodes).sum(2),
    ], 2)
    return kinds.gather(2, s.integers(0, kinds.shape[2] - 1, tasks, 1, 1).expand(-1, rows, -1))[
        ..., 0]


def sample(s, tasks, rows, features):
    """Columns [B, N, F] and targets [B, N] of unit scale, with the noise that they have."""
    x = columns(s, tasks, rows, features)
    y = standardise(function(s, x))
    noise = s.log_uniform(1e-5, 0.03, tasks, 1) * s.coin(0.7, tasks, 1)
    wrong = s.rand(tasks, rows) < s.log_uniform(0.005, 0.05, tasks, 1) * s.coin(0.35, tasks, 1)
    noise = torch.where(wrong, s.log_uniform(0.05, 1, tasks, 1), noise)
    y = y + noise * s.randn(tasks, rows)
    levels = s.log_uniform(20, 2000, tasks, 1)
    return x, torch.where(s.coin(0.25, tasks, 1), (y * levels).round() / levels, y)
