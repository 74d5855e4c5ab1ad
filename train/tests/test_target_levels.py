import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.export import load_model
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.target_levels import levels_of, on_levels
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    import rows as reference
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


class TargetLevelsTest(unittest.TestCase):
    def test_which_values_are_levels(self):
        for n, values, some in ((40, 5, True), (39, 5, False), (40, 1, False), (600, 65, False)):
            scaled = np.arange(n) % values - 0.5 * values
            found = levels_of(torch.from_numpy(scaled))
            self.assertEqual(found is not None, some)
            self.assertEqual(reference.levels_of(scaled) is not None, some)
            if some:
                np.testing.assert_array_equal(found.numpy(), reference.levels_of(scaled))

    def test_narrow_components_go_to_the_nearest(self):
        levels = np.array([-1.0, 0.0, 3.0])
        mean = np.array([-1.25, -0.5, -0.4, 0.5, 0.51, 2.0, 2.0, 5.5, 9.0, -7.0])
        sd = np.array([0.125, 0.2, 0.3, 0.125, 0.125, 0.7, 0.8, 0.7, 0.7, 0.1])
        wanted = [-1.0, -1.0, -0.4, 0.0, 0.51, 3.0, 2.0, 3.0, 9.0, -7.0]
        np.testing.assert_array_equal(reference.on_levels(mean, sd, levels, 0.25), wanted)
        moved = on_levels(*map(torch.from_numpy, (mean, sd, levels)), 0.25)
        np.testing.assert_array_equal(moved.numpy(), wanted)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for n, values in ((60, 2), (200, 3), (200, 50)):
            config, tensors, dtype = make_random("rows_levels", 0)
            random = np.random.default_rng(n)
            x = random.standard_normal((n + 6, 3))
            y = 10 - 2.5 * random.integers(0, values, n + 6)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]),
                                    score={**table(x[n:], y[n:]), "orders": 0}, prefix="whole",
                                    kernels="reference")
                model = load_model(path).double()
            tasks = Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None],
                          torch.zeros(1, 3, dtype=torch.bool))
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3)
            joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
            np.testing.assert_allclose(joint, said["per_row"], atol=1e-2)
            model.config["head"]["levels"] = 0
            plain = predict(model, tasks, n).moments()[0][0].numpy()
            self.assertEqual(np.abs(plain - mean).max() > 0.01, values < 50)


if __name__ == "__main__":
    unittest.main()
