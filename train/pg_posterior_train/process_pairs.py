"""Pairs of axes along which alike rows have alike targets (docs/model-format.md, section 5,
"Process"): the product of one wave along each is noise along either alone and among many others,
so that no slope of the log posterior leads a fit there. Kernels are compared by their alignment
(Cristianini et al. 2001).

All in float64, without gradients; batched over tasks.
"""
import math

import torch

PAIRS = 2                        # that are tried, of targets and of what is left of them each
ROWS = 64                        # looked at, of whatever number
WEIGHT = 8.0                     # of each axis
FEWEST_ROWS = 16                 # for which pairs are looked for
STARTS = (0.5, -1.0, 2.5)        # of both axes: of the pairs the first, of the likeliest the others
GAIN = 1.0                       # of the log posterior over the end without a pair
SCORE_STEPS = 2.0 ** 20          # equal up to rounding is equal
LEAST_SPREAD = 1e-6              # of correlations, as a share of their square


def scores(axes, y):
    """How alike targets y [B, n] are of rows that are alike along both axes of a pair, [B, A, A],
    minus infinity but for a first axis that is used before a second one; axes additive.Axes.
    """
    tasks, n = y.shape
    m = min(n, ROWS)
    rows = torch.div((2 * torch.arange(m, device=y.device) + 1) * n, 2 * m, rounding_mode="floor")
    axes = axes.rows(rows.expand(tasks, -1))
    before, after = torch.triu_indices(m, m, 1, device=y.device)
    y = y[:, rows] - y[:, rows].mean(1, keepdim=True)
    product = y[:, before] * y[:, after]
    square = product.square().sum(1, keepdim=True)
    count = axes.used.shape[1]
    alike = torch.stack([(1 + WEIGHT * axes.apart(axes, axis)[:, before, after] / 8) ** -4
                         for axis in range(count)], 1)                        # [B, A, pairs]
    out = y.new_full((tasks, count, count), -math.inf)
    for axis in range(count - 1):
        both = alike[:, axis, None] * alike[:, axis + 1:]
        about = both - both.mean(2, keepdim=True)
        spread = about.square().sum(2)
        told = (spread > LEAST_SPREAD * both.square().sum(2)) & (square > 0)
        score = (about @ product[:, :, None])[..., 0] / (spread * square).sqrt()
        score = torch.where(told, (SCORE_STEPS * score).round(), torch.zeros_like(score))
        some = axes.used[:, axis, None] & axes.used[:, axis + 1:]
        out[:, axis, axis + 1:] = score.masked_fill(~some, -math.inf)
    return out


def best(axes, y):
    """(first axes, second axes, which there are) of the pairs of the highest scores, [B, PAIRS]."""
    score = scores(axes, y).flatten(1)
    score, pair = (part[:, :PAIRS] for part in score.sort(dim=1, descending=True, stable=True))
    count = axes.used.shape[1]
    return torch.div(pair, count, rounding_mode="floor"), pair % count, score > -math.inf


def begin(fit, axes, end, rest, noise):
    """The start along a pair of axes, [B, S + 1], and which tasks it is likelier for than the end
    [B, S + 1] of steps without a pair; axes of the fit's rows. Pairs are those that targets tell
    of, other axes `rest` beside the prior's mean, and those that what the end leaves of the targets
    tells of, others as at the end. The noise's log is `noise`.
    """
    tasks, count = axes.used.shape
    some = torch.zeros(tasks, dtype=torch.bool, device=end.device)
    if fit.y.shape[1] < FEWEST_ROWS or count < 2:
        return end, some
    left = torch.cholesky_solve(fit.y[..., None], fit.system(end)[0])[..., 0]
    place = torch.arange(count, device=end.device)
    both, others, there = [], [], []
    for y, other in ((fit.y, fit.mean[:, :-1] + rest), (left, end[:, :-1])):
        first, second, told = best(axes, y)
        for k in range(first.shape[1]):
            both.append((place == first[:, k, None]) | (place == second[:, k, None]))
            others.append(other)
            there.append(told[:, k])
    both, others = torch.stack(both), torch.stack(others)

    def start(k, level):
        """Of way number k [B] of each task."""
        task = torch.arange(tasks, device=end.device)
        theta = torch.where(both[k, task], torch.full_like(end[:, :-1], level), others[k, task])
        return torch.cat([theta, torch.full_like(end[:, :1], noise)], 1)

    likeliest = torch.stack([
        fit.value(start(some + k, STARTS[0])).masked_fill(~there[k], -math.inf)
        for k in range(len(both))]).argmax(0)
    ways = torch.stack([start(likeliest, level) for level in STARTS])
    value, found = torch.stack([fit.value(way) for way in ways]).max(0)
    return (ways[found, torch.arange(tasks, device=end.device)],
            (value > fit.value(end) + GAIN) & there[0])
