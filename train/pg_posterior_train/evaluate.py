"""Evaluation: one-dimensional models against the exact Gaussian process, tabular models against
classical baselines.
"""
import json
import random

import numpy as np
import torch

from . import baselines, evaluate_classes
from .classes import is_classifier
from .config import ConfigError
from .export import load_model
from .network import target_count
from .predict import chain, predict
from .prior import PRIORS, gp1d
from .tables import descriptions, read_table
from .tasks import Tasks

SEED = 990_001    # far from every training seed


def coverage(prediction, y, level):
    """Share of targets inside the central interval."""
    u = prediction.cdf(y)
    return float(((u > (1 - level) / 2) & (u < (1 + level) / 2)).float().mean())


def kolmogorov(u):
    """Largest distance between the distribution of the probability integral transform and the
    uniform one.
    """
    u = np.sort(np.asarray(u).ravel())
    grid = np.arange(1, len(u) + 1) / len(u)
    return float(np.maximum(grid - u, u - grid + 1 / len(u)).max())


# One-dimensional models ---------------------------------------------------------------------------


def gaussian_log_prob(y, mean, sd):
    return -0.5 * ((y - mean) / sd) ** 2 - sd.log() - 0.5 * np.log(2 * np.pi)


def evaluate_gp1d(model, tasks=512, queries=64, sizes=(0, 4, 8, 16, 32, 64, 128)):
    """Mean log density by number of context rows, against the exact posterior with the true
    lengthscale (`exact`) and against the posterior with the lengthscale integrated out (`optimal`,
    the best that any model of this prior can reach)."""
    rows = []
    for n in (n for n in sizes if n >= model.config["min_rows"]):
        generator = torch.Generator().manual_seed(SEED + n)
        x, lengthscale = gp1d.hyperparameters(generator, tasks, n + queries)
        y = gp1d.draw(generator, x, lengthscale)
        data = gp1d.numeric(x[..., None], y)
        answer = predict(model, data, n)
        mean, sd = gp1d.posterior(x[:, :n], y[:, :n], x[:, n:], lengthscale)
        exact = gaussian_log_prob(y[:, n:].double(), mean, sd).mean()
        some = slice(0, 256)    # the integral costs a hundred times the rest
        few = [v[some] for v in (x[:, :n], y[:, :n], x[:, n:], y[:, n:])]
        optimal = gp1d.optimal_log_density(*few).mean()
        ours = answer.log_prob(y[:, n:]).mean()
        rows.append(dict(
            context=n, exact=float(exact), model=float(ours), gap=float(exact - ours),
            gap_to_optimal=float(optimal - answer.log_prob(y[:, n:])[some].mean()),
            coverage_80=coverage(answer, y[:, n:], 0.8),
            coverage_95=coverage(answer, y[:, n:], 0.95),
            pit_distance=kolmogorov(answer.cdf(y[:, n:])),
            mean_error=float((answer.moments()[0] - mean).square().mean().sqrt())))
    return rows


def evaluate_gp1d_chain(model, tasks=256, length=32, sizes=(0, 8, 32)):
    """Mean log density per row of chains, against the exact joint density and against independent
    predictions.
    """
    rows = []
    for n in (n for n in sizes if n >= model.config["min_rows"]):
        generator = torch.Generator().manual_seed(SEED + 1000 + n)
        x, lengthscale = gp1d.hyperparameters(generator, tasks, n + length)
        y = gp1d.draw(generator, x, lengthscale)
        data = gp1d.numeric(x[..., None], y)
        chained = chain(model, data, n).log_prob(y[:, n:]).mean()
        single = predict(model, data, n).log_prob(y[:, n:]).mean()
        exact = 0.0
        for j in range(n, n + length):
            mean, sd = gp1d.posterior(x[:, :j], y[:, :j], x[:, j:j + 1], lengthscale)
            exact += float(gaussian_log_prob(y[:, j:j + 1].double(), mean, sd).mean()) / length
        rows.append(dict(context=n, rows=length, exact=exact, chain=float(chained),
                         independent=float(single)))
    return rows


# Tabular models -----------------------------------------------------------------------------------


def score(log_density, error, inside):
    return dict(log_density=float(np.mean(log_density)), rmse=float(np.sqrt(np.mean(error ** 2))),
                coverage_80=float(np.mean(inside)))


def score_model(model, x, y, categorical, n):
    """Scores of the model in units of the context's standard deviation; x [N, F], y [N], the first
    n rows are context.
    """
    tasks = Tasks(torch.from_numpy(x)[None].float(), torch.from_numpy(y)[None].float(),
                  torch.from_numpy(categorical)[None])
    answer = predict(model, tasks, n)
    target = tasks.y[:, n:]
    scale = answer.scale
    result = score((answer.log_prob(target) + scale.log()).numpy(),
                   ((answer.moments()[0] - target) / scale).numpy(),
                   np.array(coverage(answer, target, 0.8)))
    result["coverage_90"] = coverage(answer, target, 0.9)
    # The Gaussian with the same moments: comparable with Gaussian predictors where targets are
    # discrete and a mixture has spikes.
    mean, sd = answer.moments()
    gaussian = gaussian_log_prob(target.double(), mean.double(), sd.double().clamp_min(1e-12))
    result["gaussian_log_density"] = float((gaussian + scale.log()).mean())
    result["crps"] = float((answer.crps(target) / scale).mean())
    return result


def score_baseline(make, x, y, categorical, n):
    """The same scores for a baseline."""
    design = baselines.Design(x[:n], categorical)
    center, scale = y[:n].mean(), max(y[:n].std(), 1e-12)
    z = (y - center) / scale
    predictor = make()
    predictor.fit(design(x[:n]), z[:n])
    mean, sd = predictor.predict(design(x[n:]))
    sd = np.maximum(sd, 1e-3)
    error = (z[n:] - mean) / sd
    density = -0.5 * error ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return score(density, z[n:] - mean, np.abs(error) < 1.2815515655)


def compare(model, splits, kinds):
    """Average scores over splits (x, y, categorical, n)."""
    collected = {}
    for x, y, categorical, n in splits:
        collected.setdefault("model", []).append(score_model(model, x, y, categorical, n))
        for name, make in kinds.items():
            collected.setdefault(name, []).append(score_baseline(make, x, y, categorical, n))
    # A single split with a log density below -20 would own the mean of a Gaussian baseline, so it
    # is capped.
    return {name: {key: float(np.mean([max(s[key], -20.0) for s in scores])) for key in scores[0]}
            for name, scores in collected.items()}


def prior_splits(tasks, n, queries=64, families=None, features=None):
    """Held-out tasks of the tabular prior."""
    done = 0
    while done < tasks:
        generator = torch.Generator().manual_seed(SEED + 7919 * n + done)
        shared = random.Random(SEED + done)
        drawn = PRIORS["tabular"](generator, 8, n + queries, shared=shared, families=families)
        for i in range(8):
            x, y = drawn.x[i].double().numpy(), drawn.y[i].double().numpy()
            if y[:n].std() > 1e-6 and np.abs((y[n:] - y[:n].mean()) / y[:n].std()).max() < 12:
                yield x, y, drawn.categorical[i].numpy(), n
        done += 8


def table_splits(table, n, queries=1000, repeats=3):
    """Random splits of a real table."""
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(table.y))[:n + queries]
        yield table.x[order], table.y[order], table.categorical, n


def evaluate_chains(model, tasks=128, n=96, length=24):
    """Panel tasks: gain of chains over independent predictions, in nats per row."""
    gains = []
    for done in range(0, tasks, 8):
        generator = torch.Generator().manual_seed(SEED + 31 * done)
        drawn = PRIORS["tabular"](generator, 8, n + length, shared=random.Random(done),
                                  families=["panel"])
        y = drawn.y[:, n:]
        gains.append((chain(model, drawn, n).log_prob(y) - predict(model, drawn, n).log_prob(y))
                     .clamp(-10, 10).mean())
    return float(torch.stack(gains).mean())


def evaluate_tabular(model, folder=None, tasks=256, slow=False):
    kinds = dict(baselines.BASELINES)
    if slow:
        kinds.update(baselines.SLOW)
    result = {"prior": {}, "tables": {}, "panel_chain_gain": evaluate_chains(model)}
    for n in (16, 32, 64, 128, 256):
        # The slow baselines at the size whose figures the model cards hold against each other.
        result["prior"][str(n)] = compare(model, prior_splits(tasks, n),
                                          kinds if n == 128 else baselines.BASELINES)
    for name, description in descriptions(folder) if folder else ():
        if "splits" not in description:
            continue
        table = read_table(folder, name, description)
        for n in (64, 256, 1000):
            if len(table.y) > n + 50:
                result["tables"][f"{name} {n}"] = compare(model, table_splits(table, n), kinds)
    return result


# Command ------------------------------------------------------------------------------------------


def show(result):
    """Print nested results as lines."""
    for part, values in result.items():
        print(part)
        if isinstance(values, list):
            for row in values:
                print("  " + "  ".join(f"{k} {v:.4g}" for k, v in row.items()))
        elif isinstance(values, dict):
            for case, scores in values.items():
                print("  " + case)
                for name, row in scores.items():
                    print(f"    {name:18s}" + "  ".join(f"{k} {v:8.4f}" for k, v in row.items()))
        else:
            print(f"  {values:.4f}")


def check_measurable(config):
    """Refuse a model that these scores do not fit; protocols.py measures more kinds."""
    if target_count(config) > 1 or config["head"]["kind"] == "joint-gaussian":
        raise ConfigError("held-out tasks have one target, asked alone; see protocols.py")
    tables = "max_features" in config["inputs"]
    if not tables and config["inputs"]["features"] > 1 and not is_classifier(config):
        raise ConfigError("held-out tasks have one feature; see protocols.py")
    if tables and config["head"]["kind"] == "bars":
        raise ConfigError("scores of tables are those of mixtures, not of bars")


def run_evaluate(a):
    torch.set_num_threads(a.threads)
    model = load_model(a.model)
    check_measurable(model.config)
    if is_classifier(model.config):
        result = evaluate_classes.evaluate_classes(model, a.tables, a.tasks)
    elif "max_features" in model.config["inputs"]:
        result = evaluate_tabular(model, a.tables, a.tasks, a.slow)
    else:
        result = {"factorised": evaluate_gp1d(model, a.tasks), "chains": evaluate_gp1d_chain(model)}
    show(result)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)


def add_command(commands):
    p = commands.add_parser("evaluate", help="measure a model file")
    p.add_argument("model")
    p.add_argument("--tables", help="folder of CSV files with real tables (see tables.py), "
                                    "answered by PyTorch; measure.py goes through SQL")
    p.add_argument("--tasks", type=int, default=256, help="held-out prior tasks per size")
    p.add_argument("--slow", action="store_true",
                   help="also random forest and Gaussian process (scikit-learn)")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--json", help="write the numbers to a file")
    p.set_defaults(call=run_evaluate)
