"""The networks of docs/model-format.md and docs/families.md: embedder, stack of layers, head.

Parameter names are the tensor names of the file format, so `state_dict()` is the file.
"""

import torch
from torch import nn

from . import logistic, process
from .attention import Layout
from .blocks import Block
from .config import check_model
from .decoupled import Decoupled
from .embedders import EMBEDDERS
from .heads import make_head
from .network import MLP, make_norm
from .questions import statistics_rows
from .stacks import Buffered, Latent, Packed, TwoStream

__all__ = ["Block", "MLP", "make_model"]


class Network(nn.Module):
    """What all stacks share: everything before and after the layers."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        d, embedder = config["width"], config["embedder"]
        self.strict = config["chain"].get("mask", "inclusive") == "strict"
        self.embed = EMBEDDERS[embedder["kind"]](config)
        # From zero, so that a model without grows into one with the same answers.
        self.role = nn.Parameter(torch.zeros(3, d)) if embedder.get("roles") else None
        positions = embedder.get("positions")
        self.pos = nn.Parameter(torch.zeros(positions, d)) if positions else None
        sinks = torch.randn(config["attention"].get("sinks", 0), d) * 0.5
        if len(sinks):
            self.sinks = nn.Parameter(sinks)
        else:
            self.register_buffer("sinks", sinks, persistent=False)
        self.make_layers(config)
        if config["norm"]["final"]:
            self.final_norm = make_norm(config)
        self.share = config["head"].get("logistic", 0)
        self.head = make_head(config)
        self.reset()

    @torch.no_grad()
    def reset(self):
        """Blocks start as the identity; a feature's first layer starts with kinks spread over it.
        """
        for block in self.blocks():
            block.reset()
        features = getattr(self.embed, "x", None)
        if isinstance(features, MLP) and features[0].in_features == 1:
            # Over [-2.5, 2.5], steep enough to tell neighbouring inputs apart from the first step.
            first = features[0]
            first.weight.normal_(0, 2)
            first.bias.copy_(-first.weight[:, 0] * torch.empty_like(first.bias).uniform_(-2.5, 2.5))

    def forward(self, x, y, queries, prefix, visible, said=None, layout=None,
                behind=None):
        """Head outputs for the queries in standardised target units, [B, M, outputs] (of a joint
        head means and factor), or a classifier's logits [B, M, C].

        x: scaled features of the rows [B, N, F] (for `rows`: flat cells [B, N, F * cell (+
        opinions)]); y: scaled, clipped targets [B, N], or [B, N, D] of several; queries: as x, [B,
        M, …]; prefix: number of prefix rows; visible [M]: rows that each query sees;
        said [B, M, 4]: what the process says of the queries, where it is not what their cells have;
        layout: one whose tasks have rows of their own number, instead of `visible`;
        behind [M]: rows that queries see and that statistics and process do not know, where it is
        not those that the prefix lacks.
        """
        rows, device = y.shape[1], y.device.type
        # Raw numbers in, densities out: both ends stay in full precision under autocast.
        with torch.autocast(device, enabled=False):
            context, asked = self.embed(x, y, queries, prefix)
        if self.role is not None:
            asked = asked + self.role[0]
            known, later = context[:, :prefix] + self.role[1], context[:, prefix:] + self.role[2]
            context = torch.cat([known, later], 1)
        if self.pos is not None:
            later = context[:, prefix:] + self.pos[: rows - prefix]
            context = torch.cat([context[:, :prefix], later], 1)
        places = torch.cat([x, queries], 1) if "features" in self.config["inputs"] else None
        if layout is None:
            layout = Layout(len(self.sinks), prefix, rows, visible, self.strict, places)
        layout.positions = places
        h = self.stack(context, asked, layout)
        if self.config["norm"]["final"]:
            h = self.final_norm(h)
        with torch.autocast(device, enabled=False):
            outputs = self.head(h)
            if self.config["head"].get("process"):
                # The process's numbers are the last of a row.
                said = queries[..., -process.NUMBERS :] if said is None else said
                if behind is None:
                    known = statistics_rows(self.config, prefix)
                    behind = 0 if visible is None else (visible - known).clamp_min(0)
                return self.head.gate.join(outputs, said, queries, behind)
            return self.lean(outputs, queries) if self.share else outputs

    def lean(self, outputs, queries):
        """Logits [B, M, C] of a classifier that takes a share of them from what the logistic
        regression says of the queries (section 8).

        Not while it is trained: a network that is taught with the share makes up for it, and what
        it is for, tables unlike those of the prior, loses it again.
        """
        if self.training:
            return outputs
        numbers = queries[..., -logistic.opinions_width(outputs.shape[-1]) :]
        # A cell of every slot holds K / C.
        classes = (queries[..., :1, 3:4] * outputs.shape[-1]).round()
        known = numbers[..., :1, -1:] / classes.log()
        share = self.share * torch.where(classes > 1, known, torch.zeros_like(known)).clamp(0, 1)
        return (1 - share) * outputs + share * numbers[..., :-1]


class PackedNetwork(Packed, Network):
    pass


class TwoStreamNetwork(TwoStream, Network):
    pass


class LatentNetwork(Latent, Network):
    pass


class BufferedNetwork(Buffered, Network):
    pass


class DecoupledNetwork(Decoupled, Network):
    """The embedder gives features of all tokens and targets of the rows."""


class MeanProcess(nn.Module):
    """The conditional neural process (Garnelo et al. 2018): a context is the mean of its rows."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = EMBEDDERS["concat"](config)
        self.head = make_head(config, config["width"] + config["inputs"]["features"])

    def forward(self, x, y, queries, prefix, visible):
        """As Network.forward."""
        rows, _ = self.embed(x, y, queries[:, :0], prefix)
        # Sums of all leading parts: every query reads the one that it sees.
        sums = torch.cat([rows.new_zeros(len(rows), 1, rows.shape[2]), rows.cumsum(1)], 1)
        mean = sums[:, visible] / visible.clamp_min(1)[:, None].to(rows.dtype)
        return self.head(torch.cat([mean, queries], -1))


ARCHITECTURES = {
    "packed": PackedNetwork,
    "two-stream": TwoStreamNetwork,
    "latent": LatentNetwork,
    "buffered": BufferedNetwork,
    "decoupled": DecoupledNetwork,
    "mean": MeanProcess,
}


def make_model(config):
    """The network of a model part, which must be one that this trainer trains (config.py)."""
    check_model(config)
    return ARCHITECTURES[config["architecture"]](config)
