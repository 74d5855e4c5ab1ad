"""Embedders, masks and the two stacks (docs/model-format.md sections 4, 6 and 7): rows and queries in, query states out.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from layers import block, linear, mlp, norm

QUERY, PREFIX, LATER = 0, 1, 2			# rows of the tensor "role"


def encode(model, name, encoder, x):
    """A linear, MLP, skip-MLP or class encoder of x [n, .]."""
    tensors, activation = model.tensors, model.embedder_activation
    if encoder["kind"] == "linear":
        return linear(tensors, name, x)
    if encoder["kind"] == "mlp":
        return mlp(tensors, name, x, activation)
    if encoder["kind"] == "classes":
        return tensors[name + ".weight"][x[:, 0].astype(int)]
    u = linear(tensors, name + ".first", x)
    return u + mlp(tensors, name + ".rest", u, activation)


def embed_features(model, statistics, x, prefix_y):
    """E_x of raw rows x; prefix_y as for the row tokeniser."""
    encoder = model.config["embedder"]["x"]
    if encoder["kind"] == "rows":
        return statistics.tokeniser(x, prefix_y)
    return encode(model, "embed.x", encoder, statistics.scaling.features(x))


def embed(model, statistics, x, y, prefix, queries):
    """
    Vectors of the rows x, y (of which the first `prefix` are the prefix) and of the queries: ([n, d], [m, d]).
    The statistics come from other rows where the prefix is shorter than min_rows or a block was merged.
    """
    embedder, tensors, scaling = model.config["embedder"], model.tensors, statistics.scaling
    n, m = len(x), len(queries)
    target = scaling.target(y).reshape(n, 1)
    if embedder["kind"] == "concat":
        rows = np.concatenate([scaling.features(x), target], axis=1)
        asked = np.concatenate([scaling.features(queries), np.zeros((m, 1))], axis=1)
        if embedder["flag"]:
            rows = np.concatenate([rows, np.zeros((n, 1))], axis=1)
            asked = np.concatenate([asked, np.ones((m, 1))], axis=1)
        return mlp(tensors, "embed.xy", rows, model.embedder_activation), mlp(tensors, "embed.xy", asked, model.embedder_activation)
    rows = embed_features(model, statistics, x, y[:statistics.n]) + encode(model, "embed.y", embedder["y"], target)
    asked = embed_features(model, statistics, queries, y[:0])
    if embedder.get("roles"):
        rows[:prefix] += tensors["role"][PREFIX]
        rows[prefix:] += tensors["role"][LATER]
        asked = asked + tensors["role"][QUERY]
    if embedder.get("positions"):
        rows[prefix:] += tensors["pos"][:n - prefix]
    return rows, asked


def visibility(config, n, prefix):
    """Which token sees which, [S + n, S + n]: sinks, prefix, later rows. Section 6's table."""
    sinks = config["attention"].get("sinks", 0)
    strict = config["chain"].get("mask", "inclusive") == "strict"
    first = sinks + prefix
    mask = np.zeros((sinks + n, sinks + n), dtype=bool)
    mask[:, :first] = True
    for i in range(first, sinks + n):
        mask[i, first:i + (0 if strict else 1)] = True
    return mask


def run(model, statistics, x, y, prefix, queries):
    """States of the queries [m, d], ready for the head. Every query sees all rows and no query."""
    config, tensors = model.config, model.tensors
    rows, asked = embed(model, statistics, x, y, prefix, queries)
    mask = visibility(config, len(x), prefix)
    if config["attention"].get("sinks", 0):
        rows = np.concatenate([tensors["sinks"], rows])
    for i in range(config["layers"]):
        if config["architecture"] == "packed":
            name = f"layer.{i}"
            asked = block(tensors, name, config, config["heads"], asked, rows)
            rows = block(tensors, name, config, config["heads"], rows, rows, mask)
        else:
            rows = block(tensors, f"self.{i}", config, config["heads"], rows, rows, mask)
            asked = block(tensors, f"cross.{i}", config, config["heads"], asked, rows)
    if config["norm"]["final"]:
        asked = norm(tensors, "final_norm", config, asked)
    return asked


def head_outputs(model, states):
    return mlp(model.tensors, "head", states, model.config["head"].get("activation", model.config["activation"]))
