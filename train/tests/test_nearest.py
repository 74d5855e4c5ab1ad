"""Nearest rows in the place of the process: where they take it, what they say of a chain, and as
the oracle and the engine have them.
"""

import importlib
import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train import nearest
from pg_posterior_train.export import load_model
from pg_posterior_train.heads import RECORD
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


def network(name, folder):
    path = os.path.join(folder, "model.safetensors")
    config, tensors, dtype = make_random(name, 0)
    write_model(path, config, tensors, dtype)
    return path, load_model(path).double()


def wave(n, seed, each=1):
    """Rows in time [n + 6, 1], `each` of them at once, along a wave that is faster than 256 rows
    tell.
    """
    random = np.random.default_rng([n, seed])
    t = np.append(random.permutation(n) // each, [0.5, n / 3, n, n + 1, n + 2, 1.5])
    return t[:, None], np.sin(2 * np.pi * each * t / 12) + 0.1 * random.standard_normal(n + 6)


def labelled(n):
    """Times, some of them missing, and the labels of three series."""
    t, y = wave(n, 2)
    label = np.random.default_rng(n).integers(0, 3, n + 6)
    t[5::40], label[n + 1] = np.nan, 9
    return np.stack([t[:, 0], label], 1), y * label


def as_tasks(x, y, kinds=("numeric",)):
    categorical = torch.tensor([[kinds[f % len(kinds)] != "numeric" for f in range(x.shape[1])]])
    return Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None], categorical)


class Nearest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_the_first_of_equal_rows_are_nearest(self):
        distance = torch.tensor([[3.0, 1.0, 2.0, 1.0 + 1e-12, 0.0, 1.0]], dtype=torch.float64)
        hidden = torch.arange(6)[None] == 4
        self.assertEqual(nearest.nearest(distance, hidden, 3)[0].tolist(), [[1, 3, 5]])
        near, there = nearest.nearest(distance, hidden, 9)
        self.assertEqual(near[there].tolist(), [1, 3, 5, 2, 0])
        self.assertEqual(nearest.nearest(distance, None, 2)[0].tolist(), [[4, 1]])

    def test_few_rows_are_judged_by_all(self):
        self.assertEqual(nearest.judging(40).tolist(), list(range(40)))
        self.assertEqual([len(nearest.judging(n)) for n in (300, 2048, 32768)], [128, 64, 32])
        self.assertEqual(sorted(nearest.lying(50).tolist()), list(range(50)))

    def test_where_they_stand(self):
        """Of a wave that 256 rows do not carry; not of few rows, of many columns, or of a line."""
        with tempfile.TemporaryDirectory() as folder:
            _, model = network("rows_nearest_few", folder)
        random = np.random.default_rng(3)
        t, y = wave(300, 1)
        many = np.concatenate([t, random.standard_normal((306, 3))], 1)
        model.config["inputs"]["max_features"] = 4
        for x, target, n, stand in ((t, y, 300, True), (t, y, 31, False), (many, y, 300, False),
                                    (t, t[:, 0] + random.standard_normal(306), 300, False)):
            said = prepare(as_tasks(x, target), n, model.config).x[..., -4:]
            model.config["embedder"]["x"]["nearest"] = False
            plain = prepare(as_tasks(x, target), n, model.config).x[..., -4:]
            model.config["embedder"]["x"]["nearest"] = True
            self.assertEqual(not torch.equal(said, plain), stand)
            ahead = float(said[0, 0, 3] - plain[0, 0, 3])
            self.assertTrue(ahead > 0.05 + 6 / n if stand else ahead == 0)

    def test_tasks_are_alone(self):
        """In a batch each is as by itself, whatever stands in the others."""
        with tempfile.TemporaryDirectory() as folder:
            _, model = network("rows_nearest_few", folder)
        t, y = wave(300, 1)
        both = Tasks(torch.from_numpy(np.stack([t, t])), torch.from_numpy(np.stack([y, t[:, 0]])),
                     torch.zeros(2, 1, dtype=torch.bool))
        said = prepare(both, 300, model.config).x[..., -4:]
        for own, target in zip(said, (y, t[:, 0])):
            alone = prepare(as_tasks(t, target), 300, model.config).x[0, :, -4:]
            np.testing.assert_allclose(own.numpy(), alone.numpy(), atol=1e-9)

    @unittest.skipUnless(os.path.isdir(REFERENCE), "no oracle")
    def test_the_oracle_says_the_same(self):
        """All numbers of all rows, and the record, to rounding."""
        sys.path.insert(0, REFERENCE)
        try:
            reference = importlib.import_module("reference")
        finally:
            sys.path.remove(REFERENCE)
        with tempfile.TemporaryDirectory() as folder:
            path, model = network("rows_nearest", folder)
            oracle = reference.Model.open(path)
        for x, y in (wave(300, 1), wave(600, 4, 2), labelled(300)):
            n = len(y) - 6
            kinds = ["categorical" if f == 1 else "numeric" for f in range(x.shape[1])]
            own = reference.build(oracle, x[:n], y[:n], n, kinds).statistics.tokeniser
            self.assertEqual(type(own.processes[0]).__name__, "Nearest")
            codes, z = (part[:, own.slots] for part in (own.scaling.encode(x),
                                                        own.scaling.features(x)))
            wanted = [own.processes[0](*row, i if i < n else None)
                      for i, row in enumerate(zip(codes, z))]
            found = prepare(as_tasks(x, y, kinds), n, model.config).x[0].numpy()
            np.testing.assert_allclose(found[:, -4:], wanted, atol=1e-8)
            np.testing.assert_allclose(found[0, RECORD], own.record, atol=1e-8)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for name, (x, y) in (("rows_nearest", wave(300, 1)), ("rows_nearest", labelled(300)),
                             ("rows_nearest", wave(600, 4, 3)), ("rows_nearest_few", wave(300, 1)),
                             ("rows_nearest", wave(40, 1))):
            n = len(y) - 6
            kinds = ["categorical" if f == 1 else "numeric" for f in range(x.shape[1])]
            with tempfile.TemporaryDirectory() as folder:
                path, model = network(name, folder)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]), kinds=kinds,
                                    score={**table(x[n:], y[n:]), "orders": 0}, prefix="whole",
                                    kernels="reference")
            tasks = as_tasks(x, y, kinds)
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3, rtol=1e-4, err_msg=name)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3, rtol=1e-3, err_msg=name)
            joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
            np.testing.assert_allclose(joint, said["per_row"], atol=1e-2, err_msg=name)


if __name__ == "__main__":
    unittest.main()
