"""Embedders: what makes tokens of rows and queries (docs/model-format.md, section 4;
docs/families.md).
"""

import torch
from torch import nn

from . import logistic, process, record, ridge
from .classes import ClassEncoder, cell_width, is_classifier
from .network import ACTIVATIONS, MLP, encoder, make_norm, target_columns, target_count
from .rows import RowTokeniser
from .set_encoder import SetEncoder


def activation_of(config):
    return config["embedder"].get("activation", config["activation"])


def row_tokeniser(config):
    """The row tokeniser of docs/model-format.md, section 5."""
    x = config["embedder"]["x"]
    room = config["head"]["classes"] if is_classifier(config) else 0
    widths = {"ridge": ridge.opinions_width(room), "process": process.NUMBERS,
              "logistic": logistic.opinions_width(room)}
    opinions = {name: width for name, width in widths.items() if x.get(name, False)}
    most, activation = config["inputs"]["max_features"], ACTIVATIONS[activation_of(config)]
    passed = record.LENGTH if config["head"].get("process_record", False) else 0
    return RowTokeniser(most, x["hidden"], config["width"], activation, opinions,
                        cell_width(config), passed)


class Additive(nn.Module):
    """`E_x(x) + E_y(y)` for rows with a target, `E_x(x)` for queries."""

    def __init__(self, config):
        super().__init__()
        e, d, activation = config["embedder"], config["width"], activation_of(config)
        self.config = config
        if e["x"]["kind"] == "rows":
            self.x = row_tokeniser(config)
        else:
            self.x = encoder(e["x"], config["inputs"]["features"], d, activation)
        if is_classifier(config):
            self.y = ClassEncoder(config["head"]["classes"], d)
        else:
            self.y = encoder(e["y"], target_count(config), d, activation)

    def forward(self, x, y, queries, prefix):
        tokens = self.x(torch.cat([x, queries], 1))
        rows = y.shape[1]
        return tokens[:, :rows] + self.y(target_columns(self.config, y)), tokens[:, rows:]


class Concatenated(nn.Module):
    """An MLP of `[x, y]`, and of `[x, 0]` for queries; with a flag, of `[x, y, 0]` and `[x, 0, 1]`.
    """

    def __init__(self, config):
        super().__init__()
        e = config["embedder"]
        self.config, self.flag = config, e["flag"]
        numbers = config["inputs"]["features"] + target_count(config) + self.flag
        self.xy = MLP([numbers] + e["hidden"] + [config["width"]], activation_of(config))

    def forward(self, x, y, queries, prefix):
        y = target_columns(self.config, y)
        rows = y.shape[1]
        target = torch.cat([y, y.new_zeros(*queries.shape[:2], y.shape[2])], 1)
        numbers = [torch.cat([x, queries], 1), target]
        if self.flag:
            asked = torch.zeros_like(target[..., :1])
            asked[:, rows:] = 1
            numbers.append(asked)
        tokens = self.xy(torch.cat(numbers, -1))
        return tokens[:, :rows], tokens[:, rows:]


class Parts(nn.Module):
    """An MLP of a vector for observed or asked, a part of x and a part of y (Jenson et al. 2024,
    eq. 2).
    """

    def __init__(self, config):
        super().__init__()
        e, activation = config["embedder"], activation_of(config)
        self.config = config
        self.observed = nn.Parameter(torch.randn(2, e["observed"]) * 0.5)
        self.kind_x = e["x"]["kind"]
        x_numbers, y_numbers = config["inputs"]["features"], target_count(config)
        self.x, x_numbers = part(e["x"], x_numbers, activation)
        self.y, y_numbers = part(e["y"], y_numbers, activation)
        sizes = [e["observed"] + x_numbers + y_numbers] + e["hidden"] + [config["width"]]
        self.xy = MLP(sizes, activation)
        self.norm = make_norm(config) if e["norm"] else None

    def forward(self, x, y, queries, prefix):
        y = target_columns(self.config, y)
        rows, asked = y.shape[1], queries.shape[1]
        target = torch.cat([y, y.new_zeros(len(y), asked, y.shape[2])], 1)
        known = torch.arange(rows + asked, device=y.device)[:, None] < rows
        seen = torch.where(known, self.observed[1], self.observed[0])
        numbers = [seen.expand(len(y), -1, -1).to(y.dtype)]
        features = torch.cat([x, queries], 1)
        if self.kind_x != "none":
            numbers.append(self.x(features) if self.x else features)
        numbers.append(self.y(target) if self.y else target)
        tokens = self.xy(torch.cat(numbers, -1))
        tokens = self.norm(tokens) if self.norm else tokens
        return tokens[:, :rows], tokens[:, rows:]


def part(config, numbers, activation):
    """(module or None for the numbers themselves, how many numbers come out)."""
    kind = config["kind"]
    if kind in ("none", "identity"):
        return None, 0 if kind == "none" else numbers
    return encoder(config, numbers, config["width"], activation), config["width"]


class Separate(nn.Module):
    """Features and targets in streams of their own (decoupled values)."""

    def __init__(self, config):
        super().__init__()
        e, d, activation = config["embedder"], config["width"], activation_of(config)
        self.config = config
        self.x = encoder(e["x"], config["inputs"]["features"], d, activation)
        self.y = encoder(e["y"], target_count(config), d, activation)

    def forward(self, x, y, queries, prefix):
        """Features of all tokens [B, N + M, d], targets of the rows [B, N, d]."""
        return self.x(torch.cat([x, queries], 1)), self.y(target_columns(self.config, y))


EMBEDDERS = {
    "additive": Additive,
    "concat": Concatenated,
    "parts": Parts,
    "separate": Separate,
    "set": SetEncoder,
}
