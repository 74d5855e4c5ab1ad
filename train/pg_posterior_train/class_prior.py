"""What a classifier's head takes a share of besides the network and the regression (model.py): a
process and trees of the prefix (docs/model-format.md, section 8, "classes").
"""
import math

import torch

from .class_process import ClassProcess
from .normalise import level_bins, oriented
from .trees import LEAST_ROWS, SLOPE, Trees, qualities, unknown


def lean(outputs, tasks, found, variants, inputs, y, classes, rows, statistics, config):
    """Logits [B, M, C] of the rows after the first `rows`, shares of which are what a process and
    trees say.

    found: the slots of the rows, variants: those of the tasks' (donors.Slots); y [B, N] classes,
    classes [B] their number, inputs [B, N, numbers] as the network reads them.
    """
    of_process, of_trees = (config["head"].get(key, 0) for key in ("class_process", "trees"))
    if not of_process and statistics < LEAST_ROWS:
        return outputs
    known = qualities(inputs[:, 0], outputs.shape[-1], config).amax(1)
    compared = -y.to(tasks.x.dtype)
    cells = oriented(tasks, compared, statistics, config)
    levels = level_bins(tasks, compared, statistics, config)
    out = outputs.clone()
    for task in range(len(outputs)):
        k, slots = int(classes[task]), found.order[task, found.used[task]]
        if k < 2 or len(slots) == 0:
            continue
        prefix = y[task, :statistics].numpy()
        least, trees = math.log(k) - float(known[task]), None
        if of_trees and statistics >= LEAST_ROWS:
            x, level = (torch.cat([v[task, :statistics], v[task, rows:]])[:, slots].numpy()
                        for v in (cells.double(), levels))
            trees = Trees(x, tasks.categorical[task, slots].numpy(), prefix, statistics, k, level)
        if of_process:
            used = variants.used[task]
            z, bins = (torch.cat([v[task, :statistics], v[task, rows:]])[:, used]
                       for v in (variants.z, variants.bins))
            process = ClassProcess(z, bins, tasks.categorical[task, slots], prefix, k)
            share = process.share(least if trees is None else min(least, trees.loss), of_process)
            out[task, :, :k] = blend(out[task, :, :k], process.log_p[statistics:], share)
        if trees is not None:
            share = min(max(SLOPE * (1 - trees.loss / max(least, 1e-6)), 0), of_trees)
            share = torch.from_numpy(share * ~unknown(x, statistics)[statistics:])[:, None]
            out[task, :, :k] = blend(out[task, :, :k], trees.log_p[statistics:], share)
    return out


def blend(logits, log_p, share):
    """The logits [M, K] with a share of what is of these log probabilities."""
    said = torch.from_numpy(log_p) + math.log(logits.shape[1])
    return ((1 - share) * logits + share * said).to(logits.dtype)
