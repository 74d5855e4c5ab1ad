"""Classifiers: prior, cells, who sees whom, the independent reference, starting from another
model's trunk, scores.
"""
import json
import math
import os
import random
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train import evaluate_classes, measure_classes
from pg_posterior_train.class_scores import Frequencies, calibration_error, score
from pg_posterior_train.begin import begin
from pg_posterior_train.classes import (class_chain, class_loss, classify, known_classes,
                                        prepare_classes)
from pg_posterior_train.export import write_model
from pg_posterior_train.golden import golden
from pg_posterior_train.model import make_model
from pg_posterior_train.prior import classes as prior
from pg_posterior_train.tasks import Tasks
from pg_posterior_train.trainer import Run

from .common import MODELS, config, random_model, tasks

REFERENCE = os.path.join(os.path.dirname(MODELS), "test", "reference")


def select(data, rows):
    return Tasks(data.x[:, rows], data.y[:, rows], data.categorical)


class Prior(unittest.TestCase):
    def test_every_family_gives_classes(self):
        for family in prior.WEIGHTS:
            for seed in range(3):
                with self.subTest(family=family, seed=seed):
                    data = tasks("classes", 6, 40, seed, families=[family])
                    self.assertEqual(data.x.shape[:2], (6, 40))
                    self.assertTrue(torch.equal(data.y, data.y.round()))
                    self.assertTrue(0 <= data.y.min() and data.y.max() < prior.MOST)
                    self.assertFalse(torch.isinf(data.x).any())

    def test_same_seed_same_tasks(self):
        a, b = (tasks("classes", 8, 20, 5) for _ in range(2))
        self.assertTrue(torch.equal(a.y, b.y))
        self.assertTrue(torch.equal(a.x.nan_to_num(99.0), b.x.nan_to_num(99.0)))

    def test_shares_are_those_of_the_rows(self):
        latent = torch.randn(3, 200)
        share = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.2, 0.2, 0.6]])
        y = prior.cut(latent, share)
        for b in range(3):
            counts = torch.bincount(y[b], minlength=3) / 200
            self.assertTrue(torch.allclose(counts, share[b], atol=0.011))
            # Classes are intervals of the latent number.
            order = y[b][latent[b].argsort()]
            self.assertTrue(torch.equal(order, order.sort().values))

    def test_classes_can_be_learnt(self):
        # A nearest neighbour beats the most frequent class on tasks with little noise.
        data = tasks("classes", 24, 200, 1, families=["clusters"])
        x = data.x.nan_to_num(0.0)
        x = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-9)
        near = torch.cdist(x[:, 150:], x[:, :150]).argmin(2)
        right = (data.y[:, :150].gather(1, near) == data.y[:, 150:]).float().mean()
        often = (data.y[:, :150].mode(1, keepdim=True).values == data.y[:, 150:]).float().mean()
        self.assertGreater(float(right), float(often) + 0.05)


class Classes(unittest.TestCase):
    def test_numbered_as_the_context_has_them(self):
        y = torch.tensor([[7.0, 2.0, 7.0, 9.0, 2.0]])
        code, classes, known = known_classes(y, 3, 10)
        self.assertEqual(code[0, :3].tolist(), [1, 0, 1])
        self.assertEqual(int(classes), 2)
        self.assertEqual(known[0].tolist(), [True, True, True, False, True])

    def test_probabilities(self):
        model = random_model("tabular_class")
        data = tasks("classes", 6, 30)
        log_p, classes, true, known = classify(model, data, 25)
        self.assertTrue(torch.allclose(log_p.exp().sum(2), torch.ones(6, 5).double()))
        for b in range(6):
            self.assertEqual(float(log_p[b, :, int(classes[b]):].exp().sum()), 0.0)
            self.assertTrue((true[b][known[b]] < classes[b]).all())

    def test_loss_is_the_mean_over_known_classes(self):
        model = random_model("tabular_class")
        data = tasks("classes", 4, 20)
        log_p, _, true, known = classify(model, data, 16)
        expected = [-(log_p[b].gather(1, true[b][:, None])[:, 0] * known[b]).sum()
                    / known[b].sum().clamp_min(1) for b in range(4)]
        # All rows in the prefix: only the extra rows are asked.
        self.assertAlmostEqual(float(class_loss(model, data, 16, 16)),
                               float(torch.stack(expected).mean()), places=9)

    def test_later_rows_do_not_change_earlier_answers(self):
        model, data = random_model("tabular_class"), tasks("classes", 4, 20)
        changed = Tasks(data.x.clone(), data.y.clone(), data.categorical)
        changed.y[:, 16] = changed.y[:, 0]
        changed.y[:, 17:] = changed.y[:, 1:2]
        # The classes of both are the same: those of the rows before, here of all.
        data.y[:, 12:] = data.y[:, :8]
        changed.y[:, 12:16] = data.y[:, 12:16]
        before, classes, _, _ = class_chain(model, data, 12)
        after, others, _, _ = class_chain(model, changed, 12)
        self.assertTrue(torch.equal(classes, others))
        self.assertTrue(torch.equal(before[:, :5], after[:, :5]))
        self.assertFalse(torch.allclose(before[:, 5:], after[:, 5:]))

    def test_prefix_rows_are_a_set(self):
        model, data = random_model("tabular_class"), tasks("classes", 4, 20)
        order = torch.cat([torch.randperm(15), torch.arange(15, 20)])
        a, b = classify(model, data, 15)[0], classify(model, select(data, order), 15)[0]
        self.assertTrue(torch.allclose(a.exp(), b.exp(), atol=1e-9))

    def test_one_pass_chain_equals_appends(self):
        model, data = random_model("tabular_class"), tasks("classes", 4, 16)
        data.y[:, 10:] = data.y[:, :6]
        fast = class_chain(model, data, 10)[0].exp()
        for j in range(6):
            slow = classify(model, select(data, torch.arange(11 + j)), 10 + j, prefix=10)[0].exp()
            self.assertTrue(torch.allclose(slow[:, 0], fast[:, j], atol=1e-9))

    def test_column_order_does_not_matter(self):
        model = random_model("tabular_class")
        # Every column says something, and none everything: ties in relevance are broken by number.
        y = torch.arange(85).expand(4, -1) % 3
        x = torch.randn(4, 85, 7, dtype=torch.float64) + 0.8 * y[..., None]
        data = Tasks(x, y.double(), torch.zeros(4, 7, dtype=torch.bool))
        columns = torch.randperm(7)
        moved = Tasks(data.x[:, :, columns], data.y, data.categorical[:, columns])
        a, b = (classify(model, d, 80)[0].exp() for d in (data, moved))
        self.assertTrue(torch.allclose(a, b, atol=1e-8))


@unittest.skipUnless(os.path.isdir(REFERENCE), "no reference implementation here")
class Reference(unittest.TestCase):
    def test_golden_answers_agree_with_the_reference(self):
        sys.path.insert(0, REFERENCE)
        try:
            from reference import Model, build
        finally:
            sys.path.remove(REFERENCE)

        def rows(values):
            return np.array([[math.nan if v is None else v for v in row] for row in values], float)

        with tempfile.TemporaryDirectory() as folder:
            model = random_model("tabular_class").float()
            path, out = os.path.join(folder, "class.safetensors"), os.path.join(
                folder, "golden.json")
            write_model(path, model.config, model.state_dict())
            golden(path, {"name": "classes"}, out)
            with open(out) as f:
                cases = json.load(f)["cases"]
            self.assertGreater(len(cases), 3)
            for case in cases:
                kinds = ["categorical" if c else "numeric" for c in case["categorical"]]
                encoding = build(Model.open(path), rows(case["x"]), np.array(case["y"]),
                                 case["prefix_rows"], kinds, case["classes"])
                for answer, expected in zip(encoding.predict(rows(case["query_x"])),
                                            case["log_probability"]):
                    np.testing.assert_allclose(np.log(answer.params[:case["classes"]]), expected,
                                               atol=1e-6)
                    self.assertEqual(answer.params[case["classes"]:].sum(), 0)


class Training(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_continuing_gives_the_same_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = Run(config("tabular_class"), folder)
            for _ in range(4):
                whole.train_step(0)
            half = Run(config("tabular_class"), folder)
            for _ in range(2):
                half.train_step(0)
            half.save()
            rest = Run(config("tabular_class"), folder)
            self.assertTrue(rest.load())
            for _ in range(2):
                rest.train_step(0)
            for key, value in whole.average.items():
                self.assertTrue(torch.equal(value, rest.average[key]), key)

    def test_begins_with_the_trunk_of_another_model(self):
        with tempfile.TemporaryDirectory() as folder:
            other = Run(config("tabular_small"), os.path.join(folder, "other"))
            other.save()
            fresh = begin(config("tabular_class"), os.path.join(folder, "new"),
                          other.path("latest"))
            run = Run(config("tabular_class"), os.path.join(folder, "new"))
            self.assertTrue(run.load())
            self.assertEqual({name.split(".")[0] for name in fresh}, {"head", "embed"})
            for name, value in other.average.items():
                if name.startswith(("layer.", "final_norm", "sinks", "embed.x.out")):
                    self.assertTrue(torch.equal(run.average[name], value), name)
            slots, given = run.average["embed.x.slot.weight"], other.average["embed.x.slot.weight"]
            shared = [0, 1, 2, 4, 5, 6, 7]
            self.assertTrue(torch.equal(slots[..., shared], given[..., shared]))
            self.assertEqual(float(slots[..., 3].abs().max()), 0.0)

    def test_answers_lean_on_the_regression_but_training_does_not(self):
        model, plain = random_model("tabular_class"), random_model("tabular_class")
        model.share, plain.share = 1.0, 0.0
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(2, 80, 4, generator=generator, dtype=torch.float64)
        y = torch.stack(
            [(x[0, :, 0] > 0).double(), torch.randint(0, 2, (80,), generator=generator).double()])
        drawn = Tasks(x, y, torch.zeros(2, 4, dtype=torch.bool))
        inputs, classes, _ = prepare_classes(drawn, 60, 60, model.config)
        said, quality = inputs.x[:, 60:, -11:-1], inputs.x[:, 0, -1] / math.log(2)
        self.assertGreater(float(quality[0]), 0.7)    # planes tell these classes apart
        self.assertLess(float(quality[1]), 0.0)       # and nothing those
        leaning, alone = (classify(m, drawn, 60)[0] for m in (model, plain))
        share = float(quality[0])
        expected = (1 - share) * alone[0, :, :2] + share * said[0, :, :2]
        torch.testing.assert_close(leaning[0, :, :2], expected.log_softmax(-1), rtol=0, atol=1e-9)
        torch.testing.assert_close(leaning[1], alone[1], rtol=0, atol=0)
        model.train()
        torch.testing.assert_close(classify(model, drawn, 60)[0], alone, rtol=0, atol=0)
        bad = config("tabular_class")["model"]
        bad["embedder"]["x"]["logistic"] = False
        with self.assertRaisesRegex(ValueError, "head.logistic"):
            make_model(bad)

    def test_starts_from_a_model_that_sees_less(self):
        """What regressions say comes in with weights of zero: the grown model, but for its head's
        share, gives the answers of the one it starts from.
        """
        full, less = config("tabular_class"), config("tabular_class")
        for c in (full, less):
            del c["model"]["head"]["logistic"]
        less["model"]["embedder"]["x"]["logistic"] = False
        drawn = tasks("classes", 3, 40)
        with tempfile.TemporaryDirectory() as folder:
            runs = [Run(c, os.path.join(folder, name))
                    for c, name in ((less, "less"), (full, "full"))]
            runs[0].model.embed.x.ridge.weight.data.normal_()
            runs[0].average = {k: v.detach().clone() for k, v in runs[0].model.state_dict().items()}
            runs[0].save()
            runs[1].start(runs[0].path("latest"))
            answers = [classify(run.model.double().eval(), drawn, 30)[0] for run in runs]
            torch.testing.assert_close(*answers, rtol=0, atol=1e-12)
            with self.assertRaises(SystemExit):
                runs[1].save()
                runs[0].start(runs[1].path("latest"))


class Evaluation(unittest.TestCase):
    def test_scores(self):
        y = np.array([0, 1, 1, 0])
        sure, _ = score(np.eye(2)[y], y)
        self.assertEqual((sure["log_loss"], sure["accuracy"], sure["brier"]), (0.0, 1.0, 0.0))
        half, pairs = score(np.full((4, 2), 0.5), y)
        self.assertAlmostEqual(half["log_loss"], math.log(2))
        self.assertAlmostEqual(half["brier"], 0.5)
        self.assertAlmostEqual(calibration_error(pairs), 0.0)
        self.assertAlmostEqual(calibration_error(np.array([[0.9, 1], [0.9, 0]])), 0.4)

    def test_class_columns_of_a_table(self):
        tables = dict(measure_classes.class_tables(os.path.join(os.path.dirname(__file__), "data")))
        table = tables["heights kind"]
        self.assertEqual(table.columns, ["day", "site", "depth", "salt", "level"])
        self.assertEqual(sorted(set(table.y)), list(range(len(set(table.y)))))
        self.assertEqual(table.categorical.tolist(), [False, True, False, False, False])
        context, asked = measure_classes.split(table, 40, 60, 3)
        self.assertEqual(len(context.y), 40)
        self.assertTrue(set(asked.y) <= set(context.y))

    def test_kind_of_a_model_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, wanted in (("tabular_class", True), ("tabular_small", False)):
                model = random_model(name).float()
                path = os.path.join(folder, name)
                write_model(path, model.config, model.state_dict())
                self.assertEqual(measure_classes.is_classifier_file(path), wanted)

    def test_comparison_on_the_prior(self):
        model = random_model("tabular_class").float()
        splits = list(evaluate_classes.prior_splits(8, 20, queries=10))
        self.assertEqual(len(splits), 8)
        result = evaluate_classes.compare(model, splits, {"frequencies": Frequencies})
        self.assertEqual(set(result), {"model", "frequencies"})
        gain = result["frequencies"]["log_loss"] - result["model"]["log_loss"]
        self.assertAlmostEqual(gain, result["frequencies"]["behind_model"], places=9)


if __name__ == "__main__":
    unittest.main()
