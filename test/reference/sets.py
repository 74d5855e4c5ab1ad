"""The set encoder and the power scaling of docs/families.md.

SPDX-License-Identifier: PostgreSQL
"""
import math

import numpy as np

from layers import linear, mlp, norm
from attentions import all_heads


def plain_block(tensors, name, config, h, source, rotary=None):
    """A pre-norm block with biases and a layer norm, of tokens [..., n, c] that read [..., m, c];
    rotary turns queries and keys.
    """
    stage, eps = config["stage"], config["norm"]["eps"]
    layered = {"norm": {"kind": "layer", "eps": eps}}
    u, s = norm(tensors, name + ".norm1", layered, h), norm(tensors, name + ".norm1", layered,
                                                            source)
    q, k, v = (all_heads(linear(tensors, f"{name}.attn.{n}", x), stage["heads"])
               for n, x in (("q", u), ("k", s), ("v", s)))
    if rotary:
        q, k = rotary(q), rotary(k)
    logits = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])        # [..., heads, n, m]
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    read = (weights / weights.sum(axis=-1, keepdims=True) @ v).swapaxes(-2, -3)
    h = h + linear(tensors, name + ".attn.o", read.reshape(u.shape))
    inner = norm(tensors, name + ".norm2", layered, h)
    return h + mlp(tensors, name + ".ff", inner, config["activation"])


def turn(u, base, layout):
    """Rotary positions 0, 1, … of u [..., n, dh]."""
    places, half, out = np.arange(u.shape[-2]), u.shape[-1] // 2, u.copy()
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + half)
        angle = places * base ** (-2 * i / u.shape[-1])
        cos, sin = np.cos(angle), np.sin(angle)
        out[..., a] = u[..., a] * cos - u[..., b] * sin
        out[..., b] = u[..., a] * sin + u[..., b] * cos
    return out


def column_stage(model, z, prefix):
    """Cells' vectors [T, F, c] of scaled cells z [T, F] whose first `prefix` rows are known."""
    embedder, tensors = model.config["embedder"], model.tensors
    config = {**model.config, "stage": embedder["columns"], "activation": model.embedder_activation}
    layered = {"norm": {"kind": "layer", "eps": config["norm"]["eps"]}}
    columns = z.T[:, :, None]                                       # [F, T, 1]
    cells = linear(tensors, "embed.column.in", columns)
    for i in range(embedder["columns"]["layers"]):
        name = f"embed.column.{i}"
        known = np.repeat(tensors[name + ".inducing"][None], len(columns), axis=0)
        known = plain_block(tensors, name + ".a", config, known, cells[:, :prefix])
        cells = plain_block(tensors, name + ".b", config, cells, known)
    weight, shift = (norm(tensors, f"embed.column.{n}_norm", layered,
                          linear(tensors, f"embed.column.{n}", cells)) for n in ("scale", "shift"))
    return (columns * weight + shift).swapaxes(0, 1)


def row_stage(model, cells):
    """Tokens [T, d] of cells' vectors [T, F, c]."""
    embedder, tensors = model.config["embedder"], model.tensors
    stage = embedder["rows"]
    config = {**model.config, "stage": stage, "activation": model.embedder_activation}
    layered = {"norm": {"kind": "layer", "eps": config["norm"]["eps"]}}
    kept = 1 if stage["take"] == "first" else stage["readouts"]
    readout = np.repeat(tensors["embed.row.readout"][None], len(cells), axis=0)
    h = np.concatenate([readout, cells], axis=1)
    for i in range(stage["layers"]):
        h = plain_block(tensors, f"embed.row.{i}", config, h, h,
                        lambda u: turn(u, stage["rotary"], stage["layout"]))
    return norm(tensors, "embed.row.norm", layered, h[:, :kept]).reshape(len(cells), -1)


def yeo_johnson(z, power):
    """z of any shape, and power one number or an array that goes with it."""
    def grown(size, power):
        flat = np.abs(power) < 1e-12
        return np.where(flat, size, np.expm1(power * size) / np.where(flat, 1, power))

    size = np.log1p(np.abs(z))
    return np.where(np.asarray(z) >= 0, grown(size, power), -grown(size, 2 - np.asarray(power)))


def best_power(z):
    """λ of largest likelihood within its range: a grid, then golden sections around its best point.
    """
    jacobian = np.sum(np.sign(z) * np.log1p(np.abs(z)))

    def loss(power):
        spread = np.var(yeo_johnson(z, np.asarray(power)[..., None]), axis=-1)
        return 0.5 * len(z) * np.log(np.maximum(spread, 1e-300)) - (power - 1) * jacobian

    if np.var(z) < 1e-20:
        return 1.0
    reach = 486 * math.log(2) / math.log1p(20 * np.abs(z).max())
    grid = np.linspace(2 - reach, reach, 2001)
    at = int(np.argmin(loss(grid)))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return (low + high) / 2


class PowerColumn:
    """Steps 1 to 4 of `inputs.scaling` "power" for one column; fitted to its prefix values."""

    def __init__(self, column):
        known = column[~np.isnan(column)]
        self.constant = len(known) == 0 or known.min() == known.max()
        if self.constant:
            return
        self.mean, self.sd = known.mean(), known.std()
        z = self.first(known, None)
        self.limits = z.min(), z.max()
        self.power = best_power(z)
        z = yeo_johnson(z, self.power)
        self.mean2, variance = z.mean(), z.var()
        self.sd2 = 1.0 if variance < 1e-20 else math.sqrt(variance)
        z = (z - self.mean2) / self.sd2
        kept = z[np.abs(z - z.mean()) <= 4 * max(z.std(ddof=1), 1e-6)]
        spread = max(kept.std(ddof=1) if len(kept) > 1 else 0.0, 1e-6)
        self.low, self.high = kept.mean() - 4 * spread, kept.mean() + 4 * spread

    def first(self, x, limits):
        z = np.clip((x - self.mean) / (self.sd + 1e-6), -100, 100)
        return z if limits is None else np.clip(z, *limits)

    def __call__(self, column):
        if self.constant:
            return np.where(np.isnan(column), np.nan, 0.0)
        z = yeo_johnson(self.first(column, self.limits), self.power)
        z = (z - self.mean2) / self.sd2
        z = np.maximum(z, self.low - np.log1p(np.abs(z)))
        return np.minimum(z, self.high + np.log1p(np.abs(z)))
