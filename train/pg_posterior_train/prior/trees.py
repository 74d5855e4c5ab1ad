"""Sums of random oblivious decision trees with thresholds taken from the data."""
import torch

TREES, DEPTH = 24, 5


def function(s, x, weight):
    """Values f [B, N] at x [B, N, F]; split columns are drawn with the column weights [B, F]."""
    tasks, rows, _ = x.shape
    column = torch.multinomial(weight + 1e-9, TREES * DEPTH, replacement=True,
                               generator=s.generator)
    values = x.gather(2, column[:, None].expand(-1, rows, -1))
    row = s.integers(0, rows - 1, tasks, 1, TREES * DEPTH)
    bits = (values > values.gather(1, row)).long().reshape(tasks, rows, TREES, DEPTH)
    depth = s.integers(1, DEPTH, tasks, 1, TREES, 1)
    level = torch.arange(DEPTH, device=x.device)
    leaf = (bits * (level < depth) * 2 ** level).sum(-1)
    leaves = s.randn(tasks, 2 ** DEPTH, TREES)
    used = (torch.arange(TREES, device=x.device)
            < s.log_uniform(1, TREES + 0.99, tasks, 1, 1).floor())
    return (leaves.gather(1, leaf) * used).sum(-1)
