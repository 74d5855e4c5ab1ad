"""Every family of docs/families.md trains, exports, and agrees with the float64 oracle of the page.
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch
from torch import nn

from pg_posterior_train.classes import class_chain, classify, is_classifier, prepare_classes
from pg_posterior_train.config import ConfigError, check_config, check_model
from pg_posterior_train.bars import Bars
from pg_posterior_train.evaluate import check_measurable
from pg_posterior_train.export import load_model
from pg_posterior_train.heads import Joint
from pg_posterior_train.model import make_model
from pg_posterior_train.normalise import ask, prepare
from pg_posterior_train.power import power_features
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.prior import PRIORS
from pg_posterior_train.questions import is_split, split_questions, training_questions
from pg_posterior_train.tasks import Tasks
from pg_posterior_train.trainer import Run, batch_loss

from .models import EXTRA, REFERENCE, ROWS, configuration

TOLERANCE = 1e-5

if os.path.isdir(REFERENCE):
    sys.path.insert(0, REFERENCE)
    import reference
    from make_families import FAMILIES, make_family
    from sets import PowerColumn

    # sums have no weights
    TRAINED = [n for n, model in FAMILIES.items() if model.get("architecture") != "sums"]
    sys.path.remove(REFERENCE)


def sample(generator, tasks, rows, shared=None, model=None):
    """A prior for any of the families."""
    features = model["inputs"].get("features", 5)
    count = model["target"].get("count", 1)
    x = 4 * torch.rand(tasks, rows, features, generator=generator) - 2
    noise = 0.3 * torch.randn(tasks, rows, count, generator=generator)
    y = torch.sin(2 * x[..., :1] + torch.arange(count)) + 0.3 * x[..., -1:] + noise
    categorical = torch.zeros(tasks, features, dtype=torch.bool)
    if is_classifier(model):
        room = model["head"]["classes"]
        y = (y * 1.5 + room / 2).floor().clamp(0, room - 1)
        y[:, :room, 0] = torch.arange(float(room))    # every class is known from the first rows on
    return Tasks(x, y[..., 0] if count == 1 else y, categorical)


def fixed_tasks(model, rows, seed=3):
    drawn = sample(torch.Generator().manual_seed(seed), 1, rows, model=model)
    return Tasks(drawn.x.double(), drawn.y.double(), drawn.categorical)


def trained(model, folder, steps=3):
    """A run with random weights everywhere that has made a few steps."""
    run = Run(configuration(model), folder)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in run.model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator))
        for name, p in run.model.named_parameters():
            if name.endswith("kernel.b"):
                p[..., 0].neg_()    # the formula takes its absolute value
    before = {k: v.clone() for k, v in run.model.named_parameters()}
    losses = [run.train_step(0)[0] for _ in range(steps)]
    assert all(np.isfinite(losses)) and run.skipped == 0, losses
    still = [k for k, v in run.model.named_parameters() if torch.equal(v, before[k])]
    assert not still, f"not trained: {still}"
    return run


@unittest.skipUnless(os.path.isdir(REFERENCE), "the oracle is not here")
class Families(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        PRIORS["any"] = sample
        self.addCleanup(PRIORS.pop, "any")

    def near(self, got, wanted, what):
        got, wanted = np.ravel(np.asarray(got)), np.ravel(np.asarray(wanted))
        self.assertEqual(got.shape, wanted.shape, what)
        off = np.max(np.abs(got - wanted) / (1 + np.abs(wanted)))
        self.assertLess(off, TOLERANCE, what)

    def encoding(self, oracle, tasks, rows, prefix, statistics):
        x, y = tasks.x[0, :rows].numpy(), tasks.y[0, :rows].numpy()
        built = reference.build(oracle, x[:statistics], y[:statistics], statistics)
        return reference.Encoding(oracle, x, y, prefix, built.statistics)

    def test_tensors_are_those_of_the_page(self):
        for name in TRAINED:
            with self.subTest(name):
                config, tensors = make_family(name)
                check_model(config)
                state = make_model(config).state_dict()
                self.assertEqual({k: tuple(v.shape) for k, v in state.items()},
                                 {k: v.shape for k, v in tensors.items()})

    def joint(self, network, oracle, tasks, given):
        """The joint Gaussian of the rows behind the given ones."""
        prefix = 0 if network.config["context"] == "causal" else given
        statistics = max(prefix, network.config["min_rows"])
        inputs = prepare(tasks, statistics, network.config)
        visible = torch.full((tasks.y.shape[1] - given,), given)
        with torch.no_grad():
            parts = inputs.x[:, :given], inputs.y_input[:, :given], inputs.x[:, given:]
            said = network(*parts, prefix, visible)
        asked = inputs.y[:, given:].flatten(1)
        density = Joint(said).log_prob(asked) - inputs.scale.log().sum() * len(visible)
        encoding = self.encoding(oracle, tasks, given, prefix, statistics)
        wanted = encoding.joint(tasks.x[0, given:].numpy())
        self.near(density[0], wanted.log_pdf(np.ravel(tasks.y[0, given:].numpy())), "joint density")
        scale = inputs.scale[0].expand(network.config["target"].get("count", 1)).repeat(
            len(visible))
        self.near(scale[:, None] * said[1][0], wanted.factor, "factor")

    def questions_of_training(self, network, oracle, tasks):
        """What a training step asks, the oracle answers alike, one query at a time."""
        model, total = network.config, ROWS + EXTRA
        short = Tasks(tasks.x[:, :total], tasks.y[:, :total], tasks.categorical)
        choose = split_questions if is_split(model, {}) else training_questions
        least = max(model["min_rows"], 0 if model["architecture"] == "mean" else 1)
        for prefix in [0] if model["context"] == "causal" else [max(least, 3), ROWS]:
            asked = choose(model, ROWS, total, prefix)
            if is_classifier(model):
                inputs, _, _ = prepare_classes(short, total, asked.statistics, model)
            else:
                inputs = prepare(short, asked.statistics, model)
            with torch.no_grad():
                outputs = ask(network, inputs, asked)
            for m in range(0, len(asked.visible), 3):
                seen, query = int(asked.visible[m]), asked.first + m
                there = self.encoding(oracle, tasks, seen, asked.prefix, asked.statistics)
                states = reference.run(oracle, there.statistics, there.x, there.y, there.prefix,
                                       tasks.x[0, query : query + 1].numpy())
                wanted = reference.head_outputs(oracle, states)
                self.near(outputs[0, m], wanted, f"query {query} given {seen}, prefix {prefix}")

    def classes(self, network, there, tasks, given):
        """Probabilities, and those of the true classes along a chain."""
        log_p, _, true, _ = classify(network, tasks, given)
        x, y = tasks.x[0, given:].numpy(), tasks.y[0, given:].numpy()
        self.near(log_p[0].exp(), [d.params for d in there.predict(x)], "probabilities")
        log_p, _, true, _ = class_chain(network, tasks, given)
        density = log_p.gather(2, true[..., None])[0, :, 0]
        self.near(density, there.conditionals(x, y), "chain of classes")

    def test_what_has_no_scores_is_refused(self):
        for name in ("several_concat", "joint_full", "scan"):
            with self.assertRaisesRegex(ConfigError, "held-out tasks"):
                check_measurable(make_family(name)[0])
        check_measurable({**make_family("scan")[0], "inputs": {"features": 1, "scaling": "none"}})

    def test_split_questions_are_not_for_classifiers(self):
        config = configuration(make_family("scan_classes")[0])
        check_config(config)
        config["training"]["questions"] = "split"
        with self.assertRaisesRegex(ConfigError, "training.questions"):
            check_config(config)

    def test_basis_functions_become_different(self):
        """No two functions of a head have the gradients of one, of which training would move both
        alike for ever.
        """
        config, _ = make_family("scan")
        network, tasks = make_model(config).double(), fixed_tasks(config, 14)
        for name, value in network.named_parameters():
            # outputs that begin at zero hide the rest
            if ".o." in name and not value.any():
                nn.init.normal_(value, generator=torch.Generator().manual_seed(3))
        near = Tasks(tasks.x * 0.2, tasks.y, tasks.categorical)
        batch_loss(network, near, 8, 8, False).backward()
        found = 0
        for name, value in network.named_parameters():
            if name.endswith("kernel.a"):
                gaps = value.grad.sort(-1).values.diff() / value.grad.abs().amax(-1, keepdim=True)
                self.assertGreater(float(gaps.min()), 1e-6)
                found += 1
        self.assertEqual(found, config["layers"])

    def test_kernel_bias_knows_differences_only(self):
        """Positions shifted by a million give the same answers, to rounding of the positions."""
        for name in ("scan", "scan_causal", "scan_time", "scan_prefix_causal"):
            with self.subTest(name):
                config, tensors = make_family(name)
                network = make_model(config)
                network.load_state_dict({k: torch.tensor(v) for k, v in tensors.items()})
                network, tasks = network.double().eval(), fixed_tasks(config, 14)
                moved = Tasks(tasks.x + 1e6, tasks.y, tasks.categorical)
                here, there = (predict(network, t, 8).moments() for t in (tasks, moved))
                for a, b in zip(here, there):
                    self.assertLess(float((a - b).abs().max()), 1e-7)
                scaled = Tasks(tasks.x * 1.1, tasks.y, tasks.categorical)
                other = predict(network, scaled, 8).moments()[0]
                self.assertGreater(float((other - here[0]).abs().max()), 1e-4)

    def test_power_scaling(self):
        """Columns with outliers, ties, one value, missing cells: as the oracle's, fitted to 150
        rows.
        """
        generator = torch.Generator().manual_seed(8)
        x = torch.randn(1, 200, 5, generator=generator).double()
        x[0, :, 1] = (2 * x[0, :, 1]).exp()
        x[0, 5, 2], x[0, 9, 2] = 60.0, -60.0
        x[0, :, 3] = 7.0
        x[0, ::3, 4] = torch.nan
        x[0, 1, 4], x[0, 2, 4] = 50.0, -50.0
        got = power_features(x, 150)[0].numpy()
        for f in range(5):
            column = x[0, :, f].numpy()
            wanted = PowerColumn(column[:150])(column)
            self.near(np.nan_to_num(got[:, f], nan=9.0), np.nan_to_num(wanted, nan=9.0),
                      f"column {f}")
        self.assertLess(PowerColumn(x[0, :150, 2].numpy()).high, 1.0, "no outlier was left out")

    def test_bars(self):
        """The distribution function is the integral of the density, the quantile its inverse."""
        config, tensors = make_family("decoupled")
        outputs = torch.randn(3, 12, generator=torch.Generator().manual_seed(1)).double()
        borders = torch.tensor(tensors["head.borders"]).double()
        for tails in ("bounded", "half-normal"):
            bars = Bars(outputs, {**config["head"], "tails": tails}, borders)
            y = torch.linspace(-8, 8, 16001).double()
            many = outputs[:, None].expand(-1, len(y), -1)
            wide = Bars(many, {**config["head"], "tails": tails}, borders)
            density = wide.log_prob(y.expand(3, -1)).exp()
            mass = wide.cdf(y.expand(3, -1))
            found = torch.cumulative_trapezoid(density, y, dim=1) + mass[:, :1]
            # The density jumps at the borders, half a step of the grid wrong.
            self.assertLess(float((found - mass[:, 1:]).abs().max()), 2e-3, tails)
            for p in (0.001, 0.3, 0.999):
                self.near(bars.cdf(bars.quantile(p)), [p] * 3, f"{tails}, quantile {p}")

    def test_training_agrees_with_the_oracle(self):
        for name in TRAINED:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                config, _ = make_family(name)
                path = os.path.join(folder, "model.safetensors")
                trained(config, folder).export(path)
                network, oracle = load_model(path, torch.float64), reference.Model.open(path)
                tasks = fixed_tasks(config, 14)
                if config["head"]["kind"] == "joint-gaussian":
                    self.joint(network, oracle, tasks, 7)
                    continue
                self.questions_of_training(network, oracle, tasks)
                given = 7
                whole = 0 if config["context"] == "causal" else given
                there = self.encoding(oracle, tasks, given, whole, max(whole, config["min_rows"]))
                if is_classifier(config):
                    self.classes(network, there, tasks, given)
                    continue
                answer = predict(network, tasks, given)
                density = answer.log_prob(tasks.y[:, given:])
                mean, sd = answer.moments()
                each = there.predict(tasks.x[0, given:].numpy())
                y = tasks.y[0, given:].numpy()
                self.near(density, [d.log_pdf(v) for d, v in zip(each, y)], "densities")
                self.near(mean, [d.mean() for d in each], "means")
                self.near(sd, [d.sd() for d in each], "standard deviations")
                density = chain(network, tasks, given).log_prob(tasks.y[:, given:])
                wanted = there.conditionals(tasks.x[0, given:].numpy(), y)
                self.near(density, wanted, "chain")


if __name__ == "__main__":
    unittest.main()
