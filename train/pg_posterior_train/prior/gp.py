"""Gaussian processes by random Fourier features (Rahimi & Recht 2007): RBF and Matern kernels, one
relevance per column.
"""
import math

import torch

FREQUENCIES = 96


def function(s, x, weight, shortest=3.0):
    """Values f [B, N] at x [B, N, F] with column weights [B, F]; shortest: the largest inverse
    lengthscale.
    """
    tasks, _, features = x.shape
    normal = s.randn(tasks, features, FREQUENCIES)
    # A Student-t with 2 nu degrees of freedom is the spectral density of the Matern-nu kernel: 1,
    # 3, 5 or none (RBF).
    chi = torch.stack([s.randn(k, tasks, 1, FREQUENCIES).square().mean(0) for k in (1, 3, 5)] +
                      [torch.ones(tasks, 1, FREQUENCIES, device=x.device)], -1)
    kind = s.integers(0, 3, tasks, 1, 1, 1).expand(-1, -1, FREQUENCIES, -1)
    normal = normal / chi.gather(-1, kind)[..., 0].sqrt().clamp_min(0.1)
    scale = (weight / weight.norm(dim=1, keepdim=True).clamp_min(1e-6)
             * s.log_uniform(0.4, shortest, tasks, 1))
    phase = s.uniform(0, 2 * math.pi, tasks, 1, FREQUENCIES)
    return (torch.cos(x @ (scale[..., None] * normal) + phase)
            @ s.randn(tasks, FREQUENCIES, 1))[..., 0]
