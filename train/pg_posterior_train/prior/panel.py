"""Panel data: rows fall into groups that share almost all feature values and an unobserved effect.

Rows of one group differ in one or two position columns (a number or a category). The target is a
function of the group's features plus a group effect that is smooth in the position: features alone
do not reveal it, but the rows of the group that were already seen do. Rows of a group mostly follow
each other, so that the causal suffix, and chains of draws, learn to carry what was just observed to
the next position.
"""
import math

import torch

from . import gp, linear
from .inputs import draw_inputs, relevance
from .source import standardise

WAVES = 8


def smooth_effects(s, tasks, groups, place):
    """Level plus smooth curve over the position, [B, G, P] for place [B, G, P] in [0, 1].

    `groups` curves are drawn: `G` different ones, or 1 that all groups share.
    """
    wave = torch.arange(1, WAVES + 1, device=s.device, dtype=torch.float32)
    roughness = s.uniform(0.8, 2.5, tasks, 1, 1)
    amplitude = wave.pow(-roughness) * s.randn(tasks, groups, WAVES)
    phase = s.uniform(0, 2 * math.pi, tasks, groups, WAVES)
    angle = math.pi * wave * place[..., None] + phase[:, :, None]
    curve = (amplitude[:, :, None] * torch.cos(angle)).sum(-1)
    curve = curve / curve.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-6)
    mix = s.uniform(0, 1, tasks, 1, 1)
    level = s.randn(tasks, groups, 1)
    return mix.sqrt() * level + (1 - mix).sqrt() * curve


def position_columns(s, tasks, groups, size, count):
    """Position in [0, 1] [B, G, P], its `count` columns [B, G, P, count], and which of them are
    categorical [B, count].
    """
    grid = (torch.arange(size, device=s.device) / max(size - 1, 1)).expand(tasks, groups, -1)
    random = s.rand(tasks, groups, size).sort(2).values
    place = torch.where(s.coin(0.6, tasks, 1, 1), grid, random)
    step = (place * max(size - 1, 1)).round()
    scrambled = s.order(tasks, size)[:, None].expand(-1, groups, -1).gather(2, step.long()).float()
    category = s.coin(0.35, tasks, 1)
    ordered = torch.where(s.coin(0.5, tasks, 1, 1), place, step)
    first = torch.where(category[..., None], torch.where(s.coin(0.5, tasks, 1, 1), scrambled, step),
                        ordered)
    if count == 1:
        return place, first[..., None], category
    # A second view of the position: its residue, as the hour within the day.
    divisor = s.integers(2, 6, tasks, 1, 1)
    second = torch.where(s.coin(0.5, tasks, 1, 1), step % divisor,
                         torch.div(step, divisor, rounding_mode="floor"))
    return place, torch.stack([first, second], -1), torch.cat([category, s.coin(0.5, tasks, 1)], 1)


def order_rows(s, tasks, groups, size):
    """Row orders [B, G * P]: group by group, shuffled throughout, or shuffled first half and groups
    after.
    """
    rows = groups * size
    index = torch.arange(rows, device=s.device).expand(tasks, -1)
    inside = torch.where(s.coin(0.5, tasks, 1, 1), s.rand(tasks, groups, size),
                         index.reshape(tasks, groups, size) / rows)
    by_group = inside.argsort(2) + torch.arange(groups, device=s.device)[:, None] * size
    by_group = by_group.reshape(tasks, rows)
    mixed = s.order(tasks, rows)
    # Some groups are scattered over the first half; those that remain follow as blocks.
    early = s.rand(tasks, rows) < s.uniform(0.1, 0.6, tasks, 1)
    key = torch.where(early, s.rand(tasks, rows), 2 + torch.arange(rows, device=s.device).float())
    half = by_group.gather(1, key.argsort(1))
    kind = s.rand(tasks, 1)
    return torch.where(kind < 0.5, by_group, torch.where(kind < 0.75, half, mixed))


def sample(s, tasks, rows, features):
    """Features [B, N, F], target [B, N], categorical [B, F] and cells missing for whole groups [B,
    N, F].
    """
    size = s.one(4, 32)
    groups = -(-rows // size)
    count = 1 if features < 3 else s.one(1, 2)
    base = draw_inputs(s, tasks, max(groups, 2), features - count)[:, :groups]
    weight = relevance(s, tasks, features - count)
    signal = torch.where(s.coin(0.5, tasks, 1), linear.function(s, base, weight),
                         gp.function(s, base, weight))
    signal = standardise(signal) if groups > 1 else signal

    place, position, categorical = position_columns(s, tasks, groups, size, count)
    shared = smooth_effects(s, tasks, 1, place)
    shares = s.rand(tasks, 3, 1, 1) + 0.02
    effect = smooth_effects(s, tasks, groups, place)
    y = shares[:, 0] * signal[..., None] + 1.5 * shares[:, 1] * effect + shares[:, 2] * shared
    hidden = s.coin(0.15 * s.coin(0.5, tasks, 1, 1), tasks, groups, features - count)
    jitter = (s.randn(tasks, groups, size, features - count) * 0.05
              * s.coin(0.1, tasks, 1, 1, features - count))
    x = torch.cat([base[:, :, None] + jitter, position], -1)
    missing = torch.cat(
        [hidden[:, :, None].expand(-1, -1, size, -1), torch.zeros_like(position).bool()], -1)

    order = order_rows(s, tasks, groups, size)[:, :rows]
    wide = order[..., None].expand(-1, -1, features)
    x, missing = x.flatten(1, 2).gather(1, wide), missing.flatten(1, 2).gather(1, wide)
    categorical = torch.cat(
        [torch.zeros(tasks, features - count, dtype=torch.bool, device=s.device), categorical], 1)
    return x, y.flatten(1).gather(1, order), categorical, missing
