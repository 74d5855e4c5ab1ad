"""Evaluation of classifiers: log loss, accuracy and calibration on held-out prior tasks and real tables, beside scikit-learn's
logistic regression and random forest.

Protocol: `n` random rows are the context, further rows are asked. Rows whose class is not in the context are left out, since no
method can name it. Scores are means over splits (tasks, or random splits of a table) with the standard error of that mean.
"""
import csv
import os
import random

import numpy as np
import torch

from .baselines import Design
from .classes import class_chain, classify
from .prior import classes as prior
from .tables import encode
from .tasks import Tasks

SEED = 880_001    # far from every training seed
SMALLEST = 0.002  # no baseline pays more than ln(1/0.002) for one row
LEVELS = 10       # confidence levels of the calibration error

# Label and other columns to leave out; rows whose label is missing are left out.
TABLES = {
    "penguins": dict(file="penguins.csv", target="species"),
    "penguins sex": dict(file="penguins.csv", target="sex"),
    "penguins island": dict(file="penguins.csv", target="island"),
}
BUNDLED = ("iris", "wine", "breast_cancer", "digits")    # tables that come with scikit-learn


# Baselines -------------------------------------------------------------------------------------------------------------


class Frequencies:
    """The shares of the classes in the context."""

    def fit(self, x, y, classes):
        self.share = (np.bincount(y, minlength=classes) + 1) / (len(y) + classes)

    def predict(self, x):
        return np.tile(self.share, (len(x), 1))


class Sklearn:
    """A classifier of scikit-learn; the context has every class."""

    def fit(self, x, y, classes):
        self.classes = classes
        self.model = self.make(y) if len(set(y)) > 1 else None
        if self.model is not None:
            self.model.fit(x, y)

    def predict(self, x):
        if self.model is None:
            return np.ones((len(x), 1))
        return self.model.predict_proba(x)


class Logistic(Sklearn):
    """Multinomial logistic regression, the penalty by five-fold cross-validation where every class has five rows."""

    @staticmethod
    def make(y):
        from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

        if np.bincount(y).min() < 5:
            return LogisticRegression(C=1.0, max_iter=500)
        return LogisticRegressionCV(Cs=np.logspace(-2, 2, 5), cv=5, scoring="neg_log_loss", max_iter=500, l1_ratios=(0,), use_legacy_attributes=False)


class Forest(Sklearn):
    """Random forest of 300 trees whose leaves hold at least two rows."""

    @staticmethod
    def make(y):
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(300, min_samples_leaf=2, random_state=0)


BASELINES = {"frequencies": Frequencies, "logistic": Logistic, "forest": Forest}


# Scores ------------------------------------------------------------------------------------------------------------------


def score(p, y):
    """Scores of probabilities p [M, K] at classes y [M], and the pairs (confidence, right) for calibration."""
    p = np.maximum(p, 1e-300)
    right = p.argmax(1) == y
    onehot = np.eye(p.shape[1])[y]
    return dict(log_loss=float(-np.log(p[np.arange(len(y)), y]).mean()), accuracy=float(right.mean()),
                brier=float(((p - onehot) ** 2).sum(1).mean())), np.stack([p.max(1), right], 1)


def calibration_error(pairs):
    """Expected calibration error: mean distance of confidence and accuracy over bins of confidence, weighted by their rows."""
    place = np.minimum((pairs[:, 0] * LEVELS).astype(int), LEVELS - 1)
    return float(sum(abs(pairs[place == b].mean(0) @ (1, -1)) * (place == b).mean() for b in range(LEVELS) if (place == b).any()))


def ask_model(model, x, y, categorical, n):
    """(probabilities [M, K], classes [M]) of the rows after the first n whose class is known."""
    tasks = Tasks(torch.from_numpy(x)[None].float(), torch.from_numpy(y)[None].float(), torch.from_numpy(categorical)[None])
    log_p, classes, true, known = classify(model, tasks, n)
    kept = known[0].numpy()
    return log_p[0, kept, :int(classes)].double().exp().numpy(), true[0].numpy()[kept], kept


def compare(model, splits, kinds):
    """Mean scores and standard errors over splits (x, y, categorical, n)."""
    scores, pairs = {}, {}
    for x, y, categorical, n in splits:
        p, true, kept = ask_model(model, x, y, categorical, n)
        if len(true) == 0 or p.shape[1] < 2:
            continue
        answers = {"model": p}
        design = Design(x[:n], categorical)
        code = np.unique(y[:n], return_inverse=True)[1]
        for name, make in kinds.items():
            baseline = make()
            baseline.fit(design(x[:n]), code, p.shape[1])
            q = np.maximum(baseline.predict(design(x[n:]))[kept], SMALLEST)
            answers[name] = q / q.sum(1, keepdims=True)
        for name, answer in answers.items():
            one, pair = score(answer, true)
            scores.setdefault(name, []).append(one)
            pairs.setdefault(name, []).append(pair)
    out = {}
    for name, rows in scores.items():
        out[name] = {key: float(np.mean([r[key] for r in rows])) for key in rows[0]}
        out[name]["log_loss_error"] = float(np.std([r["log_loss"] for r in rows]) / np.sqrt(len(rows)))
        out[name]["calibration_error"] = calibration_error(np.concatenate(pairs[name]))
        out[name]["splits"] = len(rows)
        if name != "model":
            gain = np.array([b["log_loss"] - m["log_loss"] for b, m in zip(rows, scores["model"])])
            out[name]["behind_model"] = float(gain.mean())
            out[name]["behind_model_error"] = float(gain.std() / np.sqrt(len(gain)))
    return out


# Splits ------------------------------------------------------------------------------------------------------------------


def prior_splits(tasks, n, queries=64, families=None):
    """Held-out tasks of the prior."""
    for done in range(0, tasks, 8):
        generator = torch.Generator().manual_seed(SEED + 7919 * n + done)
        drawn = prior.sample(generator, 8, n + queries, shared=random.Random(SEED + done), families=families)
        for i in range(8):
            yield drawn.x[i].double().numpy(), drawn.y[i].numpy().astype(int), drawn.categorical[i].numpy(), n


def table_splits(table, n, repeats, queries=500):
    """Random splits of a table."""
    x, y, categorical = table
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))[:n + queries]
        yield x[order], y[order], categorical, n


def read_table(folder, file, target):
    """(x [n, F], classes [n], categorical [F]) of a CSV file with a header, or None where it is absent."""
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        return None
    with open(path) as f:
        rows = [row for row in csv.reader(f) if row]
    names = rows.pop(0)
    label = names.index(target)
    rows = [row for row in rows if row[label] not in ("", "NA")]
    columns = [encode([row[j] for row in rows]) for j in range(len(names))]
    kept = [j for j in range(len(names)) if j != label]
    y = np.unique([row[label] for row in rows], return_inverse=True)[1]
    return np.stack([columns[j][0] for j in kept], 1), y, np.array([columns[j][1] for j in kept])


def real_tables(folder):
    """(name, table) of every table that is there."""
    for name, spec in TABLES.items():
        table = read_table(folder, **spec) if folder else None
        if table is not None:
            yield name, table
    try:
        from sklearn import datasets
    except ImportError:
        return
    for name in BUNDLED:
        x, y = getattr(datasets, "load_" + name)(return_X_y=True)
        yield name, (x.astype(float), y.astype(int), np.zeros(x.shape[1], dtype=bool))


def chain_gain(model, tasks=64, n=96, length=24):
    """Panel tasks: gain of chains over independent predictions, in nats per row."""
    gains = []
    for done in range(0, tasks, 8):
        generator = torch.Generator().manual_seed(SEED + 31 * done)
        drawn = prior.sample(generator, 8, n + length, shared=random.Random(done), families=["panel"])
        # A label that only the chain knows is left out of both.
        single, _, true, known = classify(model, drawn, n)
        chained, _, chained_true, chained_known = class_chain(model, drawn, n)
        before = single.gather(2, true[..., None])[..., 0]
        after = chained.gather(2, chained_true[..., None])[..., 0]
        both = known & chained_known
        gains.append(float((after - before)[both].clamp(-10, 10).mean()))
    return float(np.mean(gains))


def evaluate_classes(model, folder=None, tasks=256, repeats=20):
    """All scores of a classifier."""
    try:
        import sklearn    # noqa: F401
        kinds = BASELINES
    except ImportError:
        kinds = {"frequencies": Frequencies}
    result = {"prior": {}, "tables": {}, "panel_chain_gain": chain_gain(model)}
    for n in (16, 32, 64, 128, 256):
        result["prior"][str(n)] = compare(model, prior_splits(tasks, n), kinds)
    for name, table in real_tables(folder):
        for n in (32, 64, 128, 256):
            if len(table[1]) > n + 40:
                result["tables"][f"{name} {n}"] = compare(model, table_splits(table, n, repeats), kinds)
    return result
