"""The bundled models: engine against reference, and against what they should know.

Every file of models/ is compared with the reference, 1e-4 on means and standard deviations and 1e-3
on log densities, on random tables. With each table of kernels that this machine runs, 99 of 100
means must be within 1 % of a standard deviation of the reference's; with keys and values of 16 bits
all must be within 3 %. `gp1d` and exact inference with the true hyperparameters: mean log density
within 0.1 nats, 80 % intervals cover 76 to 84 %. `tabular`, `tabular_small` and `tabular_sums` must
have a better mean log density than Bayesian linear regression and nearest neighbours on made-up
tables that neither they nor their training have seen, and their 80 % intervals must cover 70 to
90 %. `tabular` must be a nat and a half ahead of both on waves along a weighted sum of columns.
`tabular_class` must have a smaller log loss than linear discriminant analysis and nearest
neighbours on the same tables cut into classes, and be right as often as it says within 5 points. A
model that is not there is skipped.

SPDX-License-Identifier: PostgreSQL
"""
import glob
import math
import os

import numpy as np

from checking import HERE, KERNELS, Tap, Tool, arguments, cells, close, other_tables, rows, table
from heads import NORMAL, Mixture
from reference import Model, build, canonical_prefix, whole_prefix

# of a default prediction, in its standard deviations
PRECISION = 0.01
PRECISION_SIZES, PRECISION_QUERIES = (12, 30, 100), 40
# the same of the worst prediction with keys and values of 16 bits (docs/decisions/arithmetic.md)
HALF_WORST = 0.03
GP_TASKS, GP_QUERIES, GP_SIZES = 300, 24, (8, 16, 32, 64)
TABLES, TABLE_QUERIES, TABLE_SIZES = 10, 40, (32, 128)
DIRECTIONS, DIRECTION_ROWS = (6, 8), 256  # numbers of columns; rows of their contexts
cdf = np.vectorize(NORMAL.cdf, otypes=[float])


def mixture(params):
    weights, means, sds = np.split(np.array(params), 3)
    return Mixture(weights, means, sds)


def score(answers, y):
    """(mean log density, share of y within the central 80 %) of mixtures at y."""
    mixtures = [mixture(params) for params in answers]
    logs = [m.log_pdf(v) for m, v in zip(mixtures, y)]
    below = np.array([np.sum(m.weights * cdf((v - m.means) / m.sds)) for m, v in zip(mixtures, y)])
    return float(np.mean(logs)), float(np.mean((below > 0.1) & (below < 0.9)))


# ---- engine and reference ------------------------------------------------------------------------

def check_parity(tap, tool, model, name):
    n, m = 40, 10
    x, y, kinds = rows(model, n + m, 21)
    for prefix in {whole_prefix(model, n), canonical_prefix(model, n)}:
        encoding = build(model, x[:n], y[:n], prefix, kinds)
        answers = encoding.predict(x[n:])
        observed = encoding.sample(x[n:n + 4], 3, 1)[0]
        wanted = {
            "params": ([d.params for d in answers],
                       1e-4)} if "classes" in model.config.get("head", {}) else {
            "mean": ([d.mean() for d in answers], 1e-4), "sd": ([d.sd() for d in answers], 1e-4),
        }
        wanted.update({"per_row": (encoding.conditionals(x[n:n + 4], observed), 1e-3),
                       "draws": (observed, 1e-3)})
        question = {"context": table(x[:n], y[:n]), "prefix": prefix, "queries": cells(x[n:]),
                    "score": table(x[n:n + 4], observed),
                    "sample": {**table(x[n:n + 4]), "draws": 1, "seed": 3},
                    **({"kinds": kinds} if kinds else {})}
        for kernels in KERNELS:
            answer = tool.ask(kernels=kernels, **question)
            wrong = [f"{field}: {bad}" for field, (value, tolerance) in wanted.items()
                     if (bad := close(answer.get(field, []), value, tolerance)) is not None]
            tap.ok(not wrong, f"{name}, {kernels}: prefix {prefix} of {n}", *wrong,
                   answer.get("error", ""))


def check_precision(tap, tool, model, name, floats, halves):
    """The 99th percentile of |mean - the reference's| / the reference's standard deviation; of
    classes, of the difference between probabilities.
    """
    errors = {kernels: [] for kernels in ("cpu", *floats, *halves)}
    for n in PRECISION_SIZES:
        x, y, kinds = rows(model, n + PRECISION_QUERIES, n)
        answers = build(model, x[:n], y[:n], whole_prefix(model, n), kinds).predict(x[n:])
        classes = "classes" in model.config.get("head", {})
        wanted = np.array([d.params if classes else d.mean() for d in answers])
        sd = 1 if classes else np.array([d.sd() for d in answers])
        for kernels, error in errors.items():
            answer = tool.ask(kernels=kernels, context=table(x[:n], y[:n]), prefix="whole",
                              queries=cells(x[n:]), **({"kinds": kinds} if kinds else {}))
            error += list(
                np.ravel(np.abs(np.array(answer["params" if classes else "mean"]) - wanted) / sd))
    for kernels, error in errors.items():
        good = (max(error) <= HALF_WORST if kernels in halves
                else np.percentile(error, 99) <= PRECISION)
        tap.ok(good, f"{name}, {kernels}: means are as near as is promised",
               f"99th percentile {np.percentile(error, 99):.2g}, largest {max(error):.2g}")


# ---- gp1d ----------------------------------------------------------------------------------------

def kernel(a, b, length):
    return np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)


def gp_task(random, n):
    """(x [n + queries], y, exact predictive mean and sd of the queries)."""
    x = random.uniform(-2, 2, n + GP_QUERIES)
    length = math.exp(random.uniform(math.log(0.25), math.log(1.0)))
    full = kernel(x, x, length) + 0.01 * np.eye(len(x))
    y = np.linalg.cholesky(full) @ random.standard_normal(len(x))
    weights = np.linalg.solve(full[:n, :n], full[:n, n:])
    return x, y, weights.T @ y[:n], np.sqrt(1.01 - np.sum(weights * full[:n, n:], axis=0))


def check_gp(tap, tool, _):
    random = np.random.RandomState(20)
    for n in GP_SIZES:
        ours, exact, covered = [], [], []
        for _ in range(GP_TASKS):
            x, y, mean, sd = gp_task(random, n)
            answer = tool.ask(kernels="cpu", context=table(x[:n, None], y[:n]),
                              queries=cells(x[n:, None]))
            log_density, share = score(answer["params"], y[n:])
            ours.append(log_density)
            covered.append(share)
            exact.append(
                np.mean(-0.5 * ((y[n:] - mean) / sd) ** 2 - np.log(sd)
                        - 0.5 * math.log(2 * math.pi)))
        gap, share = np.mean(exact) - np.mean(ours), np.mean(covered)
        tap.ok(gap <= 0.1, f"gp1d, {n} rows: log density within 0.1 of exact inference",
               f"{np.mean(ours):.3f}, exact {np.mean(exact):.3f}, {gap:.3f} apart")
        tap.ok(0.76 <= share <= 0.84, f"gp1d, {n} rows: 80 % intervals cover 76 to 84 %",
               f"they cover {100 * share:.1f} %")
        print(f"# gp1d, {n} rows: {gap:.3f} nats from exact, 80 % intervals cover "
              f"{100 * share:.1f} %")


# ---- tabular -------------------------------------------------------------------------------------

def linear_table(random, x):
    return (x @ random.standard_normal(x.shape[1]) + random.uniform(0.2, 1.5)
            * random.standard_normal(len(x)))


def additive_table(random, x):
    return np.sum(
        np.sin(x * random.uniform(0.5, 2.5, x.shape[1]) + random.uniform(0, 6, x.shape[1])),
        axis=1) + 0.3 * random.standard_normal(len(x))


def steps_table(random, x):
    y = np.zeros(len(x))
    for _ in range(4):
        a, b = random.randint(0, x.shape[1], 2)
        y += (2 * random.standard_normal()
              * ((x[:, a] > 0.7 * random.standard_normal()) & (x[:, b] > -0.5)))
    return y + 0.3 * random.standard_normal(len(x))


def interaction_table(random, x):
    return x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + 0.3 * random.standard_normal(len(x))


def uneven_table(random, x):
    return (np.tanh(2 * x[:, 0]) + x[:, 1] + np.exp(0.7 * x[:, 2] - 1)
            * random.standard_normal(len(x)))


def groups_table(random, x):
    """One column becomes a category with an effect and a slope of its own."""
    which = random.randint(0, 5, len(x))
    y = (2 * random.standard_normal(5)[which] + random.standard_normal(5)[which] * x[:, 1]
         + 0.3 * random.standard_normal(len(x)))
    x[:, 0] = 100 + which
    return y


FAMILIES = (linear_table, additive_table, steps_table, interaction_table, uneven_table,
            groups_table)


def numeric_matrix(x, kinds, n):
    """Standardised columns of the first n rows' statistics; categories one-hot."""
    columns = []
    for f, kind in enumerate(kinds):
        parts = [x[:, f] == v for v in np.unique(x[:n, f])] if kind == "categorical" else [x[:, f]]
        columns += [np.asarray(part, dtype=float) for part in parts]
    matrix = np.stack(columns, axis=1)
    return (matrix - matrix[:n].mean(axis=0)) / (matrix[:n].std(axis=0) + 1e-9)


def normal_log_density(y, mean, sd):
    return float(np.mean(-0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi)))


def ridge(x, y, n):
    """Bayesian linear regression; prior and noise variances of greatest evidence (MacKay's fixed
    point).
    """
    design, center = np.concatenate([x, np.ones((len(x), 1))], axis=1), y[:n].mean()
    a, target = design[:n], y[:n] - center
    alpha, beta = 1.0, 1 / target.var()
    gram = a.T @ a
    for _ in range(50):
        covariance = np.linalg.inv(alpha * np.eye(a.shape[1]) + beta * gram)
        w = beta * covariance @ a.T @ target
        effective = a.shape[1] - alpha * np.trace(covariance)
        alpha = min(effective / (w @ w + 1e-12), 1e6)
        beta = max(n - effective, 1.0) / (np.sum((target - a @ w) ** 2) + 1e-12)
    asked = design[n:]
    return normal_log_density(y[n:], center + asked @ w,
                              np.sqrt(1 / beta + np.sum(asked @ covariance * asked, axis=1)))


def neighbours(x, y, n):
    """k nearest neighbours; k and one spread of the least leave-one-out error."""
    distance = np.sum((x[:, None, :] - x[None, :n, :]) ** 2, axis=2)
    within = distance[:n] + np.diag(np.full(n, np.inf))
    near, asked = np.argsort(within, axis=1), np.argsort(distance[n:], axis=1)
    errors = {k: np.mean((y[:n] - y[near[:, :k]].mean(axis=1)) ** 2)
              for k in (1, 2, 3, 5, 8, 12, 20)}
    k = min(errors, key=errors.get)
    return normal_log_density(y[n:], y[asked[:, :k]].mean(axis=1), math.sqrt(errors[k]))


def check_tabular(tap, tool, name):
    random = np.random.RandomState(30)
    overall = []
    for family in FAMILIES:
        results = []
        for i in range(TABLES):
            n, features = TABLE_SIZES[i % len(TABLE_SIZES)], random.randint(3, 9)
            x = random.standard_normal((n + TABLE_QUERIES, features))
            y = 10 ** random.uniform(-2, 3) * (family(random, x) + random.uniform(-5, 5))
            y_sd = y[:n].std()
            kinds = ["categorical" if family is groups_table and f == 0 else "numeric"
                     for f in range(features)]
            answer = tool.ask(kernels="cpu", kinds=kinds, context=table(x[:n], y[:n]),
                              queries=cells(x[n:]))
            log_density, share = score(answer["params"], y[n:])
            matrix = numeric_matrix(x, kinds, n)
            unit = math.log(y_sd)
            results.append([log_density + unit, ridge(matrix, y, n) + unit,
                            neighbours(matrix, y, n) + unit, share])
        mean = np.mean(results, axis=0)
        overall.append(mean)
        print(f"# {name}, {family.__name__}: ours {mean[0]:.3f}, linear {mean[1]:.3f}, neighbours "
              f"{mean[2]:.3f}, 80 % cover {100 * mean[3]:.1f} %")
    ours, linear, near, share = np.mean(overall, axis=0)
    tap.ok(ours > linear, f"{name}: better than Bayesian linear regression",
           f"{ours:.3f} against {linear:.3f}")
    tap.ok(ours > near, f"{name}: better than nearest neighbours", f"{ours:.3f} against {near:.3f}")
    tap.ok(0.7 <= share <= 0.9, f"{name}: 80 % intervals cover 70 to 90 %",
           f"they cover {100 * share:.1f} %")


def check_directions(tap, tool, name):
    random = np.random.RandomState(50)
    results = []
    for features in DIRECTIONS:
        x = random.standard_normal((DIRECTION_ROWS + TABLE_QUERIES, features))
        w = random.standard_normal(features)
        y = np.sin(2.5 * x @ w / np.linalg.norm(w)) + 0.03 * random.standard_normal(len(x))
        n = DIRECTION_ROWS
        answer = tool.ask(kernels="cpu", context=table(x[:n], y[:n]), queries=cells(x[n:]))
        matrix = numeric_matrix(x, ["numeric"] * features, n)
        results.append([score(answer["params"], y[n:])[0], ridge(matrix, y, n),
                        neighbours(matrix, y, n)])
    ours, linear, near = np.mean(results, axis=0)
    print(f"# {name}, along a direction: ours {ours:.3f}, linear {linear:.3f}, neighbours "
          f"{near:.3f}")
    tap.ok(ours > max(linear, near) + 1.5, f"{name}: learns along a direction",
           f"{ours:.3f} against {linear:.3f} and {near:.3f}")


def check_default(tap, tool, name):
    check_tabular(tap, tool, name)
    check_directions(tap, tool, name)


# ---- classes -------------------------------------------------------------------------------------

def discriminant(x, y, n, classes):
    """Linear discriminant analysis: one covariance, shrunk by a tenth; probabilities of all rows
    after the first n.
    """
    means = np.array([x[:n][y[:n] == c].mean(axis=0) for c in range(classes)])
    share = np.array([np.mean(y[:n] == c) for c in range(classes)])
    rest = x[:n] - means[y[:n]]
    covariance = 0.9 * rest.T @ rest / max(n - classes, 1) + 0.1 * np.eye(x.shape[1])
    w = np.linalg.solve(covariance, means.T)
    scores = x[n:] @ w - 0.5 * np.sum(means.T * w, axis=0) + np.log(share)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def neighbour_shares(x, y, n, classes, k=9):
    """Shares of the classes among the k nearest rows, one more row for all classes together."""
    near = np.argsort(np.sum((x[n:, None, :] - x[None, :n, :]) ** 2, axis=2), axis=1)[:, :k]
    return np.array(
        [(np.bincount(y[row], minlength=classes) + 1 / classes) / (k + 1) for row in near])


def check_classes(tap, tool, _):
    random = np.random.RandomState(40)
    losses, confidence, right = [], [], []
    for family in FAMILIES:
        results = []
        for i in range(TABLES):
            n, features, classes = (TABLE_SIZES[i % len(TABLE_SIZES)], random.randint(3, 9), 2
                                    + i % 4)
            x = random.standard_normal((n + TABLE_QUERIES, features))
            latent = family(random, x)
            kinds = ["categorical" if family is groups_table and f == 0 else "numeric"
                     for f in range(features)]
            y = np.searchsorted(np.quantile(latent, np.arange(1, classes) / classes), latent)
            y = random.permutation(classes)[y]
            answer = tool.ask(kernels="cpu", kinds=kinds, classes=classes,
                              context=table(x[:n], y[:n]), queries=cells(x[n:]))
            p = np.array(answer["params"])[:, :classes]
            asked = np.arange(TABLE_QUERIES), y[n:]
            matrix = numeric_matrix(x, kinds, n)
            others = discriminant(matrix, y, n, classes), neighbour_shares(matrix, y, n, classes)
            results.append([-np.mean(np.log(q[asked])) for q in (p, *others)])
            confidence.append(p.max(axis=1))
            right.append(p.argmax(axis=1) == y[n:])
        mean = np.mean(results, axis=0)
        losses.append(mean)
        print(f"# {family.__name__}: ours {mean[0]:.3f}, discriminant {mean[1]:.3f}, neighbours "
              f"{mean[2]:.3f}")
    ours, linear, near = np.mean(losses, axis=0)
    said, was = np.mean(confidence), np.mean(right)
    tap.ok(ours < linear, "tabular_class: smaller log loss than linear discriminant analysis",
           f"{ours:.3f} against {linear:.3f}")
    tap.ok(ours < near, "tabular_class: smaller log loss than nearest neighbours",
           f"{ours:.3f} against {near:.3f}")
    tap.ok(abs(said - was) < 0.05, "tabular_class: right as often as it says",
           f"says {said:.3f}, is {was:.3f}")


KNOWLEDGE = {"gp1d": check_gp, "tabular": check_default, "tabular_small": check_tabular,
             "tabular_sums": check_tabular, "tabular_class": check_classes}


def main():
    options = arguments(__doc__.split("\n\n")[0])
    folder = options.models or os.path.join(os.path.dirname(os.path.dirname(HERE)), "models")
    tap = Tap()
    floats, halves = other_tables(tap, options.tool)
    paths = {os.path.splitext(os.path.basename(path))[0]: path
             for path in glob.glob(os.path.join(folder, "*.safetensors"))}
    for name in sorted(set(paths) | set(KNOWLEDGE)):
        if name not in paths:
            tap.skip(name, "the model is not there")
            continue
        with Tool(options.tool, paths[name]) as tool:
            model = Model.open(paths[name])
            check_parity(tap, tool, model, name)
            check_precision(tap, tool, model, name, floats, halves)
            if name in KNOWLEDGE:
                KNOWLEDGE[name](tap, tool, name)
    tap.done()


if __name__ == "__main__":
    main()
