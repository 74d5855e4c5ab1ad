"""One-dimensional functions of the papers whose tables can be reproduced: Gaussian processes of
several kernels, sawtooth waves.

The options say which: see `sample`. The trainer draws tasks from it, `protocols.py` also asks for
the exact answers.
"""
import math
from dataclasses import dataclass

import torch

from ..tasks import numeric
from .source import Source

KERNELS = ("rbf", "matern12", "matern32", "matern52", "periodic")
JITTER = 1e-6    # variance added where the noise is smaller than float64 needs for a factor


@dataclass
class Curves:
    """Tasks and what generated them: kernel [B] (index into kernels; -1 for a sawtooth),
    lengthscale, period and variance [B], standard deviation of the noise.
    """

    tasks: object
    kernels: list
    kernel: torch.Tensor
    lengthscale: torch.Tensor
    period: torch.Tensor
    variance: torch.Tensor
    noise: float
    latent: bool = False


def draw_number(s, spec, *shape):
    """Numbers from {"uniform": [a, b]}, {"log_uniform": [a, b]}, {"beta": [a, b]} (integers) or a
    constant.
    """
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
        return torch.exp(
            -2 * (torch.sin(math.pi * distance / period[:, None, None]) / scale).square())
    raise ValueError(f"unknown kernel {kernel!r}; known are " + ", ".join(KERNELS))


def task_covariance(curves, a, b):
    """As `covariance`, with the kernel of each task."""
    a, b = a.double(), b.double()
    scale, period = curves.lengthscale.double(), curves.period.double()
    out = torch.zeros(a.shape[0], a.shape[1], b.shape[1], dtype=torch.float64, device=a.device)
    for i, kernel in enumerate(curves.kernels):
        here = (curves.kernel == i)[:, None, None]
        out = torch.where(here, covariance(kernel, a, b, scale, period), out)
    return out * curves.variance.double()[:, None, None]


def sobol(s, low, high, tasks, rows):
    """The one-dimensional Sobol sequence with a random digital shift for every task, in its own
    order: every leading part is spread evenly. The published log densities of Hassan et al. 2025
    lie below exact inference (2.63 jointly, 2.45 each alone, 16 targets) in this order only;
    shuffled, exact inference itself has 2.34 and 2.02.
    """
    bits = 24
    index = torch.arange(rows, device=s.device)
    reversed_bits = sum((index >> i & 1) << (bits - 1 - i) for i in range(bits))
    shift = s.integers(0, 2**bits - 1, tasks, 1)
    unit = (torch.bitwise_xor(reversed_bits[None], shift).float() + 0.5) / 2**bits
    return low + (high - low) * unit


def draw_inputs(s, inputs, tasks, rows):
    """x [B, N] of [low, high], or of {"sobol": [low, high]}; or of {"grid": [low, high], "points":
    n}, which are n at equal distances and the rest anywhere, in random order.
    """
    if isinstance(inputs, dict) and "grid" in inputs:
        (low, high), points = inputs["grid"], inputs["points"]
        if points > rows:
            raise ValueError(f"a grid of {points} points has more than the {rows} rows")
        regular = torch.linspace(low, high, points, device=s.device).expand(tasks, -1)
        x = torch.cat([s.uniform(low, high, tasks, rows - points), regular], 1)
        return x.gather(1, s.order(tasks, rows))
    if isinstance(inputs, dict):
        return sobol(s, *inputs["sobol"], tasks, rows)
    return s.uniform(inputs[0], inputs[1], tasks, rows)


def draw(generator, tasks, rows, kernels=("rbf",), lengthscale=0.5, period=1.0, noise=0.1,
         inputs=(-2.0, 2.0), sawtooth=None, variance=1.0, weights=None, latent=False, given=0,
         functions=1):
    """Curves with what generated them. sawtooth: {"frequency": distribution} draws sawtooth waves
    instead of Gaussian processes; their noise may be a distribution. weights: how often each kernel
    comes, alike by default.

    latent: the first `given` rows are noisy observations at the first of `rows` - `given` points,
    and the other rows are the function itself at all of these points, those of the observations
    included (the protocol of Jenson et al. 2024, as their figures and the exact process tell).

    functions: how many functions in a row share inputs and hyperparameters; a factor is most of
    their cost. It divides `tasks`; waves have no factors to share.
    """
    s = Source(generator)
    if sawtooth is None:
        tasks //= functions
    x = draw_inputs(s, inputs, tasks, rows - given if latent else rows)
    scale, periods = draw_number(s, lengthscale, tasks), draw_number(s, period, tasks)
    if sawtooth is not None:
        # A wave of unit height, rising or falling, at any phase.
        frequency = draw_number(s, sawtooth["frequency"], tasks, 1)
        direction = 1 - 2 * s.coin(0.5, tasks, 1).float()
        spread = draw_number(s, noise, tasks, 1)
        y = (frequency * x * direction - s.rand(tasks, 1)) % 1 + spread * s.randn(tasks, rows)
        none = torch.full((tasks,), -1, device=s.device)
        return Curves(numeric(x[..., None], y), [], none, scale, periods, scale, noise)
    if weights is None:
        kernel = s.integers(0, len(kernels) - 1, tasks)
    else:
        steps = torch.tensor(weights, device=s.device).cumsum(0)
        kernel = torch.searchsorted(steps[:-1], s.rand(tasks) * steps[-1], right=True)
    variances = draw_number(s, variance, tasks)
    curves = Curves(None, list(kernels), kernel, scale, periods, variances, noise)
    k = task_covariance(curves, x, x)
    k.diagonal(dim1=1, dim2=2).add_(JITTER if latent else max(noise ** 2, JITTER))
    y = torch.linalg.cholesky(k) @ s.randn(tasks, x.shape[1], functions).double()
    y = y.transpose(1, 2).flatten(0, 1)
    if functions > 1:
        x = x.repeat_interleave(functions, 0)
        for name in ("kernel", "lengthscale", "period", "variance"):
            setattr(curves, name, getattr(curves, name).repeat_interleave(functions, 0))
    if latent and given > x.shape[1]:
        raise ValueError("latent targets are asked at all points, those of the context among them: "
                         "a shape's extra must be at least its rows")
    if latent:
        seen = y[:, :given] + noise * s.randn(len(y), given)
        x, y = torch.cat([x[:, :given], x], 1), torch.cat([seen, y], 1)
    curves.tasks, curves.latent = numeric(x[..., None], y.float()), latent
    return curves


def sample(generator, tasks, rows, shared=None, **options):
    """A batch of tasks; the options are those of `draw`."""
    return draw(generator, tasks, rows, **options).tasks


def exact_latent(curves, given):
    """Log densities [B, m] of the function itself given the noisy rows."""
    x, y = curves.tasks.x[..., 0].double(), curves.tasks.y.double()
    asked = x[:, given:]
    own = task_covariance(curves, x[:, :given], x[:, :given])
    own.diagonal(dim1=1, dim2=2).add_(curves.noise**2)
    cross = task_covariance(curves, x[:, :given], asked)
    white = torch.linalg.solve_triangular(
        torch.linalg.cholesky(own), torch.cat([y[:, :given, None], cross], 2), upper=False
    )
    mean = (white[..., :1] * white[..., 1:]).sum(1)
    variance = curves.variance.double()[:, None] - white[..., 1:].square().sum(1)
    variance = variance.clamp_min(JITTER)
    off = (y[:, given:] - mean).square() / variance
    return -0.5 * (off + variance.log() + math.log(2 * math.pi))


def exact(curves, given):
    """Log densities of the rows after the first `given` under the process that drew them: (each
    alone [B, m], jointly [B]; of latent functions, which are nearly singular, only the first, and
    None).
    """
    if curves.latent:
        return exact_latent(curves, given), None
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
