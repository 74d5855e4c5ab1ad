"""Structural causal models: random networks whose nodes become features and target (Hollmann et al.
2023, TabPFN).

Columns can be causes, effects or siblings of the target.
"""
import torch

from .source import standardise


def activations(v, kind):
    """One of eleven activations per task; v [B, N, H], kind [B, 1, 1]."""
    table = [torch.tanh, torch.relu,
             lambda u: u, torch.sin, torch.abs, lambda u: torch.exp(-u.square()), torch.sign,
             torch.nn.functional.elu, torch.floor, lambda u: u.sign()
             * u.square(), lambda u: torch.sigmoid(2 * u)]
    out = v
    for i, f in enumerate(table):
        out = torch.where(kind == i, f(v), out)
    return out


def sample(s, tasks, rows, features):
    """Features [B, N, F] and noise-free-looking target [B, N], both read from nodes of the network.
    """
    layers, roots = s.one(1, 4), s.one(1, 8)
    width = max(s.one(8, 32), -(-(features + 1 - roots) // layers))
    h = s.randn(tasks, rows, roots)
    h = torch.where(s.coin(0.3, tasks, 1, 1), torch.sinh(h), h)
    nodes, rank = [h], [torch.zeros(roots, device=s.device)]
    for depth in range(layers):
        matrix = s.randn(tasks, h.shape[2], width) * s.coin(s.uniform(0.15, 1.0, tasks, 1, 1),
                                                            tasks, h.shape[2], width)
        v = (standardise(h @ matrix) * s.log_uniform(0.5, 2.0, tasks, 1, 1)
             + 0.5 * s.randn(tasks, 1, width))
        # Half of the tasks use one activation throughout, the other half a new one per node.
        kind = torch.where(s.coin(0.5, tasks, 1, 1),
                           s.integers(0, 10, tasks, 1, 1).expand(-1, -1, width),
                           s.integers(0, 10, tasks, 1, width))
        h = standardise(activations(v, kind).clamp(-50, 50))
        h = h + s.log_uniform(1e-3, 0.3, tasks, 1, 1) * s.randn(tasks, rows, width)
        nodes.append(h)
        rank.append(torch.full((width,), depth + 1.0, device=s.device))
    nodes, rank = torch.cat(nodes, 2), torch.cat(rank)
    # The target prefers late nodes; the features are any other nodes.
    target = (s.rand(tasks, nodes.shape[2]) * layers + rank).argmax(1)
    score = s.rand(tasks, nodes.shape[2]).scatter(1, target[:, None], -1.0)
    chosen = score.argsort(1, descending=True)[:, :features]
    x = nodes.gather(2, chosen[:, None].expand(-1, rows, -1))
    return x, nodes.gather(2, target[:, None, None].expand(-1, rows, 1))[..., 0]
