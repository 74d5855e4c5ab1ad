"""The logistic regression that the row tokeniser sees, against the likelihood's own maximum, found
by itself with rows left out.
"""
import unittest
from unittest import mock

import numpy as np
import torch

from pg_posterior_train import logistic
from pg_posterior_train.clip import soft_clip

PREFIX, MOST = 60, 5


def random_rows(classes, tasks=1, rows=80, entries=4, noise=1.0, seed=0):
    """Designs u [B, N, entries + 1] and classes y [B, N] by the largest of noisy linear scores."""
    g = torch.Generator().manual_seed(seed)
    u = torch.randn(tasks, rows, entries, generator=g, dtype=torch.float64)
    scores = u @ torch.randn(tasks, entries, classes, generator=g, dtype=torch.float64)
    y = (scores + noise * torch.randn(scores.shape, generator=g, dtype=torch.float64)).argmax(2)
    return torch.cat([u, torch.ones(tasks, rows, 1, dtype=torch.float64)], 2), y


def maximum(u, y, shift, penalty):
    """Weights [D, K] of the largest penalised likelihood, by gradient descent on its bound of the
    curvature (Boehning 1992).
    """
    onehot, weights = np.eye(len(shift))[y], np.zeros((u.shape[1], len(shift)))
    inverse = np.linalg.inv(0.5 * u.T @ u + penalty * np.eye(u.shape[1]))
    for _ in range(4000):
        p = np.exp(u @ weights + shift)
        weights += inverse @ (u.T @ (onehot - p / p.sum(1, keepdims=True)) - penalty * weights)
    return weights


def log_p(scores):
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


class Logistic(unittest.TestCase):
    def said(self, u, y, classes, clip=0):
        return logistic.opinions(u, y, torch.tensor(classes), MOST, PREFIX, clip)

    def test_maximum_of_the_likelihood_with_rows_left_out(self):
        for classes in (2, 4):
            u, y = random_rows(classes, noise=3.0)
            said = self.said(u, y, [classes])[0, :, :classes].numpy() - np.log(classes)
            a, b = u[0].numpy(), y[0].numpy()
            count = np.bincount(b[:PREFIX], minlength=classes)
            shift = np.log((count + 0.5) / (PREFIX + 0.5 * classes))
            fits = {
                penalty: log_p(a[PREFIX:] @ maximum(a[:PREFIX], b[:PREFIX], shift, penalty)
                               + shift) for penalty in logistic.PENALTIES}
            penalty = min(fits, key=lambda k: np.abs(fits[k] - said[PREFIX:]).max())
            np.testing.assert_allclose(said[PREFIX:], fits[penalty], atol=0.01)
            self.assertAlmostEqual(float(np.exp(said).sum(1).std()), 0.0, places=9)
            for i in (0, 11, 59):
                kept = np.arange(PREFIX) != i
                alone = log_p(a[i] @ maximum(a[:PREFIX][kept], b[:PREFIX][kept], shift, penalty)
                              + shift)
                np.testing.assert_allclose(said[i], alone, atol=0.05)

    def test_penalty_of_the_largest_probability_of_rows_left_out(self):
        u, y = random_rows(3, seed=3)
        whole = self.said(u, y, [3])
        quality = {}
        for penalty in logistic.PENALTIES:
            # Down to this penalty only: the others are not there to be chosen.
            with mock.patch.object(logistic, "PENALTIES",
                                   [p for p in logistic.PENALTIES if p >= penalty]):
                quality[penalty] = float(self.said(u, y, [3])[0, 0, MOST])
        own = whole[0, :PREFIX].gather(1, y[0, :PREFIX, None]).mean()
        self.assertAlmostEqual(float(own), float(whole[0, 0, MOST]), places=9)
        self.assertEqual(max(quality.values()), float(whole[0, 0, MOST]))
        self.assertEqual(list(quality.values()), sorted(quality.values()))

    def test_a_task_does_not_depend_on_the_others(self):
        u, y = random_rows(3, tasks=6, noise=0.2, seed=5)
        y[2] = (y[2] > 0).long()
        classes = [3, 4, 2, 3, 5, 3]
        together = self.said(u, y, classes)
        for i, k in enumerate(classes):
            torch.testing.assert_close(self.said(u[i:i + 1], y[i:i + 1], [k])[0], together[i],
                                       rtol=0, atol=1e-9)

    def test_no_class_of_a_query_is_seen_and_absent_ones_are_zero(self):
        u, y = random_rows(3, tasks=2)
        changed = y.clone()
        changed[:, PREFIX:] = 0
        a, b = (self.said(u, v, [3, 4], 3) for v in (y, changed))
        self.assertEqual(a.shape[2], logistic.opinions_width(MOST))
        self.assertTrue(torch.equal(a, b))
        self.assertEqual(float(a[0, :, 3:5].abs().max() + a[1, :, 4].abs().max()), 0.0)
        # The second task has a fourth class that no row of it has: it is possible, but hardly.
        self.assertLess(float(a[1, :, 3].max()), 0.0)

    def test_one_class(self):
        u, y = random_rows(3)
        self.assertEqual(float(self.said(u, torch.zeros_like(y), [1]).abs().max()), 0.0)

    def test_steps_that_go_too_far_are_halved(self):
        """A few rows far off are a class: the curvature at the start is nearly nothing, and a whole
        step overshoots.
        """
        g = torch.Generator().manual_seed(0)
        rows, few = 1000, 6
        z = torch.randn(rows, 10, generator=g, dtype=torch.float64)
        z[:few] += 8
        z = soft_clip((z - z.mean(0)) / z.std(0), 3)
        u = torch.cat([z, torch.ones(rows, 1, dtype=torch.float64)], 1)[None]
        y = (torch.arange(rows) < few).long()[None]
        known, share = torch.tensor([[True, True]]), torch.tensor([[1 - few / rows, few / rows]],
                                                                  dtype=torch.float64).log()
        step = logistic.Fit.step

        def growths():
            """By how much the loss grows in every step."""
            grown = []

            def watched(fit, p, factor, penalty):
                before = float(fit.loss(fit.scores, fit.weights, penalty))
                p = step(fit, p, factor, penalty)
                grown.append(float(fit.loss(fit.scores, fit.weights, penalty)) - before)
                return p

            with mock.patch.object(logistic.Fit, "step", watched):
                logistic.Fit(u, y, known, share)
            return grown

        self.assertLess(max(growths()), 1e-6)
        for halvings in (0, 1):
            with mock.patch.object(logistic, "HALVINGS", halvings):
                self.assertGreater(max(growths()), 0.1)


if __name__ == "__main__":
    unittest.main()
