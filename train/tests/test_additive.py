"""A process whose correlation is a mean over axes in part: its gradient, what it learns, and as the
engine has it.
"""

import copy
import os
import tempfile
import unittest

import torch

from pg_posterior_train import additive, process
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import predict
from pg_posterior_train.prior import PRIORS
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL, covering_models
from .test_agreement import Answers, sample, trained
from .test_process import made
from .test_ridge import random_inputs

if os.path.isdir(REFERENCE):
    from .test_agreement import table


def total(z):
    return torch.sin(2 * z[..., 0]) + z[..., 1].abs() + torch.cos(3 * z[..., 2])


class Share(unittest.TestCase):
    def test_gradient(self):
        """The gradient is that of the value, by differences; of labels and missing cells, too."""
        z, bins, categorical, y = random_inputs(tasks=2, rows=24)
        bins[:, 3:5, :2], z[:, 3:5, :2] = 16, 0
        used = torch.ones_like(categorical)
        used[1, -1] = False
        points, coordinate = process.coordinates(z, bins, used, categorical)
        fit = process.SharedFit(process.Fit(points, coordinate, y, used),
                                additive.Axes.of(z, bins, used, categorical, 16))
        g = torch.Generator().manual_seed(1)
        theta = torch.randn(2, 6, generator=g, dtype=torch.float64)
        gradient = fit.gradient(theta)
        for k in range(6):
            step = torch.zeros_like(theta)
            step[:, k] = 1e-5
            slope = (fit.value(theta + step) - fit.value(theta - step)) / 2e-5
            self.assertTrue(torch.allclose(slope * fit.counts[:, k], gradient[:, k], atol=1e-4))

    def test_no_share_is_the_product(self):
        z, bins, categorical, y = random_inputs(tasks=2, rows=24)
        used = torch.ones_like(categorical)
        points, coordinate = process.coordinates(z, bins, used, categorical)
        fit = process.Fit(points, coordinate, y, used)
        shared = process.SharedFit(fit, additive.Axes.of(z, bins, used, categorical, 16))
        theta = torch.zeros(2, 6, dtype=torch.float64)
        theta[:, -1] = -60
        alone = fit.likelihood(fit.system(theta[:, :-1])[0])
        both = shared.likelihood(shared.system(theta)[0])
        self.assertTrue(torch.allclose(alone, both))

    def test_sums_are_learnt_and_products_stay(self):
        for function, gains in ((total, True), (lambda z: z[..., 0] * z[..., 1], False)):
            for prefix in (120, 260):
                z, bins, used, categorical, y = made(function, rows=prefix + 100)
                plain, shared = (process.opinions(z, bins, used, categorical, y, prefix, 5.0, 0, on)
                                 for on in (False, True))
                self.assertEqual(torch.equal(plain, shared), not gains)
                wrong, right = ((said[0, prefix:, 0] - y[0, prefix:]).square().mean().sqrt()
                                for said in (plain, shared))
                if gains:
                    self.assertLess(float(right), 0.7 * float(wrong))

    def test_tasks_of_a_batch_are_alone(self):
        """A task's answers do not depend on whether others have a share."""
        both = [made(f, rows=300) for f in (total, lambda z: z[..., 0] * z[..., 1])]
        joined = [torch.cat(parts) for parts in zip(*both)]
        said = process.opinions(*joined, 260, 5.0, 0, True)
        for i, one in enumerate(both):
            alone = process.opinions(*one, 260, 5.0, 0, True)[0]
            self.assertLess(float((said[i] - alone).abs().max()), 1e-6)


@unittest.skipUnless(
    os.path.exists(TOOL) and os.path.isdir(REFERENCE), "the engine's tool is not built"
)
class Agreement(unittest.TestCase):
    def test_models(self):
        from checking import Tool

        torch.set_num_threads(1)
        PRIORS["any"] = sample
        self.addCleanup(PRIORS.pop, "any")
        asked = shared = 0
        for options, model in covering_models():
            if options["embedder"] not in ("process", "gated") or asked == 2:
                continue
            asked += 1
            model, given = copy.deepcopy(model), 150
            model["embedder"]["x"]["additive"] = True
            with self.subTest(**options), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                trained(model, folder).export(path)
                drawn = sample(torch.Generator().manual_seed(3), 1, given + 6, model=model)
                x = drawn.x[..., :4].double()
                x[:, ::20, 2] = torch.nan
                y = torch.sin(2 * x[..., 0]) + x[..., 1].abs() + x[..., 3]
                tasks = Tasks(x, y + 0.1 * drawn.y, drawn.categorical[:, :4])
                network = load_model(path, torch.float64)
                with Tool(TOOL, path) as tool:
                    engine = Answers(tool, model, tasks)
                    answer = engine.ask(given, "whole", queries=table(engine.x[given:])["x"])
                mean, sd = predict(network, tasks, given).moments()
                for got, wanted in ((answer["mean"], mean[0]), (answer["sd"], sd[0])):
                    self.assertLess(float((torch.as_tensor(got) - wanted).abs().max()), 1e-4)
                network.config["embedder"]["x"]["additive"] = False
                shared += not torch.equal(mean, predict(network, tasks, given).moments()[0])
        self.assertGreater(shared, 0)


if __name__ == "__main__":
    unittest.main()
