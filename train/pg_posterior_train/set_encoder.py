"""The column and row stages of the set encoder (docs/families.md; Qu et al. 2025)."""

import copy
import math

import torch
from torch import nn

from .blocks import Block
from .network import encoder, target_columns, target_count


def stage_config(config, width, stage):
    """What a block of a stage is made from."""
    inner = {key: config[key] for key in ("inputs", "target", "activation")}
    inner["activation"] = config["embedder"].get("activation", config["activation"])
    norm = {"kind": "layer", "placement": "pre", "eps": config["norm"]["eps"], "final": False}
    inner.update(width=width, heads=stage["heads"], feedforward=stage["feedforward"], norm=norm)
    return {**copy.deepcopy(inner), "attention": {"bias": "all"}}


class Induced(nn.Module):
    """Inducing vectors read the prefix rows, all rows read them."""

    def __init__(self, config, inducing):
        super().__init__()
        self.inducing = nn.Parameter(torch.randn(inducing, config["width"]) * 0.02)
        self.a, self.b = Block(config), Block(config)

    def forward(self, cells, prefix):
        """cells [columns, tokens, c]."""
        known = self.inducing.expand(len(cells), -1, -1)
        if prefix:
            known = self.a.read(known, cells[:, :prefix], 0, None)
        return self.b.read(cells, known, 0, None)


class ColumnStage(nn.Module):
    """Each column alone, weights shared: [B, T, F] to [B, T, F, c]."""

    def __init__(self, config):
        super().__init__()
        stage = config["embedder"]["columns"]
        c, inner = stage["width"], stage_config(config, stage["width"], stage)
        self.add_module("in", nn.Linear(1, c))
        for i in range(stage["layers"]):
            self.add_module(str(i), Induced(inner, stage["inducing"]))
        self.layers = stage["layers"]
        self.scale, self.shift = nn.Linear(c, c), nn.Linear(c, c)
        eps = config["norm"]["eps"]
        self.scale_norm, self.shift_norm = nn.LayerNorm(c, eps=eps), nn.LayerNorm(c, eps=eps)

    def forward(self, z, prefix):
        many = z.transpose(1, 2).flatten(0, 1)[..., None]
        cells = getattr(self, "in")(many)
        for i in range(self.layers):
            cells = getattr(self, str(i))(cells, prefix)
        weight, shift = self.scale_norm(self.scale(cells)), self.shift_norm(self.shift(cells))
        return (many * weight + shift).unflatten(0, (len(z), -1)).transpose(1, 2)


def rotate(u, rotary, layout):
    """Rotary positions of u [B, H, T, dh] at 0, 1, …."""
    half = u.shape[-1] // 2
    place = torch.arange(u.shape[2], device=u.device, dtype=torch.float64)
    power = torch.arange(half, device=u.device, dtype=torch.float64) * -2 / u.shape[-1]
    angle = place[:, None] * rotary**power
    cos, sin = angle.cos().to(u.dtype), angle.sin().to(u.dtype)
    if layout == "interleaved":
        a, b = u[..., 0::2], u[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    a, b = u[..., :half], u[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class RowStage(nn.Module):
    """Each row alone: read-outs and cells mix, [B, T, F, c] to [B, T, d]."""

    def __init__(self, config):
        super().__init__()
        stage, c = config["embedder"]["rows"], config["embedder"]["columns"]["width"]
        inner = stage_config(config, c, stage)
        self.readout = nn.Parameter(torch.randn(stage["readouts"], c) * 0.02)
        for i in range(stage["layers"]):
            self.add_module(str(i), Block(inner))
        self.stage, self.norm = stage, nn.LayerNorm(c, eps=config["norm"]["eps"])

    def mix(self, block, h):
        """One block with rotated queries and keys; h [rows, R + F, c]."""
        u, a = block.norm1(h), block.attn
        q, k = (rotate(a.split(f(u)), self.stage["rotary"], self.stage["layout"])
                for f in (a.q, a.k))
        weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        h = h + a.o((weights @ a.split(a.v(u))).transpose(1, 2).flatten(2))
        return h + block.ff(block.norm2(h))

    def forward(self, cells):
        batch, tokens = cells.shape[:2]
        h = torch.cat([self.readout.expand(batch * tokens, -1, -1), cells.flatten(0, 1)], 1)
        for i in range(self.stage["layers"]):
            h = self.mix(getattr(self, str(i)), h)
        kept = 1 if self.stage["take"] == "first" else len(self.readout)
        return self.norm(h[:, :kept]).flatten(1).unflatten(0, (batch, tokens))


class SetEncoder(nn.Module):
    """Whole tables to tokens."""

    def __init__(self, config):
        super().__init__()
        self.config, e = config, config["embedder"]
        self.column, self.row = ColumnStage(config), RowStage(config)
        activation = e.get("activation", config["activation"])
        self.y = encoder(e["y"], target_count(config), config["width"], activation)

    def forward(self, x, y, queries, prefix):
        tokens = self.row(self.column(torch.cat([x, queries], 1), prefix))
        rows = y.shape[1]
        return tokens[:, :rows] + self.y(target_columns(self.config, y)), tokens[:, rows:]
