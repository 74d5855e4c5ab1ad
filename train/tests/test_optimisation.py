"""Bayesian optimisation: what it asks for, and its regret."""
import copy
import json
import math
import os
import unittest

import torch

from pg_posterior_train import optimisation, protocols
from pg_posterior_train.mixture import Mixture
from pg_posterior_train.predict import Prediction
from pg_posterior_train.prior import curves
from pg_posterior_train.tasks import Tasks, numeric

from .common import CONFIGS, random_model

GRID = {"grid": [-2.0, 2.0], "points": 30}


def drawn(seed=0, count=6, points=40, **options):
    return curves.draw(torch.Generator().manual_seed(seed), count, points, kernels=["rbf"],
                       lengthscale=0.5, noise=0.0, inputs=GRID, **options)


def protocol(name="optimise_rbf"):
    with open(os.path.join(CONFIGS, name + ".json"), encoding="utf-8") as f:
        return json.load(f)["evaluation"][0]


class Improvement(unittest.TestCase):
    def test_is_the_mean_of_what_is_gained(self):
        """Against the integral, for a mixture in units of its own."""
        head = {"kind": "mixture", "components": 2, "std": "softplus", "floor": 0.1}
        outputs = torch.tensor([[[0.3, -0.2, -1.0, 0.5, 0.2, -0.7]]])
        center, scale = torch.tensor([2.0]), torch.tensor([3.0])
        answer = Prediction(Mixture(outputs, head), center, scale)
        best = torch.tensor([1.2])
        y = torch.linspace(-40, 1.2, 200001, dtype=torch.float64)
        gained = (1.2 - y) * answer.log_prob(y[None].float()).double().exp()
        integral = torch.trapezoid(gained, y)
        got = optimisation.improvement(answer, best)
        self.assertAlmostEqual(float(got), float(integral), places=4)

    def test_of_what_is_known(self):
        best = torch.tensor(1.0, dtype=torch.float64)
        mean = torch.tensor([0.25, 1.0, 3.0], dtype=torch.float64)
        sure = optimisation.normal_improvement(best, mean, torch.zeros(3, dtype=torch.float64))
        self.assertEqual(sure.tolist(), [0.75, 0.0, 0.0])
        even = optimisation.normal_improvement(best, best, 2 * torch.ones(1, dtype=torch.float64))
        self.assertAlmostEqual(float(even), 2 / math.sqrt(2 * math.pi), places=12)

    def test_bars_are_refused(self):
        with self.assertRaisesRegex(SystemExit, "Gaussians, not of bars"):
            optimisation.improvement(Prediction(object(), torch.zeros(1), torch.ones(1)),
                                     torch.zeros(1))


class Exact(unittest.TestCase):
    def test_finds_the_minimum_of_a_known_function(self):
        """A parabola whose least value lies between the points seen first, in few steps."""
        x = torch.linspace(-2, 2, 41)
        order = torch.tensor([0, 40, *range(1, 40)])
        x = x[order]
        tasks = numeric(x[None, :, None], ((x - 0.6) ** 2)[None])
        one = torch.ones(1)
        process = curves.Curves(tasks, ["rbf"], torch.zeros(1, dtype=torch.long), one, one, one,
                                0.0)
        asked = []
        inner = optimisation.exact_surrogate(process, 0.0)

        def surrogate(which, seen, places, best):
            asked.append(seen.y.shape[1])
            return inner(which, seen, places, best)

        regret = optimisation.optimise(surrogate, tasks, 2, 12, again=False)
        self.assertGreater(float(regret[0, 0]), 1.0)
        self.assertEqual(float(regret[0, -1]), 0.0)
        # what has been found is asked about no further
        self.assertLess(len(asked), 12)
        self.assertEqual(asked, list(range(2, 2 + len(asked))))

    def test_knows_what_it_has_seen(self):
        """Nothing is to be gained at a point that was seen, but far from all."""
        c = drawn()
        surrogate = optimisation.exact_surrogate(c, 0.0)
        seen = Tasks(c.tasks.x[:, :20], c.tasks.y[:, :20], c.tasks.categorical)
        gain = surrogate(torch.arange(6), seen, c.tasks.x, seen.y.amin(1))
        self.assertLess(float(gain[:, :20].max()), 2e-3)
        far = torch.full((6, 1, 1), 50.0)
        prior = surrogate(torch.arange(6), seen, far, torch.zeros(6))
        self.assertTrue(torch.allclose(prior, torch.full((6, 1), 1 / math.sqrt(2 * math.pi),
                                                         dtype=torch.float64)))

    def test_better_than_random(self):
        c = drawn(seed=3, count=64)
        exact = optimisation.optimise(optimisation.exact_surrogate(c, 0.0), c.tasks, 4, 8,
                                      again=False)
        random = optimisation.random_search(c.tasks, 4, 8)
        self.assertTrue(torch.equal(exact[:, 0], random[:, 0]))
        self.assertLess(float(exact[:, -1].mean()), 0.2 * float(random[:, -1].mean()))


class Regret(unittest.TestCase):
    def test_never_rises_and_ends_at_nothing(self):
        c = drawn(seed=1)
        noise = torch.Generator().manual_seed(7)

        def anything(which, seen, x, best):
            return torch.rand(x.shape[:2], generator=noise)

        for again in (True, False):
            regret = optimisation.optimise(anything, c.tasks, 3, 37, again)
            self.assertTrue(bool((regret.diff(dim=1) <= 0).all()))
            self.assertTrue(bool((regret >= 0).all()))
            self.assertGreater(float(regret[:, 0].mean()), 0)
        # 3 points and 37 steps are all 40 points, when none is asked for twice
        self.assertEqual(float(regret[:, -1].max()), 0.0)
        self.assertEqual(float(optimisation.random_search(c.tasks, 3, 37)[:, -1].max()), 0.0)

    def test_a_point_asked_for_again_gains_nothing(self):
        c = drawn(seed=2)

        def first(which, seen, x, best):
            return -torch.arange(x.shape[1]).expand(x.shape[:2]).double()

        stuck = optimisation.optimise(first, c.tasks, 3, 5)
        self.assertTrue(torch.equal(stuck, stuck[:, :1].expand_as(stuck)))
        self.assertTrue(torch.equal(optimisation.optimise(first, c.tasks, 3, 5, again=False),
                                    optimisation.random_search(c.tasks, 3, 5)))

    def test_a_model_that_answers_like_the_process_has_its_regret(self):
        """Through the model's path: its answers, in units of its own, are those of the process."""
        c = drawn(seed=4, count=16)
        taught = optimisation.exact_surrogate(c, 0.1)
        whole = optimisation.optimise(taught, c.tasks, 4, 10)
        self.assertGreater(float(whole[:, 3].mean()), 0)
        predict = optimisation.predict

        def answers(model, tasks, given):
            """What the process with a noise of 0.1 says, of the functions that tasks are of."""
            which = [next(i for i in range(16) if torch.equal(c.tasks.x[i, :3], x[:3]))
                     for x in tasks.x]
            one = copy.copy(c)
            one.lengthscale, one.variance = c.lengthscale[which], c.variance[which]
            one.kernel, one.period = c.kernel[which], c.period[which]
            x, y = tasks.x[..., 0].double(), tasks.y.double()
            own = curves.task_covariance(one, x[:, :given], x[:, :given])
            own = own + 0.01 * torch.eye(given)
            cross = curves.task_covariance(one, x[:, :given], x[:, given:])
            solved = torch.linalg.solve(own, cross)
            mean = (solved * y[:, :given, None]).sum(1)
            sd = (1 - (solved * cross).sum(1)).clamp_min(1e-12).sqrt()
            mixture = Mixture(torch.zeros(*mean.shape, 2), {"kind": "gaussian", "std": "exp"})
            center, scale = torch.full((len(y),), 0.5), torch.full((len(y),), 2.0)
            mixture.mean, mixture.sd = (mean[..., None] - 0.5) / 2, sd[..., None] / 2
            return Prediction(mixture, center, scale)

        optimisation.predict = answers
        try:
            got = optimisation.optimise(optimisation.model_surrogate(None), c.tasks, 4, 10)
        finally:
            optimisation.predict = predict
        self.assertTrue(torch.allclose(got, whole, atol=1e-6))


class Protocol(unittest.TestCase):
    def test_points(self):
        """100 of a grid and 50 anywhere, in an order of its own for every function."""
        c = curves.draw(torch.Generator().manual_seed(0), 4, 150, **protocol()["prior"])
        x = c.tasks.x[..., 0]
        grid = torch.linspace(-2, 2, 100)
        on_grid = (x[..., None] == grid).any(-1)
        self.assertEqual(on_grid.sum(1).tolist(), [100] * 4)
        self.assertTrue(bool((x.abs() <= 2).all()))
        self.assertFalse(torch.equal(on_grid[0], on_grid[1]))
        self.assertLess(int(on_grid[:, :10].sum()), 40)
        with self.assertRaisesRegex(ValueError, "a grid of 100 points has more than the 50 rows"):
            curves.draw(torch.Generator(), 1, 50, **protocol()["prior"])

    def test_seeds_repeat(self):
        small = {**protocol(), "optimise": {"points": 104, "start": 3, "steps": 4, "every": 2,
                                            "noise": 0.1}}
        model = random_model("gp1d").float()
        one, = protocols.evaluate(model, [small], 5)
        two, = protocols.evaluate(model, [small], 5)
        self.assertEqual(one, two)
        self.assertEqual(list(one["rows"]), ["0", "2", "4"])
        # the first functions of a longer run are these
        first = optimisation.one_batch(model, small, 0, 5)
        self.assertEqual(float(first["exact"][:, -1].mean()), one["rows"]["4"]["exact"]["mean"])
        other = optimisation.one_batch(model, small, 1, 5)
        self.assertFalse(torch.equal(first["random"], other["random"]))

    def test_every_configuration_is_shown(self):
        model = random_model("gp1d").float()
        for name in ("optimise_rbf", "optimise_matern", "optimise_periodic"):
            with self.subTest(name):
                wanted = protocol(name)
                self.assertEqual(wanted["optimise"],
                                 {"points": 150, "start": 10, "steps": 50, "noise": 0.1})
                wanted["optimise"].update(start=3, steps=2)
                table, = protocols.evaluate(model, [wanted], 2)
                text = protocols.markdown([table])
                self.assertIn(wanted["title"], text)
                self.assertIn("| steps | model | model, no point twice | random | exact |", text)
                self.assertIn("2 functions, 150 points, 3 of them seen before the first step",
                              text)


if __name__ == "__main__":
    unittest.main()
