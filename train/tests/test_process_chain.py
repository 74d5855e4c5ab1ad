"""A process that learns from the rows of a chain: a conditional Gaussian, and as the engine has it.
"""

import copy
import os
import tempfile
import unittest

import torch

from pg_posterior_train import process_chain
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import chain
from pg_posterior_train.prior import PRIORS
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL, covering_models
from .test_agreement import TOLERANCE, Answers, sample, trained

if os.path.isdir(REFERENCE):
    from .test_agreement import table


class Conditional(unittest.TestCase):
    def test_density(self):
        """The product of the conditionals is the joint density."""
        g = torch.Generator().manual_seed(2)
        n, noise = 9, torch.tensor([[0.3]], dtype=torch.float64)
        a = torch.randn(n, n, generator=g, dtype=torch.float64)
        known = a @ a.T / n
        eye = torch.eye(n, dtype=torch.float64)
        joint = torch.distributions.MultivariateNormal(
            torch.linspace(-1, 1, n, dtype=torch.float64), 2 * (known + noise * eye))
        y = joint.sample()
        place = torch.cat([torch.arange(n - 1), torch.arange(n)])   # rows of the chain, queries
        steps = process_chain.Chain(0, n - 1, torch.arange(n))
        spread = (known.diagonal() + 0.3) * 2
        mean, spread = process_chain.condition(
            steps, y[place][None], joint.mean[place][None], spread[place][None], noise,
            torch.tensor([[2.0]], dtype=torch.float64),
            lambda a, b: known[place[a]][:, place[b]][None])
        said = torch.distributions.Normal(mean[0, n - 1:], spread[0, n - 1:].sqrt())
        self.assertAlmostEqual(float(said.log_prob(y).sum()), float(joint.log_prob(y)), places=9)

    def test_what_is_remembered(self):
        steps = process_chain.Chain(10, 300, torch.arange(10, 301))
        for rows, asked in steps.groups():
            seen = int(asked[0]) - 300
            self.assertEqual(len(rows), seen if seen < 128 else 64 + seen % 64)
            self.assertTrue(len(rows) == 0 or int(rows[-1]) == 10 + seen - 1)


@unittest.skipUnless(
    os.path.exists(TOOL) and os.path.isdir(REFERENCE), "the engine's tool is not built"
)
class Agreement(unittest.TestCase):
    def test_models(self):
        from checking import Tool

        torch.set_num_threads(1)
        PRIORS["any"] = sample
        self.addCleanup(PRIORS.pop, "any")
        asked = learnt = 0
        for options, model in covering_models():
            if "process" not in model["head"] or asked == 2:
                continue
            asked += 1
            model, given = copy.deepcopy(model), 40
            model["head"]["process_chain"] = True
            model["embedder"]["x"]["donors"] = 3
            with self.subTest(**options), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                trained(model, folder).export(path)
                drawn = sample(torch.Generator().manual_seed(3), 1, given + 7, model=model)
                x = drawn.x[..., :3].double()
                x[0, :, 0] = torch.linspace(-2, 2, x.shape[1])
                x[:, 5::12, 2] = torch.nan
                tasks = Tasks(x, torch.sin(4 * x[..., 0]) + 0.1 * drawn.y,
                              drawn.categorical[:, :3])
                network = load_model(path, torch.float64)
                with Tool(TOOL, path) as tool:
                    engine = Answers(tool, model, tasks)
                    answer = engine.ask(given, "whole",
                                        score=table(engine.x[given:], engine.y[given:]))
                wanted = chain(network, tasks, given).log_prob(tasks.y[:, given:])[0]
                got = torch.as_tensor(answer["per_row"], dtype=torch.float64)
                off = (got - wanted).abs() / (1 + wanted.abs())
                self.assertLess(float(off.max()), TOLERANCE)
                network.config["head"]["process_chain"] = False
                alone = chain(network, tasks, given).log_prob(tasks.y[:, given:])[0]
                self.assertLess(abs(float(wanted[0] - alone[0])), 1e-12)
                learnt += not torch.equal(wanted, alone)
        self.assertEqual((asked, learnt), (2, 2))


if __name__ == "__main__":
    unittest.main()
