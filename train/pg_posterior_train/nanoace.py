"""Converts weights of nanoACE's one-dimensional model with a buffer into a model file.

    python3 -m pg_posterior_train.nanoace FOLDER OUT.safetensors

FOLDER holds the published manifest.json and weights.bin (float16, offsets in elements). Only data
are converted: the model's latent variables (kernel, lengthscale) have no place in a model file.
"""

import argparse
import json
import os

import torch

from .export import load_model, write_model

VALUE, QUERY = 0, 2    # rows of the table of modes


def read_weights(folder):
    """(manifest, tensors by their published names)."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    kind = {"float16": torch.float16, "float32": torch.float32}[manifest["dtype"]]
    with open(os.path.join(folder, manifest.get("weights_file", "weights.bin")), "rb") as f:
        flat = torch.frombuffer(bytearray(f.read()), dtype=kind).float()
    found = {}
    for entry in manifest["tensors"]:
        start = entry["offset"]
        found[entry["name"]] = flat[start : start + entry["length"]].reshape(entry["shape"])
    return manifest, found


def model_part(cfg):
    """The configuration of a model file with these sizes."""
    mlp = {"kind": "mlp", "hidden": [cfg["mlp_hidden"]]}
    return {
        "format": 1,
        "description": "nanoACE gp1d_arbuffer: one-dimensional Gaussian processes, converted",
        "architecture": "buffered",
        "inputs": {"features": cfg["x_dim"], "scaling": "none"},
        "target": {"scaling": "none"},
        "min_rows": 1,
        "context": "full",
        "chain": {"buffer": 65, "mask": "inclusive"},
        "width": cfg["d_model"],
        "layers": cfg["n_layers"],
        "heads": cfg["n_heads"],
        "feedforward": cfg["mlp_hidden"],
        "norm": {"kind": "layer", "placement": "pre", "eps": 1e-5, "final": True},
        "activation": "gelu",
        "attention": {"bias": "all"},
        "embedder": {"kind": "additive", "x": mlp, "y": mlp, "roles": True, "positions": 0},
        "head": {
            "kind": "mixture",
            "hidden": [cfg["head_hidden"]],
            "components": cfg["mdn_components"],
            "std": "softplus",
            "floor": cfg["min_scale"],
        },
    }


def attention(source, theirs, ours):
    """q, k, v are packed in one matrix."""
    out = {}
    for part in ("weight", "bias"):
        chunks = source[f"{theirs}.in_proj_{part}"].chunk(3)
        out.update({f"{ours}.attn.{name}.{part}": one for name, one in zip("qkv", chunks)})
        out[f"{ours}.attn.o.{part}"] = source[f"{theirs}.out_proj.{part}"]
    return out


def renamed(source, theirs, ours):
    return {f"{ours}.{part}": source[f"{theirs}.{part}"] for part in ("weight", "bias")}


def mlp(source, theirs, ours):
    """Two linears with an activation between them."""
    return {**renamed(source, theirs + ".0", ours + ".0"),
            **renamed(source, theirs + ".2", ours + ".1")}


def convert(source, layers):
    """Tensors of the model file."""
    variable, modes = source["var_embed.weight"][0], source["mode_embed.weight"]
    known, asked = variable + modes[VALUE], variable + modes[QUERY] + source["unknown"]
    out = {"role": torch.stack([asked, known, known])}
    out.update(mlp(source, "x_embed", "embed.x"))
    out.update(mlp(source, "value_embed", "embed.y"))
    for i in range(layers):
        block, buffer = f"blocks.{i}", f"buf_blocks.{i}"
        streams = (
            (block, "ctx_attn", "ctx_ln", "ctx_mlp", f"self.{i}"),
            (buffer, "buf_attn", "buf_ln", "buf_mlp", f"buffer.{i}"),
            (block, "cross_attn", "tgt_ln", "tgt_mlp", f"cross.{i}"),
        )
        for theirs, attn, norm, ff, ours in streams:
            out.update(attention(source, f"{theirs}.{attn}", ours))
            out.update(mlp(source, f"{theirs}.{ff}", f"{ours}.ff"))
            for k in (1, 2):
                out.update(renamed(source, f"{theirs}.{norm}{k}", f"{ours}.norm{k}"))
        out.update(renamed(source, f"{block}.kv_ln", f"cross.{i}.norm_kv"))
        out[f"cross.{i}.attn.buffer"] = source[f"{buffer}.buf_bias"]
    out.update(renamed(source, "final_norm", "final_norm"))
    out.update(mlp(source, "cont_head", "head"))
    return out


def main():
    p = argparse.ArgumentParser(prog="pg_posterior_train.nanoace",
                                description=__doc__.split("\n\n")[0])
    p.add_argument("folder")
    p.add_argument("out")
    a = p.parse_args()
    manifest, source = read_weights(a.folder)
    write_model(a.out, model_part(manifest["cfg"]), convert(source, manifest["cfg"]["n_layers"]),
                "F32")
    model = load_model(a.out)
    print(f"{a.out}: {sum(p.numel() for p in model.parameters())} parameters")


if __name__ == "__main__":
    main()
