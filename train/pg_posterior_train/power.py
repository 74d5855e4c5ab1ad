"""The power scaling of set encoders (docs/families.md; Hassan et al. 2025, appendix D.4)."""

import math

import torch

STEPS = 90
GOLDEN = (math.sqrt(5) - 1) / 2


def yeo_johnson(z, power):
    """ψ_λ(z); power broadcasts."""
    rising, falling = z.clamp_min(0), (-z).clamp_min(0)
    near = power.abs() < 1e-12
    up = ((rising + 1) ** power - 1) / torch.where(near, torch.ones_like(power), power)
    up = torch.where(near, torch.log1p(rising), up)
    other = 2 - power
    close = other.abs() < 1e-12
    down = ((falling + 1) ** other - 1) / torch.where(close, torch.ones_like(other), other)
    down = torch.where(close, torch.log1p(falling), down)
    return torch.where(z >= 0, up, -down)


def moments(values, present, ddof=0):
    """Mean and standard deviation over the present rows, [B, 1, F]."""
    w = present.to(values.dtype)
    count = w.sum(1, keepdim=True)
    mean = (values * w).sum(1, keepdim=True) / count.clamp_min(1)
    square = ((values - mean) * w).square().sum(1, keepdim=True)
    return mean, (square / (count - ddof).clamp_min(1)).sqrt()


def likelihood(z, present, power):
    """Log likelihood of the power, [B, 1, F]."""
    w = present.to(z.dtype)
    _, sd = moments(yeo_johnson(z, power), present)
    jacobian = (torch.sign(z) * torch.log1p(z.abs()) * w).sum(1, keepdim=True)
    return -w.sum(1, keepdim=True) * sd.clamp_min(1e-300).log() + (power - 1) * jacobian


def best_power(z, present):
    """λ of largest likelihood within its range, by golden sections; [B, 1, F]."""
    _, sd = moments(z, present)
    largest = (z * present).abs().amax(1, keepdim=True)
    high = 486 * math.log(2) / torch.log1p(20 * largest.clamp_min(1e-12))
    low = 2 - high
    for _ in range(STEPS):
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left = likelihood(z, present, a) > likelihood(z, present, b)
        low, high = torch.where(left, low, a), torch.where(left, b, high)
    return torch.where(sd.square() < 1e-20, torch.ones_like(low), (low + high) / 2)


def power_features(x, prefix):
    """Scaled columns [B, N, F] by the statistics of the first `prefix` rows; missing stays NaN."""
    kind = x.dtype
    missing = x.isnan()
    x = x.double()
    present = ~missing[:, :prefix]
    head = x[:, :prefix].nan_to_num(0.0)
    mean, sd = moments(head, present)
    z = ((x.nan_to_num(0.0) - mean) / (sd + 1e-6)).clamp(-100, 100)
    known = z[:, :prefix]
    low = torch.where(present, known, torch.full_like(known, math.inf)).amin(1, keepdim=True)
    high = torch.where(present, known, torch.full_like(known, -math.inf)).amax(1, keepdim=True)
    constant = ~(low < high)
    low, high = (torch.where(constant, torch.zeros_like(low), v) for v in (low, high))
    z = torch.minimum(torch.maximum(z, low), high)
    z = yeo_johnson(z, best_power(z[:, :prefix], present))
    mean, sd = moments(z[:, :prefix], present)
    z = (z - mean) / torch.where(sd.square() < 1e-20, torch.ones_like(sd), sd)
    known = z[:, :prefix]
    mean, sd = moments(known, present, 1)
    kept = present & ((known - mean).abs() <= 4 * sd.clamp_min(1e-6))
    mean, sd = moments(known, kept, 1)
    sd = sd.clamp_min(1e-6)
    low, high = mean - 4 * sd, mean + 4 * sd
    z = torch.maximum(z, low - torch.log1p(z.abs()))
    z = torch.minimum(z, high + torch.log1p(z.abs()))
    z = torch.where(constant, torch.zeros_like(z), z)
    return z.to(kind).masked_fill(missing, math.nan)
