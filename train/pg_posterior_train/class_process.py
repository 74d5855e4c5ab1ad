"""A Gaussian process of a classifier's prefix, of which its head takes a share
(docs/model-format.md, section 8, "Process of classes").

Least-squares classification (Rasmussen & Williams 2006, section 6.5): a regression on which
row is of which class, with one correlation for all classes, whose answers rows left out make
probabilities. Not part of training, as the share of trees is not (trees.py).
"""
import math

import numpy as np
import torch

from .process import (JITTER, NARROW_STEPS, NOISES, SMALLEST, SPREADS, STAGES, STARTS, Fit, climb,
                      coordinates, correlation, distances, spread_rows)
from .trees import LOSS_UNIT, log_softmax

SHARPEST, SHARPNESS, SHARPENINGS = 16.0, 4.0, 8
OF_WEIGHT, SLOPE = 2.0, 2.0


class ClassFit(Fit):
    """The log posterior of (log weights of the slots, log noise), [1, S + 1], for points [1, n, P]
    with the targets [1, n, channels] of `freedom` + 1 classes.
    """

    def __init__(self, points, coordinate, targets, used, freedom):
        super().__init__(points, coordinate, targets[..., 0], used)
        self.targets, self.freedom = targets, freedom

    def variance(self, squares):
        return (squares + SMALLEST) / (self.targets.shape[1] * self.freedom)

    def likelihood(self, factor):
        half = torch.linalg.solve_triangular(factor, self.targets, upper=False)
        variance = self.variance(half.square().sum((1, 2)))
        n = self.targets.shape[1]
        return -0.5 * self.freedom * (n * variance.log()
                                      + 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1))

    def pull(self, factor):
        inverse = torch.cholesky_inverse(factor)
        answer = inverse @ self.targets
        variance = self.variance((answer * self.targets).sum((1, 2)))[:, None, None]
        return 0.5 * (answer @ answer.transpose(1, 2) / variance - self.freedom * inverse)


class ClassProcess:
    """Of one task: slots' z (0 where missing) and bins [N, S], categorical [S], classes y [n] of
    the first n rows, the prefix, below `classes`.

    log_p [N, K] of all rows; the loss of the prefix rows, left out, and of what was fitted.
    """

    def __init__(self, z, bins, categorical, y, classes):
        n, used = len(y), torch.ones(1, z.shape[1], dtype=torch.bool)
        share = (np.bincount(y, minlength=classes) + 0.5) / (n + classes / 2)
        onehot = torch.from_numpy(np.eye(classes)[y] - share)
        targets = onehot[None, :, 1:] if classes == 2 else onehot[None]
        z, bins = z.double()[None], bins[None]
        points, coordinate = coordinates(z, bins, used, categorical[None])
        missing = bins[:, :n] == bins.new_tensor(16)

        def rows(most):
            return spread_rows(torch.from_numpy(y).double()[None], z[:, :n], missing, most)[0]

        (most, steps, rate), (carriers, _, _) = STAGES
        chosen = rows(most)
        fit = ClassFit(points[:, chosen], coordinate, targets[:, chosen], used, classes - 1)
        theta = climb(fit, self.start(fit), steps, rate, NARROW_STEPS)
        mean = self.answers(points, coordinate, theta, rows(carriers), targets, n)
        scores = mean.clamp(-1, 1).numpy()
        if classes == 2:
            scores = np.concatenate([-scores, scores], axis=1)
        self.judge(scores, y, np.log(share), theta.shape[1])

    @staticmethod
    def start(fit):
        """The likeliest of the starts, [1, S + 1]."""
        fit.spread = SPREADS[0]
        slots = fit.mean[:, :-1]
        ways = [torch.cat([slots + shift, torch.full_like(slots[:, :1], math.log(noise))], 1)
                for shift in STARTS for noise in NOISES]
        return ways[int(torch.stack([fit.value(way) for way in ways]).argmax())]

    @staticmethod
    def answers(points, coordinate, theta, carriers, targets, n):
        """Means [N, channels] of all rows, those of the prefix without their own class."""
        slot, shared = coordinate
        weight, noise = theta.exp().gather(1, slot), theta[0, -1].exp()
        own = correlation(distances(points[:, carriers], points[:, carriers], weight, shared))[0][0]
        own = own - torch.diag(own.diagonal()) + (1 + JITTER) * torch.eye(len(own),
                                                                       dtype=own.dtype)
        known = correlation(distances(points[:, carriers], points, weight, shared))[0][0]
        phi = torch.linalg.solve_triangular(torch.linalg.cholesky(own), known, upper=False)
        rest = (1 - phi.square().sum(0)).clamp_min(0)[:n] + noise
        head = phi[:, :n] / rest
        outer = torch.linalg.cholesky(torch.eye(len(own), dtype=own.dtype) + head @ phi[:, :n].T)
        mean = phi.T @ torch.cholesky_solve(head @ targets[0], outer)
        own = torch.linalg.solve_triangular(outer, phi[:, :n], upper=False).square().sum(0)
        left = (1 - own / rest).clamp_min(1e-9)[:, None]
        mean[:n] = targets[0] - (targets[0] - mean[:n]) / left
        return mean

    def judge(self, scores, y, prior, parameters):
        """What scores are best multiplied by, and what rows left out lose then."""
        rows, found, left = np.arange(len(y)), SHARPNESS, scores[:len(y)]
        for _ in range(SHARPENINGS):
            p = np.exp(log_softmax(prior + found * left))
            mean = (p * left).sum(1)
            curve = np.rint(np.maximum((p * left * left).sum(1) - mean ** 2, 0) * LOSS_UNIT).sum()
            slope = np.rint((left[rows, y] - mean) * LOSS_UNIT).sum()
            if curve > 0:
                found = min(max(found + slope / curve, 1 / SHARPEST), SHARPEST)
        self.sharpness = float(found)
        self.log_p = log_softmax(prior + found * scores)
        lost = np.rint(-self.log_p[rows, y] * LOSS_UNIT).sum() / LOSS_UNIT
        self.loss = float((lost + OF_WEIGHT * parameters) / len(y))

    def share(self, least, most):
        """How much of the logits it says beside what loses `least`."""
        return min(max(SLOPE * (1 - self.loss / max(least, 1e-6)), 0), most)
