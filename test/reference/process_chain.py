"""What the process of the prefix says of a row, given rows of a chain before it
(docs/model-format.md section 9, "head.process_chain"), by one dense solve for each answer.

SPDX-License-Identifier: PostgreSQL
"""
import numpy as np

from nearest import Nearest
from scaling import soft_clip

KEPT = 64


def remembered(step):
    """The first of the rows before row `step` of a chain that it is answered with."""
    return max(0, KEPT * (step // KEPT - 1))


def conditioned(process, codes, z, before_codes, before_z, before_y):
    """The first two numbers of the row (codes, z), given rows before it and their scaled targets,
    not clipped.
    """
    if isinstance(process, Nearest):
        return process.given(codes, z, before_codes, before_z, before_y)
    points = np.array([process.point(c, v)
                       for c, v in zip([*before_codes, codes], [*before_z, z])])
    phi = process.features(points)
    covariance = process.alike(points) - phi @ phi.T + phi @ process.inverse @ phi.T
    own = process.apart_of(phi) + np.sum((phi @ process.inverse) * phi, axis=1)
    np.fill_diagonal(covariance, own)
    means = phi @ process.weights
    weights = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
    mean = means[-1] + weights @ (soft_clip(np.asarray(before_y), process.knee) - means[:-1])
    rest = max(covariance[-1, -1] - weights @ covariance[:-1, -1], process.noise)
    return soft_clip(np.array([mean]), process.knee)[0], 0.5 * np.log(process.variance * rest)
