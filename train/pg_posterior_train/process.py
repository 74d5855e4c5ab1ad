"""What a Gaussian process of the prefix says about every row (docs/model-format.md, section 5,
"Process").

One weight of every slot and the noise are fitted to at most 256 rows by a fixed number of steps;
the answers come from a sparse process with these rows as inducing points and all rows of the prefix
as data (FITC, Snelson & Ghahramani 2006), whose left-out answers are in closed form. The
correlation is rational quadratic (Rasmussen & Williams 2006, eq. 4.19), so that nothing but sums,
products and quotients decides it.

All in float64, without gradients; batched over tasks.
"""
import math

import torch

from . import additive, process_chain, process_pairs, record
from . import directions as search
from .clip import soft_clip
from .shift import Known

NUMBERS = 4                      # per row
BINS = 17                        # of a categorical slot, the missing one included
STAGES = ((128, 48, 0.8), (256, 12, 0.5))    # rows, steps, first step
DIRECTED = 1024                  # rows that directions are found on, at most
MOMENTS = (0.9, 0.98)            # Adam's (Kingma & Ba 2015)
EPSILON = 1e-8
LEAST, MOST = -16.0, 9.0         # of every log, and
LEAST_OF_FEW, FEW_ROWS = -13.0, 32       # the least with fewer rows, which look exact by chance
SPREADS = (5.0, 20.0)            # of the logs under their prior: at first, and after
NARROW_STEPS = 24                # of the first stage; about minus the log of the number of slots,
LOG_NOISE = -3.0                 # that of the noise about this
STARTS = (-1.0, 0.0, 1.5)        # of all slots, beside the prior's mean
FINE = (1.5, 3.0, 4.5)           # of the finest slot, or
DIRECT = (-1.0, 0.5, 2.0)        # of all directions, while the others are
REST = -3.0                      # beside the prior's mean
FEWEST_GROUPS, MOST_GROUPS = 5, 0.75     # of equal cells, the latter of the rows
GROUPS = 7.5                     # of the slot whose numbers name groups
NOISES = (0.03, 0.3)
FEWEST_VALUES = 16               # a slot with fewer is never the finest
ROUGHNESS_STEPS = 2.0 ** 20     # equal up to rounding is equal
FIRST = 9                        # keys by which next to all rows differ
JITTER = 1e-8
SMALLEST = 1e-6                  # added to sums of squares


def spread_rows(y, z, missing, most):
    """[B, m] rows of at most `most`, evenly spaced along the targets y [B, n]; equal ones are in
    the order of the slots z (0 where missing), then of the cells that are missing [B, n, S].
    """
    def arranged(keys):
        order = torch.arange(y.shape[1], device=y.device).expand_as(y)
        for key in keys[::-1]:
            order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
        return order

    keys = [y, *z.unbind(2), *missing.to(torch.int8).unbind(2)]
    order = arranged(keys[:FIRST])
    tied = torch.stack([key.gather(1, order).diff() == 0 for key in keys[:FIRST]]).all(0)
    if tied.any():
        order = arranged(keys)
    n = y.shape[1]
    m = min(n, most)
    place = torch.div((2 * torch.arange(m, device=y.device) + 1) * n, 2 * m, rounding_mode="floor")
    return order[:, place]


def coordinates(z, bins, used, categorical):
    """Points whose squared distances the correlation sees: (points [B, N, P], slot of each
    coordinate and how much of it two rows share, [B, P]).

    A number is its value and whether it is missing, a category one indicator for every bin. What a
    missing cell stands for is its row's own: rows share half of the indicator that a number is
    missing, and nothing of that of a category. z, bins [B, N, S]; used, categorical [B, S].
    """
    tasks, rows, slots = z.shape
    numeric = (used & ~categorical)[:, None]
    missing = bins == BINS - 1
    parts = [torch.where(numeric, z, torch.zeros_like(z)), (missing & numeric).to(z.dtype)]
    if categorical.any():
        hot = bins[..., None] == torch.arange(BINS, device=z.device)
        parts.append((hot & (used & categorical)[:, None, :, None]).flatten(2).to(z.dtype))
    points = torch.cat(parts, 2)
    slot = torch.arange(slots, device=z.device)
    slot = torch.cat([slot, slot] + [slot.repeat_interleave(BINS)] * (len(parts) > 2)).expand(
        tasks, -1)
    shared = torch.ones(slots, dtype=z.dtype, device=z.device)
    hot = (torch.arange(BINS, device=z.device) < BINS - 1).to(z.dtype).repeat(slots)
    shared = torch.cat([shared, 0.5 * shared] + [hot] * (len(parts) > 2)).expand(tasks, -1)
    filled = (points != 0).any(1)
    most = max(int(filled.sum(1).max()), 1)
    order = (~filled).to(torch.int8).sort(dim=1, stable=True).indices[:, :most]
    return (points.gather(2, order[:, None].expand(-1, rows, -1)),
            (slot.gather(1, order), shared.gather(1, order)))


def correlation(distance):
    """(1 + D / 8)^-4 and its derivative."""
    t = 1 / (1 + distance / 8)
    square = t * t
    value = square * square
    return value, -0.5 * value * t


def distances(a, b, weight, shared):
    """Weighted squared distances [B, n, m] of different rows, points a [B, n, P] and b [B, m, P];
    weight, shared [B, P].
    """
    scaled = a * weight[:, None]
    both = (scaled * a).sum(2)[:, :, None] + (b * b * weight[:, None]).sum(2)[:, None]
    return (both - 2 * (scaled * shared[:, None]) @ b.transpose(1, 2)).clamp_min(0)


def distances_within(a, weight, shared):
    """Those of the rows of a; a row has none from itself."""
    return distances(a, a, weight, shared).masked_fill(
        torch.eye(a.shape[1], dtype=torch.bool, device=a.device), 0)


class Fit:
    """The log posterior of (log weights of the slots, log noise), [B, S + 1], for points [B, n, P]
    with targets y [B, n].
    """

    def __init__(self, points, coordinate, y, used):
        self.points, self.y, self.used, self.spread = points, y, used, SPREADS[1]
        self.slot, self.shared = coordinate
        self.slots = used.sum(1, keepdim=True).clamp_min(1)
        mean = -self.slots.to(y.dtype).log().expand(-1, used.shape[1])
        self.mean = torch.cat([mean, torch.full_like(mean[:, :1], LOG_NOISE)], 1)
        self.counts = torch.cat([used, torch.ones_like(used[:, :1])], 1).to(y.dtype)

    def tasks(self, some):
        """That of some of the tasks."""
        return Fit(self.points[some], (self.slot[some], self.shared[some]), self.y[some],
                   self.used[some])

    def system(self, theta):
        weight = theta.exp().gather(1, self.slot)
        value, slope = correlation(distances_within(self.points, weight, self.shared))
        noise = theta[:, -1].exp()
        matrix = value + noise[:, None, None] * torch.eye(value.shape[1], dtype=value.dtype,
                                                          device=value.device)
        return torch.linalg.cholesky(matrix), slope, noise

    def prior(self, theta):
        return (theta - self.mean) / self.spread * self.counts

    def value(self, theta):
        return self.likelihood(self.system(theta)[0]) - 0.5 * self.prior(theta).square().sum(1)

    def likelihood(self, factor):
        """Its log but for a constant; the targets' variance is at its maximum."""
        n = self.y.shape[1]
        half = torch.linalg.solve_triangular(factor, self.y[..., None], upper=False)
        variance = (half.square().sum((1, 2)) + SMALLEST) / n
        return -0.5 * (n * variance.log() + 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1))

    def pull(self, factor):
        """Derivatives of the likelihood's log by the system, [B, n, n]."""
        inverse = torch.cholesky_inverse(factor)
        answer = (inverse @ self.y[..., None])[..., 0]
        variance = ((answer * self.y).sum(1) + SMALLEST) / self.y.shape[1]
        return 0.5 * ((answer / variance[:, None])[:, :, None] * answer[:, None] - inverse)

    def along(self, pull, theta):
        """Those by the logs of the weights and of what follows them, 0, in the shape of theta; pull
        [B, n, n] by squared distances, with nothing on the diagonal.
        """
        each = (2
                * ((self.points.square() * pull.sum(2)[..., None]).sum(1)
                   - self.shared * (self.points * (pull @ self.points)).sum(1)))
        weight = theta.exp().gather(1, self.slot)
        return torch.zeros_like(theta).scatter_add(1, self.slot, each * weight)

    def gradient(self, theta):
        factor, slope, noise = self.system(theta)
        pull = self.pull(factor)
        gradient = -self.prior(theta) / self.spread
        gradient[:, -1] += noise * pull.diagonal(dim1=1, dim2=2).sum(1)
        return (gradient + self.along(off_diagonal(pull * slope), theta)) * self.counts


def off_diagonal(matrix):
    return matrix.masked_fill(
        torch.eye(matrix.shape[1], dtype=torch.bool, device=matrix.device), 0)


class SharedFit(Fit):
    """The same of a correlation that is a mean over axes in part: behind the log noise the logit of
    this share, [B, S + 2]; axes of the points (additive.Axes).
    """

    def __init__(self, fit, axes):
        super().__init__(fit.points, (fit.slot, fit.shared), fit.y, fit.used)
        self.axes = axes
        self.mean = torch.cat([self.mean, torch.zeros_like(self.mean[:, :1])], 1)
        self.counts = torch.cat([self.counts, torch.ones_like(self.counts[:, :1])], 1)

    def system(self, theta):
        """(factor, product's correlations and their derivatives, those along axes alone, share)."""
        product, slope = correlation(distances_within(
            self.points, theta.exp().gather(1, self.slot), self.shared))
        alone, share = self.axes.alone(self.axes, theta[:, :-2].exp()), theta[:, -1].sigmoid()
        eye = torch.eye(product.shape[1], dtype=product.dtype, device=product.device)
        known = additive.mix(product, alone, share) * (1 - eye)
        noise = theta[:, -2].exp()[:, None, None]
        return torch.linalg.cholesky(known + (1 + noise) * eye), product, slope, alone, share

    def gradient(self, theta):
        factor, product, slope, alone, share = self.system(theta)
        pull = self.pull(factor)
        gradient = -self.prior(theta) / self.spread
        gradient[:, -2] += theta[:, -2].exp() * pull.diagonal(dim1=1, dim2=2).sum(1)
        pull = off_diagonal(pull)
        gradient[:, -1] += share * (1 - share) * (pull * (alone - product)).sum((1, 2))
        gradient[:, :-2] += self.axes.along(pull, theta[:, :-2].exp()) * share[:, None]
        pull = pull * slope * (1 - share)[:, None, None]
        return (gradient + self.along(pull, theta)) * self.counts


def climb(fit, theta, steps, rate, narrow=0):
    """Steps of Adam with a rate that falls as a square root, the first `narrow` of them with the
    narrow prior.

    Steps are of one length however flat the posterior is: with little noise a wide prior would let
    columns that matter sink so low at first that nothing brings them back.
    """
    first, second = torch.zeros_like(theta), torch.zeros_like(theta)
    least = LEAST if fit.y.shape[1] >= FEW_ROWS else LEAST_OF_FEW
    for k in range(1, steps + 1):
        fit.spread = SPREADS[k > narrow]
        gradient = fit.gradient(theta)
        first = MOMENTS[0] * first + (1 - MOMENTS[0]) * gradient
        second = MOMENTS[1] * second + (1 - MOMENTS[1]) * gradient.square()
        step = (first / (1 - MOMENTS[0] ** k)) / ((second / (1 - MOMENTS[1] ** k)).sqrt() + EPSILON)
        theta = (theta + rate * math.sqrt((steps - k + 1) / steps) * step).clamp(least, MOST)
    return theta


def roughness(z, y):
    """How much of the target's variance lies between neighbours along a slot, [B, S]: about 1 for
    noise, 0 for a smooth curve.

    z [B, n, S], y [B, n]. Rows of equal values count as their mean; slots of few values as 1.
    """
    tasks, n, slots = z.shape
    order = z.argsort(dim=1, stable=True)
    ordered = z.gather(1, order)
    group = torch.zeros_like(order)
    group[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).long().cumsum(1)
    count, total = torch.zeros_like(z), torch.zeros_like(z)
    count.scatter_add_(1, group, torch.ones_like(z))
    total.scatter_add_(1, group, y[..., None].expand_as(z).gather(1, order))
    some = count > 0
    mean = total / count.clamp_min(1)
    inverse = some / count.clamp_min(1)
    pair = some[:, 1:]
    between = ((mean[:, 1:] - mean[:, :-1]).square() * pair).sum(1)
    chance = ((inverse[:, 1:] + inverse[:, :-1]) * pair).sum(1) * y.square().mean(1, keepdim=True)
    ratio = torch.where(some.sum(1) < FEWEST_VALUES, torch.ones_like(between),
                        between / chance.clamp_min(1e-30))
    return (ratio * ROUGHNESS_STEPS).round() / ROUGHNESS_STEPS


def begin(fit, z, directed=0):
    """The best of the starts, [B, S + 1], and with directions the best one along these; z [B, n, S]
    values of the fit's rows, those of `directed` directions last.
    """
    fit.spread = SPREADS[0]
    slots = fit.mean[:, :-1]
    directions = torch.arange(slots.shape[1], device=z.device) >= slots.shape[1] - directed
    rough = torch.where(fit.used & ~directions, roughness(z, fit.y),
                        torch.full_like(slots, float("inf")))
    finest = torch.zeros_like(slots).scatter_(1, rough.argmin(1, keepdim=True), 1.0) > 0
    starts = [slots + shift for shift in STARTS]
    starts += [torch.where(finest, torch.full_like(slots, level), slots + REST) for level in FINE]
    starts += [torch.where(directions, torch.full_like(slots, level), slots + REST)
               for level in DIRECT if directed > 0]
    ways = torch.stack(
        [torch.cat([s, torch.full_like(s[:, :1], math.log(noise))], 1) for s in starts
         for noise in NOISES])
    values = torch.stack([fit.value(way) for way in ways])
    tasks = torch.arange(len(slots), device=z.device)
    first = (len(STARTS) + len(FINE)) * len(NOISES)
    out = [ways[values[:first].argmax(0), tasks]]
    if directed > 0:
        out.append(ways[first + values[first:].argmax(0), tasks])
    return out, values[:first].amax(0)


def group_share(z, y):
    """The share of the targets' variance that lies between rows of different cells, adjusted for
    how many these are, [B, S]; -1 where cells make no groups. z [B, n, S], y [B, n].
    """
    tasks, n, slots = z.shape
    order = z.argsort(dim=1, stable=True)
    ordered = z.gather(1, order)
    group = torch.zeros_like(order)
    group[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).long().cumsum(1)
    own = y[..., None].expand_as(z).gather(1, order)
    count, total = torch.zeros_like(z), torch.zeros_like(z)
    count.scatter_add_(1, group, torch.ones_like(z))
    total.scatter_add_(1, group, own)
    groups = (count > 0).sum(1)
    within = (own - (total / count.clamp_min(1)).gather(1, group)).square().sum(1)
    square = (y - y.mean(1, keepdim=True)).square().sum(1, keepdim=True)
    share = 1 - within / (n - groups).clamp_min(1) / (square / (n - 1)).clamp_min(1e-300)
    told = (groups >= FEWEST_GROUPS) & (groups <= MOST_GROUPS * n) & (square > 0)
    share = (share * ROUGHNESS_STEPS).round() / ROUGHNESS_STEPS
    return torch.where(told, share, torch.full_like(share, -1.0))


def begin_groups(fit, z, numeric, least):
    """The start for numbers that name groups, [B, S + 1], and which tasks it is likelier for than
    their best start, of log posterior least [B]; z [B, n, S], numeric [B, S] slots of numbers.
    """
    fit.spread = SPREADS[0]
    slots = fit.mean[:, :-1]
    share = torch.full_like(slots, -1.0)
    share[:, :z.shape[2]] = torch.where(numeric, group_share(z, fit.y),
                                        torch.full_like(numeric, -1.0, dtype=z.dtype))
    most, axis = share.max(1, keepdim=True)
    own = torch.zeros_like(slots).scatter_(1, axis, 1.0) > 0
    ways = torch.stack([
        torch.cat([torch.where(own, torch.full_like(slots, GROUPS), slots + rest),
                   torch.full_like(slots[:, :1], math.log(noise))], 1)
        for rest in (0.0, REST) for noise in NOISES])
    values, found = torch.stack([fit.value(way) for way in ways]).max(0)
    return (ways[found, torch.arange(len(slots), device=z.device)],
            (most[:, 0] > 0) & (values > least))


def climb_again(fit, theta, starts, some, steps, rate):
    """The ends theta [B, S + 1], or those of the steps from starts [B, S + 1] where they are
    likelier, of some tasks [B].
    """
    if not some.any():
        return theta
    part = fit.tasks(some)
    other = climb(part, starts[some], steps, rate, NARROW_STEPS)
    better = part.value(other) > part.value(theta[some])
    theta = theta.clone()
    theta[some] = torch.where(better[:, None], other, theta[some])
    return theta


def share_out(fit, theta, axes):
    """The fit's end, or one with a share of means over axes where such a share is likelier at once,
    there or from a start; [B, S + 2], without a share its logit is minus infinity. theta
    [B, S + 1].
    """
    none = torch.full_like(theta[:, :1], -math.inf)
    ways = [torch.cat([theta, torch.full_like(none, logit)], 1) for logit in additive.LOGITS]
    ways.append(torch.cat([fit.mean[:, :-1] + additive.WEIGHT,
                           torch.full_like(none, math.log(NOISES[0])),
                           torch.full_like(none, additive.LOGITS[1])], 1))
    shared = SharedFit(fit, axes)
    values, found = torch.stack([shared.value(way) for way in ways]).max(0)
    some = (values > fit.value(theta) + additive.GAIN) & (fit.slots[:, 0] > 1)
    out = torch.cat([theta, none], 1)
    if some.any():
        start = torch.stack(ways)[found, torch.arange(len(theta), device=theta.device)][some]
        shared = SharedFit(fit.tasks(some), axes.tasks(some))
        out[some] = climb(shared, start, additive.STEPS, STAGES[0][2])
    return out


def climb_on(fit, theta, axes, steps, rate):
    """Steps from theta [B, S + 2], with the shares that there are."""
    some = theta[:, -1] > -math.inf
    out = theta.clone()
    if not some.all():
        out[~some, :-1] = climb(fit.tasks(~some), theta[~some, :-1], steps, rate)
    if some.any():
        shared = SharedFit(fit.tasks(some), axes.tasks(some))
        out[some] = climb(shared, theta[some], steps, rate)
    return out


def sparse(points, coordinate, theta, inducing, y, prefix, axes=None, chain=None, kept=None):
    """(mean, variance, noise variance [B]) of all rows, [B, N], those of the prefix without their
    own target, and of these what that leaves of 1 to the others, [B, prefix].

    points [B, N, P], inducing [B, m] rows; y [B, N], of which the first `prefix` are the data. With
    axes (additive.Axes of all rows) theta has a share's logit behind the rest. The queries of a
    chain (process_chain.Chain) are given the rows of the chain before them. `kept`, a list, gets a
    shift.Known of each task.
    """
    theta, logit = (theta, None) if axes is None else (theta[:, :-1], theta[:, -1])
    slot, shared = coordinate
    weight, noise = theta.exp().gather(1, slot), theta[:, -1:].exp()
    eye = torch.eye(inducing.shape[1], dtype=y.dtype, device=y.device)

    def correlations(a, b):
        """Of rows a [B, n] and b [B, m], as of different ones."""
        at, to = (points.gather(1, rows[..., None].expand(-1, -1, points.shape[2]))
                  for rows in (a, b))
        product = correlation(distances(at, to, weight, shared))[0]
        if logit is None or not (logit > -math.inf).any():
            return product
        alone = axes.rows(a).alone(axes.rows(b), theta[:, :-1].exp())
        return additive.mix(product, alone, logit.sigmoid())

    everything = torch.arange(points.shape[1], device=y.device).expand(len(points), -1)
    own = correlations(inducing, inducing) * (1 - eye) + eye
    known = correlations(inducing, everything)
    factor = torch.linalg.cholesky(own + JITTER * eye)
    targets, y = y, y[:, :prefix]
    phi = torch.linalg.solve_triangular(factor, known, upper=False)    # [B, m, N]
    own = (1 - phi.square().sum(1)).clamp_min(0) + noise               # [B, N]
    head = phi[:, :, :prefix] / own[:, None, :prefix]
    outer = torch.linalg.cholesky(eye + head @ phi[:, :, :prefix].transpose(1, 2))
    moment = head @ y[..., None]
    weights = torch.cholesky_solve(moment, outer)
    square = (y.square() / own[:, :prefix]).sum(1) - (weights * moment).sum((1, 2))
    variance = (square.clamp_min(0) + SMALLEST)[:, None] / prefix
    mean = (weights * phi).sum(1)
    if kept is not None:
        kept += [Known(*of, noise=float(by)) for *of, by in zip(phi, own, weights, outer, variance,
                                                                y, noise)]
    unknown = torch.linalg.solve_triangular(outer, phi, upper=False)
    share = unknown.square().sum(1)
    spread = variance * (own + share)
    if chain is not None:
        def covariances(a, b):
            both = [rows.to(y.device).expand(len(points), -1) for rows in (a, b)]
            return (correlations(*both) - phi[:, :, a].transpose(1, 2) @ phi[:, :, b]
                    + unknown[:, :, a].transpose(1, 2) @ unknown[:, :, b])

        mean, spread = process_chain.condition(chain, targets, mean, spread, noise, variance,
                                               covariances)
    rest = (1 - share[:, :prefix] / own[:, :prefix]).clamp_min(1e-9)
    mean[:, :prefix] = y - (y - mean[:, :prefix]) / rest
    spread[:, :prefix] = variance * own[:, :prefix] / rest
    return mean, spread, variance * noise, rest


def along(z, missing, used, categorical, y, most):
    """(values [B, N, most] of all rows along the directions, which of these were found [B, most]);
    z [B, N, S] (0 where missing), y [B, prefix] targets, missing [B, prefix, S] cells.
    """
    rows = spread_rows(y, z[:, :y.shape[1]], missing, DIRECTED)
    values = z.new_zeros(*z.shape[:2], most)
    found = torch.zeros(len(z), most, dtype=torch.bool, device=z.device)
    for task, chosen in enumerate(rows):
        numeric = (used & ~categorical)[task]
        numbers = z[task][:, numeric]
        weights = search.find(numbers[chosen].cpu().numpy(), y[task][chosen].cpu().numpy(), most)
        values[task, :, :len(weights)] = numbers @ torch.from_numpy(weights).to(z).T
        found[task, :len(weights)] = True
    return values, found


@torch.no_grad()
def opinions(z, bins, used, categorical, y_input, prefix, clip, directions=0, is_additive=False,
             chain=None, kept=None, records=None, ends=None):
    """[B, N, NUMBERS]: mean (clipped), log of its standard deviation, log of the noise's, mean log
    density of the prefix's rows, left out.

    z (0 where missing), bins [B, N, S] in slot order; used, categorical [B, S]; y_input [B, N]
    scaled and clipped targets; how many directions the process may have; whether its correlation
    may be a mean over axes in part; the chain (process_chain.Chain) that the queries are of.
    `kept`, a list, gets a shift.Known of each task; `records`, a list, what the process has of its
    record, record.squares() and record.learnt(); `ends`, a list, the logs of the weights of the
    slots, directions left out, and of the noise, [B, S + 1].
    """
    wide, head = z.double(), y_input[:, :prefix].double()
    missing = bins[:, :prefix] == BINS - 1
    slots = wide
    if directions > 0:
        # A direction is a slot more, of numbers that are never missing.
        values, found = along(wide, missing, used, categorical, head, directions)
        wide = torch.cat([wide, values], 2)
        bins = torch.cat([bins, torch.zeros_like(values, dtype=bins.dtype)], 2)
        used = torch.cat([used, found], 1)
        categorical = torch.cat([categorical, torch.zeros_like(found)], 1)
    points, coordinate = coordinates(wide, bins, used, categorical)
    every_axis = additive.Axes.of(wide, bins, used, categorical, BINS - 1)
    axes = every_axis if is_additive else None
    theta = None
    for most, steps, rate in STAGES:
        if theta is not None and prefix <= len(rows[0]):
            # The same rows again: further steps would change little.
            break
        rows = spread_rows(head, slots[:, :prefix], missing, most)
        chosen = points.gather(1, rows[..., None].expand(-1, -1, points.shape[2]))
        fit = Fit(chosen, coordinate, head.gather(1, rows), used)
        if theta is None:
            chosen_z = wide.gather(1, rows[..., None].expand(-1, -1, wide.shape[2]))
            starts, likeliest = begin(fit, chosen_z, directions)
            groups, some = begin_groups(fit, chosen_z[..., :slots.shape[2]],
                                        (used & ~categorical)[:, :slots.shape[2]], likeliest)
            theta, *along_directions = [climb(fit, start, steps, rate, NARROW_STEPS)
                                        for start in starts]
            for other in along_directions:
                # A task without directions has begun here like any other.
                better = (fit.value(other) > fit.value(theta)) & found.any(1)
                theta = torch.where(better[:, None], other, theta)
            theta = climb_again(fit, theta, groups, some, steps, rate)
            pairs, some = process_pairs.begin(fit, every_axis.rows(rows), theta, REST,
                                              math.log(NOISES[0]))
            theta = climb_again(fit, theta, pairs, some, steps, rate)
            if is_additive:
                theta = share_out(fit, theta, axes.rows(rows))
        elif is_additive:
            theta = climb_on(fit, theta, axes.rows(rows), steps, rate)
        else:
            theta = climb(fit, theta, steps, rate)
    if ends is not None:
        ends.append(torch.cat([theta[:, :slots.shape[2]], theta[:, used.shape[1], None]], 1))
    rows = spread_rows(head, slots[:, :prefix], missing, STAGES[-1][0])
    mean, spread, noise, rest = sparse(points, coordinate, theta, rows, y_input.double(), prefix,
                                       axes, chain, kept)
    away = (mean[:, :prefix] - head).square() / spread[:, :prefix]
    density = -0.5 * ((2 * math.pi * spread[:, :prefix]).log() + away)
    if records is not None:
        records += [record.squares(away, rest), record.learnt(theta[:, :used.shape[1]], used)]
    quality = soft_clip(density.mean(1, keepdim=True), clip).expand_as(mean)
    said = [soft_clip(mean, clip), 0.5 * spread.log(), 0.5 * noise.log().expand_as(mean), quality]
    return torch.stack(said, -1).to(z.dtype)
