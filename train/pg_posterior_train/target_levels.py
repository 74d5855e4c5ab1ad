"""Components of a mixture on the values that targets have (docs/model-format.md, section 8,
"Levels"). Not part of training, as what trees say.
"""
import torch

from .line import is_certain
from .process import NUMBERS

MOST, ROWS_OF_LEVEL, REACH = 64, 8, 4


def levels_of(scaled):
    """The values of scaled targets [n], ascending, if these are few; or None."""
    values = scaled.unique()
    return values if 2 <= len(values) <= min(MOST, len(scaled) // ROWS_OF_LEVEL) else None


def on_levels(mean, sd, levels, narrow):
    """The means of components, those of narrow ones on the nearest level, if that is within REACH
    of their deviations.
    """
    nearest = (mean[..., None] - levels).abs().argmin(-1)
    gaps = torch.nn.functional.pad(levels.diff(), (1, 1), value=torch.inf)
    apart = torch.minimum(gaps[nearest], gaps[nearest + 1])
    moves = (sd < narrow * apart) & ((mean - levels[nearest]).abs() <= REACH * sd)
    return torch.where(moves, levels[nearest].to(mean.dtype), mean)


def put_levels(mixture, y, inputs, config):
    """Move narrow components of mixtures [B, M], a gated head's answers, to the values of the raw
    targets y [B, n] of the prefix. The process's component, the last, stays.

    inputs: what the network sees of the tasks, whose first rows these are.
    """
    narrow = config["head"].get("levels", 0)
    if not narrow:
        return
    own = mixture.mean[..., :-1].clone()
    for task in range(len(y)):
        levels = levels_of((y[task].double() - inputs.center[task]) / inputs.scale[task])
        if levels is None or is_certain(inputs.x[task, 0, 3 - NUMBERS]):
            continue
        own[task] = on_levels(own[task], mixture.sd[task, ..., :-1], levels, narrow)
    mixture.mean = torch.cat([own, mixture.mean[..., -1:]], -1)
