"""Evaluation of classifiers: log loss, accuracy and calibration on held-out prior tasks and real
tables, beside scikit-learn's logistic regression and random forest.

Protocol: `n` random rows are the context, further rows are asked. Rows whose class is not in the
context are left out, since no method can name it. Scores are means over splits (tasks, or random
splits of a table) with the standard error of that mean.
"""
import random

import numpy as np
import torch

from .baselines import Design
from .class_scores import baseline_probabilities, class_baselines, score, summarise
from .classes import class_chain, classify
from .measure_classes import class_tables
from .prior import classes as prior
from .tasks import Tasks

SEED = 880_001    # far from every training seed
BUNDLED = ("iris", "wine", "breast_cancer", "digits")    # tables that come with scikit-learn


def ask_model(model, x, y, categorical, n):
    """(probabilities [M, K], classes [M]) of the rows after the first n whose class is known."""
    tasks = Tasks(torch.from_numpy(x)[None].float(), torch.from_numpy(y)[None].float(),
                  torch.from_numpy(categorical)[None])
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
            answers[name] = baseline_probabilities(make, design, x[:n], code, x[n:][kept],
                                                   p.shape[1])
        for name, answer in answers.items():
            one, pair = score(answer, true)
            scores.setdefault(name, []).append(one)
            pairs.setdefault(name, []).append(pair)
    return summarise(scores, pairs)


# Splits -------------------------------------------------------------------------------------------


def prior_splits(tasks, n, queries=64, families=None):
    """Held-out tasks of the prior."""
    for done in range(0, tasks, 8):
        generator = torch.Generator().manual_seed(SEED + 7919 * n + done)
        drawn = prior.sample(generator, 8, n + queries, shared=random.Random(SEED + done),
                             families=families)
        for i in range(8):
            yield drawn.x[i].double().numpy(), drawn.y[i].numpy().astype(
                int), drawn.categorical[i].numpy(), n


def table_splits(table, n, repeats, queries=500):
    """Random splits of a table."""
    x, y, categorical = table
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))[:n + queries]
        yield x[order], y[order], categorical, n


def real_tables(folder):
    """(name, (x [n, F], classes [n], categorical [F])) of every table that is there."""
    for name, table in class_tables(folder) if folder else ():
        yield name, (table.x, table.y, table.categorical)
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
        drawn = prior.sample(generator, 8, n + length, shared=random.Random(done),
                             families=["panel"])
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
    kinds = class_baselines()
    result = {"prior": {}, "tables": {}, "panel_chain_gain": chain_gain(model)}
    for n in (16, 32, 64, 128, 256):
        result["prior"][str(n)] = compare(model, prior_splits(tasks, n), kinds)
    for name, table in real_tables(folder):
        for n in (32, 64, 128, 256):
            if len(table[1]) > n + 40:
                result["tables"][f"{name} {n}"] = compare(model, table_splits(table, n, repeats),
                                                          kinds)
    return result
