"""Attention of every kind of docs/families.md, over dense masks.

SPDX-License-Identifier: PostgreSQL
"""
import math

import numpy as np

from layers import linear, mlp, norm


def values(tensors, name, config, source):
    """The values' linear or MLP."""
    a = config["attention"]
    if a.get("value_hidden"):
        return mlp(tensors, name + ".v", source, a.get("value_activation", config["activation"]))
    return linear(tensors, name + ".v", source)


def kernel_logits(tensors, name, config, head, asked, keys):
    """The kernel bias of one head for positions asked [n, F] and keys [m, F]."""
    kernel = config["attention"]["kernel"]
    components = kernel.get("components") or [list(range(asked.shape[1]))]
    out = np.zeros((len(asked), len(keys)))
    for g, columns in enumerate(components):
        difference = asked[:, None, columns] - keys[None, :, columns]
        distance = np.sqrt((difference ** 2).sum(axis=2))
        for b in range(kernel["basis"]):
            height, rate, center = (tensors[f"{name}.kernel.{p}"][g, head, b] for p in "abc")
            out += height * np.exp(-abs(rate) * (distance - center) ** 2)
    return out


def softmax_rows(logits, visible):
    """Softmax [..., n, m] over the visible keys [n, m]; a row that sees none is zero."""
    if not visible.all():
        logits = np.where(visible, logits, -np.inf)
    largest = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(logits - np.where(np.isfinite(largest), largest, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


def split(matrix, heads, head):
    size = matrix.shape[1] // heads
    return matrix[:, head * size:(head + 1) * size]


def all_heads(matrix, heads):
    """[..., n, heads * size] as [..., heads, n, size]."""
    size = matrix.shape[-1] // heads
    return matrix.reshape(*matrix.shape[:-1], heads, size).swapaxes(-2, -3)


def side_by_side(parts):
    """[heads, n, size] as [n, heads * size]."""
    return parts.swapaxes(0, 1).reshape(parts.shape[1], -1)


def softmax_attention(tensors, name, config, queries, source, visible, places):
    """Scan attention: dot products, and a kernel of the positions where configured."""
    heads, a = config["heads"], config["attention"]
    q, k = linear(tensors, name + ".q", queries), linear(tensors, name + ".k", source)
    v = values(tensors, name, config, source)
    if a.get("kernel") and a["kernel"].get("causal") is not None:
        column = a["kernel"]["causal"]
        visible = visible & (places[1][None, :, column] <= places[0][:, None, column])
    q = all_heads(q, heads)
    logits = q @ all_heads(k, heads).swapaxes(1, 2) / math.sqrt(q.shape[2])
    if name + ".log_scale" in tensors:
        slope, offset = tensors[name + ".log_scale"].T[:, :, None, None]
        logits = logits * (slope * np.log(visible.sum(axis=1, keepdims=True)) + offset)
    if a.get("kernel"):
        logits = logits + [kernel_logits(tensors, name, config, j, *places) for j in range(heads)]
    read = softmax_rows(logits, visible) @ all_heads(v, heads)
    return linear(tensors, name + ".o", side_by_side(read))


def deep_kernel_attention(tensors, name, config, queries, source, visible, places):
    """A norm of the mean of products of features."""
    a, d = config["attention"], config["width"]

    def features(u, at):
        joined = np.concatenate([at, u], axis=1) if a.get("position", True) else u
        return mlp(tensors, name + ".qk", joined, config["activation"]) / d ** 0.25

    weights = np.where(visible, features(queries, places[0]) @ features(source, places[1]).T, 0)
    n = np.maximum(visible.sum(axis=1, keepdims=True), 1)
    out = weights @ values(tensors, name, config, source) / n
    return norm(tensors, name + ".norm", config, out)


def random_feature_attention(tensors, name, config, queries, source, visible, places):
    """Positive random features of the softmax kernel."""
    heads, omega = config["heads"], tensors[name + ".omega"]
    q, k = linear(tensors, name + ".q", queries), linear(tensors, name + ".k", source)
    v, out = values(tensors, name, config, source), []

    def features(u):
        u = u * u.shape[1] ** -0.25
        return np.exp(u @ omega.T - (u ** 2).sum(axis=1, keepdims=True) / 2) / math.sqrt(len(omega))

    for j in range(heads):
        mine, theirs = features(split(q, heads, j)), features(split(k, heads, j))
        weights = np.where(visible, mine @ theirs.T, 0)
        total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-6)
        out.append(weights @ split(v, heads, j) / total)
    return linear(tensors, name + ".o", np.concatenate(out, axis=1))


KINDS = {
    "softmax": softmax_attention,
    "deep-kernel": deep_kernel_attention,
    "random-features": random_feature_attention,
}


def packed_block(tensors, name, config, h, source, visible, places):
    """A packed layer with any kind of attention; places: positions of h and of the source."""
    attend = KINDS[config["attention"].get("kind", "softmax")]

    def feed_forward(x):
        return mlp(tensors, name + ".ff", x, config["activation"])

    def normed(i, x):
        return norm(tensors, f"{name}.norm{i}", config, x)

    def read(a, b):
        return attend(tensors, name + ".attn", config, a, b, visible, places)

    if len(h) == 0:
        return h
    if config["norm"]["placement"] == "pre":
        h = h + read(normed(1, h), normed(1, source))
        return h + feed_forward(normed(2, h))
    h = normed(1, h + read(h, source))
    return normed(2, h + feed_forward(h))


def decoupled_attention(tensors, name, config, places, values_in, visible, tau=1.0):
    """Weights of the features' stream (queries, keys), values of the targets' stream."""
    a, heads = config["attention"], config["heads"]
    q = linear(tensors, name + ".q", places[0])
    k = linear(tensors, name + (".q" if a.get("tied", False) else ".k"), places[1])
    v, out = linear(tensors, name + ".v", values_in), []
    for j in range(heads):
        mine, theirs = split(q, heads, j), split(k, heads, j)
        if a.get("kind", "softmax") == "linear":
            weights = np.where(visible, elu(tau * mine) @ elu(theirs).T, 0)
            weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
        elif a.get("kind", "softmax") == "distance":
            square = ((mine[:, None] - theirs[None]) ** 2).sum(axis=2)
            weights = softmax_rows(-tau * square, visible)
        else:
            weights = softmax_rows(tau * (mine @ theirs.T) / math.sqrt(mine.shape[1]), visible)
        out.append(weights @ split(v, heads, j))
    return linear(tensors, name + ".o", np.concatenate(out, axis=1))


def elu(u):
    """The feature map of linear attention."""
    return np.where(u > 0, u, np.expm1(np.minimum(u, 0))) + 1

