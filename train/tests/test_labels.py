"""Numbers that name groups of rows: which do, what labels of them change, and as the engine has it.
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.classes import classify
from pg_posterior_train.labels import names_groups
from pg_posterior_train.normalise import as_labels, prepare, scale_targets
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.tasks import Tasks, concatenate

from .models import REFERENCE, TOOL
from .test_line import network

sys.path.insert(0, REFERENCE)
try:
    from checking import Tool, cells, table
finally:
    sys.path.remove(REFERENCE)


def shops(n, groups, seed, known=8, noise=0.3, smooth=False):
    """Cells [n + known + 4, 4], targets: those of shops that a number names; the last four rows are
    of other shops. Or the number measures something.
    """
    random = np.random.default_rng([n, groups, seed])
    names = np.sort(random.choice(30 * groups, 2 * groups, replace=False)).astype(float)
    effect = np.cos(names / 8 / groups) if smooth else random.standard_normal(2 * groups)
    which = 2 * random.integers(0, groups, n + known + 4)
    which[-4:] += 1
    x = random.standard_normal((len(which), 4))
    x[:, 1], x[:, 2] = names[which], random.integers(0, 3, len(which))
    y = effect[which] + 0.7 * x[:, 0] + noise * random.standard_normal(len(which))
    x[random.uniform(size=len(which)) < 0.05, 3] = np.nan
    x[n, 1] = np.nan
    return x, y


def as_tasks(x, y):
    categorical = torch.tensor([[False, False, True, False]])
    return Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None], categorical)


def labels_of(model, tasks, n):
    """Numbers that labels stand for, of each task."""
    y = scale_targets(tasks.y, n, model.config)[1]
    return as_labels(tasks, y, n, model.config).number.tolist()


class LabelsTest(unittest.TestCase):
    def test_names_are_told_from_measures(self):
        random = np.random.default_rng(2)
        named, measured, silent, lone = (0 for _ in range(4))
        for _ in range(20):
            column = random.permutation(np.repeat(random.choice(900, 30, replace=False), 6)) + 0.0
            effect, noise = random.standard_normal(900), random.standard_normal(180)
            place = column.astype(int)
            named += names_groups(column, effect[place] + 0.5 * noise)
            measured += names_groups(column, np.sin(place / 150) + 0.5 * noise)
            silent += names_groups(column, noise * np.where(random.uniform(size=180) < 0.1, 5, 1))
            lone += names_groups(np.arange(180.0), noise)
        self.assertEqual((named, lone), (20, 0))
        self.assertLessEqual(measured + silent, 1)

    def test_labels_stand_where_they_help(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model = network("rows_labels", folder)
            for (n, groups, smooth), parts in {(60, 8, False): 1, (150, 25, False): 2,
                                               (200, 50, False): 3, (150, 25, True): 0}.items():
                tasks = as_tasks(*shops(n, groups, 1, smooth=smooth))
                self.assertEqual(labels_of(model, tasks, n), [[-1] * 4 + [1] * parts])

    def test_tasks_do_not_depend_on_each_other(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model = network("rows_labels", folder)
        alone = [as_tasks(*shops(120, groups, 4, smooth=smooth))
                 for groups, smooth in ((20, False), (8, False), (20, True))]
        together = prepare(concatenate(alone), 120, model.config).x
        for task, own in zip(alone, together):
            one = prepare(task, 120, model.config).x[0]
            # behind the slots that a task has there are empty ones
            np.testing.assert_allclose(own[:, -10:], one[:, -10:], atol=1e-9)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        for name in ("rows_labels", "rows_labels_alone"):
            with tempfile.TemporaryDirectory() as folder:
                path, model = network(name, folder)
                with Tool(TOOL, path) as tool:
                    for n, groups in ((60, 8), (150, 25), (200, 50)):
                        self.compare(tool, model, n, groups)

    def compare(self, tool, model, n, groups):
        x, y = shops(n, groups, 1)
        kinds = ["numeric", "numeric", "categorical", "numeric"]
        given = dict(context=table(x[:n], y[:n]), kinds=kinds, prefix="whole")
        said = tool.ask(**given, queries=cells(x[n:]), kernels="reference")
        mean, sd = (v[0].numpy() for v in predict(model, as_tasks(x, y), n).moments())
        np.testing.assert_allclose(said["mean"], mean, atol=2e-4)
        np.testing.assert_allclose(said["sd"], sd, atol=2e-4)
        rows = [n + 1, n + 2, n + 9]
        said = tool.ask(**given, score={**table(x[rows], y[rows]), "orders": 0},
                        kernels="reference")
        order = [*range(n), *rows]
        ours = chain(model, as_tasks(x[order], y[order]), n)
        ours = ours.log_prob(torch.from_numpy(y[rows])[None])[0].numpy()
        np.testing.assert_allclose(said["per_row"], ours, atol=2e-3)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_classifies_alike(self):
        for name in ("classes_labels", "classes_labels_alone"):
            with tempfile.TemporaryDirectory() as folder:
                path, model = network(name, folder)
                with Tool(TOOL, path) as tool:
                    for n, groups in ((200, 8), (300, 25), (500, 60)):
                        x, y = shops(n, groups, 4, noise=0)
                        random = np.random.default_rng(n)
                        y = np.digitize(2 * y + random.logistic(size=len(y)), [-1.5, 1]) + 0.0
                        kinds = ["numeric", "numeric", "categorical", "numeric"]
                        said = tool.ask(context=table(x[:n], y[:n]), kinds=kinds, prefix="whole",
                                        queries=cells(x[n:]), classes=3, kernels="reference")
                        log_p = classify(model, as_tasks(x, y), n)[0][0].exp().numpy()
                        np.testing.assert_allclose(np.array(said["params"])[:, :3], log_p[:, :3],
                                                   atol=1e-4, err_msg=f"{name} {n}")


if __name__ == "__main__":
    unittest.main()
