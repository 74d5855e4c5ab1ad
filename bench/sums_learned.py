#!/usr/bin/env python3
"""Sums over learned features, a prototype: docs/sums-tried.md, "beside networks".

    bench/sums_learned.py [--minutes 1.5] [--experts 8] [--features 32] [--tasks 2048]

A network of one column gives the features of several regressions, each with prior precisions and a
noise of its own; the answer is the mixture of theirs, weighted by their evidence. All that a
context has are sums over its rows. Network, precisions and noises are trained across tasks of the
process in one dimension by the mean log density of questions, for so many minutes of processor
time, as bench/sums_trained.py does with networks that attend; the tasks asked about are that
program's.
Regressions on features that are learned across tasks are those of ALPaCA (Harrison et al. 2018).
Needs PyTorch.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import math
import time

import numpy as np
import sums_quality as quality
import torch
from torch.nn import functional

SEEDS = (1, 2, 3)
HIDDEN, BATCH, QUESTIONS, RATE = 128, 32, 64, 3e-3


class Experts(torch.nn.Module):
    """Regressions on learned features."""

    def __init__(self, experts, features):
        super().__init__()
        self.shape = experts, features
        self.network = torch.nn.Sequential(
            torch.nn.Linear(1, HIDDEN), torch.nn.GELU(), torch.nn.Linear(HIDDEN, HIDDEN),
            torch.nn.GELU(), torch.nn.Linear(HIDDEN, experts * features))
        with torch.no_grad():
            # Waves of some lengths on [-2, 2] to begin with.
            self.network[0].weight.normal_(0, 2)
            self.network[0].bias.uniform_(-4, 4)
            self.network[4].weight.mul_(2)
        spread = torch.linspace(-1, 2, features).repeat(experts, 1)
        self.precision = torch.nn.Parameter(spread + 0.1 * torch.randn(experts, features))
        self.noise = torch.nn.Parameter(torch.full((experts,), math.log(0.12)))
        self.prior = torch.nn.Parameter(torch.zeros(experts))

    def features(self, x):
        """[B, experts, n, features] of x [B, n]."""
        return self.network(x[..., None]).unflatten(-1, self.shape).transpose(1, 2).double()

    def forward(self, x, y, asked, answers):
        """Log densities [B, m] of answers at asked, given rows x, y [B, n]."""
        phi, query = self.features(x), self.features(asked)
        variance, precision = (2 * self.noise).exp().double(), self.precision.exp().double()
        y, n = y.double()[:, None, :, None], x.shape[1]
        # What a context keeps: the products of features, those with targets, the squares of these.
        gram, moment, square = phi.mT @ phi, phi.mT @ y, y.square().sum((2, 3))
        factor = torch.linalg.cholesky(gram / variance[:, None, None] + torch.diag_embed(precision))
        moment = moment / variance[:, None, None]
        weights = torch.cholesky_solve(moment, factor)
        half = factor.diagonal(dim1=2, dim2=3).log().sum(2)
        evidence = -0.5 * (n * (2 * math.pi * variance).log() + 2 * half
                           - precision.log().sum(1) + square / variance
                           - (moment * weights).sum((2, 3)))
        mean = (query @ weights)[..., 0]
        spread = torch.linalg.solve_triangular(factor, query.mT, upper=False).square().sum(2)
        spread = spread + variance[:, None]
        log = -0.5 * ((answers.double()[:, None] - mean) ** 2 / spread
                      + (2 * math.pi * spread).log())
        share = functional.log_softmax(self.prior.double() + evidence, 1)
        return torch.logsumexp(share[..., None] + log, 1)


def draw(generator, n):
    """Rows and questions [BATCH, n + QUESTIONS] of the process that sums_quality.one_task has."""
    x = 4 * torch.rand(BATCH, n + QUESTIONS, generator=generator, dtype=torch.float64) - 2
    length = 0.25 * 4 ** torch.rand(BATCH, 1, 1, generator=generator, dtype=torch.float64)
    full = torch.exp(-0.5 * ((x[:, :, None] - x[:, None]) / length) ** 2)
    full += 0.01 * torch.eye(n + QUESTIONS, dtype=torch.float64)
    noise = torch.randn(*x.shape, 1, generator=generator, dtype=torch.float64)
    return x.float(), (torch.linalg.cholesky(full) @ noise)[..., 0].float()


def trained(seed, options):
    """(model, steps)."""
    torch.manual_seed(seed)
    model, generator = Experts(options.experts, options.features), torch.Generator()
    generator.manual_seed(1000 + seed)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0)
    began, step, budget = time.process_time(), 0, 60 * options.minutes
    while (spent := time.process_time() - began) < budget:
        rate = RATE * min(1, (step + 1) / 50) * max(0.02, 1 - spent / budget)
        optimiser.param_groups[0]["lr"] = rate
        n = int(torch.randint(1, 65, (1,), generator=generator))
        x, y = draw(generator, n)
        loss = -model(x[:, :n], y[:, :n], x[:, n:], y[:, n:]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimiser.step()
        step += 1
    return model, step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--tasks", type=int, default=2048)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found, steps = [], []
    for seed in SEEDS:
        model, n = trained(seed, options)
        steps.append(n)
        random = np.random.default_rng(99 + seed)
        logs, exact = [], []
        for i in range(options.tasks):
            x, y, known = quality.one_task(random, 1 + i % 64)
            exact.append(known[0].mean())
            rows, targets = (torch.from_numpy(v).float()[None] for v in (x, y))
            with torch.no_grad():
                logs.append(float(model(rows[:, :-64], targets[:, :-64], rows[:, -64:],
                                        targets[:, -64:]).mean()))
        below = np.array(exact) - np.array(logs)
        many = np.arange(options.tasks) % 64 >= 48
        found.append((np.mean(logs), below.mean(), below[many].mean()))
    quality.header("", "log density", "below exact", "49 to 64 rows, below exact")
    name = f"{options.experts} × {options.features} features, {np.mean(steps):.0f} steps"
    quality.row(name, *(f"{np.mean(v):.4f} ± {np.std(v, ddof=1) / math.sqrt(len(v)):.4f}"
                        for v in zip(*found)))


if __name__ == "__main__":
    main()
