"""Numbers that name groups, of which a process learns: against the groups' own means, and as the
engine has it.
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.export import load_model
from pg_posterior_train.predict import predict
from pg_posterior_train.process import group_share, opinions
from pg_posterior_train.tasks import numeric

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


def panel(n, groups, seed):
    """Cells [n, 3], of which the second names the group, targets [n] and the groups' effects [n].
    """
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, 3))
    x[:, 1] = random.integers(0, groups, n)
    effect = 1.5 * random.standard_normal(groups)[x[:, 1].astype(int)]
    return x, x[:, 0] + effect + 0.2 * random.standard_normal(n), x[:, 0] + effect


class GroupsTest(unittest.TestCase):
    def test_share(self):
        x, y, _ = panel(120, 20, 1)
        share = group_share(torch.from_numpy(x)[None], torch.from_numpy(y)[None])[0]
        self.assertEqual(share[[0, 2]].tolist(), [-1, -1])
        self.assertGreater(float(share[1]), 0.5)

    def test_effects_are_learnt(self):
        x, y, true = panel(250, 20, 2)
        z = torch.from_numpy((x - x[:200].mean(0)) / x[:200].std(0))[None]
        scaled = torch.from_numpy((y - y[:200].mean()) / y[:200].std())[None]
        used = torch.ones(1, 3, dtype=torch.bool)
        said = opinions(z, torch.zeros_like(z, dtype=torch.long), used, ~used, scaled, 200, 5.0)
        away = said[0, 200:, 0].numpy() * y[:200].std() + y[:200].mean() - true[200:]
        self.assertLess(np.sqrt(np.mean(away ** 2)), 0.2)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for name, n, groups in (("rows_gated", 110, 12), ("rows_gated", 260, 20),
                                ("rows_additive", 150, 15)):
            x, y, _ = panel(n + 6, groups, n)
            x[n, 1] = groups + 4
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
