"""A process whose correlation is a mean over the axes in part (docs/model-format.md, section 5,
"Process"): what one axis says alone is learnt from all rows at once, where a product of all axes
learns it near each row (additive kernels: Duvenaud et al. 2011).

All in float64, without gradients; batched over tasks.
"""
import torch

ALONE = 2.0                      # a weight along its axis alone, in units of that beside others
LOGITS = (0.0, 2.0, 4.0)         # of the share, at first
WEIGHT = 1.5                     # of all axes at a start with the second, beside the prior's mean
GAIN = 1.0                       # of the log posterior at one of these, or there is no share
STEPS = 12                       # of the first stage


class Axes:
    """Rows along each axis: values (0 where missing, and of categories) and labels [B, N, A], NaN
    where missing; used, categorical [B, A].
    """

    def __init__(self, values, labels, used, categorical):
        self.values, self.labels, self.used, self.categorical = values, labels, used, categorical

    @classmethod
    def of(cls, z, bins, used, categorical, missing_bin):
        """z (0 where missing), bins [B, N, A]."""
        label = torch.where(categorical[:, None], bins.to(z.dtype), torch.zeros_like(z))
        label = label.masked_fill(bins == missing_bin, float("nan"))
        return cls(z * ~categorical[:, None], label, used, categorical)

    def rows(self, chosen):
        """Those of chosen [B, m]."""
        wide = chosen[..., None].expand(-1, -1, self.values.shape[2])
        return Axes(self.values.gather(1, wide), self.labels.gather(1, wide), self.used,
                    self.categorical)

    def tasks(self, some):
        return Axes(self.values[some], self.labels[some], self.used[some], self.categorical[some])

    def apart(self, other, axis):
        """Squared distances [B, n, m] along one axis, as of different rows."""
        a, b = self.values[..., axis], other.values[..., axis]
        differ = self.labels[..., axis][:, :, None] != other.labels[..., axis][:, None]
        unit = 1.0 + self.categorical[:, axis].to(a.dtype)
        return (a[:, :, None] - b[:, None]).square() + differ * unit[:, None, None]

    def alone(self, other, weight):
        """Mean over the used axes of the correlations along each, [B, n, m]; weight [B, A]."""
        total = 0
        for axis in range(weight.shape[1]):
            t = 1 / (1 + ALONE * weight[:, axis, None, None] * self.apart(other, axis) / 8)
            total = total + self.used[:, axis, None, None] * t.square().square()
        return total / self.used.sum(1).clamp_min(1)[:, None, None]

    def along(self, pull, weight):
        """Sums of pull [B, n, n], with nothing on the diagonal, times the derivatives of
        alone(self) by the logs of the weights, [B, A].
        """
        out = torch.zeros_like(weight)
        for axis in range(weight.shape[1]):
            distance = weight[:, axis, None, None] * self.apart(self, axis)
            t = 1 / (1 + ALONE * distance / 8)
            out[:, axis] = -0.5 * ALONE * (pull * distance * t.square().square() * t).sum((1, 2))
        return out * self.used / self.used.sum(1, keepdim=True).clamp_min(1)


def mix(product, alone, share):
    """Correlations [B, n, m]; share [B]."""
    share = share[:, None, None]
    return (1 - share) * product + share * alone
