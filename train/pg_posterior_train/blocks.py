"""Attention blocks of the packed and two-stream stacks (docs/model-format.md, sections 6 and 7)."""

import math

import torch
from torch import nn

from .attention import attend
from .kernel_bias import KernelBias
from .network import MLP, make_norm


def make_values(config):
    """The linear or MLP of the values (docs/families.md, "Widths and values of attention")."""
    a, d = config["attention"], config["width"]
    width, bias = a.get("value_width", d), a["bias"] == "all"
    if a.get("value_hidden"):
        activation = a.get("value_activation", config["activation"])
        return MLP([d] + a["value_hidden"] + [width], activation, bias)
    return nn.Linear(d, width, bias=bias)


class Attention(nn.Module):
    """Multi-head attention with shared weights for context and queries; one K and V per layer."""

    def __init__(self, config):
        super().__init__()
        a, d, self.heads = config["attention"], config["width"], config["heads"]
        wide, bias = a.get("query_width", d), a["bias"]
        self.q, self.k = (nn.Linear(d, wide, bias=bias == "all") for _ in range(2))
        self.v = make_values(config)
        self.o = nn.Linear(a.get("value_width", d), d, bias=bias in ("all", "output"))
        if a.get("log_scale", False):
            # (a_h, b_h): near 1 at 100 keys, and growing with ln n (scalable softmax, Nakanishi
            # 2025).
            self.log_scale = nn.Parameter(torch.tensor([[0.15, 0.3]]).repeat(self.heads, 1))
        else:
            self.log_scale = None
        self.kernel = KernelBias(config) if a.get("kernel") else None

    def split(self, u):
        """[B, T, width] to [B, H, T, width / H]."""
        return u.reshape(*u.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, u, layout, queries_only=False):
        """u [B, S + N + M, d], in the order sinks, rows, queries; returns the same, or its queries
        [B, M, d].
        """
        context = layout.sinks + layout.rows
        places = layout.positions
        if not queries_only:
            return self.read(u, u[:, :context], layout.head, layout.tail_mask, layout.log_keys,
                             places)
        return self.read(u[:, context:], u[:, :context], 0, layout.query_mask, layout.log_keys,
                         places)

    def read(self, u, source, head, mask, log_keys=None, places=None):
        """u [B, T, d] reads source [B, K, d]: the first `head` of it the first `head` of the
        source, the rest by mask [T - head, K].

        log_keys: the log of how many keys each token sees; that of u is its end. places: positions
        of rows and queries for a kernel bias; those of u are its end.
        """
        k, v = self.split(self.k(source)), self.split(self.v(source))
        q = self.split(self.q(u))
        scale = 1 / math.sqrt(q.shape[-1])
        if self.log_scale is not None:
            a, b = self.log_scale.to(q.dtype).unbind(-1)
            own = log_keys[-q.shape[2] :].to(q.dtype)
            scale = scale * (a[:, None] * own + b[:, None])[..., None]
        q = q * scale
        if self.kernel is not None:
            parts = self.kernel(q, k, v, head, mask, places)
        else:
            parts = [attend(q[:, :, :head], k[:, :, :head], v[:, :, :head])] if head else []
            if q.shape[2] > head:
                parts.append(attend(q[:, :, head:], k, v, mask))
        return self.o(torch.cat(parts, 2).transpose(1, 2).flatten(2))


def make_attention(config):
    """Attention of the kind that the configuration names."""
    from .linear_attention import DeepKernel, RandomFeatures

    kinds = {"softmax": Attention, "deep-kernel": DeepKernel, "random-features": RandomFeatures}
    return kinds[config["attention"].get("kind", "softmax")](config)


class Block(nn.Module):
    """One layer, pre-norm or post-norm."""

    def __init__(self, config):
        super().__init__()
        d = config["width"]
        self.pre = config["norm"]["placement"] == "pre"
        self.attn = make_attention(config)
        self.ff = MLP([d, config["feedforward"], d], config["activation"])
        self.norm1, self.norm2 = make_norm(config), make_norm(config)

    @torch.no_grad()
    def reset(self):
        """The block starts as the identity."""
        last = self.attn.o if hasattr(self.attn, "o") else self.attn.norm
        last.weight.zero_()
        self.ff[1].weight.zero_()
        self.ff[1].bias.zero_()

    def forward(self, h, layout, queries_only=False):
        """h [B, S + N + M, d]. In the last layer only the queries go on: [B, M, d]."""
        kept = h[:, -layout.queries :] if queries_only else h
        if self.pre:
            h = kept + self.attn(self.norm1(h), layout, queries_only)
            return h + self.ff(self.norm2(h))
        h = self.norm1(kept + self.attn(h, layout, queries_only))
        return self.norm2(h + self.ff(h))

    def read(self, h, source, head, mask):
        """One layer of the two-stream stack: h reads the source, which is h itself or another
        stream.
        """
        if self.pre:
            normed = self.norm1(h)
            seen = normed if source is h else self.norm1(source)
            h = h + self.attn.read(normed, seen, head, mask)
            return h + self.ff(self.norm2(h))
        h = self.norm1(h + self.attn.read(h, source, head, mask))
        return self.norm2(h + self.ff(h))
