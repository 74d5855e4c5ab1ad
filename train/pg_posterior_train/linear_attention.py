"""Attention as products of features: deep kernels and random features (docs/families.md)."""

import math

import torch
from torch import nn

from .blocks import make_values
from .network import MLP, make_norm


def orthogonal_rows(rows, width):
    """Blocks of orthonormal rows times sqrt(width) (Choromanski et al. 2021)."""
    blocks = [torch.linalg.qr(torch.randn(width, width))[0].T for _ in range(-(-rows // width))]
    return torch.cat(blocks)[:rows] * math.sqrt(width)


def sums(q, k, v, layout, queries_only):
    """q (Σ k vᵀ) and how many keys each token sees, by the masks of the layout.

    q [B, H, T, r], k [B, H, K, r], v [B, H, K, dv]; returns ([B, H, T, dv], [T]).
    """
    visible = (layout.tail_mask == 0).to(q.dtype)
    head = 0 if queries_only else layout.head
    parts = []
    if head:
        parts.append(q[:, :, :head] @ (k[:, :, :head].transpose(-1, -2) @ v[:, :, :head]))
    tail = visible[-layout.queries :] if queries_only else visible
    parts.append((q[:, :, head:] @ k.transpose(-1, -2) * tail) @ v)
    return torch.cat(parts, 2), layout.keys[-q.shape[2] :].to(q.dtype)


class DeepKernel(nn.Module):
    """One head whose queries and keys share an MLP; the products go through a norm, no softmax."""

    def __init__(self, config):
        super().__init__()
        a, d = config["attention"], config["width"]
        self.position = a.get("position", True)
        inputs = d + (config["inputs"]["features"] if self.position else 0)
        sizes = [inputs] + a["hidden"] + [a["features"]]
        self.qk = MLP(sizes, config["activation"], a["bias"] == "all")
        self.v = make_values(config)
        self.norm = make_norm(config)
        self.root = d**0.25

    def features(self, u, places):
        joined = torch.cat([places.to(u.dtype), u], -1) if self.position else u
        return self.qk(joined)[:, None] / self.root

    def forward(self, u, layout, queries_only=False):
        """As Attention.forward."""
        asked = u[:, layout.rows :] if queries_only else u
        places = layout.positions if self.position else None
        phi = self.features(u, places)
        k, v = phi[:, :, : layout.rows], self.v(u[:, : layout.rows])[:, None]
        out, seen = sums(phi[:, :, -asked.shape[1] :], k, v, layout, queries_only)
        return self.norm((out / seen.clamp_min(1)[:, None])[:, 0])


class RandomFeatures(nn.Module):
    """Positive random features of the softmax kernel (Performer)."""

    def __init__(self, config):
        super().__init__()
        a, d, self.heads = config["attention"], config["width"], config["heads"]
        wide, bias = a.get("query_width", d), a["bias"]
        self.q, self.k = (nn.Linear(d, wide, bias=bias == "all") for _ in range(2))
        self.v = make_values(config)
        self.o = nn.Linear(a.get("value_width", d), d, bias=bias in ("all", "output"))
        self.register_buffer("omega", orthogonal_rows(a["features"], wide // self.heads))

    def split(self, u):
        return u.reshape(*u.shape[:2], self.heads, -1).transpose(1, 2)

    def features(self, u):
        u = self.split(u)
        u = u * u.shape[-1] ** -0.25
        root = math.sqrt(len(self.omega))
        return torch.exp(u @ self.omega.T - u.square().sum(-1, keepdim=True) / 2) / root

    def forward(self, u, layout, queries_only=False):
        """As Attention.forward."""
        context = u[:, : layout.rows]
        asked = u[:, layout.rows :] if queries_only else u
        q, k = self.features(self.q(asked)), self.features(self.k(context))
        v = self.split(self.v(context))
        ones = torch.cat([v, torch.ones_like(v[..., :1])], -1)
        out, _ = sums(q, k, ones, layout, queries_only)
        out = out[..., :-1] / out[..., -1:].clamp_min(1e-6)
        return self.o(out.transpose(1, 2).flatten(2))
