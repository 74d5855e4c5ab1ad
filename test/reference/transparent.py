"""
Transparent models: weights set by hand so that the mean of an answer tells which rows were read, as
an exact integer.

All weights of q and k are zero, so that attention is a plain average over what is visible, with one
sink among it. The embedder is `concat` with a flag and turns queries into the zero vector, so that
a query adds nothing to its own answer. Normalisation is RMS without bias: it scales a state by a
positive number and keeps zeros. So every channel that the head reads is exactly 0 where nothing
visible wrote it and positive where something did. The head turns positive into exactly 1
(`read_out`) and adds powers of 2 or 10.

* `transparent` (prefix-causal), `transparent_full` (full, buffer 4): one feature, the row's id, an
  integer from 0 to 23. The mean is
  the sum of 2^id over the distinct ids of the rows read. Other integers count for nothing. Up to
  65,535 rows; no row gives 0.
* `transparent_target`: the same with the id in the target instead of the feature.
* `transparent_limited`: `transparent` with `limits.rows` 10.
* `transparent_order` (causal): ids from 1 to 9, distinct. The digits of the mean, seven of them,
  are the ids in the order in which
  the rows were given: rows 3, 1, 2 give 3120000. The eighth and ninth row are not shown.
* `transparent_prefix` (prefix-causal): the bits of the mean are the numbers of rows that were
  visible to the rows: bit r-1 is set if
  some row sees r rows, itself included. With a prefix of P > 0 rows of N this sets bits P-1 to N-1.
  Up to 24 rows; the feature is ignored.

The rank of a row in the last two comes from the first layer: the sink alone carries a marker, so a
row that sees r rows and the sink reads marker / (r + 1). A feed-forward unit for id i and rank r is
then positive exactly if the row has id i and sees at least r rows.

The standard deviation is 1/16, so that a draw rounds to the mean.

SPDX-License-Identifier: PostgreSQL
"""
import math

import numpy as np

IDS = 24
DIGIT_IDS, DIGITS = 9, 7
RANKS = 24


def configuration(description, context, width, layers, feedforward, embed_hidden, head_hidden,
                  buffer=None):
    return {
        "format": 1,
        "description": description,
        "architecture": "packed",
        "inputs": {"features": 1, "scaling": "none"},
        "target": {"scaling": "none"},
        "min_rows": 0,
        "context": context,
        "chain": {"buffer": buffer, "mask": "inclusive"},
        "width": width, "layers": layers, "heads": 1, "feedforward": feedforward,
        "norm": {"kind": "rms", "placement": "pre", "eps": 1e-6, "final": False},
        "activation": "relu",
        "attention": {"bias": "none", "sinks": 1, "log_scale": False},
        "embedder": {"kind": "concat", "hidden": [embed_hidden], "flag": True},
        "head": {"kind": "gaussian", "hidden": head_hidden, "std": "exp", "floor": 0},
    }


def layer(tensors, name, width, feedforward):
    """A layer that does nothing: every weight zero but the norms."""
    for part in "qkvo":
        tensors[f"{name}.attn.{part}.weight"] = np.zeros((width, width))
    tensors[f"{name}.ff.0.weight"], tensors[f"{name}.ff.0.bias"] = np.zeros(
        (feedforward, width)), np.zeros(feedforward)
    tensors[f"{name}.ff.1.weight"], tensors[f"{name}.ff.1.bias"] = np.zeros(
        (width, feedforward)), np.zeros(width)
    for i in (1, 2):
        tensors[f"{name}.norm{i}.weight"] = np.ones(width)


def average(tensors, name, pairs):
    """Attention writes the average of channel `source` into channel `target` for every (source,
    target, weight).
    """
    for source, target, weight in pairs:
        tensors[f"{name}.attn.v.weight"][target, source] = weight
        tensors[f"{name}.attn.o.weight"][target, target] = 1


def one_hot(tensors, width, ids, from_target=False):
    """Channel c of a row is 1 if its id is ids[c] and else 0, exactly; queries are all zero."""
    n = len(ids) + 2
    edges = np.arange(ids[0] - 1, ids[-1] + 2)
    tensors["embed.xy.0.weight"] = np.zeros((n, 3))
    tensors["embed.xy.0.weight"][:, 1 if from_target else 0] = 1
    tensors["embed.xy.0.weight"][:, 2] = -2.0 ** 24
    tensors["embed.xy.0.bias"] = -edges.astype(float)
    tensors["embed.xy.1.weight"], tensors["embed.xy.1.bias"] = np.zeros((width, n)), np.zeros(width)
    for c in range(len(ids)):
        tensors["embed.xy.1.weight"][c, c:c + 3] = 1, -2, 1


def read_out(tensors, channels, width, gain, weights, differences=None):
    """
    The head: mean = sum of weights over the channels that are positive. gain is a power of two that
    brings a positive channel to at least 1. With a = gain * channel, min(a, 1) = relu(a) - relu(a -
    1) is 0 or about 1; of 4 min(a, 1) - 1 and 4 min(a, 1) - 2 the relus are 3 and 2 or 0 and 0, and
    both have been rounded by the same exact steps, so that their difference is 1 or 0 exactly.
    differences: a matrix applied to the bits before the weights. -> hidden sizes
    """
    n = len(channels)
    eye = np.eye(n)
    sizes = [2 * n, 2 * n, n]
    first = np.zeros((2 * n, width))
    for row, channel in enumerate(channels):
        first[row, channel] = first[n + row, channel] = gain
    layers = [
        (first, np.concatenate([np.zeros(n), -np.ones(n)])),
        (np.block([[4 * eye, -4 * eye], [4 * eye, -4 * eye]]),
         np.concatenate([-np.ones(n), -2 * np.ones(n)])),
        (np.block([eye, -eye]), np.zeros(n)),
    ]
    if differences is not None:
        layers.append((differences, np.zeros(n)))
        sizes.append(n)
    layers.append((np.stack([np.array(weights, dtype=float), np.zeros(n)]),
                   np.array([0, math.log(1 / 16)])))
    for i, (weight, bias) in enumerate(layers):
        tensors[f"head.{i}.weight"], tensors[f"head.{i}.bias"] = weight, bias
    return sizes


def make_set(context="prefix-causal", buffer=None, from_target=False):
    """`transparent`, `transparent_full`, `transparent_target`."""
    tensors = {"sinks": np.zeros((1, IDS))}
    one_hot(tensors, IDS, range(IDS), from_target)
    layer(tensors, "layer.0", IDS, 1)
    average(tensors, "layer.0", [(c, c, 1.0) for c in range(IDS)])
    hidden = read_out(tensors, range(IDS), IDS, 2.0 ** 15, [2 ** c for c in range(IDS)])
    what = "target" if from_target else "feature"
    return configuration(f"the mean is the sum of 2^id of the rows read, the {what} being the id "
                         f"(0 to 23); for tests",
                         context, IDS, 1, 1, IDS + 2, hidden, buffer), tensors


def make_ranked(ids, ranks, context, description, weights, differences):
    """
    Channels: ids | marker | read marker | (id, rank) pairs. weights [ids * ranks] of the pairs;
    differences see read_out.
    """
    marker, read, first = ids, ids + 1, ids + 2
    width = first + ids * ranks
    tensors = {"sinks": np.zeros((1, width))}
    tensors["sinks"][0, marker] = 1
    one_hot(tensors, width, range(1, ids + 1))
    for i in range(2):
        layer(tensors, f"layer.{i}", width, ids * ranks)
    average(tensors, "layer.0", [(marker, read, 1 / math.sqrt(width))])
    for i in range(ids):
        for r in range(1, ranks + 1):
            unit = i * ranks + r - 1
            here, before = 1 / (r + 1), 1 / r
            threshold = (here + before) / 2
            strength = 1 / (threshold - here) / math.sqrt(width)
            tensors["layer.0.ff.0.weight"][unit, [i, read]] = strength * threshold, -strength
            tensors["layer.0.ff.1.weight"][first + unit, unit] = 1
    channels = range(first, width)
    average(tensors, "layer.1", [(c, c, 1.0) for c in channels])
    hidden = read_out(tensors, channels, width, 2.0 ** 12, weights, differences)
    return configuration(description, context, width, 2, ids * ranks, ids + 2, hidden), tensors


def exactly(ids, ranks):
    """Bits "sees at least r" -> bits "sees exactly r", the last rank excepted."""
    return np.kron(np.eye(ids), np.eye(ranks) - np.eye(ranks, k=1))


def make_order():
    ranks = DIGITS + 1
    weights = [i * 10 ** (DIGITS - r) if r <= DIGITS else 0 for i in range(1, DIGIT_IDS + 1)
               for r in range(1, ranks + 1)]
    return make_ranked(DIGIT_IDS, ranks, "causal",
                       "the digits of the mean are the ids (1 to 9) of the rows read, in their "
                       "order; for tests",
                       weights, exactly(DIGIT_IDS, ranks))


def make_prefix():
    """
    Channels: 1 for rows | marker | 1 / (r + 1) | r / (r + 1) | [RANKS] sees at least r | [RANKS]
    sees at most r. Over all rows, some row sees at least r up to the greatest rank and some row at
    most r from the least one on: both hold from the least to the greatest.
    """
    row, marker, falling, rising, first = 0, 1, 2, 3, 4
    width = first + 2 * RANKS
    tensors = {"sinks": np.zeros((1, width))}
    tensors["sinks"][0, marker] = 1
    tensors["embed.xy.0.weight"], tensors["embed.xy.0.bias"] = np.array([[0, 0, -1.0]]), np.ones(1)
    tensors["embed.xy.1.weight"], tensors["embed.xy.1.bias"] = np.zeros((width, 1)), np.zeros(width)
    tensors["embed.xy.1.weight"][row] = 1
    for i in range(2):
        layer(tensors, f"layer.{i}", width, 2 * RANKS)
    average(tensors, "layer.0",
            [(marker, falling, 1 / math.sqrt(width)), (row, rising, 1 / math.sqrt(width))])
    for r in range(1, RANKS + 1):
        for unit, channel, here, beside in ((r - 1, falling, 1 / (r + 1), 1 / r),
                                            (RANKS + r - 1, rising, r / (r + 1),
                                             (r + 1) / (r + 2))):
            threshold = (here + beside) / 2
            strength = 1 / (threshold - here) / math.sqrt(width)
            tensors["layer.0.ff.0.weight"][unit, [row, channel]] = strength * threshold, -strength
            tensors["layer.0.ff.1.weight"][first + unit, unit] = 1
    channels = range(first, width)
    average(tensors, "layer.1", [(c, c, 1.0) for c in channels])
    eye = np.eye(RANKS)
    both = np.block([[eye, eye], [0 * eye, 0 * eye]])
    hidden = read_out(tensors, channels, width, 2.0 ** 12,
                      [2 ** r for r in range(RANKS)] + [0] * RANKS, both)
    tensors["head.3.bias"] = np.concatenate([-np.ones(RANKS), np.zeros(RANKS)])
    return configuration("the bits of the mean are the numbers of rows that were visible to the "
                         "rows read; for tests", "prefix-causal",
                         width, 2, 2 * RANKS, 1, hidden), tensors


def make_limited(rows):
    """`transparent`, which says itself how many rows are meant."""
    config, tensors = make_set()
    return {**config, "limits": {"rows": rows}}, tensors


def transparent_models():
    """name -> (config, tensors)"""
    return {
        "transparent": make_set(),
        "transparent_full": make_set("full", 4),
        "transparent_target": make_set(from_target=True),
        "transparent_order": make_order(),
        "transparent_prefix": make_prefix(),
        "transparent_limited": make_limited(10),
    }
