"""Whatever the trainer refuses, it refuses by name before training, and the engine refuses it as
well or the trainer says that it is alone.
"""

import copy
import inspect
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import torch

from pg_posterior_train.config import ConfigError, check_config, check_model
from pg_posterior_train.export import write_model
from pg_posterior_train import trainer
from pg_posterior_train.config_priors import OPTIONS
from pg_posterior_train.prior import PRIORS, curves, fields
from pg_posterior_train.trainer import Run

from .common import is_protocol
from .models import CHOICES, REFERENCE, ROOT, TOOL, configuration, model_of, random_options, repair

if os.path.isdir(REFERENCE):
    sys.path.insert(0, REFERENCE)
    from checking import Tool

    sys.path.remove(REFERENCE)


@unittest.skipUnless(
    os.path.exists(TOOL) and os.path.isdir(REFERENCE), "the engine's tool is not built"
)
class Refusals(unittest.TestCase):
    """The trainer's check of a model part and the engine's are the same, but for what the trainer
    says that it does not train.
    """

    def engine_refuses(self, folder, model):
        path = os.path.join(folder, "model.safetensors")
        write_model(path, model, {"none": torch.zeros(1)})
        with Tool(TOOL, path) as tool:
            error = tool.ask()["error"]
        self.assertIn(error["status"], ("bad config", "bad tensor"))
        return error["message"] if error["status"] == "bad config" else None

    def both(self, folder, model):
        engine = self.engine_refuses(folder, model)
        try:
            check_model(model)
            mine = None
        except ConfigError as e:
            mine = str(e)
        self.assertEqual(
            engine is None, mine is None, f"engine: {engine}; trainer: {mine}; {json.dumps(model)}"
        )
        return mine

    def test_contradictions(self):
        rng = random.Random(4)
        with tempfile.TemporaryDirectory() as folder:
            refused = [
                self.both(
                    folder, model_of(random_options(rng) if i % 2 else repair(random_options(rng)))
                )
                for i in range(150)
            ]
        self.assertGreater(len({r for r in refused if r}), 12)
        self.assertGreater(sum(r is None for r in refused), 20)

    def test_widths_of_their_own(self):
        base = model_of(
            repair({**{name: values[0] for name, values in CHOICES.items()}, "embedder": "mlp"})
        )
        base["attention"] = {"bias": "all"}
        base["min_rows"] = 2
        widths = {"query_width": 6, "value_width": 9}
        with tempfile.TemporaryDirectory() as folder:
            for attention, heads, refused in (
                (widths, 3, None),
                ({"value_width": 9}, 3, "heads must divide width"),
                ({"value_width": 8}, 2, None),
                ({"value_width": 8, "sinks": 2}, 2, "excludes attention.sinks"),
                ({"value_hidden": [4], "log_scale": True}, 2, "excludes attention.log_scale"),
            ):
                model = copy.deepcopy(base)
                model["heads"] = heads
                model["attention"].update(attention)
                mine = self.both(folder, model)
                self.assertEqual(mine is None, refused is None, mine)
                if refused:
                    self.assertIn(refused, mine)

    def test_ranges_and_unknown_keys(self):
        base = model_of(
            repair(
                {
                    **{name: values[0] for name, values in CHOICES.items()},
                    "embedder": "mlp",
                    "buffer": 3,
                    "positions": 5,
                    "head": "mixture 3",
                    "std": "softplus",
                    "hidden": [6],
                }
            )
        )
        wrong = [
            (("format",), 2),
            (("width",), 4097),
            (("width",), 7.0),
            (("width",), True),
            (("layers",), 0),
            (("layers",), 129),
            (("heads",), 3),
            (("feedforward",), 16385),
            (("norm", "eps"), 1e-31),
            (("norm", "eps"), 2),
            (("norm", "eps"), 0),
            (("chain", "buffer"), 0),
            (("chain", "mask"), "none"),
            (("attention", "sinks"), 65),
            (("embedder", "x", "hidden"), [6] * 9),
            (("embedder", "roles"), 1),
            (("embedder", "positions"), 1),
            (("embedder", "x", "kind"), "other"),
            (("head", "components"), 1025),
            (("head", "floor"), -1),
            (("head", "kind"), "other"),
            (("description",), 3),
            (("surplus",), 1),
            (("norm", "surplus"), 1),
            (("min_rows",), 1000001),
            (("inputs", "features"), 1025),
            (("inputs", "clip"), -1),
            (("target", "center"), 1),
            (("activation",), "silu"),
        ]
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(self.both(folder, base))
            for path, value in wrong:
                with self.subTest(path=path, value=value):
                    model = json.loads(json.dumps(base))
                    inner = model
                    for key in path[:-1]:
                        inner = inner[key]
                    inner[path[-1]] = value
                    self.assertIsNotNone(self.both(folder, model))
                    if path != ("heads",):
                        with self.assertRaisesRegex(ConfigError, path[-1]):
                            check_model(model)

    def test_what_the_format_knows_and_the_trainer_does_not(self):
        tokens = model_of(
            repair({**{name: values[0] for name, values in CHOICES.items()}, "embedder": "rows"})
        )
        tokens["embedder"]["x"]["tokens"] = {
            "width": 4,
            "layers": 1,
            "heads": 1,
            "feedforward": 4,
            "readouts": 1,
        }
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(self.engine_refuses(folder, tokens))
            with self.assertRaisesRegex(ConfigError, "embedder.x.tokens.*not to this trainer"):
                check_model(tokens)


class TrainingPart(unittest.TestCase):
    def model(self, **options):
        return model_of(
            repair(
                {
                    **{name: values[0] for name, values in CHOICES.items()},
                    "embedder": "mlp",
                    **options,
                }
            )
        )

    def refused(self, config, name):
        with self.assertRaisesRegex(ConfigError, name):
            check_config(config)

    def test_refusals(self):
        good = configuration(self.model())
        check_config(good)
        for key in ("seed", "shapes", "learning_rate", "warmup", "decay", "clip", "ema", "prefix"):
            less = json.loads(json.dumps(good))
            del less["training"][key]
            self.refused(less, f"training.{key}: missing")
        for path, value in (
            ("surplus", 1),
            ("learning_rate", 0),
            ("ema", 1.5),
            ("shapes", []),
            ("warmup", "long"),
            ("curriculum", [{"prior": {}}]),
            ("curriculum", [{"prior": {"name": "gp1d"}, "until": 0}]),
        ):
            more = json.loads(json.dumps(good))
            more["training"][path] = value
            self.refused(more, path)
        for key, value in (("rows", 0), ("extra", 0), ("tasks", -1)):
            more = json.loads(json.dumps(good))
            more["training"]["shapes"][0][key] = value
            self.refused(more, key)
        low = json.loads(json.dumps(good))
        low["training"]["prefix"]["minimum"] = 0
        self.refused(low, "training.prefix.minimum")
        causal = configuration(self.model(context="causal"))
        check_config(causal)
        causal["training"]["prefix"] = {"minimum": 0, "none": 1, "all": 0}
        self.refused(causal, "training.prefix")

    def test_a_prior_that_does_not_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            for prior, model, name in (
                ({"name": "gp1d"}, self.model(features=2), "inputs.features is 2"),
                ({"name": "tabular", "max_features": 1}, self.model(), "rows"),
                ({"name": "gp1d"}, self.model(embedder="class mlp"), "classes 0 to 3"),
                ({"name": "nothing"}, self.model(), "prior.name"),
                ({"name": "gp1d", "surplus": 1}, self.model(), "surplus"),
            ):
                config = {**configuration(model), "prior": prior}
                with self.assertRaisesRegex(ConfigError, name):
                    for _ in range(20):
                        Run(config, folder).draw()

    def test_options_of_priors(self):
        good = configuration(self.model())
        for name, key, value, message in (
            ("gp1d", "surplus", 1, "unknown key"),
            ("curves", "kernels", ["rbf", "cubic"], "not one of rbf"),
            ("curves", "kernels", [], "empty"),
            ("curves", "kernels", "rbf", "not an array"),
            ("curves", "weights", [1, 2], "not 1 weights"),
            ("curves", "lengthscale", "short", "neither a number nor one of"),
            ("curves", "lengthscale", 0, "not a number from"),
            ("curves", "lengthscale", {"normal": [0, 1]}, "not one of uniform"),
            ("curves", "lengthscale", {"uniform": [1, 0.5]}, "above the second"),
            ("curves", "lengthscale", {"uniform": [1]}, "not two numbers"),
            ("curves", "lengthscale", {"beta": [3]}, "not two numbers"),
            ("curves", "lengthscale", {"beta": [3, 0.5]}, "not an integer"),
            ("curves", "noise", -1, "not a number from 0"),
            ("curves", "noise", {"uniform": [0, 1]}, "sawtooth waves alone"),
            ("curves", "inputs", [1, 2, 3], "not two numbers"),
            ("curves", "inputs", {"grid": [0, 1]}, "points: missing"),
            ("curves", "sawtooth", {"frequency": "high"}, "neither"),
            ("curves", "latent", 1, "neither true nor false"),
            ("curves", "functions", 0, "not an integer"),
            ("fields", "features", 1.5, "not an integer"),
            ("fields", "variance", float("nan"), "neither"),
            ("feeder", "spread", [0.5, 0.1], "above the second"),
            ("feeder", "bus", 1, "not an integer from 2 to 33"),
            ("images", "folder", 1, "not a text"),
            ("sir", "steps", [10, 5], "above the second"),
            ("sir", "seeds", 5000, "more than there are cells"),
            ("multisensory", "recalibration", None, "not a number"),
            ("numbers", "columns", 1, "not an integer from 2"),
            ("tabular", "families", ["forests"], "not one of scm"),
            ("tabular", "weights", {"forests": 1}, "unknown key"),
            ("tabular", "weights", {"linear": -1}, "not a number from 0"),
            ("tabular", "absent", 2, "not a number from 0 to 1"),
            ("classes", "max_features", 0, "not an integer from 1"),
        ):
            with self.subTest(prior=name, key=key, value=value):
                self.refused({**good, "prior": {"name": name, key: value}}, rf"prior\.{key}")
                self.refused({**good, "prior": {"name": name, key: value}}, message)
        alone = {"name": "tabular", "families": ["linear"], "weights": {"linear": 0}}
        self.refused({**good, "prior": alone}, "have the weight 0")
        self.refused({**good, "prior": {"name": "tabular", "families": ["factor"],
                                        "max_features": 4}}, "take 12")
        staged = json.loads(json.dumps(good))
        staged["prior"] = {"name": "gp1d"}
        staged["training"]["curriculum"] = [{"prior": {"surplus": 1}, "until": 0}]
        self.refused(staged, r"curriculum\[0\]\.prior\.surplus")

    def test_every_option_of_every_prior_is_read(self):
        self.assertEqual(set(OPTIONS), set(PRIORS) - {"any"})    # which tests add
        for name in OPTIONS:
            drawn = {"curves": curves.draw, "fields": fields.draw}.get(name, PRIORS[name])
            taken = inspect.signature(drawn).parameters
            own = set(taken) - {"generator", "tasks", "rows", "shared", "given"}
            self.assertEqual(set(OPTIONS[name]), own, name)

    def test_too_many_parameters(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(trainer, "MOST_PARAMETERS",
                                                                        100):
            with self.assertRaisesRegex(ConfigError, "parameters"):
                Run(configuration(self.model()), folder)

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "strict.json")
            for model, prior, name in (
                (self.model(context="causal"), "gp1d", 'chain.mask "strict"'),
                (self.model(features=2), "gp1d", "inputs.features is 2"),
            ):
                if model["context"] == "causal":
                    model["chain"]["mask"] = "strict"
                with open(path, "w") as f:
                    json.dump({**configuration(model), "prior": {"name": prior}}, f)
                done = subprocess.run(
                    [
                        sys.executable,
                        "-m",
                        "pg_posterior_train",
                        "train",
                        path,
                        "--steps",
                        "1",
                        "--run",
                        os.path.join(folder, "run"),
                    ],
                    cwd=os.path.join(ROOT, "train"),
                    capture_output=True,
                    text=True,
                )
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(name, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertFalse(os.path.exists(os.path.join(folder, "run", "latest.pt")))

    def test_bundled_configurations(self):
        folder = os.path.join(ROOT, "train", "configs")
        for name in sorted(os.listdir(folder)):
            with self.subTest(name), open(os.path.join(folder, name)) as f:
                read = json.load(f)
                if not is_protocol(name[:-5]):
                    check_config(read)
                    continue
                with self.assertRaisesRegex(ConfigError, "^model: missing$"):
                    check_config(read)


if __name__ == "__main__":
    unittest.main()
