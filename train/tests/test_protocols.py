"""The protocols of the papers' large tasks: each is measured with a small random model."""

import json
import math
import os
import tempfile
import unittest
from unittest import mock

import torch

from pg_posterior_train import protocols
from pg_posterior_train.classes import classify
from pg_posterior_train.model import make_model
from pg_posterior_train.predict import predict
from pg_posterior_train.prior import fields
from pg_posterior_train.protocol_tasks import draw, independent
from pg_posterior_train.tasks import Tasks

from .common import CONFIGS, is_protocol
from .test_configurations import shrunk
from .test_paper_priors import write_png

LARGE = ("dva_5d", "dva_feeder", "feeder_all", "multisensory", "scan_2d", "scan_images", "sir")
TABLES = ("set_encoder", "tables_cnp", "tables_lbanp", "tables_tnpd", "tabular")
# What each table has beside "factorised".
SHOWN = {
    "dva_5d": {"squared error", "exact, factorised", "exact, squared error", "below exact"},
    "dva_feeder": {"squared error", "absolute error"},
    "feeder_all": {"squared error", "absolute error"},
    "multisensory": {"squared error", "K = 16", "K = 1"},
    "scan_2d": {"squared error", "exact, factorised", "exact, squared error", "below exact"},
    "scan_images": {"squared error", "negative log likelihood per pixel"},
    "sir": {"accuracy", "negative log likelihood per pixel"},
}


def evaluation(name):
    with open(os.path.join(CONFIGS, name + ".json"), encoding="utf-8") as f:
        return json.load(f)["evaluation"]


def random_model(name):
    torch.manual_seed(1)
    return make_model(shrunk(name)["model"]).eval()


def small(protocol, folder=None):
    """The same with few rows of small grids."""
    prior = dict(protocol["prior"])
    if "size" in prior:
        prior["size"] = 8
    if folder and "folder" in prior:
        prior["folder"] = folder
    return {**protocol, "prior": prior, "context": [12], "targets": 4, "orders": 2}


class Protocols(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for i in range(3):
            pixels = torch.randint(0, 256, (9, 9, 3), generator=torch.Generator().manual_seed(i))
            write_png(os.path.join(self.folder.name, f"{i}.png"), pixels, i)

    def test_each_gives_finite_figures(self):
        for name in LARGE:
            model = random_model(name)
            for protocol in evaluation(name):
                with self.subTest(protocol["title"]):
                    table, = protocols.evaluate(model, [small(protocol, self.folder.name)], 3)
                    (label, row), = table["rows"].items()
                    self.assertEqual(label, "12")
                    self.assertEqual(set(row), {"factorised"} | SHOWN[name])
                    for one in row.values():
                        self.assertTrue(math.isfinite(one["mean"]) and one["se"] >= 0)
                    self.assertIn(protocol["title"], protocols.markdown([table]))

    def test_every_model_of_a_paper_has_one(self):
        for file in sorted(os.listdir(CONFIGS)):
            with open(os.path.join(CONFIGS, file), encoding="utf-8") as f:
                config = json.load(f)
            tables = config.get("prior", {}).get("name") in protocols.TABLES
            if file == "toy.json" or is_protocol(file[:-5]):
                continue
            self.assertEqual(tables, not config.get("evaluation"), file)
            for protocol in config.get("evaluation", []):
                self.assertEqual(protocols.features_of(protocol),
                                 config["model"]["inputs"]["features"], file)

    def test_figures_are_those_of_the_answers(self):
        """Densities are per target, errors over all of them, pixels have all their colours."""
        protocol = {**small(evaluation("feeder_all")[0]), "per_pixel": True}
        model = random_model("feeder_all")
        data, _ = draw(protocol, torch.Generator().manual_seed(3), 2, 12)
        answer, asked = predict(model, data, 12), data.y[:, 12:]
        row = independent(model, protocol, data, 12)
        density = answer.log_prob(asked).double()
        difference = (answer.moments()[0] - asked).double()
        torch.testing.assert_close(row["factorised"], density.mean(1) / 32)
        torch.testing.assert_close(row["negative log likelihood per pixel"], -density.mean(1))
        torch.testing.assert_close(row["squared error"], difference.square().mean((1, 2)))
        torch.testing.assert_close(row["absolute error"], difference.abs().mean((1, 2)))

    def test_one_target_is_asked_about_each(self):
        protocol = small(evaluation("dva_feeder")[-1])
        model = random_model("dva_feeder")
        data, _ = draw(protocol, torch.Generator().manual_seed(3), 2, 12)
        self.assertEqual(data.y.shape, (2, 16, 32))
        each = [predict(model, Tasks(data.x, data.y[..., d], data.categorical), 12)
                .log_prob(data.y[:, 12:, d]).double().mean(1) for d in range(32)]
        torch.testing.assert_close(independent(model, protocol, data, 12)["factorised"],
                                   torch.stack(each).mean(0))

    def test_states_that_no_answer_names_are_left_out(self):
        protocol = small(evaluation("sir")[0])
        model = random_model("sir")
        data, _ = draw(protocol, torch.Generator().manual_seed(3), 2, 12)
        data.y[:, :12] = torch.arange(12) % 2
        data.y[:, 12:] = torch.tensor([0.0, 1.0, 2.0, 1.0])
        log_p = classify(model, data, 12)[0]
        wanted = (log_p[:, 0, 0] + log_p[:, 1, 1] + log_p[:, 3, 1]).double() / 3
        row = independent(model, protocol, data, 12)
        torch.testing.assert_close(row["factorised"], wanted)
        right = log_p[:, [0, 1, 3]].argmax(2) == torch.tensor([0, 1, 1])
        torch.testing.assert_close(row["accuracy"], right.double().mean(1))

    def test_exact_fields_know_each_lengthscale(self):
        """What the process says is calibrated, although every task has its own lengthscale."""
        options = dict(evaluation("scan_2d")[0]["prior"])
        drawn, known = fields.draw(torch.Generator().manual_seed(2), 400, 60, **options)
        self.assertGreater(float(known["lengthscale"].std()), 0.05)
        mean, sd = fields.exact(drawn, 50, noise=options["noise"], **known)
        z = (drawn.y[:, 50:] - mean) / sd
        self.assertAlmostEqual(float(z.square().mean()), 1.0, delta=0.06)
        turned = {**known, "lengthscale": known["lengthscale"].flip(0)}
        mean, sd = fields.exact(drawn, 50, noise=options["noise"], **turned)
        self.assertGreater(float(((drawn.y[:, 50:] - mean) / sd).square().mean()), 1.2)

    def test_models_of_tables_are_told_where_to_go(self):
        for name in TABLES:
            with self.assertRaises(SystemExit) as stop:
                protocols.find_config(name + ".safetensors", None)
            self.assertIn("DATA=<folder of CSV files>", str(stop.exception))
        with self.assertRaises(SystemExit) as stop:
            protocols.find_config("toy.safetensors", None)
        self.assertNotIn("DATA", str(stop.exception))

    def test_pictures_need_a_folder(self):
        with self.assertRaisesRegex(SystemExit, "no folder pictures of PNG files"):
            protocols.use_folder(evaluation("scan_images"), None)
        one, = protocols.use_folder(evaluation("scan_images"), self.folder.name)
        self.assertEqual(one["prior"]["folder"], self.folder.name)
        with self.assertRaisesRegex(SystemExit, "need no folder"):
            protocols.use_folder(evaluation("sir"), self.folder.name)

    def test_large_tasks_are_drawn_in_smaller_batches(self):
        model = random_model("scan_2d")
        protocol = small(evaluation("scan_2d")[0])
        asked = []

        def count(drawn, generator, tasks, given):
            asked.append(tasks)
            return draw(drawn, generator, tasks, given)

        with mock.patch("pg_posterior_train.protocol_tasks.PAIRS", 600), \
                mock.patch("pg_posterior_train.protocols.draw", count):
            protocols.evaluate(model, [protocol], 5)
        self.assertEqual(asked, [2, 2, 2])


if __name__ == "__main__":
    unittest.main()
