"""Feature distributions and the relevance of columns, shared by the functional families."""
import torch

from .source import standardise


def draw_inputs(s, tasks, rows, features, near_copies=0.25):
    """Features [B, N, F] of unit scale: Gaussian, uniform, clustered or heavy-tailed, often
    correlated, collinear in the share `near_copies`.
    """
    shape = (tasks, rows, features)
    normal = s.randn(*shape)
    uniform = s.uniform(-1.7, 1.7, *shape)
    centres = s.randn(tasks, 6, features)
    member = s.integers(0, 5, tasks, rows, 1).expand(-1, -1, features)
    clustered = centres.gather(1, member) + 0.3 * normal
    heavy = torch.sinh(normal * s.uniform(0.5, 1.5, tasks, 1, features))
    kind = s.integers(0, 3, tasks, 1, 1)
    x = torch.where(kind == 0, normal,
                    torch.where(kind == 1, uniform, torch.where(kind == 2, clustered, heavy)))
    mixing = s.randn(tasks, features, features) / features ** 0.5
    strength = s.uniform(0, 1, tasks, 1, 1) * s.coin(0.5, tasks, 1, 1)
    factor = s.randn(tasks, rows, 1) * s.randn(tasks, 1, features)
    x = ((1 - strength) * x + strength * (x @ mixing) + factor * s.coin(0.2, tasks, 1, 1)
         * s.rand(tasks, 1, 1))
    return standardise(torch.where(s.coin(near_copies, tasks, 1, 1), collinear(s, standardise(x)),
                                   x))


def collinear(s, x):
    """Columns in families of near copies, or mixtures whose spectrum falls off steeply, as in
    measured tables; x [B, N, F].
    """
    tasks, rows, features = x.shape
    families = s.log_uniform(1, features + 0.99, tasks, 1, features).floor()
    parent = (s.rand(tasks, 1, features) * families).long()
    own = s.log_uniform(0.01, 1.0, tasks, 1, features)
    copies = (x.gather(2, parent.expand(-1, rows, -1)) * (0.5 + s.rand(tasks, 1, features))
              + own * s.randn(tasks, rows, features))
    decay = torch.arange(1, features + 1, device=x.device).float() ** -s.uniform(
        0.3, 2.0, tasks, 1, 1)
    spectrum = (x * decay) @ s.randn(tasks, features, features)
    return torch.where(s.coin(0.6, tasks, 1, 1), copies, spectrum)


def relevance(s, tasks, features):
    """Non-negative weights [B, F]: a log-uniform number of columns matters, with exponentially
    decaying strength.
    """
    count = s.log_uniform(1, features + 0.99, tasks, 1).floor()
    chosen = s.order(tasks, features) < count
    return chosen * torch.exp(-s.rand(tasks, features) * s.uniform(0, 3, tasks, 1))
