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
        self.unseen = None

    @property
    def later_mask(self):
        """The mask of the rows behind the head; None where they see all rows."""
        return None if self.tail_mask is None else (
            self.tail_mask[..., : self.sinks + self.rows - self.head, :])

    @property
    def query_mask(self):
        """That of the queries."""
        return None if self.tail_mask is None else self.tail_mask[..., -self.queries :, :]


class Slots(Layout):
    """A batch in which every task has rows of its own number in slots that all tasks have: for
    steps of one shape, whose masks alone differ.

    `prefix` slots for the prefix, of which task b has the first seen[b] (None: all), then
    `buffered` for the rows of a block behind it. Query m sees the prefix and chain[m] of the block.
    """

    def __init__(self, seen, prefix, buffered, chain, strict=False, positions=None):
        device = chain.device
        self.positions, self.sinks, self.head, self.log_keys = positions, 0, 0, None
        self.prefix, self.rows, self.queries = prefix, prefix + buffered, len(chain)
        self.tail_mask = self.unseen = None
        if seen is None and not buffered:
            return
        block = torch.arange(buffered, device=device) + (0 if strict else 1)
        reach = torch.cat([torch.zeros(prefix, dtype=torch.long, device=device), block, chain])
        hidden = torch.arange(buffered, device=device) >= reach[:, None]
        if seen is None:
            unseen = torch.zeros(1, prefix, dtype=torch.bool, device=device)
        else:
            unseen = torch.arange(prefix, device=device) >= seen[:, None]
        tasks, tokens = len(unseen), len(reach)
        hidden = torch.cat([unseen[:, None].expand(-1, tokens, -1),
                            hidden.expand(tasks, -1, -1)], 2)[:, None]
        blank = torch.zeros((), device=device)
        self.tail_mask = blank.expand(hidden.shape).masked_fill(hidden, float("-inf"))
        self.unseen = blank.expand(unseen.shape).masked_fill(unseen, float("-inf"))[:, None, None]


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
