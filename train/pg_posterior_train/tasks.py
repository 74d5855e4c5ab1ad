"""A batch of tasks: what every prior returns and what normalise.py turns into network inputs."""
from dataclasses import dataclass

import torch


@dataclass
class Tasks:
    """`B` tables of `N` rows.

    x [B, N, F]: raw features, NaN where missing; a categorical cell holds its identity, an integer
    >= 0. y [B, N]: raw targets. categorical [B, F]: which columns are categorical. number [B, F] of
    tasks that have been split: the column whose numbers such a column has as labels, else -1.
    all_slots [B] of tasks that have been judged: where nothing is left out that looks like noise.
    """

    x: torch.Tensor
    y: torch.Tensor
    categorical: torch.Tensor
    number: torch.Tensor | None = None
    all_slots: torch.Tensor | None = None

    def to(self, *args):
        return Tasks(self.x.to(*args), self.y.to(*args),
                     self.categorical.to(self.x.to(*args).device))


def concatenate(parts):
    """Join batches with equal N and F."""
    return Tasks(torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts]),
                 torch.cat([p.categorical for p in parts]))


def numeric(x, y):
    """Tasks without categorical columns."""
    return Tasks(x, y, torch.zeros(x.shape[0], x.shape[2], dtype=torch.bool, device=x.device))


def choose(tasks, order):
    """Tasks with rows in another order, [B, n] or [n], or with some of them."""
    order = order.expand(tasks.y.shape[0], -1)
    return Tasks(tasks.x.gather(1, order[..., None].expand(-1, -1, tasks.x.shape[2])),
                 tasks.y.gather(1, order), tasks.categorical)
