"""The head of bars: piecewise uniform densities (docs/model-format.md, section 8)."""

import torch

TAIL = 0.6744897501960817    # Φ⁻¹(0.75)


def equal_mass_borders(samples, buckets):
    """Borders [B + 1] between which the samples of a prior lie in equal numbers."""
    values = samples[: len(samples) - len(samples) % buckets].double().sort().values
    groups = values.reshape(buckets, -1)
    inner = (groups[:-1, -1] + groups[1:, 0]) / 2
    borders = torch.cat([values[:1], inner, values[-1:]]).float()
    if not bool((borders.diff() > 0).all()):
        raise ValueError(
            "the prior's targets repeat so often that bars of equal mass have no width")
    return borders


class Bars:
    """Masses over buckets; log_mass [..., B], of several targets [..., D, B]."""

    def __init__(self, outputs, head, borders, targets=1):
        if targets > 1:
            outputs = outputs.unflatten(-1, (targets, -1))
        self.log_mass, self.borders = outputs.log_softmax(-1), borders.to(outputs.dtype)
        self.width = self.borders.diff()
        self.half_normal = head["tails"] == "half-normal"

    def bucket(self, y):
        return torch.searchsorted(self.borders[1:-1].contiguous(), y.contiguous())

    def log_prob(self, y):
        """Log density of y [...]; beyond bounded bars -inf."""
        place = self.bucket(y)
        density = self.log_mass.gather(-1, place[..., None])[..., 0] - self.width.log()[place]
        if not self.half_normal:
            out = (y < self.borders[0]) | (y > self.borders[-1])
            return density.masked_fill(out, float("-inf"))
        for at, edge, inner in ((place == 0, 0, 1), (place == len(self.width) - 1, -1, -2)):
            scale = self.width[edge] / TAIL
            z = (y - self.borders[inner]) / scale
            tail = self.log_mass[..., edge] + normal_log(z) + 0.6931471805599453 - scale.log()
            density = torch.where(at, tail, density)
        return density

    def cdf(self, y):
        """P(Y <= y) for y [...]."""
        place, mass = self.bucket(y), self.log_mass.exp()
        before = (mass.cumsum(-1) - mass).gather(-1, place[..., None])[..., 0]
        share = ((y - self.borders[place]) / self.width[place]).clamp(0, 1)
        if self.half_normal:
            last = len(self.width) - 1
            low = 2 * normal_cdf((y - self.borders[1]) / (self.width[0] / TAIL))
            high = 2 * normal_cdf((y - self.borders[-2]) / (self.width[-1] / TAIL)) - 1
            share = torch.where(place == 0, low, torch.where(place == last, high, share))
        return before + mass.gather(-1, place[..., None])[..., 0] * share

    def quantile(self, p, steps=80):
        """Quantile by bisection; p a number in (0, 1)."""
        shape = self.log_mass.shape[:-1]
        span = self.borders[-1] - self.borders[0]
        reach = 20 * span if self.half_normal else 0
        low, high = (self.borders[0] - reach).expand(shape), (self.borders[-1] + reach).expand(
            shape)
        for _ in range(steps):
            middle = (low + high) / 2
            below = self.cdf(middle) < p
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2

    def moments(self):
        """Mean and standard deviation."""
        mass, a, b = self.log_mass.exp(), self.borders[:-1], self.borders[1:]
        first, second = (a + b) / 2, (a * a + a * b + b * b) / 3
        if self.half_normal:
            first, second = first.clone(), second.clone()
            for edge, inner, sign in ((0, 1, -1.0), (-1, -2, 1.0)):
                scale, anchor = self.width[edge] / TAIL, self.borders[inner]
                first[edge] = anchor + sign * scale * 0.7978845608028654
                variance = scale * scale * (1 - 0.6366197723675814)
                second[edge] = variance + first[edge] ** 2
        mean = (mass * first).sum(-1)
        return mean, ((mass * second).sum(-1) - mean.square()).clamp_min(0).sqrt()


def normal_cdf(z):
    return 0.5 * torch.erfc(-z / 1.4142135623730951)


def normal_log(z):
    return -0.5 * z.square() - 0.9189385332046727
