"""Random numbers for batched priors: one generator, one device, per-task hyper-parameters."""
import math

import torch


class Source:
    """Draws from a `torch.Generator` on its device."""

    def __init__(self, generator):
        self.generator, self.device = generator, generator.device

    def rand(self, *shape):
        return torch.rand(*shape, generator=self.generator, device=self.device)

    def randn(self, *shape):
        return torch.randn(*shape, generator=self.generator, device=self.device)

    def uniform(self, low, high, *shape):
        return low + (high - low) * self.rand(*shape)

    def log_uniform(self, low, high, *shape):
        return torch.exp(self.uniform(math.log(low), math.log(high), *shape))

    def integers(self, low, high, *shape):
        """Integers low … high, both included."""
        return torch.randint(low, high + 1, shape, generator=self.generator, device=self.device)

    def coin(self, probability, *shape):
        """Booleans."""
        return self.rand(*shape) < probability

    def order(self, *shape):
        """Random permutations along the last axis."""
        return self.rand(*shape).argsort(-1)

    def student(self, degrees, *shape):
        """Student-t numbers with an integer number of degrees of freedom."""
        chi = self.randn(degrees, *shape).square().mean(0)
        return self.randn(*shape) / chi.sqrt().clamp_min(0.05)

    def one(self, low, high):
        """One Python integer low … high for the whole batch."""
        return int(self.integers(low, high, 1))


def standardise(v, dim=1):
    """Zero mean and unit standard deviation along `dim`; constants become 0."""
    v = v - v.mean(dim, keepdim=True)
    sd = v.square().mean(dim, keepdim=True).sqrt()
    return v / sd.clamp_min(1e-6)
