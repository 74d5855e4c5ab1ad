"""Path A of the row tokeniser: any number of columns to one vector (docs/model-format.md, section 5)."""
import torch
from torch import nn


class RowTokeniser(nn.Module):
    """`out(act(sum_f W_f cell_f + bias))`. The column statistics are in normalise.py."""

    def __init__(self, max_features, hidden, width, activation, cell=8):
        super().__init__()
        self.slot = nn.Module()
        self.slot.weight = nn.Parameter(torch.randn(max_features, hidden, cell) * 0.25)
        self.slot.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Linear(hidden, width)
        self.activation = activation

    def forward(self, cells):
        """cells [..., F, cell] or flat, with F <= max_features, in slot order; returns [..., d]."""
        cell = self.slot.weight.shape[2]
        cells = cells.flatten(-2) if cells.shape[-1] == cell and cells.dim() == 4 else cells
        used = cells.shape[-1] // cell
        weight = self.slot.weight[:used].transpose(0, 1).flatten(1)
        g = nn.functional.linear(cells, weight, self.slot.bias)
        return self.out(self.activation(g))
