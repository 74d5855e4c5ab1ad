"""What a gate reads of the process's record (docs/model-format.md section 8, "The process's
record").

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np


def log_square(square):
    return np.clip(np.log(max(square, 1e-6)), -4, 4)


def record(process, y, ridges):
    """Its numbers; the process, or nearest rows or a line in its place, the prefix's targets y [n0]
    as it reads them, the two regressions.
    """
    mean, variance = process.without()
    away, leaning = (mean - y) ** 2 / variance, 1 - process.left()
    near = leaning @ np.minimum(away, 100) / max(np.sum(leaning), 1e-9)
    learnt = [0.0, 0.0, 0.0]
    if not hasattr(process, "free"):
        learnt = [np.log1p(len(process.weight)),
                  *np.clip(np.log([np.sum(process.weight), np.max(process.weight)]), -5, 10)]
    noises = [0.5 * np.log(ridge.noise) for ridge in ridges]
    return np.array([log_square(np.mean(away)), log_square(near), learnt[0], *noises, *learnt[1:]])
