"""The engine in float32 against the reference in float64, for every model of make_models.py, with
the reference kernels and the best table of this machine; with its other tables for a few models
that reach all kernels. Tables that this machine does not run are skipped by name.

Tolerances: 1e-4 absolute on means and standard deviations, 1e-3 on the log density of one row, 1e-3
times the number of rows on a joint one, 1e-3 on a joint draw (a chain feeds its own rounding back).
With keys and values of 16 bits all of these are 0.01, relative to the standard deviation for means
and standard deviations. Targets that are scored come from the reference's own answers, so that
these are absolute errors of ordinary values. Tables have missing cells, categories, ties and a
constant column where the model takes them, and more columns than it uses.

SPDX-License-Identifier: PostgreSQL
"""
import glob
import os

import numpy as np

from checking import (HALF, KERNELS, MadeModels, Tap, Tool, arguments, as_targets, cells, close,
                      other_tables, rows, table)
from heads import NORMAL, Joint
from line import Line
from nearest import Nearest
from random_numbers import self_test, value_uniforms
from reference import Model, build, canonical_prefix, whole_prefix
from scaling import near_targets

MOMENTS, LOG_DENSITY, DRAWS = 1e-4, 1e-3, 1e-3

# Between them every norm and activation, rows as tokens, classes, weights that are halves, chains
# of both masks, keys that are shared and own ones, bumps in the scores.
FEW = ("prefix_causal_half", "packed_flag", "buffer_strict", "rows_buffer", "classes_tokens",
       "two_stream_strict", "scan_one_target", "scan_time", "set", "set_power")


def moments(distributions):
    if distributions and isinstance(distributions[0], Joint):
        means = [d.mean for d in distributions]
        sds = [np.sqrt(np.diag(d.covariance)) for d in distributions]
        if len(means[0]) == 1:
            return np.ravel(means), np.ravel(sds)
        return means, sds
    return [d.mean() for d in distributions], [d.sd() for d in distributions]


class Case:
    """One request, what the reference says to it, and how near the answer must be: field -> (value,
    tolerance).
    """

    def __init__(self, name, request, wanted):
        self.name, self.request, self.wanted = name, request, wanted

    def check(self, tap, tool, kernels, label, half=False):
        answer = tool.ask(kernels=kernels, **self.request)
        if "error" in answer:
            tap.ok(False, label, answer["error"])
            return
        wrong = [f"{field}: {bad}" for field, (value, tolerance) in self.wanted.items()
                 if (bad := close(answer[field], value,
                                  self.wider(field, tolerance) if half else tolerance)) is not None]
        tap.ok(not wrong, label, *wrong)

    def wider(self, field, tolerance):
        """The tolerance of keys and values of 16 bits; what must be exact stays so."""
        if field in ("mean", "sd"):
            return HALF * np.array(self.wanted["sd"][0])
        return HALF * tolerance / (MOMENTS if field == "params" else LOG_DENSITY)


def shape(model, encoding):
    return {"rows": (len(encoding.x), 0), "prefix": (encoding.prefix, 0)}


def predictions(encoding, queries):
    answers = encoding.predict(queries)
    if encoding.statistics.classes:
        return {"params": ([d.params for d in answers], MOMENTS), **shape(encoding.model, encoding)}
    mean, sd = moments(answers)
    return {"mean": (mean, MOMENTS), "sd": (sd, MOMENTS), **shape(encoding.model, encoding)}


def request(x, y, kinds, prefix, **more):
    out = {"context": table(x, y), "prefix": prefix, **more}
    if kinds:
        out["kinds"] = kinds
    return out


def start(model):
    """The least number of context rows."""
    return model.min_rows


def case_sizes(model):
    """Contexts of all sizes, given as a whole."""
    for n in sorted({start(model), start(model) + 1, 9, 33, 200}):
        x, y, kinds = rows(model, n + 8, n)
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        yield Case(f"{n} rows", request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_constant(model):
    """A constant target and a column that is constant in the context."""
    x, y, kinds = rows(model, 14, 5)
    x[:10, 0], y[:] = 0.3, 0 if "classes" in model.config["head"] else 0.1
    if model.takes_any_columns:
        x[:10, 6] = np.nan              # and one that only queries have
    encoding = build(model, x[:10], y[:10], whole_prefix(model, 10), kinds)
    yield Case("constant target and column",
               request(x[:10], y[:10], kinds, "whole", queries=cells(x[10:])),
               predictions(encoding, x[10:]))


def case_unit(model):
    """Targets in a unit in which all of them are tiny; the answers are compared in it."""
    if model.config["target"]["scaling"] != "prefix":
        return
    unit = 1e-15
    x, y, kinds = rows(model, 28, 6)
    encoding = build(model, x[:20], y[:20] * unit, whole_prefix(model, 20), kinds)
    mean, sd = moments(encoding.predict(x[20:]))
    yield Case("targets of a tiny unit",
               request(x[:20], y[:20] * unit, kinds, "whole", queries=cells(x[20:])),
               {"mean": (mean, MOMENTS * unit), "sd": (sd, MOMENTS * unit)})


def middle(model, n):
    """A prefix that leaves later rows, if the model allows one."""
    if model.context == "causal":
        return 0
    if model.context == "full" and model.buffer is not None:
        return n - min(model.buffer - 1, 2)
    return max(model.min_rows, n - 5)


def case_middle(model):
    """A prefix in the middle; joint questions; the same context appended in two steps."""
    n, m = 13, 6
    x, y, kinds = rows(model, n + m, 77)
    prefix = middle(model, n)
    encoding = build(model, x[:n], y[:n], prefix, kinds)
    asked = x[n:]
    observed = encoding.sample(asked, 99, 1)[0]
    joint = encoding.score(asked, observed)
    wanted = {
        **predictions(encoding, asked),
        "log_density": (joint, m * LOG_DENSITY),
        "draws": (encoding.sample(asked, 2 ** 40 + 7, 2, 2), DRAWS),
    }
    questions = {
        "queries": cells(asked),
        "score": {**table(asked, observed), "orders": 0},
        "sample": {**table(asked), "draws": 2, "seed": 2 ** 40 + 7, "first": 2},
    }
    if model.config["head"]["kind"] == "joint-gaussian":
        together = encoding.joint(asked)
        wanted["joint_mean"] = (together.mean, MOMENTS)
        sds = np.sqrt(np.diag(together.covariance))
        # of a covariance, in units of the two standard deviations where these are large
        wanted["covariance"] = (together.covariance,
                                MOMENTS * np.maximum(1, np.outer(sds, sds)).ravel())
        questions["joint"] = table(asked)
    else:
        wanted["per_row"] = (encoding.conditionals(asked, observed), LOG_DENSITY)
    yield Case(f"prefix {prefix} of {n}, joint", request(x[:n], y[:n], kinds, prefix, **questions),
               wanted)
    first = max(prefix, model.min_rows, 1)
    if first < n:
        parts = [table(x[first:first + 1], y[first:first + 1]),
                 table(x[first + 1:n], y[first + 1:n])]
        yield Case(f"{n - first} rows appended, joint",
                   request(x[:first], y[:first], kinds, prefix, append=parts, **questions), wanted)
    averaged = encoding.score(asked, observed, 2, 11)
    yield Case("2 random orders",
               request(x[:n], y[:n], kinds, prefix,
                       score={**table(asked, observed), "orders": 2, "seed": 11}),
               {"log_density": (averaged, m * LOG_DENSITY)})


def case_each_target(model):
    """Three targets of rows that share their keys: each is answered as if it were alone."""
    if not model.takes_each_target:
        return
    n, m, targets = 40, 5, 3
    x, y, kinds = rows(model, n + m, 14)
    y = np.stack([y, 2 - 0.5 * y, np.cos(3 * y)], axis=1)
    prefix = middle(model, n)
    each = [build(model, x[:n], y[:n, t], prefix, kinds) for t in range(targets)]
    asked = x[n:]
    observed = np.stack([e.sample(asked, 21, 1)[0] for e in each], axis=1)
    moments_of = [moments(e.predict(asked)) for e in each]
    conditionals = np.sum([e.conditionals(asked, observed[:, t]) for t, e in enumerate(each)],
                          axis=0)
    yield Case("three targets, each by itself",
               request(x[:n], y[:n], kinds, prefix, queries=cells(asked),
                       score=table(asked, observed)),
               {"mean": (np.stack([mean for mean, _ in moments_of], axis=1), MOMENTS),
                "sd": (np.stack([sd for _, sd in moments_of], axis=1), MOMENTS),
                "per_row": (conditionals, targets * LOG_DENSITY),
                "log_density": (np.sum(conditionals), m * targets * LOG_DENSITY)})


def case_wide(model):
    """More columns than slots, and than a regression's design holds; some are negatives of others,
    which are as relevant.
    """
    if not model.has_tokeniser:
        return
    n, m, wide = 60, 6, 48
    random = np.random.RandomState(91)
    x = random.standard_normal((n + m, wide)) + random.standard_normal((n + m, 1))
    x[:, 8:16] = -x[:, :8]
    x[:, 16] = np.round(2 * x[:, 16]) + 20
    x[random.uniform(size=n + m) < 0.2, 3] = np.nan
    y = (x[:, 0] - 0.99 * x[:, 1] + 0.5 * np.abs(x[:, 2]) + 0.1 * x[:, 16]
         + 0.05 * random.standard_normal(n + m))
    y = as_targets(model, y)
    kinds = ["categorical" if f == 16 else "numeric" for f in range(wide)]
    encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
    yield Case(f"{wide} columns", request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
               predictions(encoding, x[n:]))


def case_power(model):
    """Columns that are hard to make normal, alone and far outside of what the prefix has."""
    if model.config["inputs"]["scaling"] != "power":
        return
    random = np.random.RandomState(92)
    n = 70
    x = random.standard_normal((n + 6, 7))
    x[:, 0] = np.exp(3 * x[:, 0])                       # skewed
    x[:, 1] = np.arange(n + 6) % 35 == 3                # nearly always the same
    x[:, 2] = 5 + 1e-9 * x[:, 2]                        # hardly differs
    x[:, 3] = -np.abs(1e100 * x[:, 3])                  # large
    x[:, 4] = np.where(np.arange(n + 6) == 7, 1e9, x[:, 4])     # one outlier
    x[:, 5] = np.where(np.arange(n + 6) == 9, x[:, 5], np.nan)  # one value
    x[:, 6] = np.where(np.arange(n + 6) == 9, 1e-13, 0)         # nothing left to transform
    x[n], x[n + 1] = 1e30, -1e30
    y = as_targets(model, np.tanh(random.standard_normal(n)))
    encoding = build(model, x[:n], y, whole_prefix(model, n))
    yield Case("columns that are hard to make normal",
               request(x[:n], y, None, "whole", queries=cells(x[n:])), predictions(encoding, x[n:]))


def case_noise(model):
    """Columns that say something, alone or together, among columns of noise: what a model that
    prunes leaves out must be the same.
    """
    own = model.config["embedder"].get("x", {})
    if not own.get("prune", False):
        return
    random = np.random.RandomState(91)
    n, wide = 90, 24
    x = random.standard_normal((n + 8, wide))
    x[:, 20] = x[:, 3] + 0.1 * random.standard_normal(n + 8)    # in its difference to another only
    x[random.uniform(size=n + 8) < 0.2, 5] = np.nan
    y = (np.nansum(x[:, 6:17], axis=1) + 30 * (x[:, 20] - x[:, 3])
         + 0.3 * random.standard_normal(n + 8))
    encoding = build(model, x[:n], y[:n], whole_prefix(model, n))
    slots = encoding.statistics.tokeniser.slots
    assert len(slots) < wide or own.get("prune_judged", False), slots
    assert 8 < len(slots) and {3, 20} <= set(slots), slots
    yield Case(f"noise among {wide} columns",
               request(x[:n], y[:n], None, "whole", queries=cells(x[n:])),
               predictions(encoding, x[n:]))


def case_judged(model):
    """Twelve columns, of which three say something only together, some cells missing, and then some
    of which nothing hides: what a model that judges its pruning leaves out must be the same.
    """
    if not model.config["embedder"].get("x", {}).get("prune_judged", False):
        return
    random = np.random.RandomState(17)
    n, wide = 300, 12
    x = random.standard_normal((n + 8, wide))
    x[random.uniform(size=n + 8) < 0.05, 4] = np.nan
    x[:, 11] = random.randint(0, 3, n + 8)
    kinds = ["numeric"] * 11 + ["categorical"]
    hidden = x[:, 0] * x[:, 7] * x[:, 10] + 0.1 * random.standard_normal(n + 8)
    plain = np.nansum(x[:, :9], axis=1) + 0.5 * random.standard_normal(n + 8)
    for name, y, all_stay in (("a product of three of", hidden, True),
                              ("a sum of most of", plain, False)):
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        slots = encoding.statistics.tokeniser.slots
        assert (len(slots) == wide) == all_stay, slots
        yield Case(f"{name} {wide} columns",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_pairs(model):
    """Columns that say something together alone, some missing, among columns of noise and labels;
    fewer rows than are looked at, and more.
    """
    if not model.config["embedder"].get("x", {}).get("pairs", False):
        return
    for n in (150, 1100):
        random = np.random.RandomState(n)
        wide, apart = 26, (19, 23)
        x = random.standard_normal((n + 8, wide))
        x[:, 4:8] = random.randint(0, 5, (n + 8, 4))
        x[random.uniform(size=n + 8) < 0.1, 23] = np.nan
        y = (x[:, :4].sum(axis=1) + x[:, 8:16].sum(axis=1)
             + 3 * x[:, 19] * np.cos(1.5 * np.nan_to_num(x[:, 23])))
        kinds = ["categorical" if 4 <= f < 8 else "numeric" for f in range(wide)]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        tokeniser = encoding.statistics.tokeniser
        assert len(tokeniser.slots) < wide and set(apart) <= set(tokeniser.slots), tokeniser.slots
        yield Case(f"pairs of {wide} columns, {n} rows",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))
        # a curve that has two ends alike, too small for bins to tell with few rows
        y = x[:, :4].sum(axis=1) + x[:, 8:16].sum(axis=1) + np.abs(x[:, 20])
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        tokeniser = encoding.statistics.tokeniser
        assert len(tokeniser.slots) < wide and 20 in tokeniser.slots, tokeniser.slots
        yield Case(f"a curve of {wide} columns, {n} rows",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))
        # two labels together, and one that turns a number's sign; each with missing cells
        x[random.uniform(size=n + 8) < 0.1, 5] = np.nan
        same, label = (np.nan_to_num(x[:, f]) % 2 == 0 for f in (5, 6))
        y = (x[:, :4].sum(axis=1) + x[:, 8:16].sum(axis=1) + 8 * (same != label)
             + 3 * np.where(x[:, 7] < 2.5, x[:, 20], -x[:, 20]))
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        tokeniser = encoding.statistics.tokeniser
        assert len(tokeniser.slots) < wide and {5, 6, 7, 20} <= set(tokeniser.slots), (
            tokeniser.slots)
        yield Case(f"labels in pairs, {n} rows",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def many_labels(n, seed):
    """(x [n, 5], y [n], kinds): a column of 50 labels that matter, some often and some missing; one
    of 30 that say nothing; a number; names, of which most are there once and 40 matter; one of 17
    labels.
    """
    random = np.random.RandomState(seed)
    often = random.choice(50, n, p=np.arange(50, 0, -1) / np.arange(51).sum())
    name = np.where(random.uniform(size=n) < 0.4, random.randint(0, 40, n), 1000 + np.arange(n))
    few = random.randint(0, 17, n)
    effect = [random.standard_normal(k) for k in (50, 40, 17)]
    x = np.stack([often, random.randint(0, 30, n), random.standard_normal(n), name, few],
                 axis=1).astype(float)
    x[:, [0, 1, 3, 4]] = np.floor(x[:, [0, 1, 3, 4]] * 2654435761 % 100003)    # in no order
    y = (1.5 * effect[0][often] + np.where(name < 40, 2 * effect[1][name % 40], 0)
         + 0.7 * effect[2][few] + 0.5 * x[:, 2] + 0.2 * random.standard_normal(n))
    x[random.uniform(size=n) < 0.05, 0] = np.nan
    return x, y, ["categorical", "categorical", "numeric", "categorical", "categorical"]


def case_split(model):
    """Features of many labels, some of which matter: those are split, and the others are not.
    Queries have labels that no row has, and none. Too few rows for a split, and enough for trees.
    """
    most = model.config["embedder"].get("x", {}).get("split")
    room = model.config["head"].get("classes")
    if not most:
        return
    for n in (20, 250, 560):
        x, y, kinds = many_labels(n + 12, 5)
        x[n:n + 2, 0], x[n + 2, 3], x[n + 3] = (123456.0, np.nan), 123457.0, np.nan
        if room:
            y = np.searchsorted(np.quantile(y, [0.3, 0.6]), y).astype(float)
        prefix = n if n != 250 else 220
        encoding = build(model, x[:n], y[:n], prefix, kinds, 3 if room else None)
        sources = encoding.statistics.scaling.sources
        found = [sources.count(f) for f in range(5)]
        assert found == [1] * 5 if n == 20 else (
            min(found[0], found[3]) > 1 and max(found) <= most and found[1:3] == [1, 1]), found
        yield Case(f"{n} rows of many labels",
                   {**request(x[:n], y[:n], kinds, prefix, queries=cells(x[n:])),
                    **({"classes": 3} if room else {})},
                   predictions(encoding, x[n:]))


def case_process(model):
    """More rows than carry a process, or than the first stage of its fit sees; a fine column, equal
    targets, labels, missing cells.
    """
    own = model.config["embedder"].get("x", {})
    if not own.get("process", False) and not own.get("absent", False):
        return
    for n in (100, 160, 300):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 8, 7))
        x[:, 6] = random.randint(0, 9, n + 8)
        x[random.uniform(size=n + 8) < 0.2, 3] = np.nan
        y = np.sin(9 * x[:, 2]) + 0.3 * (x[:, 6] > 4) + 0.2 * np.nan_to_num(x[:, 3])
        y = np.round(20 * y) / 20
        kinds = ["categorical" if f == 6 else "numeric" for f in range(7)]
        x[n:n + 2, 4], x[n + 1:n + 3, 6] = np.nan, 77
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        yield Case(f"process of {n} rows",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_process_ties(model):
    """Rows that differ in the ninth and tenth slot alone: their order changes nothing, neither
    where they carry a process nor where they lend cells.
    """
    if (not model.config["embedder"].get("x", {}).get("process", False)
            or model.config["inputs"]["max_features"] < 10):
        return
    n, random = 300, np.random.RandomState(300)
    x = random.uniform(size=(n + 8, 10))
    x[:, :8] = np.round(x[:, :1])
    x[n, 8], x[n + 1, 9] = np.nan, np.nan
    y = x[:n, 0] + ((x[:n, 8] > 0.5) & (x[:n, 9] > 0.3))
    encoding = build(model, x[:n], y, whole_prefix(model, n))
    order = random.permutation(n)
    yield Case("rows that differ in late slots, in another order",
               request(x[:n][order], y[order], ["numeric"] * 10, "whole", queries=cells(x[n:])),
               predictions(encoding, x[n:]))


def case_tied_labels(model):
    """Labels of which many have as many rows and the same sum of targets: what stands beside them
    orders them, whatever they are called; beside numbers, some of them far, and beside labels.
    """
    if (model.config["embedder"].get("x", {}).get("codes") != "targets"
            or model.config["inputs"]["max_features"] < 4):
        return
    for n, labels, numbers in ((24, 2, 2), (40, 3, 0), (90, 2, 1)):
        random = np.random.RandomState(n)
        x = np.column_stack([random.randint(0, 12 + n // 4, (n + 8, labels)),
                             random.standard_normal((n + 8, numbers))])
        x[random.uniform(size=x.shape) < 0.05] = np.nan
        if numbers:
            x[3, labels] = 1e9
        y = as_targets(model, np.round(random.standard_normal(n + 8)))
        if model.config["target"].get("order") == "counts":
            y[:2] = 0, 1
        kinds = ["categorical"] * labels + ["numeric"] * numbers
        encoding = build(model, x[:n], y[:n], n, kinds)
        wanted = predictions(encoding, x[n:])
        names = 1000.0 + random.permutation(100)
        for f in range(labels):
            there = ~np.isnan(x[:, f])
            x[there, f] = names[x[there, f].astype(int)]
        yield Case(f"{n} rows of tied labels beside {numbers} numbers, renamed",
                   request(x[:n], y[:n], kinds, n, queries=cells(x[n:])), wanted)


def along_directions(n, noise, alone):
    """Rows n and eight more of six columns, one of them of labels, with missing cells: targets
    along two directions, and `alone` of what one column says.
    """
    random = np.random.RandomState(n)
    x = random.standard_normal((n + 8, 6))
    x[:, 3] = random.randint(0, 4, n + 8)
    x[random.uniform(size=n + 8) < 0.05, 4] = np.nan
    along = np.nan_to_num(x) @ [1.2, -0.9, 0.6, 0, 0.8, 0]
    y = np.sin(along) + 0.5 * np.abs(x[:, 5] + x[:, 0]) + alone * np.cos(x[:, 2])
    y += noise * random.standard_normal(n + 8)
    return x, y, ["categorical" if f == 3 else "numeric" for f in range(6)]


def case_process_directions(model):
    """A process with directions: too few rows for these, enough, and more than are looked at."""
    if not model.config["embedder"].get("x", {}).get("directions"):
        return
    for n, noise in ((111, 0.1), (112, 0.1), (300, 0.3), (1500, 0.3)):
        x, y, kinds = along_directions(n, noise, 0)
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        found = encoding.statistics.tokeniser.processes[0].directions
        assert bool(len(found)) == (n >= 16 * (5 + 2)), n
        yield Case(f"process of {n} rows with directions",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_process_groups(model):
    """Numbers that name groups, of few rows and of many, and too many groups for their rows to tell
    of them.
    """
    if not model.config["embedder"].get("x", {}).get("process"):
        return
    for n, groups, found in ((100, 12, True), (260, 20, True), (60, 400, False)):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 8, 4))
        x[:, 1], x[:, 2] = random.randint(0, groups, n + 8), random.randint(0, 6, n + 8)
        effects = random.standard_normal(groups)
        y = x[:, 0] + 1.5 * effects[x[:, 1].astype(int)] + 0.2 * random.standard_normal(n + 8)
        x[n + 1, 1] = groups + 3
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n))
        tokeniser = encoding.statistics.tokeniser
        process = tokeniser.shifting
        # where labels stand beside them the numbers need not tell groups apart
        if not model.config["embedder"]["x"].get("labels") and 1 in tokeniser.slots:
            assert (process.theta[tokeniser.slots.index(1)] > 1) == found, (n, process.theta)
        yield Case(f"process of {n} rows in {groups} groups",
                   request(x[:n], y[:n], ["numeric"] * 4, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_process_pair(model):
    """A product of one wave along each of two columns, which a fit of all columns takes for noise;
    of few rows, of columns of labels and missing cells, of more rows than pairs are looked for in.
    """
    if not model.config["embedder"].get("x", {}).get("process"):
        return
    for n, seed, labels in ((64, 14, False), (100, 2, True), (200, 2, False)):
        random = np.random.RandomState(seed)
        x = random.standard_normal((n + 8, 4))
        y = np.sin(3 * x[:, 0]) * np.sin(3 * x[:, 1]) + 0.03 * random.standard_normal(n + 8)
        if labels:
            x[:, 0] = random.randint(0, 4, n + 8)
            y = np.where(x[:, 0] % 2, 1, -1) * np.sin(4 * x[:, 1]) + 0.03 * y
            x[random.uniform(size=n + 8) < 0.1, 2] = np.nan
        kinds = ["categorical" if labels and f == 0 else "numeric" for f in range(4)]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        tokeniser = encoding.statistics.tokeniser
        if not labels and len(tokeniser.slots) == 4:
            weight = tokeniser.shifting.theta[[list(tokeniser.slots).index(f) for f in range(4)]]
            assert weight[:2].min() > weight[2:].max() + 3, (n, weight)
        yield Case(f"process of {n} rows, a pair of columns, labels: {labels}",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_process_additive(model):
    """A process of a sum of one-dimensional functions, of labels as well, and of missing cells; of
    few rows, of some, of more than carry it; and of a product, which is no sum.
    """
    if not model.config["embedder"].get("x", {}).get("additive"):
        return
    for n, product in ((60, False), (120, False), (300, False), (300, True)):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 8, 4))
        x[:, 3] = random.randint(0, 4, n + 8)
        parts = [np.sin(2 * x[:, 0]), np.abs(x[:, 1]), np.array([0, 1, -1, 2])[x[:, 3].astype(int)]]
        y = x[:, 0] * x[:, 1] if product else sum(parts)
        y += 0.05 * random.standard_normal(n + 8)
        x[random.uniform(size=n + 8) < 0.05, 2] = np.nan
        kinds = ["categorical" if f == 3 else "numeric" for f in range(4)]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        assert (encoding.statistics.tokeniser.processes[0].share > 0) != product, n
        yield Case(f"process of {n} rows, additive: {not product}",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_process_share_start(model):
    """A sum that the product of all axes takes for noise: the share's own start finds it."""
    if not model.config["embedder"].get("x", {}).get("additive"):
        return
    n, random = 96, np.random.RandomState(96)
    x = random.standard_normal((n + 8, 6))
    y = np.sin(2 * x[:, 0]) + np.abs(x[:, 1]) + np.sin(3 * x[:, 2]) + 0.5 * x[:, 3]
    y += 0.02 * random.standard_normal(n + 8)
    encoding = build(model, x[:n], y[:n], whole_prefix(model, n))
    assert encoding.statistics.tokeniser.processes[0].share > 0
    yield Case("process of a sum that looks like noise",
               request(x[:n], y[:n], ["numeric"] * 6, "whole", queries=cells(x[n:])),
               predictions(encoding, x[n:]))


def along_line(n, noise, seed):
    """Targets that are a weighted sum of cells with long tails, some of which are missing, and of
    labels: x [n + 8, 6], y [n + 8], kinds.
    """
    random = np.random.RandomState([n, seed])
    x = np.exp(1.3 * random.standard_normal((n + 8, 6)))
    x[:, 3] = random.randint(0, 4, n + 8)
    x[:, 5] = random.randint(0, 3, n + 8)
    y = x[:, 0] + 2 * x[:, 1] - 0.5 * x[:, 2] + np.array([0, 5, -1, 2])[x[:, 3].astype(int)]
    y += noise * random.standard_normal(n + 8)
    x[random.uniform(size=n + 8) < 0.1, 4] = np.nan
    x[n, 0], x[n + 1, 3], x[n + 2, 1], x[n + 3, 0] = np.nan, 9, 200, 1e300
    return x, y, ["categorical" if f == 3 else "numeric" for f in range(6)]


def case_line(model):
    """A line in the place of the process, certain and not, and none, where it would leave too few
    rows free or says nothing: questions within and far beyond the context, without a cell, with an
    unknown label; chains, merges and draws of it.
    """
    if not model.config["embedder"].get("x", {}).get("line"):
        return
    for n, noise, certain in ((9, 0, None), (40, 0, True), (60, 0.3, False), (300, 0.0, True),
                              (600, 0.01, True), (700, 1.0, False)):
        x, y, kinds = along_line(n, noise, 5)
        if n == 300:
            y = np.rint(y / 20)          # few values
            x[:, 0] = y + x[:, 1]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        process = encoding.statistics.tokeniser.processes[0]
        assert (process.is_certain if isinstance(process, Line) else None) == certain, n
        mean, sd = (np.array(part) for part in moments(encoding.predict(x[n:])))
        yield Case(f"line of {n} rows, certain: {certain}",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   {"mean": (mean, MOMENTS * np.maximum(1, abs(mean))),
                    "sd": (sd, MOMENTS * np.maximum(1, abs(sd)))})
        if n > 100:
            continue
        near = [n + 4, n + 5, n + 6, n + 7, n]
        yield Case(f"chain along the line of {n} rows",
                   request(x[:n], y[:n], kinds, "whole",
                           score={**table(x[near], y[near]), "orders": 0},
                           sample={**table(x[near]), "draws": 2, "seed": 5, "first": 0}),
                   {"per_row": (encoding.conditionals(x[near], y[near]), 10 * LOG_DENSITY),
                    "draws": (encoding.sample(x[near], 5, 2), DRAWS)})
    x, y, kinds = along_line(60, 40.0, 7)
    y[:60] = np.sin(3 * np.log(x[:60, 0]))
    encoding = build(model, x[:60], y[:60], whole_prefix(model, 60), kinds)
    assert not isinstance(encoding.statistics.tokeniser.processes[0], Line)
    yield Case("no line", request(x[:60], y[:60], kinds, "whole", queries=cells(x[60:])),
               predictions(encoding, x[60:]))
    # level with the process, whose place it takes; exact, where the process is surer; nearly so,
    # and far behind; equal targets
    x = np.random.RandomState(33).standard_normal((72, 3))
    x[:, 2] = x[:, 0] > 0
    for name, y, is_line in (("level", x[:, 0] + 0.003 * np.sin(3 * x[:, 1]), True),
                             ("exact", 3 * x[:, 2], True),
                             ("behind", x[:, 0] + 0.001 * x[:, 0] ** 2, False),
                             ("equal", np.zeros(72), False)):
        seen = x[:, 1:] if name == "exact" else x[:, :2]
        encoding = build(model, seen[:64], y[:64], whole_prefix(model, 64))
        assert isinstance(encoding.statistics.tokeniser.processes[0], Line) == is_line, name
        yield Case(f"line: {name}",
                   request(seen[:64], y[:64], None, "whole", queries=cells(seen[64:])),
                   predictions(encoding, seen[64:]))


def walk(n, seed, more=8):
    """Places in time [n + more, 1] and a random walk along them."""
    y = np.cumsum(np.random.RandomState([n, seed]).standard_normal(n + more))
    return np.arange(float(n + more))[:, None], (y - y[:n].mean()) / y[:n].std()


def told_by_near_rows():
    """Tables of few columns: (name, x [n + 8, F], y [n + 8], kinds, n, whether nearest rows stand
    in the place of the process). The last 8 rows are questions, some of them beyond the others.
    """
    number, label = "numeric", "categorical"

    def wave(n, seed, each=1):
        random = np.random.RandomState([n, seed])
        t = np.append(random.permutation(n) // each, [0.5, n / 3, n, n + 1, n + 2, n + 5, 1.5, 2.5])
        return t[:, None], np.sin(t * 2 * np.pi * each / 12) + 0.1 * random.standard_normal(n + 8)

    for n in (300, 700):
        yield f"a wave of {n} rows", *wave(n, 1), [number], n, True
    yield "a wave of whole numbers, three rows each", *wave(750, 2, 3), [number], 750, True
    for n, seed in ((31, 1), (32, 26), (64, 17), (300, 3), (700, 1)):
        yield f"a walk of {n} rows", *walk(n, seed), [number], n, n > 32
    x, y = wave(600, 4)
    random = np.random.RandomState(4)
    series = random.randint(0, 3, 608)
    x = np.concatenate([x, series[:, None]], axis=1)
    x[605, 1], x[606, 0] = 9, np.nan
    yield "waves by label", x, y * series + (series == 0), [number, label], 600, True
    random = np.random.RandomState(5)
    x = random.uniform(-1, 1, (508, 2))
    y = np.sin(12 * x[:, 0]) * np.cos(12 * x[:, 1]) + 0.1 * random.standard_normal(508)
    x[random.uniform(size=(508, 2)) < 0.05] = np.nan
    x[500], x[501, 1] = 2, np.nan
    yield "a surface, some cells missing", x, y, [number] * 2, 500, True
    random = np.random.RandomState(6)
    x = np.stack(np.divmod(np.arange(584.0), 24), axis=1)
    x[576:] = random.randint(0, 24, (8, 2)) + np.repeat([[0.5, 0], [0, 0]], 4, axis=0)
    y = np.sin(x[:, 0]) * np.sin(x[:, 1]) + 0.1 * random.standard_normal(584)
    yield "a grid of whole numbers", x, y, [number] * 2, 576, True
    x = np.stack([random.randint(0, 41, 708), random.randint(0, 9, 708), np.zeros(708)], axis=1)
    y = random.standard_normal((41, 9))[x[:, 0].astype(int), x[:, 1].astype(int)]
    x[700, 1], x[701, 0] = 99, np.nan
    yield ("groups of equal rows", x, y + 0.1 * random.standard_normal(708),
           [number, label, number], 700, True)
    x = random.standard_normal((308, 4))
    yield "a line", x[:, :1], x[:, 0] + 0.3 * random.standard_normal(308), [number], 300, False
    y = np.sin(12 * x[:, 0]) + 0.1 * random.standard_normal(308)
    yield "four columns", x, y + 1e-3 * x.sum(axis=1), [number] * 4, 300, False


def case_nearest(model):
    """Nearest rows in the place of the process and not: series, numbers and labels, missing cells,
    rows that are equal or as near; questions beyond them, chains, rows that come later.
    """
    most = model.config["inputs"].get("max_features", 0)
    if not model.config["embedder"].get("x", {}).get("nearest"):
        return
    for name, x, y, kinds, n, stands in told_by_near_rows():
        if len(kinds) > most:
            continue
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        process = encoding.statistics.tokeniser.processes[0]
        assert isinstance(process, Nearest) == stands, (name, process)
        yield Case(f"nearest rows: {name}",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))
        asked = x[n:n + 6], y[n:n + 6]
        yield Case(f"nearest rows, a chain: {name}",
                   request(x[:n], y[:n], kinds, "whole", score={**table(*asked), "orders": 0},
                           sample={**table(asked[0]), "draws": 1, "seed": 5, "first": 0}),
                   {"per_row": (encoding.conditionals(*asked), 5 * LOG_DENSITY),
                    "draws": (encoding.sample(asked[0], 5, 1), DRAWS)})
        if model.context != "full":
            later = encoding.append(x[n:n + 3], y[n:n + 3])
            yield Case(f"nearest rows, later ones: {name}",
                       request(x[:n + 3], y[:n + 3], kinds, n, queries=cells(x[n + 3:])),
                       predictions(later, x[n + 3:]))
    if model.config["head"].get("process_chain") and model.context != "full":
        # longer than a chain remembers
        n = 64
        x, y = walk(n, 17, 140)
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n))
        assert isinstance(encoding.statistics.tokeniser.processes[0], Nearest)
        yield Case("nearest rows, a long chain",
                   request(x[:n], y[:n], None, "whole",
                           score={**table(x[n:], y[n:]), "orders": 0}),
                   {"per_row": (encoding.conditionals(x[n:], y[n:]), 5 * LOG_DENSITY)})


def named_groups(n, groups, seed, smooth=False, noise=0.3):
    """Targets of groups that a number names, and of another column: x [n + 12, 4], y [n + 12],
    kinds. Rows from n + 8 on are of no known group, one of them far from all; or the number
    measures something, along which targets are smooth.
    """
    random = np.random.RandomState([n, groups, seed])
    names = np.sort(random.choice(40 * groups, 2 * groups, replace=False)).astype(float)
    effects = np.sin(3 * names / (40 * groups)) if smooth else random.standard_normal(2 * groups)
    which = 2 * random.randint(0, groups, n + 12)
    which[n + 8:] += 1
    x = random.standard_normal((n + 12, 4))
    x[:, 1], x[:, 3] = names[which], random.randint(0, 3, n + 12)
    y = effects[which] + 0.7 * x[:, 0] + noise * random.standard_normal(n + 12)
    x[random.uniform(size=n + 12) < 0.05, 2] = np.nan
    x[n, 1], x[n + 1, 0], x[n + 11, 1] = np.nan, np.nan, 1e9
    return x, y, ["categorical" if f == 3 else "numeric" for f in range(4)]


def case_labels(model):
    """Numbers that name groups of rows, few of them, more than a column tells apart and more than
    all parts do; a number that measures something; groups that leave next to nothing. Questions
    of unknown groups, far ones and missing ones; rows that come later; a chain.
    """
    if not model.config["embedder"].get("x", {}).get("labels"):
        return
    if "classes" in model.config["head"]:
        yield from class_labels(model)
        return
    for n, groups, smooth, noise, labels in (
            (60, 8, False, 0.3, 1), (90, 16, False, 0.3, 1), (150, 25, False, 0.3, 2),
            (320, 80, False, 0.3, 3), (150, 25, True, 0.3, 0), (150, 25, False, 0.0005, None)):
        x, y, kinds = named_groups(n, groups, 3, smooth, noise)
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        found = len(encoding.statistics.scaling.kinds) - 4
        if "ridge" in model.config["embedder"]["x"] and labels is not None:
            assert found == labels, (n, groups, found)
        yield Case(f"{groups} groups in {n} rows, columns of labels: {found}",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   predictions(encoding, x[n:]))
        if n != 150 or smooth:
            continue
        near = [n + 4, n + 5, n + 9, n]
        yield Case(f"chain of {groups} groups",
                   request(x[:n], y[:n], kinds, "whole",
                           score={**table(x[near], y[near]), "orders": 0}),
                   {"per_row": (encoding.conditionals(x[near], y[near]), 10 * LOG_DENSITY)})
    x, y, kinds = named_groups(200, 20, 5)
    encoding = build(model, x[:200], y[:200], 128, kinds)
    later = [table(x[first:first + 36], y[first:first + 36]) for first in (128, 164)]
    yield Case("groups of rows that are appended",
               request(x[:128], y[:128], kinds, 128, append=later, queries=cells(x[200:])),
               predictions(encoding, x[200:]))


def class_labels(model):
    """The same of classes."""
    for n, groups, smooth, parts in ((200, 8, False, 1), (300, 25, False, 2), (500, 60, False, 3),
                                     (300, 25, True, 0)):
        x, y, kinds = named_groups(n, groups, 4, smooth, 0)
        random = np.random.RandomState(n)
        y = np.digitize(2 * y + random.logistic(size=len(y)), [-1.5, 1.0]).astype(float)
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds, 3)
        found = len(encoding.statistics.scaling.kinds) - 4
        if "split" in model.config["embedder"]["x"]:
            assert found == parts, (n, groups, found)
        yield Case(f"classes of {groups} groups in {n} rows, columns of labels: {found}",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:]), classes=3),
                   predictions(encoding, x[n:]))


def case_directions(model):
    """Targets along directions of the columns, too few rows for these, enough, and more than are
    looked at: the same weights are found, so that answers differ by rounding alone. A function of
    one column is no direction.
    """
    if not model.config.get("directions"):
        return
    for n, noise, alone in ((111, 0.1, 0), (112, 0.1, 0), (300, 0.3, 0), (5000, 0.3, 0),
                            (350, 0.1, 3)):
        x, y, kinds = along_directions(n, noise, alone)
        encoding = build(model, x[:n], y[:n], n, kinds)
        found = encoding.statistics.basis.directions
        assert bool(found) == (n >= 16 * (5 + 2)), n
        assert all(np.max(w ** 2) < 0.97 * np.sum(w ** 2) for w in found), found
        mean, sd = moments(encoding.predict(x[n:]))
        yield Case(f"directions of {n} rows",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   {"mean": (mean, 1e-6), "sd": (sd, 1e-6)})


def case_short(model):
    """A prefix shorter than the rows that the statistics need."""
    n = model.min_rows + 6
    x, y, kinds = rows(model, n + 4, 55)
    for prefix in {0, 1, model.min_rows // 2} if model.context == "prefix-causal" else ():
        encoding = build(model, x[:n], y[:n], prefix, kinds)
        yield Case(f"prefix {prefix} of {n}",
                   request(x[:n], y[:n], kinds, prefix, queries=cells(x[n:])),
                   predictions(encoding, x[n:]))


def case_grow(model):
    """Rows one after the other under the canonical rule, and in bulk."""
    n, m = 21, start(model)
    x, y, kinds = rows(model, n + 4, 31)
    encoding = build(model, x[:n], y[:n], canonical_prefix(model, n), kinds)
    wanted = predictions(encoding, x[n:])
    singly = [table(x[i:i + 1], y[i:i + 1]) for i in range(m, n)]
    for name, grown in (("singly", singly), ("at once", [table(x[m:n], y[m:n])])):
        yield Case(f"grown {name} to {n}",
                   request(x[:m], y[:m], kinds, "canonical", grow=grown, queries=cells(x[n:])),
                   wanted)


def imagine(model, x, y, kinds):
    """(y with every row after the first min_rows drawn from the model's own answer, the log
    densities of these; NaN for the first rows).
    """
    y, densities = y.copy(), np.full(len(y), np.nan)
    for i in range(model.min_rows, len(y)):
        u = [value_uniforms(5, 0, i, t) for t in range(model.targets)]
        answer = build(model, x[:i], y[:i], canonical_prefix(model, i), kinds).predict([x[i]])[0]
        if isinstance(answer, Joint):
            drawn = answer.draw(np.array([NORMAL.inv_cdf(pair[1]) for pair in u]))
            y[i] = drawn if model.targets > 1 else drawn[0]
        else:
            y[i] = answer.draw(u) if model.targets > 1 else answer.draw(*u[0])
        densities[i] = answer.log_pdf(y[i])
    return y, densities


def case_evidence(model):
    n = 13
    x, y, kinds = rows(model, n, 8)
    y, parts = imagine(model, x, y, kinds)
    yield Case(f"evidence of {n}", {"evidence": table(x, y), **({"kinds": kinds} if kinds else {})},
               {
        "evidence": (np.nansum(parts), (n - model.min_rows) * LOG_DENSITY),
        "evidence_per_row": (parts, LOG_DENSITY),
        "conditioned": (model.min_rows, 0),
    })


def case_classes(model):
    """Fewer classes than the model has room for, one of them not in the prefix; joint questions
    about all of them.
    """
    if "classes" not in model.config["head"]:
        return
    classes, n, m = 3, 12, 5
    x, y, kinds = rows(model, n + m, 9)
    prefix = middle(model, n)
    y = y % classes
    y[:prefix] %= classes - 1
    encoding = build(model, x[:n], y[:n], prefix, kinds, classes)
    asked, observed = x[n:], np.arange(m) % float(classes)
    conditionals = encoding.conditionals(asked, observed)
    yield Case(f"{classes} classes",
               {**request(x[:n], y[:n], kinds, prefix, queries=cells(asked),
                          score=table(asked, observed),
                          sample={**table(asked), "draws": 20, "seed": 3}), "classes": classes},
               {**predictions(encoding, asked), "per_row": (conditionals, LOG_DENSITY),
                "draws": (encoding.sample(asked, 3, 20), 0)})


def case_class_order(model):
    """Classes in the order of their counts, of which two are equal and one has no rows; by rows
    that come later another one is the largest. Joint questions.
    """
    if model.config["target"].get("order") != "counts":
        return
    classes, n, m = 5, 40, 5
    x, _, kinds = rows(model, n + m, 15)
    y = np.array([2, 4, 0, 4, 1, 2, 4, 1] * 4 + [1] * 8, dtype=float)
    prefix = 32 if model.context != "causal" else 0
    encoding = build(model, x[:n], y, prefix, kinds, classes)
    place = encoding.statistics.place
    if prefix:
        assert place[4] == 0 and sorted(place[[1, 2]]) == [1, 2] and place[3] == 4, place
    assert list(place) != list(range(classes)), place
    asked, observed = x[n:], np.arange(m) % float(classes)
    yield Case(f"{classes} classes in another order",
               {**request(x[:n], y, kinds, prefix, queries=cells(asked),
                          score=table(asked, observed),
                          sample={**table(asked), "draws": 20, "seed": 3}), "classes": classes},
               {**predictions(encoding, asked),
                "per_row": (encoding.conditionals(asked, observed), LOG_DENSITY),
                "draws": (encoding.sample(asked, 3, 20), 0)})


def case_one_class(model):
    """All rows have the only class."""
    if "classes" not in model.config["head"]:
        return
    x, _, kinds = rows(model, 14, 12)
    y = np.zeros(12)
    encoding = build(model, x[:12], y, whole_prefix(model, 12), kinds, 1)
    yield Case("one class",
               {**request(x[:12], y, kinds, "whole", queries=cells(x[12:])), "classes": 1},
               predictions(encoding, x[12:]))


def case_rare(model):
    """Two classes, one of them in few rows that lie far off: a whole Newton step of their logistic
    regression goes too far.
    """
    if not model.config["embedder"].get("x", {}).get("logistic"):
        return
    n, few = 300, 6
    x, _, kinds = rows(model, n + 4, 11)
    far = [f for f, kind in enumerate(kinds) if kind == "numeric"]
    x[:few, far] += 4 * np.nanstd(x[:, far], axis=0)
    y = np.where(np.arange(n) < few, 1.0, 0.0)
    encoding = build(model, x[:n], y, whole_prefix(model, n), kinds, 2)
    assert encoding.statistics.tokeniser.logistics[0].shortest < 1
    yield Case("a rare class",
               {**request(x[:n], y, kinds, "whole", queries=cells(x[n - 2:])), "classes": 2},
               predictions(encoding, x[n - 2:]))


def case_lean(model):
    """Classes that planes tell apart but for some noise, so that a head that takes a share of the
    logistic regression takes much of it; joint questions.
    """
    if not model.config["head"].get("logistic"):
        return
    classes, n, m, many = 3, 60, 6, 100    # more rows at once than one tile has
    x, _, kinds = rows(model, n + many, 13)
    y = np.digitize(
        np.argsort(
            np.argsort(x[:, 2] + np.minimum(x[:, 5], 3) + 0.5 * np.sin(np.arange(n + many))))
            / (n + many), [0.4, 0.7]).astype(float)
    prefix = middle(model, n)
    encoding = build(model, x[:n], y[:n], prefix, kinds, classes)
    assert 0.2 < encoding.share() / model.config["head"]["logistic"] < 0.95
    asked = x[n:n + m]
    # those at the ends of a vector and of a tile; of the others any number is taken
    looked_at = [i for i in range(many) if i % 16 in (0, 1, 15) or i >= 94]
    conditionals = np.nan_to_num(encoding.conditionals(x[n:], y[n:], looked_at))
    error = np.where(np.isin(np.arange(many), looked_at), LOG_DENSITY, np.inf)
    yield Case("a share of the regression",
               {**request(x[:n], y[:n], kinds, prefix, queries=cells(asked),
                          score=table(x[n:], y[n:]),
                          sample={**table(asked), "draws": 20, "seed": 3}), "classes": classes},
               {**predictions(encoding, asked), "per_row": (conditionals, error),
                "draws": (encoding.sample(asked, 3, 20), 0)})


def case_trees(model):
    """Classes that steps of two columns tell apart, which regressions do not see: a head that takes
    a share of trees takes much of it. Two classes have one score. Trees are silent about rows with
    a cell that no row of the prefix has, in a column of few values.
    """
    if not model.config["head"].get("trees") or "classes" not in model.config["head"]:
        return
    for classes, n in ((3, 600), (2, 512)):
        x, _, kinds = rows(model, n + 8, 17)
        x[:, 2] = np.round(4 * x[:, 2])
        x[n:n + 2, 2] = 1e3, np.nan
        high = [np.nan_to_num(x[:, f]) > np.nanmedian(x[:, f]) for f in (0, 2)]
        y = (high[0] ^ high[1]).astype(float)
        y[1::7] = np.arange(len(y[1::7])) % classes
        prefix = middle(model, n) if n > 512 else n
        prefix = max(prefix, 512)
        encoding = build(model, x[:n], y[:n], prefix, kinds, classes)
        tokeniser = encoding.statistics.tokeniser
        assert encoding.trees_share() > 0.2 and tokeniser.trees.rounds > 1
        known = [tokeniser.trees.knows(row) for row in x[n:, tokeniser.features]]
        assert not known[0] and any(known), known
        yield Case(f"a share of trees of {classes} classes",
                   {**request(x[:n], y[:n], kinds, prefix, queries=cells(x[n:])),
                    "classes": classes},
                   predictions(encoding, x[n:]))


def case_class_process(model):
    """Classes that two columns tell apart together only, which regressions do not see: a head that
    takes a share of a process takes much of it, of two classes and of three, with missing cells, of
    a few rows and of enough for trees, next to which it may say nothing.
    """
    if not model.config["head"].get("class_process"):
        return
    for classes, n in ((2, 200), (3, 300), (2, 12), (3, 600)):
        x, _, kinds = rows(model, n + 8, 19)
        x[:, [0, 2]] = np.random.RandomState(n).normal(size=(n + 8, 2))
        x[5::40, 0] = np.nan
        a, b = (np.nan_to_num(x[:, f]) for f in (0, 2))
        y = (a * b > 0) + (classes > 2) * (a * a + b * b > 2 * np.mean(a * a))
        y[:classes] = np.arange(classes)
        prefix = n if n < 512 else max(middle(model, n), 512)
        encoding = build(model, x[:n], y[:n].astype(float), prefix, kinds, classes)
        share = encoding.process_share()
        assert share > 0.2 or n in (12, 600), (n, share)
        yield Case(f"a share of a process of {classes} classes, {n} rows",
                   {**request(x[:n], y[:n].astype(float), kinds, prefix, queries=cells(x[n:])),
                    "classes": classes},
                   predictions(encoding, x[n:]))


def case_number_trees(model):
    """Targets that steps of two columns make, which a process smooths: the mean of an answer moves
    to what trees say, of chains as well. A row less than 512 has no trees. Trees are silent about a
    row with a cell that no row of the prefix has, in a column of few values.
    """
    if not model.config["head"].get("trees") or "classes" in model.config["head"]:
        return
    for n in (600, 512, 511):
        x, y, kinds = rows(model, n + 6, 18)
        x[:, 2] = np.round(4 * x[:, 2])
        x[n:n + 2, 2] = 1e3, np.nan
        high = [np.nan_to_num(x[:, f]) > np.nanmedian(x[:, f]) for f in (0, 2)]
        y = 5 - 3.0 * (high[0] ^ high[1]) + 0.3 * y
        encoding = build(model, x[:n], y[:n], n, kinds)
        trees = encoding.statistics.tokeniser.trees
        assert (trees is not None) == (n >= 512), n
        if trees is not None:
            shares = [trees.share(1, row) for row in x[n:, encoding.statistics.tokeniser.features]]
            assert shares[0] == 0 and max(shares) > 0.5, (shares, trees.loss, trees.known)
        asked = x[n:]
        wanted, questions = predictions(encoding, asked), {}
        if n == 600:
            wanted.update(per_row=(encoding.conditionals(asked, y[n:]), LOG_DENSITY),
                          draws=(encoding.sample(asked, 5, 2), DRAWS))
            questions.update(score={**table(asked, y[n:]), "orders": 0},
                             sample={**table(asked), "draws": 2, "seed": 5})
        yield Case(f"trees of {n} numbers",
                   request(x[:n], y[:n], kinds, n, queries=cells(asked), **questions), wanted)


def case_few_values(model):
    """Targets of few values, of which the process knows the mean: with trees and without, of chains
    as well. Where each value comes seldom nothing moves; nor of a row of a new group, with trees.
    """
    if not model.config["head"].get("few_values"):
        return
    for n, unit in ((300, 1.0), (255, 1.0), (600, 1.0), (600, 0.2)):
        random = np.random.RandomState(n)
        x, y, kinds = rows(model, n + 8, 23)
        x[:, 2] = np.round(4 * x[:, 2])
        x[n, 2] = 1e3
        y = unit * np.floor((2 * np.sin(2 * np.nan_to_num(x[:, 0])) + 0.2 * np.nan_to_num(x[:, 2])
                             + 0.3 * random.standard_normal(n + 8)) / unit)
        encoding = build(model, x[:n], y[:n], n, kinds)
        weights = encoding.statistics.tokeniser.few.weights
        assert (weights is not None) == (unit == 1 and n != 255), (n, unit, weights)
        assert weights is None or 0.2 < weights[0] and weights.sum() <= 1 + 1e-9, weights
        wanted = predictions(encoding, x[n:])
        # a row far outside has a density that has no digits left
        scored = x[n + 1:], y[n + 1:]
        wanted["per_row"] = (encoding.conditionals(*scored), LOG_DENSITY)
        yield Case(f"{n} targets of few values, of units of {unit:g}",
                   request(x[:n], y[:n], kinds, n, queries=cells(x[n:]),
                           score={**table(*scored), "orders": 0}), wanted)


def case_rare_targets(model):
    """Targets of which most are one value and few lie far from it: above, below, on both sides; of
    chains as well. Where no value is that of more than half of them nothing is changed.
    """
    least = model.config["head"].get("rare")
    if not least:
        return
    for n, above, below, many in ((260, 3, 0, False), (130, 0, 1, False), (600, 2, 3, False),
                                  (260, 3, 0, True)):
        random = np.random.RandomState(n + below)
        x, y, kinds = rows(model, n + 8, 29)
        y = np.full(n + 8, 7.0)
        y[5:5 + above] = 40 + 3 * random.standard_normal(above)
        y[20:20 + below] = -30 - 2 * random.standard_normal(below)
        y[n:] = 7, 41, -30, 20, 7, 7, 7, 7
        if many:
            y[30:30 + n // 2] += 0.1
        encoding = build(model, x[:n], y[:n], n, kinds)
        found = encoding.statistics.tokeniser.rare
        assert len(found) == (0 if many else (above > 0) + (below > 0)), (n, found)
        wanted = predictions(encoding, x[n:])
        wanted["per_row"] = (encoding.conditionals(x[n:], y[n:]), LOG_DENSITY)
        yield Case(f"{n} targets, {above} far above and {below} below, {'many' if many else 'few'}",
                   request(x[:n], y[:n], kinds, n, queries=cells(x[n:]),
                           score={**table(x[n:], y[n:]), "orders": 0}), wanted)


def case_levels(model):
    """Targets of few values, of many, and of few rows for each; of chains as well. What a line says
    for certain stays.
    """
    narrow = model.config["head"].get("levels")
    if not narrow:
        return
    for n, values, exact in ((40, 2, False), (90, 3, False), (300, 5, False), (200, 30, False),
                             (90, 3, True)):
        x, y, kinds = rows(model, n + 8, 43)
        y = 10 - 2.5 * np.random.RandomState(n + values).randint(0, values, n + 8)
        if exact:
            x[:, kinds.index("numeric")] = (y - 10) / 2.5
        encoding = build(model, x[:n], y[:n], n, kinds)
        found = encoding.statistics.tokeniser.levels
        assert (found is not None) == (values < 30), (n, values, found)
        wanted = predictions(encoding, x[n:])
        wanted["per_row"] = (encoding.conditionals(x[n:], y[n:]), LOG_DENSITY)
        model.config["head"]["levels"] = 0
        plain = build(model, x[:n], y[:n], n, kinds).predict(x[n:])
        model.config["head"]["levels"] = narrow
        moved = max(np.abs(a.means - b.means).max()
                    for a, b in zip(encoding.predict(x[n:]), plain))
        assert (moved > 1e-3) == (values < 30 and not exact), (n, values, exact, moved)
        yield Case(f"{n} targets of {values} values, {'exact' if exact else 'noise'}",
                   request(x[:n], y[:n], kinds, n, queries=cells(x[n:]),
                           score={**table(x[n:], y[n:]), "orders": 0}), wanted)


def case_behind(model):
    """Rows behind the prefix, which the gate counts up to 512 of: those that are asked about, and
    those before a row of a chain or of evidence.
    """
    if not model.config["head"].get("process_behind") or model.context == "full":
        return
    for prefix, n in ((16, 16), (16, 17), (30, 48), (12, 524), (12, 540)):
        x, y, kinds = rows(model, n + 6, 44)
        encoding = build(model, x[:n], y[:n], prefix, kinds)
        wanted = predictions(encoding, x[n:])
        wanted["per_row"] = (encoding.conditionals(x[n:], y[n:]), LOG_DENSITY)
        model.config["head"]["process_behind"] = False
        gate = model.tensors["head.gate.0.weight"]
        model.tensors["head.gate.0.weight"] = gate[:, :-1]
        plain = build(model, x[:n], y[:n], prefix, kinds).predict(x[n:])
        model.tensors["head.gate.0.weight"] = gate
        model.config["head"]["process_behind"] = True
        moved = max(np.abs(a.weights - b.weights).max()
                    for a, b in zip(encoding.predict(x[n:]), plain))
        assert (moved > 1e-4) == (n > prefix) and (n > prefix or moved == 0), (prefix, n, moved)
        yield Case(f"a prefix of {prefix} of {n} rows",
                   request(x[:n], y[:n], kinds, prefix, queries=cells(x[n:]),
                           score={**table(x[n:], y[n:]), "orders": 0}), wanted)


def case_far_cells(model):
    """Columns with numbers that stand for missing ones, with one that is too large, and with a
    group of its own far away, which stays; rows asked about and later ones have such cells, too.
    """
    if not model.config["inputs"].get("far"):
        return
    for n in (70, 600):
        random = np.random.RandomState(n)
        x, y, kinds = rows(model, n + 8, 31)
        numbers = [f for f, kind in enumerate(kinds) if kind == "numeric"]
        drawn = random.standard_normal((n + 8, 3))
        drawn[random.permutation(n + 8)[:n // 12], 0] = -999
        drawn[n + 1, 0] = -999
        drawn[[7, n + 2], 1] = 1e6, 1e300
        drawn[random.permutation(n)[:n // 10], 2] += 1e4
        x[:, numbers[:3]] = drawn[:, :len(numbers[:3])]
        classes = {}
        if "classes" in model.config["head"]:
            y, classes = (y > np.median(y)).astype(float), {"classes": 2}
        encoding = build(model, x[:n], y[:n], n, kinds, classes.get("classes"))
        found = np.isnan(encoding.x[:, numbers[:3]]).sum(axis=0)
        assert found[0] >= n // 12 - 8 and found[1] == 1 and found[2] == 0, found
        wanted = predictions(encoding, x[n:])
        scored = x[n:n + 3], y[n:n + 3]
        wanted["per_row"] = (encoding.conditionals(*scored), LOG_DENSITY)
        yield Case(f"{n} rows with far cells",
                   {**request(x[:n], y[:n], kinds, n, queries=cells(x[n:]),
                              score={**table(*scored), "orders": 0}), **classes}, wanted)


def case_far_targets(model):
    """Targets that are too large by far, in the context, among later rows and in chains; two of
    them, and one among events, where most targets are one value.
    """
    if not model.config["target"].get("far"):
        return
    for n, wrong, kept in ((40, 1, 0), (300, 2, 0), (600, 3, 1), (300, 1, 250)):
        random = np.random.RandomState(n + kept)
        x, y, kinds = rows(model, n + 8, 37)
        y[:kept] = 1.5
        at = n - 1 - random.permutation(n - kept)[:wrong]
        limit = np.max(np.abs(np.delete(y[:n], at) - np.median(y[:n])))
        y[at] = 15 * (1 + random.random_sample(wrong)) * limit * (-1) ** np.arange(wrong)
        y[n + 1] = -6 * limit
        moved = near_targets(model.config, y[:n])(y)
        assert list(np.flatnonzero(moved != y)) == sorted(at) + [n + 1], (n, at)
        encoding = build(model, x[:n], y[:n], n, kinds)
        wanted = predictions(encoding, x[n:])
        scored = x[n:n + 4], y[n:n + 4]
        wanted["per_row"] = (encoding.conditionals(*scored), LOG_DENSITY)
        yield Case(f"{n} rows, {wrong} with far targets",
                   request(x[:n], y[:n], kinds, n, queries=cells(x[n:]),
                           score={**table(*scored), "orders": 0}), wanted)
        later = encoding.append(x[n:n + 3], y[n:n + 3])
        yield Case(f"{n} rows and three later ones, one of them with a far target",
                   request(x[:n + 3], y[:n + 3], kinds, n, queries=cells(x[n + 3:])),
                   predictions(later, x[n + 3:]))
        # a flag that foretells them, one that another row has, too, and those that one of them or
        # most others lack; targets that are too far for that
        most = np.setdiff1d(np.arange(n), at)[:n // 2 + 1]
        for flagged, lacking, times in ((at, [], 1), ([*at, 2], [], 1), (at, at[:1], 1),
                                        (at, most, 1), (at, [], 8)):
            told, number, farther = x.copy(), kinds.index("numeric"), y.copy()
            told[:, number] = 0
            told[flagged, number], told[n::2, number], told[lacking, number] = 1, 1, np.nan
            farther[at] *= times
            moved = near_targets(model.config, farther[:n], told[:n])(farther)
            assert np.any(moved != farther) == (len(flagged) > wrong or len(lacking) > 0
                                                or times > 1), n
            yield Case(f"{n} rows, {wrong} with far targets and a flag of {len(flagged)} rows, "
                       f"{len(lacking)} lack it, {times} times as far",
                       request(told[:n], farther[:n], kinds, n, queries=cells(told[n:])),
                       predictions(build(model, told[:n], farther[:n], n, kinds), told[n:]))


def case_lacking(model):
    """Rows that lack a cell and have other targets for it, more or fewer of them, and rows that do
    so to be asked about; numbers as targets, in clumps, and levels, and nothing but the shift.
    """
    if (not model.config["embedder"].get("x", {}).get("donors") or model.context == "causal"
            or "classes" in model.config["head"]):
        return
    for n, lack, kind in ((60, 1, "numbers"), (60, 9, "numbers"), (200, 20, "clumps"),
                          (200, 3, "levels"), (200, 20, "exact")):
        random = np.random.RandomState(n + lack)
        x, y, kinds = rows(model, n + 8, 41)
        own = random.standard_normal(n + 8)
        f = kinds.index("numeric")
        x[:, f] = own
        y = {"numbers": own + 0.1 * y / np.std(y), "levels": np.round(2 * own), "exact": 0 * own,
             "clumps": np.round(own) + 0.01 * random.standard_normal(n + 8)}[kind]
        x[:lack, f] = np.nan
        y[:lack] += 5
        x[n:n + 6, f] = np.nan
        encoding = build(model, x[:n], y[:n], n, kinds)
        wanted = predictions(encoding, x[n:])
        yield Case(f"{n} rows, {lack} without a cell, {kind}",
                   request(x[:n], y[:n], kinds, n, queries=cells(x[n:])), wanted)


def case_new_labels_of_classes(model):
    """Rows with labels that the prefix does not have, one or two of them, and without a cell; a
    class that the prefix lacks.
    """
    if (not model.config["embedder"].get("x", {}).get("donors") or model.context == "causal"
            or "classes" not in model.config["head"]):
        return
    for n, labels in ((40, 2), (150, 7)):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 6, 5))
        x[:, 1], x[:, 2] = random.randint(0, labels, (2, n + 6))
        y = (x[:, 1] % 2 + (x[:, 0] + x[:, 2] > 1)).astype(float)
        x[n:n + 2, 1] = x[n + 1:n + 4, 2] = 99
        x[n + 3, 0] = np.nan
        x[:, 4] = 3 * x[:, 1] + 1       # another name for the same
        kinds = ["numeric", "categorical", "categorical", "numeric", "categorical"]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds, 4)
        yield Case(f"{labels} labels and new ones",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:]), classes=4),
                   predictions(encoding, x[n:]))


def case_related(model):
    """Cells that others tell of: a sum, a label, steps, a curve and one of which nothing tells;
    queries that lack one of these, or several, from a context that is whole or not.
    """
    classes = 2 if "classes" in model.config["head"] else 0
    if not model.config["embedder"].get("x", {}).get("donors") or model.context == "causal":
        return
    for n, lack in ((40, 0), (200, 0.06), (300, 0)):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 16, 7))
        x[:, 2] = 2 * x[:, 0] - x[:, 1] + 0.1 * x[:, 2]
        x[:, 3] = np.searchsorted([-0.6, 0.5], x[:, 0] + 0.1 * x[:, 3])
        x[:, 4] = np.round(2 * x[:, 1])
        x[:, 5] = x[:, 6] ** 2 + 0.1 * x[:, 5]
        y = x[:, 2] + x[:, 3] + x[:, 4] + x[:, 5] + 0.1 * random.standard_normal(n + 16)
        y = (y > np.median(y)).astype(float) if classes else y
        x[:n][random.uniform(size=(n, 7)) < lack] = np.nan
        for i, cells_lacking in enumerate(([0], [1], [2], [3], [4], [5], [6], [2, 3], [0, 2],
                                           [3, 4, 5], [0, 1, 2, 3], [2, 4, 5, 6])):
            x[n + i, cells_lacking] = np.nan
        # a line follows a number wherever it is, to where tolerances are none
        far = 40 if model.config["embedder"]["x"].get("line") else 1e300
        x[n + 12, 3], x[n + 13, 3], x[n + 13, 2], x[n + 14, 2] = 9, 9, np.nan, far
        kinds = ["categorical" if f == 3 else "numeric" for f in range(7)]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds, classes or None)
        more = {"classes": classes} if classes else {}
        yield Case(f"{n} rows with related cells, {lack} of them missing",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:]), **more),
                   predictions(encoding, x[n:]))


def case_lacking_several(model):
    """Rows that lack several cells, each of which shifts the target, and queries that lack some of
    these, all of them, and unknown labels beside them.
    """
    if not model.config["embedder"].get("x", {}).get("shift"):
        return
    for n, share in ((48, 0.2), (300, 0.1)):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 10, 12))
        x[:, 2], x[:, 3] = random.randint(0, 4, (2, n + 10))
        y = x[:, 0] + np.sin(x[:, 1]) + 0.5 * x[:, 2] + 0.2 * random.standard_normal(n + 10)
        lacks = random.uniform(size=x.shape) < share
        lacks[:, 5] &= lacks[:, 4]
        lacks[:, 11] = False
        lacks[n:n + 3, 1:11] = True
        y += lacks @ np.array([0.5, 1, -1, 2, 0, 1, 0, 3, 0, -2, 0.3, 0])
        x[lacks] = np.nan
        x[n + 4, 3] = 9
        kinds = ["categorical" if f in (2, 3) else "numeric" for f in range(12)]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        mean, sd = moments(encoding.predict(x[n:]))
        yield Case(f"{n} rows without several cells",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   {"mean": (mean, 5 * MOMENTS), "sd": (sd, 5 * MOMENTS)})


def case_lacking_by_value(model):
    """A label and a number that are missing for what they would have said, so that rows that lack
    them stay as they are; beside them another number, missing by chance.
    """
    if not model.config["embedder"].get("x", {}).get("shift"):
        return
    for n in (150, 400):
        random = np.random.RandomState(n)
        x = random.standard_normal((n + 12, 5))
        x[:, 2], x[:, 3] = random.randint(0, 5, n + 12), random.randint(0, 2, n + 12)
        labels = np.array([2.5, 0, 0.2, -1, -2])[x[:, 2].astype(int)]
        y = np.where(x[:, 3] > 0, 1, -1) * (labels + np.maximum(x[:, 1], 0))
        y += 0.2 * x[:, 0] + 0.1 * random.standard_normal(n + 12)
        lacks = random.uniform(size=x.shape) < 0.08
        lacks[:, 2] = (x[:, 2] == 0) & (random.uniform(size=n + 12) < 0.9)
        lacks[:, 1] = (x[:, 1] > 1.2) & (random.uniform(size=n + 12) < 0.9)
        lacks[:, [0, 3]] = False
        lacks[n:n + 2, 2], lacks[n + 1:n + 4, 4], lacks[n + 3:n + 5, 1] = True, True, True
        x[lacks] = np.nan
        x[n + 5, 2] = 9
        x[n + 6, [1, 2]] = np.nan, 9
        kinds = ["categorical" if f in (2, 3) else "numeric" for f in range(5)]
        encoding = build(model, x[:n], y[:n], whole_prefix(model, n), kinds)
        assert encoding.statistics.donors.kept == [2, 1]
        mean, sd = moments(encoding.predict(x[n:]))
        yield Case(f"{n} rows without cells by what they say",
                   request(x[:n], y[:n], kinds, "whole", queries=cells(x[n:])),
                   {"mean": (mean, 5 * MOMENTS), "sd": (sd, 5 * MOMENTS)})


def case_no_share(model):
    """Classes that have nothing to do with the rows: the regression is worse than chance, and the
    head takes none of it.
    """
    if not model.config["head"].get("logistic"):
        return
    n, m = 60, 5
    x, _, kinds = rows(model, n + m, 13)
    y = np.random.RandomState(5).randint(0, 3, n).astype(float)
    encoding = build(model, x[:n], y, whole_prefix(model, n), kinds, 3)
    assert encoding.statistics.tokeniser.logistics[0].quality < 0 and encoding.share() == 0
    yield Case("no share of a regression that knows nothing",
               {**request(x[:n], y, kinds, "whole", queries=cells(x[n:])), "classes": 3},
               predictions(encoding, x[n:]))


def check_classes(tap, model, tool, kernels, label):
    """Targets that are no classes, and more classes than there is room for, are refused."""
    room = model.config["head"].get("classes")
    if room is None:
        return
    x, y, kinds = rows(model, 12, 4)
    good = {**request(x[:10], np.minimum(y[:10], 1), kinds, "whole", queries=cells(x[10:])),
            "classes": 2}
    bad = [{**request(x[:10], np.where(np.arange(10) == 3, wrong, y[:10] % 2), kinds, "whole"),
            "classes": 2} for wrong in (0.5, -1, 2, np.nan)]
    bad += [{**good, "classes": room + 1}, {**good, "classes": -1},
            {**good, "append": [table(x[10:11], [2])]},
            {**good, "score": table(x[10:], [0, 2])}]
    answers = [tool.ask(kernels=kernels, **one) for one in bad]
    tap.ok("error" not in tool.ask(kernels=kernels, **good)
           and all("class" in a.get("error", {}).get("message", "") for a in answers), label,
           *answers)


def check_batches(tap, model, tool, kernels, label):
    """A query's answer does not depend on its batch, bit by bit."""
    x, y, kinds = rows(model, 40, 12)
    some = (0, 1, 3, 4, 7, 8, 15, 16, 19)           # and so each place of a vector, and its ends
    ask = lambda queries: tool.ask(kernels=kernels,
                                   **request(x[:20], y[:20], kinds, "whole",
                                             queries=cells(queries)))["params"]
    together = ask(x[20:])
    alone = [ask(x[20 + i:21 + i])[0] for i in some]
    tap.ok([together[i] for i in some] == alone, label)


def check_canonical(tap, model, tool, kernels, label):
    """Where the canonical prefix ends, and that the encoding has it."""
    wrong = []
    x, y, kinds = rows(model, start(model) + 19, 3)
    for n in range(start(model), start(model) + 20):
        answer = tool.ask(kernels=kernels, **request(x[:n], y[:n], kinds, "canonical"))
        if answer != {"rows": n, "prefix": canonical_prefix(model, n)}:
            wrong.append(f"{n} rows: {answer} instead of prefix {canonical_prefix(model, n)}")
    tap.ok(not wrong, label, *wrong)


def check_refusals(tap, model, tool, kernels, label):
    """Too few rows, and values that are no numbers, are refused with a message."""
    x, y, kinds = rows(model, 12, 4)
    missing = y[:10].copy()
    np.ravel(missing)[3 * model.targets] = np.nan
    bad = [request(x[:10], missing, kinds, "whole", queries=cells(x[10:]))]
    if model.targets > 1:
        bad.append(request(x[:10], y[:10, 1:], kinds, "whole", queries=cells(x[10:])))
    if model.min_rows > 0:
        few = model.min_rows - 1
        bad.append(request(x[:few], y[:few], kinds, "whole", queries=cells(x[10:])))
    if not model.takes_any_columns and not model.is_sums:
        bad.append(request(np.where(np.arange(12)[:, None] == 3, np.nan, x)[:10], y[:10], kinds,
                           "whole", queries=cells(x[10:])))
    if not model.has_tokeniser:
        bad.append(request(np.concatenate([x, x], axis=1)[:10], y[:10], kinds, "whole",
                           queries=cells(x[10:])))
    infinite = request(x[:10], y[:10], kinds, "whole", queries=cells(x[10:]))
    infinite["queries"][1][0] = "inf"
    bad.append(infinite)
    answers = [tool.ask(kernels=kernels, **one) for one in bad]
    tap.ok(all(answer.get("error", {}).get("message") for answer in answers), label, *answers)


CASES = (case_sizes, case_constant, case_unit, case_middle, case_each_target, case_wide, case_power,
         case_split, case_noise, case_judged, case_pairs, case_process, case_process_ties,
         case_tied_labels, case_process_directions, case_process_groups, case_process_pair,
         case_process_additive, case_process_share_start, case_nearest, case_line, case_labels,
         case_directions, case_short, case_grow, case_evidence, case_classes, case_class_order,
         case_one_class, case_rare, case_lean, case_trees, case_class_process, case_number_trees,
         case_few_values, case_rare_targets, case_levels, case_behind, case_far_cells,
         case_far_targets, case_lacking, case_lacking_several, case_lacking_by_value, case_related,
         case_new_labels_of_classes, case_no_share)


def main():
    options = arguments(__doc__.split("\n\n")[0])
    tap = Tap()
    self_test()
    floats, halves = other_tables(tap, options.tool)
    with MadeModels(options.models) as folder:
        for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
            name = os.path.splitext(os.path.basename(path))[0]
            if options.only not in name or name.startswith("transparent"):
                continue
            model = Model.open(path)
            with Tool(options.tool, path) as tool:
                for make in CASES:
                    for case in make(model):
                        for kernels in KERNELS:
                            case.check(tap, tool, kernels, f"{name}, {kernels}: {case.name}")
                        for kernels in floats + halves if name in FEW else ():
                            case.check(tap, tool, kernels, f"{name}, {kernels}: {case.name}",
                                       kernels in halves)
                for kernels in KERNELS:
                    check_batches(tap, model, tool, kernels,
                                  f"{name}, {kernels}: each query as alone")
                    check_canonical(tap, model, tool, kernels,
                                    f"{name}, {kernels}: canonical prefix")
                    check_classes(tap, model, tool, kernels,
                                  f"{name}, {kernels}: classes that are none")
                    check_refusals(tap, model, tool, kernels, f"{name}, {kernels}: refusals")
    tap.done()


if __name__ == "__main__":
    main()
