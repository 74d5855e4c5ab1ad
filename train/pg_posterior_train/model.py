"""The packed transformer of docs/model-format.md, section 6, with its embedders and the mixture head.

Parameter names are the tensor names of the file format, so `state_dict()` is the file.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import logistic, ridge
from .attention import Layout, attend
from .classes import ClassEncoder, cell_width, is_classifier
from .rows import RowTokeniser

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda u: F.gelu(u, approximate="tanh"),
}


class MLP(nn.ModuleList):
    """Linears `0`, `1`, … with an activation between them and none after the last."""

    def __init__(self, sizes, activation):
        super().__init__(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.activation = ACTIVATIONS[activation]

    def forward(self, u):
        for i, linear in enumerate(self):
            u = linear(u) if i == 0 else linear(self.activation(u))
        return u


class SkipMLP(nn.Module):
    """`u = first(v)`; `u + rest(u)` (embedder of Hassan et al. 2025)."""

    def __init__(self, inputs, hidden, width, activation):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.rest = MLP([width] + hidden + [width], activation)

    def forward(self, v):
        u = self.first(v)
        return u + self.rest(u)


def encoder(config, inputs, width, activation, max_features=None, cell=8, classes=0):
    """One `ENC` of docs/model-format.md, section 4; classes: room of a classifier."""
    kind = config["kind"]
    if kind == "linear":
        return nn.Linear(inputs, width)
    if kind == "mlp":
        return MLP([inputs] + config["hidden"] + [width], activation)
    if kind == "skip-mlp":
        return SkipMLP(inputs, config["hidden"], width, activation)
    if kind == "rows":
        if config["tokens"] is not None:
            raise ValueError("this trainer has no feature tokens; use \"tokens\": null")
        widths = {"ridge": ridge.opinions_width(classes), "logistic": logistic.opinions_width(classes)}
        opinions = {name: width for name, width in widths.items() if config.get(name, False)}
        return RowTokeniser(max_features, config["hidden"], width, ACTIVATIONS[activation], opinions, cell)
    raise ValueError(f"unknown encoder kind {kind!r}")


class Embedder(nn.Module):
    """`E_x(x) + E_y(y)` for rows with a target, `E_x(x)` for queries."""

    def __init__(self, config):
        super().__init__()
        e = config["embedder"]
        activation = e.get("activation", config["activation"])
        inputs = config["inputs"]
        room = config["head"]["classes"] if is_classifier(config) else 0
        self.x = encoder(e["x"], inputs.get("features"), config["width"], activation, inputs.get("max_features"), cell_width(config), room)
        if room:
            self.y = ClassEncoder(room, config["width"])
        else:
            self.y = encoder(e["y"], 1, config["width"], activation)


class RMSNorm(nn.Module):
    """u / sqrt(mean(u²) + eps) · weight."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, u):
        return u * torch.rsqrt(u.square().mean(-1, keepdim=True) + self.eps) * self.weight


def make_norm(config):
    norm = config["norm"]
    kind = {"rms": RMSNorm, "layer": nn.LayerNorm}[norm["kind"]]
    return kind(config["width"], eps=norm["eps"])


class Attention(nn.Module):
    """Multi-head attention with shared weights for context and queries; one K and V per layer."""

    def __init__(self, config):
        super().__init__()
        d, self.heads = config["width"], config["heads"]
        bias = config["attention"]["bias"]
        self.q, self.k, self.v = (nn.Linear(d, d, bias=bias == "all") for _ in range(3))
        self.o = nn.Linear(d, d, bias=bias in ("all", "output"))
        if config["attention"].get("log_scale", False):
            # (a_h, b_h): near 1 at 100 keys, and growing with ln n (scalable softmax, Nakanishi 2025).
            self.log_scale = nn.Parameter(torch.tensor([[0.15, 0.3]]).repeat(self.heads, 1))
        else:
            self.log_scale = None

    def split(self, u):
        """[B, T, d] to [B, H, T, dh]."""
        return u.reshape(*u.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, u, layout, queries_only=False):
        """u [B, S + N + M, d], in the order sinks, rows, queries; returns the same, or its queries [B, M, d]."""
        context = layout.sinks + layout.rows
        c = u[:, :context]
        k, v = self.split(self.k(c)), self.split(self.v(c))
        q = self.split(self.q(u[:, context:] if queries_only else u))
        scale = 1 / math.sqrt(q.shape[-1])
        if self.log_scale is not None:
            a, b = self.log_scale.to(q.dtype).unbind(-1)
            scale = scale * (a[:, None] * layout.log_keys[-q.shape[2]:].to(q.dtype) + b[:, None])[..., None]
        q = q * scale
        if queries_only:
            parts = [attend(q, k, v, layout.tail_mask[-layout.queries:])]
        else:
            h = layout.head
            parts = [attend(q[:, :, :h], k[:, :, :h], v[:, :, :h])] if h else []
            parts.append(attend(q[:, :, h:], k, v, layout.tail_mask))
        return self.o(torch.cat(parts, 2).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """One layer, pre-norm or post-norm."""

    def __init__(self, config):
        super().__init__()
        d = config["width"]
        self.pre = config["norm"]["placement"] == "pre"
        self.attn = Attention(config)
        self.ff = MLP([d, config["feedforward"], d], config["activation"])
        self.norm1, self.norm2 = make_norm(config), make_norm(config)

    def forward(self, h, layout, queries_only=False):
        """h [B, S + N + M, d]. In the last layer only the queries go on: [B, M, d]."""
        kept = h[:, -layout.queries:] if queries_only else h
        if self.pre:
            h = kept + self.attn(self.norm1(h), layout, queries_only)
            return h + self.ff(self.norm2(h))
        h = self.norm1(kept + self.attn(h, layout, queries_only))
        return self.norm2(h + self.ff(h))


class PackedTransformer(nn.Module):
    """Transformer neural process with one set of weights for context rows and queries."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        d = config["width"]
        self.embed = Embedder(config)
        sinks = torch.randn(config["attention"].get("sinks", 0), d) * 0.5
        if len(sinks):
            self.sinks = nn.Parameter(sinks)
        else:
            self.register_buffer("sinks", sinks, persistent=False)
        self.layer = nn.ModuleList(Block(config) for _ in range(config["layers"]))
        if config["norm"]["final"]:
            self.final_norm = make_norm(config)
        head = config["head"]
        self.components = 0 if is_classifier(config) else head["components"]
        self.share = head.get("logistic", 0)
        if self.share and not config["embedder"]["x"].get("logistic", False):
            raise ValueError("head.logistic needs embedder.x.logistic")
        outputs = 3 * self.components or head["classes"]
        self.head = MLP([d] + head["hidden"] + [outputs], head.get("activation", config["activation"]))
        self.reset()

    @torch.no_grad()
    def reset(self):
        """Blocks start as the identity; mixture means start spread over [-1.5, 1.5]."""
        for block in self.layer:
            block.attn.o.weight.zero_()
            block.ff[1].weight.zero_()
            block.ff[1].bias.zero_()
        last, c = self.head[-1], self.components
        last.weight.mul_(0.3)
        last.bias.zero_()
        if c:
            last.bias[c:2 * c] = torch.linspace(-1.5, 1.5, c) if c > 1 else 0.0
        if isinstance(self.embed.x, MLP) and self.embed.x[0].in_features == 1:
            # Kinks spread over [-2.5, 2.5], steep enough to tell neighbouring inputs apart from the first step.
            first = self.embed.x[0]
            first.weight.normal_(0, 2)
            first.bias.copy_(-first.weight[:, 0] * torch.empty_like(first.bias).uniform_(-2.5, 2.5))

    def forward(self, x, y, queries, prefix, visible):
        """Head outputs for the queries, [B, M, 3C] in standardised target units, or a classifier's logits [B, M, C].

        x: scaled features of the rows [B, N, F] (for `rows`: flat cells [B, N, F * cell (+ opinions)]); y: scaled, clipped targets [B, N];
        queries: as x, [B, M, …]; prefix: number of prefix rows; visible [M]: rows that each query sees.
        """
        rows, device = y.shape[1], y.device.type
        # Raw numbers in, densities out: both ends stay in full precision under autocast.
        with torch.autocast(device, enabled=False):
            tokens = self.embed.x(torch.cat([x, queries], 1))
            targets = self.embed.y(y[..., None])
        sinks = self.sinks.to(tokens.dtype).expand(len(tokens), -1, -1)
        h = torch.cat([sinks, tokens[:, :rows] + targets, tokens[:, rows:]], 1)
        layout = Layout(len(self.sinks), prefix, rows, visible)
        for block in self.layer:
            h = block(h, layout, queries_only=block is self.layer[-1])
        if self.config["norm"]["final"]:
            h = self.final_norm(h)
        with torch.autocast(device, enabled=False):
            return self.lean(self.head(h), queries)

    def lean(self, outputs, queries):
        """Logits [B, M, C] of a classifier that takes a share of them from what the logistic regression says of the queries (section 8).

        Not while it is trained: a network that is taught with the share makes up for it, and what it is for, tables unlike those of the
        prior, loses it again.
        """
        if self.training or not self.share:
            return outputs
        numbers = queries[..., -logistic.opinions_width(outputs.shape[-1]):]
        # A cell of every slot holds K / C.
        classes = (queries[..., :1, 3:4] * outputs.shape[-1]).round()
        known = numbers[..., :1, -1:] / classes.log()
        share = self.share * torch.where(classes > 1, known, torch.zeros_like(known)).clamp(0, 1)
        return (1 - share) * outputs + share * numbers[..., :-1]
