"""The transparent models (transparent.py) through the engine: every answer must decode, exactly, to
the rows that were read.

SPDX-License-Identifier: PostgreSQL
"""
import itertools
import os

import numpy as np

from checking import KERNELS, MadeModels, Tap, Tool, arguments
from reference import Model, canonical_prefix

ROUNDS = 250


def table(ids, y=None):
    return {"x": [[float(i)] for i in ids],
            "y": [0.0] * len(ids) if y is None else [float(v) for v in y]}


def code(ids):
    return float(sum(2 ** int(i) for i in set(ids)))


class Checker:
    """One model under one table of kernels; remembers the first answer that is not as it must be.
    """

    def __init__(self, tool, kernels):
        self.tool, self.kernels, self.wrong = tool, kernels, []

    def expect(self, wanted, **request):
        """Two queries, one of them with an id that is likely in the context: neither may matter."""
        answer = self.tool.ask(kernels=self.kernels, queries=[[5.0], [1000.0]], **request)
        if answer.get("mean") != [wanted, wanted]:
            self.wrong.append(f"{answer} instead of {wanted} for {request}"[:500])

    def report(self, tap, label):
        tap.ok(not self.wrong, label, *self.wrong[:3])
        self.wrong = []


def check_sets(tap, check, label, random, from_target):
    """Random sets, all sets of up to two ids, and all 24; as the feature or as the target."""
    def give(ids):
        other = random.uniform(0, 24, len(ids))
        return table(other, ids) if from_target else table(ids, other)

    sets = [random.choice(24, random.randint(0, 25), replace=False) for _ in range(ROUNDS)]
    sets += [s for n in range(3) for s in itertools.combinations(range(24), n)] + [range(24)]
    for ids in sets:
        check.expect(code(ids), context=give(list(ids)))
    check.report(tap, f"{label}: {len(sets)} sets")
    for ids in ([7] * 500 + [3], [0] * 65534 + [23], list(range(24)) * 1000):
        check.expect(code(ids), context=give(ids))
    check.report(tap, f"{label}: up to 65,535 rows, ids repeated")


def check_ways(tap, check, label, random, model):
    """The same rows built with any prefix, appended, and grown under the canonical rule."""
    for _ in range(ROUNDS // 5):
        ids = list(random.permutation(24)[:random.randint(2, 25)])
        n = len(ids)
        cut = random.randint(0, n)
        check.expect(code(ids), context=table(ids[:cut]), prefix="canonical",
                     grow=[table(ids[cut:])])
        check.expect(code(ids), context=table(ids[:cut]), prefix="canonical",
                     grow=[table([i]) for i in ids[cut:]])
        if model.context != "full":
            check.expect(code(ids), context=table(ids), prefix=int(cut))
            check.expect(code(ids), context=table(ids[:cut]),
                         append=[table([i]) for i in ids[cut:]])
    check.report(tap, f"{label}: prefixes, appended, grown")


def check_chains(tap, check, label):
    """Step m of a chain reads the context and the rows of the steps before: the draws and the
    densities say so.
    """
    steps = [4, 20, 9, 0, 13, 2]
    means = [code([1, 2] + steps[:m]) for m in range(len(steps))]
    answer = check.tool.ask(kernels=check.kernels, context=table([1, 2]),
                            sample={"x": [[float(i)] for i in steps], "draws": 5, "seed": 3},
                            score={"x": [[float(i)] for i in steps], "y": means})
    draws = np.array(answer.get("draws", []), dtype=float)
    tap.ok(draws.shape == (5, 6) and np.array_equal(np.rint(draws), [means] * 5)
           and np.unique(draws).size == 30, f"{label}: draws", answer)
    at_mean = -np.log(1 / 16) - 0.5 * np.log(2 * np.pi)
    tap.ok(np.allclose(answer.get("per_row", 0), at_mean, atol=1e-5),
           f"{label}: conditional densities", answer)


def check_order(tap, check, label, random):
    """All orders of up to four ids, and random ones of more."""
    def digits(ids):
        return float(sum(int(i) * 10 ** (6 - place) for place, i in enumerate(ids[:7])))

    orders = [p for n in range(4) for p in itertools.permutations(range(1, 10), n)]
    orders += [random.permutation(9)[:random.randint(4, 10)] + 1 for _ in range(ROUNDS)]
    for ids in orders:
        cut = random.randint(0, len(ids) + 1)
        check.expect(digits(ids), context=table(ids[:cut]), append=[table(ids[cut:])])
    check.report(tap, f"{label}: {len(orders)} orders")


def check_prefixes(tap, check, label, model):
    """Every prefix of every number of rows, and where rows arrived one after the other."""
    for n in range(25):
        for prefix in range(n + 1):
            bits = sum(2 ** (r - 1) for r in range(max(prefix, 1), n + 1))
            check.expect(float(bits), context=table([0] * n), prefix=prefix)
    check.report(tap, f"{label}: all prefixes of up to 24 rows")
    for n in range(1, 25):
        bits = sum(2 ** (r - 1) for r in range(canonical_prefix(model, n), n + 1))
        check.expect(float(bits), context=table([0]), prefix="canonical",
                     grow=[table([0]) for _ in range(1, n)])
    check.report(tap, f"{label}: grown to 24 rows")


def main():
    options = arguments(__doc__.split("\n\n")[0])
    tap = Tap()
    with MadeModels(options.models) as folder:
        for name in ("transparent", "transparent_full", "transparent_target", "transparent_order",
                     "transparent_prefix"):
            path = os.path.join(folder, name + ".safetensors")
            model = Model.open(path)
            with Tool(options.tool, path) as tool:
                for kernels in KERNELS:
                    check, label = Checker(tool, kernels), f"{name}, {kernels}"
                    random = np.random.RandomState(1)
                    if name == "transparent_order":
                        check_order(tap, check, label, random)
                    elif name == "transparent_prefix":
                        check_prefixes(tap, check, label, model)
                    else:
                        check_sets(tap, check, label, random, name == "transparent_target")
                    if name in ("transparent", "transparent_full"):
                        check_ways(tap, check, label, random, model)
                        check_chains(tap, check, label)
    tap.done()


if __name__ == "__main__":
    main()
