"""What a gate reads of the process's record (docs/model-format.md, section 8, "The process's
record"): how it has done on the prefix, beside regressions, and what it has learnt.
"""
import torch

LENGTH = 7
SMALLEST = 1e-6                  # of a mean square
FARTHEST = 4.0                   # that the log of one may be from 0
FARTHEST_SQUARE = 100.0          # of one row, where rows count by how much they lean on themselves
SMALLEST_REST = 1e-9             # of the rows that all that leaning is worth
WEIGHTS = (-5.0, 10.0)           # their logs


def log_square(square):
    return square.clamp_min(SMALLEST).log().clamp(-FARTHEST, FARTHEST)


def squares(away, rest):
    """[B, 2] logs of the mean square of what rows left out are away in deviations, away [B, n]
    squared, and of rows by how much they lean on themselves, rest [B, n] what is left of 1.
    """
    leaning = 1 - rest
    near = ((leaning * away.clamp_max(FARTHEST_SQUARE)).sum(1)
            / leaning.sum(1).clamp_min(SMALLEST_REST))
    return torch.stack([log_square(away.mean(1)), log_square(near)], 1)


def learnt(theta, used):
    """[B, 3] logs of one more than the number of axes, of the sum of their weights and of the
    largest; theta [B, axes] logs of the weights, used [B, axes].
    """
    weight = torch.where(used, theta.exp(), torch.zeros_like(theta))
    logs = torch.stack([weight.sum(1), weight.amax(1)], 1).log().clamp(*WEIGHTS)
    return torch.cat([used.sum(1, keepdim=True).to(theta.dtype).log1p(), logs], 1)


def record(told, learned, ridge):
    """[B, LENGTH], of squares() and learnt(), and of what regressions say of a row, ridge [B, 6].
    """
    return torch.cat([told, learned[:, :1], ridge[:, 1::3].to(told), learned[:, 1:]], 1)
