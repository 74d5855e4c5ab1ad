"""Runs that are killed continue as if nothing had happened."""
import fcntl
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import torch

from pg_posterior_train.__main__ import main
from pg_posterior_train.curriculum import STEPS
from pg_posterior_train.export import load_model
from pg_posterior_train.keep import keep, restore
from pg_posterior_train.trainer import Run

from .common import config

ROOT = os.path.dirname(os.path.dirname(__file__))


class Training(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_continuing_gives_the_same_weights(self):
        for name in ("gp1d", "tabular_small"):
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                whole = Run(config(name), folder)
                for _ in range(6):
                    whole.train_step(0)
                half = Run(config(name), folder)
                for _ in range(3):
                    half.train_step(0)
                half.save()
                rest = Run(config(name), folder)
                self.assertTrue(rest.load())
                for _ in range(3):
                    rest.train_step(0)
                self.assertEqual(rest.tasks, whole.tasks)
                for key, value in whole.average.items():
                    self.assertTrue(torch.equal(value, rest.average[key]), key)

    def test_what_is_new_learns_faster(self):
        """Only the named parameters take longer steps."""
        with tempfile.TemporaryDirectory() as folder:
            moved = []
            for faster in ({}, {"head": 10}):
                given = config("gp1d")
                given["training"]["faster"] = faster
                run = Run(given, folder)
                before = {k: v.clone() for k, v in run.model.state_dict().items()}
                run.train_step(0)
                moved.append(
                    {k: float((v - before[k]).abs().max())
                     for k, v in run.model.state_dict().items()})
            for name, far in moved[0].items():
                times = 10 if name.startswith("head") else 1
                self.assertAlmostEqual(moved[1][name], times * far, delta=0.1 * times * far + 1e-7,
                                       msg=name)
            self.assertGreater(moved[0]["head.0.bias"] + moved[0]["head.1.bias"], 1e-6)

    def test_kept_copies_go_on(self):
        """A small copy has the weights to the bit and moments that go on nearly as they would have;
        no checkpoint is written over.
        """
        with tempfile.TemporaryDirectory() as folder:
            whole = Run(config("gp1d"), os.path.join(folder, "a"))
            for _ in range(3):
                whole.train_step(0)
            whole.save()
            small = os.path.join(folder, "kept.pt.xz")
            keep(whole.path("latest"), small)
            self.assertLess(os.path.getsize(small), 0.8 * os.path.getsize(whole.path("latest")))
            other = Run(config("gp1d"), os.path.join(folder, "b"))
            restore(small, other.path("latest"))
            self.assertTrue(other.load())
            for key, value in whole.model.state_dict().items():
                self.assertTrue(torch.equal(value, other.model.state_dict()[key]), key)
            whole.train_step(0)
            other.train_step(0)
            self.assertEqual((whole.step, whole.tasks), (other.step, other.tasks))
            for key, value in whole.model.state_dict().items():
                self.assertTrue(torch.allclose(value, other.model.state_dict()[key], atol=1e-4),
                                key)
            with self.assertRaises(SystemExit):
                restore(small, other.path("latest"))
            with self.assertRaises(SystemExit):
                restore(whole.path("latest"), os.path.join(folder, "c.pt"))

    def test_longer_run_from_before_the_decay_keeps_its_own_stable_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            first = Run(config("gp1d"), folder)
            first.train(steps=8)
            before = torch.load(first.path("stable"))["step"]
            second = Run(config("gp1d"), folder)
            self.assertTrue(second.load("stable"))
            self.assertEqual(second.step, before)
            second.train(steps=24)
            self.assertGreater(torch.load(second.path("stable"))["step"], 8)
            # What continues the latest weights, of a decayed run, leaves those before the decay
            # alone.
            third = Run(config("gp1d"), folder)
            third.load()
            third.train(steps=25)
            self.assertLess(torch.load(third.path("stable"))["step"], 24)

    def test_budget_is_counted_by_the_given_clock(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(config("gp1d"), folder)
            run.train(minutes=1, clock=itertools.count(0, 6).__next__)
            self.assertEqual((run.step, run.seconds), (10, 60))
            rest = Run(config("gp1d"), folder)
            rest.load()
            rest.train(minutes=1.5, clock=itertools.count(1000, 6).__next__)
            self.assertEqual((rest.step, rest.seconds), (15, 90))

    def test_options_choose_the_clock_and_the_seed(self):
        clocks = {(): time.monotonic, ("--processor-time",): time.process_time}
        for chosen, clock in clocks.items():
            with self.subTest(options=chosen), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "small.json")
                with open(path, "w") as f:
                    json.dump(config("gp1d"), f)
                command = ["", "train", path, "--run", folder, "--minutes", "1", "--seed", "77"]
                with mock.patch.object(sys, "argv", [*command, *chosen]), \
                        mock.patch.object(Run, "train", autospec=True) as train:
                    main()
                self.assertIs(train.call_args.args[6], clock)
                self.assertEqual(train.call_args.args[0].training["seed"], 77)

    def test_what_would_lose_a_run_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path, run = os.path.join(folder, "small.json"), os.path.join(folder, "run")
            with open(path, "w") as f:
                json.dump(config("gp1d"), f)
            command = ["", "train", path, "--run", run]

            def ends_with(message, *options):
                with mock.patch.object(sys, "argv", [*command, *options]), \
                        mock.patch.object(sys, "stderr", io.StringIO()) as told:
                    with self.assertRaises(SystemExit) as end:
                        main()
                self.assertRegex(f"{end.exception} {told.getvalue()}", message)

            for budget in ("-3", "0", "nan", "inf"):
                ends_with("not a number above 0", "--minutes", budget)
            ends_with("invalid choice", "--steps", "1", "--resume", "stabel")
            with mock.patch.object(sys, "argv", [*command, "--steps", "1"]):
                main()
            ends_with("no checkpoint stable, and has latest", "--steps", "2", "--resume", "stable")
            with open(os.path.join(run, "lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                ends_with("another process trains in", "--steps", "2")
            self.assertEqual(torch.load(os.path.join(run, "latest.pt"))["step"], 1)
            with open(os.path.join(run, "latest.pt"), "r+b") as f:
                f.truncate(100)
            ends_with("latest.pt is no checkpoint that can be read", "--steps", "2")

    def test_curriculum(self):
        """Stages end when they are learnt, in the order of the list; a killed run knows its stage;
        and bars have the borders of the prior itself.
        """
        def started(folder, until):
            given = config("gp1d")
            # Constants of 5, then of 7; the prior's own have noise.
            given["prior"] = {"name": "fields", "features": 1, "variance": 1e-4, "noise": 0.5,
                              "shift": 0.0}
            given["model"]["head"] = {"kind": "bars", "hidden": [8], "buckets": 8,
                                      "tails": "half-normal"}
            given["model"]["target"] = {"scaling": "none"}
            given["training"]["curriculum"] = [
                {"prior": {"shift": 5.0, "noise": 1e-3}, "until": until},
                {"prior": {"shift": 7.0, "noise": 1e-3}, "until": 1e9},
            ]
            return Run(given, folder)

        with tempfile.TemporaryDirectory() as folder:
            run = started(folder, -1e9)
            self.assertLess(float(run.model.head.borders.abs().max()), 4)
            self.assertAlmostEqual(float(run.draw()[0].y.mean()), 5, delta=0.1)
            for _ in range(STEPS - 1):
                run.train_step(0)
            self.assertEqual(run.curriculum.stage, 0)
            run.save()
            rest = started(folder, -1e9)
            self.assertTrue(rest.load())
            for one in (run, rest):
                one.train_step(0)
                self.assertEqual(one.curriculum.stage, 1)
                self.assertAlmostEqual(float(one.draw()[0].y.mean()), 7, delta=0.1)
            # What is not learnt is not left.
            for _ in range(STEPS + 1):
                rest.train_step(0)
            self.assertEqual(rest.curriculum.stage, 1)
            rest.curriculum.stages[1]["until"] = -1e9
            rest.train_step(0)
            self.assertTrue(rest.curriculum.ended)
            self.assertAlmostEqual(float(rest.draw()[0].y.mean()), 0, delta=0.3)

    def test_loss_falls(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(config("gp1d"), folder)
            losses = [run.train_step(0)[0] for _ in range(60)]
            self.assertLess(sum(losses[-10:]), sum(losses[:10]))

    def test_loss_falls_in_every_structure(self):
        concat = {"kind": "concat", "hidden": [16], "flag": True}
        gaussian = {"kind": "gaussian", "hidden": [16], "std": "sqrt-softplus", "floor": 0.01}
        streams = {"architecture": "two-stream", "min_rows": 1, "attention": {"bias": "output"}}
        block = {"context": "full", "chain": {"buffer": 4, "mask": "strict"}}
        structures = {
            "dense": {**streams, "context": "causal", "embedder": concat, "head": gaussian},
            "two streams": {**streams, **block},
            "buffer": block,
            "causal": {"context": "causal"},
        }
        for name, changes in structures.items():
            with self.subTest(structure=name), tempfile.TemporaryDirectory() as folder:
                c = config("gp1d")
                c["model"].update(changes)
                if c["model"]["embedder"]["kind"] == "additive":
                    c["model"]["embedder"].update(roles=True,
                                                  positions=3 if name == "buffer" else 0)
                c["training"]["prefix"]["minimum"] = c["model"]["min_rows"]
                if c["model"]["context"] == "causal":
                    del c["training"]["prefix"]
                run = Run(c, folder)
                losses = [run.train_step(0)[0] for _ in range(60)]
                self.assertLess(sum(losses[-10:]), sum(losses[:10]))

    def test_killed_process_continues(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "small.json")
            with open(path, "w") as f:
                json.dump(config("gp1d"), f)
            run, out = os.path.join(folder, "run"), os.path.join(folder, "model.safetensors")
            command = [sys.executable, "-m", "pg_posterior_train", "train", path, "--run", run,
                       "--out", out,
                       "--checkpoint-seconds", "0"]
            first = subprocess.Popen(command + ["--steps", "100000"], cwd=ROOT,
                                     stdout=subprocess.DEVNULL)
            latest = os.path.join(run, "latest.pt")
            try:
                deadline = time.monotonic() + 120
                while not os.path.exists(latest) and time.monotonic() < deadline:
                    time.sleep(0.1)
            finally:
                first.send_signal(signal.SIGKILL)
                first.wait()
            reached = torch.load(latest)["step"]
            self.assertGreater(reached, 0)
            second = subprocess.run(command + ["--steps", str(reached + 2)], cwd=ROOT,
                                    capture_output=True, text=True, check=True)
            self.assertIn(f"continuing at step {reached}", second.stdout)
            self.assertEqual(torch.load(latest)["step"], reached + 2)
            self.assertEqual(load_model(out).config["width"], 16)

    def test_a_request_to_end_waits_for_the_step(self):
        """Ctrl-C (of a terminal, to all processes) and kill (of the first process alone)."""
        for sent, workers in ((signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2),
                              (signal.SIGTERM, 2)):
            with self.subTest(sent=sent, workers=workers), \
                    tempfile.TemporaryDirectory() as folder:
                path, run = os.path.join(folder, "small.json"), os.path.join(folder, "run")
                with open(path, "w") as f:
                    json.dump(config("gp1d"), f)
                process = subprocess.Popen(
                    [sys.executable, "-m", "pg_posterior_train", "train", path, "--run", run,
                     "--steps", "100000", "--workers", str(workers), "--checkpoint-seconds", "0"],
                    cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    start_new_session=True)
                latest = os.path.join(run, "latest.pt")
                try:
                    deadline = time.monotonic() + 300
                    while not os.path.exists(latest) and time.monotonic() < deadline:
                        time.sleep(0.1)
                    send = os.killpg if sent == signal.SIGINT else os.kill
                    send(process.pid, sent)
                    said, warned = process.communicate(timeout=300)
                finally:
                    process.kill()
                self.assertEqual(process.returncode, 130, warned)
                self.assertNotIn("Traceback", warned)
                self.assertIn(f"stopped at step {torch.load(latest)['step']};", said)


if __name__ == "__main__":
    unittest.main()
