"""The keys and rules of docs/families.md."""

from .config_values import (
    ACTIVATION,
    HIDDEN,
    KIND,
    SIZE,
    array,
    anything,
    boolean,
    choice,
    integer,
    linear,
    mlp,
    number,
    objects,
    or_null,
    variants,
)

WIDTH = integer(1, 4096)
ENC = variants(linear=linear, mlp=mlp, **{"skip-mlp": mlp})
identity = objects(KIND)
sized_linear = objects({**KIND, "width": WIDTH})
sized_mlp = objects({**KIND, "hidden": HIDDEN, "width": WIDTH})
VALUES = {"value_width": WIDTH, "value_hidden": HIDDEN, "value_activation": ACTIVATION}

parts = objects(
    {
        **KIND,
        "observed": WIDTH,
        "x": variants(none=identity, identity=identity, linear=sized_linear, mlp=sized_mlp),
        "y": variants(identity=identity, linear=sized_linear, mlp=sized_mlp),
        "hidden": HIDDEN,
        "norm": boolean,
    },
    {"activation": ACTIVATION},
)
separate = objects({**KIND, "x": ENC, "y": ENC}, {"activation": ACTIVATION})
set_encoder = objects(
    {
        **KIND,
        "columns": objects(
            {
                "width": WIDTH,
                "layers": integer(1, 128),
                "heads": WIDTH,
                "feedforward": SIZE,
                "inducing": WIDTH,
            }
        ),
        "rows": objects(
            {
                "layers": integer(1, 128),
                "heads": WIDTH,
                "feedforward": SIZE,
                "readouts": integer(1, 64),
                "take": choice("first", "all"),
                "rotary": number(1.0),
                "layout": choice("interleaved", "half"),
            }
        ),
        "y": ENC,
        "roles": boolean,
        "positions": integer(0, 1000000),
    },
    {"activation": ACTIVATION},
)
joint = objects(
    {
        **KIND,
        "hidden": HIDDEN,
        "rank": integer(1, 1024),
        "layers": integer(0, 128),
        "projector": HIDDEN,
    },
    {"activation": ACTIVATION, "jitter": number(0)},
)
backbone = objects({"kind": choice("attention", "convolution", "rnn", "lstm")})


def attention(bias):
    """The attention of a packed model; what goes with which kind is in the rules."""
    kernel = objects(
        {"basis": integer(1, 64)},
        {
            "components": array(array(integer(0, 1023)), 8),
            "causal": or_null(integer(0, 1023)),
        },
    )
    common = {"kind": choice("softmax", "deep-kernel", "random-features")}
    softmax = objects(
        {"bias": bias},
        {
            **common,
            "sinks": integer(0, 64),
            "log_scale": boolean,
            "query_width": WIDTH,
            "kernel": kernel,
            **VALUES,
        },
    )
    deep = objects(
        {**common, "bias": bias, "features": WIDTH, "hidden": HIDDEN},
        {"position": boolean, **VALUES},
    )
    features = objects(
        {**common, "bias": bias, "features": WIDTH}, {"query_width": WIDTH, **VALUES}
    )
    kinds = {"softmax": softmax, "deep-kernel": deep, "random-features": features}

    def read(path, value):
        kind = value.get("kind", "softmax") if isinstance(value, dict) else "softmax"
        kinds.get(kind if isinstance(kind, str) else "", softmax)(path, value)

    return read


def decoupled_attention(bias):
    return objects(
        {"bias": bias}, {"kind": choice("softmax", "distance", "linear"), "tied": boolean}
    )


def target_rules(c):
    """Several targets."""
    target, embedder, count = c["target"], c["embedder"], c["target"].get("count", 1)
    any_columns = "max_features" in c["inputs"] and embedder["kind"] != "set"
    yield count > 1 and (
        any_columns or c["head"]["kind"] == "classes"
    ), "target.count must be 1 in classifiers and with the embedder's x.kind \"rows\""
    for key in ("center", "scale"):
        value = target.get(key)
        short = len(value) != count if isinstance(value, list) else count > 1
        yield value is not None and (
            short or isinstance(value, list) and count == 1
        ), f"target.{key} needs one number for each of target.count"


def packed_rules(c):
    """Kinds of attention and the embedders of parts and of sets."""
    a, features = c.get("attention", {}), c["inputs"].get("features", 0)
    packed = c["architecture"] == "packed"
    kind, kernel, embedder = a.get("kind", "softmax"), a.get("kernel"), c["embedder"]["kind"]
    heads = c.get("heads", 1)
    own = kernel or kind != "softmax" or a.get("value_hidden") or any(
        key in a for key in ("query_width", "value_width")
    )
    for key in ("sinks", "log_scale") if packed and own else ():
        yield bool(a.get(key)), (
            f"attention of another kind, of widths of its own, or with a kernel, excludes "
            f"attention.{key}"
        )
    for key in ("query_width", "value_width"):
        yield a.get(key, heads) % heads != 0, f"heads must divide attention.{key}"
    if packed and kind == "deep-kernel":
        yield heads != 1, 'attention.kind "deep-kernel" needs heads 1'
        yield a.get("value_width", c["width"]) != c["width"], (
            'attention.value_width must be width for attention.kind "deep-kernel"'
        )
    if packed and (kind == "deep-kernel" and a.get("position", True) or kernel):
        yield features == 0, "attention that reads positions needs inputs.features"
    if kernel and packed:
        columns = [i for part in kernel.get("components", []) for i in part]
        causal = kernel.get("causal")
        yield any(i >= features for i in columns), (
            "attention.kernel.components must be columns below inputs.features"
        )
        yield "components" in kernel and not all(kernel["components"] or [[]]), (
            "attention.kernel.components must not be empty"
        )
        yield causal is not None and causal >= features, (
            "attention.kernel.causal must be a column below inputs.features"
        )
    yield embedder == "parts" and not packed, 'the embedder "parts" is for packed models'
    yield embedder == "separate" and c["architecture"] != "decoupled", (
        'the embedder "separate" is for decoupled models'
    )


def set_rules(c):
    """The set encoder."""
    whole = c["embedder"]["kind"] == "set"
    power = c["inputs"]["scaling"] == "power"
    yield power and not whole, 'inputs.scaling "power" needs the embedder "set"'
    if not whole:
        return
    columns, rows = c["embedder"]["columns"], c["embedder"]["rows"]
    yield c["architecture"] != "packed" or c["context"] != "full", (
        'the embedder "set" needs a packed model of context "full"'
    )
    yield "max_features" not in c["inputs"], 'the embedder "set" needs inputs.max_features'
    yield c["inputs"]["scaling"] not in ("prefix", "power"), (
        'the embedder "set" needs inputs.scaling "prefix" or "power"'
    )
    yield columns["width"] % columns["heads"] != 0, "columns.heads must divide columns.width"
    yield columns["width"] % (2 * rows["heads"]) != 0, (
        "columns.width must be a multiple of twice rows.heads"
    )
    wide = columns["width"] * (1 if rows["take"] == "first" else rows["readouts"])
    yield c["width"] != wide, f"width must be {wide} for this set encoder"


def stack_rules(c):
    """Architectures of their own."""
    architecture, embedder, chain = c["architecture"], c["embedder"]["kind"], c["chain"]
    if architecture == "mean":
        yield embedder != "concat" or c["embedder"].get("flag", False), (
            'architecture "mean" needs the embedder "concat" without a flag'
        )
        yield c["context"] == "full", (
            'architecture "mean" needs context "causal" or "prefix-causal"'
        )
        yield c["head"]["kind"] in ("classes", "joint-gaussian"), (
            f'architecture "mean" has no head {c["head"]["kind"]!r}'
        )
    if architecture in ("latent", "buffered"):
        yield c["context"] != "full", f'architecture "{architecture}" needs context "full"'
        yield embedder not in ("concat", "additive"), (
            f'architecture "{architecture}" needs the embedder "concat" or "additive"'
        )
        yield "max_features" in c["inputs"], f'architecture "{architecture}" needs inputs.features'
    if architecture == "buffered":
        yield chain["buffer"] is None, 'architecture "buffered" needs a limit in chain.buffer'
        yield c["norm"]["placement"] != "pre", 'architecture "buffered" needs norm.placement "pre"'


def decoupled_rules(c):
    """Decoupled values and their backbones."""
    if c["architecture"] != "decoupled":
        return
    backbone = c.get("backbone", {"kind": "attention"})["kind"]
    yield c["embedder"][
        "kind"] != "separate", 'architecture "decoupled" needs the embedder "separate"'
    yield "max_features" in c["inputs"], 'architecture "decoupled" needs inputs.features'
    yield c["norm"]["placement"] != "pre", 'architecture "decoupled" needs norm.placement "pre"'
    yield (backbone == "attention") != ("feedforward" in c), (
        "feedforward belongs to the attention backbone alone"
    )
    yield backbone != "attention" and c["attention"].get("kind", "softmax") != "softmax", (
        f'backbone "{backbone}" needs attention.kind "softmax"'
    )
    yield backbone == "convolution" and (
        c["context"] != "full" or c["chain"]["buffer"] != 1
    ), 'backbone "convolution" needs context "full" and chain.buffer 1'
    yield backbone in ("rnn", "lstm") and c["context"] != "causal", (
        f'backbone "{backbone}" needs context "causal"'
    )


def family_rules(c):
    """(broken, message) of every rule about more than one key of docs/families.md."""
    yield from target_rules(c)
    yield from packed_rules(c)
    yield from set_rules(c)
    yield from stack_rules(c)
    yield from decoupled_rules(c)
