"""Path A of the row tokeniser: any number of columns to one vector (docs/model-format.md, section
5).
"""
import torch
from torch import nn


class RowTokeniser(nn.Module):
    """`out(act(sum_f W_f cell_f + R ridge + L logistic + bias))`. The column statistics are in
    normalise.py, `ridge` and `logistic` in files of their own."""

    def __init__(self, max_features, hidden, width, activation, opinions=None, cell=8, passed=0):
        """opinions: how many numbers of a row each kind of regression gives, by its name, in the
        order of the numbers; cell: numbers of a cell; passed: numbers between cells and opinions
        that are not for the tokeniser.
        """
        super().__init__()
        self.slot = nn.Module()
        self.slot.weight = nn.Parameter(torch.randn(max_features, hidden, cell) * 0.25)
        self.slot.bias = nn.Parameter(torch.zeros(hidden))
        self.opinions, self.passed = opinions or {}, passed
        for name, numbers in self.opinions.items():
            # From zero, so that a model without grows into one with the same answers.
            regression = nn.Module()
            regression.weight = nn.Parameter(torch.zeros(hidden, numbers))
            self.add_module(name, regression)
        self.out = nn.Linear(hidden, width)
        self.activation = activation

    def forward(self, cells):
        """cells [..., F * cell (+ opinions)] with F <= max_features, in slot order; returns [...,
        d].
        """
        said = sum(self.opinions.values())
        flat = cells.shape[-1] - said - self.passed
        if self.passed:
            cells = torch.cat([cells[..., :flat], cells[..., cells.shape[-1] - said:]], -1)
        used = flat // self.slot.weight.shape[2]
        weight = ([self.slot.weight[:used].transpose(0, 1).flatten(1)]
                  + [getattr(self, name).weight for name in self.opinions])
        g = nn.functional.linear(cells, torch.cat(weight, 1), self.slot.bias)
        return self.out(self.activation(g))
