"""Checkpoints of the TabICL package become model files: names, configuration, and what is refused.

SPDX-License-Identifier: PostgreSQL
"""
import json
import os
import struct
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.convert import DROPPED, ConversionError, convert

from .common import MODELS

sys.path.insert(0, os.path.join(os.path.dirname(MODELS), "test", "reference"))
from column_models import MODELS as COLUMN_MODELS, weights  # noqa: E402


def read(path):
    """(metadata, tensors) of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    dtypes = {"F32": "<f4", "F16": "<f2"}
    return metadata, {
        name: np.frombuffer(data, dtypes[entry["dtype"]], int(np.prod(entry["shape"])),
                            8 + length + entry["data_offsets"][0]
                                          ).reshape(entry["shape"])
                      for name, entry in header.items()}


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkpoint = os.path.join(folder.name, "random.ckpt")
        self.out = os.path.join(folder.name, "random.safetensors")

    def save(self, config, made, drop=()):
        state = {name: torch.tensor(array, dtype=torch.float32) for name, array in made.items()
                 if name not in drop}
        torch.save({"config": config, "state_dict": state}, self.checkpoint)

    def test_every_layout(self):
        for name, config in COLUMN_MODELS.items():
            made = weights(name, config)
            self.save(config, made)
            convert(self.checkpoint, self.out)
            metadata, tensors = read(self.out)
            kept = {key: value for key, value in config.items() if key not in DROPPED}
            said = json.loads(metadata["config"])
            if config["max_classes"]:
                kept.pop("num_quantiles"), said.pop("num_quantiles")
            if config["col_feature_group"] is False:
                kept.pop("col_feature_group_size"), said.pop("col_feature_group_size")
            self.assertEqual(said, kept, name)
            self.assertEqual(metadata["source"], "random.ckpt")
            self.assertEqual(set(tensors), set(made))
            for tensor, array in made.items():
                np.testing.assert_array_equal(tensors[tensor], array.astype("<f4"))

    def test_half(self):
        config = COLUMN_MODELS["columns"]
        made = weights("columns", config)
        self.save(config, made)
        convert(self.checkpoint, self.out, half=True)
        for tensor, array in read(self.out)[1].items():
            self.assertEqual(array.dtype, np.dtype("<f2"))
            np.testing.assert_allclose(array, made[tensor], rtol=1e-3, atol=1e-4)

    def test_what_tensors_show_is_filled_in(self):
        config = dict(COLUMN_MODELS["columns"])
        made = weights("columns", config)
        for key in ("embed_dim", "col_affine", "col_ssmax", "icl_ssmax", "bias_free_ln",
                    "num_quantiles", "row_num_cls", "ff_factor"):
            del config[key]
        self.save(config, made)
        said = convert(self.checkpoint, self.out)
        for key, value in COLUMN_MODELS["columns"].items():
            self.assertEqual(said.get(key, value), value)

    def test_refusals(self):
        config = COLUMN_MODELS["columns"]
        made = weights("columns", config)
        for key in ("icl_nhead", "row_rope_interleaved", "max_classes", "col_feature_group"):
            self.save({name: value for name, value in config.items() if name != key}, made)
            self.assertRaisesRegex(ConversionError, key, convert, self.checkpoint, self.out)
        self.save({**config, "embed_dim": 64}, made)
        self.assertRaisesRegex(ConversionError, "embed_dim", convert, self.checkpoint, self.out)
        self.save({**config, "col_ssmax": False}, made)
        self.assertRaisesRegex(ConversionError, "col_ssmax", convert, self.checkpoint, self.out)
        self.save(config, made, drop=("row_interactor.cls_tokens",))
        self.assertRaisesRegex(ConversionError, "cls_tokens", convert, self.checkpoint, self.out)
        made["row_interactor.cls_tokens"][0, 0] = np.inf
        self.save(config, made)
        self.assertRaisesRegex(ConversionError, "not finite", convert, self.checkpoint, self.out)
        torch.save([1, 2], self.checkpoint)
        self.assertRaisesRegex(ConversionError, "state_dict", convert, self.checkpoint, self.out)
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main()
