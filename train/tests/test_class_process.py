"""The process of a classifier's prefix against the reference and the engine."""
import math
import os
import sys
import unittest

import numpy as np
import torch

from pg_posterior_train.class_process import ClassProcess
from pg_posterior_train.classes import classify
from pg_posterior_train.export import load_model
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

MODEL = os.path.join(os.path.dirname(__file__), "..", "..", "models", "tabular_class.safetensors")
if os.path.isdir(REFERENCE):
    sys.path.insert(0, REFERENCE)
    import class_process as reference
    import rows as reference_rows
    from checking import Tool, cells, table

    sys.path.remove(REFERENCE)


def signs(n, classes, seed):
    """Rows [n, 4] of numbers, the last of them labels, and classes that two numbers tell together;
    some cells are missing.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 4)).astype(np.float32).astype(float)
    x[:, 3] = random.integers(3, size=n)
    y = (x[:, 0] * x[:, 1] > 0).astype(int) + (classes > 2) * (x[:, 0] > 0.7)
    x[random.random(x.shape) < 0.03] = np.nan
    return x, y


@unittest.skipUnless(os.path.isdir(REFERENCE), "no reference")
class ClassProcessTest(unittest.TestCase):

    def test_the_reference_says_the_same(self):
        for classes, n in ((2, 90), (3, 300), (2, 24)):
            x, y = signs(n + 20, classes, n)
            bins = {label: int(label) for label in range(3)}
            cards = [reference_rows.ClassCard(x[:n, f], np.nan_to_num(x[:n, f]), y[:n],
                                              bins if f == 3 else None, classes)
                     for f in range(4)]
            theirs = reference.ClassProcess(cards, x[:n], np.nan_to_num(x[:n]), y[:n], classes)
            place = np.where(np.isnan(x), 16, np.where(np.arange(4) == 3, x, 0))
            ours = ClassProcess(torch.from_numpy(np.nan_to_num(x)),
                                torch.from_numpy(np.nan_to_num(place, nan=16)).long(),
                                torch.arange(4) == 3, y[:n], classes)
            self.assertLess(ours.loss, math.log(classes) if n > 50 else math.inf)
            self.assertAlmostEqual(ours.loss, theirs.loss, 6)
            self.assertAlmostEqual(ours.sharpness, theirs.sharpness, 5)
            np.testing.assert_allclose(ours.log_p[n:] + np.log(classes),
                                       theirs(x[n:], np.nan_to_num(x[n:])), atol=1e-5)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_the_same(self):
        model = load_model(MODEL)
        self.assertGreater(model.config["head"]["class_process"], 0)
        for classes, n in ((2, 200), (3, 560)):
            x, y = signs(n + 20, classes, n + 1)
            labels = np.arange(4) == 3
            tasks = Tasks(torch.from_numpy(x)[None].float(), torch.from_numpy(y)[None].float(),
                          torch.from_numpy(labels)[None])
            log_p, found, _, _ = classify(model, tasks, n)
            kinds = ["categorical" if label else "numeric" for label in labels]
            with Tool(TOOL, MODEL) as tool:
                answer = tool.ask(context=table(x[:n], y[:n]), kinds=kinds, queries=cells(x[n:]),
                                  classes=classes, prefix="whole")
            engine = np.array(answer["params"])[:, :int(found)]
            np.testing.assert_allclose(log_p[0, :, :int(found)].exp().numpy(), engine, atol=2e-3)
            self.assertGreater(np.mean(engine.argmax(1) == y[n:]), 0.7)


if __name__ == "__main__":
    unittest.main()
