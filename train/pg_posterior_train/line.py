"""A linear regression of the prefix that takes the place of its process where it predicts rows left
out better (docs/model-format.md, section 5, "Line").

All in float64, without gradients; batched over tasks.
"""
import math

import torch

from . import process_chain, record
from .clip import soft_clip, unclip
from .ridge import choose_penalty, design
from .shift import Known

PENALTIES = [4.0 ** k for k in range(-10, 9)]
FARTHEST = 2.0 ** 20             # of numbers that are not clipped
SMALLEST = 1e-6                  # added to sums of squares
AHEAD = 0.1                      # nats that a line must be ahead of the process
BEHIND = 0.3                     # or may be behind if it is certain
EXACT = 4.0                      # and half the log of the rows: it is as good as exact
FREE = 5.0                       # rows that it must leave free
CERTAIN, SAYS_CERTAIN = 3.0, 8.0    # a line of this log density says this for it


def is_certain(quality):
    """Whether the last of the process's numbers is that of a line that leaves next to nothing."""
    return quality == SAYS_CERTAIN


def instead(said, z, bins, filled, categorical, y_input, prefix, clip, chain=None, kept=None,
            records=None):
    """What a process says [B, N, 4], in tasks where a line predicts better what the line says, and
    the mean log density of the prefix's rows, left out, [B].

    y_input [B, N] clipped targets; kept, a list, has a shift.Known of each task by the process, and
    gets those of lines; so has records, a list, what the process has of its record; other arguments
    as of opinions().
    """
    own = None if kept is None else []
    told = []
    by_line, density = opinions(z, bins, filled, categorical, unclip(y_input.double(), clip),
                                prefix, clip, chain, own, told)
    others = unclip(said[:, 0, 3].double(), clip)
    head = y_input[:, :prefix]
    # equal targets are along a line by whatever comes next
    equal = (head == head[:, :1]).all(1)
    least = torch.where((density > CERTAIN) & ~equal, others - BEHIND, others + AHEAD)
    exact = torch.where(equal, math.inf, EXACT + math.log(prefix) / 2).to(others)
    wins = density > torch.minimum(least, exact)
    if kept is not None:
        kept[:] = [a if won else b for a, b, won in zip(own, kept, wins)]
    if records is not None:
        records[0] = torch.where(wins[:, None], told[0], records[0])
        records[1] = records[1].masked_fill(wins[:, None], 0)
    return (torch.where(wins[:, None, None], by_line.to(said.dtype), said),
            torch.where(wins, density, others))


def features(z, bins, filled, categorical, y, prefix):
    """The design over the root of its penalty, [B, N, D]; arguments as of opinions()."""
    u, _ = design(z.double().clamp(-FARTHEST, FARTHEST), bins, filled, categorical, False)
    head, target = u[:, :prefix], y[:, :prefix, None]
    transposed = head.transpose(1, 2)
    *_, penalty = choose_penalty(transposed @ head, transposed @ target,
                                 target.square().sum((1, 2)), prefix, PENALTIES)
    return u / penalty.sqrt()[:, None, None]


@torch.no_grad()
def opinions(z, bins, filled, categorical, y, prefix, clip, chain=None, kept=None, told=None):
    """(numbers [B, N, 4], mean log density of the prefix's rows, left out, [B], minus infinity
    of a line that leaves too few rows free).

    z, bins [B, N, S] in slot order, numbers scaled and not clipped (0 where missing); filled [B,
    bins, S], categorical [B, S]; y [B, N] scaled targets, not clipped; the targets' clip; chain and
    kept as of process.opinions; told, a list, gets record.squares().
    """
    y = y.double()
    phi = features(z, bins, filled, categorical, y, prefix)
    head, targets = phi[:, :prefix], y[:, :prefix]
    eye = torch.eye(phi.shape[2], dtype=phi.dtype, device=phi.device)
    outer, bad = torch.linalg.cholesky_ex(eye + head.transpose(1, 2) @ head)
    moment = head.transpose(1, 2) @ targets[..., None]
    weights = torch.cholesky_solve(moment, outer)
    square = targets.square().sum(1) - (weights * moment).sum((1, 2))
    variance = (square.clamp_min(0) + SMALLEST)[:, None] / prefix
    mean = (phi @ weights)[..., 0]
    unknown = torch.linalg.solve_triangular(outer, phi.transpose(1, 2), upper=False)
    share = unknown.square().sum(1)
    spread = variance * (1 + share)
    if kept is not None:
        kept += [Known(*of, is_line=True) for of in zip(phi.transpose(1, 2), torch.ones_like(share),
                                                        weights, outer, variance, targets)]
    if chain is not None:
        def covariances(a, b):
            return unknown[:, :, a].transpose(1, 2) @ unknown[:, :, b]

        mean, spread = process_chain.condition(chain, y, mean, spread, torch.ones_like(variance),
                                               variance, covariances)
    rest = (1 - share[:, :prefix]).clamp_min(1e-9)
    mean[:, :prefix] = targets - (targets - mean[:, :prefix]) / rest
    spread[:, :prefix] = variance / rest
    away = (targets - mean[:, :prefix]).square() / spread[:, :prefix]
    density = (-0.5 * ((2 * math.pi * spread[:, :prefix]).log() + away)).mean(1)
    if told is not None:
        told.append(record.squares(away, rest))
    free = rest.sum(1) >= FREE
    density = torch.where((bad > 0) | ~free, torch.full_like(density, -math.inf), density)
    mean[:, :prefix] = soft_clip(mean[:, :prefix], clip)
    quality = torch.where(density > CERTAIN, torch.full_like(density, SAYS_CERTAIN),
                          soft_clip(density, clip))
    said = torch.stack([mean, 0.5 * spread.log(), 0.5 * variance.log().expand_as(mean),
                        quality[:, None].expand_as(mean)], -1)
    return said, density
