"""Priors: finite, reproducible, and of the advertised distribution."""
import random
import unittest

import torch

from pg_posterior_train.mixture import Mixture
from pg_posterior_train.normalise import prepare
from pg_posterior_train.predict import Prediction
from pg_posterior_train.prior import corrupt, events, formula, gp1d, ordered, tabular
from pg_posterior_train.prior.source import Source

from .common import config, tasks

FAMILIES = (*tabular.WEIGHTS, "sharp", "ordered", "formula")


class Priors(unittest.TestCase):
    def test_every_family_gives_usable_inputs(self):
        model = config("tabular_small")["model"]
        for family in FAMILIES:
            for seed in range(3):
                with self.subTest(family=family, seed=seed):
                    data = tasks("tabular", 6, 30, seed, families=[family])
                    self.assertEqual(data.x.shape[:2], (6, 30))
                    self.assertTrue(torch.isfinite(data.y).all())
                    self.assertTrue(torch.isfinite(prepare(data, 12, model).x).all())

    def test_same_seed_same_tasks(self):
        a, b = (tasks("tabular", 8, 20, 5) for _ in range(2))
        self.assertTrue(torch.equal(a.y, b.y))
        self.assertTrue(torch.equal(a.x.nan_to_num(99.0), b.x.nan_to_num(99.0)))

    def test_numbers_have_the_width_that_is_asked_for(self):
        widths = set()
        for seed in range(12):
            with self.subTest(seed=seed):
                data = tasks("numbers", 6, 30, seed, columns=9)
                self.assertEqual(data.x.shape, (6, 30, 9))
                self.assertFalse(data.categorical.any())
                self.assertTrue(torch.isfinite(data.x).all() and torch.isfinite(data.y).all())
                used = (data.x != 0).any(1).any(0)
                widths.add(int(used.sum()))
                self.assertFalse(used[int(used.sum()):].any())
        self.assertGreaterEqual(min(widths), 2)
        self.assertEqual(max(widths), 9)

    def test_padding_is_part_of_every_family(self):
        model = config("tabular")["model"]
        for family in FAMILIES:
            for seed in range(3):
                with self.subTest(family=family, seed=seed):
                    plain, padded = (tasks("tabular", 6, 30, seed, families=[family], padded=share)
                                     for share in (0.0, 1.0))
                    self.assertEqual(padded.x.shape, plain.x.shape)
                    self.assertEqual(padded.categorical.shape, plain.categorical.shape)
                    self.assertTrue(torch.isfinite(prepare(padded, 12, model).x).all())

    def test_formulas_say_the_same_of_equal_rows(self):
        """And most tasks' targets are theirs but for a fiftieth of a deviation."""
        s = Source(torch.Generator().manual_seed(3))
        x = formula.columns(s, 64, 50, 6)
        f = formula.function(s, torch.cat([x, x], 1))
        self.assertTrue(torch.isfinite(f).all())
        self.assertTrue(torch.equal(f[:, :50], f[:, 50:]))
        self.assertTrue((f.std(1) > 0).all())
        x, y = formula.sample(s, 400, 200, 1)
        # Of one column: neighbours along it are alike.
        order = x[..., 0].argsort(1)
        jumps = y.gather(1, order).diff(dim=1).abs().median(1).values
        self.assertGreater((jumps < 0.05).double().mean(), 0.9)

    def test_cells_are_missing_from_some_row_on(self):
        """Where a column lacks cells, it has all of them up to a row."""
        s = Source(torch.Generator().manual_seed(0))
        missing = corrupt.absent_later(s, s.randn(64, 200, 5), 1.0)
        first = missing.int().argmax(1)
        self.assertTrue(missing.any(1).any(1).float().mean() > 0.7)
        self.assertGreaterEqual(int(first[missing.any(1)].min()), 40)
        self.assertTrue(missing[:, -1].any())
        self.assertFalse(corrupt.absent_later(s, s.randn(8, 20, 5), 0.0).any())

    def test_events_are_few_and_follow_the_function(self):
        s = Source(torch.Generator().manual_seed(4))
        f = s.randn(400, 300)
        y = events.target(s, f).double()
        away = y != 0
        share = away.double().mean(1)
        self.assertTrue(torch.isfinite(y).all() and away.any(1).all())
        few = torch.tensor([len(row.unique()) <= events.MOST_LEVELS for row in y])
        whole, none = (y == y.round()).all(1), ~away.all(1)
        two = torch.tensor([len(row.unique()) == 2 for row in y]) & none
        for kind in (two, whole & ~two & none, none & ~whole, few & ~none):
            self.assertGreater(kind.sum(), 50)
        self.assertLessEqual(share[two | none & ~whole].max(), events.MOST_SHARE + 1 / 300)
        self.assertLess(share[two].quantile(0.1), 0.05)
        # rows with an event, and larger counts, have larger values of the function as a rule
        size = y.abs() - y.abs().mean(1, keepdim=True)
        self.assertGreater(((size * f).mean(1)[none] > 0).double().mean(), 0.9)
        self.assertTrue(0.1 < (y.sum(1) < 0).double().mean() < 0.3)

    def test_levels_are_uneven(self):
        s = Source(torch.Generator().manual_seed(4))
        f = s.randn(300, 200)
        y = events.levels(s, f)
        counts = torch.tensor([len(row.unique()) for row in y])
        self.assertEqual((counts.min(), counts.max()), (2, events.MOST_LEVELS))
        told = torch.tensor([torch.corrcoef(torch.stack(pair))[0, 1] for pair in zip(y, f)])
        self.assertTrue(0.2 < (told.abs() < 0.15).double().mean() < 0.6)
        self.assertGreater(told.max(), 0.9)
        self.assertGreater(told.min(), -0.3)

    def test_events_take_their_share_of_the_tasks(self):
        plain, few = (tasks("tabular", 64, 60, 3, events=share) for share in (0.0, 1.0))
        common = [[(row == row.mode().values).double().mean() > 0.4 for row in data.y]
                  for data in (plain, few)]
        self.assertLess(sum(common[0]), 10)
        self.assertGreater(sum(common[1]), 40)

    def test_series_wander(self):
        """What no column sees follows itself from row to row, and has unit variance."""
        s = Source(torch.Generator().manual_seed(0))
        v = ordered.wandering(s, 200, 300)
        self.assertTrue(torch.allclose(v.square().mean(1), torch.ones(200), atol=1e-3))
        self.assertGreater(float((v[:, 1:] * v[:, :-1]).mean()), 0.7)

    def test_columns_of_noise_are_independent_of_the_table(self):
        s = Source(torch.Generator().manual_seed(0))
        x = s.rand(12, 400, 3)
        noise = tabular.noise_columns(s, x, 40)
        table, added = (v - v.mean(1, keepdim=True) for v in (x, noise))
        correlation = torch.einsum("bnf,bng->bfg", table / table.norm(dim=1, keepdim=True),
                                   added / added.norm(dim=1, keepdim=True))
        self.assertLess(float(correlation.abs().max()), 5 / 400 ** 0.5)
        # A column in another order has exactly the values of its origin, a Gaussian one has others.
        same = (noise.sort(1).values[:, :, None] == x.sort(1).values[..., None]).all(1).any(1)
        share = same.float().mean(1)
        self.assertEqual(float(share.max()), 1.0)
        self.assertEqual(float(share.min()), 0.0)
        self.assertTrue(((share > 0.2) & (share < 0.8)).any())

    def test_panel_rows_of_a_group_share_features(self):
        generator = torch.Generator().manual_seed(0)
        x = tabular.sample(generator, 4, 60, random.Random(3), families=["panel"]).x[0].nan_to_num(
            -99.0)
        same = (x[:, None] == x[None]).float().mean(-1)
        self.assertGreater(float((same > 0.5).float().mean()), 1.5 / 60)

    def test_gp_moments(self):
        generator = torch.Generator().manual_seed(0)
        x = torch.tensor([[-1.0, 0.0, 0.5]]).repeat(20000, 1)
        lengthscale = torch.full((20000,), 0.5)
        y = gp1d.draw(generator, x, lengthscale)
        expected = (gp1d.covariance(x[:1], x[:1], lengthscale[:1])[0]
                    + gp1d.NOISE ** 2 * torch.eye(3))
        self.assertTrue(torch.allclose(y.t() @ y / 20000, expected, atol=0.04))

    def test_posterior_interpolates(self):
        x = torch.tensor([[0.0, 1.0]])
        mean, sd = gp1d.posterior(x, torch.tensor([[1.0, -1.0]]), torch.tensor([[0.0, 50.0]]),
                                  torch.tensor([0.5]))
        self.assertAlmostEqual(float(mean[0, 0]), 1.0, delta=0.15)
        self.assertAlmostEqual(float(sd[0, 1]), (1 + gp1d.NOISE ** 2) ** 0.5, places=6)


class MixtureHead(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.mixture = Mixture(torch.randn(1, 1, 9, dtype=torch.float64),
                               {"std": "softplus", "floor": 1e-3})

    def test_density_integrates_to_one(self):
        grid = torch.linspace(-30, 30, 60001, dtype=torch.float64)
        wide = Mixture(
            torch.cat([self.mixture.log_weight, self.mixture.mean, torch.zeros(1, 1, 3).double()],
                      -1), {"std": "softplus"})
        self.assertAlmostEqual(float(torch.trapz(wide.log_prob(grid[None]).exp()[0], grid)), 1.0,
                               places=6)

    def test_quantile_inverts_cdf(self):
        for p in (0.05, 0.5, 0.9):
            self.assertAlmostEqual(float(self.mixture.cdf(self.mixture.quantile(p))), p, places=9)

    def test_crps_is_the_integral_of_squared_differences(self):
        one = torch.ones(1, dtype=torch.float64)
        y = torch.tensor([[0.3]], dtype=torch.float64)
        grid = torch.linspace(-20, 20, 200001, dtype=torch.float64)
        cdf = self.mixture.cdf(grid[None])[0]
        expected = torch.trapz((cdf - (grid >= 0.3).double()).square(), grid)
        self.assertAlmostEqual(float(Prediction(self.mixture, 0 * one, one).crps(y)),
                               float(expected), places=3)


if __name__ == "__main__":
    unittest.main()
