"""Float64 implementation of models that read a table by columns, then rows, then in context: the
architecture of TabICL (Qu et al. 2025, arXiv:2502.05564, and its second version).

`ColumnModel(config, tensors)` takes the package's configuration (the arguments of its constructor)
and its tensors, by the package's names, as float64. `predict(x, y, queries)` gives what the network
says of scaled cells: quantiles [M, Q] of a regression model, logits [M, classes] of a classifier.
Preprocessing and averages over estimators are not part of it.

SPDX-License-Identifier: PostgreSQL
"""
import math

import numpy as np

EPS = 1e-5                              # of every layer norm


def erf(x):
    return np.fromiter(map(math.erf, x.ravel().tolist()), float, x.size).reshape(x.shape)


def activate(x, kind):
    """The exact GELU, or ReLU."""
    return np.maximum(x, 0.0) if kind == "relu" else 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


class ColumnModel:
    def __init__(self, config, tensors):
        self.c = config
        self.t = tensors

    # ---- parts ---------------------------------------------------------------------------------

    def linear(self, name, x):
        return x @ self.t[name + ".weight"].T + self.t[name + ".bias"]

    def norm(self, name, x):
        mean = x.mean(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + EPS)
        return scaled * self.t[name + ".weight"] + self.t.get(name + ".bias", 0.0)

    def mlp(self, name, x, kind):
        return self.linear(name + ".2", activate(self.linear(name + ".0", x), kind))

    def scale_queries(self, name, kind, q, n):
        """Scalable softmax: q [..., heads, dh] times what n keys and the query itself say of it."""
        heads, width = q.shape[-2:]
        log_n = math.log(max(n, 1))
        if kind == "none":
            return q
        if kind == "ssmax":
            return q * self.t[name + ".scales"][:, None] * log_n
        aware = kind.startswith("qassmax")
        base = self.mlp(name + (".base_mlp" if aware else ".mlp"), np.array([log_n]), "gelu")
        q_scaled = q * (base.reshape(heads, width) if kind.endswith("elementwise")
                        else base.reshape(heads, 1))
        if aware:
            q_scaled = q_scaled * (1.0 + np.tanh(self.mlp(name + ".query_mlp", q, "gelu")))
        return q_scaled

    def rotate(self, x):
        """Rotary positions: x [..., tokens, heads, dh], token i at position i (RoFormer, Su et al.
        2021, equation 34); pairs are neighbours, or the two halves."""
        tokens, _, width = x.shape[-3:]
        stored = self.t.get("row_interactor.tf_row.rope.freqs")
        frequency = (stored if stored is not None else
                     self.c["row_rope_base"] ** (-np.arange(0, width, 2) / width))
        angle = np.arange(tokens)[:, None, None] * frequency
        cos, sin = np.cos(angle), np.sin(angle)
        out = np.empty_like(x)
        if self.c["row_rope_interleaved"]:
            a, b = x[..., 0::2], x[..., 1::2]
            out[..., 0::2], out[..., 1::2] = a * cos - b * sin, b * cos + a * sin
        else:
            a, b = x[..., :width // 2], x[..., width // 2:]
            out[..., :width // 2], out[..., width // 2:] = a * cos - b * sin, b * cos + a * sin
        return out

    def block(self, name, q, kv, heads, ssmax="none", rotary=False):
        """One pre-norm block: q [..., n, d] reads kv [..., m, d]."""
        d = q.shape[-1]
        width = d // heads
        weight = self.t[name + ".attn.in_proj_weight"]
        bias = self.t[name + ".attn.in_proj_bias"]
        normed, normed_kv = self.norm(name + ".norm1", q), self.norm(name + ".norm1", kv)

        def project(x, part):
            y = x @ weight[part * d:(part + 1) * d].T + bias[part * d:(part + 1) * d]
            return y.reshape(*y.shape[:-1], heads, width)

        queries, keys, values = project(normed, 0), project(normed_kv, 1), project(normed_kv, 2)
        if rotary:
            queries, keys = self.rotate(queries), self.rotate(keys)
        queries = self.scale_queries(name + ".attn.ssmax_layer", ssmax, queries, kv.shape[-2])
        queries, keys, values = (part.swapaxes(-3, -2) for part in (queries, keys, values))
        scores = queries @ keys.swapaxes(-2, -1) / math.sqrt(width)         # [..., heads, q, k]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        read = (weights @ values).swapaxes(-3, -2).reshape(q.shape)
        x = q + self.linear(name + ".attn.out_proj", read)
        hidden = activate(self.linear(name + ".linear1", self.norm(name + ".norm2", x)),
                          self.c["activation"])
        return x + self.linear(name + ".linear2", hidden)

    def encode_target(self, name, y):
        """Embedding of targets [N]: linear in a number, or the row of a class."""
        if self.c["max_classes"] == 0:
            return self.linear(name, y[:, None])
        return self.t[name + ".weight"].T[y.astype(int)] + self.t[name + ".bias"]

    # ---- the three stages ----------------------------------------------------------------------

    def groups(self, x):
        """Cells [T, F] by groups: [groups, T, cells of a group]."""
        kind = self.c["col_feature_group"]
        if kind is False:
            return x.T[:, :, None]
        size, columns = self.c["col_feature_group_size"], x.shape[1]
        if kind in (True, "same"):
            places = np.arange(columns)
            return np.stack([x[:, (places + 2 ** i) % columns].T for i in range(size)], axis=-1)
        x = np.pad(x, ((0, 0), (0, -columns % size)))
        return x.reshape(len(x), -1, size).transpose(1, 0, 2)

    def columns(self, x, y):
        """Column stage: cells [T, F] of N context rows and queries -> [T, groups, E]."""
        cells = self.groups(x)
        e = self.linear("col_embedder.in_linear", cells)
        n = len(y)
        if self.c["col_target_aware"]:
            e[:, :n] += self.encode_target("col_embedder.y_encoder", y)
        heads, ssmax = self.c["col_nhead"], self.c["col_ssmax"]
        for i in range(self.c["col_num_blocks"]):
            name = f"col_embedder.tf_col.blocks.{i}"
            induced = np.broadcast_to(self.t[name + ".ind_vectors"],
                                      (len(e), *self.t[name + ".ind_vectors"].shape))
            h = self.block(name + ".multihead_attn1", induced, e[:, :n], heads, ssmax)
            e = self.block(name + ".multihead_attn2", e, h, heads)
        if self.c["col_affine"]:
            weights = self.norm("col_embedder.ln_w", self.linear("col_embedder.out_w", e))
            biases = self.norm("col_embedder.ln_b", self.linear("col_embedder.out_b", e))
            e = cells * weights + biases
        return e.transpose(1, 0, 2)

    def rows(self, e):
        """Row stage: [T, groups, E] -> [T, cls * E]."""
        cls = self.t["row_interactor.cls_tokens"]
        x = np.concatenate([np.broadcast_to(cls, (len(e), *cls.shape)), e], axis=1)
        blocks, heads = self.c["row_num_blocks"], self.c["row_nhead"]
        for i in range(blocks):
            q = x if i < blocks - 1 else x[:, :len(cls)]
            x = self.block(f"row_interactor.tf_row.blocks.{i}", q, x, heads, rotary=True)
        return self.norm("row_interactor.out_ln", x).reshape(len(e), -1)

    def predict(self, x, y, queries):
        n = len(y)
        r = self.rows(self.columns(np.concatenate([x, queries]), y))
        r[:n] += self.encode_target("icl_predictor.y_encoder", y)
        for i in range(self.c["icl_num_blocks"]):
            r = self.block(f"icl_predictor.tf_icl.blocks.{i}", r, r[:n], self.c["icl_nhead"],
                           self.c["icl_ssmax"])
        return self.mlp("icl_predictor.decoder", self.norm("icl_predictor.ln", r[n:]), "gelu")
