"""One-dimensional Gaussian processes, drawn exactly (the protocol of Mortimer et al. 2026, and
kernels of Nguyen & Grover 2022).

x uniform on [-2, 2], unit signal variance, lengthscale log-uniform on [0.25, 1], observation noise
of standard deviation 0.1.
"""
import math

import torch

from ..tasks import numeric

NOISE, LENGTHSCALES, RANGE = 0.1, (0.25, 1.0), 2.0


def covariance(a, b, lengthscale, kernel="rbf"):
    """k(a, b) of shape [B, n, m] for a [B, n], b [B, m], lengthscale [B]."""
    distance = (a[:, :, None] - b[:, None, :]).abs() / lengthscale[:, None, None]
    if kernel == "rbf":
        return torch.exp(-0.5 * distance.square())
    if kernel == "matern32":
        return (1 + math.sqrt(3) * distance) * torch.exp(-math.sqrt(3) * distance)
    raise ValueError(f"unknown kernel {kernel!r}")


def hyperparameters(generator, tasks, rows):
    """x [B, N] and lengthscale [B]."""
    device = generator.device
    low, high = (math.log(v) for v in LENGTHSCALES)
    x = (torch.rand(tasks, rows, generator=generator, device=device) * 2 - 1) * RANGE
    lengthscale = torch.exp(low + (high - low) * torch.rand(tasks, generator=generator,
                                                            device=device))
    return x, lengthscale


def draw(generator, x, lengthscale, kernel="rbf"):
    """Noisy observations y [B, N] at x [B, N]."""
    k = covariance(x.double(), x.double(), lengthscale.double(), kernel)
    k.diagonal(dim1=1, dim2=2).add_(NOISE ** 2)
    factor = torch.linalg.cholesky(k).float()
    normal = torch.randn(*x.shape, 1, generator=generator, device=x.device)
    return (factor @ normal)[..., 0]


def sample(generator, tasks, rows, shared=None):
    """A batch of tasks with one feature."""
    x, lengthscale = hyperparameters(generator, tasks, rows)
    return numeric(x[..., None], draw(generator, x, lengthscale))


def posterior(x, y, queries, lengthscale, kernel="rbf"):
    """Exact predictive mean and standard deviation of noisy observations at the queries (Rasmussen
    & Williams, eq. 2.25).

    x, y [B, n], queries [B, m], lengthscale [B]; returns [B, m] each, float64.
    """
    x, y, queries, lengthscale = (v.double() for v in (x, y, queries, lengthscale))
    variance = torch.full_like(queries, 1 + NOISE ** 2)
    if x.shape[1] == 0:
        return torch.zeros_like(queries), variance.sqrt()
    k = covariance(x, x, lengthscale, kernel)
    k.diagonal(dim1=1, dim2=2).add_(NOISE ** 2)
    factor = torch.linalg.cholesky(k)
    cross = covariance(x, queries, lengthscale, kernel)
    solved = torch.cholesky_solve(cross, factor)
    mean = (solved * y[..., None]).sum(1)
    return mean, (variance - (solved * cross).sum(1)).clamp_min(1e-12).sqrt()


def log_marginal(x, y, lengthscale, kernel="rbf"):
    """Log marginal likelihood of y [B, n] at x [B, n], [B] (Rasmussen & Williams, eq. 2.30)."""
    if x.shape[1] == 0:
        return torch.zeros(len(x), dtype=torch.float64)
    x, y, lengthscale = x.double(), y.double(), lengthscale.double()
    k = covariance(x, x, lengthscale, kernel)
    k.diagonal(dim1=1, dim2=2).add_(NOISE ** 2)
    factor = torch.linalg.cholesky(k)
    whitened = torch.linalg.solve_triangular(factor, y[..., None], upper=False)[..., 0]
    return (-0.5 * whitened.square().sum(1) - factor.diagonal(dim1=1, dim2=2).log().sum(1)
            - 0.5 * x.shape[1] * math.log(2 * math.pi))


def optimal_log_density(x, y, queries, targets, grid=24):
    """Log predictive density [B, m] of the prior itself: the lengthscale is integrated over a grid
    of `grid` values.

    This is what a perfect model of this prior would answer; the posterior under the true
    lengthscale knows more.
    """
    low, high = (math.log(v) for v in LENGTHSCALES)
    terms = []
    for j in range(grid):
        lengthscale = torch.full((len(x),), math.exp(low + (high - low) * (j + 0.5) / grid),
                                 dtype=torch.float64)
        mean, sd = posterior(x, y, queries, lengthscale)
        density = -0.5 * ((targets - mean) / sd).square() - sd.log() - 0.5 * math.log(2 * math.pi)
        terms.append((log_marginal(x, y, lengthscale), density))
    weight = torch.stack([t[0] for t in terms]).log_softmax(0)
    return torch.logsumexp(weight[..., None] + torch.stack([t[1] for t in terms]), 0)
