"""Model files: round trip, golden answers, and the independent reference implementation where it is
at hand.
"""
import json
import math
import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.config import ConfigError
from pg_posterior_train.export import load_model, read_model, write_model
from pg_posterior_train.golden import golden

from .common import MODELS, random_model

PRIORS = {"gp1d": "gp1d", "tabular_small": "tabular", "tabular": "tabular"}
REFERENCE = os.path.join(os.path.dirname(MODELS), "test", "reference")


def rows(values):
    return np.array([[math.nan if v is None else v for v in row] for row in values], float)


class Export(unittest.TestCase):
    def files(self, folder):
        for name in PRIORS:
            model = random_model(name).float()
            path = os.path.join(folder, name + ".safetensors")
            write_model(path, model.config, model.state_dict())
            yield name, path, model

    def test_round_trip(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, path, model in self.files(folder):
                config, state = read_model(path)
                self.assertEqual(config, model.config)
                self.assertEqual(set(state), set(model.state_dict()))
                for key, value in model.state_dict().items():
                    self.assertTrue(torch.equal(state[key], value), key)
                self.assertEqual(os.listdir(folder).count(name + ".safetensors"), 1)

    def test_half_precision(self):
        with tempfile.TemporaryDirectory() as folder:
            model = random_model("gp1d").float()
            path = os.path.join(folder, "half.safetensors")
            write_model(path, model.config, model.state_dict(), "F16")
            for key, value in load_model(path).state_dict().items():
                self.assertTrue(torch.equal(value, model.state_dict()[key].half().float()), key)

    def test_numbers_that_the_format_cannot_hold(self):
        with tempfile.TemporaryDirectory() as folder:
            model = random_model("gp1d").float()
            state = model.state_dict()
            path = os.path.join(folder, "model.safetensors")
            for number, dtype in ((70000.0, "F16"), (math.inf, "F32"), (math.nan, "F32")):
                state["sinks"][0, 0] = number
                with self.assertRaisesRegex(ConfigError, "sinks"):
                    write_model(path, model.config, state, dtype)
                self.assertEqual(os.listdir(folder), [])

    def test_container(self):
        with tempfile.TemporaryDirectory() as folder:
            for _, path, model in self.files(folder):
                with open(path, "rb") as f:
                    data = f.read()
                size = int.from_bytes(data[:8], "little")
                header = json.loads(data[8:8 + size])
                header.pop("__metadata__")
                ends = sorted(entry["data_offsets"] for entry in header.values())
                self.assertEqual(ends[0][0], 0)
                self.assertEqual(ends[-1][1], len(data) - 8 - size)
                self.assertTrue(all(a[1] == b[0] for a, b in zip(ends, ends[1:])))

    @unittest.skipUnless(os.path.isdir(REFERENCE), "no reference implementation here")
    def test_golden_answers_agree_with_the_reference(self):
        sys.path.insert(0, REFERENCE)
        try:
            from reference import Model, build
        finally:
            sys.path.remove(REFERENCE)
        with tempfile.TemporaryDirectory() as folder:
            for name, path, _ in self.files(folder):
                out = os.path.join(folder, "golden.json")
                golden(path, {"name": PRIORS[name]}, out)
                with open(out) as f:
                    cases = json.load(f)["cases"]
                for case in cases[:5]:
                    queries = rows(case["query_x"])
                    x = rows(case["x"]) if case["x"] else np.zeros((0, queries.shape[1]))
                    kinds = ["categorical" if c else "numeric" for c in case["categorical"]]
                    answers = build(Model.open(path), x, np.array(case["y"]), case["prefix_rows"],
                                    kinds).predict(queries)
                    for answer, y, density in zip(answers, case["query_y"], case["log_density"]):
                        self.assertAlmostEqual(answer.log_pdf(y), density, places=7)


class BundledModels(unittest.TestCase):
    def test_bundled_models_load(self):
        for name in ("toy", "gp1d", "tabular", "tabular_small"):
            path = os.path.join(MODELS, name + ".safetensors")
            if os.path.exists(path):
                model = load_model(path)
                self.assertTrue(all(torch.isfinite(p).all() for p in model.parameters()))


if __name__ == "__main__":
    unittest.main()
