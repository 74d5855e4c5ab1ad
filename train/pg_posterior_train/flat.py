"""Parameters, gradients and the optimisers' moments in one tensor each, so that a step is few
operations on the device, none of which waits for the host.

What is computed is what optim.py computes: Muon for the matrices of the trunk, AdamW for the rest.
"""
import torch

from .optim import orthogonalise, sort_parameters

MOMENTUM, BETAS, EPSILON = 0.95, (0.9, 0.98), 1e-8


class Flat:
    """The parameters of a model, which become views of `value`, and what moves them.

    Matrices of the trunk come first, by shape, then the other matrices, then vectors. `rate` and
    `keep` (of the moving average) are tensors: a captured step reads what they hold by then.
    """

    def __init__(self, model, weight_decay=0.01):
        hidden, others, vectors, _ = sort_parameters(model)
        hidden.sort(key=lambda p: tuple(p.shape))
        names = {p: name for name, p in model.named_parameters()}
        self.parameters = [*hidden, *others, *vectors]
        self.names = [names[p] for p in self.parameters]
        sizes = [p.numel() for p in self.parameters]
        self.value = torch.cat([p.detach().flatten() for p in self.parameters])
        for p, part in zip(self.parameters, self.value.split(sizes)):
            p.data = part.view_as(p)
        self.trunk = sum(p.numel() for p in hidden)
        self.decayed = self.trunk + sum(p.numel() for p in others)
        self.decay = weight_decay
        self.stacks, at = [], 0
        for shape in sorted({tuple(p.shape) for p in hidden}):
            count = sum(tuple(p.shape) == shape for p in hidden)
            size = count * shape[0] * shape[1]
            self.stacks.append((at, at + size, (count, *shape)))
            at += size
        self.average = self.value.clone()
        self.gradient = torch.zeros_like(self.value)
        self.momentum = torch.zeros_like(self.value[: self.trunk])
        self.first, self.second = (torch.zeros_like(self.value[self.trunk :]) for _ in range(2))
        self.count, self.skipped = (self.value.new_zeros(()) for _ in range(2))
        self.rate, self.keep = (self.value.new_zeros(()) for _ in range(2))

    # What a checkpoint and a rehearsal hold.
    STATE = "value", "average", "momentum", "first", "second", "count", "skipped"

    def state(self):
        return {name: getattr(self, name).clone() for name in self.STATE}

    def restore(self, state):
        for name in self.STATE:
            getattr(self, name).copy_(state[name])

    def averaged(self, model):
        """The state dict with averaged parameters."""
        state = dict(model.state_dict())
        sizes = [p.numel() for p in self.parameters]
        for name, p, part in zip(self.names, self.parameters, self.average.split(sizes)):
            state[name] = part.view_as(p)
        return state

    def backward(self, loss):
        """Gradients of a loss; of what it does not depend on, zeros."""
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        torch.cat([torch.zeros_like(p).flatten() if g is None else g.flatten()
                   for p, g in zip(self.parameters, found)], out=self.gradient)

    @torch.no_grad()
    def step(self, clip):
        """One update by clipped gradients. Where these are not finite nothing changes but the
        count of such steps.
        """
        norm = self.gradient.norm()
        finite = torch.isfinite(norm)
        scale = torch.where(finite, (clip / (norm + 1e-6)).clamp_max(1), torch.zeros_like(norm))
        gradient = torch.where(finite, self.gradient * scale, torch.zeros_like(self.gradient))
        rate, keep = self.rate * finite, torch.where(finite, self.keep, torch.ones_like(self.keep))
        self.skipped.add_(~finite)

        g = gradient[: self.trunk]
        self.momentum.lerp_(self.momentum * MOMENTUM + g, finite.to(g.dtype))
        update = g + MOMENTUM * self.momentum
        self.value[: self.decayed].mul_(1 - rate * self.decay)
        for start, end, shape in self.stacks:
            u, tall = update[start:end].view(shape), shape[1] > shape[2]
            u = orthogonalise(u.transpose(1, 2) if tall else u)
            u = u.transpose(1, 2) if tall else u
            size = 0.2 * max(shape[1:]) ** 0.5
            self.value[start:end].view(shape).sub_(u * (rate * size))

        g = gradient[self.trunk :]
        self.count.add_(finite)
        for moment, power, beta in ((self.first, g, BETAS[0]), (self.second, g * g, BETAS[1])):
            moment.lerp_(power, (1 - beta) * finite.to(g.dtype))
        count = self.count.clamp_min(1)
        first, second = (1 - torch.pow(torch.full_like(count, beta), count) for beta in BETAS)
        root = (self.second / second).sqrt() + EPSILON
        self.value[self.trunk :].sub_(rate * (self.first / first) / root)
        self.average.lerp_(self.value, 1 - keep)
