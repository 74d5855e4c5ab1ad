"""Every configuration of configs/ makes a training step, at test size."""

import math
import os
import tempfile
import unittest

import torch

from pg_posterior_train.trainer import Run

from .common import CONFIGS, config, is_protocol
from .test_paper_priors import write_png

# Sizes that hang together, for configurations that plain shrinking would break.
OWN = {
    "set_encoder": {"width": 16},
    "dva_feeder": {"feedforward": 32},
    "deep_kernel_rbf": {"heads": 1},
}


def shrunk(name):
    c = config(name)
    model = c["model"]
    model.update(OWN.get(name, {}))
    if name == "set_encoder":
        model["embedder"]["columns"].update(width=16, layers=1, heads=2, feedforward=16, inducing=4)
        model["embedder"]["rows"].update(layers=1, heads=2, feedforward=16)
    if name.startswith("scan"):
        model["attention"].update(query_width=16, value_hidden=[8])
    if model["head"]["kind"] == "bars":
        model["head"]["buckets"] = 5
    rows = max(12, c["training"].get("prefix", {}).get("minimum", 0), model["min_rows"])
    c["training"]["shapes"] = [{"weight": 1, "rows": rows, "tasks": 8, "extra": 4}]
    if c["prior"].get("latent"):
        c["training"]["shapes"][0]["extra"] = rows
    if "size" in c["prior"]:
        c["prior"]["size"] = 16
    return c


class Configurations(unittest.TestCase):
    def test_every_configuration_trains(self):
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            for i in range(3):
                pixels = torch.randint(0, 256, (9, 9, 3),
                                       generator=torch.Generator().manual_seed(i))
                write_png(os.path.join(folder, f"{i}.png"), pixels, i)
            for file in sorted(os.listdir(CONFIGS)):
                name = file[:-5]
                if is_protocol(name):
                    continue
                with self.subTest(name):
                    c = shrunk(name)
                    if "folder" in c["prior"]:
                        c["prior"]["folder"] = folder
                    run = Run(c, "unused")
                    loss, _ = run.train_step(0)
                    self.assertTrue(math.isfinite(loss))
                    self.assertEqual(run.skipped, 0)


if __name__ == "__main__":
    unittest.main()
