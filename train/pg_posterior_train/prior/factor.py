"""Many weak features of one sign behind a common factor: a sum of loads that rise and fall
together.

Such as the loads of all buses of an electricity feeder and the voltage at its end.
"""
import torch

from .source import standardise


def sample(s, tasks, rows, features):
    """Features [B, N, F] and target [B, N]."""
    common = s.randn(tasks, rows, 1)
    second = s.randn(tasks, rows, 1)
    share = s.uniform(0.05, 0.95, tasks, 1, 1)
    loading = s.uniform(0.3, 1.0, tasks, 1, features)
    own = s.randn(tasks, rows, features)
    x = (share.sqrt() * (common * loading + 0.3 * second * s.randn(tasks, 1, features))
         + (1 - share).sqrt() * own)
    skewed = torch.exp(0.5 * x)
    x = torch.where(s.coin(0.5, tasks, 1, 1), skewed, x) * s.log_uniform(0.3, 3, tasks, 1, features)
    weight = s.log_uniform(0.2, 1.0, tasks, 1, features) * s.coin(s.uniform(0.6, 1.0, tasks, 1, 1),
                                                                  tasks, 1, features)
    weight = weight * (1 - 2 * s.coin(0.5, tasks, 1, 1).float())
    total = standardise((standardise(x) * weight).sum(-1))
    bend = s.uniform(-0.3, 0.3, tasks, 1) * s.coin(0.6, tasks, 1)
    return x, total + bend * total.square()
