import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.export import load_model
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.rare import rare_targets
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


def sales(n, above, below, seed):
    """Cells [n, 3] of numbers and targets [n] of which most are 2, some far above or below."""
    random = np.random.default_rng(seed)
    y = np.full(n, 2.0)
    y[3:3 + above] = 30 + random.standard_normal(above)
    y[10:10 + below] = -25 + random.standard_normal(below)
    return random.standard_normal((n, 3)), y


class RareTargetsTest(unittest.TestCase):
    def test_which_targets_are_rare(self):
        for above, below in ((4, 0), (0, 1), (2, 3), (0, 0)):
            _, y = sales(300, above, below, 1)
            scaled = (y - y.mean()) / max(y.std(), 1e-9)
            said = 0 * scaled
            said[3], said[10] = 3.1, -2.9
            given = y, scaled, np.clip(scaled, -6, 6), said
            found = rare_targets(*map(torch.from_numpy, given), 5)
            self.assertEqual(len(found), (above > 1) + (below > 0))
            np.testing.assert_allclose(np.array(found, dtype=float).reshape(-1, 3),
                                       np.reshape(reference.rare_targets(*given, 5), (-1, 3)))
            if above > 1:
                self.assertEqual(found[0][0], (above - 1) / 301)
            y[50:201] += 0.1 * np.arange(151)
            self.assertEqual(rare_targets(*map(torch.from_numpy, given), 5), [])

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for name, n, above, below in (("rows_rare", 200, 3, 0), ("rows_rare", 90, 1, 1),
                                      ("rows_rare_few", 600, 2, 3)):
            config, tensors, dtype = make_random(name, 0)
            x, y = sales(n + 6, above, below, n)
            y[n:] = 2, 31, 2, -25, 2, 9
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
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3, err_msg=name)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3, err_msg=name)
            joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
            np.testing.assert_allclose(joint, said["per_row"], atol=1e-2, err_msg=name)
            model.config["head"]["rare"] = 0
            plain = predict(model, tasks, n).moments()[0][0].numpy()
            self.assertGreater(np.abs(plain - mean).max(), 0.01, name)


if __name__ == "__main__":
    unittest.main()
