"""Linear functions with some products and squares."""
import torch


def function(s, x, weight):
    """Values f [B, N] at x [B, N, F] with column weights [B, F]."""
    tasks, _, features = x.shape
    slope = weight * s.randn(tasks, features)
    f = (x @ slope[..., None])[..., 0]
    size = slope.norm(dim=1, keepdim=True)
    a, b = (torch.multinomial(weight + 1e-9, 2, replacement=True, generator=s.generator) for _ in range(2))
    take = [x.gather(2, c[:, None].expand(-1, x.shape[1], -1)) for c in (a, b)]
    products = (take[0] * take[1] * s.randn(tasks, 1, 2)).sum(-1)
    return f + products * size * s.coin(0.5, tasks, 1) * s.rand(tasks, 1)
