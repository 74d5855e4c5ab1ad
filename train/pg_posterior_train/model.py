"""The transformers of docs/model-format.md, sections 6 and 7, with their embedders and heads.

Parameter names are the tensor names of the file format, so `state_dict()` is the file.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import logistic, ridge
from .attention import Layout, attend
from .classes import ClassEncoder, cell_width, is_classifier
from .config import check_model
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
        widths = {"ridge": ridge.opinions_width(classes), "logistic": logistic.opinions_width(classes)}
        opinions = {name: width for name, width in widths.items() if config.get(name, False)}
        return RowTokeniser(max_features, config["hidden"], width, ACTIVATIONS[activation], opinions, cell)
    raise ValueError(f"unknown encoder kind {kind!r}")


class Additive(nn.Module):
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

    def forward(self, x, y, queries):
        tokens = self.x(torch.cat([x, queries], 1))
        rows = y.shape[1]
        return tokens[:, :rows] + self.y(y[..., None]), tokens[:, rows:]


class Concatenated(nn.Module):
    """An MLP of `[x, y]`, and of `[x, 0]` for queries; with a flag, of `[x, y, 0]` and `[x, 0, 1]`."""

    def __init__(self, config):
        super().__init__()
        e = config["embedder"]
        self.flag = e["flag"]
        numbers = config["inputs"]["features"] + 1 + self.flag
        self.xy = MLP([numbers] + e["hidden"] + [config["width"]], e.get("activation", config["activation"]))

    def forward(self, x, y, queries):
        target = torch.cat([y, y.new_zeros(queries.shape[:2])], 1)
        numbers = [torch.cat([x, queries], 1), target[..., None]]
        rows = y.shape[1]
        if self.flag:
            asked = torch.zeros_like(target)
            asked[:, rows:] = 1
            numbers.append(asked[..., None])
        tokens = self.xy(torch.cat(numbers, -1))
        return tokens[:, :rows], tokens[:, rows:]


EMBEDDERS = {"additive": Additive, "concat": Concatenated}


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
        if queries_only:
            return self.read(u[:, context:], u[:, :context], 0, layout.tail_mask[-layout.queries:], layout.log_keys)
        return self.read(u, u[:, :context], layout.head, layout.tail_mask, layout.log_keys)

    def read(self, u, source, head, mask, log_keys=None):
        """u [B, T, d] reads source [B, K, d]: the first `head` of it the first `head` of the source, the rest by mask [T - head, K].

        log_keys: the log of how many keys each token sees; that of u is its end.
        """
        k, v = self.split(self.k(source)), self.split(self.v(source))
        q = self.split(self.q(u))
        scale = 1 / math.sqrt(q.shape[-1])
        if self.log_scale is not None:
            a, b = self.log_scale.to(q.dtype).unbind(-1)
            scale = scale * (a[:, None] * log_keys[-q.shape[2]:].to(q.dtype) + b[:, None])[..., None]
        q = q * scale
        parts = [attend(q[:, :, :head], k[:, :, :head], v[:, :, :head])] if head else []
        if q.shape[2] > head:
            parts.append(attend(q[:, :, head:], k, v, mask))
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

    def read(self, h, source, head, mask):
        """One layer of the two-stream stack: h reads the source, which is h itself or another stream."""
        if self.pre:
            normed = self.norm1(h)
            h = h + self.attn.read(normed, normed if source is h else self.norm1(source), head, mask)
            return h + self.ff(self.norm2(h))
        h = self.norm1(h + self.attn.read(h, source, head, mask))
        return self.norm2(h + self.ff(h))


class Transformer(nn.Module):
    """What both stacks share: everything before and after the layers. A stack has `blocks()` and `stack()`."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        d, embedder = config["width"], config["embedder"]
        self.strict = config["chain"].get("mask", "inclusive") == "strict"
        self.embed = EMBEDDERS[embedder["kind"]](config)
        # From zero, so that a model without grows into one with the same answers.
        self.role = nn.Parameter(torch.zeros(3, d)) if embedder.get("roles") else None
        self.pos = nn.Parameter(torch.zeros(embedder["positions"], d)) if embedder.get("positions") else None
        sinks = torch.randn(config["attention"].get("sinks", 0), d) * 0.5
        if len(sinks):
            self.sinks = nn.Parameter(sinks)
        else:
            self.register_buffer("sinks", sinks, persistent=False)
        self.make_layers(config)
        if config["norm"]["final"]:
            self.final_norm = make_norm(config)
        head = config["head"]
        self.components = head.get("components", 1)
        self.share = head.get("logistic", 0)
        outputs = {"classes": head.get("classes"), "gaussian": 2, "mixture": 3 * self.components}[head["kind"]]
        self.head = MLP([d] + head["hidden"] + [outputs], head.get("activation", config["activation"]))
        self.reset()

    @torch.no_grad()
    def reset(self):
        """Blocks start as the identity; mixture means start spread over [-1.5, 1.5]."""
        for block in self.blocks():
            block.attn.o.weight.zero_()
            block.ff[1].weight.zero_()
            block.ff[1].bias.zero_()
        last, c = self.head[-1], self.components
        last.weight.mul_(0.3)
        last.bias.zero_()
        if c > 1:
            last.bias[c:2 * c] = torch.linspace(-1.5, 1.5, c)
        features = getattr(self.embed, "x", None)
        if isinstance(features, MLP) and features[0].in_features == 1:
            # Kinks spread over [-2.5, 2.5], steep enough to tell neighbouring inputs apart from the first step.
            first = features[0]
            first.weight.normal_(0, 2)
            first.bias.copy_(-first.weight[:, 0] * torch.empty_like(first.bias).uniform_(-2.5, 2.5))

    def forward(self, x, y, queries, prefix, visible):
        """Head outputs for the queries in standardised target units, [B, M, 3C] or [B, M, 2], or a classifier's logits [B, M, C].

        x: scaled features of the rows [B, N, F] (for `rows`: flat cells [B, N, F * cell (+ opinions)]); y: scaled, clipped targets [B, N];
        queries: as x, [B, M, …]; prefix: number of prefix rows; visible [M]: rows that each query sees.
        """
        rows, device = y.shape[1], y.device.type
        # Raw numbers in, densities out: both ends stay in full precision under autocast.
        with torch.autocast(device, enabled=False):
            context, asked = self.embed(x, y, queries)
        if self.role is not None:
            asked = asked + self.role[0]
            context = torch.cat([context[:, :prefix] + self.role[1], context[:, prefix:] + self.role[2]], 1)
        if self.pos is not None:
            context = torch.cat([context[:, :prefix], context[:, prefix:] + self.pos[:rows - prefix]], 1)
        h = self.stack(context, asked, Layout(len(self.sinks), prefix, rows, visible, self.strict))
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


class PackedTransformer(Transformer):
    """One set of weights for context rows and queries."""

    def make_layers(self, config):
        self.layer = nn.ModuleList(Block(config) for _ in range(config["layers"]))

    def blocks(self):
        return list(self.layer)

    def stack(self, context, asked, layout):
        """States of the queries, [B, M, d]."""
        sinks = self.sinks.to(context.dtype).expand(len(context), -1, -1)
        h = torch.cat([sinks, context, asked], 1)
        for block in self.layer:
            h = block(h, layout, queries_only=block is self.layer[-1])
        return h


class TwoStreamTransformer(Transformer):
    """Separate weights for the context, which reads itself, and for the queries, which read what the context became."""

    def make_layers(self, config):
        self.add_module("self", nn.ModuleList(Block(config) for _ in range(config["layers"])))
        self.cross = nn.ModuleList(Block(config) for _ in range(config["layers"]))

    def blocks(self):
        return [*getattr(self, "self"), *self.cross]

    def stack(self, context, asked, layout):
        """States of the queries, [B, M, d]."""
        later, queries = layout.tail_mask[:layout.rows - layout.head], layout.tail_mask[-layout.queries:]
        for own, cross in zip(getattr(self, "self"), self.cross):
            context = own.read(context, context, layout.head, later)
            asked = cross.read(asked, context, 0, queries)
        return asked


def make_model(config):
    """The network of a model part, which must be one that this trainer trains (config.py)."""
    check_model(config)
    return {"packed": PackedTransformer, "two-stream": TwoStreamTransformer}[config["architecture"]](config)
