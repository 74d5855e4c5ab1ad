"""The gate to a process's answer, fitted alone."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch

from pg_posterior_train import gate
from pg_posterior_train.export import read_model, write_model
from pg_posterior_train.heads import Gate
from pg_posterior_train.mixture import Mixture
from pg_posterior_train.model import make_model
from pg_posterior_train.trainer import Run, batch_loss

from .common import config

ROOT = os.path.dirname(os.path.dirname(__file__))
HEAD = {"kind": "mixture", "components": 3, "std": "softplus", "process": 6}


def small():
    c = config("tabular_gate")
    c["prior"]["max_features"] = 4
    return c


def made(queries, seed=0):
    """A table of `answers` in which the process is the better one where its quality is high."""
    g = torch.Generator().manual_seed(seed)
    read = 3 * torch.randn(queries, Gate.NUMBERS, generator=g) + 1
    own = torch.randn(queries, generator=g)
    other = own + torch.where(read[:, 0] > 1, 2.0, -2.0)
    apart = torch.full_like(own, -5.0)
    return torch.cat([read, torch.stack([own, other, apart, torch.ones(queries)], -1)], -1)


class Fit(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)

    def test_the_fit_finds_when_to_trust(self):
        """Of two answers the better one, by what the gate reads; a fit that goes on begins there.
        """
        fitted = Gate(HEAD, "gelu")
        tables = [made(2000, seed) for seed in range(16)]
        alone, first, best = gate.fit(fitted, tables)
        self.assertLess(best, alone - 0.6)
        self.assertLess(best, first - 0.3)
        with torch.no_grad():
            self.assertAlmostEqual(float(gate.loss(fitted, made(4000, 99))), best, delta=0.1)
        _, again, _ = gate.fit(fitted, tables, epochs=0)
        self.assertAlmostEqual(again, best, places=4)

    def test_means_are_not_moved_by_hedging(self):
        """Where both densities are alike and the network's mean is far off, the process counts."""
        weights = []
        for apart in (-5.0, 6.0):
            fitted = Gate(HEAD, "gelu")
            torch.manual_seed(1)
            tables = [made(500, seed) for seed in range(8)]
            for table in tables:
                table[:, Gate.NUMBERS + 1] = table[:, Gate.NUMBERS] - 0.02
                table[:, Gate.NUMBERS + 2] = apart
            gate.fit(fitted, tables, epochs=200)
            with torch.no_grad():
                read = tables[0][:, :Gate.NUMBERS]
                weights.append(float(super(Gate, fitted).forward(read).sigmoid().mean()))
        self.assertLess(weights[0], 0.2)
        self.assertGreater(weights[1], 0.9)

    def test_answers_are_those_of_the_loss(self):
        """The numbers kept of a batch give the loss that training would have."""
        with tempfile.TemporaryDirectory() as folder:
            run = Run(small(), folder)
            run.step = 1
            run.model.eval()
            tasks, rows, prefix = run.draw()
            table = gate.answers(run.model, tasks, rows, prefix, run.generator())
            with torch.no_grad():
                wanted = float(batch_loss(run.model, tasks, rows, prefix))
                found = float(gate.loss(run.model.head.gate, table))
            self.assertAlmostEqual(found, wanted, places=4)

    def test_narrow_components(self):
        """The last number is 0 where all components are as wide as the whole, and grows as they
        become narrow."""
        g = Gate(HEAD, "gelu")
        said, asked = torch.zeros(1, 1, 4), torch.zeros(1, 1, 8)
        wide = torch.tensor([[[0.0, 0, 0, 0, 0, 0, 1, 1, 1]]])
        narrow = torch.tensor([[[0.0, 0, 0, -2, 0, 2, -3, -3, -3]]])
        found = [float(g.numbers(v, said, asked)[0, 0, -1]) for v in (wide, narrow)]
        sd = float(Mixture(narrow, g.plain).moments()[1])
        self.assertAlmostEqual(found[0], 0.0, places=5)
        self.assertAlmostEqual(found[1], float(torch.tensor(sd).log() - torch.nn.functional
                                               .softplus(torch.tensor(-3.0)).log()), places=4)


class Command(unittest.TestCase):
    def test_nothing_else_changes(self):
        """A model grows a gate and keeps its weights; what was drawn, and the gate, are kept."""
        with tempfile.TemporaryDirectory() as folder:
            def at(name):
                return os.path.join(folder, name)

            c = small()
            with open(at("c.json"), "w", encoding="utf-8") as f:
                json.dump(c, f)
            plain = json.loads(json.dumps(c["model"]))
            for key in ("process", "process_record", "process_behind", "process_chain", "trees"):
                del plain["head"][key]
            for key in ("process", "directions", "additive", "shift"):
                del plain["embedder"]["x"][key]
            write_model(at("plain.safetensors"), plain, make_model(plain).state_dict())
            command = [sys.executable, "-m", "pg_posterior_train", "fit-gate", at("c.json"),
                       at("plain.safetensors"), at("out.safetensors"), "--answers", at("a.pt"),
                       "--gate", at("g.json")]
            done = subprocess.run(command + ["--batches", "9"], cwd=ROOT, capture_output=True,
                                  text=True, check=True)
            self.assertIn("9 batches", done.stdout)
            before, after = (read_model(at(n))[1] for n in ("plain.safetensors", "out.safetensors"))
            for name, value in before.items():
                self.assertTrue(torch.equal(value, after[name]), name)
            self.assertGreater(float(after["head.gate.1.weight"].abs().max()), 0)
            self.assertEqual(float(after["embed.x.process.weight"].abs().max()), 0)
            self.assertEqual(len(torch.load(at("a.pt"))), 9)
            # From the kept gate alone, without drawing or fitting.
            again = [v for v in command if v not in ("--answers", at("a.pt"))]
            again[again.index(at("out.safetensors"))] = at("again.safetensors")
            subprocess.run(again, cwd=ROOT, capture_output=True, text=True, check=True)
            for name, value in read_model(at("again.safetensors"))[1].items():
                self.assertTrue(torch.equal(value, after[name]), name)

    def test_a_model_without_is_refused(self):
        path = os.path.join(ROOT, "configs", "tabular.json")
        done = subprocess.run([sys.executable, "-m", "pg_posterior_train", "fit-gate", path, path],
                              cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no head.process", done.stderr)


if __name__ == "__main__":
    unittest.main()
