import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.class_order import class_places
from pg_posterior_train.classes import class_chain, classify
from pg_posterior_train.export import load_model
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    import reference
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


def balanced(n, seed):
    """Cells [n, 3], the second of labels and some missing, and classes [n] of which 1 and 3 are
    equally frequent, 0 is seldom and 2 is frequent.
    """
    random = np.random.default_rng(seed)
    y = np.resize([2, 1, 3, 2, 1, 3, 2, 2, 0, 1, 3, 2], n).astype(float)
    x = random.standard_normal((n, 3)) + 0.4 * y[:, None]
    x[:, 1] = random.integers(4, size=n)
    x[random.random((n, 3)) < 0.05] = np.nan
    return x.astype(np.float32).astype(float), y, np.array([False, True, False])


class ClassOrderTest(unittest.TestCase):
    def setUp(self):
        self.config, self.tensors, self.dtype = make_random("classes_order", 0)

    def test_places(self):
        n, kinds = 48, ["numeric", "categorical", "numeric"]
        for seed in range(4):
            x, y, labels = balanced(n, seed)
            tasks = Tasks(*(torch.from_numpy(v)[None] for v in (x, y, labels)))
            found = class_places(tasks, tasks.y, n, self.config)[0].tolist()
            theirs = reference.class_places(kinds, x, y.astype(int), 5)
            self.assertEqual(found, list(theirs))
            self.assertEqual((found[2], found[0], found[4]), (0, 3, 4))
            plain = {**self.config, "target": {"scaling": "classes"}}
            self.assertEqual(class_places(tasks, tasks.y, n, plain)[0].tolist(), list(range(5)))

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        n = 60
        x, y, labels = balanced(n + 6, 9)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            write_model(path, self.config, self.tensors, self.dtype)
            with Tool(TOOL, path) as tool:
                said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]), classes=4,
                                kinds=["numeric", "categorical", "numeric"], prefix="whole",
                                score={**table(x[n:], y[n:]), "orders": 0}, kernels="reference")
            model = load_model(path).double()
        tasks = Tasks(*(torch.from_numpy(v)[None] for v in (x, y, labels)))
        log_p, classes, true, _ = classify(model, tasks, n)
        self.assertEqual(classes.item(), 4)
        np.testing.assert_allclose(log_p[0, :, :4].exp().numpy(),
                                   np.array(said["params"])[:, :4], atol=1e-4)
        np.testing.assert_array_equal(true[0].numpy(), y[n:])
        log_p, _, true, _ = class_chain(model, tasks, n)
        np.testing.assert_allclose(log_p.gather(2, true[..., None])[0, :, 0].numpy(),
                                   said["per_row"], atol=1e-3)


if __name__ == "__main__":
    unittest.main()
