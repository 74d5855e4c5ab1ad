"""Path A of the row tokeniser: any number of columns to one vector (docs/model-format.md, section 5)."""
import torch
from torch import nn


class RowTokeniser(nn.Module):
    """`out(act(sum_f W_f cell_f + R ridge + bias))`. The column statistics are in normalise.py, `ridge` in ridge.py."""

    def __init__(self, max_features, hidden, width, activation, opinions=0, cell=8):
        """opinions: numbers of a row that regressions give (0: none); cell: numbers of a cell."""
        super().__init__()
        self.slot = nn.Module()
        self.slot.weight = nn.Parameter(torch.randn(max_features, hidden, cell) * 0.25)
        self.slot.bias = nn.Parameter(torch.zeros(hidden))
        if opinions:
            # From zero, so that a model without grows into one with the same answers.
            self.ridge = nn.Module()
            self.ridge.weight = nn.Parameter(torch.zeros(hidden, opinions))
        self.opinions = opinions
        self.out = nn.Linear(hidden, width)
        self.activation = activation

    def forward(self, cells):
        """cells [..., F * cell (+ opinions)] with F <= max_features, in slot order; returns [..., d]."""
        used = (cells.shape[-1] - self.opinions) // self.slot.weight.shape[2]
        weight = self.slot.weight[:used].transpose(0, 1).flatten(1)
        if self.opinions:
            weight = torch.cat([weight, self.ridge.weight], 1)
        g = nn.functional.linear(cells, weight, self.slot.bias)
        return self.out(self.activation(g))
