"""Embedders, masks and the two stacks (docs/model-format.md sections 4, 6 and 7): rows and queries
in, query states out.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from layers import linear, mlp, norm
from sets import column_stage, row_stage
from stacks import STACKS

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


def embed_set(model, scaling, x, prefix, queries):
    """Rows and queries through the column and row stages; missing cells are 0."""
    cells = np.nan_to_num(scaling.features(np.concatenate([x, queries])))
    tokens = row_stage(model, column_stage(model, cells, prefix))
    return tokens[:len(x)], tokens[len(x):]


def embed_separate(model, scaling, x, target, queries):
    """Pairs (features, targets) of rows and of queries, whose targets are zeros."""
    embedder = model.config["embedder"]
    e, f = (encode(model, "embed.x", embedder["x"], scaling.features(r)) for r in (x, queries))
    return (e, encode(model, "embed.y", embedder["y"], target)), (f, np.zeros_like(f))


def embed_parts(model, scaling, x, target, queries):
    """A vector for observed or asked, a part of x and a part of y, through an MLP."""
    embedder, tensors = model.config["embedder"], model.tensors

    def part(name, numbers):
        kind = embedder[name]["kind"]
        if kind == "none":
            return numbers[:, :0]
        return (numbers if kind == "identity"
                else encode(model, "embed." + name, embedder[name], numbers))

    def tokens(observed, features, values):
        numbers = [np.repeat(tensors["embed.observed"][observed:observed + 1], len(features),
                             axis=0),
                   part("x", scaling.features(features)), part("y", values)]
        out = mlp(tensors, "embed.xy", np.concatenate(numbers, axis=1), model.embedder_activation)
        return norm(tensors, "embed.norm", model.config, out) if embedder["norm"] else out

    return tokens(1, x, target), tokens(0, queries, np.zeros((len(queries), target.shape[1])))


def embed(model, statistics, x, y, prefix, queries):
    """
    Vectors of the rows x, y (of which the first `prefix` are the prefix) and of the queries: ([n,
    d], [m, d]). The statistics come from other rows where the prefix is shorter than min_rows or a
    block was merged.
    """
    embedder, tensors, scaling = model.config["embedder"], model.tensors, statistics.scaling
    n, m, targets = len(x), len(queries), model.targets
    target = scaling.target(y).reshape(n, targets)
    if embedder["kind"] == "parts":
        return embed_parts(model, scaling, x, target, queries)
    if embedder["kind"] == "separate":
        return embed_separate(model, scaling, x, target, queries)
    if embedder["kind"] == "concat":
        rows = np.concatenate([scaling.features(x), target], axis=1)
        asked = np.concatenate([scaling.features(queries), np.zeros((m, targets))], axis=1)
        if embedder["flag"]:
            rows = np.concatenate([rows, np.zeros((n, 1))], axis=1)
            asked = np.concatenate([asked, np.ones((m, 1))], axis=1)
        return mlp(tensors, "embed.xy", rows, model.embedder_activation), mlp(
            tensors, "embed.xy", asked, model.embedder_activation)
    if embedder["kind"] == "set":
        rows, asked = embed_set(model, scaling, x, prefix, queries)
    else:
        rows = embed_features(model, statistics, x, y[:statistics.n])
        asked = embed_features(model, statistics, queries, y[:0])
    rows = rows + encode(model, "embed.y", embedder["y"], target)
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
    mask[first:, first:] = np.tri(n - prefix, k=-1 if strict else 0, dtype=bool)
    return mask


def run(model, statistics, x, y, prefix, queries):
    """States of the queries [m, d], ready for the head. Every query sees all rows and no query."""
    config, tensors = model.config, model.tensors
    rows, asked = embed(model, statistics, x, y, prefix, queries)
    if config["architecture"] == "mean":
        mean = rows.sum(axis=0) / max(len(rows), 1)
        features = statistics.scaling.features(queries)
        return np.concatenate([np.repeat(mean[None], len(features), axis=0), features], axis=1)
    mask = visibility(config, len(x), prefix)
    if config["attention"].get("sinks", 0):
        rows = np.concatenate([tensors["sinks"], rows])
    places = None
    if "features" in config["inputs"]:
        places = statistics.scaling.features(x), statistics.scaling.features(queries)
    asked = STACKS[config["architecture"]](model, rows, asked, mask, prefix, places or (None, None))
    if config["norm"]["final"]:
        asked = norm(tensors, "final_norm", config, asked)
    return asked


def head_outputs(model, states):
    return mlp(model.tensors, "head", states,
               model.config["head"].get("activation", model.config["activation"]))
