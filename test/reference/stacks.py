"""The stacks of docs/families.md: embedded rows and queries in, query states out.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from attentions import decoupled_attention, packed_block
from layers import attend, block, linear, mlp, norm


def buffered_sight(config, n, prefix):
    """Which buffer row sees which, [n - prefix, n - prefix]."""
    strict = config["chain"].get("mask", "inclusive") == "strict"
    return np.tril(np.ones((n - prefix, n - prefix), dtype=bool), -1 if strict else 0)


def all_seen(n, m):
    return np.ones((n, m), dtype=bool)


def packed(model, rows, asked, mask, prefix, places):
    """One set of weights, any kind of attention; places: positions of rows and queries."""
    config, tensors = model.config, model.tensors
    for i in range(config["layers"]):
        name, here = f"layer.{i}", (places[0], places[0])
        reading = packed_block(tensors, name, config, asked, rows, all_seen(len(asked), len(rows)),
                               (places[1], places[0]))
        if i < config["layers"] - 1:            # nothing reads what rows are after the last one
            rows = packed_block(tensors, name, config, rows, rows, mask, here)
        asked = reading
    return asked


def two_stream(model, rows, asked, mask, prefix, places):
    config, tensors = model.config, model.tensors
    for i in range(config["layers"]):
        rows = block(tensors, f"self.{i}", config, config["heads"], rows, rows, mask)
        asked = block(tensors, f"cross.{i}", config, config["heads"], asked, rows)
    return asked


def latent(model, rows, asked, mask, prefix, places):
    config, tensors, heads = model.config, model.tensors, model.config["heads"]
    context, buffer, known = rows[:prefix], rows[prefix:], tensors["latents"]
    sight = np.concatenate([all_seen(len(buffer), len(known)),
                            buffered_sight(config, len(rows), prefix)], axis=1)
    for i in range(config["layers"]):
        known = block(tensors, f"read.{i}", config, heads, known, context)
        known = block(tensors, f"self.{i}", config, heads, known, known)
        source = np.concatenate([known, buffer])
        asked = block(tensors, f"cross.{i}", config, heads, asked, source)
        buffer = block(tensors, f"cross.{i}", config, heads, buffer, source, sight)
    return asked


def buffered(model, rows, asked, mask, prefix, places):
    config, tensors, heads = model.config, model.tensors, model.config["heads"]
    context, buffer = rows[:prefix], rows[prefix:]
    sight = np.concatenate([all_seen(len(buffer), prefix),
                            buffered_sight(config, len(rows), prefix)], axis=1)
    for i in range(config["layers"]):
        entering = np.concatenate([context, buffer])
        context = block(tensors, f"self.{i}", config, heads, context, context)
        buffer = block(tensors, f"buffer.{i}", config, heads, buffer, entering, sight)
        asked = target_block(tensors, f"cross.{i}", config, asked, context, buffer)
    return asked


def target_block(tensors, name, config, h, context, buffer):
    """Queries read context and buffer; a constant per head on the logits of the buffer."""
    source = norm(tensors, name + ".norm_kv", config, np.concatenate([context, buffer]))
    constant = tensors[name + ".attn.buffer"]
    extra = np.zeros((len(constant), len(source)))
    extra[:, len(context):] = constant[:, None]
    queries = norm(tensors, name + ".norm1", config, h)
    h = h + attend(tensors, name + ".attn", config["heads"], queries, source, None, extra)
    return h + mlp(tensors, name + ".ff", norm(tensors, name + ".norm2", config, h),
                   config["activation"])


def decoupled(model, rows, asked, mask, prefix, places):
    """rows and asked are pairs (features, targets)."""
    config, tensors = model.config, model.tensors
    kind = config.get("backbone", {"kind": "attention"})["kind"]
    (e, h), (f, t) = rows, asked
    if kind in ("rnn", "lstm"):
        for i in range(config["layers"]):
            e, f = recurrence(tensors, f"layer.{i}.rec", kind, e, f)
        values = norm(tensors, "read.norm_v", config, h)
        sight = all_seen(len(f), len(e))
        return decoupled_attention(tensors, "read.attn", config, (f, e), values, sight)
    layer = attention_layer if kind == "attention" else convolution_layer
    for i in range(config["layers"]):
        e, h, f, t = layer(tensors, f"layer.{i}", config, e, h, f, t, mask)
    return t


def attention_layer(tensors, name, config, e, h, f, t, mask):
    tau = tensors[name + ".tau"][0]

    def normed(which, x):
        return norm(tensors, f"{name}.norm_{which}", config, x)

    def layer(asked, state, sight):
        sides, values = (normed("q", asked), normed("k", e)), normed("v", h)
        read = decoupled_attention(tensors, name + ".attn", config, sides, values, sight, tau)
        state = state + read
        return state + mlp(tensors, name + ".ff", normed("ff", state), config["activation"])

    return e, layer(e, h, mask), f, layer(f, t, all_seen(len(f), len(e)))


def convolution_layer(tensors, name, config, e, h, f, t, mask):
    weight = tensors[name + ".conv.weight"]
    u, own = norm(tensors, name + ".norm_c", config, e), norm(tensors, name + ".norm_c", config, f)
    mixed = np.zeros_like(e)
    for i in range(len(e)):
        for o in range(-2, 3):
            if 0 <= i + o < len(e):
                mixed[i] += weight[:, o + 2] * u[i + o]
    behind = own * weight[:, 2]
    for o in (-2, -1):
        if len(e) + o >= 0:
            behind = behind + weight[:, o + 2] * u[len(e) + o]
    e, f = e + mixed, f + behind
    values = norm(tensors, name + ".norm_v", config, h)
    keys = norm(tensors, name + ".norm_qk", config, e)

    def read(asked, sight):
        return decoupled_attention(tensors, name + ".attn", config, (asked, keys), values, sight)

    queries = norm(tensors, name + ".norm_qk", config, f)
    return e, h + read(keys, mask), f, t + read(queries, all_seen(len(f), len(e)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrence(tensors, name, kind, e, f):
    """States of the rows, and of the queries, each one step behind the last row."""
    d = e.shape[1]

    def step(x, s, c):
        gates = linear(tensors, name + ".ih", x) + linear(tensors, name + ".hh", s)
        if kind == "rnn":
            return np.tanh(gates), c
        i, forget, g, o = (gates[..., k * d:(k + 1) * d] for k in range(4))
        c = sigmoid(forget) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    s, c, out = np.zeros(d), np.zeros(d), []
    for row in e:
        s, c = step(row, s, c)
        out.append(s)
    return np.array(out).reshape(-1, d), np.array([step(row, s, c)[0] for row in f]).reshape(-1, d)


STACKS = {"packed": packed, "two-stream": two_stream, "latent": latent, "buffered": buffered,
          "decoupled": decoupled}
