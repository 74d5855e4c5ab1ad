"""The soft clip of docs/model-format.md, section 3."""
import torch


def soft_clip(z, knee):
    """Identity up to the knee, logarithmic beyond; knee 0 is off."""
    if not knee:
        return z
    excess = (z.abs() - knee).clamp_min(0)
    return torch.where(z.abs() <= knee, z, z.sign() * (knee + torch.log1p(excess)))


def unclip(z, knee):
    """What soft_clip makes z of."""
    if not knee:
        return z
    excess = (z.abs() - knee).clamp_min(0)
    return torch.where(z.abs() <= knee, z, z.sign() * (knee + torch.expm1(excess)))
