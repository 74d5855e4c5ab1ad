"""Codes by the targets, absent cells and pruning of few rows only, against their definitions."""

import unittest

import torch

from pg_posterior_train import ridge
from pg_posterior_train.mixture import Mixture
from pg_posterior_train.normalise import (as_labels, cells, codes_by_targets, encode_categories,
                                          judged, scale_targets)
from pg_posterior_train.predict import Prediction
from pg_posterior_train.tasks import Tasks

from .common import config
from .test_ridge import filled_bins, random_inputs


def model_with(**options):
    model = config("tabular")["model"]
    x = {**model["embedder"]["x"], **options}
    return {**model, "embedder": {**model["embedder"], "x": x}}


class Codes(unittest.TestCase):
    def table(self):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(1, 80, 3, generator=g, dtype=torch.float64)
        x[..., 1] = torch.randint(0, 18, (1, 80), generator=g).double() ** 1.5 // 4
        y = torch.randn(1, 80, generator=g, dtype=torch.float64) + x[..., 1].sin()
        return x, y, torch.tensor([[False, True, False]])

    def test_renaming_changes_nothing(self):
        x, y, kinds = self.table()
        renamed = x.clone()
        # Categories of equal numbers of rows share nothing here but their count: names only.
        names = torch.randperm(30, generator=torch.Generator().manual_seed(1)).double()
        renamed[..., 1] = names[x[..., 1].long()]
        model = model_with(codes="targets", prune=False)
        _, y_input, _, _ = scale_targets(y, 60, model)
        one, other = (cells(Tasks(t, y, kinds), y_input, 60, model) for t in (x, renamed))
        self.assertTrue(torch.allclose(one, other, atol=1e-9))
        plain = model_with(prune=False)
        one, other = (cells(Tasks(t, y, kinds), y_input, 60, plain) for t in (x, renamed))
        self.assertFalse(torch.allclose(one, other, atol=1e-3))

    def test_codes_follow_the_mean(self):
        x, y, kinds = self.table()
        codes, bins = encode_categories(x, 60, kinds)
        found = codes_by_targets(codes.isnan(), bins, y[:, :60])[0, :, 1]
        head = found[:60]
        shrunk = [float(y[0, :60][head == c].sum() / ((head == c).sum() + 1.5))
                  for c in range(int(head.nan_to_num(0).max()) + 1)]
        self.assertEqual(shrunk, sorted(shrunk))


class Orientation(unittest.TestCase):
    def test_signs_do_not_matter(self):
        g = torch.Generator().manual_seed(2)
        x = torch.randn(2, 50, 3, generator=g, dtype=torch.float64)
        x[0, :20, 1] = float("nan")
        y = (x.nan_to_num(0.0) @ torch.tensor([0.9, -0.4, 0.2], dtype=torch.float64)).exp()
        kinds = torch.zeros(2, 3, dtype=torch.bool)
        model = model_with(orient=True, prune=False)
        one_y, one_input, _, one_scale = scale_targets(y, 40, model)
        one = cells(Tasks(x, y, kinds), one_input, 40, model)
        for signs in ([-1, -1, -1], [1, -1, 1]):
            turned = x * torch.tensor(signs, dtype=torch.float64)
            self.assertTrue(torch.equal(one, cells(Tasks(turned, y, kinds), one_input, 40, model)))
        other_y, other_input, _, other_scale = scale_targets(-y, 40, model)
        self.assertTrue(torch.equal(one_y, other_y))
        self.assertTrue(torch.equal(one_scale, -other_scale))
        self.assertTrue(torch.equal(one, cells(Tasks(x, -y, kinds), other_input, 40, model)))

    def test_answers_are_mirrored(self):
        outputs = torch.tensor([[[1.5, 0.0, 0.4, -1.0, -1.2, -0.1]]])
        mixture = Mixture(outputs, {"kind": "mixture", "std": "exp"})
        one, other = (Prediction(mixture, torch.tensor([c]), torch.tensor([s]))
                      for c, s in ((2.0, 3.0), (-2.0, -3.0)))
        at = torch.tensor([[4.5]])
        self.assertTrue(torch.allclose(one.log_prob(at), other.log_prob(-at)))
        self.assertTrue(torch.allclose(one.quantile(0.1), -other.quantile(0.9), atol=1e-4))
        self.assertTrue(torch.allclose(one.moments()[0], -other.moments()[0]))
        self.assertTrue(torch.allclose(one.moments()[1], other.moments()[1]))
        self.assertTrue(torch.allclose(one.crps(at), other.crps(-at)))


class Absent(unittest.TestCase):
    def test_a_missing_cell_adds_what_it_would_have_said(self):
        """On a linear table the variance that a query lacks is that of the missing cells' part."""
        g = torch.Generator().manual_seed(0)
        z = torch.randn(1, 400, 3, generator=g, dtype=torch.float64)
        noise = 0.1 * torch.randn(1, 400, generator=g, dtype=torch.float64)
        y = 2 * z[..., 0] + z[..., 1] + noise
        bins = torch.zeros(1, 400, 3, dtype=torch.long)
        bins[0, 300:, 0] = 16
        z[0, 300:, 0] = 0
        kinds = torch.zeros(1, 3, dtype=torch.bool)
        said = ridge.opinions(z, bins, filled_bins(bins, 300), kinds, y, 300, 99.0, bins == 16)
        for first in (0, 3):
            variance = (2 * said[0, 300:, first + 1]).exp() * (2 * said[0, 300:, first + 2]).exp()
            self.assertAlmostEqual(float(variance.mean()), 4.0, delta=0.8)
        plain = ridge.opinions(z, bins, filled_bins(bins, 300), kinds, y, 300, 99.0)
        self.assertTrue(torch.equal(plain[:, :300], said[:, :300]))
        self.assertLess(float(plain[0, 300:, 2].max()), 0.1)

    def test_indicators_say_nothing_of_present_cells(self):
        z, bins, categorical, y = random_inputs(tasks=2, rows=40)
        u, slot = ridge.design(z, bins, filled_bins(bins, 30), categorical, True)
        weights = ridge.fit(u, y[..., None], 30)[3][..., 0]
        found = ridge.absent_variance(u, slot, weights, bins == 16, 30)
        self.assertEqual(float(found[bins[..., 1] != 16].abs().max()), 0.0)
        self.assertGreater(float(found[bins[..., 1] == 16].min()), 0.0)


class Pruning(unittest.TestCase):
    def test_many_rows_leave_nothing_out(self):
        g = torch.Generator().manual_seed(2)
        x = torch.randn(1, 200, 12, generator=g, dtype=torch.float64)
        y = x[..., 0] + 0.1 * torch.randn(1, 200, generator=g, dtype=torch.float64)
        kinds = torch.zeros(1, 12, dtype=torch.bool)
        for below, all_stay in ((15, True), (16, False)):
            model = model_with(prune_below=below)
            _, y_input, _, _ = scale_targets(y, 180, model)
            flat = cells(Tasks(x, y, kinds), y_input, 180, model)[..., : 12 * 8]
            used = flat[0, 0].reshape(12, 8)[:, 4] != 0
            self.assertEqual(bool(used.all()), all_stay)

    def test_pruning_is_judged_for_each_task(self):
        """Columns that say something only together stay, those of noise do not."""
        g = torch.Generator().manual_seed(2)
        x = torch.randn(2, 300, 12, generator=g, dtype=torch.float64)
        wave = (2 * x[0, :, 0]).sin() * (2 * x[0, :, 7]).sin()
        y = torch.stack([wave, x[1, :, :8].sum(1)])
        y = y + 0.1 * torch.randn(2, 300, generator=g, dtype=torch.float64)
        tasks = Tasks(x, y, torch.zeros(2, 12, dtype=torch.bool))
        model = model_with(prune=True, prune_judged=True, process=True)
        _, y_input, _, _ = scale_targets(y, 300, model)
        found = judged(tasks, y_input, 300, model)
        self.assertEqual(found.all_slots.tolist(), [True, False])
        self.assertIs(judged(found, y_input, 300, model), found)
        self.assertIs(as_labels(tasks, y_input, 300, model).x, x)
        flat = cells(found, y_input, 300, model)[..., : 12 * 8].reshape(2, 300, 12, 8)
        used = (flat[:, 0, :, 4] != 0).sum(1)
        self.assertEqual(int(used[0]), 12)
        self.assertLess(int(used[1]), 12)


if __name__ == "__main__":
    unittest.main()
