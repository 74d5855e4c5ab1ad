"""Attention of the packed stack: who sees whom, and the softmax over it (docs/model-format.md, section 6).

A training batch shares one layout: `S` sinks, `P` prefix rows, then suffix rows, and query tokens of which query `m`
sees the sinks and the first `visible[m]` rows. The layout needs two attention calls per layer and no per-task mask:

* sinks and prefix rows, which see each other in both directions (the permutation-invariant context of PFNs,
  Mueller et al. 2022), and
* suffix rows and queries, which see a leading part of the rows (the causal context of incTNP, Mortimer et al. 2025, and
  of the autoregressive buffer, Hassan et al. 2025).
"""
import torch
import torch.nn.functional as F

# The `scale` argument came with PyTorch 2.1.
FUSED = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 1)


class Layout:
    """Sizes, masks and visible-key counts of one batch.

    sinks, prefix, rows: `S`, `P` and the number `N` of context rows, prefix included.
    visible [M]: how many of the `N` rows each query sees.
    """

    def __init__(self, sinks, prefix, rows, visible):
        device = visible.device
        self.sinks, self.prefix, self.rows, self.queries = sinks, prefix, rows, len(visible)
        self.head = sinks + prefix
        suffix = torch.arange(prefix + 1, rows + 1, device=device)
        seen = torch.cat([suffix, visible]) + sinks
        keys = torch.cat([torch.full((self.head,), self.head, device=device), seen])
        self.log_keys = keys.clamp_min(1).double().log()
        key = torch.arange(sinks + rows, device=device)
        hidden = key[None, :] >= seen[:, None]
        self.tail_mask = torch.zeros(hidden.shape, device=device).masked_fill(hidden, float("-inf"))


def attend(q, k, v, mask=None):
    """softmax(q k' + mask) v; the scale is already in `q`. q [B, H, T, dh], k and v [B, H, K, dh], mask [T, K]."""
    if mask is not None:
        mask = mask.to(q.dtype)
    if FUSED:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    logits = q @ k.transpose(-1, -2)
    if mask is not None:
        logits = logits + mask
    return logits.softmax(-1) @ v
