"""Directions of a process: the search by what it finds, and as the engine has it."""

import copy
import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train import directions, process
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import predict
from pg_posterior_train.prior import PRIORS
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL, covering_models
from .test_agreement import Answers, sample, trained

if os.path.isdir(REFERENCE):
    from .test_agreement import table

ALONG = np.array([1.2, -0.9, 0.6, 0.5, 0.8])


def numbers(rows, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, 5))


class Search(unittest.TestCase):
    def test_random_numbers(self):
        """Draw 3 of seed 0, as the engine's random numbers have it."""
        pairs = directions.uniform_pairs(3, 4)
        self.assertTrue(((pairs > 0) & (pairs < 1)).all())
        if os.path.isdir(REFERENCE):
            sys.path.insert(0, REFERENCE)
            from random_numbers import uniforms

            sys.path.remove(REFERENCE)
            for i, pair in enumerate(pairs):
                self.assertEqual(tuple(pair), uniforms(0, (3, 0, i, 5)))

    def test_finds_the_direction_of_a_wave(self):
        z = numbers(200)
        found = directions.find(z, np.sin(z @ ALONG), 3)
        self.assertGreaterEqual(len(found), 1)
        cosine = found[0] @ ALONG / np.linalg.norm(found[0]) / np.linalg.norm(ALONG)
        self.assertGreater(abs(cosine), 0.999)
        self.assertTrue(np.array_equal(found * 1024, np.rint(found * 1024)))
        self.assertAlmostEqual((z @ found[0]).std(), 1, delta=0.01)

    def test_a_column_is_no_direction(self):
        z = numbers(200)
        y = np.cos(z[:, 2]) + 0.1 * np.random.default_rng(1).standard_normal(200)
        self.assertEqual(len(directions.find(z, y, 3)), 0)

    def test_noise_has_none(self):
        for seed in range(10):
            y = np.random.default_rng(100 + seed).standard_normal(200)
            self.assertEqual(len(directions.find(numbers(200, seed), y, 3)), 0)

    def test_few_rows_have_none(self):
        z = numbers(112)
        self.assertEqual(len(directions.find(z[:111], np.sin(z[:111] @ ALONG), 3)), 0)
        self.assertGreater(len(directions.find(z, np.sin(z @ ALONG), 3)), 0)


def directed_tasks(model, rows, seed=3):
    """One task along a direction of its numbers, with labels and missing cells."""
    drawn = sample(torch.Generator().manual_seed(seed), 1, rows, model=model)
    x = drawn.x.double()
    y = torch.sin(x[..., :3].sum(-1)) + 0.1 * drawn.y.double()
    return Tasks(x, y, drawn.categorical)


class Axes(unittest.TestCase):
    def test_a_process_learns_along_it(self):
        """With directions the targets of a wave along one are known, without them they are not."""
        z = torch.from_numpy(numbers(260))[None]
        y = torch.sin(z[0] @ torch.from_numpy(ALONG))[None]
        bins, numeric = torch.zeros(z.shape, dtype=torch.long), torch.zeros(1, 5, dtype=torch.bool)
        errors = []
        for most in (0, 2):
            said = process.opinions(z, bins, ~numeric, numeric, y, 200, 5.0, most)
            errors.append(float((said[0, 200:, 0] - y[0, 200:]).square().mean().sqrt()))
        self.assertGreater(errors[0], 0.1)
        self.assertLess(errors[1], 0.02)


@unittest.skipUnless(
    os.path.exists(TOOL) and os.path.isdir(REFERENCE), "the engine's tool is not built"
)
class Agreement(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        PRIORS["any"] = sample
        self.addCleanup(PRIORS.pop, "any")

    def test_models(self):
        from checking import Tool

        asked = 0
        for options, model in covering_models():
            if options["embedder"] not in ("process", "gated") or asked == 3:
                continue
            asked += 1
            model = copy.deepcopy(model)
            model["embedder"]["x"]["directions"] = 2
            # The prior's tasks have few rows: the statistics of this one are of many.
            given = 230
            with self.subTest(**options), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                trained(model, folder).export(path)
                network, tasks = load_model(path, torch.float64), directed_tasks(model, given + 6)
                with Tool(TOOL, path) as tool:
                    engine = Answers(tool, model, tasks)
                    answer = engine.ask(given, "whole", queries=table(engine.x[given:])["x"])
                mean, sd = predict(network, tasks, given).moments()
                for got, wanted in ((answer["mean"], mean[0]), (answer["sd"], sd[0])):
                    self.assertLess(float((torch.as_tensor(got) - wanted).abs().max()), 1e-4)
        self.assertGreater(asked, 0)


if __name__ == "__main__":
    unittest.main()
