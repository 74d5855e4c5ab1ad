import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.classes import classify
from pg_posterior_train.export import load_model
from pg_posterior_train.far import near_targets, reach
from pg_posterior_train.predict import predict
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    import scaling as reference
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


class FarTargetsTest(unittest.TestCase):
    def test_what_is_far(self):
        random = np.random.default_rng(3)
        near = random.standard_normal((1, 300))
        config = {"target": {"far": 16}}
        for first, far in (([], 0), ([1e6], 1), ([-1e6, 1e9], 2), ([1e6, 2e6, -1e6], 0), ([30], 0)):
            y = near.copy()
            y[0, :len(first)] = first
            y[0, -1] = -1e7
            got = near_targets(torch.from_numpy(y), 299, config).numpy()
            np.testing.assert_array_equal(
                got[0], reference.near_targets(config, y[0, :299])(y[0]))
            self.assertEqual((got != y).sum(), far + (far > 0))
        self.assertIs(near_targets(near, 8, {"target": {}}), near)

    def test_a_flag_foretells(self):
        random = np.random.default_rng(5)
        config, y = {"target": {"far": 16}}, random.standard_normal((1, 300))
        y[0, [7, 90]] = 120, -90
        x = random.standard_normal((1, 300, 3))
        x[0, :, 1], x[0, 20, 1] = 0, np.nan
        for flags, moved in (([7, 90], 0), ([7], 2), ([7, 90, 91], 2), ([7, 90, 20], 2)):
            told = x.copy()
            told[0, flags, 1] = 3
            got = near_targets(torch.from_numpy(y), 300, config, torch.from_numpy(told))
            self.assertEqual((got.numpy() != y).sum(), moved, flags)
            np.testing.assert_array_equal(
                got[0], reference.near_targets(config, y[0], told[0])(y[0]))
        notes, farther = x.copy(), y.copy()
        notes[0, :, 1], notes[0, 3, 1] = np.nan, 0
        farther[0, 7] = 300
        notes[0, [7, 90], 1] = told[0, [7, 90], 1] = 1
        told[0, [20, 91], 1] = 0
        for cells_of, targets, moved in ((told, y, 0), (notes, y, 2), (told, farther, 2)):
            got = near_targets(torch.from_numpy(targets), 300, config, torch.from_numpy(cells_of))
            self.assertEqual((got.numpy() != targets).sum(), moved)
        told[0, :, 1] = 0
        told[0, [7, 90], 1] = 1, np.nan
        got = near_targets(torch.from_numpy(y), 300, config, torch.from_numpy(told))
        self.assertEqual((got.numpy() != y).sum(), 2)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        random = np.random.default_rng(7)
        config, tensors, dtype = make_random("rows_far_targets", 0)
        for n, common in ((80, 0), (560, 0), (300, 200)):
            x = random.standard_normal((n + 8, 4)).astype(np.float32).astype(float)
            y = x[:, 0] + 0.5 * x[:, 1] + 0.2 * random.standard_normal(n + 8)
            y[:common] = 0.25
            y[n - 3] = 2.0 ** 30
            x[n:, 2] = np.nan
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]),
                                    prefix="whole", kernels="reference")
                model = load_model(path).double()
            tasks = Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None],
                          torch.zeros(1, 4, dtype=torch.bool))
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            self.assertLess(max(said["sd"]), 100)
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3)


class FarCellsTest(unittest.TestCase):
    def test_what_is_far(self):
        random = np.random.default_rng(2)
        near = random.standard_normal(80)
        group, zeros, few = near.copy(), 0 * near, np.append(near[:6], 1e9)
        group[:9] += 1e5
        zeros[:30] = random.random(30)
        zeros[3] = 1e4
        for column, far in ((near, 0), (np.append(near, [-999] * 5), 5), (np.append(near, 1e6), 1),
                            (np.append(near, [-999, 8e7, -999, np.nan]), 3), (group, 0),
                            (zeros, 0), (few, 0), (np.append(near, [-999] * 20), 0)):
            middle, most = reach(column, 32)
            self.assertEqual((np.abs(column - middle) > most).sum(), far, column)
            low, high = reference.far_bounds(column, 32)
            self.assertEqual(((column < low) | (column > high)).sum(), far)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        random = np.random.default_rng(5)
        n = 120
        x = random.standard_normal((n + 8, 4)).astype(np.float32).astype(float)
        y = x[:, 0] + 0.5 * x[:, 1] + 0.2 * random.standard_normal(n + 8)
        x[::16, 0] = -999
        x[5, 1] = x[n + 1, 1] = 2.0 ** 30
        for name in ("rows_far", "classes_far"):
            config, tensors, dtype = make_random(name, 0)
            of_classes = "classes" in config["head"]
            own = (y > 0).astype(float) if of_classes else y
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], own[:n]), queries=cells(x[n:]),
                                    prefix="whole", kernels="reference",
                                    **({"classes": 2} if of_classes else {}))
                model = load_model(path).double()
            tasks = Tasks(torch.from_numpy(x)[None], torch.from_numpy(own)[None],
                          torch.zeros(1, 4, dtype=torch.bool))
            if of_classes:
                log_p = classify(model, tasks, n)[0]
                np.testing.assert_allclose(log_p[0, :, :2].exp().numpy(),
                                           np.array(said["params"])[:, :2], atol=1e-4)
                continue
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3)


if __name__ == "__main__":
    unittest.main()
