"""The model part of a configuration: docs/model-format.md section 2 and docs/families.md."""

from . import config_families as families
from .config_values import (
    ACTIVATION,
    HIDDEN,
    KIND,
    SIZE,
    SMALLEST,
    anything,
    array,
    boolean,
    choice,
    fail,
    integer,
    linear,
    mlp,
    no_tokens,
    number,
    objects,
    one_or_array,
    or_null,
    text,
    variants,
)

STD = {"std": choice("exp", "bounded", "softplus", "softplus-complement", "sqrt-softplus")}
rows = objects(
    {**KIND, "hidden": SIZE, "tokens": no_tokens},
    {
        "ridge": boolean,
        "logistic": boolean,
        "prune": boolean,
        "prune_judged": boolean,
        "prune_below": integer(1, 1000000),
        "pairs": boolean,
        "absent": boolean,
        "process": boolean,
        "directions": integer(1, 8),
        "additive": boolean,
        "nearest": boolean,
        "line": boolean,
        "labels": boolean,
        "donors": integer(1, 64),
        "shift": boolean,
        "codes": choice("identity", "targets"),
        "split": integer(2, 16),
        "orient": boolean,
    },
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
    {
        "activation": ACTIVATION,
        "floor": number(0),
        "process": integer(1, 256),
        "process_record": boolean,
        "process_behind": boolean,
        "process_chain": boolean,
        # of answers alone: training and the gate's fit go without
        "trees": number(0, 1),
        "few_values": number(0, 1),
        "rare": number(1, 100),
        "levels": number(0, 1),
    },
)
classes = objects(
    {**KIND, "hidden": HIDDEN, "classes": integer(2, 64)},
    {"activation": ACTIVATION, "logistic": number(0, 1), "trees": number(0, 1),
     "class_process": number(0, 1)},
)

bars = objects(
    {**KIND, "hidden": HIDDEN, "buckets": integer(1, 65536),
     "tails": choice("bounded", "half-normal")},
    {"activation": ACTIVATION},
)

INPUTS = objects(
    {"scaling": choice("none", "fixed", "prefix", "power")},
    {
        "features": integer(1, 1024),
        "max_features": integer(1, 256),
        "center": array(number()),
        "scale": array(number(SMALLEST)),
        "clip": number(0),
        "far": number(0, 1e6),
    },
)
TARGET = objects(
    {"scaling": choice("none", "fixed", "prefix", "classes")},
    {
        "order": choice("given", "counts"),
        "count": integer(1, 64),
        "center": one_or_array(number()),
        "scale": one_or_array(number(SMALLEST)),
        "clip": number(0),
        "far": number(0, 1e6),
    },
)
NORM = objects(
    {
        "kind": choice("layer", "rms"),
        "placement": choice("pre", "post"),
        "eps": number(1e-30, 1),
        "final": boolean,
    }
)
COMMON = {
    "format": integer(1, 1),
    "architecture": anything,
    "inputs": INPUTS,
    "target": TARGET,
    "min_rows": integer(0, 1000000),
    "context": choice("full", "causal", "prefix-causal"),
    "chain": objects(
        {"buffer": or_null(integer(1, 1000000))}, {"mask": choice("inclusive", "strict")}
    ),
    "width": integer(1, 4096),
    "activation": ACTIVATION,
    "embedder": variants(
        concat=concat,
        additive=additive,
        parts=families.parts,
        separate=families.separate,
        set=families.set_encoder,
    ),
    "head": variants(
        gaussian=gaussian,
        mixture=mixture,
        classes=classes,
        bars=bars,
        **{"joint-gaussian": families.joint},
    ),
}
LAYERS = {"layers": integer(1, 128), "heads": integer(1, 4096), "norm": NORM}
STACK = {**LAYERS, "feedforward": SIZE}
BIAS = choice("all", "output", "none")
PLAIN = objects({"bias": BIAS}, {"sinks": integer(0, 64), "log_scale": boolean})
ONLY_BIAS = objects({"bias": BIAS})
LIMITS = {"description": text, "limits": objects({}, {"rows": integer(0, 100000000)})}
ARCHITECTURES = {
    "packed": objects({**COMMON, **STACK, "attention": families.attention(BIAS)}, LIMITS),
    "two-stream": objects({**COMMON, **STACK, "attention": PLAIN}, LIMITS),
    "latent": objects(
        {**COMMON, **STACK, "attention": ONLY_BIAS, "latents": integer(1, 4096)}, LIMITS
    ),
    "buffered": objects({**COMMON, **STACK, "attention": ONLY_BIAS}, LIMITS),
    "mean": objects(COMMON, LIMITS),
    "decoupled": objects(
        {**COMMON, **LAYERS, "attention": families.decoupled_attention(BIAS)},
        {**LIMITS, "feedforward": SIZE, "backbone": families.backbone},
    ),
}


def model(path, value):
    """The model part, whose keys depend on its architecture."""
    if not isinstance(value, dict) or "architecture" not in value:
        fail("architecture", "missing")
    choice(*ARCHITECTURES)("architecture", value["architecture"])
    ARCHITECTURES[value["architecture"]](path, value)


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
    whole_tables = embedder["kind"] == "set"
    is_class = target["scaling"] == "classes"
    sinks, positions, buffer = (
        c.get("attention", {}).get("sinks", 0),
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
    yield (
        any_columns and not own_rows and not whole_tables
    ), 'inputs.max_features needs the embedder\'s x.kind "rows"'
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
    yield bool(x.get("absent")) and is_class, "embedder.x.absent is for regression models"
    yield bool(x.get("absent")) and not x.get("ridge"), "embedder.x.absent needs embedder.x.ridge"
    lent = x.get("donors", 0)
    components = head.get("components", 0) + bool(head.get("process"))
    yield lent > 0 and not inputs.get("clip"), "embedder.x.donors needs inputs.clip"
    yield (
        lent > 0 and head["kind"] == "joint-gaussian"
    ), 'embedder.x.donors excludes head.kind "joint-gaussian"'
    yield (
        lent > 0 and (lent + 1) * components > 4096
    ), "embedder.x.donors are too many for so many components"
    yield bool(x.get("shift")) and not (
        lent and x.get("process")), "embedder.x.shift needs embedder.x.donors and process"
    yield bool(x.get("shift")) and head["kind"] not in (
        "gaussian", "mixture"), 'embedder.x.shift needs head.kind "gaussian" or "mixture"'
    yield bool(x.get("pairs")) and not x.get("prune"), "embedder.x.pairs needs embedder.x.prune"
    yield x.get("prune_judged", False) and not (x.get("prune") and x.get("process")), (
        "embedder.x.prune_judged needs embedder.x.prune and embedder.x.process")
    yield "prune_below" in x and not x.get("prune"), "embedder.x.prune_below needs embedder.x.prune"
    ordered = target.get("order") == "counts"
    yield (x.get("codes") == "targets" and is_class and not ordered,
           'embedder.x.codes "targets" of a classifier needs target.order "counts"')
    yield (bool(x.get("orient")) and is_class and not ordered,
           'embedder.x.orient of a classifier needs target.order "counts"')
    yield bool(x.get("orient")) and not is_class and head["kind"] not in (        "gaussian",
        "mixture",
    ), 'embedder.x.orient needs head.kind "gaussian" or "mixture"'
    process = bool(x.get("process"))
    gated = bool(head.get("process"))
    yield gated and not process, "head.process needs embedder.x.process"
    full_room = gated and head.get("components") == 1024
    yield (bool(head.get("process_record")) and not (gated and x.get("ridge")),
           "head.process_record needs head.process and embedder.x.ridge")
    yield bool(head.get("process_behind")) and not gated, "head.process_behind needs head.process"
    yield bool(head.get("process_chain")) and not gated, "head.process_chain needs head.process"
    yield full_room, "head.process needs room for one more of head.components"
    yield process and is_class, "embedder.x.process is for regression models"
    yield process and not inputs.get("clip"), "embedder.x.process needs inputs.clip"
    yield "directions" in x and not process, "embedder.x.directions needs embedder.x.process"
    yield bool(x.get("additive")) and not process, "embedder.x.additive needs embedder.x.process"
    yield bool(x.get("nearest")) and not process, "embedder.x.nearest needs embedder.x.process"
    yield bool(x.get("line")) and not process, "embedder.x.line needs embedder.x.process"
    yield (bool(x.get("labels")) and not process and not x.get("logistic"),
           "embedder.x.labels needs embedder.x.process or embedder.x.logistic")
    yield process and not target.get("clip"), "embedder.x.process needs target.clip"
    yield bool(head.get("logistic")) and not x.get(
        "logistic"
    ), "head.logistic needs embedder.x.logistic"
    classes = head["kind"] == "classes"
    yield (bool(head.get("trees")) and classes and not x.get("logistic"),
           "head.trees needs embedder.x.logistic")
    yield (bool(head.get("class_process")) and not x.get("logistic"),
           "head.class_process needs embedder.x.logistic")
    yield (bool(head.get("trees")) and not classes and not head.get("process"),
           "head.trees needs head.process")
    yield (bool(head.get("few_values")) and not (head.get("trees") and x.get("ridge")),
           "head.few_values needs head.trees and embedder.x.ridge")
    yield bool(head.get("levels")) and not gated, "head.levels needs head.process"
    yield bool(head.get("rare")) and not gated, "head.rare needs head.process"
    yield (bool(head.get("rare")) and head.get("components", 3) < 3,
           "head.rare needs head.components of 3 or more")
    yield is_class != (
        head["kind"] == "classes"
    ), 'target.scaling "classes" and head.kind "classes" need each other'
    yield is_class != (
        embedder.get("y", {}).get("kind") == "classes"
    ), 'target.scaling "classes" and the embedder\'s y.kind "classes" need each other'
    yield (bool(target.get("far")) and not (own_rows and not is_class
                                            and target.get("count", 1) == 1),
           'target.far needs the embedder\'s x.kind "rows" and one target, which is a number')
    yield bool(inputs.get("far")) and not own_rows, 'inputs.far needs the embedder\'s x.kind "rows"'
    yield (target.get("order") == "counts" and not (is_class and x.get("kind") == "rows"),
           'target.order "counts" needs target.scaling "classes" and the embedder\'s x.kind "rows"')
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
        c.get("attention", {}).get("log_scale")
    ), "attention.log_scale is for packed models"
    yield two_stream and positions > 0, "embedder.positions is for packed models"
    yield c["min_rows"] < 1 and sinks == 0 and c[
        "architecture"] != "mean", "min_rows must be at least 1 in a model without attention.sinks"
    yield c["min_rows"] < 2 and (
        inputs["scaling"] in ("prefix", "power") or target["scaling"] == "prefix"
    ), 'min_rows must be at least 2 where a scaling is "prefix"'
    yield not full and buffer is not None, 'chain.buffer must be null unless context is "full"'
    yield not full and positions > 0, 'embedder.positions must be 0 unless context is "full"'
    yield not full and strict, 'chain.mask "strict" needs context "full"'
    yield positions > 0 and buffer is None, "embedder.positions needs a limit in chain.buffer"
    yield positions > 0 and positions < (
        buffer or 1
    ) - 1, "embedder.positions must be at least chain.buffer - 1"
    widths = c.get("attention", {})
    yield c["width"] % c.get("heads", 1) != 0 and not (
        "query_width" in widths and "value_width" in widths
    ), "heads must divide width"
    yield std in (
        "exp",
        "bounded",
    ) and floor != 0, 'head.floor must be 0 for head.std "exp" and "bounded"'
    bounded = head.get("tails") != "half-normal" or head["buckets"] >= 2
    yield not bounded, 'head.tails "half-normal" needs at least 2 head.buckets'
    large = std == "softplus-complement" and floor >= 1
    yield large, 'head.floor must be below 1 for head.std "softplus-complement"'
