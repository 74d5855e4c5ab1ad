"""The stacks of layers between embedder and head. A stack has `blocks()` and `stack()`."""

import torch
from torch import nn

from .blocks import Block
from .network import make_norm


class Packed:
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


class TwoStream:
    """Separate weights for the context, which reads itself, and for the queries, which read what
    the context became.
    """

    def make_layers(self, config):
        self.add_module("self", nn.ModuleList(Block(config) for _ in range(config["layers"])))
        self.cross = nn.ModuleList(Block(config) for _ in range(config["layers"]))

    def blocks(self):
        return [*getattr(self, "self"), *self.cross]

    def stack(self, context, asked, layout):
        """States of the queries, [B, M, d]."""
        later, queries = layout.later_mask, layout.query_mask
        for own, cross in zip(getattr(self, "self"), self.cross):
            context = own.read(context, context, layout.head, later)
            asked = cross.read(asked, context, 0, queries)
        return asked


def buffer_masks(layout, fixed):
    """Masks of buffer rows and of queries over `fixed` keys that all see, then the buffer rows."""
    mask = layout.tail_mask[:, layout.head :]
    mask = torch.cat([mask.new_zeros(len(mask), fixed), mask], 1)
    buffered = layout.rows - layout.prefix
    return mask[:buffered], mask[len(mask) - layout.queries :]


class Latent:
    """Latents read the context, queries read the latents; buffer rows stand beside them."""

    def make_layers(self, config):
        self.latents = nn.Parameter(torch.randn(config["latents"], config["width"]) * 0.5)
        for name in ("read", "self", "cross"):
            self.add_module(name, nn.ModuleList(Block(config) for _ in range(config["layers"])))

    def blocks(self):
        return [*self.read, *getattr(self, "self"), *self.cross]

    def stack(self, context, asked, layout):
        """States of the queries, [B, M, d]."""
        rows, buffer = context[:, : layout.prefix], context[:, layout.prefix :]
        latents = self.latents.to(context.dtype).expand(len(context), -1, -1)
        buffered = buffer.shape[1] > 0
        later, queries = buffer_masks(layout, latents.shape[1]) if buffered else (None, None)
        for read, own, cross in zip(self.read, getattr(self, "self"), self.cross):
            latents = read.read(latents, rows, 0, layout.unseen)
            latents = own.read(latents, latents, 0, None)
            if not buffered:
                asked = cross.read(asked, latents, 0, None)
                continue
            source = torch.cat([latents, buffer], 1)
            asked, buffer = cross.read(asked, source, 0,
                                       queries), cross.read(buffer, source, 0, later)
        return asked


class TargetBlock(Block):
    """A block that reads context and buffer through a norm of their own, with a constant per head
    on the logits of buffer keys.
    """

    def __init__(self, config):
        super().__init__(config)
        self.norm_kv = make_norm(config)
        self.attn.buffer = nn.Parameter(torch.zeros(config["heads"]))

    def target(self, h, source, mask, buffered):
        """h [B, M, d] reads source [B, N + J, d], whose last `buffered` are the buffer."""
        bias = mask.new_zeros(1, source.shape[1])
        bias[:, source.shape[1] - buffered :] = 1
        logits = mask + self.attn.buffer[:, None, None].to(mask.dtype) * bias
        h = h + self.attn.read(self.norm1(h), self.norm_kv(source), 0, logits)
        return h + self.ff(self.norm2(h))


class Buffered:
    """Context, buffer and queries have weights of their own (nanoACE)."""

    def make_layers(self, config):
        for name in ("self", "buffer"):
            self.add_module(name, nn.ModuleList(Block(config) for _ in range(config["layers"])))
        self.cross = nn.ModuleList(TargetBlock(config) for _ in range(config["layers"]))

    def blocks(self):
        return [*getattr(self, "self"), *self.buffer, *self.cross]

    def stack(self, context, asked, layout):
        """States of the queries, [B, M, d]."""
        rows, buffer = context[:, : layout.prefix], context[:, layout.prefix :]
        later, queries = buffer_masks(layout, layout.prefix)
        for own, buffers, cross in zip(getattr(self, "self"), self.buffer, self.cross):
            entering, rows = rows, own.read(rows, rows, 0, None)
            if buffer.shape[1]:
                buffer = buffers.read(buffer, torch.cat([entering, buffer], 1), 0, later)
            asked = cross.target(asked, torch.cat([rows, buffer], 1), queries, buffer.shape[1])
        return asked
