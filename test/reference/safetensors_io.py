"""Read and write model files (docs/model-format.md section 1) with NumPy alone.

SPDX-License-Identifier: PostgreSQL
"""
import json
import struct

import numpy as np

DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


def write_model(path, config, tensors, dtype="F32"):
    """Write `config` (a dict) and `tensors` (name -> array) to `path`, in the order of the names.
    """
    header = {"__metadata__": {"pg_posterior": json.dumps(config)}}
    blobs = []
    offset = 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name], dtype=DTYPES[dtype])
        blob = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def read_model(path):
    """(config, tensors) of a model file; tensors are float64."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    config = json.loads(header.pop("__metadata__")["pg_posterior"])
    body = data[8 + length:]
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        array = np.frombuffer(body[start:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"]).astype(np.float64)
    return config, tensors
