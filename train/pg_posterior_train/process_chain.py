"""What the process of a prefix says of the rows of a chain, given those before them
(docs/model-format.md, section 9, "head.process_chain").

In float64, without gradients; batched over tasks.
"""
from dataclasses import dataclass

import torch

KEPT = 64                        # rows that are kept when a chain forgets


@dataclass
class Chain:
    """Rows first … rows - 1 of the tasks are of a chain; the query that is row rows + m is answered
    after the first visible[m] rows.
    """

    first: int
    rows: int
    visible: torch.Tensor

    def groups(self):
        """(rows that are remembered, places of the queries that they answer)."""
        for seen in self.visible.unique().tolist():
            forgotten = max(0, KEPT * ((seen - self.first) // KEPT - 1))
            asked = self.rows + (self.visible == seen).nonzero()[:, 0]
            yield torch.arange(self.first + forgotten, seen), asked


def condition(chain, y, mean, spread, noise, variance, covariances):
    """(mean, spread) [B, N], those of the queries given the rows before them.

    y [B, N] targets; mean, spread [B, N] of each row alone; noise, variance [B, 1] of the process,
    the noise in units of the variance; covariances(a, b) [B, a, b] of different rows, in these.
    """
    mean, spread = mean.clone(), spread.clone()
    away = y - mean
    for rows, asked in chain.groups():
        if len(rows) == 0:
            continue
        own = torch.diag_embed((spread / variance)[:, rows])
        off = 1 - torch.eye(len(rows), dtype=own.dtype, device=own.device)
        across = covariances(rows, asked)
        weights = torch.linalg.solve(own + covariances(rows, rows) * off, across)
        mean[:, asked] += (weights * away[:, rows, None]).sum(1)
        rest = (spread / variance)[:, asked] - (weights * across).sum(1)
        spread[:, asked] = variance * torch.maximum(rest, noise)
    return mean, spread
