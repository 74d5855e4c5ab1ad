"""The Gaussian process that the row tokeniser sees, against its definition."""

import math
import unittest

import numpy as np
import torch

from pg_posterior_train import process
from pg_posterior_train.heads import Gate as Gated
from pg_posterior_train.mixture import Mixture

from .test_ridge import random_inputs


def made(function, rows=120, slots=4, seed=0):
    """z [1, n, S], bins, used, categorical and targets of a function of numbers."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(1, rows, slots, generator=g, dtype=torch.float64)
    y = function(z)
    y = (y - y.mean()) / y.std()
    bins = torch.zeros(z.shape, dtype=torch.long)
    numbers = torch.zeros(1, slots, dtype=torch.bool)
    return z, bins, ~numbers, numbers, y


class Process(unittest.TestCase):
    def fit(self, missing=True):
        z, bins, categorical, y = random_inputs(tasks=2, rows=24)
        if missing:
            bins[:, 3:5, :2], z[:, 3:5, :2] = 16, 0
        else:
            bins[bins == 16] = 0
        used = torch.ones_like(categorical)
        points, coordinate = process.coordinates(z, bins, used, categorical)
        return process.Fit(points, coordinate, y, used), z

    def test_gradient(self):
        """The gradient is that of the value, by differences."""
        fit, _ = self.fit()
        g = torch.Generator().manual_seed(1)
        theta = torch.randn(2, 5, generator=g, dtype=torch.float64)
        gradient = fit.gradient(theta)
        for k in range(5):
            step = torch.zeros_like(theta)
            step[:, k] = 1e-5
            slope = (fit.value(theta + step) - fit.value(theta - step)) / 2e-5
            self.assertTrue(torch.allclose(slope, gradient[:, k], atol=1e-4))

    def test_distances(self):
        """Missing numbers are apart from all others, categories unless they are equal and known."""
        z, bins, categorical, _ = random_inputs(tasks=1, rows=6)
        bins[0, 2:4, 0], z[0, 2:4, 0] = 16, 0
        bins[0, 3:5, 1] = 16
        used = torch.ones_like(categorical)
        points, (slot, shared) = process.coordinates(z, bins, used, categorical)
        weight = torch.tensor([[0.5, 0.25, 2.0, 1.0]], dtype=torch.float64)
        weights = weight.gather(1, slot)
        found = process.distances(points, points, weights, shared)[0]
        within = process.distances_within(points, weights, shared)[0]
        self.assertTrue(torch.equal(within, found * (1 - torch.eye(6))))
        for i in range(6):
            for j in range(6):
                numbers = (z[0, i] - z[0, j]).square()
                numbers[1] = 2.0 * (bins[0, i, 1] != bins[0, j, 1] or bins[0, i, 1] == 16)
                numbers[0] += float(bins[0, i, 0] == 16 or bins[0, j, 0] == 16)
                wanted = float((numbers * weight[0]).sum())
                self.assertAlmostEqual(float(found[i, j]), wanted, places=9)

    def test_rows_are_left_out(self):
        """With few rows of present cells the process is exact: a prefix row's numbers are those
        without it.
        """
        fit, z = self.fit(missing=False)
        theta = torch.tensor([[-0.5, 0.1, 0.3, -1.0, -2.0]] * 2, dtype=torch.float64)
        points, y = fit.points, fit.y
        weight = theta.exp().gather(1, fit.slot)
        coordinate = fit.slot, fit.shared
        every = torch.arange(points.shape[1]).expand(len(points), -1)
        mean, spread, noise, _ = process.sparse(points, coordinate, theta, every, y, 24)
        known = process.correlation(process.distances_within(points, weight,
                                                             fit.shared))[0][0].numpy()
        gamma, targets = math.exp(-2), y[0].numpy()
        scale = float(noise[0, 0]) / gamma
        for i in (0, 5, 23):
            rest = np.delete(np.arange(24), i)
            system = known[np.ix_(rest, rest)] + gamma * np.eye(23)
            answer = np.linalg.solve(system, known[rest, i])
            self.assertAlmostEqual(float(mean[0, i]), answer @ targets[rest], places=4)
            variance = scale * (1 + gamma - answer @ known[rest, i])
            self.assertAlmostEqual(float(spread[0, i]) / variance, 1.0, places=3)

    def test_order_of_rows(self):
        """The rows of the prefix may come in any order."""
        z, bins, used, categorical, y = made(lambda z: z[..., 0] * z[..., 1], rows=300)
        order = torch.randperm(280, generator=torch.Generator().manual_seed(4))
        order = torch.cat([order, torch.arange(280, 300)])
        one = process.opinions(z, bins, used, categorical, y, 280, 5.0)
        other = process.opinions(z[:, order], bins, used, categorical, y[:, order], 280, 5.0)
        self.assertTrue(torch.allclose(one[:, order], other, atol=1e-6))

    def test_finds_products_and_fine_columns(self):
        """What neither regression can say: a product, and many cycles along one column."""
        for function in (
            lambda z: z[..., 0] * z[..., 1],
            lambda z: torch.sin(12 * z[..., 2]),
        ):
            z, bins, used, categorical, y = made(function, rows=400)
            said = process.opinions(z, bins, used, categorical, y, 300, 5.0)
            self.assertLess(float((said[0, 300:, 0] - y[0, 300:]).square().mean()), 0.15)
            # What it says of its own errors on rows left out holds for others, too.
            error = (said[0, :, 0] - y[0]) / said[0, :, 1].exp()
            self.assertLess(float(error[300:].square().mean()), 4.0)

    def test_a_missing_cell_widens(self):
        """A query without the cell that matters gets a wider answer, though the prefix has none."""
        z, bins, used, categorical, y = made(lambda z: z[..., 0], rows=140)
        z, bins = torch.cat([z, z[:, -1:]], 1), torch.cat([bins, bins[:, -1:]], 1)
        z[0, -1, 0], bins[0, -1, 0] = 0, 16
        y = torch.cat([y, y[:, -1:]], 1)
        said = process.opinions(z, bins, used, categorical, y, 120, 5.0)
        self.assertGreater(float(said[0, -1, 1] - said[0, -2, 1]), 0.7)

    def test_missing_cells_are_not_one_value(self):
        """Nor does one row of the prefix without it say what another without it is."""
        z, bins, used, categorical, y = made(lambda z: z[..., 0], rows=140)
        for row in (7, 130):
            z[0, row, 0], bins[0, row, 0] = 0, 16
        said = process.opinions(z, bins, used, categorical, y, 120, 5.0)
        self.assertGreater(float(said[0, 130, 1] - said[0, 131, 1]), 0.7)


class Gate(unittest.TestCase):
    HEAD = {"kind": "mixture", "components": 3, "std": "softplus", "process": 6}

    def test_the_last_component_is_the_process(self):
        gate = Gated(self.HEAD, "gelu").double()
        g = torch.Generator().manual_seed(0)
        outputs = torch.randn(2, 5, 9, generator=g, dtype=torch.float64)
        said = torch.randn(2, 5, 4, generator=g, dtype=torch.float64)
        asked = torch.full((2, 5, 8), 0.5, dtype=torch.float64)
        mixture = Mixture(torch.cat([outputs, gate(outputs, said, asked)], -1), self.HEAD)
        plain = Mixture(outputs, gate.plain)
        weight = mixture.log_weight.exp()
        share = torch.sigmoid(torch.tensor(Gated.AT_FIRST, dtype=torch.float64))
        self.assertTrue(torch.allclose(weight.sum(-1), torch.ones(2, 5, dtype=torch.float64)))
        self.assertTrue(torch.allclose(weight[..., -1], share.expand(2, 5)))
        wanted = plain.log_weight.exp() * (1 - share)
        self.assertTrue(torch.allclose(weight[..., :-1], wanted))
        self.assertTrue(torch.equal(mixture.mean[..., -1], said[..., 0]))
        self.assertTrue(torch.allclose(mixture.sd[..., -1].log(), said[..., 1]))


if __name__ == "__main__":
    unittest.main()
