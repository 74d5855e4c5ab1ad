"""The regressions that the row tokeniser sees, against leaving rows out by hand, and against the
format's rules.
"""
import unittest

import numpy as np
import torch

from pg_posterior_train import logistic, ridge
from pg_posterior_train.classes import cell_width, class_cells
from pg_posterior_train.clip import soft_clip
from pg_posterior_train.normalise import cells, scale_features, scale_targets
from pg_posterior_train.tasks import Tasks

from .common import config, random_model


def random_inputs(tasks=3, rows=30, slots=4, seed=0):
    """z, bins, filled and categorical of tables whose slot 1 is a category with missing cells, in
    float64.
    """
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(tasks, rows, slots, generator=g, dtype=torch.float64)
    bins = torch.randint(0, 8, (tasks, rows, slots), generator=g)
    bins[:, ::5, 1] = 16
    z[:, :, 1] = 0
    categorical = torch.zeros(tasks, slots, dtype=torch.bool)
    categorical[:, 1] = True
    y = (z[..., 0] + 0.5 * z[..., 2].abs()
         + 0.3 * torch.randn(tasks, rows, generator=g, dtype=torch.float64))
    return z, bins, categorical, y


def filled_bins(bins, prefix):
    counts = torch.zeros(bins.shape[0], 17, bins.shape[2])
    return counts.scatter_add_(1, bins[:, :prefix], torch.ones(bins[:, :prefix].shape)) > 0


class Ridge(unittest.TestCase):
    def test_prefix_rows_are_left_out(self):
        """Each prefix row's numbers are those of the fit without it, at the same penalty."""
        z, bins, categorical, y = random_inputs(tasks=1)
        prefix = 20
        filled = filled_bins(bins, prefix)
        for splines in (False, True):
            u, _ = ridge.design(z, bins, filled, categorical, splines)
            said = ridge.regression(u, y, prefix, 0)[0].numpy()
            a, b = u[0, :prefix].numpy(), y[0, :prefix].numpy()
            for penalty in ridge.PENALTIES:
                weights = np.linalg.solve(a.T @ a + penalty * np.eye(a.shape[1]), a.T @ b)
                if np.allclose(u[0, prefix:].numpy() @ weights, said[prefix:, 0], atol=1e-9):
                    break
            else:
                self.fail("no penalty of the grid gives the queries' predictions")
            for i in (0, 7, 19):
                rest = np.delete(a, i, 0), np.delete(b, i)
                inverse = np.linalg.inv(rest[0].T @ rest[0] + penalty * np.eye(a.shape[1]))
                self.assertAlmostEqual(said[i, 0], a[i] @ inverse @ rest[0].T @ rest[1], places=8)
                self.assertAlmostEqual(said[i, 2], 0.5 * np.log1p(a[i] @ inverse @ a[i]), places=8)

    def test_penalty_has_the_largest_evidence(self):
        """The evidence is the density of the targets under their Gaussian marginal, the noise at
        its maximum.
        """
        z, bins, categorical, y = random_inputs(tasks=1, seed=3)
        u = ridge.design(z, bins, filled_bins(bins, 30), categorical, True)[0][0]
        gram, moment, square = u.T @ u, u.T @ y[0], y[0] @ y[0]
        _, _, noise, _ = ridge.choose_penalty(gram[None], moment[None, :, None], square[None], 30)
        best = -np.inf
        for penalty in ridge.PENALTIES:
            shape = np.eye(30) + (u @ u.T).numpy() / penalty
            s2 = y[0].numpy() @ np.linalg.solve(shape, y[0].numpy()) / 30
            evidence = -0.5 * (30 * np.log(s2) + np.linalg.slogdet(shape)[1])
            if evidence > best:
                best, wanted = evidence, s2
        self.assertAlmostEqual(float(noise), wanted, places=9)

    def test_targets_share_penalty_and_noise(self):
        """With several targets the noise's variance is the sum of theirs, and the determinant
        counts once.
        """
        z, bins, categorical, y = random_inputs(tasks=1, seed=4)
        u = ridge.design(z, bins, filled_bins(bins, 30), categorical, False)[0][0]
        targets = torch.stack([y[0], y[0].square(), z[0, :, 3].sin()], 1)
        _, weights, noise, penalty = ridge.choose_penalty((u.T @ u)[None], (u.T @ targets)[None],
                                                          targets.square().sum()[None], 30)
        best = -np.inf
        for candidate in ridge.PENALTIES:
            shape = np.eye(30) + (u @ u.T).numpy() / candidate
            s2 = np.trace(targets.numpy().T @ np.linalg.solve(shape, targets.numpy())) / 30
            evidence = -0.5 * (30 * np.log(s2) + np.linalg.slogdet(shape)[1])
            if evidence > best:
                best, wanted = evidence, (candidate, s2)
        self.assertEqual(float(penalty), wanted[0])
        self.assertAlmostEqual(float(noise), wanted[1], places=9)
        alone = np.linalg.solve((u.T @ u).numpy() + wanted[0] * np.eye(u.shape[1]),
                                (u.T @ targets).numpy())
        np.testing.assert_allclose(weights[0].numpy(), alone, atol=1e-9)

    def test_no_target_of_a_query_is_seen(self):
        z, bins, categorical, y = random_inputs()
        filled = filled_bins(bins, 20)
        changed = y.clone()
        changed[:, 20:] += 100
        a, b = (ridge.opinions(z, bins, filled, categorical, v, 20, 5) for v in (y, changed))
        self.assertTrue(torch.equal(a, b))
        own = y.clone()
        own[:, 3] += 1
        change = ridge.opinions(z, bins, filled, categorical, own, 20, 5) - a
        self.assertGreater(float(change[:, 5, 0].abs().max()), 0)

    def test_whole_slots_while_they_fit(self):
        z = torch.randn(1, 40, 50, dtype=torch.float64)
        bins = torch.zeros(1, 40, 50, dtype=torch.long)
        filled = torch.zeros(1, 17, 50, dtype=torch.bool)
        filled[:, 0] = True
        none = torch.zeros(1, 50, dtype=torch.bool)
        self.assertEqual(ridge.design(z, bins, filled, none, False)[0].shape[2], 51)
        self.assertEqual(ridge.design(z, bins, filled, none, True)[0].shape[2], 31 * 4 + 1)
        self.assertLessEqual(ridge.design(z, bins, filled, none, True)[0].shape[2],
                             ridge.LARGEST_DESIGN)

    def test_nearly_equal_columns(self):
        """The information in the difference of two nearly equal columns arrives."""
        g = torch.Generator().manual_seed(1)
        common = torch.randn(1, 120, 1, generator=g, dtype=torch.float64)
        own = 0.01 * torch.randn(1, 120, 2, generator=g, dtype=torch.float64)
        x = common + own
        y = (own[..., 0] - own[..., 1]) * 100
        model = config("tabular")["model"]
        _, y_input, _, _ = scale_targets(y, 100, model)
        flat = cells(Tasks(x, y, torch.zeros(1, 2, dtype=torch.bool)), y_input, 100, model)
        self.assertEqual(flat.shape[2], 2 * 8 + ridge.NUMBERS)
        error = (flat[0, 100:, 16] - y_input[0, 100:]).abs().mean()
        self.assertLess(float(error), 0.1)

    def test_weights_stand_out_as_over_samples_of_the_noise(self):
        """A slot beyond the first is kept where its weight is large for its standard deviation,
        which samples of the noise show.
        """
        g = torch.Generator().manual_seed(5)
        n, slots = 80, 12
        z = torch.randn(1, n, slots, generator=g, dtype=torch.float64)
        filled = torch.zeros(1, 17, slots, dtype=torch.bool)
        filled[:, 0] = True
        bins, none = torch.zeros(1, n, slots,
                                 dtype=torch.long), torch.zeros(1, slots, dtype=torch.bool)
        f = z[0, :, :11] @ torch.cat([torch.ones(8), torch.tensor([0.05, 0.4, 2.0])]).double()
        u, _ = ridge.design(z, bins, filled, none, False)
        gram = u[0].T @ u[0]
        kept, z_scores = [], []
        for _ in range(200):
            y = (f + torch.randn(n, generator=g, dtype=torch.float64))[None]
            kept.append(ridge.worth_keeping(z, bins, filled, none, y, torch.zeros(1, slots))[0])
            _, weights, _, penalty = ridge.choose_penalty(gram[None],
                                                          (u[0].T @ y[0])[None, :, None],
                                                          y.square().sum(1), n)
            z_scores.append((weights[0, :, 0], penalty[0]))
        kept = torch.stack(kept).float().mean(0)
        self.assertTrue((kept[:8] == 1).all())
        self.assertEqual(float(kept[10]), 1.0)
        self.assertLess(float(kept[11]), 0.05)
        weights = torch.stack([w for w, _ in z_scores])
        penalty = z_scores[0][1]
        inverse = torch.linalg.inv(gram + penalty * torch.eye(len(gram)))
        predicted = (inverse @ gram @ inverse).diagonal().sqrt()[:-1]
        self.assertLess(float((weights[:, :-1].std(0) / predicted - 1).abs().max()), 0.25)

    def test_pairs_are_kept(self):
        """Columns that say something in a product or a curve alone are kept, with few others, also
        where cells are missing and targets have heavy tails; what is not there is in no pair.
        """
        g = torch.Generator().manual_seed(3)
        tasks, n, slots = 60, 200, 24
        z = torch.randn(tasks, n, slots, generator=g, dtype=torch.float64)
        there = torch.rand(tasks, n, slots, generator=g) > 0.05
        noise = torch.randn(tasks, n, generator=g, dtype=torch.float64)
        a, b = z[..., 12], z[..., 20]
        for y in (a * torch.cos(1.5 * b), torch.cos(1.5 * a) * torch.cos(1.5 * b)):
            said = ridge.say_something_together(z * there, there, y - y.mean(1, True) + 0.1 * noise)
            self.assertGreater(float(said[:, [12, 20]].float().mean()), 0.95)
            self.assertLess(float(said.float().sum(1).mean()), 2.8)
        said = ridge.say_something_together(z, there, a.square() - 1 + 0.3 * noise)
        self.assertGreater(float(said[:, 12].double().mean()), 0.95)
        self.assertLess(float(said.double().sum(1).mean()), 3)
        said = ridge.say_something_together(z, torch.zeros_like(there), y)
        self.assertFalse(said.any())
        said = ridge.say_something_together(z, there, noise / noise.roll(1, 0).abs())
        self.assertLess(float(said.float().sum(1).mean()), 0.8)

    def test_labels_are_kept(self):
        """Labels that turn the sign of a number, or say something with other labels alone, are kept
        with few others.
        """
        g = torch.Generator().manual_seed(5)
        tasks, n, slots = 60, 200, 24
        z = torch.randn(tasks, n, slots, generator=g, dtype=torch.float64)
        categorical = torch.zeros(tasks, slots, dtype=torch.bool)
        categorical[:, ::4] = True
        bins = torch.randint(0, 5, z.shape, generator=g)
        known = torch.rand(z.shape, generator=g) > 0.05
        noise = torch.randn(tasks, n, generator=g, dtype=torch.float64)
        sign = torch.where(bins < 2, 1.0, -1.0).double()
        for y, pair in ((sign[..., 8] * z[..., 13], [8, 13]),
                        (sign[..., 12] * sign[..., 20], [12, 20])):
            said = ridge.labels_say_something(z, bins, known, categorical,
                                              y - y.mean(1, True) + 0.3 * noise)
            self.assertGreater(float(said[:, pair].double().mean()), 0.95)
            self.assertLess(float(said.double().sum(1).mean()), 3)
        said = ridge.labels_say_something(z, bins, known, categorical,
                                          noise / noise.roll(1, 0).abs())
        self.assertLess(float(said.double().sum(1).mean()), 0.8)

    def test_pruned_slots_are_as_absent_columns(self):
        """A table with columns that are left out gives the cells and opinions of the table without
        them.
        """
        g = torch.Generator().manual_seed(2)
        x = torch.randn(1, 150, 30, generator=g, dtype=torch.float64)
        y = x[..., 4:16].sum(-1) + 0.1 * torch.randn(1, 150, generator=g, dtype=torch.float64)
        model = config("tabular")["model"]
        _, y_input, _, _ = scale_targets(y, 120, model)
        numbers = torch.zeros(1, 30, dtype=torch.bool)
        flat = cells(Tasks(x, y, numbers), y_input, 120, model)
        used = int((flat[0, 0, :-ridge.NUMBERS].reshape(30, 8)[:, 4] != 0).sum())
        self.assertTrue(12 <= used < 20)
        self.assertFalse(flat[..., used * 8:30 * 8].any())
        # Which columns those are: the ones whose values the used slots hold.
        order = [
            int((flat[0, :, s * 8, None] - scale_features(x, 120)[0]).abs().clamp_max(3).mean(0)
                .argmin()) for s in range(used)]
        self.assertTrue(set(range(4, 16)) <= set(order))
        alone = {**model,
                 "embedder": {**model["embedder"], "x": {**model["embedder"]["x"], "prune": False}}}
        kept = cells(Tasks(x[..., order], y, numbers[:, order]), y_input, 120, alone)
        self.assertTrue(torch.allclose(kept[..., :used * 8], flat[..., :used * 8]))
        self.assertTrue(torch.allclose(kept[..., -ridge.NUMBERS:], flat[..., -ridge.NUMBERS:],
                                       atol=1e-9))

    def test_growing_keeps_the_answers(self):
        """The ridge path starts from zero: adding it to a model changes nothing."""
        model = random_model("tabular")
        with torch.no_grad():
            model.embed.x.ridge.weight.zero_()
        cell = torch.randn(2, 5, 3 * 8 + ridge.NUMBERS, dtype=torch.float64)
        other = cell.clone()
        other[..., 24:] = 7
        self.assertTrue(torch.equal(model.embed.x(cell), model.embed.x(other)))


def class_inputs(classes=3, tasks=2, rows=60, seed=0):
    """z, bins, categorical as random_inputs, and classes that follow slots 0 and 2."""
    z, bins, categorical, _ = random_inputs(tasks, rows, 4, seed)
    angle = torch.atan2(z[..., 0], z[..., 2]) / (2 * torch.pi) + 0.5
    return z, bins, categorical, (angle * classes).long().clamp_max(classes - 1)


class ClassRidge(unittest.TestCase):
    PREFIX, MOST = 40, 5

    def fitted(self, classes=3, **given):
        z, bins, categorical, y = class_inputs(classes, **given)
        u, _ = ridge.design(z, bins, filled_bins(bins, self.PREFIX), categorical, False)
        return u, y, ridge.classification(u, y, torch.full((len(y),), classes), self.MOST,
                                          self.PREFIX, 0)

    def test_probabilities_with_rows_left_out(self):
        """A prefix row's numbers come from the indicators' regressions without it, at one penalty
        and one way to probabilities.
        """
        u, y, said = self.fitted(tasks=1)
        a, b = u[0, :self.PREFIX].numpy(), y[0, :self.PREFIX].numpy()
        onehot = np.eye(3)[b]
        share = onehot.mean(0)
        smooth = np.log((onehot.sum(0) + 0.5) / (self.PREFIX + 1.5))
        self.assertAlmostEqual(float(said[0, 5, :3].exp().sum()), 3.0, places=9)

        def left_out(i, penalty):
            kept = np.arange(self.PREFIX) != i
            weights = np.linalg.solve(a[kept].T @ a[kept] + penalty * np.eye(a.shape[1]),
                                      a[kept].T @ (onehot[kept] - share))
            return a[i] @ weights

        def log_p(m, sharpness, lean):
            e = np.exp(sharpness * m + lean * smooth)
            return np.log(e / e.sum(-1, keepdims=True))

        for penalty in ridge.PENALTIES:
            answers = np.array([left_out(i, penalty) for i in range(self.PREFIX)])
            best = max(log_p(answers, s, lean)[np.arange(self.PREFIX), b].mean()
                       for s in ridge.SHARPNESS for lean in (0, 1))
            if not np.isclose(best + np.log(3), float(said[0, 0, self.MOST]), atol=1e-9):
                continue
            ways = [(s, lean) for s in ridge.SHARPNESS for lean in (0, 1)
                    if np.isclose(log_p(answers, s, lean)[np.arange(self.PREFIX), b].mean(), best)]
            self.assertEqual(len(ways), 1)
            np.testing.assert_allclose(said[0, :self.PREFIX, :3].numpy(),
                                       log_p(answers, *ways[0]) + np.log(3), atol=1e-8)
            return
        self.fail("no penalty of the grid gives the numbers")

    def test_tells_classes_apart(self):
        u, y, said = self.fitted(classes=4, rows=200)
        right = said[:, self.PREFIX:, :4].argmax(2) == y[:, self.PREFIX:]
        self.assertGreater(float(right.float().mean()), 0.6)
        self.assertGreater(float(said[..., self.MOST].min()), 0.0)

    def test_no_class_of_a_query_is_seen_and_absent_ones_are_zero(self):
        z, bins, categorical, y = class_inputs()
        filled, classes = filled_bins(bins, self.PREFIX), torch.tensor([3, 4])
        changed = y.clone()
        changed[:, self.PREFIX:] = 0
        u, _ = ridge.design(z, bins, filled, categorical, True)
        a, b = (ridge.classification(u, v, classes, self.MOST, self.PREFIX, 3)
                for v in (y, changed))
        self.assertEqual(2 * a.shape[2], ridge.opinions_width(self.MOST))
        self.assertTrue(torch.equal(a, b))
        self.assertEqual(float(a[0, :, 3:5].abs().max() + a[1, :, 4].abs().max()), 0.0)
        # The second task has a fourth class that no row of it has: it is possible, but hardly.
        self.assertLess(float(a[1, :, 3].max()), 0.0)

    def test_cells_of_a_classifier_end_with_what_regressions_say(self):
        model = config("tabular_class")["model"]
        g = torch.Generator().manual_seed(2)
        y, none = torch.randint(0, 3, (2, 50), generator=g), torch.zeros(2, 1, dtype=torch.bool)
        x = torch.randn(2, 50, 1, generator=g, dtype=torch.float64) + y[..., None]
        classes = torch.full((2,), 3)
        flat = class_cells(Tasks(x, y.double(), none), y, classes, 40, model)
        z = soft_clip(scale_features(x, 40), 3)
        bins = torch.zeros(2, 50, 1, dtype=torch.long)
        linear, bent = (ridge.design(z, bins, filled_bins(bins, 40), none, splines)[0]
                        for splines in (False, True))
        said = ([ridge.classification(u, y, classes, 10, 40, 3) for u in (linear, bent)]
                + [logistic.opinions(linear, y, classes, 10, 40, 3)])
        self.assertTrue(torch.equal(flat[..., cell_width(model):], torch.cat(said, 2)))
        self.assertEqual(flat.shape[2],
                         cell_width(model) + ridge.opinions_width(10) + logistic.opinions_width(10))


if __name__ == "__main__":
    unittest.main()
