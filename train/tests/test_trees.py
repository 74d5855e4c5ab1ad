"""Boosted trees of a prefix, of classes and of numbers, against the reference and the engine."""
import math
import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.classes import classify
from pg_posterior_train.export import load_model
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.tasks import Tasks
from pg_posterior_train.trees import LEAST_ROWS, Trees, bins
from pg_posterior_train.trees_numbers import NumberTrees, opinions_weights, tilts

from .models import REFERENCE, TOOL

MODELS = os.path.join(os.path.dirname(__file__), "..", "..", "models")
MODEL = os.path.join(MODELS, "tabular_class.safetensors")
OF_NUMBERS = os.path.join(MODELS, "tabular.safetensors")
if os.path.isdir(REFERENCE):
    sys.path.insert(0, REFERENCE)
    import rows as reference_rows
    import trees as reference
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model

    sys.path.remove(REFERENCE)


def steps(n, columns, classes, seed):
    """Rows [n, columns] of numbers, labels in the third column and missing cells, and classes by
    steps of two numbers.
    """
    random = np.random.default_rng(seed)
    x = random.random((n, columns)).astype(np.float32).astype(float)
    x[:, 2] = random.integers(20, size=n)
    y = np.where(x[:, 0] > 0.5, x[:, 1] > 0.4, (classes - 1) * (x[:, 3] > 0.6)).astype(int)
    wrong = random.random(n) < 0.1
    y[wrong] = random.integers(classes, size=wrong.sum())
    x[random.random(x.shape) < 0.05] = np.nan
    return x, y, np.arange(columns) == 2


def bin_of(column):
    """The bin of each label of a column's prefix cells."""
    labels, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    order = labels[np.lexsort((labels, -counts))]
    return {label: min(place, 15) for place, label in enumerate(order)}


@unittest.skipUnless(os.path.isdir(REFERENCE), "no reference")
class TreesTest(unittest.TestCase):

    def test_the_reference_grows_the_same(self):
        for columns, classes in ((5, 3), (14, 2)):
            x, y, labels = steps(560, columns, classes, 3)
            n = 520
            ours = Trees(x, labels, y[:n], n, classes)
            codes = x.copy()
            codes[:, 2] = np.where(np.isin(x[:, 2], x[:n, 2]), x[:, 2], np.nan)
            cards = [reference_rows.ClassCard(codes[:n, f], np.nan_to_num(codes[:n, f]), y[:n],
                                              bin_of(codes[:n, f]) if labels[f] else None,
                                              classes) for f in range(columns)]
            theirs = reference.Trees(cards, codes[:n], x[:n], y[:n], classes)
            self.assertGreater(ours.rounds, 1)
            self.assertEqual((ours.rounds, ours.loss), (theirs.rounds, theirs.loss))
            self.assertAlmostEqual(ours.sharpness, theirs.sharpness, 9)
            self.assertNotAlmostEqual(ours.sharpness, 1, 2)
            np.testing.assert_allclose(ours.log_p[n:] + np.log(classes), theirs(codes[n:]),
                                       atol=1e-9)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_the_same(self):
        x, y, labels = steps(LEAST_ROWS + 20, 6, 3, 5)
        x = np.nan_to_num(x)
        x[:, 4] = np.floor(40 * x[:, 4])
        x[-6:, 4] = 50
        model = load_model(MODEL)
        self.assertGreater(model.config["head"]["trees"], 0)
        n = LEAST_ROWS
        tasks = Tasks(torch.from_numpy(x)[None].float(), torch.from_numpy(y)[None].float(),
                      torch.from_numpy(labels)[None])
        log_p, classes, _, _ = classify(model, tasks, n)
        kinds = ["categorical" if label else "numeric" for label in labels]
        with Tool(TOOL, MODEL) as tool:
            answer = tool.ask(context=table(x[:n], y[:n]), kinds=kinds, queries=cells(x[n:]),
                              classes=3, prefix="whole")
        engine = np.array(answer["params"])[:, :int(classes)]
        np.testing.assert_allclose(log_p[0, :, :int(classes)].exp().numpy(), engine, atol=2e-3)

    def test_the_reference_grows_the_same_of_numbers(self):
        x, y, labels = steps(560, 5, 3, 4)
        x[:, 4] = np.floor(40 * x[:, 4])
        n, z = 520, (y - 1) / 0.8
        x[-9:, 4] = 40
        ours = NumberTrees(x, bins(x, labels, n), labels, z[:n], n)
        codes = x.copy()
        codes[:, 2] = np.where(np.isin(x[:, 2], x[:n, 2]), x[:, 2], np.nan)
        cards = [reference_rows.Card(codes[:n, f], np.nan_to_num(codes[:n, f]), z[:n],
                                     bin_of(codes[:n, f]) if labels[f] else None)
                 for f in range(5)]
        left_out = 0.3 * z[:n]
        theirs = reference.NumberTrees(cards, codes[:n], x[:n], z[:n], left_out)
        self.assertGreater(ours.rounds, 1)
        self.assertEqual((ours.rounds, ours.loss), (theirs.rounds, theirs.loss))
        shares, silent = np.array([theirs.share(0.9, row) for row in x]), np.isnan(ours.said)
        self.assertEqual(set(shares[~silent]), {ours.share(left_out, z[:n], 0.9)})
        self.assertFalse(shares[silent].any())
        self.assertTrue(silent[-9:].all() and not silent[:n].any())
        np.testing.assert_allclose(ours.said[~silent], theirs(codes[~silent]), atol=1e-9)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_moves_means_alike(self):
        x, y, labels = steps(LEAST_ROWS + 20, 6, 3, 6)
        x[:, 4] = np.floor(40 * x[:, 4])
        x, n = np.nan_to_num(x), LEAST_ROWS
        x[-6:, 4] = 50
        y = y + 0.1 * x[:, 5]
        model = load_model(OF_NUMBERS)
        self.assertGreater(model.config["head"]["trees"], 0)
        tasks = Tasks(torch.from_numpy(x)[None].float(), torch.from_numpy(y)[None].float(),
                      torch.from_numpy(labels)[None])
        kinds = ["categorical" if label else "numeric" for label in labels]
        with Tool(TOOL, OF_NUMBERS) as tool:
            answer = tool.ask(context=table(x[:n], y[:n]), kinds=kinds, queries=cells(x[n:]),
                              score={**table(x[n:], y[n:]), "orders": 0}, prefix="whole")
        mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
        np.testing.assert_allclose(mean, answer["mean"], atol=2e-3)
        np.testing.assert_allclose(sd, answer["sd"], atol=2e-3)
        joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
        np.testing.assert_allclose(joint, answer["per_row"], atol=1e-2)
        model.config["head"].pop("trees")
        plain = predict(model, tasks, n).moments()[0][0].numpy()
        self.assertGreater(np.abs(plain - mean)[:-6].max(), 0.05)
        np.testing.assert_allclose(plain[-6:], mean[-6:], atol=1e-6)

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_moves_means_of_few_values_alike(self):
        config, tensors, dtype = make_random("rows_few_values", 0)
        for n, few in ((300, True), (560, True), (560, False), (250, False)):
            x, y, labels = steps(n + 12, 6, 3, 8)
            x[-4:, 4] = np.nan
            y = y + np.sin(5 * x[:, 5].round(2)) if few or n == 250 else y + x[:, 5]
            y = np.nan_to_num(np.floor(4 * y) if few or n == 250 else y)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]),
                                    kinds=["categorical" if one else "numeric" for one in labels],
                                    score={**table(x[n:], y[n:]), "orders": 0}, prefix="whole",
                                    kernels="reference")
                model = load_model(path).double()
            tasks = Tasks(torch.from_numpy(x)[None], torch.from_numpy(y)[None],
                          torch.from_numpy(labels)[None])
            mean, sd = (part[0].numpy() for part in predict(model, tasks, n).moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3, err_msg=str((n, few)))
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3)
            joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
            np.testing.assert_allclose(joint, said["per_row"], atol=1e-2)
            del model.config["head"]["few_values"]
            plain = predict(model, tasks, n).moments()[0][0].numpy()
            self.assertEqual(np.abs(plain - mean).max() > 0.01, few, (n, few))

    def test_weights_of_opinions(self):
        random = np.random.default_rng(1)
        y = random.integers(5, size=400).astype(float)
        z = (y - y.mean()) / y.std()
        noise = random.standard_normal((2, 400))
        for said, wanted in ((np.stack([z, z + noise[0]], 1), [1, 0]),
                             (np.stack([noise[0], noise[1]], 1) + 1e-9, [0, 0]),
                             (np.stack([-z, 2 * z], 1), [0, 0.5]),
                             (np.stack([z + noise[0], z + noise[1]], 1) / 2, [0.5, 0.5]),
                             (np.stack([z, z], 1), [1, 0])):
            found = opinions_weights(y, z, said)
            np.testing.assert_allclose(found, wanted, atol=0.12)
            theirs = reference.FewValues(y, z, said).weights
            np.testing.assert_allclose(said @ found, said @ theirs, atol=1e-9)
        self.assertIsNone(opinions_weights(np.arange(400.0), z, np.stack([z, z], 1)))
        self.assertIsNone(opinions_weights(y[:255], z[:255], np.stack([z, z], 1)[:255]))

    def test_a_tilt_ends_where_components_do(self):
        class Pair:
            log_weight, mean = torch.tensor([0.25, 0.75]).log(), torch.tensor([-1.0, 1.0])

            @staticmethod
            def moments():
                return torch.tensor(0.5), torch.tensor(1.0)

        eta = tilts(Pair, torch.tensor([0.5, 0.0, 9.0]))
        np.testing.assert_allclose(eta, [0, -math.log(3) / 2, 3], atol=1e-6)


if __name__ == "__main__":
    unittest.main()
