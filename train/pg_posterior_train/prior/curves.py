"""One-dimensional functions of the papers whose tables can be reproduced: Gaussian processes of several kernels, sawtooth waves.

The options say which: see `sample`. The trainer draws tasks from it, `protocols.py` also asks for the exact answers.
"""
import math
from dataclasses import dataclass

import torch

from ..tasks import numeric
from .source import Source

JITTER = 1e-6    # variance added where the noise is smaller than float64 needs for a factor


@dataclass
class Curves:
    """Tasks and what generated them: kernel [B] (index into kernels; -1 for a sawtooth), lengthscale [B], period [B]."""

    tasks: object
    kernels: list
    kernel: torch.Tensor
    lengthscale: torch.Tensor
    period: torch.Tensor
    noise: float


def draw_number(s, spec, *shape):
    """Numbers from {"uniform": [a, b]}, {"log_uniform": [a, b]}, {"beta": [a, b]} (integers) or a constant."""
    if isinstance(spec, (int, float)):
        return torch.full(shape, float(spec), device=s.device)
    (kind, (a, b)), = spec.items()
    if kind == "uniform":
        return s.uniform(a, b, *shape)
    if kind == "log_uniform":
        return s.log_uniform(a, b, *shape)
    if kind == "beta":
        # The a-th smallest of a + b - 1 uniform numbers.
        return s.rand(*shape, a + b - 1).sort(-1).values[..., a - 1]
    raise ValueError(f"unknown distribution {kind!r}; known are uniform, log_uniform, beta")


def covariance(kernel, a, b, lengthscale, period):
    """k(a, b) [B, n, m] of unit variance; a [B, n], b [B, m], lengthscale and period [B]."""
    distance = (a[:, :, None] - b[:, None, :]).abs()
    scale = lengthscale[:, None, None]
    if kernel == "rbf":
        return torch.exp(-0.5 * (distance / scale).square())
    if kernel == "matern12":
        return torch.exp(-distance / scale)
    if kernel == "matern32":
        r = math.sqrt(3) * distance / scale
        return (1 + r) * torch.exp(-r)
    if kernel == "matern52":
        r = math.sqrt(5) * distance / scale
        return (1 + r + r.square() / 3) * torch.exp(-r)
    if kernel == "periodic":
        return torch.exp(-2 * (torch.sin(math.pi * distance / period[:, None, None]) / scale).square())
    raise ValueError(f"unknown kernel {kernel!r}; known are rbf, matern12, matern32, matern52, periodic")


def task_covariance(curves, a, b):
    """As `covariance`, with the kernel of each task."""
    a, b, scale, period = a.double(), b.double(), curves.lengthscale.double(), curves.period.double()
    out = torch.zeros(a.shape[0], a.shape[1], b.shape[1], dtype=torch.float64, device=a.device)
    for i, kernel in enumerate(curves.kernels):
        out = torch.where((curves.kernel == i)[:, None, None], covariance(kernel, a, b, scale, period), out)
    return out


def draw(generator, tasks, rows, kernels=("rbf",), lengthscale=0.5, period=1.0, noise=0.1, inputs=(-2.0, 2.0), sawtooth=None):
    """Curves with what generated them. sawtooth: {"frequency": distribution} draws sawtooth waves instead of Gaussian processes."""
    s = Source(generator)
    x = s.uniform(inputs[0], inputs[1], tasks, rows)
    scale, periods = draw_number(s, lengthscale, tasks), draw_number(s, period, tasks)
    if sawtooth is not None:
        # A wave of unit height, rising or falling, at any phase.
        frequency = draw_number(s, sawtooth["frequency"], tasks, 1)
        direction = 1 - 2 * s.coin(0.5, tasks, 1).float()
        y = (frequency * (x * direction - s.rand(tasks, 1))) % 1 + noise * s.randn(tasks, rows)
        return Curves(numeric(x[..., None], y), [], torch.full((tasks,), -1, device=s.device), scale, periods, noise)
    curves = Curves(None, list(kernels), s.integers(0, len(kernels) - 1, tasks), scale, periods, noise)
    k = task_covariance(curves, x, x)
    k.diagonal(dim1=1, dim2=2).add_(max(noise ** 2, JITTER))
    y = (torch.linalg.cholesky(k) @ s.randn(tasks, rows, 1).double())[..., 0]
    curves.tasks = numeric(x[..., None], y.float())
    return curves


def sample(generator, tasks, rows, shared=None, **options):
    """A batch of tasks; the options are those of `draw`."""
    return draw(generator, tasks, rows, **options).tasks


def exact(curves, given):
    """Log densities of the rows after the first `given` under the process that drew them: (each alone [B, m], jointly [B])."""
    x, y = curves.tasks.x[..., 0].double(), curves.tasks.y.double()
    k = task_covariance(curves, x, x)
    k.diagonal(dim1=1, dim2=2).add_(max(curves.noise ** 2, JITTER))
    factor = torch.linalg.cholesky(k)
    # The factor's lower rows are the conditional factor of the later rows given the earlier ones.
    white = torch.linalg.solve_triangular(factor, y[..., None], upper=False)[..., 0]
    later = factor[:, given:, given:]
    joint = -0.5 * white[:, given:].square().sum(1) - later.diagonal(dim1=1, dim2=2).log().sum(1)
    joint = joint - 0.5 * (x.shape[1] - given) * math.log(2 * math.pi)
    mean = (factor[:, given:, :given] @ white[:, :given, None])[..., 0]
    sd = later.square().sum(2).sqrt()
    alone = -0.5 * ((y[:, given:] - mean) / sd).square() - sd.log() - 0.5 * math.log(2 * math.pi)
    return alone, joint
