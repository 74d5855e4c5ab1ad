"""Golden answers: inputs and outputs of a model as JSON, against which another implementation can
be checked.

Each case is a question with a prefix, a causal suffix and independent queries. All numbers are
computed in float64 from the float32 (or float16) weights of the file.
"""
import json
import math
import random

import torch

from .classes import classify, is_classifier, known_classes
from .config import ConfigError, check_tasks
from .export import load_model
from .network import target_count
from .predict import predict
from .prior import PRIORS
from .questions import block_size
from .tasks import Tasks


def listed(values):
    """Nested lists with None for NaN."""
    if isinstance(values, list):
        return [listed(v) for v in values]
    return None if isinstance(values, float) and math.isnan(values) else values


def class_case(model, tasks, prefix, suffix):
    """A case of a classifier: classes are numbered as the context has them; a query whose class it
    lacks has none.
    """
    rows = prefix + suffix
    log_p, classes, true, known = classify(model, tasks, rows, prefix=prefix)
    y = known_classes(tasks.y, rows, log_p.shape[2])[0]
    return listed({
        "prefix_rows": prefix,
        "suffix_rows": suffix,
        "categorical": tasks.categorical[0].tolist(),
        "classes": int(classes),
        "x": tasks.x[0, :rows].tolist(),
        "y": y[0, :rows].tolist(),
        "query_x": tasks.x[0, rows:].tolist(),
        "query_y": [int(c) if k else None for c, k in zip(true[0], known[0])],
        "log_probability": log_p[0, :, :int(classes)].tolist(),
    })


def one_case(model, tasks, prefix, suffix):
    if is_classifier(model.config):
        return class_case(model, tasks, prefix, suffix)
    rows = prefix + suffix
    answer = predict(model, tasks, rows, prefix=prefix)
    mean, sd = answer.moments()
    mixture = answer.mixture
    if hasattr(mixture, "log_mass"):
        mass, borders = mixture.log_mass.exp()[0].tolist(), mixture.borders.tolist()
        standardised = {"mass": mass, "borders": borders}
    else:
        parts = {"weight": mixture.log_weight.exp(), "mean": mixture.mean, "sd": mixture.sd}
        standardised = {name: value[0].tolist() for name, value in parts.items()}
    return listed({
        "prefix_rows": prefix,
        "suffix_rows": suffix,
        "categorical": tasks.categorical[0].tolist(),
        "x": tasks.x[0, :rows].tolist(),
        "y": tasks.y[0, :rows].tolist(),
        "query_x": tasks.x[0, rows:].tolist(),
        "query_y": tasks.y[0, rows:].tolist(),
        "mean": mean[0].tolist(),
        "sd": sd[0].tolist(),
        "log_density": answer.log_prob(tasks.y[:, rows:])[0].tolist(),
        "quantile_10": answer.quantile(0.1)[0].tolist(),
        "quantile_90": answer.quantile(0.9)[0].tolist(),
        "standardised": standardised,
    })


def case_sizes(config):
    """(prefix, suffix) of the cases: what the model can have."""
    size, least = block_size(config), config["min_rows"]
    sizes = [(0, 0), (0, 5), (1, 0), (4, 0), (5, 3), (16, 0), (33, 7), (64, 16)]
    if config["context"] == "causal":
        return [(0, p + s) for p, s in sizes if p + s >= least]
    return [(p, min(s, size - 1) if size else s) for p, s in sizes if p >= least]


def golden(path, prior, out, seed=7):
    """Write golden answers of the model file `path` on tasks of `prior`."""
    model = load_model(path, torch.float64)
    if target_count(model.config) > 1 or model.config["head"]["kind"] == "joint-gaussian":
        raise ConfigError(
            "golden answers are for models of one target that answer each query alone")
    sizes = case_sizes(model.config)
    options = dict(prior)
    sample = PRIORS[options.pop("name")]
    cases = []
    for i, (prefix, suffix) in enumerate(sizes):
        generator = torch.Generator().manual_seed(seed * 1000 + i)
        tasks = sample(generator, 1, prefix + suffix + 5, shared=random.Random(i), **options)
        check_tasks(model.config, tasks)
        cases.append(one_case(model, Tasks(tasks.x.double(), tasks.y.double(), tasks.categorical),
                              prefix, suffix))
    with open(out, "w") as f:
        json.dump({"config": model.config, "cases": cases}, f)
