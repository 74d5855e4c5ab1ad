"""The kernel bias of scan attention (Jenson et al. 2024, eq. 4-8; docs/families.md)."""

import torch
from torch import nn


class Waves(torch.autograd.Function):
    """Σ a exp(-|b| (distance - c)²) over basis functions: distance [B, 1, T, K], which has no
    gradient, a, b and c [H, basis]; [B, H, T, K].

    One basis function after the other, and once more for the gradients, so that none is kept.
    """

    @staticmethod
    def one(distance, j, *parameters):
        a, b, c = (p[:, j, None, None] for p in parameters)
        off = distance - c
        return a, b, off, off.square().mul_(-b.abs()).exp_()

    @staticmethod
    def forward(ctx, distance, *parameters):
        ctx.save_for_backward(distance, *parameters)
        out = 0
        for j in range(parameters[0].shape[1]):
            a, _, _, wave = Waves.one(distance, j, *parameters)
            out = out + a * wave
        return out

    @staticmethod
    def backward(ctx, gradient):
        distance, *parameters = ctx.saved_tensors
        found = []
        for j in range(parameters[0].shape[1]):
            a, b, off, wave = Waves.one(distance, j, *parameters)
            wave = wave * gradient
            sums = [wave.sum((0, 2, 3))]
            for _ in range(2):
                wave = wave.mul_(off)
                sums.append(wave.sum((0, 2, 3)))
            a, b = a[:, 0, 0], b[:, 0, 0]
            found.append((sums[0], -a * b.sign() * sums[2], 2 * a * b.abs() * sums[1]))
        return None, *(torch.stack(part, 1) for part in zip(*found))


class KernelBias(nn.Module):
    """Basis functions of the distance between positions, for every component, head and basis.

    The authors begin with a = b = 1, c = 0 for all, but functions that begin alike have one
    gradient and stay alike: here their widths go from 1 to 1/16.
    """

    def __init__(self, config):
        super().__init__()
        kernel = config["attention"]["kernel"]
        features = config["inputs"]["features"]
        self.components = kernel.get("components") or [list(range(features))]
        self.causal = kernel.get("causal")
        shape = len(self.components), config["heads"], kernel["basis"]
        self.a = nn.Parameter(torch.ones(shape))
        self.b = nn.Parameter((2 ** torch.linspace(0, 8, kernel["basis"])).repeat(*shape[:2], 1))
        self.c = nn.Parameter(torch.zeros(shape))

    def logits(self, asked, keys):
        """Bias [B, H, T, K] of positions asked [B, T, F] and keys [B, K, F]; -inf where the column
        of time hides a key.
        """
        out = 0
        for g, columns in enumerate(self.components):
            difference = asked[:, :, None, columns] - keys[:, None, :, columns]
            distance = difference.square().sum(-1).sqrt()[:, None].to(self.a.dtype)
            out = out + Waves.apply(distance, self.a[g], self.b[g], self.c[g])
        if self.causal is not None:
            hidden = keys[:, None, :, self.causal] > asked[:, :, None, self.causal]
            out = out.masked_fill(hidden[:, None], float("-inf"))
        return out

    def forward(self, q, k, v, head, mask, places):
        """Attention of q [B, H, T, dh] over k, v [B, H, K, .]: the first `head` tokens read the
        first `head` keys, the rest by mask [T - head, K]. places [B, N + M, F]: positions of all
        rows and queries; those of q are its end.
        """
        asked, keys = places[:, -q.shape[2] :], places[:, : k.shape[2]]
        parts = []
        if head:
            bias = self.logits(asked[:, :head], keys[:, :head])
            parts.append(guarded(q[:, :, :head] @ k[:, :, :head].transpose(-1, -2) + bias,
                                 v[:, :, :head]))
        if q.shape[2] > head:
            bias = self.logits(asked[:, head:], keys)
            logits = q[:, :, head:] @ k.transpose(-1, -2) + bias
            parts.append(guarded(logits if mask is None else logits + mask.to(q.dtype), v))
        return parts


def guarded(logits, v):
    """softmax(logits) v, and zeros where every logit is -inf."""
    blind = (logits == float("-inf")).all(-1, keepdim=True)
    return logits.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0) @ v
