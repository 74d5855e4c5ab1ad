"""Numbers of all magnitudes, 1e-300 to 1e300, in every place where a question takes one, with every
table of kernels that this machine runs.

An answer is right or it is an error ("bad value"); it is never a wrong number. What is right:

Models that scale by their prefix know no unit: columns in units of powers of two and targets in
another give the answers of the plain rows, bit by bit, in the unit of the targets. The answers for
the plain rows are compared with the oracle elsewhere (check_parity.py); what has no such unit,
columns of mixed magnitudes and of small differences far from zero, is compared with it here.

Models that do not scale are compared with the oracle in float64: 2e-3 of the standard deviation on
means and standard deviations, and 2e-3 on log densities, 20 times that with keys and values of 16
bits. Beyond the range of a float there is no answer.

SPDX-License-Identifier: PostgreSQL
"""
import glob
import os

import numpy as np

from checking import HERE, MadeModels, Tap, Tool, arguments, cells, other_tables, rows, table
from reference import Model, build, whole_prefix

ERROR = 2e-3
HALF = 20                                       # times as much with keys and values of 16 bits
FLOAT = 3e38                                    # numbers beyond it have no float32
EXPONENTS = (-300, -100, -38, -6, 3, 5, 8, 15, 18, 19, 30, 36, 38, 39, 150, 300)
# powers of two of columns and targets
UNITS = ((-960, 0), (-520, -330), (-100, 40), (7, -7), (64, 130), (127, -130), (530, 480), (960, 3))
CONTEXT, QUERIES = 12, 3

# Models that take the whole range of a float: norms before attention, nothing before them that
# grows faster than the features.
WHOLE_RANGE = ("gp1d", "toy", "prefix_causal", "buffer_inclusive", "packed_causal_roles")


# Of make_models.py's, between them every norm, activation and place of it, embedder, architecture
# and scaling, and both kinds of tokenisers.
FEW = ("prefix_causal", "prefix_causal_post", "packed_flag", "packed_tnpa", "packed_causal_roles",
       "buffer_inclusive", "buffer_strict", "buffer_sinks", "buffer_scaled",
       "incremental", "incremental_fixed", "incremental_scaled", "two_stream_strict",
       "head_bars_half_normal", "rows_ridge", "rows_prune", "rows_tokens", "rows_layer_norm",
       "classes_ridge", "classes_tokens", "classes_logistic")


def bad_value(answer):
    return answer.get("error", {}).get("status") == "bad value"


def questions(x, y, kinds, scored, **more):
    n = CONTEXT
    out = {"context": table(x[:n], y[:n]), "prefix": "whole", "queries": cells(x[n:]),
           "score": {**table(x[n:], scored), "orders": 0},
           "sample": {**table(x[n:]), "draws": 2, "seed": 3}, **more}
    if kinds:
        out["kinds"] = kinds
    return out


def far(got, wanted, allowed):
    got = np.array([np.nan if v is None else float(v) for v in np.ravel(got)])
    with np.errstate(invalid="ignore"):
        near = (got == wanted) | (np.abs(got - wanted) <= allowed)
    return not np.all(near)


class Oracle:
    """What the reference says to a request; the engine's answer is compared with it. A context that
    was asked about remembers its answers.
    """

    contexts = {}

    def __init__(self, model, x, y, kinds, scored):
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        key = model, x[:CONTEXT].tobytes(), y[:CONTEXT].tobytes()
        if key not in self.contexts:
            self.contexts[key] = build(model, x[:CONTEXT], y[:CONTEXT],
                                       whole_prefix(model, CONTEXT), kinds)
        encoding = self.contexts[key]
        answers = encoding.predict(x[CONTEXT:])
        self.classes = encoding.statistics.classes
        self.params = np.array([d.params for d in answers])
        self.mean, self.sd = np.array([d.mean() for d in answers]), np.array(
            [d.sd() for d in answers])
        self.log_density = encoding.conditionals(x[CONTEXT:], scored)
        donors = getattr(encoding.statistics, "donors", None)
        self.joined = np.array([donors is not None and len(donors(encoding.statistics.near(row))[1])
                                > 1 for row in x[CONTEXT:]])

    def wrong(self, answer, times):
        error = ERROR * times
        if self.classes:
            return "probabilities" if far(answer["params"], self.params.ravel(), error) else None
        if far(answer["mean"], self.mean, error * (self.sd + np.abs(self.mean))) or far(
                answer["sd"], self.sd, error * self.sd):
            return f"mean {answer['mean']} sd {answer['sd']} instead of {self.mean} {self.sd}"
        allowed = error * (1 + np.abs(self.log_density))
        if times > 1:
            # of joined components others are merged where two mergers lose nearly the same
            allowed[self.joined] = np.inf
        if far(answer["per_row"], self.log_density, allowed):
            return f"log densities {answer['per_row']} instead of {self.log_density}"
        return None


# ---- models that scale by their prefix -----------------------------------------------------------


def in_units(answer, model, k):
    """The answer's numbers but for the unit 2^k of the target."""
    head = model.config["head"]["kind"]
    if head == "classes":
        return answer["params"], answer["draws"], answer["per_row"]
    params, draws = np.array(answer["params"]), np.array(answer["draws"])
    parts = {"gaussian": 2, "mixture": 3, "bars": 2}[head]
    weights = 0 if head == "gaussian" else params.shape[1] // parts
    params[:, weights:] = np.ldexp(params[:, weights:], -k)
    # a density of a tiny unit is huge: only its logarithm has room, and rounding
    return params.tolist(), np.ldexp(draws, -k).tolist(), np.round(np.array(answer["per_row"])
                                                                   + k * np.log(2), 8).tolist()


def check_units(tap, model, tool, tables, name):
    x, y, kinds = rows(model, CONTEXT + QUERIES, 21)
    numeric = [f for f in range(x.shape[1]) if not kinds or kinds[f] == "numeric"]
    classes = "classes" in model.config.get("head", {})
    # sums refuse what a float does not reach, and never answer otherwise
    sums = model.config["architecture"] == "sums"
    for kernels in tables:
        plain = tool.ask(kernels=kernels, **questions(x, y, kinds, y[CONTEXT:]))
        wrong = []
        for column, target in UNITS:
            scaled = x.copy()
            for i, f in enumerate(numeric):
                # columns have units of their own
                scaled[:, f] = np.ldexp(x[:, f], column if i % 3 < 2 else -column)
            unit = 0 if classes else target
            answer = tool.ask(kernels=kernels,
                              **questions(scaled, np.ldexp(y, unit), kinds,
                                          np.ldexp(y[CONTEXT:], unit)))
            if sums and max(abs(column), abs(unit)) > 126 and bad_value(answer):
                continue
            if "error" in answer or in_units(answer, model, unit) != in_units(plain, model, 0):
                wrong.append((column, unit, answer.get("error", "another answer")))
        tap.ok(not wrong, f"{name}, {kernels}: no unit changes an answer", *wrong)


def odd_columns(random, n):
    """Numeric columns that no single unit makes ordinary."""
    signs = random.choice([-1.0, 1.0], n)
    return {
        "all magnitudes": signs * 10.0 ** random.uniform(-300, 300, n),
        "one large number": np.where(np.arange(n) == 3, 1e300, random.uniform(-1, 1, n)),
        "the largest numbers": signs * 1.7e308,
        "tiny numbers": random.uniform(-1, 1, n) * 1e-300,
        "small differences far from zero": 2.0 ** 52 + random.randint(0, 40, n),
        "differences near the last place": 1e300 * (1 + random.randint(0, 9, n) * 2.0 ** -36),
    }


def check_odd(tap, model, tool, tables, name):
    x, y, kinds = rows(model, CONTEXT + QUERIES, 22)
    for label, column in odd_columns(np.random.RandomState(4), CONTEXT + QUERIES).items():
        x[:, -1] = column
        with np.errstate(over="ignore"):
            wanted = Oracle(model, x, y, kinds, y[CONTEXT:])
        for kernels in tables:
            answer = tool.ask(kernels=kernels, **questions(x, y, kinds, y[CONTEXT:]))
            if bad_value(answer) and not model.config["inputs"].get("clip", 0):
                # a later row may lie further out than a float reaches
                wrong = None
            else:
                wrong = (answer["error"] if "error" in answer
                         else wanted.wrong(answer, tables[kernels]))
            tap.ok(wrong is None, f"{name}, {kernels}: a column with {label}", wrong)


def check_target_limits(tap, model, tool, tables, name):
    """Targets beyond 1e150 are refused, and a spread below 1e-100, of sums below 1e-290; zeros are
    not.
    """
    if "classes" in model.config["head"]:
        return
    x, y, kinds = rows(model, CONTEXT + QUERIES, 23)
    zeros = y * 0
    wanted = Oracle(model, x, zeros, kinds, zeros[CONTEXT:])
    for kernels in tables:
        ask = lambda targets: tool.ask(kernels=kernels,
                                       **questions(x, targets, kinds, targets[CONTEXT:]))
        answers = [ask(y * unit) for unit in (1e152, 1e200, 1e300)]
        tap.ok(all(bad_value(a) and "targets are too large" in a["error"]["message"]
                   for a in answers), f"{name}, {kernels}: large targets are refused", *answers)
        small = (1e-310,) if model.is_sums else (1e-104, 1e-200, 1e-310)
        answers = [ask(y * unit) for unit in small]
        tap.ok(all(bad_value(a) and "targets are too small" in a["error"]["message"]
                   for a in answers), f"{name}, {kernels}: small targets are refused", *answers)
        answer = ask(zeros)
        wrong = answer["error"] if "error" in answer else wanted.wrong(answer, tables[kernels])
        tap.ok(wrong is None, f"{name}, {kernels}: zeros are zeros", wrong)


# ---- models that do not scale --------------------------------------------------------------------


def places(model, x, y, scored, value):
    """(where, x, y, scored) with a value of some magnitude in one place, or with everything in a
    unit of it.
    """
    def changed(array, index, new):
        array = array.copy()
        array[index] = new
        return array

    yield "a query", changed(x, (CONTEXT + 1, 0), value), y, scored
    yield "a row", changed(x, (2, 0), -value), y, scored
    yield "a column", changed(x, (slice(None), 0), x[:, 0] * value), y, scored
    if "classes" not in model.config["head"] and model.config["target"]["scaling"] != "prefix":
        yield "a target", x, changed(y, 1, value), scored
        yield "the targets", x, y * value, scored
    if "classes" not in model.config["head"]:
        yield "a scored target", x, y, changed(scored, 1, value)


def check_plain(tap, model, tool, tables, name):
    x, y, kinds = rows(model, CONTEXT + QUERIES, 24)
    wrong, refused = {kernels: [] for kernels in tables}, {kernels: 0 for kernels in tables}
    for exponent in EXPONENTS:
        for where, new_x, new_y, scored in places(model, x, y, y[CONTEXT:], 10.0 ** exponent):
            # the last one scored is no input
            most = max(np.abs(new_x).max(), np.abs(new_y).max(), np.abs(scored[:-1]).max())
            if most < 1e100:
                with np.errstate(over="ignore", invalid="ignore"):
                    wanted = Oracle(model, new_x, new_y, kinds, scored)
            for kernels, times in tables.items():
                answer = tool.ask(kernels=kernels, **questions(new_x, new_y, kinds, scored))
                if "error" in answer:
                    if not bad_value(answer):
                        wrong[kernels].append((exponent, where, answer))
                    elif exponent <= 36:
                        refused[kernels] += 1
                elif most > FLOAT and model.config["inputs"].get("clip", 0) == 0:
                    wrong[kernels].append((exponent, where, "answered"))
                elif most < 1e100 and (bad := wanted.wrong(answer, times)):
                    wrong[kernels].append((exponent, where, bad))
    for kernels in tables:
        tap.ok(not wrong[kernels], f"{name}, {kernels}: right or refused", *wrong[kernels][:6])
        if name in WHOLE_RANGE:
            tap.ok(refused[kernels] == 0,
                   f"{name}, {kernels}: nothing is refused within the range of a float",
                   refused[kernels])


def main():
    options = arguments(__doc__.split("\n\n")[0])
    tap = Tap()
    floats, halves = other_tables(tap, options.tool)
    tables = {**{kernels: 1 for kernels in ("reference", "cpu", *floats)},
              **{kernels: HALF for kernels in halves}}
    bundled = glob.glob(os.path.join(HERE, "..", "..", "models", "*.safetensors"))
    with MadeModels(options.models) as folder:
        made = [path for name in FEW
                if os.path.exists(path := os.path.join(folder, name + ".safetensors"))]
        tap.ok(len(made) == len(FEW), "all models are there",
               *set(FEW) - {os.path.basename(path)[:-12] for path in made})
        for path in sorted(bundled) + made:
            name = os.path.splitext(os.path.basename(path))[0]
            if options.only not in name:
                continue
            model = Model.open(path)
            with Tool(options.tool, path) as tool:
                if model.config["inputs"]["scaling"] == "prefix" and model.config["target"][
                        "scaling"] in ("prefix", "classes"):
                    check_units(tap, model, tool, tables, name)
                    check_target_limits(tap, model, tool, tables, name)
                    check_odd(tap, model, tool, tables, name)
                else:
                    check_plain(tap, model, tool, tables, name)
    tap.done()


if __name__ == "__main__":
    main()
