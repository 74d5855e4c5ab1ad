"""The converter of nanoACE's weights: every tensor finds its place."""

import json
import os
import tempfile
import unittest

import torch

from pg_posterior_train.export import load_model, write_model
from pg_posterior_train.nanoace import QUERY, VALUE, convert, model_part, read_weights

SIZES = {"x_dim": 1, "d_model": 8, "n_heads": 2, "n_layers": 2, "mlp_hidden": 12,
         "mdn_components": 3, "head_hidden": 10, "min_scale": 0.001}


def shapes():
    """Published names and shapes of what is converted."""
    d, h = SIZES["d_model"], SIZES["mlp_hidden"]
    found = {"unknown": [d], "var_embed.weight": [4, d], "mode_embed.weight": [3, d],
             "final_norm.weight": [d], "final_norm.bias": [d]}

    def mlp(name, a, b, c):
        found.update({f"{name}.0.weight": [b, a], f"{name}.0.bias": [b],
                      f"{name}.2.weight": [c, b], f"{name}.2.bias": [c]})

    mlp("x_embed", 1, h, d)
    mlp("value_embed", 1, h, d)
    mlp("cont_head", d, SIZES["head_hidden"], 3 * SIZES["mdn_components"])
    for i in range(SIZES["n_layers"]):
        found[f"buf_blocks.{i}.buf_bias"] = [SIZES["n_heads"]]
        found.update({f"blocks.{i}.kv_ln.weight": [d], f"blocks.{i}.kv_ln.bias": [d]})
        streams = (("blocks", "ctx", "ctx"), ("buf_blocks", "buf", "buf"),
                   ("blocks", "cross", "tgt"))
        for stack, attn, rest in streams:
            name = f"{stack}.{i}.{attn}_attn"
            found.update({f"{name}.in_proj_weight": [3 * d, d], f"{name}.in_proj_bias": [3 * d],
                          f"{name}.out_proj.weight": [d, d], f"{name}.out_proj.bias": [d]})
            mlp(f"{stack}.{i}.{rest}_mlp", d, h, d)
            for k in (1, 2):
                found.update({f"{stack}.{i}.{rest}_ln{k}.{p}": [d] for p in ("weight", "bias")})
    return found


class NanoAce(unittest.TestCase):
    def test_every_tensor_finds_its_place(self):
        generator, flat, tensors = torch.Generator().manual_seed(1), [], []
        for name, shape in shapes().items():
            values = torch.randn(shape, generator=generator).half()
            entry = {"name": name, "shape": shape, "offset": sum(map(len, flat))}
            tensors.append({**entry, "length": values.numel()})
            flat.append(values.flatten())
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "weights.bin"), "wb") as f:
                f.write(torch.cat(flat).numpy().tobytes())
            with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as f:
                json.dump({"cfg": SIZES, "dtype": "float16", "tensors": tensors}, f)
            manifest, source = read_weights(folder)
            path = os.path.join(folder, "model.safetensors")
            write_model(path, model_part(manifest["cfg"]), convert(source, SIZES["n_layers"]))
            state = load_model(path).state_dict()
        d = SIZES["d_model"]
        part = source["blocks.1.cross_attn.in_proj_weight"][d : 2 * d]
        self.assertTrue(torch.equal(state["cross.1.attn.k.weight"], part))
        modes = source["mode_embed.weight"]
        asked = source["var_embed.weight"][0] + modes[QUERY] + source["unknown"]
        known = source["var_embed.weight"][0] + modes[VALUE]
        self.assertTrue(torch.equal(state["role"], torch.stack([asked, known, known])))


if __name__ == "__main__":
    unittest.main()
