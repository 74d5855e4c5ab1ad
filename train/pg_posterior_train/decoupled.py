"""Decoupled values: attention weights from features, values from targets (Sharma et al. 2025)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .attention import attend
from .network import MLP, make_norm


class DecoupledAttention(nn.Module):
    """Queries and keys of the features' stream, values of the targets' stream."""

    def __init__(self, config):
        super().__init__()
        a, d, self.heads = config["attention"], config["width"], config["heads"]
        self.kind, bias = a.get("kind", "softmax"), a["bias"]
        self.q = nn.Linear(d, d, bias=bias == "all")
        self.k = None if a.get("tied", False) else nn.Linear(d, d, bias=bias == "all")
        self.v = nn.Linear(d, d, bias=bias == "all")
        self.o = nn.Linear(d, d, bias=bias in ("all", "output"))

    def split(self, u):
        return u.reshape(*u.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, asked, keys, values, hidden, tau=1.0):
        """asked [B, T, d], keys and values [B, N, d], hidden [T, N]: which keys a token does not
        see; None where every token sees all.
        """
        q, k = self.split(self.q(asked)), self.split((self.k or self.q)(keys))
        v = self.split(self.v(values))
        if self.kind == "linear":
            q, k = F.elu(q * tau) + 1, F.elu(k) + 1
            weights = q @ k.transpose(-1, -2)
            if hidden is not None:
                weights = weights.masked_fill(hidden, 0)
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-30)
            return self.join(weights @ v)
        bias, scale = None, tau / math.sqrt(q.shape[-1])
        if self.kind == "distance":
            # -|q - k|² without |q|², which all keys of a token share.
            bias, scale = -tau * k.square().sum(-1)[:, :, None], 2 * tau
        q = q * scale
        if hidden is None and bias is None:
            return self.join(attend(q, k, v))
        logits = q @ k.transpose(-1, -2)
        if bias is not None:
            logits = logits + bias
        if hidden is None:
            return self.join(logits.softmax(-1) @ v)
        blind = hidden.all(-1, keepdim=True)
        logits = logits.masked_fill(hidden & ~blind, float("-inf"))
        return self.join(logits.softmax(-1).masked_fill(blind, 0) @ v)

    def join(self, read):
        """What the heads read, [B, H, T, dh], to [B, T, d]."""
        return self.o(read.transpose(1, 2).flatten(2))


class AttentionLayer(nn.Module):
    """One layer of the attention backbone."""

    def __init__(self, config):
        super().__init__()
        d = config["width"]
        self.attn = DecoupledAttention(config)
        self.tau = nn.Parameter(torch.ones(1))
        self.ff = MLP([d, config["feedforward"], d], config["activation"])
        self.norm_q, self.norm_k = make_norm(config), make_norm(config)
        self.norm_v, self.norm_ff = make_norm(config), make_norm(config)

    def forward(self, e, h, layout, hidden, first=0):
        """Features e as they were, and states of the tokens from `first` on."""
        rows = layout.rows
        keys, values = self.norm_k(e[:, :rows]), self.norm_v(h[:, :rows])
        h = h[:, first:] + self.attn(self.norm_q(e[:, first:]), keys, values, hidden, self.tau)
        return e, h + self.ff(self.norm_ff(h))


class ConvolutionLayer(nn.Module):
    """A depthwise convolution over the rows' features, then attention. A query stands alone behind
    the last row.
    """

    def __init__(self, config):
        super().__init__()
        self.conv = nn.Module()
        self.conv.weight = nn.Parameter(torch.randn(config["width"], 5) * 0.2)
        self.attn = DecoupledAttention(config)
        self.norm_c, self.norm_qk, self.norm_v = (make_norm(config) for _ in range(3))

    def forward(self, e, h, layout, hidden, first=0):
        """Features of all tokens, and states of those from `first` on."""
        rows, w = layout.rows, self.conv.weight
        u = self.norm_c(e)
        own, asked = u[:, :rows], u[:, rows:]
        padded = F.pad(own, (0, 0, 2, 2))
        mixed = sum(padded[:, o : o + rows] * w[:, o] for o in range(5))
        tail = padded[:, rows : rows + 2]    # the last two rows, zeros where there are fewer
        alone = tail[:, :1] * w[:, 0] + tail[:, 1:] * w[:, 1] + asked * w[:, 2]
        e = e + torch.cat([mixed, alone], 1)
        places = self.norm_qk(e)
        values = self.norm_v(h[:, :rows])
        return e, h[:, first:] + self.attn(places[:, first:], places[:, :rows], values, hidden)


class Recurrence(nn.Module):
    """One layer of an RNN or LSTM over the rows; a query is one step behind the rows that it sees.
    """

    def __init__(self, config, kind):
        super().__init__()
        d, self.gates = config["width"], 4 if kind == "lstm" else 1
        self.rec = nn.Module()
        self.rec.ih, self.rec.hh = nn.Linear(d, self.gates * d), nn.Linear(d, self.gates * d)

    def step(self, inputs, state):
        """inputs: ih(e); state: (s, c)."""
        s, c = state
        gates = inputs + self.rec.hh(s)
        if self.gates == 1:
            return torch.tanh(gates), c
        i, f, g, o = gates.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def forward(self, e, rows, visible):
        inputs = self.rec.ih(e)
        state = torch.zeros_like(e[:, 0]), torch.zeros_like(e[:, 0])
        states = [state]
        for i in range(rows):
            state = self.step(inputs[:, i], state)
            states.append(state)
        s, c = (torch.stack(parts, 1) for parts in zip(*states))
        asked, _ = self.step(inputs[:, rows:], (s[:, visible], c[:, visible]))
        return torch.cat([s[:, 1:], asked], 1)


class Decoupled:
    """The stack of decoupled values with its backbones."""

    def make_layers(self, config):
        self.backbone = config.get("backbone", {"kind": "attention"})["kind"]
        kinds = {"attention": AttentionLayer, "convolution": ConvolutionLayer}
        if self.backbone in kinds:
            layers = (kinds[self.backbone](config) for _ in range(config["layers"]))
        else:
            layers = (Recurrence(config, self.backbone) for _ in range(config["layers"]))
            self.read = nn.Module()
            self.read.attn, self.read.norm_v = DecoupledAttention(config), make_norm(config)
        self.layer = nn.ModuleList(layers)

    def blocks(self):
        return []

    def stack(self, e, h, layout):
        """e [B, N + M, d] of features, h [B, N, d] of targets; states of the queries [B, M, d]."""
        rows, prefix = layout.rows, layout.prefix
        h = torch.cat([h, h.new_zeros(len(h), layout.queries, h.shape[2])], 1)
        own = hidden = None
        if layout.tail_mask is not None:
            hidden = torch.zeros(rows + layout.queries, rows, dtype=torch.bool, device=h.device)
            hidden[:prefix, prefix:] = True
            hidden[prefix:] = layout.tail_mask != 0
            # In the last layer only the queries go on; where they see all rows there is no mask.
            own, hidden = (m if bool(m.any()) else None for m in (hidden[rows:], hidden))
        if self.backbone in ("rnn", "lstm"):
            for layer in self.layer:
                e = layer(e, rows, layout.visible)
            values = self.read.norm_v(h[:, :rows])
            return self.read.attn(e[:, rows:], e[:, :rows], values, own)
        for layer in self.layer[:-1]:
            e, h = layer(e, h, layout, hidden)
        return self.layer[-1](e, h, layout, own, rows)[1]
