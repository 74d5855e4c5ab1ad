import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.classes import classify
from pg_posterior_train.digests import digests, ordered_labels
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import predict
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    import digests as reference
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)

KINDS, LABELS = ["categorical", "numeric", "categorical"], np.array([True, False, True])


def tied(n, seed):
    """Cells [n, 3], two columns of labels and a number, some missing, and targets [n] of three
    values.
    """
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, 3))
    x[:, LABELS] = random.integers(14, size=(n, 2))
    x[random.random((n, 3)) < 0.05] = np.nan
    return x.astype(np.float32).astype(float), random.integers(3, size=n).astype(float)


def as_tasks(x, y):
    return Tasks(*(torch.from_numpy(v)[None] for v in (x, y, LABELS)))


class DigestsTest(unittest.TestCase):
    def test_the_reference_has_the_same(self):
        for n, seed in ((20, 0), (60, 1)):
            x, y = tied(n, seed)
            found = digests(x, LABELS, y)
            self.assertEqual(found.tolist(), reference.digests(x, KINDS, y))
            self.assertEqual(found.tolist(), digests(-x, LABELS, y).tolist())
            self.assertEqual(found.tolist(), digests(x[:, ::-1], LABELS[::-1], y).tolist())

    def test_names_change_nothing(self):
        x, y = tied(30, 2)
        config = make_random("rows_orient", 0)[0]
        other = x.copy()
        other[:, LABELS] = np.fmod(5 * x[:, LABELS] + 2, 17)
        ordered = [ordered_labels(as_tasks(v, y), torch.from_numpy(y)[None], 30, config).x.numpy()
                   for v in (x, other)]
        np.testing.assert_array_equal(*ordered)
        self.assertFalse(np.array_equal(ordered[0], x, equal_nan=True))

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        n = 30
        for name in ("rows_orient", "classes_order"):
            config, tensors, dtype = make_random(name, 0)
            x, y = tied(n + 6, 3)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                classes = {"classes": 3} if name == "classes_order" else {}
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]), kinds=KINDS,
                                    prefix="whole", kernels="reference", **classes)
                model = load_model(path).double()
            tasks = as_tasks(x, y)
            if classes:
                found = classify(model, tasks, n)[0][0, :, :3].exp().numpy()
                np.testing.assert_allclose(found, np.array(said["params"])[:, :3], atol=1e-4)
            else:
                mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
                np.testing.assert_allclose(mean, said["mean"], atol=1e-4)
                np.testing.assert_allclose(sd, said["sd"], atol=1e-4)


if __name__ == "__main__":
    unittest.main()
