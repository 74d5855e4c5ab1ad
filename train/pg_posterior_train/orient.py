"""Which way round targets and columns are looked at (docs/model-format.md, section 5,
"Orientation").
"""
import torch

STEPS = 2.0 ** 20    # in which skewness and correlation are compared with 0


def target_signs(z, prefix):
    """1, or -1 where the targets z [B, N], scaled, are turned, [B]: their skewness is negative."""
    skewness = z[:, :prefix].double().pow(3).mean(1)
    return torch.where((STEPS * skewness).round() < 0, -1.0, 1.0).to(z.dtype)


def turn_columns(x, correlation, categorical):
    """Columns x [B, N, F] whose correlation [B, F] with the targets is negative become their
    negatives, those that are categorical [B, F] excepted.
    """
    turned = ((STEPS * correlation.double()).round() < 0) & ~categorical
    return torch.where(turned[:, None], -x, x)
