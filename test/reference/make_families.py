"""Write small models of the families of docs/families.md, with random weights, for tests.

    make_families.py OUTDIR [--seed N] [--engine | --only NAME...]

--engine: those that the engine computes.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import copy
import os
import zlib

import numpy as np

from make_models import (BASE, BUNDLED, LAYER_POST, LINEAR, MIXTURE, MLP, QK_GAIN, SKIP, Weights,
                         additive, gaussian)
from safetensors_io import write_model

K1, K3, ANY = ({"buffer": k, "mask": "inclusive"} for k in (1, 3, None))
STRICT = {"buffer": 3, "mask": "strict"}
CAUSAL = {"context": "causal", "chain": ANY}
PREFIX_CAUSAL = {"context": "prefix-causal", "chain": ANY}
FLAG = {"kind": "concat", "hidden": [24], "flag": True}
PRE = {"kind": "layer", "placement": "pre", "eps": 1e-6, "final": True}
RMS = {"kind": "rms", "placement": "pre", "eps": 1e-6, "final": True}
JOINT = {"kind": "joint-gaussian", "hidden": [20], "rank": 6, "layers": 2, "projector": [18]}
BARS = {"kind": "bars", "hidden": [32], "buckets": 12, "tails": "half-normal"}
CLASS = {"target": {"scaling": "classes"}, "embedder": additive(MLP, {"kind": "classes"}),
         "head": {"kind": "classes", "hidden": [20], "classes": 4}}
LATENT = {"architecture": "latent", "latents": 5, "attention": {"bias": "output"}, "chain": K1,
          "embedder": FLAG}
BUFFERED = {"architecture": "buffered", "attention": {"bias": "all"}, "chain": K3, "norm": PRE,
            "embedder": additive(MLP, MLP, True), "head": MIXTURE, "activation": "gelu"}
PARTS = {"kind": "parts", "observed": 4, "x": {"kind": "none"}, "y": {"kind": "identity"},
         "hidden": [40, 32], "norm": True}
SCAN = {"chain": K1, "norm": PRE, "activation": "gelu-tanh", "embedder": PARTS,
        "attention": {"bias": "all", "query_width": 36, "value_width": 18, "value_hidden": [30],
                      "value_activation": "relu", "kernel": {"basis": 5}},
        "head": gaussian("softplus-complement", 0.0)}
TIME = {"kernel": {"basis": 2, "components": [[0, 1], [2]], "causal": 2}}
DEEP = {**SCAN, "heads": 1, "attention": {"kind": "deep-kernel", "bias": "all", "features": 20,
                                          "hidden": [28], "value_hidden": [26]}}
XY = {**PARTS, "x": {"kind": "linear", "width": 5}}
RANDOM = {**SCAN, "embedder": XY, "attention": {"kind": "random-features", "bias": "all",
                                                   "features": 16, "query_width": 12,
                                                   "value_width": 36}}
DVA = {"architecture": "decoupled", "embedder": {"kind": "separate", "x": LINEAR, "y": LINEAR},
       "attention": {"bias": "all"}, "norm": {**PRE, "final": False}, "head": BARS, "chain": K1}
NO_FF = {"feedforward": None}
SET = {"kind": "set", "y": LINEAR, "roles": True, "positions": 2, "activation": "gelu",
       "columns": {"width": 16, "layers": 2, "heads": 2, "feedforward": 24, "inducing": 6},
       "rows": {"layers": 2, "heads": 2, "feedforward": 28, "readouts": 2, "take": "all",
                "rotary": 100000, "layout": "interleaved"}}
TABLE = {"embedder": SET, "chain": K3, "min_rows": 4, "width": 32, "heads": 4, "head": MIXTURE,
         "inputs": {"max_features": 7, "scaling": "prefix"}, "target": {"scaling": "prefix"}}


def several(count, **more):
    return {"target": {"scaling": "none", "count": count, **more}}

SUMS = {"architecture": "sums", "inputs": {"max_features": 64, "scaling": "prefix"},
        **PREFIX_CAUSAL,
        "target": {"scaling": "prefix"}, "min_rows": 4, "waves": 4, "pairs": 3, "pair_waves": 2,
        "levels": 2, "buckets": 3, "steps": 5, "points": 3, "linear": True, "profile": "matern",
        "lengths": [1.0, 2.0], "start": 10.0, "prior_shape": 0.5, "prior_rate": 0.5,
        "noise_shape": 0.5, "noise_rate": 0.005}

# name -> what differs from BASE; None leaves a key out
FAMILIES = {
    "several_concat": {**several(3), "embedder": FLAG},
    "several_mixture": {**several(2, scaling="prefix", clip=1.0), "head": MIXTURE, "min_rows": 3,
                        "embedder": additive(MLP, SKIP, True, 2), "chain": K3},
    "several_fixed": {**several(2, scaling="fixed", center=[1.0, -2.0], scale=[2.0, 0.5]),
                      "head": BARS, **CAUSAL},
    "joint_full": {"head": JOINT, "chain": K1, "norm": LAYER_POST},
    "joint_several": {**BUNDLED, **several(2, scaling="prefix"), "head": {**JOINT, "jitter": 0.1},
                      "min_rows": 2, "embedder": additive(MLP, MLP), "norm": RMS,
                      "inputs": {"features": 2, "scaling": "prefix"}},
    "joint_prefix": {**BUNDLED, "head": {**JOINT, "jitter": 0.1}, "min_rows": 2, "norm": RMS,
                     "embedder": additive(MLP, MLP), "target": {"scaling": "prefix"},
                     "inputs": {"features": 2, "scaling": "prefix"}},
    "mean": {"architecture": "mean", "min_rows": 0, **CAUSAL},
    "mean_causal": {"architecture": "mean", "min_rows": 2, **CAUSAL},
    "mean_prefix": {"architecture": "mean", "min_rows": 3, **PREFIX_CAUSAL, "head": MIXTURE,
                    **several(2, scaling="prefix"), "inputs": {"features": 2, "scaling": "prefix"}},
    "mean_scaled": {"architecture": "mean", "min_rows": 3, **PREFIX_CAUSAL, "head": MIXTURE,
                    "target": {"scaling": "prefix", "clip": 2.0},
                    "inputs": {"features": 2, "scaling": "prefix"}},
    "latent": LATENT,
    "latent_buffer": {**LATENT, "chain": K3},
    "latent_any": {**LATENT, "chain": ANY},
    "latent_strict": {**LATENT, "chain": STRICT, "embedder": additive(MLP, MLP, True, 2),
                      "norm": LAYER_POST, "attention": {"bias": "all"}},
    "latent_classes": {**LATENT, **CLASS, "chain": K3},
    "buffered": BUFFERED,
    "buffered_classes": {**BUFFERED, **CLASS},
    "scan": SCAN,
    "scan_causal": {**SCAN, **CAUSAL},
    "scan_prefix_causal": {**SCAN, **PREFIX_CAUSAL, "norm": LAYER_POST},
    "scan_time": {**SCAN, "inputs": {"features": 3, "scaling": "none"},
                  "attention": {**SCAN["attention"], **TIME}},
    "scan_classes": {**SCAN, **CLASS},
    "scan_parts": {**SCAN, **several(2), "chain": K3,
                   "embedder": {**PARTS, "norm": False, "x": {"kind": "linear", "width": 5},
                                "y": {"kind": "mlp", "hidden": [6], "width": 7}}},
    "scan_one_target": {**SCAN, "chain": K3,
                        "embedder": {**PARTS, "norm": False, "x": {"kind": "linear", "width": 5},
                                     "y": {"kind": "mlp", "hidden": [6], "width": 7}}},
    "scan_widths": {**SCAN, "context": "prefix-causal", "chain": ANY,
                    "embedder": additive(MLP, SKIP, True),
                    "attention": {"bias": "output", "query_width": 12, "value_width": 36}},
    "deep_kernel": DEEP,
    "deep_kernel_causal": {**DEEP, **CAUSAL, "norm": {**PRE, "eps": 0.05}, "embedder": XY,
                           "attention": {**DEEP["attention"], "position": False}},
    "deep_kernel_buffer": {**DEEP, "chain": STRICT, "norm": RMS},
    "deep_kernel_several": {**DEEP, **several(2, clip=1.5), "chain": K3, "head": MIXTURE,
                            "embedder": XY},
    "random_features": RANDOM,
    "random_features_causal": {**RANDOM, **PREFIX_CAUSAL},
    # marks of sums behind those of the prefix, farther apart than blocks of the cache are long
    "random_features_any": {**RANDOM, "chain": ANY,
                            "attention": {**RANDOM["attention"], "features": 150,
                                          "value_width": 192}},
    "random_features_several": {**RANDOM, **PREFIX_CAUSAL, **several(3, scaling="prefix"),
                                "min_rows": 2},
    "decoupled": DVA,
    "decoupled_one": {**DVA, "layers": 1, "head": {**BARS, "tails": "bounded"}},
    "decoupled_causal": {**DVA, **CAUSAL, "head": gaussian("softplus", 0.1)},
    "decoupled_distance": {**DVA, "attention": {"bias": "all", "kind": "distance", "tied": True}},
    "decoupled_linear": {**DVA, **PREFIX_CAUSAL, "attention": {"bias": "output", "kind": "linear"}},
    "decoupled_buffer": {**DVA, "chain": STRICT, **several(2)},
    "decoupled_convolution": {**DVA, **NO_FF, "backbone": {"kind": "convolution"}},
    "decoupled_rnn": {**DVA, **NO_FF, **CAUSAL, "backbone": {"kind": "rnn"}},
    "decoupled_lstm": {**DVA, **NO_FF, **CAUSAL, "backbone": {"kind": "lstm"}},
    "set": TABLE,
    "set_power": {**TABLE, "width": 16, "inputs": {"max_features": 7, "scaling": "power"},
                  # more sinks than a state has numbers of cells
                  "attention": {"bias": "all", "sinks": 9},
                  "embedder": {**SET, "rows": {**SET["rows"], "take": "first", "layout": "half"}}},
}
FAMILIES["sums"] = SUMS
FAMILIES["sums_fixed"] = {**SUMS,
                          "inputs": {"features": 2, "scaling": "fixed", "center": [0.2, 0.0],
                                        "scale": [1.0, 0.7]},
                          "target": {"scaling": "fixed", "center": 1.0, "scale": 2.0},
                          "steps": 0, "linear": False, "profile": "gaussian", "waves": 12,
                          "lengths": [0.3, 0.6, 1.0], "start": 0.02, "min_rows": 1, "pairs": 0}
FAMILIES["sums_directions"] = {**SUMS, "directions": 3, "waves": 6}
# The engine computes these; it refuses the others.
ENGINE = ("several_concat", "several_mixture", "several_fixed", "mean_prefix", "scan_parts",
          "decoupled_buffer", "deep_kernel", "deep_kernel_causal", "deep_kernel_buffer",
          "deep_kernel_several", "random_features", "random_features_causal",
          "random_features_any", "random_features_several", "mean", "mean_causal", "mean_scaled",
          "latent", "latent_buffer", "latent_any", "latent_strict", "decoupled", "decoupled_one",
          "decoupled_causal", "decoupled_distance", "decoupled_linear", "decoupled_convolution",
          "decoupled_rnn", "decoupled_lstm", "scan", "scan_causal", "scan_prefix_causal",
          "scan_time", "joint_full", "joint_prefix", "joint_several", "scan_one_target",
          "scan_widths", "buffered", "buffered_classes", "sums", "sums_fixed", "sums_directions",
          "set", "set_power")
SUMS_LACK = ("width", "layers", "heads", "feedforward", "norm", "attention", "activation",
             "embedder", "head")
MEAN_LACKS = "layers", "heads", "feedforward", "norm", "attention"


def family(name):
    """The configuration of one of FAMILIES."""
    config = copy.deepcopy({**BASE, **FAMILIES[name]})
    if config["architecture"] == "mean":
        config.update({key: None for key in MEAN_LACKS})
    if config["architecture"] == "sums":
        config.update({key: None for key in SUMS_LACK})
    config = {key: value for key, value in config.items() if value is not None}
    config["description"] = f"{name}: random weights, for tests"
    if config["architecture"] in ("latent", "buffered", "decoupled"):
        config["attention"].pop("sinks", None)
        config["attention"].pop("log_scale", None)
    return config


class FamilyWeights(Weights):
    """Random tensors of the families, by the lists of docs/families.md."""

    def attention(self, name, config):
        """The attention of a packed layer of any kind."""
        a, d, kind = config["attention"], config["width"], config["attention"].get(
            "kind", "softmax")
        bias, wide = a["bias"] == "all", a.get("query_width", config["width"])
        value = a.get("value_width", d)
        if kind == "deep-kernel":
            inputs = d + (config["inputs"]["features"] if a.get("position", True) else 0)
            self.sized_mlp(f"{name}.qk", [inputs, *a["hidden"], a["features"]], bias)
            self.norm(f"{name}.norm", d, config["norm"]["kind"])
        else:
            gain = QK_GAIN if kind == "softmax" else 0.7
            self.linear(f"{name}.q", d, wide, gain, bias)
            self.linear(f"{name}.k", d, wide, gain, bias)
            self.linear(f"{name}.o", value, d, 1.0, a["bias"] != "none")
        if a.get("value_hidden"):
            self.sized_mlp(f"{name}.v", [d, *a["value_hidden"], value], bias)
        else:
            self.linear(f"{name}.v", d, value, 1.0, bias)
        if kind == "random-features":
            self.normal(f"{name}.omega", (a["features"], wide // config["heads"]), 1.0)
        if a.get("kernel"):
            count = len(a["kernel"].get("components") or [0])
            for part, center in (("a", 1.0), ("b", 0.6), ("c", 0.3)):
                shape = count, config["heads"], a["kernel"]["basis"]
                self.normal(f"{name}.kernel.{part}", shape, 0.6, center)

    def sized_mlp(self, name, sizes, bias):
        for i in range(len(sizes) - 1):
            self.linear(f"{name}.{i}", sizes[i], sizes[i + 1], 1.2, bias)

    def packed_layer(self, name, config):
        d = config["width"]
        self.attention(f"{name}.attn", config)
        self.mlp(f"{name}.ff", [d, config["feedforward"], d])
        for i in (1, 2):
            self.norm(f"{name}.norm{i}", d, config["norm"]["kind"])

    def plain_layer(self, name, width, feedforward):
        """A block of a stage of the set encoder."""
        config = {"attention": {"bias": "all"}, "norm": {"kind": "layer"}}
        self.block(name, config, width, feedforward)

    def norms(self, name, config, which):
        for one in which:
            self.norm(f"{name}.norm_{one}", config["width"], config["norm"]["kind"])

    def decoupled_attention(self, name, config):
        a, d = config["attention"], config["width"]
        for part in ("q", "v", "o") if a.get("tied") else ("q", "k", "v", "o"):
            bias = a["bias"] == "all" or a["bias"] == "output" and part == "o"
            self.linear(f"{name}.{part}", d, d, 1.2, bias)

    def decoupled(self, config):
        d, kind = config["width"], config.get("backbone", {"kind": "attention"})["kind"]
        for i in range(config["layers"]):
            name = f"layer.{i}"
            if kind in ("rnn", "lstm"):
                gates = d if kind == "rnn" else 4 * d
                self.linear(f"{name}.rec.ih", d, gates)
                self.linear(f"{name}.rec.hh", d, gates)
                continue
            self.decoupled_attention(f"{name}.attn", config)
            if kind == "attention":
                self.normal(f"{name}.tau", (1,), 0.1, 0.7)
                self.mlp(f"{name}.ff", [d, config["feedforward"], d])
                self.norms(name, config, ("q", "k", "v", "ff"))
            else:
                self.normal(f"{name}.conv.weight", (d, 5), 0.4)
                self.norms(name, config, ("c", "qk", "v"))
        if kind in ("rnn", "lstm"):
            self.decoupled_attention("read.attn", config)
            self.norms("read", config, ("v",))

    def part(self, name, part, numbers):
        """A part of the embedder of parts; how many numbers come out of it."""
        if part["kind"] in ("none", "identity"):
            return 0 if part["kind"] == "none" else numbers
        if part["kind"] == "linear":
            self.linear(name, numbers, part["width"])
        else:
            self.mlp(name, [numbers, *part["hidden"], part["width"]])
        return part["width"]

    def set_encoder(self, config):
        embedder = config["embedder"]
        columns, rows = embedder["columns"], embedder["rows"]
        c = columns["width"]
        self.linear("embed.column.in", 1, c)
        for i in range(columns["layers"]):
            self.normal(f"embed.column.{i}.inducing", (columns["inducing"], c), 1.0)
            for part in "ab":
                self.plain_layer(f"embed.column.{i}.{part}", c, columns["feedforward"])
        for part in ("scale", "shift"):
            self.linear(f"embed.column.{part}", c, c)
            self.norm(f"embed.column.{part}_norm", c, "layer")
        self.normal("embed.row.readout", (rows["readouts"], c), 1.0)
        for i in range(rows["layers"]):
            self.plain_layer(f"embed.row.{i}", c, rows["feedforward"])
        self.norm("embed.row.norm", c, "layer")

    def embedder(self, config):
        embedder, d, targets = config["embedder"], config["width"], targets_of(config)
        n, kind = config["inputs"].get("features", 0), embedder["kind"]
        if kind == "concat":
            self.mlp("embed.xy", [n + targets + embedder["flag"], *embedder["hidden"], d])
        elif kind == "parts":
            self.normal("embed.observed", (2, embedder["observed"]), 1.0)
            n = self.part("embed.x", embedder["x"], n)
            targets = self.part("embed.y", embedder["y"], targets)
            self.mlp("embed.xy", [embedder["observed"] + n + targets, *embedder["hidden"], d])
            if embedder["norm"]:
                self.norm("embed.norm", d, config["norm"]["kind"])
        else:
            if kind == "set":
                self.set_encoder(config)
            else:
                self.encoder("embed.x", embedder["x"], n, config)
            self.encoder("embed.y", embedder["y"], targets, config)
        if embedder.get("roles"):
            self.normal("role", (3, d), 0.5)
        if embedder.get("positions"):
            self.normal("pos", (embedder["positions"], d), 0.5)

    def head(self, config):
        head, d, targets = config["head"], config["width"], targets_of(config)
        if head["kind"] == "joint-gaussian":
            self.mlp("head.mean", [d, *head["hidden"], targets])
            for k in range(head["layers"]):
                self.block(f"head.block.{k}", config, d, config["feedforward"])
            self.mlp("head.projector", [d, *head["projector"], head["rank"] * targets])
            return
        each = {"gaussian": 2, "mixture": 3 * head.get("components", 0),
                "bars": head.get("buckets"), "classes": head.get("classes")}
        inputs = d + (config["inputs"]["features"] if config["architecture"] == "mean" else 0)
        self.mlp("head", [inputs, *head["hidden"], targets * each[head["kind"]]])
        if head["kind"] == "bars":
            borders = np.linspace(-3, 3, head["buckets"] + 1)
            borders += self.random.uniform(-0.05, 0.05, head["buckets"] + 1)
            self.tensors["head.borders"] = borders.astype(np.float32)

    def stack(self, config):
        architecture, d = config["architecture"], config["width"]
        if architecture == "decoupled":
            self.decoupled(config)
        if architecture == "latent":
            self.normal("latents", (config["latents"], d), 1.0)
        stacks = {"packed": ("layer",), "two-stream": ("self", "cross"),
                  "latent": ("read", "self", "cross"), "buffered": ("self", "buffer", "cross")}
        for stack in stacks.get(architecture, ()):
            for i in range(config["layers"]):
                self.packed_layer(f"{stack}.{i}", config)
                if architecture == "buffered" and stack == "cross":
                    self.norm(f"cross.{i}.norm_kv", d, config["norm"]["kind"])
                    self.normal(f"cross.{i}.attn.buffer", (config["heads"],), 0.5)


def targets_of(config):
    return config["target"].get("count", 1)


def family_weights(config, seed):
    """Tensors for a configuration."""
    if config["architecture"] == "sums":
        return {}
    weights = FamilyWeights(seed)
    weights.embedder(config)
    attention = config.get("attention", {})
    if attention.get("sinks"):
        weights.normal("sinks", (attention["sinks"], config["width"]), 1.0)
    weights.stack(config)
    if attention.get("log_scale"):
        for i in range(config["layers"]):
            scale = weights.random.uniform(0.2, 0.6, (config["heads"], 2))
            weights.tensors[f"layer.{i}.attn.log_scale"] = scale.astype(np.float32)
    if config.get("norm", {}).get("final"):
        weights.norm("final_norm", config["width"], config["norm"]["kind"])
    weights.head(config)
    return weights.tensors


def make_family(name, seed=0):
    """(config, tensors) of one of FAMILIES."""
    config = family(name)
    return config, family_weights(config, (zlib.crc32(name.encode()) + seed) % 2 ** 32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("outdir")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES, metavar="NAME")
    parser.add_argument("--engine", action="store_const", dest="only", const=ENGINE)
    arguments = parser.parse_args()
    os.makedirs(arguments.outdir, exist_ok=True)
    for name in arguments.only:
        config, tensors = make_family(name, arguments.seed)
        write_model(os.path.join(arguments.outdir, name + ".safetensors"), config, tensors)


if __name__ == "__main__":
    main()
