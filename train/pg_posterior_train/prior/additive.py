"""Sums of one-dimensional functions: waves, steps and kinks of single columns."""
import math

import torch


def function(s, x, weight):
    """Values f [B, N] at x [B, N, F] with column weights [B, F]."""
    tasks, rows, features = x.shape
    shape = (tasks, 1, features)
    wave = torch.sin(x * s.log_uniform(0.5, 5.0, *shape) + s.uniform(0, 2 * math.pi, *shape))
    step = torch.sign(x - s.randn(*shape) * 0.7)
    kink = (x - s.randn(*shape) * 0.7).abs() - 1
    kind = s.integers(0, 3, *shape)
    g = torch.where(kind == 0, step, torch.where(kind == 1, kink, wave))
    return (g * (weight * s.randn(tasks, features))[:, None]).sum(-1)
