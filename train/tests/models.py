"""Small model configurations in every combination of two options, for the tests that hold them
against the engine.
"""

import itertools
import os
import random

from pg_posterior_train.config import ConfigError, check_model

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "build", "tnp")
REFERENCE = os.path.join(ROOT, "test", "reference")
ROWS, EXTRA = 9, 2
CLASSES = 4
CHOICES = {
    "architecture": ["packed", "two-stream"],
    "context": ["full", "causal", "prefix-causal"],
    "buffer": [None, 1, 3],
    "mask": ["inclusive", "strict"],
    "embedder": [
        "concat",
        "flag",
        "linear",
        "mlp",
        "skip-mlp",
        "rows",
        "ridge",
        "prune",
        "process",
        "absent",
        "gated",
        "class mlp",
        "class rows",
        "class ridge",
        "class logistic",
        "class lean",
    ],
    "roles": [False, True],
    "positions": [0, 2, 5],
    "sinks": [0, 2],
    "log_scale": [False, True],
    "bias": ["all", "output", "none"],
    "norm": ["layer", "rms"],
    "placement": ["pre", "post"],
    "final": [False, True],
    "eps": [1e-6, 0.01],
    "activation": ["relu", "gelu", "gelu-tanh"],
    "other_activation": [None, "relu", "gelu-tanh"],
    "layers": [1, 2],
    "heads": [1, 2],
    "features": [1, 2],
    "scaling": ["none", "fixed", "prefix"],
    "clip": [0, 0.75],
    "target": ["none", "fixed", "prefix"],
    "target_clip": [0, 0.5],
    "min_rows": [0, 1, 2, 6],
    "head": ["gaussian", "mixture 1", "mixture 3"],
    "std": ["exp", "bounded", "softplus", "softplus-complement", "sqrt-softplus"],
    "floor": [0, 0.1],
    "hidden": [[], [6], [6, 5]],
}


def embedder_of(o):
    kind = o["embedder"].replace("class ", "")
    own = {} if o["other_activation"] is None else {"activation": o["other_activation"]}
    if kind in ("concat", "flag"):
        return {"kind": "concat", "hidden": o["hidden"], "flag": kind == "flag", **own}
    y = (
        {"kind": "classes"}
        if o["embedder"].startswith("class ")
        else {"kind": "mlp", "hidden": o["hidden"]}
    )
    x = {"kind": kind} if kind == "linear" else {"kind": kind, "hidden": o["hidden"]}
    if kind in ("rows", "ridge", "prune", "process", "absent", "gated", "logistic", "lean"):
        x = {
            "kind": "rows",
            "hidden": 7,
            "tokens": None,
            "ridge": kind in ("ridge", "prune", "absent", "lean"),
            "prune": kind in ("prune", "absent"),
            "pairs": kind in ("prune", "absent"),
            "process": kind in ("process", "gated"),
            "logistic": kind in ("logistic", "lean"),
        }
        if kind == "absent":
            x.update(absent=True, codes="targets", prune_below=3, orient=True)
        if kind == "gated":
            x.update(orient=True)
    return {
        "kind": "additive",
        "x": x,
        "y": y,
        "roles": o["roles"],
        "positions": o["positions"],
        **own,
    }


def head_of(o):
    own = {} if o["other_activation"] is None else {"activation": o["other_activation"]}
    if o["embedder"].startswith("class "):
        lean = {"logistic": 0.5} if o["embedder"] == "class lean" else {}
        return {"kind": "classes", "hidden": o["hidden"], "classes": CLASSES, **lean, **own}
    kind, _, components = o["head"].partition(" ")
    many = {"components": int(components)} if components else {}
    if components and o["embedder"] == "gated":
        many["process"] = 5
    return {
        "kind": kind,
        "hidden": o["hidden"],
        "std": o["std"],
        "floor": o["floor"],
        **many,
        **own,
    }


def model_of(o):
    """The model part of these options."""
    embedder, features = embedder_of(o), o["features"]
    any_columns = embedder.get("x", {}).get("kind") == "rows"
    inputs = {"max_features": 12} if any_columns else {"features": features}
    inputs.update(scaling=o["scaling"], clip=o["clip"])
    if o["scaling"] == "fixed":
        inputs.update(center=[0.5, -0.25][:features], scale=[2.0, 0.5][:features])
    target = {
        "scaling": "classes" if o["embedder"].startswith("class ") else o["target"],
        "clip": o["target_clip"],
    }
    if target["scaling"] == "fixed":
        target.update(center=0.25, scale=1.5)
    attention = {"bias": o["bias"], "sinks": o["sinks"], "log_scale": o["log_scale"]}
    return {
        "format": 1,
        "architecture": o["architecture"],
        "inputs": inputs,
        "target": target,
        "min_rows": o["min_rows"],
        "context": o["context"],
        "chain": {"buffer": o["buffer"], "mask": o["mask"]},
        "width": 8,
        "layers": o["layers"],
        "heads": o["heads"],
        "feedforward": 12,
        "norm": {
            "kind": o["norm"],
            "placement": o["placement"],
            "eps": o["eps"],
            "final": o["final"],
        },
        "activation": o["activation"],
        "attention": attention,
        "embedder": embedder,
        "head": head_of(o),
    }


def configuration(model):
    """A training configuration of a model part."""
    training = {
        "seed": 1,
        "shapes": [{"weight": 1, "rows": ROWS, "tasks": 4, "extra": EXTRA}],
        "learning_rate": 0.01,
        "warmup": 1,
        "decay": 0.1,
        "clip": 1.0,
        "ema": 0.5,
    }
    if model["context"] != "causal":
        training["prefix"] = {"minimum": model["min_rows"], "none": 0.2, "all": 0.2}
    return {"model": model, "prior": {"name": "any", "model": model}, "training": training}


def is_valid(model):
    try:
        check_model(model)
        return True
    except ConfigError:
        return False


def repair(o):
    """The same options without the commonest contradictions, so that a random choice is often a
    model.
    """
    o = dict(o)
    if o["architecture"] == "two-stream":
        o.update(
            sinks=0,
            log_scale=False,
            positions=0,
            context="causal" if o["context"] == "prefix-causal" else o["context"],
        )
    if o["context"] != "full":
        o.update(buffer=None, mask="inclusive", positions=0)
    if o["positions"] and o["buffer"] is None:
        o["buffer"] = 3
    if o["embedder"] in ("concat", "flag"):
        o.update(roles=False, positions=0)
    if o["embedder"].split()[-1] in ("rows", "ridge", "prune", "process", "absent", "gated",
                                     "logistic", "lean"):
        o.update(
            scaling="prefix",
            target="prefix",
            clip=o["clip"] or 0.75,
            target_clip=o["target_clip"] or 0.5,
        )
    if o["embedder"].startswith("class "):
        o["target_clip"] = 0
        o["target"] = "none"
    if o["std"] in ("exp", "bounded"):
        o["floor"] = 0
    if "prefix" in (o["scaling"], o["target"]):
        o["min_rows"] = max(o["min_rows"], 2)
    if o["sinks"] == 0:
        o["min_rows"] = max(o["min_rows"], 1)
    return o


def random_options(rng):
    return {name: rng.choice(values) for name, values in CHOICES.items()}


def pairs(o):
    return set(itertools.combinations([(name, str(value)) for name, value in sorted(o.items())], 2))


def covering_models(tries=4000, seed=1):
    """(options, model) such that every pair of values that occurs in any of `tries` valid choices
    occurs in one of them.
    """
    rng = random.Random(seed)
    found = [repair(random_options(rng)) for _ in range(tries)]
    found = [(o, pairs(o)) for o in found if is_valid(model_of(o))]
    missing = set().union(*(p for _, p in found))
    while missing:
        o, covered = max(found[:400], key=lambda one: len(one[1] & missing))
        if not covered & missing:
            o, covered = max(found, key=lambda one: len(one[1] & missing))
        missing -= covered
        yield o, model_of(o)
