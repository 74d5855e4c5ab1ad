"""Descriptions of tables, scores, and the commands that people type. What needs a server is skipped
where there is none.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec

import numpy as np

from pg_posterior_train import baselines, functions, measure
from pg_posterior_train.tables import BadTable, descriptions, hours, read_description, read_table

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def heights():
    (name, d), = descriptions(DATA)
    return read_table(DATA, name, d)


class Tables(unittest.TestCase):
    def write(self, folder, name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))

    def test_heights(self):
        table = heights()
        self.assertEqual(table.columns, ["day", "site", "kind", "depth", "salt"])
        self.assertEqual(table.categorical.tolist(), [False, True, True, False, False])
        self.assertEqual(len(table.y), 156)               # four targets are missing
        self.assertTrue(np.all(np.diff(table.x[:, 0]) > 0))
        self.assertTrue(np.isnan(table.x[:, 4]).any() and not np.isnan(table.x[:, :4]).any())
        self.assertEqual(set(table.group), {"north", "south"})

    def test_made_up_table_is_reproducible(self):
        made = subprocess.run([sys.executable, os.path.join(DATA, "make.py")], capture_output=True,
                              text=True, check=True).stdout
        with open(os.path.join(DATA, "heights.csv"), encoding="utf-8") as f:
            self.assertEqual(made, f.read())

    def test_moments(self):
        self.assertEqual(hours("1970-01-02T01:00:00Z"), 25)
        self.assertEqual(hours("19700103"), 48)

    def test_descriptions_of_the_project_are_valid(self):
        folder = os.path.join(ROOT, "train", "tables")
        for name in os.listdir(folder):
            d = read_description(os.path.join(folder, name))
            self.assertFalse(os.path.isabs(d["file"]), name)
            self.assertTrue("splits" in d or "ordered" in d, name)

    def test_mistakes_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "t.csv", "a,b,y\n1,u,2\n2,v,3\n")
            cases = [({"file": "t.csv", "target": "z"}, "has no column 'z'.*it has a, b, y"),
                     ({"file": "t.csv", "target": "b"}, "target 'b' is not a number"),
                     ({"file": "t.csv", "target": "y", "features": ["c"]}, "has no column 'c'")]
            for d, message in cases:
                with self.assertRaisesRegex(BadTable, message):
                    read_table(folder, "t", d)
            self.write(folder, "t.json", {"file": "t.csv", "target": "y", "colour": 1})
            with self.assertRaisesRegex(BadTable, "unknown key 'colour'"):
                descriptions(folder)
            self.write(folder, "t.json", "{")
            with self.assertRaisesRegex(BadTable, "is not JSON"):
                descriptions(folder)
            self.write(folder, "t.json", {"file": "t.csv"})
            with self.assertRaisesRegex(BadTable, "needs \"file\" and \"target\""):
                descriptions(folder)
            self.write(folder, "t.csv", "a,b,y\n1,u\n")
            with self.assertRaisesRegex(BadTable, "not every row has 3 cells"):
                read_table(folder, "t", {"file": "t.csv", "target": "y"})
            contents = [("", "has no rows"), ("a,b,y\n", "has no rows"),
                        ("a,a,y\n1,2,3\n", "has two columns 'a'"),
                        ("a,b,y\n1,2,inf\n", "target 'y' is not a number"),
                        ("a,b,y\nthe 5th,2,3\n", "column 'a': it is a column of timestamps")]
            for text, message in contents:
                self.write(folder, "t.csv", text)
                with self.assertRaisesRegex(BadTable, message):
                    read_table(folder, "t", {"file": "t.csv", "target": "y", "time": ["a"]})
            with open(os.path.join(folder, "t.csv"), "wb") as f:
                f.write("a,y\n\u00e9,1\n".encode("latin-1"))
            with self.assertRaisesRegex(BadTable, "no CSV file in UTF-8"):
                read_table(folder, "t", {"file": "t.csv", "target": "y"})
            for splits in ("x", {"context": []}, {"context": [-5], "queries": 1, "repeats": 1}):
                self.write(folder, "t.json", {"file": "t.csv", "target": "y", "splits": splits})
                with self.assertRaisesRegex(BadTable, "splits needs"):
                    descriptions(folder)

    def test_a_byte_order_mark_is_no_name(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "t.csv", '\ufeffy,a\r\n1,"u\r\nv"\r\n2,w\r\n')
            table = read_table(folder, "t", {"file": "t.csv", "target": "y"})
            self.assertEqual((table.columns, table.y.tolist()), (["a"], [1.0, 2.0]))

    def test_a_table_that_no_split_fits(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "t.csv", "y,a\n1,2\n2,3\n")
            table = read_table(folder, "t", {"file": "t.csv", "target": "y", "splits": {
                "context": [64, 8], "queries": 20, "repeats": 1}})
            with self.assertRaisesRegex(BadTable, "t has 2 rows.*need 28"):
                measure.check_size(table)


class Scores(unittest.TestCase):
    def test_scores_of_a_known_gaussian(self):
        y = np.random.default_rng(0).standard_normal(4000)
        zero, one = np.zeros(4000), np.ones(4000)
        cdf = 0.5 * (1 + measure.erf(y / math.sqrt(2)))
        s = measure.summarise(
            [measure.scores(-0.5 * y ** 2 - 0.5 * math.log(2 * math.pi), zero, one, cdf, zero, y)])
        self.assertAlmostEqual(s["log_density"], -0.5 * (1 + math.log(2 * math.pi)), places=1)
        self.assertAlmostEqual(s["gaussian"], s["log_density"], places=9)
        self.assertAlmostEqual(s["gaussian_crps"], 1 / math.sqrt(math.pi), delta=0.02)
        for level in (50, 80, 90):
            self.assertAlmostEqual(s[f"coverage_{level}"], level / 100, delta=0.02)
        self.assertAlmostEqual(s["log_density_se"], math.sqrt(0.5 / 4000), delta=0.002)
        self.assertAlmostEqual(s["rmse"], 1, delta=0.03)

    def test_crps_of_a_baseline(self):
        """Against the integral of the squared distance between the distribution function and the
        step.
        """
        table = heights()
        context, queries = measure.split(table, 64, 5, 0)
        offset, scale = measure.unit(context)
        s = measure.baseline_scores(baselines.Constant, context, queries, offset, scale)
        c = baselines.Constant()
        c.fit(None, (context.y - offset) / scale)
        t = np.linspace(-12, 12, 40001)
        below = 0.5 * (1 + measure.erf((t - c.mean) / c.sd / math.sqrt(2)))
        for crps, y in zip(s["crps"], (queries.y - offset) / scale):
            self.assertAlmostEqual(crps, float(np.sum((below - (t >= y)) ** 2) * (t[1] - t[0])),
                                   places=3)

    def test_splits_do_not_overlap_and_repeat(self):
        table = heights()
        a, b = measure.split(table, 64, 40, 1), measure.split(table, 64, 40, 1)
        self.assertTrue(np.array_equal(a[0].x, b[0].x, equal_nan=True))
        self.assertEqual(len(set(a[0].x[:, 0]) & set(a[1].x[:, 0])), 0)

    def test_missing_cells_grow(self):
        table = heights()
        few, many = measure.without_cells(table, 0.1, 0), measure.without_cells(table, 0.5, 0)
        self.assertTrue(np.all(np.isnan(many.x) | ~np.isnan(few.x)))
        self.assertAlmostEqual(np.isnan(many.x[:, :4]).mean(), 0.5, delta=0.06)
        self.assertTrue(np.array_equal(measure.without_cells(table, 0.0, 0).x, table.x,
                                       equal_nan=True))

    def test_queries_lack_one_cell(self):
        table = heights()
        for what, kind in (("number", False), ("label", True), ("unknown label", True)):
            asked = measure.lacking(table, what, 0)
            changed = ~((asked.x == table.x) | (np.isnan(asked.x) & np.isnan(table.x)))
            # A cell that is missing already may be the one.
            self.assertLessEqual(int(changed.sum(1).max()), 1)
            self.assertGreater(int(changed.sum()), len(table.y) // 2)
            self.assertEqual(set(table.categorical[changed.any(0)]), {kind})
            known = set(np.unique(table.x[:, table.categorical]))
            found = asked.x[changed]
            self.assertTrue(np.isnan(found).all() if what != "unknown label"
                            else not known & set(found))
        self.assertTrue(np.array_equal(measure.lacking(table, "nothing", 0).x, table.x,
                                       equal_nan=True))
        numbers = table.rows(np.arange(5))
        numbers.categorical = np.zeros(5, bool)
        self.assertIsNone(measure.lacking(numbers, "label", 0))

    def test_functions_are_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            functions.write(folder)
            self.assertEqual([name for name, _ in descriptions(folder)],
                             sorted(functions.FUNCTIONS))
            for name, description in descriptions(folder):
                table = read_table(folder, name, description)
                x, y = functions.make(name)
                self.assertEqual(table.x.shape, x.shape)
                self.assertTrue(np.allclose(table.y, y, atol=1e-4))
                self.assertEqual(table.categorical.sum(), name == "labelled")
                noise = functions.FUNCTIONS[name][3]
                self.assertAlmostEqual(float(y.std()), math.sqrt(1 + noise ** 2), delta=0.05)

    @unittest.skipUnless(find_spec("lightgbm") and find_spec("sklearn"),
                         "LightGBM or scikit-learn is missing")
    def test_boosted_trees(self):
        x, y = functions.make("steps")
        trees = baselines.Boosted()
        trees.fit(x[:400], y[:400])
        mean, sd = trees.predict(x[400:])
        error = math.sqrt(((mean - y[400:]) ** 2).mean())
        self.assertLess(error, 0.5)
        self.assertAlmostEqual(error / sd[0], 1, delta=0.25)

    def test_noise_columns(self):
        table = heights()
        wide = measure.with_noise(table, 3, 0)
        self.assertEqual(wide.x.shape[1], 8)
        self.assertEqual(len(wide.columns), len(wide.categorical))
        self.assertTrue(np.array_equal(wide.x[:, :5], table.x, equal_nan=True))

    def test_blocks_follow_their_context(self):
        for context, block in measure.blocks(heights(), 32, 6, 8):
            self.assertEqual((len(context.y), len(block.y)), (32, 6))
            self.assertEqual(len(set(context.group) | set(block.group)), 1)
            self.assertLess(context.x[-1, 0], block.x[0, 0])


def server_at_hand():
    return shutil.which(os.environ.get("PG_CONFIG", "pg_config")) is not None


@unittest.skipUnless(server_at_hand(), "no PostgreSQL here")
class ThroughSQL(unittest.TestCase):
    def test_whole_evaluation(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "scores.json")
            environment = {**os.environ, "MODEL": "tabular_small", "DATA": DATA, "OUT": out,
                           "OPTIONS": "--repeats 2 --queries 24", "PYTHON": sys.executable}
            done = subprocess.run([os.path.join(ROOT, "train", "run"), "evaluate"],
                                  capture_output=True, text=True, env=environment, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as f:
                result = json.load(f)["tables"]["heights"]
            self.assertIn("| heights 64 | ridge |", done.stdout)
            self.assertEqual(set(result["missing"]), {f"{v:g}" for v in measure.MISSING})
            self.assertEqual(set(result["noise"]), {f"{v:g}" for v in measure.NOISE})
            row = result["splits"]["64"]
            self.assertEqual(row["model"]["queries"], 48)
            self.assertGreater(row["model"]["log_density"], row["constant"]["log_density"])
            self.assertLess(result["torch"], 1e-3)
            self.assertEqual(result["appended"]["1"]["cost"], 0)
            self.assertEqual(result["ordered"]["blocks"], 2)
            self.assertTrue(
                all(math.isfinite(result["ordered"][k]) for k in ("joint", "marginals", "ridge")))


class Commands(unittest.TestCase):
    def run_it(self, what, **variables):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("MODEL", "DATA", "OUT", "MINUTES", "OPTIONS")}
        return subprocess.run([os.path.join(ROOT, "train", "run"), what], capture_output=True,
                              text=True, env={**environment, **variables}, check=False)

    def test_messages(self):
        cases = [("train", {}, "make train needs a model.*Known models: .*gp1d"),
                 ("train", {"MODEL": "nope"},
                  "no configuration train/configs/nope.json.*Known models: "),
                 ("train", {"MODEL": "gp1d", "MINUTES": "soon"}, "MINUTES must be a number"),
                 ("evaluate", {}, "make evaluate needs a model"),
                 ("evaluate", {"MODEL": "nope"}, "neither models/nope.safetensors nor a file"),
                 ("evaluate", {"MODEL": "toy", "DATA": "/nowhere"}, "no folder /nowhere")]
        for what, variables, message in cases:
            done = self.run_it(what, **variables)
            self.assertEqual(done.returncode, 2, (what, variables))
            self.assertRegex(done.stderr.replace("\n", " "), message)

    def test_missing_pytorch_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            # A Python that has nothing: every module asked for is missing.
            fake = os.path.join(folder, "python3")
            with open(fake, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\nexit 1\n")
            os.chmod(fake, 0o755)
            tree = os.path.join(folder, "tree")
            shutil.copytree(os.path.join(ROOT, "train"), os.path.join(tree, "train"),
                            ignore=shutil.ignore_patterns("runs"))
            os.makedirs(os.path.join(tree, "test"))
            with open(os.path.join(tree, "test", "python"), "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\nexit 127\n")
            os.chmod(os.path.join(tree, "test", "python"), 0o755)
            done = subprocess.run([os.path.join(tree, "train", "run"), "train"],
                                  capture_output=True, text=True, check=False,
                                  env={**os.environ, "MODEL": "gp1d", "MINUTES": "1"})
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr.replace("\n", " "),
                             "Training needs torch.*apt install python3-torch.*pip install torch")

    def test_training_writes_a_model(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = os.path.join(folder, "tree")
            shutil.copytree(os.path.join(ROOT, "train"), os.path.join(tree, "train"),
                            ignore=shutil.ignore_patterns("runs"))
            os.makedirs(os.path.join(tree, "test"))
            os.makedirs(os.path.join(tree, "models"))
            shutil.copy(os.path.join(ROOT, "test", "python"), os.path.join(tree, "test", "python"))
            done = subprocess.run([os.path.join(tree, "train", "run"), "train"],
                                  capture_output=True, text=True, check=False,
                                  env={**os.environ, "MODEL": "toy", "MINUTES": "0.02",
                                       "DEVICE": "cpu", "OUT": "", "PYTHON": sys.executable})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.exists(os.path.join(tree, "models", "toy.safetensors")))
            self.assertTrue(os.path.exists(os.path.join(tree, "train", "runs", "toy", "latest.pt")))


if __name__ == "__main__":
    unittest.main()
