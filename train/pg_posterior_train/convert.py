"""Convert a checkpoint of the TabICL package into a model file that posterior.load_model reads.

    python3 -m pg_posterior_train.convert CHECKPOINT OUT [--license TEXT] [--source TEXT] [--half]

A checkpoint is what torch.save wrote of {"config": …, "state_dict": …}. The file is safetensors
with the package's tensor names and its configuration as JSON in the metadata under `config`, as
published conversions have it. What shapes do not show (heads, layout of rotary positions) must be
in the checkpoint's configuration: a wrong value would load and answer wrongly, so none is assumed.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import os
import struct
import sys

import numpy as np

# Keys without which a file says too little: no shape shows them.
REQUIRED = ("max_classes", "col_nhead", "row_nhead", "icl_nhead", "row_rope_interleaved",
            "activation", "norm_first")
# Keys of training, or of how a model was made.
DROPPED = ("dropout", "zero_init", "recompute")


class ConversionError(ValueError):
    """The checkpoint cannot become a model file; the text says why."""


def scaling_of(name, tensors):
    """The kind of scalable softmax that a block's tensors show."""
    names = {tensor[len(name) + 1:]: array for tensor, array in tensors.items()
             if tensor.startswith(name + ".")}
    if not names:
        return "none"
    if "scales" in names:
        return "ssmax"
    aware = "base_mlp.2.weight" in names
    if aware:
        each = names["query_mlp.2.weight"].shape[0] > 1
    else:
        width = tensors[name.removesuffix(".ssmax_layer") + ".out_proj.weight"].shape[0]
        each = names["mlp.2.weight"].shape[0] == width
    return ("qassmax-mlp" if aware else "ssmax-mlp") + ("-elementwise" if each else "")


def complete(config, tensors):
    """The configuration with all that the tensors show, and nothing of training."""
    missing = [key for key in REQUIRED if key not in config]
    if missing:
        raise ConversionError("the checkpoint's configuration lacks " + ", ".join(missing)
                              + ", which no tensor shows")

    def count(prefix):
        return len({name[len(prefix):].split(".")[0] for name in tensors
                    if name.startswith(prefix)})

    def need(name):
        if name not in tensors:
            raise ConversionError(f"the checkpoint lacks the tensor {name}")
        return tensors[name]

    column = "col_embedder.tf_col.blocks."
    embed, group = need("col_embedder.in_linear.weight").shape
    shown = {
        "embed_dim": embed,
        "col_num_blocks": count(column),
        "col_num_inds": need(column + "0.ind_vectors").shape[0],
        "col_affine": "col_embedder.out_w.weight" in tensors,
        "col_target_aware": "col_embedder.y_encoder.weight" in tensors,
        "col_ssmax": scaling_of(column + "0.multihead_attn1.attn.ssmax_layer", tensors),
        "row_num_blocks": count("row_interactor.tf_row.blocks."),
        "row_num_cls": need("row_interactor.cls_tokens").shape[0],
        "icl_num_blocks": count("icl_predictor.tf_icl.blocks."),
        "icl_ssmax": scaling_of("icl_predictor.tf_icl.blocks.0.attn.ssmax_layer", tensors),
        "ff_factor": need("row_interactor.tf_row.blocks.0.linear1.weight").shape[0] // embed,
        "bias_free_ln": "row_interactor.out_ln.bias" not in tensors,
    }
    if config["max_classes"] == 0:
        shown["num_quantiles"] = need("icl_predictor.decoder.2.weight").shape[0]
    if "col_feature_group" not in config and group > 1:
        raise ConversionError("the checkpoint's configuration lacks col_feature_group, of which a "
                              f"group of {group} cells shows only that there is one")
    complete_config = {"col_feature_group": False, "col_feature_group_size": group,
                       "row_rope_base": 100000, **config, **shown}
    for key, value in shown.items():
        said = config.get(key, value)
        if key.endswith("ssmax") and isinstance(said, bool):
            said = "qassmax-mlp-elementwise" if said else "none"
        if said != value:
            raise ConversionError(f"the checkpoint's configuration says {key} = {said!r}, its "
                                  f"tensors say {value!r}")
    if not isinstance(config["activation"], str):
        raise ConversionError("the checkpoint's activation is no name")
    return {key: value for key, value in complete_config.items() if key not in DROPPED}


def write(path, metadata, tensors, half):
    """Write a safetensors file whose tensors lie in the order of their names."""
    kind, dtype = ("F16", "<f2") if half else ("F32", "<f4")
    header, offset = {"__metadata__": metadata}, 0
    for name in sorted(tensors):
        size = tensors[name].size * np.dtype(dtype).itemsize
        header[name] = {"dtype": kind, "shape": list(tensors[name].shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".new", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            file.write(np.ascontiguousarray(tensors[name], dtype=dtype).tobytes())
    os.replace(path + ".new", path)


def convert(checkpoint, path, licence="BSD-3-Clause", source=None, half=False):
    """Write the model file `path` from a checkpoint's path; returns its configuration."""
    import torch
    content = torch.load(checkpoint, map_location="cpu", weights_only=True)
    if not isinstance(content, dict) or not {"config", "state_dict"} <= set(content):
        raise ConversionError('a checkpoint has "config" and "state_dict"; this one has not')
    tensors = {}
    for name, tensor in content["state_dict"].items():
        tensors[name] = tensor.detach().to(torch.float32).numpy()
        if not np.isfinite(tensors[name]).all():
            raise ConversionError(f"the tensor {name} has values that are not finite")
    config = complete(content["config"], tensors)
    metadata = {"config": json.dumps(config), "license": licence,
                "source": source or os.path.basename(checkpoint)}
    write(path, metadata, tensors, half)
    return config


def main():
    parser = argparse.ArgumentParser(prog="python3 -m pg_posterior_train.convert",
                                     description="Convert a checkpoint of the TabICL package.")
    parser.add_argument("checkpoint")
    parser.add_argument("out", help="the model file to write")
    parser.add_argument("--license", default="BSD-3-Clause",
                        help="what posterior.models shows (default: that of the published weights)")
    parser.add_argument("--source", help="where the weights come from (default: the file's name)")
    parser.add_argument("--half", action="store_true", help="weights of 16 bits: half the size")
    options = parser.parse_args()
    try:
        config = convert(options.checkpoint, options.out, options.license, options.source,
                         options.half)
    except (ConversionError, OSError) as error:
        sys.exit(f"convert: {error}")
    kind = "classes" if config["max_classes"] else f"{config['num_quantiles']} quantiles"
    print(f"{options.out}: {os.path.getsize(options.out)} bytes, {kind}")


if __name__ == "__main__":
    main()
