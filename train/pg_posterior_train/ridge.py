"""What two regressions of the prefix say about every row (docs/model-format.md, section 5,
"Ridge").

Attention has to invert the design's covariance to regress on nearly collinear columns, which a few
layers cannot; a closed form can. One regression is linear, the other a sum of functions of single
columns (linear splines). The network sees the answers as six more numbers of a row and learns when
to believe which. Where targets are classes, the regressions are of the classes' indicators, and the
network sees the probabilities that their answers are worth on rows left out.

All in float64: the penalty is the best of a grid, and which is best should not hang on rounding.
"""

import torch

from .clip import soft_clip

LARGEST_DESIGN = 128     # entries, the intercept included
PENALTIES = [4.0 ** k for k in range(-6, 9)]
SMALLEST_NOISE = 1e-8    # variance, in units of the target's
KNOTS = (-0.7, 0.0, 0.7)
NUMBERS = 6              # per row: three of each regression
# by which regressions of indicators may be multiplied in a softmax
SHARPNESS = [2.0 ** (k / 2) for k in range(-4, 11)]
ALWAYS_KEPT = 8          # slots that are not left out
CHANCE = 8.0             # relevance times rows that a column of noise hardly reaches
DEVIATIONS = 2.5         # nor a coefficient of it, in its standard deviations
PAIR_ROWS = 1024         # that pairs of slots are looked at in
ENOUGH_ROWS = 100        # fewer tell noise less well: the thresholds shrink with them


def design_entries(used):
    """Which entries make up the design.

    used [B, F, E] booleans: which of the E possible entries of each slot (value, hinges, bins) the
    task has. Slots are taken in order as long as all entries fit beside the intercept. Returns
    (entry [B, D] indices into F * E, valid [B, D]).
    """
    room = LARGEST_DESIGN - 1
    fits = used.sum(2).cumsum(1) <= room
    taken = (used & fits[..., None]).flatten(1)
    most = int(taken.sum(1).max())
    entry = (~taken).to(torch.int8).sort(dim=1, stable=True).indices[:, :most]
    return entry, taken.gather(1, entry)


def design(z, bins, filled, categorical, splines):
    """Design matrices U [B, N, D + 1], the last column the intercept, and the slots of the other
    columns, [B, D] (-1: empty).

    z [B, N, F] scaled values (0 where missing) and bins [B, N, F] in slot order; filled [B, bins,
    F]: which bins the prefix fills (none: the slot is empty); categorical [B, F]. A number
    contributes its value, with `splines` also max(z - knot, 0) for every knot, and where the prefix
    has missing cells their indicator; a category one indicator for every bin of the prefix.
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
                                                    (bins.gather(2, wide) == kind - 1 - knots)
                                                    .to(z.dtype)))
    value = torch.where(valid[:, None], value, torch.zeros_like(value)).double()
    return torch.cat([value, value.new_ones(tasks, rows, 1)],
                     2), torch.where(valid, slot, -torch.ones_like(slot))


def choose_penalty(gram, moment, square, n, penalties=PENALTIES):
    """The penalty of the largest evidence (Bishop 2006, section 3.5, the noise profiled out), and
    the fit under it.

    gram [B, D, D], moment [B, D, T], square [B]: U'U, U'y and the sum of the squares of T targets y
    over n rows; all targets share penalty and noise. Returns (factor [B, D, D], weights [B, D, T],
    noise variance [B], penalty [B]).
    """
    penalty = gram.new_tensor(penalties)[:, None, None, None]
    system = gram + penalty * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    # Where rounding leaves a penalty without a factor it does not count.
    factor, bad = torch.linalg.cholesky_ex(system)              # [K, B, D, D]
    weights = torch.cholesky_solve(moment.expand(len(penalties), -1, -1, -1), factor)
    noise = ((square - (weights * moment).sum((-1, -2))) / n).clamp_min(SMALLEST_NOISE)
    determinant = (2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
                   - gram.shape[-1] * penalty[:, :, 0, 0].log())
    evidence = -0.5 * (n * noise.log() + determinant)
    best = torch.where(bad > 0, torch.full_like(evidence, -torch.inf), evidence).argmax(0)
    every = torch.arange(len(best), device=best.device)
    return factor[best, every], weights[best, every], noise[best, every], penalty[best, 0, 0, 0]


def fit(u, y, prefix):
    """Regression of y [B, n, T] on u [B, N, D] over the prefix.

    Returns (answers [B, N, T], leverage [B, N], noise variance [B], weights [B, D, T]); for prefix
    rows answers and leverage are those of the fit without the row.
    """
    head, target = u[:, :prefix], y[:, :prefix]
    transposed = head.transpose(1, 2)
    factor, weights, noise, _ = choose_penalty(transposed @ head, transposed @ target,
                                               target.square().sum((1, 2)), prefix)
    mean = u @ weights
    leverage = torch.linalg.solve_triangular(factor, u.transpose(1, 2), upper=False).square().sum(1)
    # Without its own row (Sherman-Morrison): the residual and the leverage grow by 1 / (1 - h).
    rest = (1 - leverage[:, :prefix]).clamp_min(1e-6)
    mean[:, :prefix] = target - (target - mean[:, :prefix]) / rest[..., None]
    leverage[:, :prefix] /= rest
    return mean, leverage, noise, weights


def absent_variance(u, slot, weights, missing, prefix):
    """[B, N]: the variance of what a row's missing cells would have said: that of their slots'
    answers over the prefix rows that have them.

    u [B, N, D + 1], slot [B, D] of its entries (-1: empty), weights [B, D + 1], missing [B, N, S].
    A missing cell's indicator is left out: only rows without it count.
    """
    tasks, rows, slots = missing.shape
    said = u[:, :prefix, :-1] * weights[:, None, :-1]
    place = (slot + 1)[:, None].expand_as(said)
    each = said.new_zeros(tasks, prefix, slots + 1).scatter_add_(2, place, said)[..., 1:]
    present = ~missing[:, :prefix]
    count = present.sum(1, keepdim=True).clamp_min(1)
    mean = (each * present).sum(1, keepdim=True) / count
    variance = ((each - mean).square() * present).sum(1) / count[:, 0]
    return (missing.to(u.dtype) @ variance[..., None])[..., 0]


def regression(u, y, prefix, clip, slot=None, missing=None):
    """[B, N, 3]: prediction (leave-one-out for prefix rows, clipped), log of the noise's standard
    deviation, half the log of one plus the leverage. u [B, N, D], y [B, N] targets as inputs; with
    missing [B, N, S], and slot as of `design`, the leverage has what missing cells would have said.
    """
    mean, leverage, noise, weights = fit(u, y[..., None], prefix)
    if missing is not None:
        leverage = (leverage + absent_variance(u, slot, weights[..., 0], missing, prefix)
                    / noise[:, None])
    mean = soft_clip(mean[..., 0], clip)
    return torch.stack([mean, 0.5 * noise.log()[:, None].expand_as(mean), 0.5 * leverage.log1p()],
                       -1)


def sharpen(mean, y, known, log_share):
    """Log probabilities [B, N, C] from regressions of indicators: softmax of `a * mean + b *
    log_share`, (a, b) the best for the prefix.

    mean [B, N, C], those of the prefix without their own row; y [B, n] classes of the prefix; known
    [B, C]: the task has the class; log_share [B, C]. Returns also the mean log probability of the
    prefix, [B].
    """
    rows = y.shape[1]
    ways = [(a, b) for a in SHARPNESS for b in (0.0, 1.0)]
    sharpness, lean = mean.new_tensor(ways)[:, :, None, None, None].unbind(1)

    def log_p(mean, sharpness, lean):
        return (sharpness * mean + lean * log_share[:, None]).masked_fill(
            ~known[:, None], float("-inf")).log_softmax(-1)

    own = y[..., None].expand(len(ways), -1, -1, 1)
    quality = log_p(mean[:, :rows], sharpness, lean).gather(3, own)[..., 0].mean(2)
    quality, best = quality.max(0)
    return log_p(mean, sharpness[best, 0], lean[best, 0]), quality


def classification(u, y, classes, most, prefix, clip):
    """[B, N, most + 2]: for every class the log of how much more probable it is than by chance
    (clipped, 0 for classes the task lacks), the same of the prefix rows' own classes in the mean,
    half the log of one plus the leverage. u [B, N, D], y [B, N] indices of classes, classes [B] how
    many there are."""
    head = y[:, :prefix]
    onehot = torch.nn.functional.one_hot(head, most).double()
    share = onehot.mean(1)
    known = torch.arange(most, device=y.device) < classes[:, None]
    mean, leverage, _, _ = fit(u, onehot - share[:, None], prefix)
    smooth = (onehot.sum(1) + 0.5) / (prefix + 0.5 * classes[:, None])
    log_p, quality = sharpen(mean, head, known, smooth.log())
    chance = classes.double().log()[:, None]
    said = torch.where(known[:, None], soft_clip(log_p + chance[..., None], clip),
                       torch.zeros_like(log_p))
    return torch.cat([said, (quality[:, None] + chance).expand_as(leverage)[..., None],
                      0.5 * leverage.log1p()[..., None]], -1)


def opinions_width(classes=0):
    """How many numbers of a row the two regressions give, with room for so many classes (0: a
    regression model).
    """
    return 2 * (classes + 2) if classes else NUMBERS


@torch.no_grad()
def worth_keeping(z, bins, filled, categorical, y_input, relevance, pairs=False,
                  used=None):
    """[B, S]: the slots that are not left out: the first few, and what is relevant beyond chance,
    alone, in the linear regression or, with pairs, in a product with another slot.

    z, bins [B, n, S] of the prefix, in slot order; relevance [B, S] in [0, 1]; used [B]: how
    many slots there are, by default S; the rest as for `design`.
    """
    slots, n = z.shape[2], z.shape[1]
    strictness = min(1.0, n / ENOUGH_ROWS)
    keep = relevance.double() * n > strictness * CHANCE
    keep[:, :ALWAYS_KEPT] = True
    u, slot = design(z, bins, filled, categorical, False)
    y = y_input.double()
    transposed = u.transpose(1, 2)
    gram = transposed @ u
    factor, weights, noise, penalty = choose_penalty(gram, transposed @ y[..., None],
                                                     y.square().sum(1), n)
    inverse = torch.cholesky_inverse(factor)
    # A^-1 U'U A^-1 = A^-1 - penalty A^-2: the spread of the weights over samples of the noise.
    spread = (noise[:, None]
              * (inverse.diagonal(dim1=-2, dim2=-1) - penalty[:, None] * inverse.square().sum(-1)))
    heavy = (weights[..., 0].square()[:, :-1]
             > strictness * DEVIATIONS ** 2 * spread[:, :-1].clamp_min(0))
    by_weight = torch.zeros(len(z), slots + 1, dtype=torch.bool, device=z.device)
    by_weight.scatter_reduce_(1, slot + 1, heavy & (slot >= 0), "amax")
    keep |= by_weight[:, 1:]
    if pairs:
        residual = y - (u @ weights)[..., 0]
        known = bins != filled.shape[1] - 1
        keep |= say_something_together(z.double(), known & ~categorical[:, None], residual, used)
        keep |= labels_say_something(z.double(), bins, known, categorical, residual, used)
    return keep


def say_something_together(z, there, residual, used=None):
    """[B, S]: the slots that, in a product with another or by their distance from zero, say
    something of the residuals [B, n].

    z [B, n, S] numbers, there [B, n, S]: which count; used [B]: how many slots there are, by
    default S.
    """
    n, slots = z.shape[1:]
    used = torch.full_like(z[:, 0, 0], slots) if used is None else used.double()
    rows = looked_at(n, z.device)
    z, there, residual = z[:, rows], there[:, rows], residual[:, rows, None]
    count = there.sum(1, keepdim=True).clamp_min(1)
    forms = [torch.where(there, form - (form * there).sum(1, keepdim=True) / count, 0)
             for form in (z, z.abs())]
    limit = 2 * (used * (used - 1)).clamp_min(1).log()[:, None, None]
    bent = residual * forms[1]
    said = bent.sum(1).square() > limit[:, 0] * bent.square().sum(1)
    for own in forms:
        for other in forms:
            first = (residual * own).transpose(1, 2)
            beyond = (first @ other).square() > limit * (first.square() @ other.square())
            beyond &= ~torch.eye(slots, dtype=torch.bool, device=z.device)
            said |= beyond.any(1) | beyond.any(2)
    return said


def looked_at(n, device):
    """The rows of n that pairs are looked for in."""
    m = min(n, PAIR_ROWS)
    return (2 * torch.arange(m, device=device) + 1) * n // (2 * m)


def labels_say_something(z, bins, known, categorical, residual, used=None):
    """[B, S]: the categorical slots that say something of the residuals [B, n] with another slot,
    and those others: sums of products, one for each label, that differ by more than chance (Laurent
    & Massart 2000, lemma 1). known [B, n, S]: cells that are there; categorical [B, S].
    """
    n, slots = z.shape[1:]
    used = torch.full_like(z[:, 0, 0], slots) if used is None else used.double()
    limit = 2 * (used * (used - 1)).clamp_min(1).log()[:, None]
    rows = looked_at(n, z.device)
    z, bins, known, residual = z[:, rows], bins[:, rows].long(), known[:, rows], residual[:, rows]
    numeric = known & ~categorical[:, None]
    count = numeric.sum(1, keepdim=True).clamp_min(1)
    forms = [torch.where(numeric, form - (form * numeric).sum(1, keepdim=True) / count, 0)
             * residual[..., None] for form in (z, z.abs())]
    room = int(bins.max()) + 1
    said = torch.zeros_like(categorical)

    def say(product, group, groups):
        shape = (len(product), groups, product.shape[2])
        where = group[..., None].expand_as(product)
        total = product.new_zeros(shape).scatter_add_(1, where, product)
        square = product.new_zeros(shape).scatter_add_(1, where, product.square())
        free = ((square > 0).sum(1) - 1).clamp_min(0)
        apart = (total.square() / square.clamp_min(1e-300)).sum(1)
        common = total.sum(1).square() / square.sum(1).clamp_min(1e-300)
        return (free > 0) & (apart - common > free + (2 * free * limit).sqrt() + limit)

    for h in categorical.any(0).nonzero()[:, 0].tolist():
        own = categorical[:, h, None]
        here = known[:, :, h, None]
        with_numbers = own & ~categorical
        for form in forms:
            beyond = say(form * here, bins[:, :, h], room) & with_numbers
            said |= beyond
            said[:, h] |= beyond.any(1)
        for g in (categorical.any(0).nonzero()[:, 0]).tolist():
            if g > h:
                both = (here[..., 0] & known[:, :, g]).double() * residual
                beyond = say(both[..., None], bins[:, :, h] * room + bins[:, :, g], room * room)
                beyond = beyond[:, 0] & own[:, 0] & categorical[:, g]
                said[:, h] |= beyond
                said[:, g] |= beyond
    return said


@torch.no_grad()
def opinions(z, bins, filled, categorical, y_input, prefix, clip, missing=None):
    """[B, N, NUMBERS]: the linear regression, then the one with splines; arguments as for `design`,
    missing [B, N, S] as for `regression`.
    """
    y, said = y_input.double(), []
    for splines in (False, True):
        u, slot = design(z, bins, filled, categorical, splines)
        said.append(regression(u, y, prefix, clip, slot, missing))
    return torch.cat(said, -1).to(z.dtype)
