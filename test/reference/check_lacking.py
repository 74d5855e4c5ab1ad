"""Queries that lack cells, of the bundled models with donors (docs/model-format.md section 5).

Over made-up tables that no choice was made by, with 64 and 256 rows, of which none, 2, 5 or 20 % of
the cells are missing: whatever a query lacks, the 90 % intervals of `tabular` hold 85 to 95 % of
the targets, and `tabular_class` is right as often as it says within 5 points; both are better than
the same weights without donors, in log density and log loss. So it is with rows of a label that the
context does not have (10 points of classes, where few labels tell little of one more); where such a
label stands for one that the context has, intervals hold to 98 %, and classes are right up to 8
points more often.
Where a missing cell shifts the target of its row, and from one row to 15 % of the context lack it,
the intervals hold 84 to 96 %, and densities are better than without `shift`: over three times as
many tables, for what is learnt of a shift from one row is right or wrong for all queries of a
table. So do they where two cells that rows lack each shift the target, by themselves, together or
one only with the other, and where the cell of the column that says most of a bent function does.
Where 10 to 16 rows have a number, all of them another one, and queries lack it, intervals hold 78
to 97 %. For one query, a density of one row is that of the marginal answer, and draws have its
mean. A model that is not there is skipped.

SPDX-License-Identifier: PostgreSQL
"""
import itertools
import os
import tempfile

import numpy as np

from check_bundled import cdf, mixture
from checking import HERE, Tap, Tool, arguments, cells, table
from safetensors_io import read_model, write_model

SIZES, SHARES, QUERIES, REPEATS, UNKNOWN = (64, 256), (0, 0.02, 0.05, 0.2), 24, 2, 2.0 ** 40
DRAWS, SHIFTS = 4000, (0.6, 1.2)


def one_hot_effect(random, label, spread):
    return spread * random.standard_normal(label.max() + 1)[label]


def shifted(random, x, label, flag):
    """A linear function that a label and a flag shift."""
    weights = random.standard_normal(x.shape[1]) * (random.uniform(size=x.shape[1]) < 0.7)
    return x @ weights + one_hot_effect(random, label, 1.5) + 1.2 * flag


def bent(random, x, label, flag):
    """Each label has a curve of its own, a flag turns another round."""
    slopes = random.standard_normal(label.max() + 1)[label]
    return slopes * np.sin(1.5 * x[:, 0]) + (2 * flag - 1) * x[:, 1] + 0.5 * np.abs(x[:, 2])


def paired(random, x, label, flag):
    """Products, and steps that a label allows."""
    allowed = random.uniform(size=label.max() + 1)[label] < 0.6
    return x[:, 0] * x[:, 1] + 1.5 * allowed * (x[:, 2] > 0) + 0.7 * flag * x[:, 0]


def told(random, x, label, flag):
    """The number before the last is nearly told by the first: a query that lacks it can guess."""
    x[:, -1] = 0.9 * x[:, 0] + 0.3 * x[:, -1]
    return x[:, -1] + 0.5 * x[:, 1] ** 2 + one_hot_effect(random, label, 1.0) + 0.5 * flag


FAMILIES = [shifted, bent, paired, told]


def made_table(random, family, n):
    """x [n, 6] (four numbers, a flag, a label), kinds, y [n]."""
    x, levels = random.standard_normal((n, 4)), random.randint(3, 7)
    label = random.choice(levels, n, p=random.dirichlet(np.full(levels, 3.0)))
    flag = random.randint(0, 2, n)
    y = family(random, x, label, flag.astype(float))
    y = (y - y.mean()) / y.std() + 0.2 * random.standard_normal(n)
    # different ones; a choice among a million would shuffle all of them for each table
    identity = 10.0 ** 5 * random.permutation(levels) + random.randint(0, 10 ** 5, levels)
    kinds = ["numeric"] * 5 + ["categorical"]
    return np.column_stack([x, flag, identity[label]]), kinds, 10 ** random.uniform(-2, 3) * y


def without(random, x, what):
    """The rows without some of their cells."""
    x, every = x.copy(), np.arange(len(x))
    if what == "several":
        gone = random.uniform(size=x.shape) < 0.4
        gone[every, random.randint(0, x.shape[1], len(x))] = True
        gone[every, random.randint(0, x.shape[1], len(x))] = False
        x[gone] = np.nan
    elif what == "large ones":
        largest = np.argmax(x[:, :4], axis=1)
        x[every, largest] = np.nan
    else:
        column = {"label": 5, "unknown label": 5, "flag": 4, "number": random.randint(0, 4, len(x))}
        x[every, column[what]] = UNKNOWN if what == "unknown label" else np.nan
    return x


WHAT = ("label", "unknown label", "flag", "number", "several", "large ones")


def questions(seed):
    """(rows of a context, their kinds and targets, and what is asked: lists of what is lacking,
    queries, their targets).
    """
    for index, family in enumerate(FAMILIES):
        for n in SIZES:
            for share in SHARES:
                for repeat in range(REPEATS):
                    random = np.random.RandomState([seed, index, n, int(100 * share), repeat])
                    x, kinds, y = made_table(random, family, n + QUERIES)
                    context = np.where(random.uniform(size=(n, x.shape[1])) < share, np.nan, x[:n])
                    yield context, kinds, y[:n], [(what, without(random, x[n:], what), y[n:])
                                                  for what in WHAT]


def new_label_questions(seed):
    """The same of rows with a label that no row of the context has."""
    ways = itertools.product(range(len(FAMILIES)), SIZES, SHARES, range(3 * REPEATS))
    for index, n, share, repeat in ways:
        random = np.random.RandomState([seed, index, n, int(100 * share), repeat])
        x, kinds, y = made_table(random, FAMILIES[index], 3 * n + 40 * QUERIES)
        label, count = np.unique(x[:, 5], return_counts=True)
        new = x[:, 5] == random.choice(label[count >= QUERIES])
        known, asked = np.where(~new)[0][:n], np.where(new)[0][:QUERIES]
        context = np.where(random.uniform(size=(n, x.shape[1])) < share, np.nan, x[known])
        yield context, kinds, y[known], [("new label", x[asked], y[asked])]


def ask(tool, asked, **context):
    """Parameters of the answers to all that is asked about a context, in one request: it is encoded
    once.
    """
    answers = iter(tool.ask(kernels="cpu", queries=cells(np.concatenate([x for _, x, _ in asked])),
                            **context)["params"])
    return [list(itertools.islice(answers, len(x))) for _, x, _ in asked]


def compared(tool, bare, questions):
    """By what a question is about: whether the 90 % interval holds each target, and by how much
    its log density is better than that of the bare model.
    """
    held, gained = {}, {}
    for x, kinds, y, asked in questions:
        both = [ask(one, asked, kinds=kinds, context=table(x, y)) for one in (tool, bare)]
        for (what, _, true), ours, others in zip(asked, *both):
            for params, without, target in zip(ours, others, true):
                m = mixture(params)
                below = np.sum(m.weights * cdf((target - m.means) / m.sds))
                held.setdefault(what, []).append(abs(below - 0.5) < 0.45)
                gained.setdefault(what, []).append(
                    m.log_pdf(target) - mixture(without).log_pdf(target))
    return held, gained


def check_held(tap, name, compared_by, what_of, least, most, gain):
    held, gained = compared_by
    for what, inside in held.items():
        said = f"{100 * np.mean(inside):.1f} % of {len(inside)} targets"
        print(f"# {what_of(what)}: {said}, log density {np.mean(gained[what]):+.3f}")
        # a label that the context does not have may be of a group unlike all others
        limit = most + 0.03 if what == "unknown label" else most
        tap.ok(least <= np.mean(inside) <= limit, f"{name}: 90 % intervals {what_of(what)}",
               f"they hold {said}")
        tap.ok(np.mean(gained[what]) > (0 if what == "unknown label" else gain),
               f"{name}: better {what_of(what)}", np.mean(gained[what]))


def check_intervals(tap, tool, bare, name):
    check_held(tap, name, compared(tool, bare, questions(50)), lambda what: f"without {what}",
               0.85, 0.95, 0.02)
    check_held(tap, name, compared(tool, bare, new_label_questions(51)),
               lambda what: f"of a {what}", 0.85, 0.95, 0.05)


def shifted_questions(seed):
    """The same for a shift: a cell that the queries and some rows lack shifts the targets by so
    many of their deviations.
    """
    for index, n in itertools.product(range(len(FAMILIES)), SIZES):
        for share, shift in itertools.product((1 / n, 0.05, 0.15), SHIFTS):
            random = np.random.RandomState([seed, index, n, int(1000 * share), int(10 * shift)])
            x, kinds, y = made_table(random, FAMILIES[index], n + QUERIES)
            lack = random.permutation(n)[:round(share * n)]
            lack = np.append(lack, np.arange(n, len(x)))
            y[lack] += shift * y.std() * random.choice([-1, 1])
            x[lack, random.choice([4, 5, random.randint(0, 4)])] = np.nan
            yield x[:n], kinds, y[:n], [(shift, x[n:], y[n:])]


def check_shifts(tap, tool, bare, name):
    drawn = itertools.chain.from_iterable(map(shifted_questions, (80, 81, 82)))
    check_held(tap, name, compared(tool, bare, drawn), lambda shift: f"shifted by {shift}", 0.84,
               0.96, 0.1)


def together_questions(seed):
    """Two cells, each of which shifts the target where a row lacks it; queries lack both."""
    ways = itertools.product((64, 256), ((1, 1), (0.6, -1.2)), ("apart", "often", "within"))
    for (n, shifts, how), repeat in itertools.product(ways, range(3)):
        random = np.random.RandomState([seed, n, int(10 * shifts[0]), len(how), repeat])
        x = random.standard_normal((n + 2 * QUERIES, 4))
        y = np.sin(x[:, 0]) + 0.5 * x[:, 3] + 0.3 * random.standard_normal(len(x))
        first, second = (random.uniform(size=(2, len(x))) < 0.2)
        if how == "often":
            second = np.where(random.uniform(size=len(x)) < 0.7, first, second)
        elif how == "within":
            second &= first
            second |= first & (random.uniform(size=len(x)) < 0.5)
        first[n:], second[n:] = True, True
        y += y.std() * (shifts[0] * first + shifts[1] * second)
        x[first, 1], x[second, 2] = np.nan, np.nan
        yield x[:n], ["numeric"] * 4, y[:n], [(how, x[n:], y[n:])]


def telling_questions(seed):
    """A cell that says much and shifts the target where a row lacks it, which queries do."""
    for n, shift, repeat in itertools.product((64, 256), (0.5, 1, -1), range(4)):
        random = np.random.RandomState([seed, n, int(10 * shift) + 10, repeat])
        x = random.standard_normal((n + 2 * QUERIES, 4))
        y = np.sin(1.5 * x[:, 0]) + 0.6 * x[:, 1] + 0.3 * random.standard_normal(len(x))
        lacks = random.uniform(size=len(x)) < 0.2
        lacks[n:] = True
        y[lacks] += shift * y.std()
        x[lacks, 1] = np.nan
        yield x[:n], ["numeric"] * 4, y[:n], [(shift, x[n:], y[n:])]


def few_questions(seed):
    """A number of which few rows tell, and which stands in none of them as the queries' does."""
    for n, repeat in itertools.product((10, 13, 16), range(8)):
        random = np.random.RandomState([seed, n, repeat])
        x = random.standard_normal((n + 2 * QUERIES, 4))
        y = np.sin(1.5 * x[:, 0]) + 0.3 * x[:, 1]
        x[n:, 0] = np.nan
        yield x[:n], ["numeric"] * 4, y[:n], [(n, x[n:], y[n:])]


def check_few(tap, tool, bare, name):
    check_held(tap, name, compared(tool, bare, few_questions(92)),
               lambda n: f"of a number in {n} rows", 0.78, 0.97, -0.3)


def check_together(tap, tool, bare, name):
    check_held(tap, name, compared(tool, bare, together_questions(90)),
               lambda how: f"shifted by two cells, {how}", 0.84, 0.98, 0)
    check_held(tap, name, compared(tool, bare, telling_questions(91)),
               lambda shift: f"without what says most, shifted by {shift}", 0.82, 0.97, -0.05)


def check_probabilities(tap, tool, bare, name):
    said, right, gained = ({what: [] for what in (*WHAT, "new label")} for _ in range(3))
    drawn = itertools.chain(questions(60), new_label_questions(61))
    for number, (x, kinds, y, asked) in enumerate(drawn):
        classes = 2 + number % 3
        cuts = np.quantile(y, np.arange(1, classes) / classes)
        both = [ask(one, asked, kinds=kinds, classes=classes,
                    context=table(x, np.searchsorted(cuts, y))) for one in (tool, bare)]
        for (what, _, true), *answers in zip(asked, *both):
            p, other = map(np.array, answers)
            true = np.searchsorted(cuts, true)
            said[what] += list(p.max(axis=1))
            right[what] += list(p.argmax(axis=1) == true)
            every = np.arange(len(true))
            gained[what] += list(np.log(p[every, true] / other[every, true]))
    for what, points in ((what, {"unknown label": 0.08, "new label": 0.1}.get(what, 0.05))
                         for what in said):
        print(f"# without {what}: says {np.mean(said[what]):.3f}, is {np.mean(right[what]):.3f}, "
              f"log probability {np.mean(gained[what]):+.3f}")
        tap.ok(abs(np.mean(said[what]) - np.mean(right[what])) < points,
               f"{name}: right as often as it says without {what}",
               f"says {np.mean(said[what]):.3f}, is {np.mean(right[what]):.3f}")
        tap.ok(np.mean(gained[what]) > 0.002, f"{name}: donors help without {what}",
               np.mean(gained[what]))


def check_consistent(tap, tool, _, name):
    """Marginal answer, density and draws of one row that lacks a label."""
    x, kinds, y, ((what, asked, true), *_) = next(questions(70))
    one, about = asked[:1], {"kernels": "cpu", "kinds": kinds, "context": table(x, y)}
    assert what == "label"
    answer = tool.ask(**about, queries=cells(one), score=table(one, true[:1]),
                      sample={**table(one), "draws": DRAWS, "seed": 9})
    m = mixture(answer["params"][0])
    tap.ok(abs(m.log_pdf(true[0]) - answer["log_density"]) < 1e-9,
           f"{name}: the density of a row is that of its distribution", answer["log_density"])
    drawn = np.array(answer["draws"])[:, 0]
    tap.ok(abs(drawn.mean() - m.mean()) < 5 * m.sd() / DRAWS ** 0.5
           and abs(drawn.std() / m.sd() - 1) < 0.1,
           f"{name}: draws have its mean and deviation",
           f"{drawn.mean():.4g} and {drawn.std():.4g}, not {m.mean():.4g} and {m.sd():.4g}")
    complete = x[:1].copy()
    complete[np.isnan(complete)] = 0
    told_of = tool.ask(**about, queries=cells(np.concatenate([complete, one])))["params"]
    alone = tool.ask(**about, queries=cells(complete))["params"]
    tap.ok(told_of[0] == alone[0] and told_of[1] == answer["params"][0],
           f"{name}: beside others a row's answer is the same")


# what is compared with the model without these keys of embedder.x
CHECKS = {"tabular": ((check_intervals, ("donors", "shift")), (check_shifts, ("shift",)),
                      (check_together, ("shift",)), (check_few, ("donors", "shift")),
                      (check_consistent, ("shift",))),
          "tabular_class": ((check_probabilities, ("donors",)),)}


def main():
    options = arguments(__doc__.split("\n\n")[0])
    folder = options.models or os.path.join(os.path.dirname(os.path.dirname(HERE)), "models")
    tap = Tap()
    for name, checks in CHECKS.items():
        path = os.path.join(folder, name + ".safetensors")
        if not os.path.exists(path):
            tap.skip(name, "the model is not there")
            continue
        for check, keys in checks:
            with tempfile.TemporaryDirectory() as folder_of_bare:
                bare_path = os.path.join(folder_of_bare, "bare.safetensors")
                config, tensors = read_model(path)
                for key in keys:
                    del config["embedder"]["x"][key]
                write_model(bare_path, config, tensors)
                with Tool(options.tool, path) as tool, Tool(options.tool, bare_path) as bare:
                    check(tap, tool, bare, name)
    tap.done()


if __name__ == "__main__":
    main()
