"""The papers' functions and their protocols."""
import json
import math
import os
import unittest

import torch

from pg_posterior_train import protocols
from pg_posterior_train.prior import PRIORS, curves, gp1d

from .common import CONFIGS, random_model

ALL = ("rbf", "matern12", "matern32", "matern52", "periodic")


def drawn(kernels=ALL, tasks=40, rows=24, seed=0, **options):
    return curves.draw(torch.Generator().manual_seed(seed), tasks, rows, kernels=kernels,
                       lengthscale={"log_uniform": [0.25, 1.0]}, **options)


class Curves(unittest.TestCase):
    def test_exact_answers_are_those_of_conditioning(self):
        c = drawn(kernels=("rbf",))
        alone, joint = curves.exact(c, 10)
        x, y = c.tasks.x[..., 0], c.tasks.y
        mean, sd = gp1d.posterior(x[:, :10], y[:, :10], x[:, 10:], c.lengthscale)
        wanted = -0.5 * ((y[:, 10:] - mean) / sd) ** 2 - sd.log() - 0.5 * math.log(2 * math.pi)
        self.assertTrue(torch.allclose(alone, wanted, atol=1e-5))
        whole = (gp1d.log_marginal(x, y, c.lengthscale)
                 - gp1d.log_marginal(x[:, :10], y[:, :10], c.lengthscale))
        self.assertTrue(torch.allclose(joint, whole, atol=1e-4))

    def test_all_kernels_are_drawn_and_calibrated(self):
        """Under the process that drew them, standardised targets have unit variance, task by task
        kind.
        """
        c = drawn(tasks=400)
        self.assertEqual(set(c.kernel.tolist()), set(range(len(ALL))))
        alone, _ = curves.exact(c, 12)
        for i, name in enumerate(ALL):
            some = c.kernel == i
            k = curves.covariance(name, c.tasks.x[some, :, 0], c.tasks.x[some, :, 0],
                                  c.lengthscale[some], c.period[some])
            self.assertTrue(torch.allclose(k.diagonal(dim1=1, dim2=2), torch.ones(1)), name)
            self.assertTrue(torch.allclose(k, k.transpose(1, 2)), name)
            # A Gaussian's mean log density is that of its entropy: -1/2 - ln sd - 1/2 ln 2 pi,
            # whose mean the squares share.
            self.assertTrue(torch.isfinite(alone[some]).all(), name)
            self.assertLess(abs(float(c.tasks.y[some].var()) - 1.01), 0.4, name)

    def test_periodic_functions_repeat(self):
        x = torch.tensor([[0.1, 1.1, 2.1]], dtype=torch.float64)
        one = torch.ones(1, dtype=torch.float64)
        k = curves.covariance("periodic", x, x, 0.5 * one, one)
        self.assertTrue(torch.allclose(k, torch.ones(1, dtype=torch.float64)))

    def test_sawtooth(self):
        c = curves.draw(torch.Generator().manual_seed(1), 50, 64, noise=0.0,
                        sawtooth={"frequency": {"uniform": [3, 5]}})
        y = c.tasks.y
        self.assertTrue(bool(((y >= 0) & (y < 1)).all()))
        # Sorted by x, nearly all steps of one task go the same way, at a slope of its frequency.
        order = c.tasks.x[..., 0].argsort(1)
        x, y = c.tasks.x[..., 0].gather(1, order), y.gather(1, order)
        slope = (y.diff() / x.diff().clamp_min(1e-4)).median(1).values
        self.assertTrue(bool(((slope.abs() > 2.9) & (slope.abs() < 5.1)).all()))
        self.assertEqual({1.0, -1.0}, set(slope.sign().tolist()))

    def test_beta_numbers(self):
        s = curves.Source(torch.Generator().manual_seed(0))
        v = curves.draw_number(s, {"beta": [3, 7]}, 20000)
        self.assertAlmostEqual(float(v.mean()), 0.3, places=2)
        self.assertAlmostEqual(float(v.var()), 3 * 7 / (100 * 11), places=3)

    def test_unknown_names(self):
        with self.assertRaisesRegex(ValueError, "unknown kernel 'cubic'; known are rbf"):
            drawn(kernels=("cubic",))
        with self.assertRaisesRegex(ValueError, "unknown distribution"):
            drawn(period={"gamma": [1, 2]})


class Protocols(unittest.TestCase):
    def test_block_sizes_agree_where_they_must(self):
        """One row is one row under every block size; a block as long as the chain is the chain."""
        model = random_model("gp1d")
        data = PRIORS["gp1d"](torch.Generator().manual_seed(5), 3, 12).to(torch.float64)
        one = [protocols.chain_density(model, protocols.choose(data, torch.arange(9)), 8, k)
               for k in (1, 4, 16)]
        self.assertTrue(torch.allclose(one[0], one[1], atol=1e-10)
                        and torch.allclose(one[0], one[2], atol=1e-10))
        whole = protocols.chain_density(model, data, 8, 4)
        single = protocols.chain(model, data, 8).log_prob(data.y[:, 8:]).sum(1)
        self.assertTrue(torch.allclose(whole, single, atol=1e-10))
        self.assertFalse(torch.allclose(protocols.chain_density(model, data, 8, 1), whole,
                                        atol=1e-6))

    def test_orders_are_averaged_as_densities(self):
        model = random_model("gp1d")
        data = PRIORS["gp1d"](torch.Generator().manual_seed(6), 2, 7).to(torch.float64)
        got = protocols.averaged_density(model, data, 5, 2, 64, torch.Generator().manual_seed(0))
        both = torch.stack(
            [protocols.chain_density(model, protocols.choose(data, torch.tensor(o)), 5, 2)
             for o in ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 6, 5])])
        self.assertTrue(bool(((got >= both.amin(0) - 1e-9) & (got <= both.amax(0) + 1e-9)).all()))
        self.assertTrue(torch.allclose(got, both.logsumexp(0) - math.log(2),
                                       atol=0.2 * float((both[0] - both[1]).abs().max()) + 1e-9))

    def test_sobol_inputs(self):
        """Of 64 points one lies in each 64th of the range, of the first 8 one in each eighth."""
        drawn = curves.draw(torch.Generator().manual_seed(3), 5, 64, inputs={"sobol": [-2.0, 2.0]})
        x = drawn.tasks.x[..., 0]
        cell = ((x + 2) * 16).floor()
        self.assertTrue(torch.equal(cell.sort(1).values, torch.arange(64.0).expand(5, -1)))
        early = (cell[:, :8] / 8).floor()
        self.assertTrue(torch.equal(early.sort(1).values, torch.arange(8.0).expand(5, -1)))
        self.assertFalse(torch.equal(cell[0], cell[1]))

    def test_weights_and_variances(self):
        options = {"kernels": ["rbf", "matern12"], "weights": [3, 1], "noise": 0.0}
        drawn = curves.draw(torch.Generator().manual_seed(4), 4000, 1, variance=4.0, **options)
        self.assertAlmostEqual(float((drawn.kernel == 0).double().mean()), 0.75, delta=0.03)
        self.assertAlmostEqual(float(drawn.tasks.y.std()), 2.0, delta=0.08)

    def test_latent_functions(self):
        """Noise on the observations alone; what the exact process says of the function is
        calibrated.
        """
        generator = torch.Generator().manual_seed(5)
        drawn = curves.draw(generator, 400, 40, noise=0.3, latent=True, given=10)
        x, y = drawn.tasks.x[..., 0], drawn.tasks.y
        self.assertTrue(torch.equal(x[:, :10], x[:, 10:20]))
        self.assertAlmostEqual(float((y[:, :10] - y[:, 10:20]).std()), 0.3, delta=0.02)
        density, joint = curves.exact(drawn, 10)
        self.assertIsNone(joint)
        drawn.tasks.y[:, 10:] += 0.2
        worse, _ = curves.exact(drawn, 10)
        self.assertGreater(float(density.mean()), float(worse.mean()))

    def test_every_configured_protocol_runs(self):
        model = random_model("gp1d").float()
        found = 0
        for name in sorted(os.listdir(CONFIGS)):
            with open(os.path.join(CONFIGS, name), encoding="utf-8") as f:
                config = json.load(f)
            for protocol in config.get("evaluation", []):
                if protocols.features_of(protocol) != 1 or "optimise" in protocol:
                    continue    # the model here takes one; test_protocols.py and
                                # test_optimisation.py have the others
                # A latent function is asked at its observations as well.
                targets = 60 if protocol["prior"].get("latent") else 3
                orders = min(2, protocol.get("orders", 1))
                small = {**protocol, "targets": targets, "orders": orders}
                small["context"] = ([4] if isinstance(protocol["context"], list)
                                    else protocol["context"])
                table, = protocols.evaluate(model, [small], 2)
                text = protocols.markdown([table])
                self.assertIn(protocol["title"], text)
                row = next(iter(table["rows"].values()))
                self.assertIn("factorised", row)
                process = "sawtooth" not in protocol["prior"]
                self.assertEqual("exact, factorised" in row, process)
                alone = protocol["prior"].get("latent") or protocol.get("process") == "fields"
                self.assertEqual("exact, joint" in row, process and not alone)
                found += 1
        self.assertGreaterEqual(found, 7)


if __name__ == "__main__":
    unittest.main()
