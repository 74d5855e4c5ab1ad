"""A line in the place of the process: where it takes it, what it is sure of, and as the engine has
it.
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.export import load_model
from pg_posterior_train.normalise import prepare
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


def totals(n, noise, seed, lacking=0.1):
    """Cells [n, 5] with long tails, some missing in the last column, labels in the one before, and
    their weighted sum [n].
    """
    random = np.random.default_rng(seed)
    x = np.exp(1.2 * random.standard_normal((n, 5)))
    x[:, 3] = random.integers(0, 4, n)
    y = x[:, 0] + 2 * x[:, 1] - 0.5 * x[:, 2] + np.array([0, 5, -1, 2])[x[:, 3].astype(int)]
    y += noise * random.standard_normal(n)
    x[random.uniform(size=n) < lacking, 4] = np.nan
    return x, y


def as_tasks(x, y):
    categorical = torch.tensor([[False, False, False, True, False]])
    return Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None], categorical)


def network(name, folder):
    path = os.path.join(folder, "model.safetensors")
    config, tensors, dtype = make_random(name, 0)
    write_model(path, config, tensors, dtype)
    return path, load_model(path).double()


class LineTest(unittest.TestCase):
    def test_a_total_is_said_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model = network("rows_line", folder)
        x, y = totals(70, 0, 1, 0)
        x[66:, :3] *= 50
        y[66:] = (x[66:, :3] @ [1, 2, -0.5]) + np.array([0, 5, -1, 2])[x[66:, 3].astype(int)]
        tasks = as_tasks(x, y)
        mean, _ = predict(model, tasks, 60).moments()
        np.testing.assert_allclose(mean[0].numpy(), y[60:], rtol=1e-4, atol=1e-3)
        model.config["embedder"]["x"]["line"] = False
        mean, _ = predict(model, tasks, 60).moments()
        self.assertGreater(np.abs(mean[0].numpy() - y[60:])[6:].max(), 10)

    def test_a_line_has_to_be_better(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model = network("rows_line", folder)
        random = np.random.default_rng(3)
        x, y = totals(60, 0, 2)
        for target, is_line, is_sure in ((y, True, True),
                                         (y + 0.5 * random.standard_normal(60), True, False),
                                         (np.sin(2 * np.log(x[:, 0])), False, False)):
            said = prepare(as_tasks(x, target), 60, model.config).x[..., -4:]
            model.config["embedder"]["x"]["line"] = False
            plain = prepare(as_tasks(x, target), 60, model.config).x[..., -4:]
            model.config["embedder"]["x"]["line"] = True
            self.assertEqual(not torch.equal(said, plain), is_line)
            self.assertEqual(bool((said[..., 3] == 8).all()), is_sure)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for name, n, noise in (("rows_line", 60, 0), ("rows_line", 64, 0.5), ("rows_line", 620, 0),
                               ("rows_line_rare", 40, 0)):
            x, y = totals(n + 6, noise, n)
            x[n, 0], x[n + 1, 1], x[n + 2, 3] = np.nan, 90, 9
            kinds = ["categorical" if f == 3 else "numeric" for f in range(5)]
            with tempfile.TemporaryDirectory() as folder:
                path, model = network(name, folder)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]), kinds=kinds,
                                    score={**table(x[n:], y[n:]), "orders": 0}, prefix="whole",
                                    kernels="reference")
            tasks = as_tasks(x, y)
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3, rtol=1e-4, err_msg=name)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3, rtol=1e-3, err_msg=name)
            joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
            np.testing.assert_allclose(joint, said["per_row"], atol=1e-2, err_msg=name)


if __name__ == "__main__":
    unittest.main()
