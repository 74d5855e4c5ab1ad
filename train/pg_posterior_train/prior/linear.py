"""Linear functions, some with contrasts of columns, products and squares."""
import torch

from .source import standardise


def function(s, x, weight):
    """Values f [B, N] at x [B, N, F] with column weights [B, F]."""
    tasks, _, features = x.shape
    slope = weight * s.randn(tasks, features)
    f = (x @ slope[..., None])[..., 0]
    size = slope.norm(dim=1, keepdim=True)
    a, b = (torch.multinomial(weight + 1e-9, 4, replacement=True, generator=s.generator)
            for _ in range(2))
    left, right = (x.gather(2, c[:, None].expand(-1, x.shape[1], -1)) for c in (a, b))
    # Differences of nearly equal columns, brought to unit scale: information that lies in
    # directions of low variance.
    contrasts = (standardise(left[..., :2] - right[..., :2]) * s.randn(tasks, 1, 2)).sum(-1)
    products = (left[..., 2:] * right[..., 2:] * s.randn(tasks, 1, 2)).sum(-1)
    return (f
            + size * (contrasts * s.coin(0.4, tasks, 1) * s.rand(tasks, 1)
                      + products * s.coin(0.35, tasks, 1) * s.rand(tasks, 1)))
