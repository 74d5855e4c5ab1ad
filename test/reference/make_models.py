"""Write small models for tests: random weights in every architecture and option, and the
transparent models.

    make_models.py OUTDIR [--seed N]

The random models predict nothing useful. Their weights are scaled so that attention logits span
several units and answers vary with the context: a wrong mask, scale or sign then shows as an error
far above float32 rounding. The same seed gives the same bytes. The transparent models
(transparent.py) are built by hand.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import copy
import os
import zlib

import numpy as np

import column_models
from safetensors_io import write_model
from transparent import transparent_models

BASE = {
    "format": 1,
    "description": "random weights, for tests",
    "architecture": "packed",
    "inputs": {"features": 2, "scaling": "none"},
    "target": {"scaling": "none"},
    "min_rows": 1,
    "context": "full",
    "chain": {"buffer": None, "mask": "inclusive"},
    "width": 24,
    "layers": 2,
    "heads": 3,
    "feedforward": 40,
    "norm": {"kind": "layer", "placement": "pre", "eps": 1e-5, "final": True},
    "activation": "relu",
    "attention": {"bias": "all", "sinks": 0, "log_scale": False},
    "embedder": {"kind": "concat", "hidden": [32], "flag": False},
    "head": {"kind": "gaussian", "hidden": [32], "std": "softplus", "floor": 0.01},
}

SKIP = {"kind": "skip-mlp", "hidden": [32]}
MLP = {"kind": "mlp", "hidden": [32]}
LINEAR = {"kind": "linear"}
CLASS = {"kind": "classes"}
MIXTURE = {"kind": "mixture", "hidden": [32], "components": 5, "std": "softplus", "floor": 1e-3}
PREFIX = {"scaling": "prefix"}
CLASS_HEAD = {"kind": "classes", "hidden": [32], "classes": 5}
CLASSES = {"target": {"scaling": "classes"}, "head": CLASS_HEAD}
TOKENS = {"width": 16, "layers": 2, "heads": 2, "feedforward": 24, "readouts": 2}


def additive(x, y, roles=False, positions=0, **more):
    return {"kind": "additive", "x": x, "y": y, "roles": roles, "positions": positions, **more}


def rows(tokens, hidden=20, **more):
    return {"kind": "rows", "hidden": hidden, "tokens": tokens, **more}


def gaussian(std, floor=0.0, hidden=(32,)):
    return {"kind": "gaussian", "hidden": list(hidden), "std": std, "floor": floor}


RMS_PRE = {"kind": "rms", "placement": "pre", "eps": 1e-6, "final": True}
RMS_POST = {"kind": "rms", "placement": "post", "eps": 1e-6, "final": False}
LAYER_POST = {"kind": "layer", "placement": "post", "eps": 1e-5, "final": False}
BUNDLED = {
    "context": "prefix-causal", "norm": RMS_PRE, "activation": "gelu", "head": MIXTURE,
    "attention": {"bias": "none", "sinks": 3, "log_scale": True},
}
TABULAR = {
    **BUNDLED, "min_rows": 4, "inputs": {"max_features": 5, "scaling": "prefix", "clip": 3},
    "target": {"scaling": "prefix", "clip": 3},
}
BUFFER = {
    "chain": {"buffer": 4, "mask": "inclusive"}, "activation": "gelu", "head": MIXTURE,
    "embedder": additive(SKIP, SKIP, True, 4), "inputs": {"features": 1, "scaling": "none"},
}
INCREMENTAL = {
    "architecture": "two-stream", "context": "causal",
    "embedder": {"kind": "concat", "hidden": [24, 24], "flag": True},
    "attention": {"bias": "output", "sinks": 0, "log_scale": False}, "heads": 4,
    "head": gaussian("sqrt-softplus", 0.01, (24, 24)),
}

CLASS_TABULAR = {**TABULAR, **CLASSES}

# name -> what differs from BASE; "same weights as" shares the weights of another model
MODELS = {
    "packed_tnpd": {"chain": {"buffer": 1}, "norm": LAYER_POST, "head": gaussian("exp")},
    "packed_tnpa": {"norm": LAYER_POST, "head": gaussian("bounded")},
    "packed_flag": {"embedder": {"kind": "concat", "hidden": [], "flag": True},
                    "activation": "gelu-tanh", "head": gaussian("softplus", 0.0, ())},
    "buffer_inclusive": BUFFER,
    "buffer_strict": {**BUFFER, "chain": {"buffer": 4, "mask": "strict"}, "norm": LAYER_POST,
                      "activation": "relu"},
    "buffer_one": {**BUFFER, "chain": {"buffer": 1, "mask": "inclusive"}},
    "buffer_no_positions": {**BUFFER, "chain": {"buffer": 3, "mask": "inclusive"},
                            "embedder": additive(SKIP, MLP, True, 0, activation="relu")},
    "buffer_sinks": {**BUFFER, "min_rows": 0, "chain": {"buffer": 3, "mask": "strict"},
                     "norm": RMS_POST,
                     "attention": {"bias": "output", "sinks": 2, "log_scale": True}},
    "buffer_scaled": {**BUFFER, "min_rows": 3,
                      "inputs": {"features": 3, "scaling": "prefix", "clip": 1.5},
                      "target": {"scaling": "prefix", "clip": 1.0},
                      "embedder": additive(MLP, LINEAR, False, 3)},
    "incremental": INCREMENTAL,
    "incremental_fixed": {**INCREMENTAL,
                          "inputs": {"features": 2, "scaling": "fixed", "center": [0.5, -1.0],
                                     "scale": [2.0, 0.5], "clip": 2.0},
                          "target": {"scaling": "fixed", "center": 1.5, "scale": 3.0, "clip": 1.0},
                          "norm": RMS_POST, "activation": "gelu", "head": MIXTURE},
    "incremental_roles": {**INCREMENTAL, "embedder": additive(LINEAR, LINEAR, True, 0),
                          "attention": {"bias": "none"}},
    "incremental_scaled": {**INCREMENTAL, "min_rows": 4, "inputs": {**PREFIX, "features": 2},
                           "target": PREFIX},
    "rows_causal": {**TABULAR, "architecture": "two-stream", "context": "causal",
                    "embedder": additive(rows(None), MLP), "attention": {"bias": "output"}},
    "two_stream_full": {**INCREMENTAL, "context": "full",
                        "chain": {"buffer": 1, "mask": "inclusive"}},
    "two_stream_buffer": {**INCREMENTAL, "context": "full",
                          "chain": {"buffer": 3, "mask": "inclusive"},
                          "embedder": additive(SKIP, LINEAR, True, 0), "norm": LAYER_POST},
    "two_stream_strict": {**INCREMENTAL, "context": "full",
                          "chain": {"buffer": None, "mask": "strict"}},
    "prefix_causal": {**BUNDLED, "min_rows": 0, "inputs": {"features": 1, "scaling": "none"},
                      "embedder": additive(MLP, MLP)},
    "prefix_causal_post": {**BUNDLED, "min_rows": 0, "norm": LAYER_POST,
                           "embedder": additive(MLP, LINEAR, True), "layers": 3, "width": 16,
                           "heads": 2},
    "prefix_causal_scaled": {**BUNDLED, "min_rows": 3, "inputs": {**PREFIX, "features": 2},
                             "target": PREFIX, "embedder": additive(SKIP, MLP)},
    "prefix_causal_half": {**BUNDLED, "min_rows": 0, "inputs": {"features": 1, "scaling": "none"},
                           "embedder": additive(MLP, MLP)},
    "packed_causal": {"context": "causal", "min_rows": 0,
                      "attention": {"bias": "all", "sinks": 1, "log_scale": False},
                      "activation": "gelu-tanh"},
    "packed_causal_roles": {"context": "causal", "embedder": additive(SKIP, MLP, True),
                            "norm": RMS_PRE},
    "rows_flat": {**TABULAR, "embedder": additive(rows(None), MLP)},
    "rows_few": {**TABULAR, "inputs": {"max_features": 4, "scaling": "prefix", "clip": 3},
                 "width": 16, "layers": 1, "heads": 2,
                 "embedder": additive(rows(None), MLP)},
    "rows_ridge": {**TABULAR, "embedder": additive(rows(None, ridge=True), MLP)},
    "rows_ridge_tokens": {**TABULAR, "min_rows": 2,
                          "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                          "embedder": additive(rows(TOKENS, ridge=True), MLP)},
    "rows_prune": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                   "embedder": additive(rows(None, ridge=True, prune=True), MLP)},
    "rows_pairs": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                   "embedder": additive(rows(None, ridge=True, prune=True, pairs=True), MLP)},
    "rows_process": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                     "embedder": additive(rows(None, ridge=True, process=True), MLP)},
    "rows_gated": {**TABULAR, "embedder": additive(rows(None, process=True), MLP),
                   "head": {**MIXTURE, "process": 7}},
    "rows_absent": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                    "embedder": additive(rows(None, ridge=True, absent=True, codes="targets",
                                              prune=True, prune_below=8), MLP)},
    "rows_directions": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                        "embedder": additive(rows(None, process=True, directions=3,
                                                  codes="targets"), MLP),
                        "head": {**MIXTURE, "process": 7}},
    "rows_additive": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                      "embedder": additive(rows(None, process=True, directions=2, additive=True,
                                                codes="targets"), MLP),
                      "head": {**MIXTURE, "process": 7}},
    "rows_donors": {**TABULAR,
                    "embedder": additive(rows(None, ridge=True, process=True, codes="targets",
                                              donors=5), MLP),
                    "head": {**MIXTURE, "process": 7}},
    "rows_chained": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                     "embedder": additive(rows(None, process=True, directions=2, additive=True,
                                               donors=3, shift=True), MLP),
                     "head": {**MIXTURE, "process": 7, "process_chain": True}},
    "rows_chained_buffer": {**TABULAR, "context": "full",
                            "chain": {"buffer": 4, "mask": "inclusive"},
                            "embedder": additive(rows(None, process=True, orient=True), MLP, True,
                                                 3),
                            "head": {**MIXTURE, "process": 7, "process_chain": True}},
    "rows_trees": {**TABULAR,
                   "embedder": additive(rows(None, process=True, orient=True, donors=3,
                                             shift=True), MLP),
                   "head": {**MIXTURE, "process": 7, "process_chain": True, "trees": 0.8}},
    "rows_few_values": {**TABULAR,
                        "embedder": additive(rows(None, ridge=True, process=True, orient=True,
                                                  donors=3, shift=True), MLP),
                        "head": {**MIXTURE, "process": 7, "process_chain": True, "trees": 0.8,
                                 "few_values": 0.6}},
    "rows_record": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                    "embedder": additive(rows(None, ridge=True, absent=True, process=True,
                                              directions=2, additive=True, line=True, orient=True,
                                              codes="targets", donors=3, shift=True), MLP),
                    "head": {**MIXTURE, "process": 7, "process_record": True,
                             "process_chain": True}},
    "rows_behind": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                    "embedder": additive(rows(None, ridge=True, process=True), MLP),
                    "head": {**MIXTURE, "process": 7, "process_record": True,
                             "process_behind": True}},
    "rows_behind_buffer": {**TABULAR, "context": "full",
                           "chain": {"buffer": 4, "mask": "inclusive"},
                           "embedder": additive(rows(None, process=True, orient=True), MLP, True,
                                                3),
                           "head": {**MIXTURE, "process": 7, "process_chain": True,
                                    "process_behind": True}},
    "rows_few_values_whole": {**TABULAR,
                              "embedder": additive(rows(None, ridge=True, process=True), MLP),
                              "head": {**MIXTURE, "process": 7, "trees": 0.8, "few_values": 1}},
    "rows_rare": {**TABULAR, "embedder": additive(rows(None, process=True, orient=True, donors=3,
                                                       shift=True), MLP),
                  "head": {**MIXTURE, "process": 7, "process_chain": True, "rare": 4}},
    # components of random weights are wide
    "rows_levels": {**TABULAR, "embedder": additive(rows(None, process=True, line=True, orient=True,
                                                         donors=3, shift=True), MLP),
                    "head": {**MIXTURE, "process": 7, "process_chain": True, "rare": 4,
                             "levels": 1}},
    "rows_rare_few": {**TABULAR, "embedder": additive(rows(None, ridge=True, process=True), MLP),
                      "head": {**MIXTURE, "process": 7, "trees": 0.8, "few_values": 0.5,
                               "rare": 5.5}},
    "rows_far": {**TABULAR,
                 "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3, "far": 20},
                 "embedder": additive(rows(None, ridge=True, absent=True, process=True, orient=True,
                                           codes="targets", donors=3, shift=True), MLP),
                 "head": {**MIXTURE, "process": 7, "process_chain": True, "trees": 0.8}},
    "rows_far_targets": {**TABULAR,
                         "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3, "far": 20},
                         "target": {"scaling": "prefix", "clip": 5, "far": 12},
                         "embedder": additive(rows(None, ridge=True, process=True, orient=True,
                                                   codes="targets", donors=3, shift=True), MLP),
                         "head": {**MIXTURE, "process": 7, "process_chain": True, "trees": 0.8,
                                  "few_values": 0.5, "rare": 6}},
    "rows_line": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 2},
                  "target": {"scaling": "prefix", "clip": 2.5},
                  "embedder": additive(rows(None, ridge=True, process=True, line=True, orient=True,
                                            codes="targets", donors=3, shift=True), MLP),
                  "head": {**MIXTURE, "process": 7, "process_chain": True, "trees": 0.8,
                           "few_values": 0.5}},
    "rows_nearest": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                     "embedder": additive(rows(None, ridge=True, absent=True, process=True,
                                               directions=2, additive=True, nearest=True,
                                               line=True, orient=True, codes="targets", donors=3,
                                               shift=True), MLP),
                     "head": {**MIXTURE, "process": 7, "process_record": True,
                              "process_chain": True, "trees": 0.8, "few_values": 0.5}},
    "rows_judged": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                    "embedder": additive(rows(None, ridge=True, prune=True, prune_judged=True,
                                              process=True, directions=2, donors=3, shift=True,
                                              codes="targets"), MLP),
                    "head": {**MIXTURE, "process": 7, "process_record": True}},
    # of all tables, whose other columns it does not use
    "rows_nearest_few": {**TABULAR, "inputs": {"max_features": 3, "scaling": "prefix", "clip": 3},
                         "embedder": additive(rows(None, process=True, nearest=True), MLP)},
    "rows_nearest_buffer": {**TABULAR, "context": "full",
                            "inputs": {"max_features": 2, "scaling": "prefix", "clip": 3},
                            "chain": {"buffer": 4, "mask": "inclusive"},
                            "embedder": additive(rows(None, process=True, nearest=True,
                                                      orient=True), MLP, True, 3),
                            "head": {**MIXTURE, "process": 7, "process_chain": True,
                                     "process_behind": True}},
    "rows_labels": {**TABULAR,
                    "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3, "far": 20},
                    "embedder": additive(rows(None, ridge=True, absent=True, process=True,
                                              line=True, labels=True, orient=True, split=3,
                                              codes="targets", donors=3, shift=True), MLP),
                    "head": {**MIXTURE, "process": 7, "process_chain": True, "trees": 0.8}},
    "rows_labels_alone": {**TABULAR,
                          "embedder": additive(rows(None, process=True, labels=True), MLP),
                          "head": {**MIXTURE, "process": 7}},
    "rows_line_rare": {**TABULAR,
                       "embedder": additive(rows(None, process=True, line=True), MLP),
                       "head": {**MIXTURE, "process": 7, "rare": 3}},
    # what it calls far is near enough for draws to be so
    "rows_far_chains": {**TABULAR, "target": {"scaling": "prefix", "clip": 5, "far": 1.2},
                        "embedder": additive(rows(None, ridge=True), MLP)},
    "rows_trees_tokens": {**TABULAR, "embedder": additive(rows(TOKENS, process=True), MLP),
                          "head": {**MIXTURE, "process": 7, "trees": 1}},
    "rows_orient": {**TABULAR,
                    "embedder": additive(rows(None, ridge=True, process=True, codes="targets",
                                              orient=True, donors=3, shift=True), MLP),
                    "head": {**MIXTURE, "process": 7}},
    "rows_orient_buffer": {**TABULAR, "context": "full",
                           "chain": {"buffer": 4, "mask": "inclusive"},
                           "embedder": additive(rows(None, ridge=True, absent=True, orient=True),
                                                MLP, True, 3),
                           "head": gaussian("softplus")},
    "rows_donors_buffer": {**TABULAR, "context": "full",
                           "chain": {"buffer": 4, "mask": "inclusive"},
                           "embedder": additive(rows(None, donors=3), MLP, True, 3),
                           "head": gaussian("softplus")},
    "rows_donors_bars": {**TABULAR, "architecture": "two-stream", "context": "causal",
                         "embedder": additive(rows(None, donors=4), MLP),
                         "attention": {"bias": "output"},
                         "head": {"kind": "bars", "hidden": [], "buckets": 9,
                                  "tails": "half-normal"}},
    "rows_split": {**TABULAR, "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                   "embedder": additive(rows(None, ridge=True, absent=True, process=True,
                                             codes="targets", split=5, orient=True, donors=3,
                                             shift=True), MLP),
                   "head": {**MIXTURE, "process": 7, "trees": 0.5}},
    "rows_split_tokens": {**TABULAR, "inputs": {"max_features": 7, "scaling": "prefix", "clip": 3},
                          "embedder": additive(rows(TOKENS, ridge=True, split=3), MLP)},
    "rows_tokens": {**TABULAR, "embedder": additive(rows(TOKENS), MLP)},
    "rows_layer_norm": {**TABULAR,
                        "embedder": additive(rows(TOKENS), LINEAR, True, activation="relu"),
                        "norm": LAYER_POST,
                        "attention": {"bias": "all", "sinks": 1, "log_scale": False}},
    "rows_min_rows": {**TABULAR, "min_rows": 7, "embedder": additive(rows(TOKENS), MLP, True)},
    "rows_buffer": {**TABULAR, "context": "full", "chain": {"buffer": 4, "mask": "inclusive"},
                    "embedder": additive(rows(TOKENS), MLP, True, 3)},
    "rows_two_stream": {**TABULAR, "architecture": "two-stream", "context": "full",
                        "chain": {"buffer": None, "mask": "inclusive"},
                        "embedder": additive(rows(None), MLP), "attention": {"bias": "output"}},
    "std_exp": {"head": gaussian("exp")},
    "std_bounded": {"head": gaussian("bounded")},
    "std_softplus": {"head": gaussian("softplus", 0.02)},
    "std_softplus_complement": {"head": gaussian("softplus-complement", 0.1)},
    "std_sqrt_softplus": {"head": gaussian("sqrt-softplus", 0.05)},
    "mixture_exp": {"head": {**MIXTURE, "std": "exp", "floor": 0, "activation": "gelu"}},
    "head_bars": {**BUNDLED, "min_rows": 0, "embedder": additive(MLP, MLP),
                  "head": {"kind": "bars", "hidden": [32], "buckets": 16, "tails": "bounded"}},
    "head_bars_half_normal": {**BUNDLED, "min_rows": 2, "inputs": {**PREFIX, "features": 2},
                              "target": PREFIX, "embedder": additive(MLP, MLP),
                              "head": {"kind": "bars", "hidden": [], "buckets": 9,
                                       "tails": "half-normal"}},
    "classes_plain": {**BUNDLED, **CLASSES, "min_rows": 0,
                      "inputs": {"features": 1, "scaling": "none"},
                      "embedder": additive(MLP, CLASS)},
    "classes_rows": {**CLASS_TABULAR, "embedder": additive(rows(None), CLASS)},
    "classes_ridge": {**CLASS_TABULAR, "embedder": additive(rows(None, ridge=True), CLASS)},
    "classes_ridge_tokens": {**CLASS_TABULAR, "min_rows": 3,
                             "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                             "embedder": additive(rows(TOKENS, ridge=True), CLASS)},
    "classes_ridge_most": {**CLASS_TABULAR,
                           "head": {"kind": "classes", "hidden": [32], "classes": 64},
                           "embedder": additive(rows(None, ridge=True), CLASS)},
    "classes_logistic": {**CLASS_TABULAR, "embedder": additive(rows(None, logistic=True), CLASS)},
    "classes_lean": {**CLASS_TABULAR,
                     "embedder": additive(rows(None, ridge=True, logistic=True), CLASS),
                     "head": {**CLASS_HEAD, "logistic": 0.35}},
    "classes_donors": {**CLASS_TABULAR,
                       "embedder": additive(rows(None, ridge=True, logistic=True, donors=4),
                                            CLASS),
                       "head": {**CLASS_HEAD, "logistic": 0.35}},
    "classes_trees": {**CLASS_TABULAR,
                      "embedder": additive(rows(None, ridge=True, logistic=True, donors=4), CLASS),
                      "head": {**CLASS_HEAD, "logistic": 0.35, "trees": 0.4}},
    "classes_process": {**CLASS_TABULAR, "target": {"scaling": "classes", "order": "counts"},
                        "embedder": additive(rows(None, ridge=True, logistic=True, donors=4,
                                                  codes="targets", orient=True, split=4), CLASS),
                        "head": {**CLASS_HEAD, "logistic": 0.35, "trees": 0.4,
                                 "class_process": 0.6}},
    "classes_process_alone": {**CLASS_TABULAR,
                              "embedder": additive(rows(None, logistic=True), CLASS),
                              "head": {**CLASS_HEAD, "class_process": 1}},
    "classes_trees_alone": {**CLASS_TABULAR,
                            "embedder": additive(rows(TOKENS, logistic=True), CLASS),
                            "head": {**CLASS_HEAD, "trees": 1}},
    "classes_split": {**CLASS_TABULAR,
                      "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                      "embedder": additive(rows(None, ridge=True, logistic=True, donors=4,
                                                split=16), CLASS),
                      "head": {**CLASS_HEAD, "logistic": 0.35, "trees": 0.4}},
    "classes_far": {**CLASS_TABULAR,
                    "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3, "far": 8},
                    "embedder": additive(rows(None, ridge=True, logistic=True, donors=4), CLASS),
                    "head": {**CLASS_HEAD, "logistic": 0.35, "trees": 0.4}},
    "classes_labels": {**CLASS_TABULAR, "target": {"scaling": "classes", "order": "counts"},
                       "embedder": additive(rows(None, ridge=True, logistic=True, labels=True,
                                                 donors=4, codes="targets", orient=True, split=3),
                                            CLASS)},
    "classes_labels_alone": {**CLASS_TABULAR,
                             "embedder": additive(rows(None, logistic=True, labels=True), CLASS)},
    "classes_order": {**CLASS_TABULAR, "target": {"scaling": "classes", "order": "counts"},
                      "embedder": additive(rows(None, ridge=True, logistic=True, donors=4,
                                                codes="targets", orient=True, split=4), CLASS),
                      "head": {**CLASS_HEAD, "logistic": 0.35, "trees": 0.4}},
    "classes_order_tokens": {**CLASS_TABULAR, "target": {"scaling": "classes", "order": "counts"},
                             "architecture": "two-stream", "context": "causal",
                             "attention": {"bias": "output"}, "min_rows": 7,
                             "embedder": additive(rows(TOKENS), CLASS)},
    "classes_lean_tokens": {**CLASS_TABULAR,
                            "embedder": additive(rows(TOKENS, logistic=True), CLASS),
                            "head": {**CLASS_HEAD, "logistic": 0.6}},
    "classes_lean_buffer": {**CLASS_TABULAR, "context": "full",
                            "chain": {"buffer": 4, "mask": "inclusive"},
                            "embedder": additive(rows(None, logistic=True), CLASS, True, 3),
                            "head": {**CLASS_HEAD, "logistic": 1}},
    "classes_logistic_tokens": {**CLASS_TABULAR, "min_rows": 3,
                                "inputs": {"max_features": 40, "scaling": "prefix", "clip": 3},
                                "embedder": additive(rows(TOKENS, ridge=True, logistic=True),
                                                     CLASS)},
    "classes_logistic_most": {**CLASS_TABULAR,
                              "head": {"kind": "classes", "hidden": [32], "classes": 64},
                              "embedder": additive(rows(None, ridge=True, logistic=True), CLASS)},
    "classes_logistic_buffer": {**CLASS_TABULAR, "context": "full",
                                "chain": {"buffer": 4, "mask": "inclusive"},
                                "embedder": additive(rows(None, logistic=True), CLASS, True, 3)},
    "classes_tokens": {**CLASS_TABULAR, "min_rows": 7,
                       "embedder": additive(rows(TOKENS), CLASS, True), "norm": LAYER_POST},
    "classes_buffer": {**BUFFER, **CLASSES, "embedder": additive(SKIP, CLASS, True, 4)},
    "classes_incremental": {**INCREMENTAL, **CLASSES, "embedder": additive(LINEAR, CLASS, True, 0),
                            "attention": {"bias": "none"}},
}
SAME_WEIGHTS = {"buffer_one": "buffer_inclusive"}
HALF = {"prefix_causal_half"}
QK_GAIN = 1.5


class Weights:
    """Random tensors, drawn in the order in which they are asked for."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        self.tensors = {}

    def normal(self, name, shape, sd, center=0.0):
        self.tensors[name] = (center + sd * self.random.standard_normal(shape)).astype(np.float32)

    def linear(self, name, n_in, n_out, gain=1.0, bias=True):
        self.normal(name + ".weight", (n_out, n_in), gain / np.sqrt(n_in))
        if bias:
            self.normal(name + ".bias", (n_out,), 0.2)

    def mlp(self, name, sizes, gain=1.4, last_gain=1.0):
        for i in range(len(sizes) - 1):
            self.linear(f"{name}.{i}", sizes[i], sizes[i + 1],
                        gain if i < len(sizes) - 2 else last_gain)

    def norm(self, name, width, kind):
        self.normal(name + ".weight", (width,), 0.1, 1.0)
        if kind == "layer":
            self.normal(name + ".bias", (width,), 0.1)

    def block(self, name, config, width, feedforward, heads=None):
        """One layer; with `heads`, its attention has a log scale."""
        bias = config["attention"]["bias"]
        for part, gain in (("q", QK_GAIN), ("k", QK_GAIN), ("v", 1.0), ("o", 1.0)):
            self.linear(f"{name}.attn.{part}", width, width, gain,
                        bias == "all" or (bias == "output" and part == "o"))
        if heads:
            scale = np.stack(
                [self.random.uniform(0.1, 0.4, heads), self.random.uniform(0.3, 0.8, heads)],
                axis=1)
            self.tensors[f"{name}.attn.log_scale"] = scale.astype(np.float32)
        self.mlp(f"{name}.ff", [width, feedforward, width])
        for i in (1, 2):
            self.norm(f"{name}.norm{i}", width, config["norm"]["kind"])

    def encoder(self, name, encoder, n_in, config):
        width = config["width"]
        if encoder["kind"] == "linear":
            self.linear(name, n_in, width)
        elif encoder["kind"] == "mlp":
            self.mlp(name, [n_in, *encoder["hidden"], width])
        elif encoder["kind"] == "skip-mlp":
            self.linear(name + ".first", n_in, width)
            self.mlp(name + ".rest", [width, *encoder["hidden"], width])
        elif encoder["kind"] == "classes":
            self.normal(name + ".weight", (config["head"]["classes"], width), 1.0)
        else:
            self.row_tokeniser(name, encoder, config)

    def row_tokeniser(self, name, encoder, config):
        slots, width, hidden, tokens = config["inputs"]["max_features"], config["width"], encoder[
            "hidden"], encoder["tokens"]
        numbers = 8 + config["head"].get("classes", 0)
        self.normal(f"{name}.slot.weight", (slots, hidden, numbers), 0.6)
        self.normal(f"{name}.slot.bias", (hidden,), 0.2)
        if encoder.get("ridge"):
            self.normal(f"{name}.ridge.weight",
                        (hidden, 2 * (numbers - 8 + 2) if numbers > 8 else 6), 0.4)
        if encoder.get("process"):
            self.normal(f"{name}.process.weight", (hidden, 4), 0.4)
        if encoder.get("logistic"):
            self.normal(f"{name}.logistic.weight", (hidden, numbers - 8 + 1), 0.4)
        self.linear(f"{name}.out", hidden, width, 1.4)
        if tokens is None:
            return
        cell = tokens["width"]
        self.mlp(f"{name}.cell", [numbers, 2 * cell, cell])
        self.normal(f"{name}.code", (slots, cell), 0.5)
        self.normal(f"{name}.readout", (tokens["readouts"], cell), 1.0)
        for i in range(tokens["layers"]):
            self.block(f"{name}.block.{i}", config, cell, tokens["feedforward"])
        self.linear(f"{name}.pool", tokens["readouts"] * cell, width, 0.7)

    def embedder(self, config):
        embedder, width = config["embedder"], config["width"]
        n = config["inputs"].get("features", 0)
        if embedder["kind"] == "concat":
            self.mlp("embed.xy", [n + 1 + embedder["flag"], *embedder["hidden"], width])
            return
        self.encoder("embed.x", embedder["x"], n, config)
        self.encoder("embed.y", embedder["y"], 1, config)
        if embedder["roles"]:
            self.normal("role", (3, width), 0.5)
        if embedder["positions"]:
            self.normal("pos", (embedder["positions"], width), 0.5)

    def head(self, config):
        head, width = config["head"], config["width"]
        outputs = {"gaussian": 2, "mixture": 3 * head.get("components", 0),
                   "bars": head.get("buckets", 0), "classes": head.get("classes", 0)}[head["kind"]]
        self.mlp("head", [width, *head["hidden"], outputs], 1.4, 1.0)
        if head.get("process"):
            reads = ((17 if head.get("process_record") else 10)
                     + bool(head.get("process_behind")))
            self.mlp("head.gate", [reads, head["process"], 1], 1.4, 1.0)
        if head["kind"] == "bars":
            borders = (np.linspace(-3, 3, head["buckets"] + 1)
                       + self.random.uniform(-0.05, 0.05, head["buckets"] + 1))
            self.tensors["head.borders"] = borders.astype(np.float32)


def random_weights(config, seed):
    """Tensors for a configuration (docs/model-format.md section 12)."""
    weights = Weights(seed)
    weights.embedder(config)
    width, attention = config["width"], config["attention"]
    heads = config["heads"] if attention.get("log_scale") else None
    if attention.get("sinks"):
        weights.normal("sinks", (attention["sinks"], width), 1.0)
    for i in range(config["layers"]):
        for stack in ("layer",) if config["architecture"] == "packed" else ("self", "cross"):
            weights.block(f"{stack}.{i}", config, width, config["feedforward"], heads)
    if config["norm"]["final"]:
        weights.norm("final_norm", width, config["norm"]["kind"])
    weights.head(config)
    return weights.tensors


# Wider than a tile's states fit the shared memory of a GPU: in a folder of their own, for their
# tests alone. The odd one has no head, and no row, of whole tiles.
WIDE = {
    "wide": {**BUNDLED, "min_rows": 3, "inputs": {**PREFIX, "features": 2},
             "target": PREFIX, "width": 1024, "heads": 16, "feedforward": 2048,
             "embedder": additive(SKIP, SKIP, True)},
    "wide_odd": {"context": "causal", "width": 1035, "heads": 9, "feedforward": 500,
                 "norm": LAYER_POST, "activation": "gelu-tanh",
                 "embedder": additive(MLP, LINEAR), "head": MIXTURE},
}


def make_random(name, seed):
    """(config, tensors, dtype) of one of MODELS, or of WIDE."""
    config = copy.deepcopy({**BASE, **{**MODELS, **WIDE}[name]})
    config["description"] = f"{name}: random weights, for tests"
    tensors = random_weights(config,
                             (zlib.crc32(SAME_WEIGHTS.get(name, name).encode()) + seed) % 2 ** 32)
    return config, tensors, "F16" if name in HALF or name in WIDE else "F32"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("outdir")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.makedirs(arguments.outdir, exist_ok=True)
    models = {name: make_random(name, arguments.seed) for name in MODELS}
    models.update(
        {name: (config, tensors, "F32")
         for name, (config, tensors) in transparent_models().items()})
    wide = os.path.join(arguments.outdir, "wide")
    os.makedirs(wide, exist_ok=True)
    for name in WIDE:
        config, tensors, dtype = make_random(name, arguments.seed)
        write_model(os.path.join(wide, name + ".safetensors"), config, tensors, dtype)
    os.makedirs(os.path.join(arguments.outdir, "columns"), exist_ok=True)
    column_models.write_models(os.path.join(arguments.outdir, "columns"))
    for name, (config, tensors, dtype) in models.items():
        write_model(os.path.join(arguments.outdir, name + ".safetensors"), config, tensors, dtype)


if __name__ == "__main__":
    main()
