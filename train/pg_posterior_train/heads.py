"""Heads: MLPs of the query states, and the distributions of their outputs (docs/model-format.md,
section 8; docs/families.md).
"""

import math

import torch
from torch import nn

from . import process, record, ridge
from .attention import Layout
from .bars import Bars
from .blocks import Block
from .line import is_certain
from .mixture import Mixture
from .network import MLP, target_count


SIZE = 4                 # of a cell: the log of the prefix's rows and one, over 8
# The record is before what regressions and the process say of a row.
RECORD = slice(-(record.LENGTH + ridge.NUMBERS + process.NUMBERS),
               -(ridge.NUMBERS + process.NUMBERS))


def outputs_of(config):
    """How many numbers the head says of a query."""
    head, targets = config["head"], target_count(config)
    if head["kind"] == "classes":
        return head["classes"]
    each = {"gaussian": 2, "mixture": 3 * head.get("components", 1), "bars": head.get("buckets")}
    return targets * each[head["kind"]]


class Gate(MLP):
    """How much of an answer is what a Gaussian process says: an MLP of ten numbers, of the
    process's record where the head has process_record, and of the rows behind the prefix where it
    has process_behind (section 8).
    """

    NUMBERS, AT_FIRST = 10, -3.0
    ROWS = 1024          # of the prefix that it counts
    BEHIND = 512         # and behind it

    def __init__(self, head, activation):
        self.record = head.get("process_record", False)
        self.behind = head.get("process_behind", False)
        self.read = self.NUMBERS + record.LENGTH * self.record + self.behind
        super().__init__([self.read, head["process"], 1], activation)
        self.plain = {k: v for k, v in head.items() if k != "process"}
        with torch.no_grad():
            self[1].weight.zero_()
            self[1].bias.fill_(self.AT_FIRST)

    def numbers(self, outputs, said, asked, behind=0):
        """[B, M, 10 or more] that decide the gate.

        outputs [B, M, 3C] of the head; said [B, M, 4] of the process; asked [B, M, …] what the
        network sees of the queries, whose first cells have the size of the prefix; behind: rows
        that each sees and the process does not know, a number or [M].
        """
        mixture = Mixture(outputs, self.plain)
        mean, sd = mixture.moments()
        m, spread, noise, quality = said.unbind(-1)
        apart, log_sd = (m - mean).abs(), sd.log()
        size = asked[..., SIZE]
        numbers = [
            quality,
            spread,
            noise,
            log_sd,
            spread - log_sd,
            (apart / (sd + 1e-3)).log1p(),
            (apart / spread.exp()).log1p(),
            size.clamp_max(math.log1p(self.ROWS) / 8),
            (quality + log_sd).clamp(-4, 4),
            # how much narrower than the whole its components are: peaks on the levels of a target
            log_sd - (mixture.log_weight.exp() * mixture.sd.log()).sum(-1),
        ]
        numbers = torch.stack(numbers, -1)
        if self.record:
            numbers = torch.cat([numbers, asked[..., RECORD]], -1)
        if self.behind:
            behind = torch.as_tensor(behind, dtype=m.dtype, device=m.device)
            behind = behind.clamp_max(self.BEHIND).log1p() / 8
            numbers = torch.cat([numbers, behind.expand_as(m)[..., None]], -1)
        return numbers

    def forward(self, outputs, said, asked, behind=0):
        """[B, M, 3]: gate, mean and log of the deviation of the process; arguments as of numbers.
        """
        u = super().forward(self.numbers(outputs, said, asked, behind))
        return torch.cat([u, said[..., :2]], -1)

    def join(self, outputs, said, asked, behind=0):
        """[B, M, 3C + 3]: outputs and forward(). A line that is certain has the weight of the rows
        of the prefix against one more, and what the head says is moved to its mean.
        """
        own, certain = self(outputs, said, asked, behind), is_certain(said[..., 3])
        if certain.any():
            logits, means, raw = outputs.chunk(3, -1)
            away = said[..., 0] - Mixture(outputs, self.plain).moments()[0]
            outputs = torch.cat([logits, means + (away * certain)[..., None], raw], -1)
            u = torch.where(certain, (8 * asked[..., SIZE]).expm1().log(), own[..., 0])
            own = torch.cat([u[..., None], own[..., 1:]], -1)
        return torch.cat([outputs, own], -1)


class Head(MLP):
    """The MLP of a head that speaks of each query alone."""

    def __init__(self, config, inputs):
        head = config["head"]
        activation = head.get("activation", config["activation"])
        super().__init__([inputs] + head["hidden"] + [outputs_of(config)], activation)
        if head["kind"] == "bars":
            # Replaced by equal-mass borders of the prior before training.
            self.register_buffer("borders", torch.linspace(-3, 3, head["buckets"] + 1))
        if head.get("process"):
            self.gate = Gate(head, activation)
        components, targets = head.get("components", 1), target_count(config)
        with torch.no_grad():
            last = self[len(head["hidden"])]
            last.weight.mul_(0.3)
            last.bias.zero_()
            if components > 1:
                spread = torch.linspace(-1.5, 1.5, components).repeat(targets)
                last.bias[len(spread) : 2 * len(spread)] = spread

    def forward(self, u):
        # The gate is among the modules, and no layer.
        layers = [module for module in self if module is not self._modules.get("gate")]
        for i, layer in enumerate(layers):
            u = layer(u) if i == 0 else layer(self.activation(u))
        return u


class JointHead(nn.Module):
    """One Gaussian of all queries, with a low-rank factor (TNP-ND; Nguyen and Grover 2022)."""

    def __init__(self, config, inputs):
        super().__init__()
        head, d = config["head"], config["width"]
        self.targets, self.rank = target_count(config), head["rank"]
        self.jitter = head.get("jitter", 0)
        activation = head.get("activation", config["activation"])
        self.mean = MLP([inputs] + head["hidden"] + [self.targets], activation)
        plain = {**config, "attention": {"bias": config["attention"]["bias"]}}
        self.block = nn.ModuleList(Block(plain) for _ in range(head["layers"]))
        sizes = [d] + head["projector"] + [self.rank * self.targets]
        self.projector = MLP(sizes, activation)
        for block in self.block:
            block.reset()

    def forward(self, h):
        """States [B, M, d] to means [B, M·D] and factors [B, M·D, M·D]."""
        seen = torch.full((h.shape[1],), h.shape[1], device=h.device)
        layout = Layout(0, h.shape[1], h.shape[1], seen[:0])
        u = h
        for block in self.block:
            u = block(u, layout)
        w = self.projector(u).unflatten(-1, (self.targets, self.rank)).flatten(1, 2)
        factor = (w @ w.transpose(1, 2)).tril()
        if self.jitter:
            factor = factor + self.jitter * torch.eye(factor.shape[1]).to(factor)
        return self.mean(h).flatten(1), factor


class Joint:
    """y ~ N(mean, C Cᵀ); mean [B, n], factor C [B, n, n]."""

    def __init__(self, outputs):
        self.mean, self.factor = outputs

    def log_prob(self, y):
        """Joint log density [B] of y [B, n]."""
        difference = (y - self.mean)[..., None].double()
        factor = self.factor.double()
        white = torch.linalg.solve_triangular(factor, difference, upper=False)[..., 0]
        spread = factor.diagonal(dim1=1, dim2=2).log().sum(1)
        size = y.shape[1]
        return -0.5 * white.square().sum(1) - spread - 0.5 * size * math.log(2 * math.pi)


def make_head(config, inputs=None):
    kind = JointHead if config["head"]["kind"] == "joint-gaussian" else Head
    return kind(config, inputs or config["width"])


def distribution(model, outputs):
    """What the outputs of a model's head mean, in standardised target units."""
    head, targets = model.config["head"], target_count(model.config)
    if head["kind"] == "bars":
        return Bars(outputs, head, model.head.borders, targets)
    return Mixture(outputs, head, targets)
