"""Muon for the matrices of the trunk, AdamW for everything else.

Muon (Jordan et al. 2024) replaces the momentum matrix by its nearest semi-orthogonal one, found by
a quintic Newton-Schulz iteration; the factor 0.2 sqrt(max(rows, columns)) gives its updates the
size of AdamW's (Liu et al. 2025), so both share one learning rate.
"""
import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(g, steps=5):
    """Newton-Schulz iteration towards U V' of g = U S V', for a stack of matrices [K, n, m] with n
    <= m.
    """
    a, b, c = COEFFICIENTS
    x = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(-1, -2)
        x = a * x + (b * s + c * s @ s) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised. Matrices of one shape (up to transposition) are processed in one
    stack.
    """

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            stacks = {}
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    if "momentum" not in state:
                        state["momentum"] = torch.zeros_like(p)
                    buffer = state["momentum"].mul_(group["momentum"]).add_(p.grad)
                    update = p.grad + group["momentum"] * buffer
                    tall = p.shape[0] > p.shape[1]
                    update = update.t() if tall else update
                    stacks.setdefault(tuple(update.shape), []).append((p, update, tall))
            for shape, members in stacks.items():
                updates = orthogonalise(torch.stack([u for _, u, _ in members]))
                size = 0.2 * max(shape) ** 0.5
                for (p, _, tall), u in zip(members, updates):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.sub_(u.t() if tall else u, alpha=group["lr"] * size)


LAYERS = "layer.", "self.", "cross.", "read.", "buffer.", "head.block.", "embed.xy.1", "embed.xy.2"


def sort_parameters(model, faster=None):
    """(2-D weights of the layers, other matrices, vectors, {times: parameters that `faster` names})
    of a model.
    """
    hidden, vectors, others, special = [], [], [], {}
    for name, p in model.named_parameters():
        times = next((times for start, times in (faster or {}).items() if name.startswith(start)),
                     None)
        if times is not None:
            special.setdefault(times, []).append(p)
            continue
        plain = p.ndim == 2 and not name.endswith("log_scale")
        if plain and (name.startswith(LAYERS) or "embed.column." in name or "embed.row." in name):
            hidden.append(p)
        elif plain:
            others.append(p)
        else:
            vectors.append(p)
    return hidden, others, vectors, special


def make_optimisers(model, weight_decay=0.01, faster=None):
    """Muon for the 2-D weights of the layers, AdamW for embedders, sinks, norms, biases and head.

    faster: beginnings of names of parameters whose learning rate is so many times that of the
    others: what a model that is trained already has gained.
    """
    hidden, others, vectors, special = sort_parameters(model, faster)
    adam = torch.optim.AdamW(
        [dict(params=others, weight_decay=weight_decay), dict(params=vectors, weight_decay=0.0)] +
        [dict(params=params, weight_decay=0.0, times=times) for times, params in special.items()],
        lr=0.0, betas=(0.9, 0.98))
    return [Muon(hidden, lr=0.0, weight_decay=weight_decay), adam]


def schedule(progress, step, warmup, decay_share):
    """Warm-up, stable, decay (1 - sqrt): the factor on the peak learning rate.

    progress in [0, 1] is the used share of the budget (steps or seconds).
    """
    factor = min(1.0, (step + 1) / warmup)
    start = 1 - decay_share
    if progress > start:
        factor *= 1 - min(1.0, (progress - start) / decay_share) ** 0.5
    return max(factor, 0.01)
