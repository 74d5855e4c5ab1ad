"""The pieces of which all architectures are made: MLPs, encoders, norms."""

import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda u: F.gelu(u, approximate="tanh"),
}


class MLP(nn.ModuleList):
    """Linears `0`, `1`, … with an activation between them and none after the last."""

    def __init__(self, sizes, activation, bias=True):
        super().__init__(nn.Linear(a, b, bias=bias) for a, b in zip(sizes, sizes[1:]))
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


def encoder(config, inputs, width, activation):
    """A `linear`, `mlp` or `skip-mlp` of docs/model-format.md, section 4."""
    kind = config["kind"]
    if kind == "linear":
        return nn.Linear(inputs, width)
    if kind == "mlp":
        return MLP([inputs] + config["hidden"] + [width], activation)
    if kind == "skip-mlp":
        return SkipMLP(inputs, config["hidden"], width, activation)
    raise ValueError(f"unknown encoder kind {kind!r}")


class RMSNorm(nn.Module):
    """u / sqrt(mean(u²) + eps) · weight."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, u):
        return u * torch.rsqrt(u.square().mean(-1, keepdim=True) + self.eps) * self.weight


def make_norm(config, width=None):
    """The trunk's norm, for states of another width where one is given."""
    norm = config["norm"]
    kind = {"rms": RMSNorm, "layer": nn.LayerNorm}[norm["kind"]]
    return kind(width or config["width"], eps=norm["eps"])


def target_count(config):
    """How many targets a row has."""
    return config["target"].get("count", 1)


def target_columns(config, y):
    """Targets [B, N] or [B, N, D] as columns [B, N, D]."""
    return y[..., None] if target_count(config) == 1 else y
