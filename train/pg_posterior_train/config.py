"""What a training configuration may say, checked before anything is trained.

The model part follows docs/model-format.md section 2 and docs/families.md: what a reader of these
pages would refuse is refused here, by the name of its key, and so is what the format knows and this
trainer does not train. The rest are the trainer's own keys.
"""

from .config_families import family_rules
from .config_model import model, model_rules
from .config_priors import prior
from .config_values import (SMALLEST, ConfigError, anything, array, choice, fail, integer, number,
                            objects, text)

MOST_PARAMETERS = 2**28 - 2**22    # a file of 1 GiB, with room for a header of 16 MiB

def check_model(config):
    """Refuse a model part that the engine would refuse, or that this trainer does not train."""
    model("", config)
    for broken, message in (*model_rules(config), *family_rules(config)):
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


large = objects(
    {
        "shapes": array(
            objects(
                {
                    "weight": POSITIVE,
                    "least": integer(1, 1000000),
                    "rows": integer(1, 1000000),
                    "tasks": integer(1, 1000000),
                    "extra": integer(0, 1000000),
                }
            )
        ),
        "learning_rate": POSITIVE,
        "decay": SHARE,
    },
    {"log": SHARE, "functions": integer(1, 64)},
)


def multiples(path, value):
    """Beginnings of parameters' names, and how many times the learning rate they have."""
    if not isinstance(value, dict):
        fail(path, "not an object")
    for name, times in value.items():
        POSITIVE(f"{path}.{name}", times)


def options(path, value):
    """Options of a prior, which its own function reads; its name stays."""
    if not isinstance(value, dict) or "name" in value:
        fail(path, "not an object of the prior's options")


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
        "prefix": objects(
            {"minimum": integer(0, 1000000), "none": SHARE, "all": SHARE}, {"log": SHARE}
        ),
        "start": text,
        "faster": multiples,
        "questions": choice("dense", "split"),
        "curriculum": array(objects({"prior": options, "until": number()})),
        "large": large,
    },
)


whole = objects(
    {"model": anything, "prior": prior, "training": training}, {"evaluation": anything}
)


def training_rules(c, t):
    """(broken, message) of every rule about the training part and the model part together."""
    causal, prefix, least = c["context"] == "causal", t.get("prefix"), c["min_rows"]
    minimum = 0 if prefix is None else prefix["minimum"]
    yield not t["shapes"], "training.shapes: none"
    yield (causal and prefix is not None,
           "training.prefix: a causal model has no prefix; leave it out")
    yield not causal and prefix is None, "training.prefix: missing"
    short = c["context"] == "full" and minimum < least
    yield short, "training.prefix.minimum must be at least min_rows where context is full"
    split, is_class = t.get("questions") == "split", c["head"]["kind"] == "classes"
    yield split and is_class, 'training.questions "split" is not for classifiers'
    for s in t["shapes"]:
        few = s["rows"] < max(minimum, least)
        yield few, "training.shapes: rows must be at least min_rows and training.prefix.minimum"
        # A prefix of all rows would leave nothing to predict.
        yield s["extra"] < 1, "training.shapes: extra must be at least 1"


def large_rules(c, config):
    """(broken, message) of every rule about steps of one shape (large.py), c the model part."""
    t, drawn = config["training"]["large"], config["prior"]
    attention, size = c.get("attention", {}), c["chain"]["buffer"]
    kinds = ("packed", "two-stream") + (("latent", "decoupled") if size == 1 else ())
    known = (
        c["context"] == "full" and size is not None and c["architecture"] in kinds
        and attention.get("kind", "softmax") == "softmax" and not attention.get("sinks")
        and not attention.get("log_scale") and "max_features" not in c["inputs"]
        and c["head"]["kind"] not in ("classes", "joint-gaussian")
    )
    yield not known, "training.large: not for this model"
    scaled = "prefix" in (c["inputs"]["scaling"], c["target"]["scaling"])
    yield scaled, 'training.large: not where scaling is "prefix", as tasks have their own'
    yield not t["shapes"], "training.large.shapes: none"
    for s in t["shapes"]:
        short = not c["min_rows"] <= s["least"] <= s["rows"]
        yield short, "training.large.shapes: least must be from min_rows to rows"
        part = c["architecture"] == "decoupled" and s["least"] < s["rows"]
        yield part, "training.large.shapes: least must be rows in a decoupled model"
        few = s["extra"] < (s["rows"] if drawn.get("latent") else size == 1)
        yield few, ("training.large.shapes: extra must be at least rows where the prior is latent, "
                    "and 1 where chain.buffer is")


def check_config(config):
    """Refuse a training configuration that cannot end in a model that the engine agrees with."""
    whole("", config)
    for i, stage in enumerate(config["training"].get("curriculum", [])):
        prior(f"training.curriculum[{i}].prior", {**config["prior"], **stage["prior"]})
    check_model(config["model"])
    for broken, message in training_rules(config["model"], config["training"]):
        if broken:
            raise ConfigError(message)
    if "large" in config["training"]:
        for broken, message in large_rules(config["model"], config):
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
    targets = tasks.y.shape[2] if tasks.y.ndim == 3 else 1
    if targets != config["target"].get("count", 1):
        raise ConfigError(f"the prior makes {targets} targets, and target.count is "
                          f"{config['target'].get('count', 1)}")
    if config["target"]["scaling"] == "classes":
        low, high = float(tasks.y.min()), float(tasks.y.max())
        most = config["head"]["classes"] - 1
        if low < 0 or high > most or bool((tasks.y != tasks.y.round()).any()):
            raise ConfigError(
                f"the prior's targets, {low:g} to {high:g}, are not the classes 0 to {most}"
            )
