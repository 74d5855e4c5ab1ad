"""Small tables of numbers, of a fixed width: functions of the tabular prior without its categories
and missing cells, for models whose number of columns is fixed.
"""
import math

import torch

from ..tasks import numeric
from . import corrupt, tabular
from .source import Source


def sample(generator, tasks, rows, shared, columns=16):
    """Tasks of 2 to `columns` columns, followed by zeros; `shared` decides how many, alike for all
    workers.
    """
    s = Source(generator)
    used = int(math.exp(shared.uniform(math.log(2), math.log(columns + 1))))
    family = shared.choice(list(tabular.FUNCTIONS))
    x, f = tabular.functional(s, family, tasks, rows, used, 0.25)
    y = corrupt.noisy_target(s, f, x)
    x = corrupt.dull_columns(s, corrupt.warped_columns(s, x))
    drawn = tabular.usable(numeric(x, y))
    return numeric(torch.cat([drawn.x, x.new_zeros(tasks, rows, columns - used)], 2), drawn.y)
