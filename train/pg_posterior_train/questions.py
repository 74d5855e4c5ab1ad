"""What a training step asks: which rows of a task are context, and which rows each query sees
(docs/model-format.md, sections 6 and 9).

Training asks exactly the questions that the engine answers:

* `prefix-causal`, and `full` without a limit: a prefix, then later rows; every row after the prefix
  is predicted from the rows before it.
* `full` with a buffer of K: a prefix and one block of at most K - 1 stored rows; a query sees the
  prefix and 0 … K - 1 of them.
* `causal`: no prefix; every row is predicted from the rows before it.

With `"questions": "split"` in the training part, and for joint heads, a step asks the further rows
alone, all of them given the same number of rows: the loss of incTNP beside the dense one of
incTNP-Seq (Mortimer et al. 2026).
"""

from dataclasses import dataclass

import torch


def statistics_rows(config, prefix):
    """How many leading rows the frozen statistics come from (section 3)."""
    return max(prefix, config["min_rows"])


def whole_prefix(config, rows):
    """The prefix of a context whose rows came together."""
    return 0 if config["context"] == "causal" else rows


def block_size(config):
    """K, or None: how many predictions a chain makes before its rows join the context."""
    return config["chain"]["buffer"] if config["context"] == "full" else None


@dataclass
class Questions:
    """Rows 0 … rows - 1 are context, `prefix` of them the prefix; query m is row first + m and sees
    the first visible[m] rows. The statistics come from the first `statistics` rows.
    """

    prefix: int
    rows: int
    first: int
    visible: torch.Tensor
    statistics: int


def is_split(config, training):
    """Whether all queries of a step are given the same rows."""
    alike = config["context"] == "full" and config["chain"]["buffer"] == 1
    joint = config["head"]["kind"] == "joint-gaussian"
    return training.get("questions") == "split" or joint and not alike


def split_questions(config, rows, total, prefix, device=None):
    """The rows after the first `rows`, given these."""
    prefix = whole_prefix(config, rows) if block_size(config) else min(prefix, rows)
    first = statistics_rows(config, prefix)
    visible = torch.full((total - rows,), rows, device=device)
    return Questions(prefix, rows, rows, visible, first)


def training_questions(config, rows, total, prefix, device=None):
    """The questions about tasks of `rows` rows of context and `total` - `rows` further ones, none
    of which is context.
    """
    first = statistics_rows(config, prefix)
    row = torch.arange(first, total, device=device)
    extra = row >= rows
    size = block_size(config)
    if size:
        stored = min(rows, prefix + size - 1)
        visible = (prefix + (row - prefix) % size).clamp_max(stored)
        return Questions(prefix, stored, first, torch.where(extra, prefix, visible), first)
    alone = torch.full_like(row, first)
    if config["context"] == "causal":
        # There is no prefix to ask alone: the further rows are asked after everything from the
        # fewest rows to all.
        alone[rows - first :] = torch.linspace(first, rows, total - rows, device=device).long()
    return Questions(prefix, rows, first, torch.where(extra, alone, row), first)


@dataclass
class ChainPass:
    """One pass over a block of a chain: the task's rows in this order, of which the first `rows`
    are context and the others queries.
    """

    order: torch.Tensor
    rows: int
    prefix: int
    visible: torch.Tensor
    statistics: int


def chain_passes(config, rows, total):
    """The passes of a chain over rows `rows` … `total` - 1. A full block is merged into the
    context; the statistics stay (section 9).
    """
    size = block_size(config)
    for start in range(rows, total, size or total):
        end = min(start + size, total) if size else total
        order = torch.cat([torch.arange(end - 1), torch.arange(start, end)])
        prefix = whole_prefix(config, start if size else rows)
        yield ChainPass(
            order,
            end - 1,
            prefix,
            torch.arange(start, end),
            statistics_rows(config, whole_prefix(config, rows)),
        )
