"""The Gaussian and mixture heads: density, distribution function, moments and quantiles
(docs/model-format.md, section 8).
"""
import copy
import math

import torch
import torch.nn.functional as F

STD_MAPS = {
    "exp": lambda raw, floor: raw.exp(),
    "bounded": lambda raw, floor: 0.05 + 0.95 * F.softplus(raw),
    "softplus": lambda raw, floor: floor + F.softplus(raw),
    "softplus-complement": lambda raw, floor: floor + (1 - floor) * F.softplus(raw),
    "sqrt-softplus": lambda raw, floor: F.softplus(raw).sqrt() + floor,
}


class Mixture:
    """Mixtures over the last axis: log_weight, mean, sd [..., C], of several targets [..., D, C]; a
    Gaussian is one of a single component.
    """

    def __init__(self, outputs, head, targets=1):
        if head.get("process"):
            # Behind what the head says: the gate, and the process's mean and log deviation.
            outputs, (gate, mean, log_sd) = outputs[..., :-3], outputs[..., -3:, None].unbind(-2)
        if head.get("kind") == "gaussian":
            chunks = outputs.chunk(2, -1)
        else:
            chunks = outputs.chunk(3, -1)
        if targets > 1:
            chunks = [chunk.unflatten(-1, (targets, -1)) for chunk in chunks]
        self.mean, raw = chunks[-2:]
        logits = chunks[0] if len(chunks) == 3 else torch.zeros_like(raw)
        self.log_weight = logits.log_softmax(-1)
        self.sd = STD_MAPS[head["std"]](raw, head.get("floor", 0.0))
        if head.get("process"):
            self.log_weight = torch.cat([self.log_weight + F.logsigmoid(-gate), F.logsigmoid(gate)],
                                        -1)
            self.mean, self.sd = torch.cat([self.mean, mean],
                                           -1), torch.cat([self.sd, log_sd.exp()], -1)

    def __getitem__(self, index):
        """Some of them, in double precision."""
        some = copy.copy(self)
        some.log_weight, some.mean, some.sd = (part[index].double() for part in
                                               (self.log_weight, self.mean, self.sd))
        return some

    def log_prob(self, y):
        """Log density of y [...]."""
        z = (y[..., None] - self.mean) / self.sd
        return (torch.logsumexp(self.log_weight - 0.5 * z.square() - self.sd.log(), -1)
                - 0.5 * math.log(2 * math.pi))

    def cdf(self, y):
        """P(Y <= y) for y [...]."""
        z = (y[..., None] - self.mean) / self.sd
        return (self.log_weight.exp() * 0.5 * torch.erfc(-z / math.sqrt(2))).sum(-1)

    def moments(self):
        """Mean and standard deviation, [...]."""
        w = self.log_weight.exp()
        mean = (w * self.mean).sum(-1)
        variance = (w * (self.sd.square() + (self.mean - mean[..., None]).square())).sum(-1)
        return mean, variance.sqrt()

    def quantile(self, p, steps=60):
        """Quantile by bisection; p a number in (0, 1)."""
        low = (self.mean - 10 * self.sd).amin(-1)
        high = (self.mean + 10 * self.sd).amax(-1)
        for _ in range(steps):
            middle = (low + high) / 2
            below = self.cdf(middle) < p
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2
