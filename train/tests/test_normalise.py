"""Batched statistics against a straightforward loop over columns in NumPy."""
import math
import unittest

import numpy as np
import torch

from pg_posterior_train.clip import soft_clip
from pg_posterior_train.normalise import cells, prepare, scale_targets
from pg_posterior_train.tasks import Tasks

from .common import config, tasks


def clip(z, knee):
    return np.where(np.abs(z) <= knee, z,
                    np.sign(z) * (knee + np.log1p(np.maximum(np.abs(z) - knee, 0))))


def column_cells(column, y, prefix, categorical, knee):
    """Cell vectors [N, 8] of one column; y is scaled and clipped."""
    if categorical:
        known = np.unique(column[:prefix][~np.isnan(column[:prefix])])
        counts = {v: -np.sum(column[:prefix] == v) for v in known}
        ranked = sorted(known, key=lambda v: (counts[v], v))
        bins = np.array([min(ranked.index(v), 15) if v in known else 16 for v in column])
        column = np.array([float(list(known).index(v)) if v in known else np.nan for v in column])
    head = column[:prefix][~np.isnan(column[:prefix])]
    if not categorical:
        edges = [np.quantile(head, j / 8) for j in range(1, 8)] if len(head) else []
        bins = np.array([16 if np.isnan(v) else sum(e < v for e in edges) for v in column])
    missing = np.isnan(column)
    constant = len(head) == 0 or head.min() == head.max()
    z = np.zeros(len(column)) if constant else clip((column - head.mean()) / head.std(), knee)
    z = np.where(missing, 0.0, z)
    inside = ~missing[:prefix]
    r = 0.0 if constant else np.corrcoef(z[:prefix][inside], y[:prefix][inside])[0, 1]
    count, total = np.zeros(17), np.zeros(17)
    np.add.at(count, bins[:prefix], 1)
    np.add.at(total, bins[:prefix], y[:prefix])
    k = np.sum(count > 0)
    filled = count > 0
    mean = y[:prefix].mean()
    between = np.sum(count[filled] * (total[filled] / count[filled] - mean) ** 2)
    within = np.sum((y[:prefix] - mean) ** 2)
    e = max(0.0, 1 - (1 - between / within) * (prefix - 1) / (prefix - k)) if prefix > k else 0.0
    out = []
    for i in range(len(column)):
        own = y[i] if i < prefix else 0.0
        t = (total[bins[i]] - own) / (count[bins[i]] + (0.5 if i < prefix else 1.5))
        out.append([z[i], missing[i], categorical, t, math.log(1 + prefix) / 8, r, e,
                    missing[:prefix].mean()])
    return np.array(out, float)


def says_nothing(cells):
    missing = np.isnan(cells)
    return missing.all() or not missing.any() and cells.min() == cells.max()


def by_relevance(cell):
    """Sort key of a column's cells [N, 8] that rounding does not disturb."""
    rounded = np.round(cell, 6) + 0.0
    return (max(rounded[0, 6], rounded[0, 5] ** 2),) + tuple(rounded[:, [5, 7, 0]].ravel())


class Normalise(unittest.TestCase):
    def check(self, data, prefix):
        model = config("tabular_small")["model"]
        y, y_input, center, scale = scale_targets(data.y, prefix, model)
        ours = cells(data, y_input, prefix, model).unflatten(-1, (-1, 8)).numpy()
        for b in range(len(data.y)):
            mean, sd = data.y[b, :prefix].numpy().mean(), data.y[b, :prefix].numpy().std()
            self.assertAlmostEqual(float(center[b]), mean, places=9)
            self.assertAlmostEqual(float(scale[b]), sd, places=9)
            # Columns whose bins are the same have equal relevance up to rounding, so ties are
            # compared in any order.
            parts = [column_cells(data.x[b, :, f].numpy(), y_input[b].numpy(), prefix,
                                  bool(data.categorical[b, f]), 3)
                     for f in range(data.x.shape[2])]
            # What says nothing has no slot, unless there is nothing else.
            silent = [says_nothing(data.x[b, :prefix, f].numpy()) for f in range(len(parts))]
            parts = [part * (not flat or (f == 0 and all(silent)))
                     for f, (part, flat) in enumerate(zip(parts, silent))]
            relevance = np.maximum(ours[b, 0, :, 6], ours[b, 0, :, 5] ** 2)
            self.assertTrue(np.all(np.diff(np.rint(relevance * 2 ** 20)) <= 0))
            mine = sorted((ours[b, :, f] for f in range(len(parts))), key=by_relevance)
            expected = sorted(parts, key=by_relevance)
            np.testing.assert_allclose(np.stack(mine), np.stack(expected), atol=1e-7)

    def test_against_a_loop_over_columns(self):
        for seed in range(6):
            data = tasks("tabular", 4, 40, seed, max_features=12)
            self.check(data, prefix=[5, 17, 30, 4, 39, 24][seed])

    def test_columns_without_values_and_constant_columns(self):
        x = torch.randn(1, 20, 4, dtype=torch.float64)
        x[:, :10, 0] = float("nan")
        x[:, :10, 1] = 2.5
        x[:, ::2, 2] = float("nan")
        data = Tasks(x, torch.randn(1, 20, dtype=torch.float64),
                     torch.zeros(1, 4, dtype=torch.bool))
        self.check(data, 10)

    def test_soft_clip(self):
        z = torch.tensor([-100.0, -3.0, 0.5, 3.0, 4.0])
        np.testing.assert_allclose(soft_clip(z, 3).numpy(), clip(z.numpy(), 3), rtol=1e-6)
        self.assertTrue(torch.equal(soft_clip(z, 0), z))

    def test_constant_target_stays_proper(self):
        model = config("tabular_small")["model"]
        data = Tasks(torch.randn(1, 8, 2), torch.full((1, 8), 7.0),
                     torch.zeros(1, 2, dtype=torch.bool))
        inputs = prepare(data, 6, model)
        self.assertEqual(float(inputs.scale[0]), 7.0)
        self.assertTrue(torch.isfinite(inputs.x).all())


if __name__ == "__main__":
    unittest.main()
