"""Statistics frozen at the prefix, and the network inputs they give (docs/model-format.md, sections
3 and 5).

Everything is batched over tasks: x [B, N, F], y [B, N]; the first `prefix` rows define every
statistic.
"""
import math
from dataclasses import dataclass, replace

import torch

from . import line, nearest, process, record, ridge
from .clip import soft_clip, unclip
from .donors import Slots
from .far import near_targets
from .labels import add_labels, settled
from .orient import target_signs, turn_columns
from .power import power_features
from .split import OWN, REST, lots, split_labels

NUMERIC_BINS, CATEGORY_BINS, MISSING_BIN = 8, 16, 16
ALL_SLOTS_AHEAD, ALL_TOGETHER = 0.1, 12.0     # nats a row, and of all rows
RELEVANCE_STEPS = 2.0 ** 20    # relevance is compared in steps: equal up to rounding is equal


def ask(model, inputs, questions):
    """Head outputs for what is asked (questions.Questions) of these network inputs."""
    rows, first = questions.rows, questions.first
    return model(inputs.x[:, :rows], inputs.y_input[:, :rows], inputs.x[:, first:],
                 questions.prefix, questions.visible)


@dataclass
class Inputs:
    """What the network sees.

    x [B, N, F], or of the row tokeniser its cells, flat, [B, N, F * cell (+ opinions)]; y [B, N]
    scaled, y_input [B, N] scaled and clipped; scale [B]: width of the target's unit, for densities
    in raw units, negative where the targets are turned.
    """

    x: torch.Tensor
    y: torch.Tensor
    y_input: torch.Tensor
    center: torch.Tensor
    scale: torch.Tensor


def target_scale(y, prefix):
    """Centre and scale of the targets from the prefix, [B] each."""
    head = y[:, :prefix]
    mean = head.mean(1)
    sd = head.std(1, unbiased=False)
    # Single precision knows a mean no better, and has no smaller squares; else these are the limits
    # of the format.
    scale = torch.maximum(sd, (1e-6 if y.dtype == torch.float32 else 1e-11) * mean.abs())
    scale = torch.where((head == head[:, :1]).all(1), mean.abs(), scale)
    least = 1e-30 if y.dtype == torch.float32 else 1e-100
    return mean, torch.where(scale < least, torch.ones_like(scale), scale)


def scale_targets(y, prefix, config, x=None):
    """(y scaled, y as an input, centre, scale); y [B, N], or [B, N, D] of several targets, of rows
    with cells x [B, N, F].
    """
    kind = config["target"]["scaling"]
    near = near_targets(y, prefix, config, x)
    if kind == "prefix":
        center, scale = target_scale(near, prefix)
    else:
        fixed = kind == "fixed"
        center = y.new_tensor(config["target"]["center"] if fixed else 0.0).expand_as(y[:, 0])
        scale = y.new_tensor(config["target"]["scale"] if fixed else 1.0).expand_as(y[:, 0])
    z = (y - center[:, None]) / scale[:, None]
    shown = z if near is y else (near - center[:, None]) / scale[:, None]
    if config["embedder"].get("x", {}).get("orient", False):
        sign = target_signs(shown, prefix)
        z, shown, scale = z * sign[:, None], shown * sign[:, None], scale * sign
    return z, soft_clip(shown, config["target"].get("clip", 0)), center, scale


def scale_features(x, prefix):
    """Standardise by the non-missing prefix values of each column; a constant column gives 0.
    Missing stays NaN.
    """
    head = x[:, :prefix]
    present = ~head.isnan()
    filled = head.nan_to_num(0.0)
    count = present.sum(1, keepdim=True)
    mean = filled.sum(1, keepdim=True) / count.clamp_min(1)
    deviation = torch.where(present, head - mean, torch.zeros_like(head))
    sd = (deviation.square().sum(1, keepdim=True) / count.clamp_min(1)).sqrt()
    big = torch.finfo(x.dtype).max
    low = torch.where(present, head, torch.full_like(head, big)).amin(1, keepdim=True)
    high = torch.where(present, head, torch.full_like(head, -big)).amax(1, keepdim=True)
    constant = (low >= high) | (sd == 0)
    z = (x - mean) / torch.where(constant, torch.ones_like(sd), sd)
    return torch.where(constant & ~x.isnan(), torch.zeros_like(z), z)


def numeric_bins(x, prefix):
    """Bin 0…7 of every value by the seven edges of its column, [B, N, F] (missing values get some
    bin).
    """
    head = x[:, :prefix]
    ordered, _ = torch.where(head.isnan(), torch.full_like(head, float("inf")), head).sort(1)
    count = (~head.isnan()).sum(1)
    bins = torch.zeros(x.shape, dtype=torch.long, device=x.device)
    for j in range(1, NUMERIC_BINS):
        # (m - 1) j / 8 in integers, so that no rounding decides which two values an edge lies
        # between.
        place = (count - 1).clamp_min(0) * j
        low = place // NUMERIC_BINS
        share = (place % NUMERIC_BINS).to(x.dtype) / NUMERIC_BINS
        high = torch.minimum(low + 1, (count - 1).clamp_min(0))
        a = ordered.gather(1, low[:, None])
        b = ordered.gather(1, high[:, None])
        edge = a + (b - a).nan_to_num(0.0) * share[:, None]
        bins += edge < x
    return bins


def level_places(counts, sums, splits):
    """Places [B, L, F] of labels with these counts and sums of targets in the order of their bins:
    by descending count, ties by ascending sum, then identity; with `splits`, ties of columns of
    many labels by lot.
    """
    def sort(by, order, descending=False):
        return order.gather(1, by.gather(1, order).sort(dim=1, stable=True,
                                                        descending=descending).indices)

    order = sort(counts, sums.sort(dim=1, stable=True).indices, True)
    places = order.argsort(1)
    if not splits:
        return places
    many = ((counts > 0).sum(1) > OWN + 1)[:, None]
    drawn = torch.from_numpy(lots(places.cpu().numpy())).to(places.device)
    return sort(counts, torch.where(many, drawn, places).argsort(1), True).argsort(1)


def encode_categories(x, prefix, categorical, y=None, splits=False):
    """Codes and bins of categorical cells.

    Returns (codes [B, N, F] with NaN for missing and unseen identities, bins [B, N, F]). Identities
    are small integers >= 0; columns that are not categorical are ignored. With y [B, n], the
    targets of the prefix as inputs, identities of equal counts are ordered by the sums of theirs,
    or, of features that the model splits where they have many, by lot. Those from REST on, which
    a part does not tell apart (split.py), are one, the last.
    """
    ignore = x.isnan() | ~categorical[:, None, :]
    identity = torch.where(ignore, torch.zeros_like(x), x).long()
    rest = identity >= REST
    identity = torch.where(rest, identity - int(REST), identity)
    levels = int(identity.max()) + 1
    counts = torch.zeros(x.shape[0], levels, x.shape[2], dtype=torch.long, device=x.device)
    own, head = torch.zeros_like(counts), identity[:, :prefix]
    counts.scatter_add_(1, head, (~ignore[:, :prefix]).long())
    own.scatter_add_(1, head, (~ignore & ~rest)[:, :prefix].long())
    sums = torch.zeros(counts.shape, dtype=torch.float64, device=x.device)
    if y is not None:
        told = (~ignore[:, :prefix]) * y.double()[..., None]
        sums = (RELEVANCE_STEPS * sums.scatter_add_(1, head, told)).round()
    places = level_places(counts, sums, splits and y is not None)
    own = own > 0
    rank = torch.where(own, places, levels).argsort(1).argsort(1)
    rank, others = rank.clamp_max(CATEGORY_BINS - 1), own.sum(1, keepdim=True)
    code = own.long().cumsum(1) - 1
    known = (own.gather(1, identity) | rest) & ~ignore
    codes, bins = (torch.where(rest, others, v.gather(1, identity)) for v in (code, rank))
    return torch.where(known, codes.to(x.dtype), torch.full_like(x, float("nan"))), bins


def level_bins(tasks, y_input, prefix, config):
    """Bins [B, N, F] of the categorical cells of `tasks`, MISSING_BIN of what is missing or unseen;
    columns that are not categorical have any.
    """
    by_targets = config["embedder"]["x"].get("codes") == "targets"
    codes, found = encode_categories(tasks.x, prefix, tasks.categorical,
                                     y_input[:, :prefix] if by_targets else None,
                                     "split" in config["embedder"]["x"])
    return torch.where(codes.isnan(), torch.full_like(found, MISSING_BIN), found)


def codes_by_targets(missing, bins, y):
    """Codes by the targets instead of the identities, [B, N, F]: the rank of a cell's bin among
    those of its column that the prefix fills, by the prefix's mean target in them, shrunk; of equal
    ones the lower bin is first. NaN where missing [B, N, F]; bins [B, N, F], y [B, n] targets of
    the prefix as inputs. Renaming the categories changes nothing.
    """
    rows = y.shape[1]
    head = torch.where(missing[:, :rows], torch.full_like(bins[:, :rows], CATEGORY_BINS),
                       bins[:, :rows])
    spread = y.double()[..., None].expand(head.shape)
    counts = spread.new_zeros(len(y), CATEGORY_BINS + 1,
                              bins.shape[2]).scatter_add_(1, head, torch.ones_like(spread))[:, :-1]
    sums = spread.new_zeros(len(y), CATEGORY_BINS + 1,
                            bins.shape[2]).scatter_add_(1, head, spread)[:, :-1]
    mean = (RELEVANCE_STEPS * sums / (counts + 1.5)).round()
    mean = torch.where(counts > 0, mean, torch.full_like(mean, float("inf")))
    rank = mean.sort(dim=1, stable=True).indices.argsort(1)
    return torch.where(missing, torch.full_like(spread[:, :1], float("nan")),
                       rank.gather(1, bins).double())


def pearson(z, y, present):
    """Correlation over the present rows, [B, F]; z, present [B, n, F], y [B, n]; 0 where either is
    constant.
    """
    w = present.to(z.dtype)
    count = w.sum(1).clamp_min(1)
    y = y[..., None]
    dz = (z - ((z * w).sum(1) / count)[:, None]) * w
    dy = (y - ((y * w).sum(1) / count)[:, None]) * w
    szz, syy = dz.square().sum(1), dy.square().sum(1)
    r = (dz * dy).sum(1) / (szz * syy).sqrt().clamp_min(1e-30)
    tiny = torch.finfo(z.dtype).eps ** 2 * 16
    flat = (szz <= tiny * count) | (syy <= tiny * count)
    return torch.where(flat, torch.zeros_like(r), r.clamp(-1, 1))


def between_bin_share(counts, sums, y):
    """The share of the target's variance between bins, adjusted and as it is, [B, F] each; counts
    and sums [B, bins, F], y [B, n].
    """
    n = y.shape[1]
    mean = y.mean(1)[:, None, None]
    bin_mean = sums / counts.clamp_min(1)
    ssb = (counts * (bin_mean - mean).square()).sum(1)
    sst = (y - y.mean(1, keepdim=True)).square().sum(1)[:, None]
    bins = (counts > 0).sum(1)
    share = torch.where(sst <= 0, torch.zeros_like(ssb), ssb / sst.clamp_min(1e-30))
    e = 1 - (1 - share) * (n - 1) / (n - bins).clamp_min(1)
    return torch.where((bins >= n) | (sst <= 0), torch.zeros_like(e), e.clamp_min(0)), share


def slot_order(relevance, tie, x, prefix, most):
    """The columns of the slots, [B, S], by descending relevance [B, F], then by descending tie [B,
    F], both in steps, and which slots are used, [B, S]: columns of x [B, N, F] whose prefix cells
    are all equal, or all missing, come last and are not, but for the first of nothing else. S is at
    most `most`.
    """
    first, then = ((v.double() * RELEVANCE_STEPS).round() for v in (relevance, tie))
    head = x[:, :prefix]
    flat = (head == head[:, :1]).all(1) | head.isnan().all(1)
    order = torch.where(flat, -1, first * (4 * RELEVANCE_STEPS) + then).sort(
        stable=True, dim=1, descending=True).indices[:, :most]
    used = ~flat.gather(1, order)
    used[:, 0] = True
    return order, used


def slot_bins(counts, order):
    """Which bins the prefix fills, [B, bins, S]; counts [B, bins, F], order [B, S] columns of the
    slots.
    """
    return (counts > 0).gather(2, order[:, None].expand(-1, counts.shape[1], -1))


def oriented(tasks, y_input, prefix, config):
    """The cells of `tasks` [B, N, F], where the model asks for it those of columns that fall with
    the targets turned.
    """
    x = tasks.x
    if not config["embedder"]["x"].get("orient", False):
        return x
    knee = config["inputs"].get("clip", 0)
    r = pearson(soft_clip(scale_features(x[:, :prefix], prefix), knee).nan_to_num(0.0),
                y_input[:, :prefix], ~x[:, :prefix].isnan())
    return turn_columns(x, r, tasks.categorical)


def cells(tasks, y_input, prefix, config, found=None, chain=None):
    """Cell vectors in slot order, flat, [B, N, min(F, max_features) * 8], followed by the process's
    record where a gate reads it and by what `ridge` and `process` say, to the queries of a chain
    (process_chain.Chain) given its rows before them. `found`, a list, gets what donors need
    (donors.Slots).
    """
    categorical, tokeniser = tasks.categorical, config["embedder"]["x"]
    knee_x = config["inputs"].get("clip", 0)
    x = oriented(tasks, y_input, prefix, config)
    if categorical.any():
        by_targets = tokeniser.get("codes") == "targets"
        codes, category_bins = encode_categories(x, prefix, categorical,
                                                 y_input[:, :prefix] if by_targets else None,
                                                 "split" in tokeniser)
        if by_targets:
            codes = codes_by_targets(codes.isnan(), category_bins, y_input[:, :prefix]).to(x.dtype)
        x = torch.where(categorical[:, None, :], codes, x)
        bins = torch.where(categorical[:, None, :], category_bins, numeric_bins(x, prefix))
    else:
        bins = numeric_bins(x, prefix)
    missing = x.isnan()
    bins = torch.where(missing, torch.full_like(bins, MISSING_BIN), bins)
    z = soft_clip(scale_features(x, prefix), knee_x).nan_to_num(0.0)

    head_y = y_input[:, :prefix]
    spread_y = head_y[..., None].expand(-1, -1, x.shape[2])
    counts = torch.zeros(x.shape[0], MISSING_BIN + 1, x.shape[2], dtype=z.dtype, device=x.device)
    sums = torch.zeros_like(counts)
    counts.scatter_add_(1, bins[:, :prefix], torch.ones_like(spread_y))
    sums.scatter_add_(1, bins[:, :prefix], spread_y)
    r = pearson(z[:, :prefix], head_y, ~missing[:, :prefix])
    e, share = between_bin_share(counts, sums, head_y)
    w = missing[:, :prefix].to(z.dtype).mean(1)

    in_prefix = torch.zeros(x.shape[1], 1, dtype=z.dtype, device=x.device)
    in_prefix[:prefix] = 1
    count, total = counts.gather(1, bins), sums.gather(1, bins)
    t = (total - in_prefix * y_input[..., None]) / (count + 1.5 - in_prefix)
    size = torch.full_like(z, math.log1p(prefix) / 8)
    flags = categorical[:, None, :].to(z.dtype).expand_as(z)
    card = (v[:, None, :].expand_as(z) for v in (r, e, w))
    cell = torch.stack([z, missing.to(z.dtype), flags, t, size, *card], -1)
    relevance = (torch.maximum(e, r.square()).double() * RELEVANCE_STEPS).round()
    order, used = slot_order(torch.maximum(e, r.square()), share + r.square(), x, prefix,
                             config["inputs"]["max_features"])
    below, slots = tokeniser.get("prune_below", 0), used.sum(1)
    many = prefix >= below * slots if below else torch.zeros_like(slots, dtype=torch.bool)
    if tasks.all_slots is not None:
        many = many | tasks.all_slots
    if tokeniser.get("prune", False) and order.shape[1] > ridge.ALWAYS_KEPT and not many.all():
        wide = order[:, None].expand(-1, prefix, -1)
        keep = ridge.worth_keeping(z[:, :prefix].gather(2, wide), bins[:, :prefix].gather(2, wide),
                                   slot_bins(counts, order) & used[:, None],
                                   categorical.gather(1, order), head_y,
                                   relevance.gather(1, order) / RELEVANCE_STEPS,
                                   tokeniser.get("pairs", False), slots)
        keep = (keep | many[:, None]) & used
        # What stays moves up; behind it the slots are empty.
        used, moved = keep.to(torch.int8).sort(dim=1, descending=True, stable=True)
        used, order = used.bool(), order.gather(1, moved)
    wide = order[:, None].expand(-1, x.shape[1], -1)
    flat = (cell.gather(2, wide[..., None].expand(-1, -1, -1, 8)) * used[:, None, :, None]).flatten(
        2)
    kinds, knee = categorical.gather(1, order), config["target"].get("clip", 0)
    z, bins, parts = z.gather(2, wide), bins.gather(2, wide), [flat]
    if found is not None:
        count, total = (v[:, MISSING_BIN].gather(1, order) for v in (counts, sums))
        found.append(Slots(order, used, z, bins == MISSING_BIN, count,
                           total.square() / count.clamp_min(1), torch.ones_like(count)))
    if tokeniser.get("ridge", False):
        absent = (bins == MISSING_BIN) & used[:, None] if tokeniser.get("absent", False) else None
        filled = slot_bins(counts, order) & used[:, None]
        parts.append(ridge.opinions(z, bins, filled, kinds, y_input, prefix, knee, absent))
        if found is not None:
            found[0].ridge = parts[-1][:, :prefix]
    if tokeniser.get("process", False):
        kept = [] if found is not None and tokeniser.get("shift", False) else None
        records = [] if config["head"].get("process_record", False) else None
        ends = [] if tokeniser.get("nearest", False) else None
        said = process.opinions(z, bins, used, kinds, y_input, prefix, knee,
                                tokeniser.get("directions", 0), tokeniser.get("additive", False),
                                chain, kept, records, ends)
        if ends is not None:
            # what is kept for shifts stays the process's
            said = nearest.instead(said, ends[0], z, bins, used, kinds, y_input, prefix, knee,
                                   chain, records)
        density = unclip(said[:, 0, 3].double(), knee)
        if tokeniser.get("line", False):
            whole = scale_features(x, prefix).nan_to_num(0.0).gather(2, wide)
            said, density = line.instead(said, whole, bins, slot_bins(counts, order)
                                         & used[:, None], kinds, y_input, prefix, knee, chain, kept,
                                         records)
        if records is not None:
            own = record.record(*records, parts[-1][:, 0]).to(z.dtype)
            parts.insert(1, own[:, None].expand(-1, z.shape[1], -1))
        parts.append(said)
        if found is not None:
            found[0].known, found[0].density = kept or None, density
    return torch.cat(parts, 2)


def judged(tasks, y_input, prefix, config):
    """Tasks that know whether rows of the prefix that are left out are predicted better with all
    slots than without those that look like noise.
    """
    if not config["embedder"].get("x", {}).get("prune_judged", False) or (
            tasks.all_slots is not None):
        return tasks

    def said(all_slots):
        found = []
        cells(replace(tasks, all_slots=all_slots), y_input, prefix, config, found)
        return found[0].used.sum(1), found[0].density

    none = torch.zeros(len(tasks.y), dtype=torch.bool, device=tasks.y.device)
    (some, before), (whole, after) = said(none), said(~none)
    better = (whole > some) & (
        after > before + ALL_SLOTS_AHEAD + ALL_TOGETHER / prefix)
    return replace(tasks, all_slots=better)


def as_labels(tasks, y_input, prefix, config):
    """Tasks whose features of many labels are split, and whose numbers that name groups stand as
    labels, too, if the model wants that; tasks that have been through this stay as they are.
    """
    def split(given, named):
        return split_labels(given, y_input, prefix, config, named)

    if tasks.all_slots is None:
        plain = judged(split(tasks, None), y_input, prefix, config)
        tasks = replace(tasks, all_slots=plain.all_slots)
    if not config["embedder"].get("x", {}).get("labels", False) or tasks.number is not None:
        return split(tasks, None)
    return settled(add_labels(tasks, y_input, prefix, config, cells, split))


def plain_features(x, prefix, inputs):
    """Scaled and clipped features of a model with an exact number of them; `inputs` is that part of
    its configuration.
    """
    if inputs["scaling"] == "prefix":
        x = scale_features(x, prefix)
    elif inputs["scaling"] == "fixed":
        center, scale = (x.new_tensor(inputs[k]) for k in ("center", "scale"))
        x = (x - center) / scale
    return soft_clip(x, inputs.get("clip", 0))


def whole_table(tasks, prefix, inputs):
    """Scaled and clipped cells of a set encoder, in column order; missing ones are 0."""
    x = tasks.x
    if tasks.categorical.any():
        codes, _ = encode_categories(x, prefix, tasks.categorical)
        x = torch.where(tasks.categorical[:, None, :], codes, x)
    scale = power_features if inputs["scaling"] == "power" else scale_features
    return soft_clip(scale(x, prefix), inputs.get("clip", 0)).nan_to_num(0.0)


def prepare(tasks, prefix, config, chain=None):
    """Network inputs of a batch of tasks whose statistics are frozen after `prefix` rows; chain
    (process_chain.Chain) where a process learns from one.
    """
    y, y_input, center, scale = scale_targets(tasks.y, prefix, config, tasks.x)
    inputs = config["inputs"]
    if config["embedder"]["kind"] == "set":
        x = whole_table(tasks, prefix, inputs)
    elif "max_features" in inputs:
        tasks = as_labels(tasks, y_input, prefix, config)
        x = cells(tasks, y_input, prefix, config, chain=chain)
    else:
        x = plain_features(tasks.x, prefix, inputs)
    return Inputs(x, y, y_input, center, scale)
