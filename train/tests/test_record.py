"""What a gate reads of the process's record: its numbers, and how much a process weighs by them, as
the engine has it.
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train import record
from pg_posterior_train.export import load_model
from pg_posterior_train.heads import RECORD
from pg_posterior_train.normalise import prepare
from pg_posterior_train.predict import predict
from pg_posterior_train.tasks import numeric

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


def network(folder):
    path = os.path.join(folder, "model.safetensors")
    config, tensors, dtype = make_random("rows_record", 0)
    write_model(path, config, tensors, dtype)
    return path, load_model(path).double()


def made(n, bend, noise):
    """Cells [n, 4], targets [n]: a bend of one column and a line of another."""
    random = np.random.default_rng(n)
    x = random.standard_normal((n, 4))
    return x, bend * np.sin(2 * x[:, 0]) + x[:, 1] + noise * random.standard_normal(n)


def read(model, x, y, prefix):
    asked = prepare(numeric(torch.from_numpy(x)[None], torch.from_numpy(y)[None]), prefix,
                    model.config).x
    return asked[0, :, RECORD]


class Record(unittest.TestCase):
    def test_squares(self):
        away = torch.tensor([[1.0, 4.0, 900.0, 0.0]])
        rest = torch.tensor([[1.0, 0.5, 0.9, 0.25]])
        found = record.squares(away, rest)[0]
        self.assertAlmostEqual(float(found[0]), 4.0, places=5)
        near = (0.5 * 4 + 0.1 * 100) / (0.5 + 0.1 + 0.75)
        self.assertAlmostEqual(float(found[1]), float(np.log(near)), places=5)

    def test_all_rows_have_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model = network(folder)
        found = read(model, *made(80, 2, 0.1), 70)
        self.assertEqual(found.shape, (80, record.LENGTH))
        self.assertTrue((found == found[:1]).all())

    def test_what_it_tells(self):
        """A process that fits noise is farther off than it says near itself; a line has neither
        axes nor weights; less is left to regressions of more noise."""
        with tempfile.TemporaryDirectory() as folder:
            _, model = network(folder)
        line, bent = (read(model, *made(90, bend, 0.01), 90)[0] for bend in (0, 2))
        noisy = read(model, *made(90, 0, 5), 90)[0]
        self.assertEqual(line[[2, 5, 6]].tolist(), [0, 0, 0])
        self.assertGreaterEqual(float(bent[2]), np.log(5) - 1e-6)
        self.assertGreaterEqual(float(bent[5]), float(bent[6]))
        self.assertLess(float(line[3]), float(bent[3]) - 1)
        self.assertLess(float(bent[3]), float(noisy[3]))

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_weighs_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            path, model = network(folder)
            for n, bend, noise in ((40, 2, 0.3), (90, 2, 0.01), (300, 1, 1), (60, 0, 0.5),
                                   (1100, 1, 0.3)):
                x, y = made(n + 5, bend, noise)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]),
                                    kinds=["numeric"] * 4, prefix="whole", kernels="reference")
                tasks = numeric(torch.from_numpy(x)[None], torch.from_numpy(y)[None])
                mixture = predict(model, tasks, n).mixture
                components = mixture.log_weight.shape[-1]
                wanted = np.array(said["params"])[:, components - 1]
                np.testing.assert_allclose(mixture.log_weight[0, :, -1].exp().numpy(), wanted,
                                           atol=1e-4, err_msg=str(n))


if __name__ == "__main__":
    unittest.main()
