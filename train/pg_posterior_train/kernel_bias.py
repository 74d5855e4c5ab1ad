"""The kernel bias of scan attention (Jenson et al. 2024, eq. 4-8; docs/families.md)."""

import torch
from torch import nn


class KernelBias(nn.Module):
    """Basis functions of the distance between positions, for every component, head and basis."""

    def __init__(self, config):
        super().__init__()
        kernel = config["attention"]["kernel"]
        features = config["inputs"]["features"]
        self.components = kernel.get("components") or [list(range(features))]
        self.causal = kernel.get("causal")
        shape = len(self.components), config["heads"], kernel["basis"]
        self.a, self.b = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.ones(shape))
        self.c = nn.Parameter(torch.zeros(shape))

    def logits(self, asked, keys):
        """Bias [B, H, T, K] of positions asked [B, T, F] and keys [B, K, F]; -inf where the column
        of time hides a key.
        """
        out = 0
        for g, columns in enumerate(self.components):
            difference = asked[:, :, None, columns] - keys[:, None, :, columns]
            distance = difference.square().sum(-1).sqrt()[:, None].to(self.a.dtype)
            b, c = (p[g, :, None, None] for p in (self.b, self.c))
            waves = torch.exp(-b.abs() * (distance[..., None] - c).square())
            out = out + (waves @ self.a[g, :, None, :, None])[..., 0]
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
