"""Components of a mixture that stand for rare targets (docs/model-format.md, section 8, "Rare
targets"). Not part of training, as what trees say.
"""
import math

import torch

from .process import NUMBERS

TRUST, SUPPOSED = 2, 0.5        # rows that a supposed spread counts as; it, of the distance


def rare_targets(y, scaled, clipped, said, least):
    """Weight, mean and standard deviation of the scaled targets [n] beyond `least`, above and
    below, where more than half of the raw ones y [n] are one value; else of none.

    clipped [n]: those that a process reads, which says [n] of each without its row.
    """
    values, counts = y.unique(return_counts=True)
    if 2 * counts.max() <= len(y):
        return []
    common, found = scaled[y == values[counts.argmax()]][0], []
    for side in (1, -1):
        is_far = side * scaled > least
        far = scaled[is_far]
        unforeseen = (is_far & (side * said < side * clipped / 2)).sum().item()
        if unforeseen > 0:
            spread = ((far - far.mean()).square().sum()
                      + TRUST * (SUPPOSED * (far.mean() - common)).square())
            found.append((unforeseen / (len(y) + 1), far.mean(),
                          (spread / (len(far) + TRUST)).sqrt()))
    return found


def put_rare(mixture, y, inputs, config):
    """Let components of mixtures [B, M], a gated head's answers, that weigh least stand for the
    rare ones of the raw targets y [B, n] of the prefix. The process's component, the last, stays.

    inputs: what the network sees of the tasks, whose first rows these are.
    """
    least = config["head"].get("rare", 0)
    if not least:
        return
    for task in range(len(y)):
        own, n = y[task].double(), y.shape[1]
        scaled = (own - inputs.center[task]) / inputs.scale[task]
        clipped, said = inputs.y_input[task, :n], inputs.x[task, :n, -NUMBERS]
        taken = torch.zeros(mixture.mean.shape[1:], dtype=torch.bool)
        taken[:, -1] = True
        for weight, mean, sd in rare_targets(own, scaled, clipped, said, least):
            log_weight = mixture.log_weight[task]
            place = log_weight.masked_fill(taken, math.inf).argmin(-1, keepdim=True)
            rest = math.log1p(-weight) - torch.log1p(-log_weight.gather(-1, place).exp())
            log_weight += rest
            log_weight.scatter_(-1, place, math.log(weight))
            mixture.mean[task].scatter_(-1, place, mean.item())
            mixture.sd[task].scatter_(-1, place, sd.item())
            taken.scatter_(-1, place, True)
