"""Attention of both stacks: who sees whom, and the softmax over it (docs/model-format.md, sections
6 and 7).

A training batch shares one layout: `S` sinks, `P` prefix rows, then later rows, and query tokens of
which query `m` sees the sinks and the first `visible[m]` rows. The layout needs two attention calls
per layer and no per-task mask:

* sinks and prefix rows, which see each other in both directions (the permutation-invariant context
  of PFNs,
  Mueller et al. 2022), and
* later rows and queries, which see a leading part of the rows (the causal context of incTNP,
  Mortimer et al. 2026, and
  the autoregressive buffer of Hassan et al. 2025). A later row sees itself under the inclusive
  mask, and not under the strict one.
"""
import torch
import torch.nn.functional as F

# The `scale` argument came with PyTorch 2.1.
FUSED = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 1)


class Layout:
    """Sizes, masks and visible-key counts of one batch.

    sinks, prefix, rows: `S`, `P` and the number `N` of context rows, prefix included.
    visible [M]: how many of the `N` rows each query sees. strict: later rows do not see themselves.
    positions [B, N + M, F]: scaled features of rows and queries, for attention that reads them.
    """

    def __init__(self, sinks, prefix, rows, visible, strict=False, positions=None):
        device = visible.device
        self.visible, self.positions = visible, positions
        self.sinks, self.prefix, self.rows, self.queries = sinks, prefix, rows, len(visible)
        self.head = sinks + prefix
        itself = 0 if strict else 1
        later = torch.arange(prefix + itself, rows + itself, device=device)
        seen = torch.cat([later, visible]) + sinks
        self.keys = torch.cat([torch.full((self.head,), self.head, device=device), seen])
        self.log_keys = self.keys.clamp_min(1).double().log()
        key = torch.arange(sinks + rows, device=device)
        hidden = key[None, :] >= seen[:, None]
        self.tail_mask = torch.zeros(hidden.shape, device=device).masked_fill(hidden, float("-inf"))


def attend(q, k, v, mask=None):
    """softmax(q k' + mask) v; the scale is already in `q`. q [B, H, T, dh], k and v [B, H, K, dh],
    mask [T, K].
    """
    if mask is not None:
        mask = mask.to(q.dtype)
    if FUSED:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    logits = q @ k.transpose(-1, -2)
    if mask is not None:
        logits = logits + mask
    return logits.softmax(-1) @ v
