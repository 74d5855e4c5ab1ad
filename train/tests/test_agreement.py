"""Whatever the trainer accepts trains, exports and agrees with the engine."""

import math
import os
import sys
import tempfile
import unittest

import torch

from pg_posterior_train.classes import (
    class_chain,
    is_classifier,
    log_probabilities,
    prepare_classes,
)
from pg_posterior_train.export import load_model
from pg_posterior_train.mixture import Mixture
from pg_posterior_train.normalise import ask, prepare
from pg_posterior_train.predict import Prediction, chain
from pg_posterior_train.prior import PRIORS
from pg_posterior_train.questions import training_questions
from pg_posterior_train.tasks import Tasks
from pg_posterior_train.trainer import Run

from .models import CLASSES, EXTRA, REFERENCE, ROWS, TOOL, configuration, covering_models

TOLERANCE = 1e-4

if os.path.isdir(REFERENCE):
    sys.path.insert(0, REFERENCE)
    from checking import Tool, cells, table
    from heads import Mixture as Mixtures
    from make_families import family
    from random_numbers import value_uniforms

    sys.path.remove(REFERENCE)


def sample(generator, tasks, rows, shared=None, model=None):
    """A prior for any of the models: one category, some missing cells and up to 11 columns where
    the model takes them.
    """
    any_columns = "max_features" in model["inputs"]
    # more are an error of a set encoder
    few = model["embedder"]["kind"] == "set" and model["inputs"]["max_features"] - 1
    features = (few or 11) if any_columns else model["inputs"]["features"]
    x = 4 * torch.rand(tasks, rows, features, generator=generator) - 2
    y = (
        torch.sin(2 * x[..., 0])
        + 0.3 * x[..., -1]
        + 0.3 * torch.randn(tasks, rows, generator=generator)
    )
    categorical = torch.zeros(tasks, features, dtype=torch.bool)
    if any_columns:
        categorical[:, 3] = True
        x[..., 3] = torch.randint(0, 3, (tasks, rows), generator=generator).float()
        x[..., 5] = torch.where(
            torch.rand(tasks, rows, generator=generator) < 0.3, torch.nan, x[..., 5]
        )
    if is_classifier(model):
        y = (y * 1.5 + CLASSES / 2).floor().clamp(0, CLASSES - 1)
        y[:, :2] = torch.tensor(
            [0.0, CLASSES - 1]
        )  # the number of classes does not depend on later rows
        y[:, 2:CLASSES] = torch.arange(1.0, CLASSES - 1)
    return Tasks(x, y, categorical)


def trained(model, folder, steps=4):
    """A run with random weights everywhere, also where training starts from zero, that has made a
    few steps.
    """
    run = Run(configuration(model), folder)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in run.model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator))
    run.average = {k: v.detach().clone() for k, v in run.model.state_dict().items()}
    before = run.model.head[0].weight.detach().clone()
    losses = [run.train_step(0)[0] for _ in range(steps)]
    assert all(math.isfinite(loss) for loss in losses) and run.skipped == 0, losses
    assert not torch.equal(before, run.model.head[0].weight)
    return run


def fixed_tasks(model, rows=17, seed=3):
    drawn = sample(torch.Generator().manual_seed(seed), 1, rows, model=model)
    return Tasks(drawn.x.double(), drawn.y.double(), drawn.categorical)


class Answers:
    """What the engine says of a task with this model."""

    def __init__(self, tool, model, tasks):
        self.tool, self.model = tool, model
        self.x, self.y = tasks.x[0].numpy(), tasks.y[0].numpy()
        self.common = (
            {"kernels": "reference", "classes": CLASSES}
            if is_classifier(model)
            else {"kernels": "reference"}
        )
        if "max_features" in model["inputs"]:
            self.common["kinds"] = ["categorical" if c else "numeric" for c in tasks.categorical[0]]

    def ask(self, rows, prefix, **questions):
        answer = self.tool.ask(
            context=table(self.x[:rows], self.y[:rows]), prefix=prefix, **self.common, **questions
        )
        assert "error" not in answer, answer
        return answer

    def predict(self, rows, prefix, query):
        """Parameters of the distribution of one row."""
        return self.ask(rows, prefix, queries=cells(self.x[query : query + 1]))["params"][0]


def parameters(outputs, model, center, scale, classes):
    """Parameters [M, …] as the engine has them: weights, means, standard deviations, or
    probabilities.
    """
    if is_classifier(model):
        return log_probabilities(outputs, classes)[0].exp()
    mixture = Mixture(outputs, model["head"])
    parts = [mixture.log_weight.exp(), center + scale * mixture.mean, scale.abs() * mixture.sd]
    return torch.cat(parts[1:] if model["head"]["kind"] == "gaussian" else parts, -1)[0]


@unittest.skipUnless(
    os.path.exists(TOOL) and os.path.isdir(REFERENCE), "the engine's tool is not built"
)
class Agreement(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        PRIORS["any"] = sample
        self.addCleanup(PRIORS.pop, "any")

    def near(self, got, wanted, what):
        got, wanted = torch.as_tensor(got, dtype=torch.float64), torch.as_tensor(
            wanted, dtype=torch.float64
        )
        self.assertEqual(got.shape, wanted.shape, what)
        off = ((got - wanted).abs() / (1 + wanted.abs())).max()
        self.assertLess(float(off), TOLERANCE, what)

    def questions_of_training(self, network, engine, tasks):
        """What a training step computes for each of its queries is what the engine answers to that
        question.
        """
        model = network.config
        prefixes = (
            [0]
            if model["context"] == "causal"
            else [
                max(model["min_rows"], 3),
                max(model["min_rows"], 0 if model["attention"]["sinks"] else 1),
                ROWS,
            ]
        )
        if model["context"] == "prefix-causal":
            prefixes.append(max(model["min_rows"] - 2, 0 if model["attention"]["sinks"] else 1))
        total = ROWS + EXTRA
        short = Tasks(tasks.x[:, :total], tasks.y[:, :total], tasks.categorical)
        for prefix in prefixes:
            asked = training_questions(model, ROWS, total, prefix)
            classes = torch.tensor([CLASSES])
            inputs = (
                prepare_classes(short, total, asked.first, model)[0]
                if is_classifier(model)
                else prepare(short, asked.first, model)
            )
            with torch.no_grad():
                said = parameters(
                    ask(network, inputs, asked), model, inputs.center, inputs.scale, classes
                )
            for m in range(0, len(asked.visible), 2):
                seen, query = int(asked.visible[m]), asked.first + m
                self.assertTrue(prefix <= seen <= query and seen >= model["min_rows"])
                self.near(
                    engine.predict(seen, prefix, query),
                    said[m],
                    f"row {query} given {seen} rows, prefix {prefix}",
                )

    def chains(self, network, engine, tasks, given=7):
        """Joint densities and draws, over three blocks where there is a limit of 3."""
        model, total = network.config, tasks.y.shape[1]
        x, y = engine.x[given:], engine.y[given:]
        if is_classifier(model):
            log_p, _, true, _ = class_chain(network, tasks, given)
            density = log_p.gather(2, true[..., None])[0, :, 0]
        else:
            density = chain(network, tasks, given).log_prob(tasks.y[:, given:])[0]
        answer = engine.ask(
            given, "whole", score=table(x, y), sample={**table(x), "draws": 1, "seed": 5}
        )
        self.near(answer["per_row"], density, "chain")
        drawn = tasks.y.clone()
        drawn[0, given:] = torch.tensor(answer["draws"][0])
        if is_classifier(model):
            return
        p = chain(network, Tasks(tasks.x, drawn, tasks.categorical), given)
        values = []
        for step in range(total - given):
            weight, mean, sd = (
                v[0, step].numpy()
                for v in (p.mixture.log_weight.exp(), p.mixture.mean, p.mixture.sd)
            )
            values.append(
                Mixtures(weight, p.center.item() + p.scale.item() * mean, p.scale.item() * sd).draw(
                    *value_uniforms(5, 0, step)
                )
            )
        self.near(answer["draws"][0], values, "draws")

    def agrees(self, model):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            trained(model, folder).export(path)
            network, tasks = load_model(path, torch.float64), fixed_tasks(model)
            with Tool(TOOL, path) as tool:
                engine = Answers(tool, model, tasks)
                self.questions_of_training(network, engine, tasks)
                self.chains(network, engine, tasks)

    def test_every_pair_of_options(self):
        seen = 0
        for options, model in covering_models():
            with self.subTest(**options):
                seen += 1
                self.agrees(model)
        self.assertGreater(seen, 60)

    def test_set_encoders(self):
        for name in ("set", "set_power"):
            with self.subTest(name):
                self.agrees(family(name))


if __name__ == "__main__":
    unittest.main()
