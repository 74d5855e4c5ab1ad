"""Features of many labels, split into several columns, by definition and as the engine has it."""
import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.classes import classify
from pg_posterior_train.config import ConfigError, check_model
from pg_posterior_train.export import load_model
from pg_posterior_train.normalise import prepare
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.split import OWN, REST, lots, parts_of, split_labels
from pg_posterior_train.tasks import Tasks

from .models import REFERENCE, TOOL

if os.path.isdir(REFERENCE):
    sys.path.insert(0, REFERENCE)
    from check_parity import many_labels
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model

    sys.path.remove(REFERENCE)

MODEL = {"embedder": {"x": {"split": 16, "codes": "targets"}}, "target": {"scaling": "prefix"}}


def labelled(n, labels, effect, seed=0):
    """(labels [n], scaled targets [n]) of which the labels say something, or nothing."""
    random = np.random.default_rng(seed)
    column = random.integers(labels, size=n).astype(float)
    y = effect * random.standard_normal(labels)[column.astype(int)] + random.standard_normal(n)
    return column, (y - y.mean()) / y.std()


def parts(column, y, most=16):
    return parts_of(column, y, y[:, None], most)


class SplitTest(unittest.TestCase):
    def test_labels_that_matter_are_told_apart(self):
        column, y = labelled(300, 40, 2.0)
        found = parts(column, y)
        self.assertEqual([len(own) for own in found], [15, 15, 10])
        self.assertEqual(set(np.concatenate(found)), set(range(40)))
        counts = [np.sum(column == label) for label in np.concatenate(found)]
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertEqual(len(parts(column, y, 2)), 2)

    def test_labels_that_do_not_matter_or_are_few_stay_together(self):
        split = [parts(*labelled(300, 40, 0.0, seed)) is not None for seed in range(60)]
        self.assertLess(np.mean(split), 0.1)
        self.assertIsNone(parts(*labelled(300, OWN + 1, 2.0)))
        self.assertIsNotNone(parts(*labelled(300, OWN + 2, 2.0)))

    def test_names_are_not_told_apart(self):
        column, y = labelled(300, 40, 2.0)
        self.assertIsNone(parts(np.arange(300.0), y))
        column[100:] = 1000 + np.arange(200)
        apart = np.concatenate(parts(column, np.where(np.arange(300) < 100, y, 0)))
        self.assertTrue((apart < 1000).all())

    def test_names_of_labels_do_not_matter(self):
        column, y = labelled(120, 50, 1.5, 3)
        renamed = np.random.default_rng(4).permutation(50).astype(float)
        self.assertEqual([set(renamed[own.astype(int)]) for own in parts(column, y)],
                         [set(own) for own in parts(renamed[column.astype(int)], y)])
        self.assertEqual(len(set(lots(np.arange(100)))), 100)

    def test_cells_are_equal_where_labels_are(self):
        column, y = labelled(300, 40, 2.0)
        x = torch.tensor(np.stack([column, y], 1))[None]
        x[0, 280:, 0] = torch.tensor([100.0, float("nan")]).repeat(10)
        tasks = Tasks(x, torch.tensor(y)[None], torch.tensor([[True, False]]))
        made = split_labels(tasks, torch.tensor(y)[None], 280, MODEL)
        self.assertEqual(made.x.shape[2], 4)
        self.assertTrue(made.categorical.tolist(), [[True, False, True, True]])
        own = (made.x[0, :280, [0, 2, 3]] < REST).sum(1)
        self.assertTrue((own == 1).all())
        for f in (0, 2, 3):
            self.assertTrue(torch.equal(made.x[0, :280, f] % REST, x[0, :280, 0]))
            self.assertTrue((made.x[0, 280::2, f] == 100).all())        # no row has it
            self.assertTrue(made.x[0, 281::2, f].isnan().all())
        self.assertIs(split_labels(made, torch.tensor(y)[None], 280, MODEL), made)


@unittest.skipUnless(os.path.exists(TOOL) and os.path.isdir(REFERENCE), "no tool or reference")
class EngineTest(unittest.TestCase):
    def answers(self, name, n, classes=None):
        """(model, tasks, what the engine says) of a table of many labels and its rows after n."""
        config, tensors, dtype = make_random(name, 0)
        x, y, kinds = many_labels(n + 12, 5)
        x[n:n + 2, 0], x[n + 2, 3], x[n + 3] = (123456.0, np.nan), 123457.0, np.nan
        if classes:
            y = np.searchsorted(np.quantile(y, [0.3, 0.6]), y).astype(float)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            write_model(path, config, tensors, dtype)
            with Tool(TOOL, path) as tool:
                said = tool.ask(context=table(x[:n], y[:n]), kinds=kinds, prefix="whole",
                                queries=cells(x[n:]), kernels="reference",
                                **({"classes": classes} if classes else {}),
                                score={**table(x[n:], y[n:]), "orders": 0})
            model = load_model(path).double()
        small = np.unique(np.nan_to_num(x), return_inverse=True)[1].reshape(x.shape)
        labelled = np.array(kinds) == "categorical"
        x = np.where(labelled & ~np.isnan(x), small, x)
        return model, Tasks(torch.tensor(x)[None], torch.tensor(y)[None],
                            torch.tensor(labelled)[None]), said

    def test_numbers(self):
        for name, n in (("rows_split", 250), ("rows_split", 520)):
            model, tasks, said = self.answers(name, n)
            mean, sd = (v[0].numpy() for v in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=2e-3, err_msg=name)
            np.testing.assert_allclose(sd, said["sd"], atol=2e-3, err_msg=name)
            joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
            np.testing.assert_allclose(joint, said["per_row"], atol=1e-2)
            del model.config["embedder"]["x"]["split"]
            plain = predict(model, tasks, n).moments()[0][0].numpy()
            self.assertGreater(np.abs(plain - mean).max(), 0.05)

    def test_classes(self):
        for n in (250, 520):
            model, tasks, said = self.answers("classes_split", n, 3)
            p = classify(model, tasks, n)[0][0, :, :3].exp().numpy()
            np.testing.assert_allclose(p, np.array(said["params"])[:, :3], atol=2e-3)

    def test_tasks_of_a_batch_are_split_alone(self):
        model, tasks, _ = self.answers("rows_split", 250)
        other = Tasks(tasks.x.flip(1), tasks.y.flip(1) ** 2, tasks.categorical)
        other.x[..., 0] = other.x[..., 0] % 7
        both = Tasks(*(torch.cat([getattr(t, name) for t in (tasks, other)])
                       for name in ("x", "y", "categorical")))
        together = prepare(both, 250, model.config).x
        numbers = 6 + 4                    # that regressions and the process say
        for i, one in enumerate((tasks, other)):
            alone = prepare(one, 250, model.config).x[0]
            slots = alone.shape[1] - numbers
            np.testing.assert_allclose(together[i, :, :slots], alone[:, :-numbers], atol=1e-9)
            self.assertFalse(together[i, :, slots:-numbers].any())
            np.testing.assert_allclose(together[i, :, -numbers:], alone[:, -numbers:], atol=1e-6)


@unittest.skipUnless(os.path.isdir(REFERENCE), "no reference")
class ConfigurationTest(unittest.TestCase):
    def test_how_many_parts(self):
        config = make_random("rows_split", 0)[0]
        check_model(config)
        for wrong in (1, 17, True, 2.5):
            config["embedder"]["x"]["split"] = wrong
            with self.assertRaisesRegex(ConfigError, "split"):
                check_model(config)


if __name__ == "__main__":
    unittest.main()
