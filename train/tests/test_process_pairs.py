"""Pairs of axes along which alike rows have alike targets: against the definition, what a process
learns along one, and as the engine has it.
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train import additive, process, process_pairs
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import predict
from pg_posterior_train.tasks import numeric

from .models import REFERENCE, TOOL
from .test_process import made
from .test_ridge import random_inputs

sys.path.insert(0, REFERENCE)
try:
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


def waves(z):
    return torch.sin(3 * z[..., 0]) * torch.sin(3 * z[..., 2])


class PairsTest(unittest.TestCase):
    def test_scores(self):
        """Of numbers, labels and missing cells, by sums over pairs of rows."""
        z, bins, categorical, y = random_inputs(tasks=2, rows=24)
        bins[:, 3:5, :2], z[:, 3:5, :2] = 16, 0
        used = torch.ones_like(categorical)
        used[1, -1] = False
        axes = additive.Axes.of(z, bins, used, categorical, 16)
        score = process_pairs.scores(axes, y)
        before, after = np.triu_indices(24, 1)
        for task in range(2):
            about = (y[task] - y[task].mean()).numpy()
            product = about[before] * about[after]
            alike = [(1 + axes.apart(axes, a)[task].numpy()[before, after]) ** -4.0
                     for a in range(4)]
            for a in range(4):
                for b in range(4):
                    if a >= b or not used[task, b]:
                        self.assertEqual(float(score[task, a, b]), -np.inf)
                        continue
                    both = alike[a] * alike[b]
                    both = both - both.mean()
                    wanted = both @ product / np.sqrt(both @ both * (product @ product))
                    self.assertAlmostEqual(float(score[task, a, b]) / 2 ** 20, wanted, places=5)

    def test_pairs_are_learnt(self):
        """Where a fit of all columns may take their targets for noise."""
        for function in (waves, lambda z: 0.5 * z[..., 1] + waves(z)):
            for seed in range(6):
                z, bins, used, categorical, y = made(function, rows=300, seed=seed)
                mean, log_sd = process.opinions(z, bins, used, categorical, y, 100, 5.0)[0, 100:,
                                                                                         :2].T
                off = (y[0, 100:] - mean) / log_sd.exp()
                self.assertLess(float((0.5 * off.square() + log_sd).mean()), -1.5, seed)

    def test_tasks_of_a_batch_are_alone(self):
        both = [made(f, rows=120, seed=s) for s in range(3) for f in (waves, lambda z: z[..., 0])]
        joined = [torch.cat(parts) for parts in zip(*both)]
        said = process.opinions(*joined, 100, 5.0)
        for i, one in enumerate(both):
            alone = process.opinions(*one, 100, 5.0)[0]
            self.assertLess(float((said[i] - alone).abs().max()), 1e-6)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for name, n, seed in (("rows_gated", 64, 14), ("rows_gated", 200, 2),
                              ("rows_additive", 100, 1)):
            random = np.random.RandomState(seed)
            x = random.standard_normal((n + 8, 4))
            y = np.sin(3 * x[:, 0]) * np.sin(3 * x[:, 1]) + 0.03 * random.standard_normal(n + 8)
            config, tensors, dtype = make_random(name, 0)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]),
                                    prefix="whole", kernels="reference")
                model = load_model(path).double()
            tasks = numeric(torch.from_numpy(x)[None], torch.from_numpy(y)[None])
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3, err_msg=name)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3, err_msg=name)


if __name__ == "__main__":
    unittest.main()
