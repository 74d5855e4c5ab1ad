"""Functions of few columns with hardly any noise: products, waves along a direction or along one
column, compositions.

What a process with a lengthscale for every column finds in some hundred rows.
"""
import math

import torch

from . import gp
from .source import standardise

INVOLVED = 4    # columns at most
DEPTH = 3       # compositions
SHORTEST = 6.0  # inverse lengthscale


def composed(s, nodes):
    """A random expression of the nodes [B, N, K]: every step joins two of them by one of seven
    ways.
    """
    tasks, rows, _ = nodes.shape
    for _ in range(DEPTH):
        pick = s.integers(0, nodes.shape[2] - 1, tasks, 1, 2).expand(-1, rows, -1)
        a, b = nodes.gather(2, pick).unbind(2)
        k = s.log_uniform(0.5, 3.0, tasks, 1)
        ways = torch.stack([a * b, a + k * b, torch.sin(k * a) * b, a * torch.cos(k * b),
                            torch.tanh(k * a) + b, torch.maximum(a, b),
                            torch.exp(-(k * a).square()) + b.abs()], 2)
        kind = s.integers(0, ways.shape[2] - 1, tasks, 1, 1).expand(-1, rows, -1)
        nodes = torch.cat([nodes, standardise(ways.gather(2, kind))], 2)
    return nodes[..., -1]


def function(s, x):
    """Values f [B, N] at x [B, N, F] of up to INVOLVED columns."""
    tasks, rows, features = x.shape
    involved = min(INVOLVED, features)
    column = s.order(tasks, features)[:, :involved]
    nodes = x.gather(2, column[:, None].expand(-1, rows, -1))
    count = s.integers(1, involved, tasks, 1)
    on = torch.arange(involved, device=x.device) < count
    weight = on * s.log_uniform(0.2, 1.0, tasks, involved)
    direction = weight * (1 - 2 * s.coin(0.5, tasks, involved).float())
    direction = direction / direction.norm(dim=1, keepdim=True) * s.log_uniform(0.5, 4.0, tasks, 1)
    along = (nodes @ direction[..., None])[..., 0]
    phase = s.uniform(0, 2 * math.pi, tasks, 1)
    low, high = nodes[..., 0].amin(1, keepdim=True), nodes[..., 0].amax(1, keepdim=True)
    cycles = 2 * math.pi * s.log_uniform(2, 24, tasks, 1) / (high - low).clamp_min(1e-6)
    several = torch.where(on[:, None], nodes, torch.ones_like(nodes)).clamp(-5, 5)
    involved_weight = torch.zeros_like(x[:, 0]).scatter_(1, column, weight)
    kinds = torch.stack([several.prod(2), torch.sin(along + phase),
                         torch.sin(cycles * nodes[..., 0] + phase), composed(s, nodes),
                         gp.function(s, x, involved_weight, SHORTEST)], 2)
    kind = s.integers(0, kinds.shape[2] - 1, tasks, 1, 2).expand(-1, rows, -1)
    first, second = standardise(kinds.gather(2, kind)).unbind(2)
    plain = (x * s.randn(tasks, 1, features) * s.coin(0.3, tasks, 1, features)).sum(2)
    f = first + second * s.coin(0.25, tasks, 1) * s.rand(tasks, 1)
    return f + standardise(plain) * s.coin(0.25, tasks, 1) * s.rand(tasks, 1)
