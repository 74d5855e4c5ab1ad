"""Model files: write, read, and golden answers (docs/model-format.md, sections 1 and 12)."""
import json
import os
import struct

import torch

from .config import ConfigError
from .keep import read_checkpoint

DTYPES = {"F32": torch.float32, "F16": torch.float16}


def as_bytes(tensor):
    """Little-endian bytes of a tensor (all supported platforms are little-endian)."""
    return tensor.contiguous().numpy().tobytes()


def write_model(path, config, state, dtype="F32"):
    """Write a safetensors file atomically; `state` maps the tensor names of the format to tensors.
    """
    header = {"__metadata__": {"pg_posterior": json.dumps(config)}}
    blobs, offset = [], 0
    for name in sorted(state):
        tensor = state[name].detach().cpu().to(DTYPES[dtype])
        if not torch.isfinite(tensor).all():
            raise ConfigError(f"tensor {name} has a number that {dtype} cannot hold; no reader "
                              f"would take the file")
        blob = as_bytes(tensor)
        header[name] = {"dtype": dtype, "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for blob in blobs:
            f.write(blob)
    os.replace(temporary, path)


def read_model(path):
    """(config, tensors) of a model file, tensors widened to float32."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    config = json.loads(header.pop("__metadata__")["pg_posterior"])
    body = bytearray(data[8 + size:])
    state = {}
    for name, entry in header.items():
        dtype = DTYPES[entry["dtype"]]
        start, end = entry["data_offsets"]
        count = (end - start) // torch.empty(0, dtype=dtype).element_size()
        if count:
            flat = torch.frombuffer(body, dtype=dtype, count=count, offset=start)
            state[name] = flat.reshape(entry["shape"]).to(torch.float32)
    return config, state


def load_model(path, dtype=torch.float32):
    """A model ready to answer."""
    from .model import make_model

    config, state = read_model(path)
    model = make_model(config)
    model.load_state_dict(state, strict=True)
    return model.to(dtype).eval()


def add_command(commands):
    p = commands.add_parser("export",
                            help="write a model file from a checkpoint, and golden answers")
    p.add_argument("checkpoint",
                   help="runs/<name>/latest.pt, or an existing model file (for --golden)")
    p.add_argument("out", nargs="?", help="model file to write")
    p.add_argument("--raw", action="store_true",
                   help="the last weights instead of their moving average")
    p.add_argument("--half", action="store_true", help="store float16")
    p.add_argument("--golden", metavar="FILE", help="write inputs and float64 outputs as JSON")
    p.add_argument("--prior", choices=["gp1d", "tabular", "classes"],
                   help="tasks of the golden answers (default: by the model)")
    p.set_defaults(call=run_export)


def run_export(a):
    from .classes import is_classifier
    from .golden import golden

    model = a.checkpoint
    if a.out:
        checkpoint = read_checkpoint(a.checkpoint, "cpu")
        state = checkpoint["model" if a.raw else "average"]
        write_model(a.out, checkpoint["config"]["model"], state, "F16" if a.half else "F32")
        model = a.out
    if a.golden:
        config, _ = read_model(model)
        own = ("classes" if is_classifier(config) else "tabular"
               if "max_features" in config["inputs"] else "gp1d")
        prior = a.prior or own
        golden(model, {"name": prior}, a.golden)
