"""Small random models of the architecture `columns`, and tables to ask them about.

Weights and tables come from a generator of their own in whole numbers, so that they are the same
with every version of NumPy; the answers of the TabICL package to them are in golden/columns.json.

SPDX-License-Identifier: PostgreSQL
"""
import json
import struct

import numpy as np

LICENCE = "none: random weights"
MASK = (1 << 64) - 1

SECOND = {
    "max_classes": 0, "num_quantiles": 19, "embed_dim": 32,
    "col_num_blocks": 2, "col_nhead": 4, "col_num_inds": 12, "col_affine": False,
    "col_feature_group": "same", "col_feature_group_size": 3, "col_target_aware": True,
    "col_ssmax": "qassmax-mlp-elementwise",
    "row_num_blocks": 3, "row_nhead": 2, "row_num_cls": 2, "row_rope_base": 100000,
    "row_rope_interleaved": False,
    "icl_num_blocks": 3, "icl_nhead": 4, "icl_ssmax": "qassmax-mlp-elementwise",
    "ff_factor": 2, "dropout": 0.0, "activation": "gelu", "norm_first": True,
    "bias_free_ln": False,
}
CLASSES = {**SECOND, "max_classes": 10}
FIRST = {**CLASSES, "col_affine": True, "col_feature_group": False, "col_target_aware": False,
         "col_ssmax": "none", "icl_ssmax": "none", "row_rope_interleaved": True}

# name: configuration
MODELS = {
    "columns": SECOND,
    "columns_plain_norms": {**SECOND, "bias_free_ln": True, "row_num_cls": 4, "embed_dim": 16,
                            "col_nhead": 2},
    "columns_interleaved": {**SECOND, "row_rope_interleaved": True, "ff_factor": 3},
    "columns_classes": CLASSES,
    "columns_first": FIRST,
    "columns_padded": {**FIRST, "max_classes": 0, "col_affine": False, "col_ssmax": "ssmax",
                       "icl_ssmax": "ssmax-mlp", "col_target_aware": True,
                       "col_feature_group": "valid", "col_feature_group_size": 2},
    "columns_scaled": {**CLASSES, "col_ssmax": "qassmax-mlp", "icl_ssmax": "ssmax-mlp-elementwise",
                       "activation": "relu", "col_feature_group_size": 2},
    # the published numbers of heads, and three more ways to have norms, rotations and scaling
    "columns_heads": {**SECOND, "col_nhead": 8, "row_nhead": 8, "icl_nhead": 8, "row_num_cls": 4},
    "columns_classes_plain": {**CLASSES, "bias_free_ln": True, "row_rope_interleaved": True,
                              "row_num_cls": 3, "col_num_blocks": 1},
    "columns_first_numbers": {**FIRST, "max_classes": 0, "bias_free_ln": True,
                              "row_rope_interleaved": False, "icl_ssmax": "qassmax-mlp"},
}
# (context rows, columns, classes of a classifier)
TABLES = [(1, 1, 1), (7, 3, 2), (40, 5, 3), (130, 2, 10), (25, 20, 4), (30, 130, 6), (1200, 3, 5)]
QUERIES = 3


def words(key, count):
    """The first 64-bit numbers of a text: SplitMix64 from its FNV-1a hash."""
    state = 0xcbf29ce484222325
    for byte in key.encode():
        state = (state ^ byte) * 0x100000001b3 & MASK
    z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return z ^ z >> np.uint64(31)


def uniform(key, *shape):
    """Numbers in [-1, 1), exact in float32, as float64."""
    drawn = words(key, int(np.prod(shape))) >> np.uint64(41)
    return (drawn / (1 << 22) - 1.0).reshape(shape)


def shapes(c):
    """name -> shape of all tensors of a configuration."""
    e, classes = c["embed_dim"], c["max_classes"]
    d = e * c["row_num_cls"]
    said = {}

    def linear(name, n_in, n_out):
        said[name + ".weight"], said[name + ".bias"] = (n_out, n_in), (n_out,)

    def norm(name, width):
        said[name + ".weight"] = (width,)
        if not c["bias_free_ln"]:
            said[name + ".bias"] = (width,)

    def block(name, width, heads, ssmax="none"):
        linear(name + ".linear1", width, width * c["ff_factor"])
        linear(name + ".linear2", width * c["ff_factor"], width)
        norm(name + ".norm1", width)
        norm(name + ".norm2", width)
        said[name + ".attn.in_proj_weight"] = (3 * width, width)
        said[name + ".attn.in_proj_bias"] = (3 * width,)
        linear(name + ".attn.out_proj", width, width)
        scaling, each = name + ".attn.ssmax_layer", ssmax.endswith("elementwise")
        if ssmax == "ssmax":
            said[scaling + ".scales"] = (heads,)
        elif ssmax != "none":
            base = scaling + (".base_mlp" if ssmax.startswith("qa") else ".mlp")
            linear(base + ".0", 1, 64)
            linear(base + ".2", 64, width if each else heads)
        if ssmax.startswith("qa"):
            linear(scaling + ".query_mlp.0", width // heads, 64)
            linear(scaling + ".query_mlp.2", 64, width // heads if each else 1)

    group = 1 if c["col_feature_group"] is False else c["col_feature_group_size"]
    linear("col_embedder.in_linear", group, e)
    for i in range(c["col_num_blocks"]):
        name = f"col_embedder.tf_col.blocks.{i}"
        said[name + ".ind_vectors"] = (c["col_num_inds"], e)
        block(name + ".multihead_attn1", e, c["col_nhead"], c["col_ssmax"])
        block(name + ".multihead_attn2", e, c["col_nhead"])
    if c["col_target_aware"]:
        linear("col_embedder.y_encoder", classes or 1, e)
    if c["col_affine"]:
        for part in "wb":
            linear(f"col_embedder.out_{part}", e, e)
            norm(f"col_embedder.ln_{part}", e)
    said["row_interactor.cls_tokens"] = (c["row_num_cls"], e)
    said["row_interactor.tf_row.rope.freqs"] = (e // c["row_nhead"] // 2,)
    for i in range(c["row_num_blocks"]):
        block(f"row_interactor.tf_row.blocks.{i}", e, c["row_nhead"])
    norm("row_interactor.out_ln", e)
    for i in range(c["icl_num_blocks"]):
        block(f"icl_predictor.tf_icl.blocks.{i}", d, c["icl_nhead"], c["icl_ssmax"])
    norm("icl_predictor.ln", d)
    linear("icl_predictor.y_encoder", classes or 1, d)
    linear("icl_predictor.decoder.0", d, 2 * d)
    linear("icl_predictor.decoder.2", 2 * d, classes or c["num_quantiles"])
    return said


def weights(name, c):
    """name -> float64 array, exact in float32: large enough that a wrong scale or order shows."""
    made = {}
    for tensor, shape in shapes(c).items():
        if tensor.endswith("rope.freqs"):
            width = c["embed_dim"] // c["row_nhead"]
            made[tensor] = np.float32(c["row_rope_base"] ** (-np.arange(0, width, 2) / width)
                                      ).astype(float)
            continue
        u = uniform(f"{name} {tensor}", *shape)
        norm = any(part in tensor for part in (".norm", "_ln.", ".ln.", ".ln_"))
        if norm and tensor.endswith("weight"):
            u = 1.0 + 0.25 * u
        elif tensor.endswith("weight"):
            u = np.float32(u * np.sqrt(3.0 / shape[-1])).astype(float)
        elif tensor.endswith("bias"):
            u = 0.25 * u
        made[tensor] = np.float32(u).astype(float)
    return made


def table(name, c, number):
    """(x [N, F], y [N], queries [M, F]) of a table, scaled as the network wants them."""
    rows, columns, classes = TABLES[number]
    x = 2.0 * uniform(f"{name} {number} x", rows + QUERIES, columns)
    y = 1.5 * uniform(f"{name} {number} y", rows)
    if c["max_classes"]:
        y = np.arange(rows) % classes * 1.0
    return x[:rows], y, x[rows:]


# (context rows, columns, classes of a classifier) of tables as a database has them
WHOLE = [(1, 2, 1), (2, 1, 2), (12, 2, 2), (45, 6, 3), (210, 4, 10), (30, 130, 4), (1200, 5, 5)]
LEVELS = [3.0, 17.0, 4e9, 2.0 ** 52]     # identities of categories


def whole_tables(name, c):
    """(x, y, queries, categorical columns) of tables in any unit: missing cells, outliers, a
    constant column, one without any number, categories, of which a query has one more.
    """
    for number, (rows, columns, classes) in enumerate(WHOLE):
        u = uniform(f"whole {name} {number} x", rows + QUERIES, columns)
        x = 10.0 ** (np.arange(columns) % 5 - 2) * (u + 0.3 * np.arange(columns))
        categorical = []
        if columns > 2:
            x[:, 0] = np.exp(5.0 * u[:, 0])
            x[u[:, 2] > 0.7, 2] = np.nan
            x[:, 1] = np.where(np.abs(u[:, 1]) < 0.02, 1e4, u[:, 1])
        if columns > 3:
            x[:, 3] = -3.5
        if columns > 4:
            categorical = list(range(4, columns, 50))
            for f in categorical:
                x[:, f] = np.array(LEVELS)[(np.abs(u[:, f]) * 3.99).astype(int)]
                x[np.abs(u[:, f]) < 0.1, f] = np.nan
                x[-1, f] = 5.0
        if columns > 5:
            x[:, 5] = np.nan
        y = 50.0 + 7.0 * uniform(f"whole {name} {number} y", rows)
        if c["max_classes"]:
            y = np.arange(rows) % classes * 1.0
        yield x[:rows], y, x[rows:], categorical


def write_safetensors(path, metadata, tensors):
    """A safetensors file of float32 tensors, as the tools around it write them."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        blob = np.ascontiguousarray(tensors[name], dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(np.shape(tensors[name])),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_models(folder, names=tuple(MODELS)):
    for name in names:
        c = MODELS[name]
        metadata = {"config": json.dumps(c), "license": LICENCE, "source": "random weights"}
        write_safetensors(f"{folder}/{name}.safetensors", metadata, weights(name, c))
