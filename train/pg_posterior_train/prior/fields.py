"""Gaussian processes of one or many inputs: the two-dimensional task of Jenson et al. 2024 and the
processes of Sharma et al. 2025.
"""

import torch

from ..tasks import numeric
from .curves import JITTER, draw_number
from .source import Source


def kernel_matrix(x, scale, variance):
    """variance · exp(-|x - x'|² / 2 scale²), [B, N, N]; x [B, N, F], scale and variance [B]."""
    # |x|² + |x'|² - 2 x·x' about the middle, where it cancels least: no differences [B, N, N, F].
    z = (x - x.mean(1, keepdim=True)) / scale[:, None, None]
    square = z.square().sum(-1)
    inner = z @ z.transpose(1, 2)
    distance = (square[:, :, None] + square[:, None]).sub_(inner, alpha=2).clamp_min_(0)
    return distance.mul_(-0.5).exp_().mul_(variance[:, None, None])


def draw(generator, tasks, rows, features=2, lengthscale=0.6, variance=1.0, noise=0.1,
         inputs=(0.0, 1.0), shift=0.0, functions=1):
    """A batch of tasks, and {lengthscale, variance, shift} of each, [B]; these are numbers or
    distributions of curves.py, noise is a standard deviation, functions as there.
    """
    s = Source(generator)
    tasks //= functions
    x = s.uniform(inputs[0], inputs[1], tasks, rows, features)
    scale, height = (draw_number(s, v, tasks).double() for v in (lengthscale, variance))
    k = kernel_matrix(x.double(), scale, height)
    # The jitter is relative: variances go down to 1e-4.
    least = JITTER * height[:, None].expand(-1, rows)
    k.diagonal(dim1=1, dim2=2).add_(torch.maximum(least, torch.full_like(least, noise**2)))
    y = torch.linalg.cholesky(k) @ s.randn(tasks, rows, functions).double()
    level = draw_number(s, shift, tasks, 1, 1).double()
    y = (y + level).transpose(1, 2).flatten(0, 1)
    known = {"lengthscale": scale, "variance": height, "shift": level.flatten()}
    return (numeric(x.repeat_interleave(functions, 0), y.float()),
            {name: value.repeat_interleave(functions) for name, value in known.items()})


def sample(generator, tasks, rows, shared=None, **options):
    """A batch of tasks; the options are those of `draw`."""
    return draw(generator, tasks, rows, **options)[0]


def exact(tasks, given, lengthscale, variance, noise, shift):
    """Mean and standard deviation [B, m] of the rows after the first `given` under the process,
    whose lengthscale, variance and shift are numbers or [B].
    """
    one = torch.ones(len(tasks.x), dtype=torch.float64)
    shift = (shift * one)[:, None]
    x, y, variance = tasks.x.double(), tasks.y.double() - shift, variance * one
    k = kernel_matrix(x, lengthscale * one, variance)
    k.diagonal(dim1=1, dim2=2).add_((JITTER * variance).clamp_min(noise**2)[:, None])
    factor = torch.linalg.cholesky(k)
    white = torch.linalg.solve_triangular(factor[:, :given, :given], y[:, :given, None],
                                          upper=False)
    mean = (factor[:, given:, :given] @ white)[..., 0]
    cross = factor[:, given:, :given].square().sum(2)
    return mean + shift, (k.diagonal(dim1=1, dim2=2)[:, given:] - cross).sqrt()
