"""The order in which a network sees classes (docs/model-format.md, section 3, "Order of classes").
Not part of training, whose classes come in any order.
"""
import numpy as np
import torch


def far_out(x, categorical):
    """[n]: the sum over the cells of each row of x [n, F] of how far a number stands from the
    middle of its column, and of how many rows have a label; categorical [F].
    """
    total = np.zeros(len(x), dtype=np.int64)
    for column, labels in zip(x.T, categorical):
        given = np.flatnonzero(~np.isnan(column))
        cells = column[given]
        below, until = (np.searchsorted(np.sort(cells), cells, side) for side in ("left", "right"))
        total[given] += until - below if labels else abs(below + until - len(cells))
    return total


def class_places(tasks, y, statistics, config):
    """Where the network sees the classes of tasks, [B, C]: those of most prefix rows first; y [B,
    N] are their indices. As they are where the model does not ask for an order.
    """
    most = config["head"]["classes"]
    out = np.tile(np.arange(most), (len(y), 1))
    if config["target"].get("order") != "counts":
        return torch.from_numpy(out)
    for b, (x, own, categorical) in enumerate(zip(tasks.x, y.long(), tasks.categorical)):
        own = own[:statistics].numpy()
        apart = far_out(x[:statistics].double().numpy(), categorical.numpy())
        count, total = np.bincount(own, minlength=most), np.bincount(own, apart, most)
        out[b] = np.argsort(np.lexsort((np.arange(most), -total, -count)))
    return torch.from_numpy(out)
