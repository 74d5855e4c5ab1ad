"""Linears, norms, activations and attention blocks (docs/model-format.md sections 1 and 6), with
full masks.

SPDX-License-Identifier: PostgreSQL
"""
import math

import numpy as np


def erf(x):
    return np.fromiter(map(math.erf, x.ravel().tolist()), float, x.size).reshape(x.shape)


def linear(tensors, name, x):
    y = x @ tensors[name + ".weight"].T
    return y + tensors[name + ".bias"] if name + ".bias" in tensors else y


def activate(kind, x):
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "gelu":
        return 0.5 * x * (1 + erf(x / math.sqrt(2)))
    assert kind == "gelu-tanh"
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def mlp(tensors, name, x, activation):
    """Linears name.0, name.1, ...: as many as the file has."""
    i = 0
    while f"{name}.{i}.weight" in tensors:
        x = linear(tensors, f"{name}.{i}", activate(activation, x) if i > 0 else x)
        i += 1
    return x


def norm(tensors, name, config, x):
    def mean(numbers):                  # np.mean takes thrice as long for few numbers
        return np.add.reduce(numbers, axis=-1, keepdims=True) / numbers.shape[-1]

    kind, eps = config["norm"]["kind"], config["norm"]["eps"]
    if kind == "rms":
        return x / np.sqrt(mean(x * x) + eps) * tensors[name + ".weight"]
    x = x - mean(x)
    return (x / np.sqrt(mean(x * x) + eps) * tensors[name + ".weight"]
            + tensors[name + ".bias"])


def attend(tensors, name, heads, queries, source, visible, extra=None):
    """
    queries [n, d] read source [m, d] where visible [n, m] (None: everywhere); extra [heads, m] is
    added to the logits.
    """
    if visible is None:
        visible = np.ones((len(queries), len(source)), dtype=bool)
    q, k, v = linear(tensors, name + ".q", queries), linear(tensors, name + ".k",
                                                            source), linear(
                                                                tensors, name + ".v", source)
    q, k, v = (part.reshape(len(part), heads, -1).swapaxes(0, 1) for part in (q, k, v))
    logits = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])           # [heads, n, m]
    if name + ".log_scale" in tensors:
        a, b = tensors[name + ".log_scale"].T[:, :, None, None]
        logits = logits * (a * np.log(visible.sum(axis=1, keepdims=True)) + b)
    if extra is not None:
        logits = logits + extra[:, None]
    if not visible.all():
        logits = np.where(visible, logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    read = weights / weights.sum(axis=-1, keepdims=True) @ v
    return linear(tensors, name + ".o", read.swapaxes(0, 1).reshape(len(queries), -1))


def block(tensors, name, config, heads, h, source, visible=None):
    """One layer: h [n, d] reads source [m, d], both as they enter the layer."""
    def feed_forward(x):
        return mlp(tensors, name + ".ff", x, config["activation"])

    def normed(i, x):
        return norm(tensors, f"{name}.norm{i}", config, x)

    if len(h) == 0:
        return h
    if config["norm"]["placement"] == "pre":
        h = h + attend(tensors, name + ".attn", heads, normed(1, h), normed(1, source), visible)
        return h + feed_forward(normed(2, h))
    h = normed(1, h + attend(tensors, name + ".attn", heads, h, source, visible))
    return normed(2, h + feed_forward(h))
