"""What two regressions of the prefix say about every row (docs/model-format.md, section 5, "Ridge").

Attention has to invert the design's covariance to regress on nearly collinear columns, which a few layers cannot; a
closed form can. One regression is linear, the other a sum of functions of single columns (linear splines). The network
sees the answers as six more numbers of a row and learns when to believe which.

All in float64: the penalty is the best of a grid, and which is best should not hang on rounding.
"""
import torch

LARGEST_DESIGN = 128     # entries, the intercept included
PENALTIES = [4.0 ** k for k in range(-6, 9)]
SMALLEST_NOISE = 1e-8    # variance, in units of the target's
KNOTS = (-0.7, 0.0, 0.7)
NUMBERS = 6              # per row: three of each regression
ALWAYS_KEPT = 8          # slots that are not left out
CHANCE = 8.0             # relevance times rows that a column of noise hardly reaches
DEVIATIONS = 2.5         # nor a coefficient of it, in its standard deviations
ENOUGH_ROWS = 100        # fewer tell noise less well: the thresholds shrink with them


def design_entries(used):
    """Which entries make up the design.

    used [B, F, E] booleans: which of the E possible entries of each slot (value, hinges, bins) the task has. Slots are taken in
    order as long as all entries fit beside the intercept. Returns (entry [B, D] indices into F * E, valid [B, D]).
    """
    room = LARGEST_DESIGN - 1
    fits = used.sum(2).cumsum(1) <= room
    taken = (used & fits[..., None]).flatten(1)
    most = int(taken.sum(1).max())
    entry = (~taken).to(torch.int8).sort(dim=1, stable=True).indices[:, :most]
    return entry, taken.gather(1, entry)


def design(z, bins, filled, categorical, splines):
    """Design matrices U [B, N, D + 1], the last column the intercept, and the slots of the other columns, [B, D] (-1: empty).

    z [B, N, F] scaled values (0 where missing) and bins [B, N, F] in slot order; filled [B, bins, F]: which bins the prefix
    fills (none: the slot is empty); categorical [B, F]. A number contributes its value, with `splines` also max(z - knot, 0) for every knot, and where
    the prefix has missing cells their indicator; a category one indicator for every bin of the prefix.
    """
    tasks, rows, slots = z.shape
    knots = len(KNOTS)
    possible = 1 + knots + filled.shape[1]
    used = torch.zeros(tasks, slots, possible, dtype=torch.bool, device=z.device)
    numeric = ~categorical & filled.any(1)
    used[:, :, 0] = numeric
    used[:, :, 1:1 + knots] = numeric[..., None] if splines else False
    used[:, :, 1 + knots:] = (filled & categorical[:, None]).transpose(1, 2)
    used[:, :, -1] = filled[:, -1]
    entry, valid = design_entries(used)
    slot, kind = entry // possible, entry % possible
    wide = slot[:, None].expand(-1, rows, -1)
    own = z.gather(2, wide)
    knot = z.new_tensor((0.0,) + KNOTS)[kind.clamp_max(knots)][:, None]
    kind = kind[:, None]
    value = torch.where(kind == 0, own, torch.where(kind <= knots, (own - knot).clamp_min(0),
                                                    (bins.gather(2, wide) == kind - 1 - knots).to(z.dtype)))
    value = torch.where(valid[:, None], value, torch.zeros_like(value)).double()
    return torch.cat([value, value.new_ones(tasks, rows, 1)], 2), torch.where(valid, slot, -torch.ones_like(slot))


def choose_penalty(gram, moment, square, n):
    """The penalty of the largest evidence (Bishop 2006, section 3.5, the noise profiled out), and the fit under it.

    gram [B, D, D], moment [B, D], square [B]: U'U, U'y and y'y over n rows. Returns (factor, weights, noise variance, penalty).
    """
    penalty = gram.new_tensor(PENALTIES)[:, None, None, None]
    system = gram + penalty * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    factor = torch.linalg.cholesky(system)                      # [K, B, D, D]
    weights = torch.cholesky_solve(moment[..., None].expand(len(PENALTIES), -1, -1, -1), factor)[..., 0]
    noise = ((square - (weights * moment).sum(-1)) / n).clamp_min(SMALLEST_NOISE)
    determinant = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - gram.shape[-1] * penalty[:, :, 0, 0].log()
    best = (-0.5 * (n * noise.log() + determinant)).argmax(0)
    every = torch.arange(len(best), device=best.device)
    return factor[best, every], weights[best, every], noise[best, every], penalty[best, 0, 0, 0]


def regression(u, y, prefix, clip):
    """[B, N, 3]: prediction (leave-one-out for prefix rows, clipped), log of the noise's standard deviation, half the log of one plus
    the leverage. u [B, N, D], y [B, N] targets as inputs."""
    head, target = u[:, :prefix], y[:, :prefix]
    transposed = head.transpose(1, 2)
    factor, weights, noise, _ = choose_penalty(transposed @ head, (transposed @ target[..., None])[..., 0], target.square().sum(1), prefix)
    mean = (u @ weights[..., None])[..., 0]
    leverage = torch.linalg.solve_triangular(factor, u.transpose(1, 2), upper=False).square().sum(1)
    # Without its own row (Sherman-Morrison): the residual and the leverage grow by 1 / (1 - h).
    rest = (1 - leverage[:, :prefix]).clamp_min(1e-6)
    mean[:, :prefix] = target - (target - mean[:, :prefix]) / rest
    leverage[:, :prefix] /= rest
    if clip:
        excess = (mean.abs() - clip).clamp_min(0)
        mean = mean.clamp(-clip, clip) + mean.sign() * excess.log1p()
    return torch.stack([mean, 0.5 * noise.log()[:, None].expand_as(mean), 0.5 * leverage.log1p()], -1)


@torch.no_grad()
def worth_keeping(z, bins, filled, categorical, y_input, relevance):
    """[B, S]: the slots that are not left out: the first few, and what is relevant beyond chance, alone or in the linear regression.

    z, bins [B, n, S] of the prefix, in slot order; relevance [B, S] in [0, 1]; the rest as for `design`.
    """
    slots, n = z.shape[2], z.shape[1]
    strictness = min(1.0, n / ENOUGH_ROWS)
    keep = relevance.double() * n > strictness * CHANCE
    keep[:, :ALWAYS_KEPT] = True
    u, slot = design(z, bins, filled, categorical, False)
    y = y_input.double()
    transposed = u.transpose(1, 2)
    gram = transposed @ u
    factor, weights, noise, penalty = choose_penalty(gram, (transposed @ y[..., None])[..., 0], y.square().sum(1), n)
    inverse = torch.cholesky_inverse(factor)
    # A^-1 U'U A^-1 = A^-1 - penalty A^-2: the spread of the weights over samples of the noise.
    spread = noise[:, None] * (inverse.diagonal(dim1=-2, dim2=-1) - penalty[:, None] * inverse.square().sum(-1))
    heavy = weights.square()[:, :-1] > strictness * DEVIATIONS ** 2 * spread[:, :-1].clamp_min(0)
    by_weight = torch.zeros(len(z), slots + 1, dtype=torch.bool, device=z.device)
    by_weight.scatter_reduce_(1, slot + 1, heavy & (slot >= 0), "amax")
    return keep | by_weight[:, 1:]


@torch.no_grad()
def opinions(z, bins, filled, categorical, y_input, prefix, clip):
    """[B, N, NUMBERS]: the linear regression, then the one with splines; arguments as for `design`."""
    y = y_input.double()
    both = [regression(design(z, bins, filled, categorical, splines)[0], y, prefix, clip) for splines in (False, True)]
    return torch.cat(both, -1).to(z.dtype)
