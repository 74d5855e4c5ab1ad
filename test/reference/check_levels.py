"""Targets of few levels, of the bundled models whose answers are mixtures of Gaussians.

A mixture can put narrow peaks on levels, and its log density then says more of how narrow they are
than of how good the answer is. So the answer is compared with the Gaussian of the same mean and
deviation by the continuous ranked probability score, where a peak in the wrong place costs as much
as it gains in the right one: over made-up tables of each kind, with 64 and 256 rows, the mean of
the answer is smaller. So it must be where no column tells the levels, and where only one value is
repeated. Its mean negative log density is smaller, too. A model that is not there is skipped.

SPDX-License-Identifier: PostgreSQL
"""
import os

import numpy as np

from check_bundled import cdf
from checking import HERE, Tap, Tool, arguments, cells, table

SIZES, QUERIES, REPEATS, COLUMNS = (64, 256), 60, 6, 4
MODELS = ("tabular", "tabular_small")


def told(random, x):
    """Seven levels that a linear function and noise tell."""
    return np.clip(np.rint(1.5 * x[:, 0] + x[:, 1] + random.standard_normal(len(x))), -3, 3)


def steps(random, x):
    """Four levels of two splits, one row in ten at another level."""
    level = 2.0 * (x[:, 0] > 0) + (x[:, 1] > 0.5)
    return np.where(random.uniform(size=len(x)) < 0.1, random.randint(0, 4, len(x)), level)


def untold(random, x):
    """Five levels, unevenly likely and unevenly far apart, that no column tells."""
    values, shares = np.array([0.0, 1, 2, 5, 9]), random.dirichlet(np.full(5, 3.0))
    return random.choice(values, len(x), p=shares)


def counts(random, x):
    """Counts whose mean grows with two columns."""
    return random.poisson(np.exp(0.3 + 0.6 * x[:, 0] + 0.4 * x[:, 1])).astype(float)


def rare(random, x):
    """Mostly nothing, and a few small counts."""
    return random.poisson(np.exp(-1.5 + 0.8 * x[:, 0])).astype(float)


def partly(random, x):
    """Four rows in ten are at 0, the others anywhere above."""
    amount = np.exp(0.5 * x[:, 0] + 0.4 * random.standard_normal(len(x)))
    return np.where(random.uniform(size=len(x)) < 0.4, 0, amount)


FAMILIES = [told, steps, untold, counts, rare, partly]


def half_normal(mean, sd):
    """E|X| of a Gaussian."""
    z = mean / sd
    return mean * (2 * cdf(z) - 1) + 2 * sd * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def scores(weights, means, sds, y):
    """Continuous ranked probability scores (Grimit et al. 2006) and negative log densities [n] of
    mixtures [n, k] at y [n].
    """
    away = np.sum(weights * half_normal(y[:, None] - means, sds), 1)
    apart = half_normal(means[:, :, None] - means[:, None],
                        np.hypot(sds[:, :, None], sds[:, None]))
    crps = away - 0.5 * np.einsum("ni,nj,nij->n", weights, weights, apart)
    parts = weights * np.exp(-0.5 * ((y[:, None] - means) / sds) ** 2) / sds
    return crps, -np.log(np.maximum(np.sum(parts, 1) / np.sqrt(2 * np.pi), 1e-300))


def compared(tool, family, seed):
    """(CRPS, negative log density) of the answers and of their Gaussians, [queries, 2] each, in
    deviations of the context's targets.
    """
    ours, gaussians = [], []
    for n in SIZES:
        for repeat in range(REPEATS):
            random = np.random.RandomState([seed, n, repeat])
            x = random.standard_normal((n + QUERIES, COLUMNS))
            y = family(random, x)
            y = (y - y[:n].mean()) / y[:n].std()
            params = np.array(tool.ask(kernels="cpu", kinds=["numeric"] * COLUMNS,
                                       context=table(x[:n], y[:n]), queries=cells(x[n:]))["params"])
            weights, means, sds = np.split(params, 3, axis=1)
            mean = np.sum(weights * means, 1, keepdims=True)
            sd = np.sqrt(np.sum(weights * (sds ** 2 + (means - mean) ** 2), 1, keepdims=True))
            ours.append(np.stack(scores(weights, means, sds, y[n:]), 1))
            gaussians.append(np.stack(scores(np.ones_like(mean), mean, sd, y[n:]), 1))
    return np.concatenate(ours), np.concatenate(gaussians)


def check_model(tap, tool, name):
    for number, family in enumerate(FAMILIES):
        ours, gaussians = (s.mean(0) for s in compared(tool, family, number))
        print(f"# {family.__name__}: CRPS {ours[0]:.4f}, of the Gaussian {gaussians[0]:.4f}; "
              f"negative log density {ours[1]:.3f}, {gaussians[1]:.3f}")
        tap.ok(ours[0] < gaussians[0], f"{name}, {family.__name__}: CRPS is below the Gaussian's",
               f"{ours[0]:.4f} and {gaussians[0]:.4f}")
        tap.ok(ours[1] < gaussians[1], f"{name}, {family.__name__}: so is negative log density",
               f"{ours[1]:.3f} and {gaussians[1]:.3f}")


def main():
    options = arguments(__doc__.split("\n\n")[0])
    folder = options.models or os.path.join(os.path.dirname(os.path.dirname(HERE)), "models")
    tap = Tap()
    for name in MODELS:
        path = os.path.join(folder, name + ".safetensors")
        if not os.path.exists(path):
            tap.skip(name, "the model is not there")
            continue
        with Tool(options.tool, path) as tool:
            check_model(tap, tool, name)
    tap.done()


if __name__ == "__main__":
    main()
