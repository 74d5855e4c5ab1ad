"""Queries that lack cells: variants and joined answers, by definition and as the engine has it."""

import copy
import os
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.classes import class_chain, classify, is_classifier
from pg_posterior_train.donors import Lenders, reduced, told
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.prior import PRIORS
from pg_posterior_train.tasks import Tasks

from .models import CLASSES, REFERENCE, TOOL, covering_models
from .test_agreement import Answers, fixed_tasks, sample, trained

if os.path.isdir(REFERENCE):
    from .test_agreement import table


def lending_models(most=3):
    """Some of the models that read rows, with donors."""
    out = []
    for options, model in covering_models():
        x = model["embedder"].get("x", {})
        if x.get("kind") != "rows" or not model["inputs"].get("clip"):
            continue
        if [o["embedder"] for o, _ in out].count(options["embedder"]) < 2:
            model = copy.deepcopy(model)
            model["embedder"]["x"]["donors"] = most
            out.append((options, model))
            if model["embedder"]["x"].get("process") and model["head"]["kind"] == "mixture":
                model = copy.deepcopy(model)
                model["embedder"]["x"]["shift"] = True
                out.append((options, model))
    return out


class Variants(unittest.TestCase):
    def test_few_different_cells_are_weighted_by_their_share(self):
        y = np.arange(10.0)
        x = np.stack([y, np.array([5, 5, 7, 7, 7, 7, 9, 9, np.nan, 9])], 1)
        cells, weights, sample = Lenders(x, y, x, np.isnan(x)).lend(np.array([1]), 3)
        self.assertEqual(sample, 0)
        self.assertEqual(cells[:, 0].tolist(), [5, 7, 9])
        self.assertTrue(np.allclose(weights, [2 / 9, 4 / 9, 3 / 9]))

    def test_many_are_spread_along_the_target(self):
        y = -np.arange(24.0)
        x = np.stack([10 + y, y], 1)
        absent = np.zeros((24, 2))
        cells, weights, sample = Lenders(x, y, absent, absent).lend(np.array([0]), 3)
        self.assertEqual(sample, 3)
        self.assertEqual(cells[:, 0].tolist(), [-9, -1, 7])
        self.assertEqual(weights.tolist(), [1 / 3] * 3)
        for different, sample in ((12, 0), (13, 3)):
            lenders = Lenders(x, y.clip(1 - different), absent, absent)
            self.assertEqual(lenders.lend(np.array([0]), 3)[2], sample)

    def test_what_absence_tells(self):
        self.assertEqual(told(np.array(0.0), np.array(0.0), np.array(1.0)), 0)
        plain, standing_out = told(np.array(8.0), np.array([1.0, 40.0]), np.array(1.0))
        self.assertLess(plain, 0.6)
        self.assertGreater(standing_out, 0.999)

    def test_reduction_keeps_mean_and_variance(self):
        random = np.random.default_rng(3)
        parts = np.stack([random.dirichlet(np.ones(40)), random.normal(size=40),
                          random.uniform(0.01, 2, 40)], 1)
        made = reduced(parts, 5)
        self.assertEqual(made.shape, (5, 3))

        def moments(p):
            mean = p[:, 0] @ p[:, 1]
            return [p[:, 0].sum(), mean, p[:, 0] @ (p[:, 2] ** 2 + (p[:, 1] - mean) ** 2)]

        self.assertTrue(np.allclose(moments(parts), moments(made)))
        few = reduced(parts[:2], 4)
        self.assertEqual(few[:, 0].tolist()[2:], [0, 0])


@unittest.skipUnless(
    os.path.exists(TOOL) and os.path.isdir(REFERENCE), "the engine's tool is not built"
)
class Agreement(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        PRIORS["any"] = sample
        self.addCleanup(PRIORS.pop, "any")

    def near(self, got, wanted, what):
        self.assertLess(float((torch.as_tensor(got) - wanted).abs().max()), 1e-4, what)

    def agrees(self, model, given=11, tasks=None):
        from checking import Tool

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            trained(model, folder).export(path)
            network = load_model(path, torch.float64)
            if tasks is None:
                tasks = fixed_tasks(model)
                tasks.x[0, given:, 3] = torch.tensor([9.0, torch.nan])[
                    torch.arange(tasks.x.shape[1] - given) % 2
                ]
            with Tool(TOOL, path) as tool:
                engine = Answers(tool, model, tasks)
                x, y = engine.x[given:], engine.y[given:]
                answer = engine.ask(given, "whole", queries=table(x)["x"], score=table(x, y))
                if is_classifier(model):
                    log_p, _, _, _ = classify(network, tasks, given)
                    self.near(answer["params"], log_p[0].exp(), "probabilities")
                    log_p, _, true, _ = class_chain(network, tasks, given)
                    density = log_p.gather(2, true[..., None])[0, :, 0]
                else:
                    mean, sd = predict(network, tasks, given).moments()
                    self.near(answer["mean"], mean[0], "means")
                    self.near(answer["sd"], sd[0], "deviations")
                    density = chain(network, tasks, given).log_prob(tasks.y[:, given:])[0]
                self.near(answer["per_row"], density, "chain")

    def test_models(self):
        models = lending_models()
        for options, model in models:
            with self.subTest(**options):
                self.agrees(model)
        self.assertGreater(len({o["embedder"] for o, _ in models}), 5)
        self.assertGreater(CLASSES, 2)

    def test_cells_that_are_missing_by_what_they_say(self):
        models = [m for _, m in lending_models() if m["embedder"]["x"].get("shift")]
        self.assertGreater(len(models), 1)
        for model in models[:2]:
            self.agrees(model, 120, missing_by_value(126))


def missing_by_value(rows):
    """A label that rows lack where it is one of them, and a number that some lack by chance."""
    random = np.random.RandomState(rows)
    x = random.standard_normal((rows, 4))
    x[:, 3], x[:, 2] = random.randint(0, 5, rows), random.randint(0, 2, rows)
    signs = np.where(x[:, 2] > 0, 1, -1)
    y = signs * np.array([2.5, 0, 0.2, -1, -2])[x[:, 3].astype(int)] + 0.2 * x[:, 0]
    x[random.uniform(size=rows) < 0.1, 1] = np.nan
    x[(x[:, 3] == 0) & (random.uniform(size=rows) < 0.9), 3] = np.nan
    x[-3:, 3] = np.nan, 9, np.nan
    x[-3:-1, 1] = np.nan
    categorical = torch.tensor([[False, False, False, True]])
    return Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None], categorical)


if __name__ == "__main__":
    unittest.main()
