"""PyTorch eager on the same weights: the fair baseline, with the context encoded once and shared by
all draws.

Answers the questions of bench/run: factorised prediction, joint sampling with a causal buffer (both
tokens of a step in one pass), and the one-pass joint density over random orders. Rows come as the
model's inputs: x [N, inputs of the embedder], y [N] in the model's unit. What turns a table's
columns into them is done before the clock starts, to PyTorch's advantage.
"""
import math

import torch
from pg_posterior_train.attention import attend
from pg_posterior_train.export import load_model
from pg_posterior_train.normalise import prepare, soft_clip
from pg_posterior_train.tasks import numeric


def inputs(config, x, y, prefix):
    """Columns x [N, F] and y [N] as inputs: x [N, …], y [N] for densities and clipped as an input,
    and the target's centre and scale."""
    found = prepare(numeric(x[None], y[None]), prefix, config)
    return found.x[0].float(), found.y[0].float(), found.y_input[0].float(), float(
        found.center), float(found.scale)


class Baseline:
    """A model and one encoded context."""

    def __init__(self, path, model=None):
        """The model of a file, or one that has been read before."""
        self.model = model or load_model(path)
        self.model.requires_grad_(False)
        self.heads = self.model.config["heads"]

    def split(self, u):
        return u.reshape(*u.shape[:-1], self.heads, -1).transpose(-2, -3)

    def block(self, layer, h, keys, values, mask=None, visible=None):
        """h [..., T, d] attends to keys [..., H, n, dh]; visible [T] counts the keys that each row
        sees."""
        q = self.split(layer.attn.q(layer.norm1(h)))
        scale = 1 / math.sqrt(q.shape[-1])
        if layer.attn.log_scale is not None:
            a, b = layer.attn.log_scale.unbind(-1)
            scale = scale * (a[:, None] * visible.log() + b[:, None])[..., None]
        if mask is None and keys.dim() == 3:
            # PyTorch's own fused attention, where it has one
            out = attend((q * scale)[None], keys[None], values[None])[0]
        else:
            logits = (q * scale) @ keys.transpose(-1, -2)
            if mask is not None:
                logits = logits.masked_fill(~mask, -math.inf)
            out = logits.softmax(-1) @ values
        h = h + layer.attn.o(out.transpose(-2, -3).flatten(-2))
        return h + layer.ff(layer.norm2(h))

    def store(self, layer, h):
        u = layer.norm1(h)
        return self.split(layer.attn.k(u)), self.split(layer.attn.v(u))

    def head(self, h):
        if self.model.config["norm"]["final"]:
            h = self.model.final_norm(h)
        raw = self.model.head(h)
        weights, means, raw_sds = raw.chunk(3, -1)
        return weights.log_softmax(
            -1), means, torch.nn.functional.softplus(raw_sds) + self.model.config["head"]["floor"]

    def encode(self, x, y):
        """x, y [N]: keys and values of every layer."""
        h = torch.cat([self.model.sinks, self.model.embed.x(x) + self.model.embed.y(y[:, None])])
        visible = torch.full((len(h),), float(len(h)))
        self.cache = []
        for layer in self.model.layer:
            k, v = self.store(layer, h)
            self.cache.append((k, v))
            h = self.block(layer, h, k, v, visible=visible)
        self.keys = len(h)

    def append(self, x, y):
        """Keys and values of further rows x, y [M], each seeing those before it; the context stays
        as it is."""
        m = len(x)
        h = self.model.embed.x(x) + self.model.embed.y(y[:, None])
        counts = torch.arange(m)
        mask = None if m == 1 else torch.cat(
            [torch.ones(m, self.keys, dtype=torch.bool), counts <= counts[:, None]], 1)
        new = []
        for i, (layer, (ck, cv)) in enumerate(zip(self.model.layer, self.cache)):
            k, v = self.store(layer, h)
            new.append((k, v))
            if i + 1 < len(self.cache):
                h = self.block(layer, h, torch.cat([ck, k], 1), torch.cat([cv, v], 1), mask,
                               (self.keys + counts + 1).float())
        return new

    def sample_again(self, x, y, queries, draws):
        """Draws at `queries` by encoding context x, y and what was drawn anew at every step: no
        buffer."""
        for _ in range(draws):
            xs, ys = x, y
            for k in range(len(queries)):
                self.encode(xs, ys)
                drawn = self.as_input(self.draw(self.predict(queries[k:k + 1])))
                xs, ys = torch.cat([xs, queries[k:k + 1]]), torch.cat([ys, drawn])
        self.encode(x, y)

    def predict(self, x):
        """Mixture parameters for queries x [M]."""
        h = self.model.embed.x(x)
        visible = torch.full((len(x),), float(self.keys))
        for layer, (k, v) in zip(self.model.layer, self.cache):
            h = self.block(layer, h, k, v, visible=visible)
        return self.head(h)

    def as_input(self, y):
        return soft_clip(y, self.model.config["target"].get("clip", 0))

    def draw(self, answer):
        weights, means, sds = answer
        component = torch.distributions.Categorical(logits=weights).sample()[..., None]
        return means.gather(-1, component)[..., 0] + sds.gather(
            -1, component)[..., 0] * torch.randn(component.shape[:-1])

    def sample(self, x, draws):
        """Joint draws [draws, M] at x [M], autoregressively: row k-1 and query k in one pass."""
        queries = self.model.embed.x(x)
        own = [None] * len(self.cache)
        y = torch.empty(draws, len(x))
        for k in range(len(x)):
            h = queries[k].expand(draws, 1, -1)
            if k > 0:
                h = torch.cat([
                    queries[k - 1] + self.model.embed.y(self.as_input(y[:, k - 1, None]))[:, None],
                    h
                ], 1)
            visible = torch.full((h.shape[1],), float(self.keys + k))
            for i, (layer, (ck, cv)) in enumerate(zip(self.model.layer, self.cache)):
                if k > 0:
                    new = self.store(layer, h[:, :1])
                    own[i] = new if own[i] is None else tuple(
                        torch.cat([a, b], 2) for a, b in zip(own[i], new))
                h = self.step(layer, h, ck, cv, own[i], visible)
            y[:, k] = self.draw(self.head(h[:, -1]))
        return y

    def step(self, layer, h, ck, cv, own, visible):
        """One block with shared keys [H, N, dh] and private keys [B, H, k, dh], without expanding
        the shared ones."""
        q = self.split(layer.attn.q(layer.norm1(h)))
        scale = 1 / math.sqrt(q.shape[-1])
        if layer.attn.log_scale is not None:
            a, b = layer.attn.log_scale.unbind(-1)
            scale = scale * (a[:, None] * visible.log() + b[:, None])[..., None]
        q = q * scale
        draws, heads, tokens, width = q.shape
        shared = (
            q.transpose(0, 1).reshape(heads, draws * tokens, width) @ ck.transpose(-1, -2)).reshape(
                heads, draws, tokens, -1).transpose(0, 1)
        logits = shared if own is None else torch.cat([shared, q @ own[0].transpose(-1, -2)], -1)
        weights = logits.softmax(-1)
        n = ck.shape[-2]
        out = (weights[..., :n].transpose(0, 1).reshape(heads, draws * tokens, n) @ cv).reshape(
            heads, draws, tokens, width).transpose(0, 1)
        if own is not None:
            out = out + weights[..., n:] @ own[1]
        h = h + layer.attn.o(out.transpose(-2, -3).flatten(-2))
        return h + layer.ff(layer.norm2(h))

    def density(self, x, y, orders):
        """Log of the joint density, in the model's unit, averaged over `orders` random orders (1:
        the given order)."""
        m = len(x)
        place = torch.stack([torch.randperm(m)
                             for _ in range(orders)]) if orders > 1 else torch.arange(m)[None]
        ex, ey = self.model.embed.x(x)[place], self.model.embed.y(self.as_input(y[:, None]))[place]
        h = torch.cat([ex[:, :-1] + ey[:, :-1], ex], 1)
        counts = torch.cat([torch.arange(1, m), torch.arange(m)])
        mask = torch.arange(m - 1) < counts[:, None]
        mask = torch.cat([torch.ones(len(counts), self.keys, dtype=torch.bool), mask], 1)
        visible = (self.keys + counts).float()
        for layer, (ck, cv) in zip(self.model.layer, self.cache):
            k, v = self.store(layer, h[:, :m - 1])
            keys = torch.cat([ck.expand(orders, -1, -1, -1), k], 2)
            values = torch.cat([cv.expand(orders, -1, -1, -1), v], 2)
            h = self.block(layer, h, keys, values, mask, visible)
        weights, means, sds = self.head(h[:, m - 1:])
        z = (y[place][..., None] - means) / sds
        log_pdf = torch.logsumexp(weights - 0.5 * z * z - sds.log() - 0.5 * math.log(2 * math.pi),
                                  -1)
        return torch.logsumexp(log_pdf.sum(-1), 0) - math.log(orders)
