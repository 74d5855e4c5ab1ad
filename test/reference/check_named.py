"""Numbers and labels that name groups, of the bundled `tabular` (docs/model-format.md section 5,
"Named groups"; section 8, "Joining").

Over made-up tables of which a number names groups that differ by one deviation, beside another
column with an effect: the root mean square error is within a tenth of that of the best answer there
is, which knows all but the groups. The 90 % intervals hold 82 to 98 % of the targets of numbers
that the context has, and as many of those that it does not have, which lie between. Days, which
have a trend and each a shock of its own, are followed: of days that the context does not have,
between and behind its own, the error is that of their shocks within a fifth. Of new labels beside
two to six known ones, which differ by half a deviation to two, 90 % intervals hold 78 to 95 %. A
flag that one row has, with a far target, is believed, and one farther off does not spoil others. A
model that is not there is skipped.

SPDX-License-Identifier: PostgreSQL
"""
import os

import numpy as np

from check_bundled import cdf
from checking import HERE, Tap, Tool, arguments, cells, table

WAYS, QUERIES, REPEATS, NOISE = ((10, 64), (20, 128), (50, 500), (80, 256)), 60, 5, 0.3


def panel(groups, n, seed, trend=0.0):
    """x [n + 2 * QUERIES, 3], y, and the best answer given all but the effects of the groups: the
    last QUERIES rows are of groups that the others are not of. With a trend groups are days, and
    the new ones the last fifth of all and others between.
    """
    random = np.random.RandomState([groups, n, seed])
    new = random.choice(groups, groups // 2, replace=False)
    if trend:
        new = np.unique(np.append(new[:groups // 5], np.arange(groups - groups // 5, groups)))
    old = np.setdiff1d(np.arange(groups), new)
    names = np.arange(groups) if trend else random.choice(40 * groups, groups, replace=False)
    effects = random.standard_normal(groups)
    which = np.append(random.choice(old, n + QUERIES), random.choice(new, QUERIES))
    x = random.standard_normal((len(which), 3))
    x[:, 1] = names[which]
    rest = x[:, 0] + trend * which / groups
    y = effects[which] + rest + NOISE * random.standard_normal(len(which))
    known = np.array([[np.sum(which[:n] == g), np.sum((y - rest)[:n][which[:n] == g])]
                      for g in range(groups)])
    best = known[:, 1] / (known[:, 0] + NOISE ** 2)
    return x, y, best[which] + rest


def scores(tool, x, y, n, first="numeric"):
    """Means [queries] and whether the 90 % intervals hold the targets."""
    said = tool.ask(kernels="cpu", kinds=[first, "numeric", "numeric"],
                    context=table(x[:n], y[:n]), queries=cells(x[n:]))
    weights, means, sds = np.split(np.array(said["params"]), 3, axis=1)
    below = np.sum(weights * cdf((y[n:, None] - means) / sds), axis=1)
    return np.sum(weights * means, axis=1), abs(below - 0.5) < 0.45


def check_panels(tap, tool):
    held, held_new = [], []
    for groups, n in WAYS:
        ours, best = [], []
        for seed in range(REPEATS):
            x, y, answer = panel(2 * groups, n, seed)
            mean, inside = scores(tool, x, y, n)
            ours.append(np.mean((mean - y[n:])[:QUERIES] ** 2))
            best.append(np.mean((answer - y)[n:n + QUERIES] ** 2))
            held.append(np.mean(inside[:QUERIES]))
            held_new.append(np.mean(inside[QUERIES:]))
        error, least = np.sqrt(np.mean(ours)), np.sqrt(np.mean(best))
        print(f"# {groups} groups, {n} rows: error {error:.3f}, of the best answer {least:.3f}")
        tap.ok(error < 1.1 * least, f"{groups} groups in {n} rows are told apart",
               f"{error:.3f} and {least:.3f}")
    for name, share in (("known", np.mean(held)), ("new", np.mean(held_new))):
        print(f"# {name} groups: {share:.3f}")
        tap.ok(0.82 <= share <= 0.98, f"90 % intervals hold targets of {name} groups", f"{share}")


def check_days(tap, tool):
    ours, shocks = [], []
    for seed in range(3 * REPEATS):
        x, y, rest = panel(60, 300, seed, 6.0)
        mean, _ = scores(tool, x, y, 300)
        ours.append(np.mean((mean - y[300:])[QUERIES:] ** 2))
        shocks.append(np.mean((y - rest)[-QUERIES:] ** 2))
    error, shock = np.sqrt(np.mean(ours)), np.sqrt(np.mean(shocks))
    print(f"# new days: error {error:.3f}, shocks {shock:.3f}")
    tap.ok(error < 1.2 * shock, "days that the context does not have follow the trend",
           f"{error:.3f} and {shock:.3f}")


def check_new_labels(tap, tool):
    held = []
    for known, n in ((2, 40), (2, 200), (3, 40), (3, 200), (6, 40), (6, 200)):
        for seed in range(4 * REPEATS):
            random = np.random.RandomState([known, n, seed])
            effects = random.standard_normal(known + 1) * random.choice([0.5, 1, 2])
            which = np.append(random.randint(0, known, n), np.full(10, known))
            x = random.standard_normal((n + 10, 3))
            x[:, 0] = which
            y = effects[which] + x[:, 1] + 0.5 * random.standard_normal(n + 10)
            held.append(np.mean(scores(tool, x, y, n, "categorical")[1]))
    print(f"# new labels: {np.mean(held):.3f}")
    tap.ok(0.78 <= np.mean(held) <= 0.95, "90 % intervals hold targets of new labels",
           f"{np.mean(held)}")


def check_flags(tap, tool):
    """One row of 30 or 60 that a flag tells from others, with a far target, or one so far that all
    others would be one.
    """
    missed, held, usual = [], [], []
    for n, seed in [(n, seed) for n in (30, 60) for seed in range(2 * REPEATS)]:
        random = np.random.RandomState([n, seed])
        x = random.standard_normal((n + 10, 3))
        x[:, 2] = 0
        x[[random.randint(n), *range(n, n + 10)], 2] = 1
        y = 100 + 2 * x[:, 0] + random.standard_normal(n + 10)
        event = x[:, 2] * (1 + 0.1 * random.standard_normal(n + 10))
        mean, inside = scores(tool, x, y + 80 * event, n)
        missed.append(np.mean(abs(mean - (y + 80 * event)[n:])) / 80)
        held.append(np.mean(inside))
        x[n:, 2] = 0
        usual.append(np.mean(scores(tool, x, np.append((y + 1e3 * event)[:n], y[n:]), n)[1]))
    print(f"# rows with the flag: off by {np.mean(missed):.2f}, held {np.mean(held):.2f}")
    tap.ok(np.mean(missed) < 0.4 and np.mean(held) > 0.85, "a flag foretells a far target",
           f"{np.mean(missed)} and {np.mean(held)}")
    print(f"# rows without, beside one 1,000 deviations away: held {np.mean(usual):.2f}")
    tap.ok(0.82 <= np.mean(usual) <= 0.98, "others stay as they are", f"{np.mean(usual)}")


def main():
    options = arguments(__doc__.split("\n\n")[0])
    folder = options.models or os.path.join(os.path.dirname(os.path.dirname(HERE)), "models")
    path, tap = os.path.join(folder, "tabular.safetensors"), Tap()
    if os.path.exists(path):
        with Tool(options.tool, path) as tool:
            check_panels(tap, tool)
            check_days(tap, tool)
            check_new_labels(tap, tool)
            check_flags(tap, tool)
    else:
        tap.skip("tabular", "the model is not there")
    tap.done()


if __name__ == "__main__":
    main()
