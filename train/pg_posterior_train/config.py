"""What a training configuration may say, checked before anything is trained.

The model part follows docs/model-format.md section 2: what the engine refuses is refused here, by
the name of its key, and so is what the format knows and this trainer does not train. The rest are
the trainer's own keys.
"""

import math

LARGEST = 1.7976931348623157e308
SMALLEST = 2.2250738585072014e-308
MOST_PARAMETERS = 2**28 - 2**22    # a file of 1 GiB, with room for a header of 16 MiB


class ConfigError(ValueError):
    """A configuration that cannot be trained; the message names the key."""


def fail(path, message):
    raise ConfigError(f"{path}: {message}")


# Values -------------------------------------------------------------------------------------------


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def integer(low, high):
    def read(path, value):
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            fail(path, f"{value!r} is not an integer from {low} to {high}")

    return read


def number(low=-LARGEST, high=LARGEST):
    def read(path, value):
        if not is_number(value) or not low <= value <= high:
            fail(path, f"{value!r} is not a number from {low:g} to {high:g}")

    return read


def boolean(path, value):
    if not isinstance(value, bool):
        fail(path, f"{value!r} is neither true nor false")


def text(path, value):
    if not isinstance(value, str):
        fail(path, f"{value!r} is not a text")


def choice(*known):
    def read(path, value):
        if not isinstance(value, str) or value not in known:
            fail(path, f"{value!r} is not one of " + ", ".join(known))

    return read


def array(read_one, most=None):
    def read(path, value):
        if not isinstance(value, list) or most is not None and len(value) > most:
            fail(
                path, f"{value!r} is not an array" + (f" of at most {most} values" if most else "")
            )
        for i, one in enumerate(value):
            read_one(f"{path}[{i}]", one)

    return read


def or_null(read_one):
    def read(path, value):
        if value is not None:
            read_one(path, value)

    return read


def anything(path, value):
    """A value that its reader checks."""


def objects(required, optional=None):
    """An object with these keys and no others."""
    known = {**required, **(optional or {})}

    def read(path, value):
        if not isinstance(value, dict):
            fail(path, f"{value!r} is not an object")
        inside = path + "." if path else ""
        for key in value:
            if key not in known:
                fail(inside + key, "unknown key")
        for key in required:
            if key not in value:
                fail(inside + key, "missing")
        for key, one in value.items():
            known[key](inside + key, one)

    return read


def variants(**kinds):
    """An object whose `kind` says which other keys it has."""

    def read(path, value):
        if not isinstance(value, dict) or "kind" not in value:
            fail(path + ".kind", "missing")
        choice(*kinds)(path + ".kind", value["kind"])
        kinds[value["kind"]](path, value)

    return read


def untrained(path, value):
    fail(path + ".kind", f"{value['kind']!r} is known to the format but not to this trainer")


def no_tokens(path, value):
    if value is not None:
        fail(path, "feature tokens are known to the format but not to this trainer; use null")


# The model part -----------------------------------------------------------------------------------

SIZE = integer(1, 16384)
HIDDEN = array(SIZE, 8)
ACTIVATION = choice("relu", "gelu", "gelu-tanh")
STD = {"std": choice("exp", "bounded", "softplus", "softplus-complement", "sqrt-softplus")}
KIND = {"kind": anything}

linear = objects(KIND)
mlp = objects({**KIND, "hidden": HIDDEN})
rows = objects(
    {**KIND, "hidden": SIZE, "tokens": no_tokens},
    {"ridge": boolean, "logistic": boolean, "prune": boolean},
)
concat = objects({**KIND, "hidden": HIDDEN, "flag": boolean}, {"activation": ACTIVATION})
additive = objects(
    {
        **KIND,
        "x": variants(linear=linear, mlp=mlp, rows=rows, **{"skip-mlp": mlp}),
        "y": variants(linear=linear, mlp=mlp, classes=objects(KIND), **{"skip-mlp": mlp}),
        "roles": boolean,
        "positions": integer(0, 1000000),
    },
    {"activation": ACTIVATION},
)
gaussian = objects(
    {**KIND, "hidden": HIDDEN, **STD}, {"activation": ACTIVATION, "floor": number(0)}
)
mixture = objects(
    {**KIND, "hidden": HIDDEN, **STD, "components": integer(1, 1024)},
    {"activation": ACTIVATION, "floor": number(0)},
)
classes = objects(
    {**KIND, "hidden": HIDDEN, "classes": integer(2, 64)},
    {"activation": ACTIVATION, "logistic": number(0, 1)},
)

model = objects(
    {
        "format": integer(1, 1),
        "architecture": choice("packed", "two-stream"),
        "inputs": objects(
            {"scaling": choice("none", "fixed", "prefix")},
            {
                "features": integer(1, 1024),
                "max_features": integer(1, 256),
                "center": array(number()),
                "scale": array(number(SMALLEST)),
                "clip": number(0),
            },
        ),
        "target": objects(
            {"scaling": choice("none", "fixed", "prefix", "classes")},
            {"center": number(), "scale": number(SMALLEST), "clip": number(0)},
        ),
        "min_rows": integer(0, 1000000),
        "context": choice("full", "causal", "prefix-causal"),
        "chain": objects(
            {"buffer": or_null(integer(1, 1000000))}, {"mask": choice("inclusive", "strict")}
        ),
        "width": integer(1, 4096),
        "layers": integer(1, 128),
        "heads": integer(1, 4096),
        "feedforward": SIZE,
        "norm": objects(
            {
                "kind": choice("layer", "rms"),
                "placement": choice("pre", "post"),
                "eps": number(1e-30, 1),
                "final": boolean,
            }
        ),
        "activation": ACTIVATION,
        "attention": objects(
            {"bias": choice("all", "output", "none")},
            {"sinks": integer(0, 64), "log_scale": boolean},
        ),
        "embedder": variants(concat=concat, additive=additive),
        "head": variants(gaussian=gaussian, mixture=mixture, classes=classes, bars=untrained),
    },
    {"description": text},
)


def model_rules(c):
    """(broken, message) of every rule about more than one key: those of the format's section 2."""
    inputs, target, chain, embedder, head = (
        c["inputs"],
        c["target"],
        c["chain"],
        c["embedder"],
        c["head"],
    )
    x = embedder.get("x", {"kind": None})
    any_columns, own_rows = "max_features" in inputs, x["kind"] == "rows"
    is_class = target["scaling"] == "classes"
    sinks, positions, buffer = (
        c["attention"].get("sinks", 0),
        embedder.get("positions", 0),
        chain["buffer"],
    )
    strict, full, two_stream = (
        chain.get("mask") == "strict",
        c["context"] == "full",
        c["architecture"] == "two-stream",
    )
    floor, std = head.get("floor", 0), head.get("std")
    features = inputs.get("features")
    yield (
        "features" in inputs
    ) == any_columns, "exactly one of inputs.features and inputs.max_features is needed"
    yield any_columns and not own_rows, 'inputs.max_features needs the embedder\'s x.kind "rows"'
    yield own_rows and not any_columns, 'the embedder\'s x.kind "rows" needs inputs.max_features'
    yield own_rows and inputs[
        "scaling"
    ] != "prefix", 'the embedder\'s x.kind "rows" needs inputs.scaling "prefix"'
    yield own_rows and target["scaling"] not in (
        "prefix",
        "classes",
    ), 'the embedder\'s x.kind "rows" needs target.scaling "prefix" or "classes"'
    for name in ("ridge", "logistic"):
        yield bool(x.get(name)) and not inputs.get("clip"), f"embedder.x.{name} needs inputs.clip"
    yield bool(x.get("ridge")) and not is_class and not target.get(
        "clip"
    ), "embedder.x.ridge needs target.clip"
    yield bool(x.get("logistic")) and not is_class, "embedder.x.logistic is for classifiers"
    yield bool(x.get("prune")) and is_class, "embedder.x.prune is for regression models"
    yield bool(x.get("prune")) and not x.get("ridge"), "embedder.x.prune needs embedder.x.ridge"
    yield bool(head.get("logistic")) and not x.get(
        "logistic"
    ), "head.logistic needs embedder.x.logistic"
    yield is_class != (
        head["kind"] == "classes"
    ), 'target.scaling "classes" and head.kind "classes" need each other'
    yield is_class != (
        embedder.get("y", {}).get("kind") == "classes"
    ), 'target.scaling "classes" and the embedder\'s y.kind "classes" need each other'
    yield is_class and bool(
        target.get("clip")
    ), 'target.clip must be 0 for target.scaling "classes"'
    for key in ("center", "scale"):
        yield (inputs["scaling"] == "fixed") != (
            key in inputs
        ), f'inputs.{key} and inputs.scaling "fixed" need each other'
        yield key in inputs and len(
            inputs[key]
        ) != features, f"inputs.{key} needs one number for each of inputs.features"
        yield (target["scaling"] == "fixed") != (
            key in target
        ), f'target.{key} and target.scaling "fixed" need each other'
    yield two_stream and c[
        "context"
    ] == "prefix-causal", 'context "prefix-causal" is for packed models'
    yield two_stream and sinks > 0, "attention.sinks is for packed models"
    yield two_stream and bool(
        c["attention"].get("log_scale")
    ), "attention.log_scale is for packed models"
    yield two_stream and positions > 0, "embedder.positions is for packed models"
    yield c[
        "min_rows"
    ] < 1 and sinks == 0, "min_rows must be at least 1 in a model without attention.sinks"
    yield c["min_rows"] < 2 and "prefix" in (
        inputs["scaling"],
        target["scaling"],
    ), 'min_rows must be at least 2 where a scaling is "prefix"'
    yield not full and buffer is not None, 'chain.buffer must be null unless context is "full"'
    yield not full and positions > 0, 'embedder.positions must be 0 unless context is "full"'
    yield not full and strict, 'chain.mask "strict" needs context "full"'
    yield positions > 0 and buffer is None, "embedder.positions needs a limit in chain.buffer"
    yield positions > 0 and positions < (
        buffer or 1
    ) - 1, "embedder.positions must be at least chain.buffer - 1"
    yield c["width"] % c["heads"] != 0, "heads must divide width"
    yield std in (
        "exp",
        "bounded",
    ) and floor != 0, 'head.floor must be 0 for head.std "exp" and "bounded"'
    large = std == "softplus-complement" and floor >= 1
    yield large, 'head.floor must be below 1 for head.std "softplus-complement"'


def check_model(config):
    """Refuse a model part that the engine would refuse, or that this trainer does not train."""
    model("", config)
    for broken, message in model_rules(config):
        if broken:
            raise ConfigError(message)


# The trainer's own part ---------------------------------------------------------------------------

POSITIVE = number(SMALLEST)
SHARE = number(0, 1)
shape = objects(
    {
        "weight": POSITIVE,
        "rows": integer(1, 1000000),
        "tasks": integer(1, 1000000),
        "extra": integer(0, 1000000),
    }
)
training = objects(
    {
        "seed": integer(0, 2**31),
        "shapes": array(shape),
        "learning_rate": POSITIVE,
        "warmup": POSITIVE,
        "decay": SHARE,
        "clip": POSITIVE,
        "ema": SHARE,
    },
    {
        "prefix": objects({"minimum": integer(0, 1000000), "none": SHARE, "all": SHARE}),
        "start": text,
    },
)


def is_named(path, value):
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        fail(path + ".name", "missing")


whole = objects(
    {"model": anything, "prior": is_named, "training": training}, {"evaluation": anything}
)


def training_rules(c, t):
    """(broken, message) of every rule about the training part and the model part together."""
    causal, prefix, least = c["context"] == "causal", t.get("prefix"), c["min_rows"]
    minimum = 0 if prefix is None else prefix["minimum"]
    yield not t["shapes"], "training.shapes: none"
    yield causal and prefix is not None, "training.prefix: a causal model has no prefix; leave it out"
    yield not causal and prefix is None, "training.prefix: missing"
    short = c["context"] == "full" and minimum < least
    yield short, "training.prefix.minimum must be at least min_rows where context is full"
    for s in t["shapes"]:
        few = s["rows"] < max(minimum, least)
        yield few, "training.shapes: rows must be at least min_rows and training.prefix.minimum"
        # A prefix of all rows would leave nothing to predict.
        yield s["extra"] < 1, "training.shapes: extra must be at least 1"


def check_config(config):
    """Refuse a training configuration that cannot end in a model that the engine agrees with."""
    whole("", config)
    check_model(config["model"])
    for broken, message in training_rules(config["model"], config["training"]):
        if broken:
            raise ConfigError(message)


def check_tasks(config, tasks):
    """Refuse tasks of a prior that are not what the model takes."""
    inputs = config["inputs"]
    columns = tasks.x.shape[2]
    if "max_features" not in inputs:
        if columns != inputs["features"]:
            raise ConfigError(
                f"the prior makes {columns} columns, and inputs.features is {inputs['features']}"
            )
        if bool(tasks.categorical.any()) or bool(tasks.x.isnan().any()):
            raise ConfigError(
                "the prior makes categorical columns or missing cells, which need the embedder's "
                'x.kind "rows"'
            )
    if config["target"]["scaling"] == "classes":
        low, high = float(tasks.y.min()), float(tasks.y.max())
        most = config["head"]["classes"] - 1
        if low < 0 or high > most or bool((tasks.y != tasks.y.round()).any()):
            raise ConfigError(
                f"the prior's targets, {low:g} to {high:g}, are not the classes 0 to {most}"
            )
