"""Training by large batches: what a step of one shape computes, and that nothing in it is left on
the host.
"""
import collections
import contextlib
import copy
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from pg_posterior_train.__main__ import main
from pg_posterior_train.attention import Slots
from pg_posterior_train.config import ConfigError, check_config
from pg_posterior_train.export import load_model, read_model
from pg_posterior_train.flat import Flat
from pg_posterior_train.kernel_bias import Waves
from pg_posterior_train.large import Batch, LargeRun
from pg_posterior_train.model import make_model
from pg_posterior_train.optim import make_optimisers
from pg_posterior_train.prior import curves, fields
from pg_posterior_train.protocols import main as measure

from .common import CONFIGS
from .test_configurations import shrunk

NAMES = sorted(
    file[:-5] for file in os.listdir(CONFIGS)
    if '"large"' in open(os.path.join(CONFIGS, file), encoding="utf-8").read()
)
FACTORIES = {
    getattr(torch, name)
    for name in ("arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn",
                 "randperm", "tensor", "zeros")
}


def small(name):
    """A configuration at test size, whose contexts have a length of their own where they may."""
    c = shrunk(name)
    for shape in c["training"]["large"]["shapes"]:
        whole = shape["least"] == shape["rows"]
        shape.update(rows=9, least=9 if whole else 4, tasks=6, extra=10)
    return c


def stirred(run):
    """The run with random weights everywhere, in float64."""
    torch.manual_seed(5)
    with torch.no_grad():
        for p in run.model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    run.model.double()
    return run


def nothing(*_, **__):
    return contextlib.nullcontext()


class EveryFactoryNamesADevice(TorchFunctionMode):
    """Refuses tensors that would be on the host while all others are on a device."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in FACTORIES and kwargs.get("device") is None:
            raise AssertionError(f"torch.{func.__name__} without a device")
        return func(*args, **kwargs)


class Steps(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_some_configurations_are_for_large_batches(self):
        self.assertGreater(len(NAMES), 9)

    def test_slots_answer_as_tasks_alone(self):
        """A task among others has the answers that it has by itself, without empty slots."""
        for name in NAMES:
            with self.subTest(name), torch.no_grad():
                run = stirred(LargeRun(small(name), "unused"))
                for shape in run.shapes:
                    generator = torch.Generator().manual_seed(1)
                    (b,) = run.batches(shape, 1, generator)
                    b = Batch(*(t.double() if t.is_floating_point() else t for t in b.tensors()))
                    whole = shape.least == shape.rows
                    layout = Slots(None if whole else b.seen, shape.rows, shape.buffered,
                                   shape.chain, run.model.strict)
                    found = run.model(b.x, b.y, b.asked, shape.rows, None, layout=layout)
                    for i, seen in enumerate(b.seen.tolist()):
                        seen = shape.rows if whole else seen
                        rows = [*range(seen), *range(shape.rows, shape.rows + shape.buffered)]
                        alone = run.model(b.x[i:i + 1, rows], b.y[i:i + 1, rows],
                                          b.asked[i:i + 1], seen, seen + shape.chain)
                        self.assertLess((alone - found[i:i + 1]).abs().max(), 1e-9)

    def test_what_is_asked_comes_after_the_context(self):
        """Rows of a task are its context, its block and what is asked, each from the same draw."""
        for name in ("buffer_k16_gp", "tnpa_gp", "tnpd", "scan_matern"):
            with self.subTest(name):
                run = LargeRun(small(name), "unused")
                shape, generator = run.shapes[0], torch.Generator().manual_seed(2)
                count, total = 5, shape.total
                rows = torch.arange(total).float().expand(count, -1)
                inputs = mock.Mock(x=rows[..., None], y=rows, y_input=rows + 0.5)
                seen = shape.lengths(generator, count, 0.5)
                b = shape.arrange(inputs, seen, generator)
                first = torch.full_like(seen, shape.rows) if shape.latent else seen
                self.assertTrue(torch.equal(b.x[:, :shape.rows, 0], rows[:, :shape.rows]))
                self.assertTrue(torch.equal(b.y, b.x[..., 0] + 0.5))
                self.assertTrue(torch.equal(b.asked[..., 0], b.target))
                self.assertEqual(len(shape.chain), b.target.shape[1])
                for i in range(count):
                    asked, start = b.target[i].long() - first[i], shape.block
                    if not shape.buffered:
                        self.assertEqual(asked.tolist(), list(range(shape.extra)))
                        continue
                    block = asked[:start].tolist()
                    self.assertEqual(sorted(block), list(range(start)))
                    self.assertEqual((b.x[i, shape.rows:, 0].long() - first[i]).tolist(),
                                     block[:-1])
                    self.assertEqual(asked[start:start + shape.alone].tolist(),
                                     block[:shape.alone])
                    self.assertEqual(asked[start + shape.alone:].tolist(),
                                     list(range(start, start + shape.extra)))

    def test_lengths_reach_from_the_least_to_all(self):
        run = LargeRun(small("tnpd"), "unused")
        shape, generator = run.shapes[0], torch.Generator().manual_seed(1)
        for log in (0.0, 1.0):
            found = shape.lengths(generator, 500, log)
            self.assertEqual(found.unique().tolist(), list(range(shape.least, shape.rows + 1)))

    def test_a_step_is_the_optimisers_step(self):
        """Flat parameters move as those of Muon and AdamW do, clipped alike."""
        torch.manual_seed(0)
        config = small("lbanp")["model"]
        model = make_model(config).double()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p))
        other = copy.deepcopy(model)
        flat, optimisers = Flat(model), make_optimisers(other)
        for k in range(4):
            grads = {n: torch.randn_like(p) * 0.1 ** k for n, p in other.named_parameters()}
            for n, p in other.named_parameters():
                p.grad = grads[n].clone()
            torch.nn.utils.clip_grad_norm_(other.parameters(), 1.0)
            for optimiser in optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = 0.01 * (k + 1)
                optimiser.step()
            flat.gradient.copy_(torch.cat([grads[n].flatten() for n in flat.names]))
            flat.rate.fill_(0.01 * (k + 1))
            flat.keep.fill_(0.5)
            flat.step(1.0)
        for (name, p), q in zip(model.named_parameters(), other.parameters()):
            self.assertLess((p - q).abs().max(), 1e-6, name)

    def test_gradients_without_end_change_nothing(self):
        model = make_model(small("tnpd")["model"])
        flat = Flat(model)
        flat.gradient.fill_(1.0)
        flat.rate.fill_(0.1)
        flat.step(1.0)
        before = flat.state()
        flat.gradient[3] = float("nan")
        flat.step(1.0)
        for name, value in before.items():
            if name != "skipped":
                self.assertTrue(torch.equal(value, getattr(flat, name)), name)
        self.assertEqual(flat.skipped.item(), 1)

    def test_waves_have_the_gradients_of_their_sum(self):
        torch.manual_seed(0)
        distance = 4 * torch.rand(2, 1, 4, 3, dtype=torch.float64)
        given = [torch.randn(2, 5, dtype=torch.float64, requires_grad=True) for _ in range(3)]
        a, b, c = (p[:, None, None] for p in given)
        plain = (a * torch.exp(-b.abs() * (distance[..., None] - c).square())).sum(-1)
        self.assertLess((Waves.apply(distance, *given) - plain).abs().max(), 1e-12)
        self.assertTrue(torch.autograd.gradcheck(lambda *p: Waves.apply(distance, *p), given))


class Devices(unittest.TestCase):
    """Stand-ins for a device, which the tests need not have."""

    def setUp(self):
        torch.set_num_threads(1)

    def test_a_step_reads_nothing_back(self):
        """On the meta device: tensors of the host do not mix with its own, and no value is known,
        so that none can be asked for.
        """
        for name in NAMES:
            with self.subTest(name):
                run = LargeRun(small(name), "unused")
                (b,) = run.batches(run.shapes[0], 1, torch.Generator().manual_seed(1))
                run.model.to("meta")
                run.flat = Flat(run.model)
                step = run.steps[0]
                step.shape.chain = step.shape.chain.to("meta")
                step.batch = Batch(*(t.to("meta") for t in b.tensors()))
                step.loss = torch.zeros((), device="meta")
                # The meta device has no autocast, and none is on.
                with EveryFactoryNamesADevice(), mock.patch("torch.autocast", nothing):
                    step.compute()
                self.assertEqual(run.flat.gradient.device.type, "meta")

    def test_tasks_are_made_on_the_device(self):
        for name in NAMES:
            with self.subTest(name):
                run = LargeRun(small(name), "unused")
                with EveryFactoryNamesADevice():
                    if "borders" in dict(run.model.head.named_buffers()):
                        run.set_borders()
                    run.one_round(lambda: 0.5)
                self.assertGreater(run.step, 0)
                self.assertTrue(run.flat.value.isfinite().all())

    def test_a_capture_leaves_no_trace(self):
        """A run whose steps are captured has the weights of one whose steps are not; where what is
        replayed differs, it refuses. A stand-in replays by computing.
        """
        plain = LargeRun(small("scan_matern"), "unused")
        losses = plain.one_round(lambda: 0.5)

        class Graph:
            scale = 1.0

            def replay(self):
                self.step.compute()
                self.step.run.flat.gradient.mul_(self.scale)

        cuda = {name: nothing for name in ("stream", "graph")}
        cuda.update(Stream=mock.MagicMock, CUDAGraph=Graph, synchronize=nothing,
                    current_stream=mock.MagicMock())
        with mock.patch.multiple(torch.cuda, **cuda):
            run = LargeRun(small("scan_matern"), "unused", captured=True)
            Graph.step = run.steps[0]
            self.assertEqual(run.one_round(lambda: 0.5), losses)
            self.assertIsNotNone(run.steps[0].graph)
            for name, value in plain.flat.state().items():
                self.assertTrue(torch.equal(value, getattr(run.flat, name)), name)
            Graph.scale = 1.1
            run = LargeRun(small("scan_matern"), "unused", captured=True)
            Graph.step = run.steps[0]
            with self.assertRaisesRegex(RuntimeError, "a captured step differs"):
                run.one_round(lambda: 0.5)

    def test_the_stand_in_sees_what_it_is_for(self):
        with EveryFactoryNamesADevice():
            torch.zeros(2, device="cpu")
            for wrong in (lambda: torch.zeros(2), lambda: torch.arange(3)):
                with self.assertRaises(AssertionError):
                    wrong()


class SharedInputs(unittest.TestCase):
    def test_functions_share_inputs_and_nothing_else(self):
        for given in (0, 4):
            latent = {"latent": True, "given": given} if given else {}
            drawn = curves.draw(torch.Generator().manual_seed(1), 12, 9 + given, functions=3,
                                kernels=("rbf", "matern32"), **latent)
            x, y = drawn.tasks.x.unflatten(0, (4, 3)), drawn.tasks.y.unflatten(0, (4, 3))
            self.assertTrue(torch.equal(x[:, :1].expand_as(x), x))
            self.assertGreater((y[:, 1:] - y[:, :-1]).abs().amin(), 0)
            self.assertEqual(len(drawn.kernel), 12)
        drawn = fields.sample(torch.Generator().manual_seed(1), 12, 9, functions=3)
        x = drawn.x.unflatten(0, (4, 3))
        self.assertTrue(torch.equal(x[:, :1].expand_as(x), x))
        self.assertEqual(drawn.y.shape, (12, 9))

    def test_they_are_draws_of_the_process(self):
        drawn = curves.draw(torch.Generator().manual_seed(3), 4000, 8, functions=1000, noise=0.3)
        y = drawn.tasks.y.double().unflatten(0, (4, 1000))
        found = y.transpose(1, 2) @ y / 1000
        x = drawn.tasks.x[::1000, :, 0]
        wanted = curves.covariance("rbf", x, x, torch.full((4,), 0.5), None)
        wanted.diagonal(dim1=1, dim2=2).add_(0.09)
        self.assertLess((found - wanted).abs().max(), 0.25)


class Runs(unittest.TestCase):
    """By a clock that every look at it moves on, so that a busy machine trains as much as any; each
    thread has its own, so that none trains while another waits.
    """

    def setUp(self):
        torch.set_num_threads(1)
        clocks = collections.defaultdict(lambda: itertools.count(1000.0, 0.02))
        patched = mock.patch("pg_posterior_train.large.time.time",
                             lambda: next(clocks[threading.get_ident()]))
        patched.start()
        self.addCleanup(patched.stop)

    def command(self, folder, name, *more, tasks=None):
        config = small(name)
        path = os.path.join(folder, name + ".json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        out = os.path.join(folder, name + ".safetensors")
        words = ["pg_posterior_train", "train-large", path, "--run", os.path.join(folder, name),
                 "--out", out, "--every", "0.01", *more]
        with mock.patch.object(sys, "argv", words), mock.patch("sys.stdout"):
            main()
        return out, torch.load(os.path.join(folder, name, "large.pt"))

    def test_a_run_ends_with_a_model_and_goes_on(self):
        for name in ("scan_periodic", "dva_10d"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                out, state = self.command(folder, name, "--seconds", "1")
                model = load_model(out)
                self.assertEqual(model.config["width"], 16)
                self.assertGreater(state["step"], 0)
                for value in model.state_dict().values():
                    self.assertTrue(value.isfinite().all())
                _, later = self.command(folder, name, "--seconds", "1.5")
                self.assertGreaterEqual(later["step"], state["step"])
                self.assertGreaterEqual(later["seconds"], state["seconds"])

    def test_a_run_begins_with_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            first, _ = self.command(folder, "tnpd", "--seconds", "0.5")
            os.rename(first, first + ".old")
            os.remove(os.path.join(folder, "tnpd", "large.pt"))
            # No time is left, so that what is written is what it begins with.
            out, state = self.command(folder, "tnpd", "--until", "1", "--start", first + ".old")
            self.assertEqual(state["step"], 0)
            for name, value in read_model(first + ".old")[1].items():
                self.assertTrue(torch.equal(value, read_model(out)[1][name]), name)

    def test_several_runs_share_a_process(self):
        """Each has its model, log and checkpoint; one that cannot begin leaves the others alone."""
        with tempfile.TemporaryDirectory() as folder:
            paths, names = [], ["tnpa_gp", "broken", "lbanp"]
            for name in names:
                config = small("tnpd" if name == "broken" else name)
                if name == "broken":
                    config["model"]["width"] = -1
                paths.append(os.path.join(folder, name + ".json"))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    json.dump(config, f)
            out = os.path.join(folder, "out")
            words = ["pg_posterior_train", "train-large", *paths, "--run", out, "--out", out,
                     "--seconds", "2"]
            with mock.patch.object(sys, "argv", words):
                main()
            for name in ("tnpa_gp", "lbanp"):
                load_model(os.path.join(out, name + ".safetensors"))
                with open(os.path.join(out, name + ".log"), encoding="utf-8") as f:
                    self.assertIn("log density", f.read())
                self.assertTrue(os.path.exists(os.path.join(out, name, "large.pt")))
            with open(os.path.join(out, "broken.log"), encoding="utf-8") as f:
                self.assertIn("width", f.read())

    def test_a_run_that_fails_goes_on_elsewhere(self):
        """Where a device would not capture, another process trains without."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tnpd.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(small("tnpd"), f)
            out = os.path.join(folder, "tnpd.safetensors")
            words = ["pg_posterior_train", "train-large", path, "--run", folder, "--out", out,
                     "--seconds", "9", "--device", "cpu:0", "--tasks", "3", "--seed", "4"]
            with mock.patch.object(sys, "argv", words), mock.patch("os.execv") as begun, \
                    mock.patch("sys.stdout"), mock.patch("sys.stderr"), \
                    mock.patch("pg_posterior_train.large.Step.capture",
                               side_effect=RuntimeError("no capture here")):
                main()
            again = begun.call_args.args[1]
            self.assertIn("--eager", again)
            until = again.index("--until")
            again[until + 1] = "1"
            with mock.patch.object(sys, "argv", again[2:]), mock.patch("sys.stdout"):
                main()
            load_model(out)

    def test_a_device_that_does_not_answer_is_no_fault_of_captures(self):
        """A run that cannot begin ends, and keeps its captured steps for when it is begun again."""
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch("os.execv", side_effect=AssertionError), \
                mock.patch("pg_posterior_train.large.LargeRun",
                           side_effect=RuntimeError("device busy")), \
                self.assertRaisesRegex(RuntimeError, "device busy"):
            self.command(folder, "tnpd", "--seconds", "9", "--device", "cpu:0")

    def test_protocols_measure_it(self):
        with tempfile.TemporaryDirectory() as folder:
            out, _ = self.command(folder, "tnpd", "--seconds", "0.5")
            scores = os.path.join(folder, "scores.json")
            words = ["protocols", out, "--tasks", "2", "--out", scores, "--factorised",
                     "--config", os.path.join(CONFIGS, "tnpd.json")]
            with mock.patch.object(sys, "argv", words), mock.patch("builtins.print"):
                measure()
            with open(scores, encoding="utf-8") as f:
                (table,) = json.load(f)
            self.assertTrue(math.isfinite(table["rows"]["1 to 64"]["factorised"]["mean"]))

    def test_the_rate_falls_with_the_time(self):
        run = LargeRun(small("tnpd"), "unused")
        run.step = 1000
        peak = run.large["learning_rate"]
        self.assertEqual(run.rate(0.0), 0.0)
        self.assertEqual(run.rate(0.3), peak)
        self.assertLess(run.rate(0.9), 0.2 * peak)
        self.assertAlmostEqual(run.rate(1.0), 0.01 * peak)

    def test_what_it_cannot_train_is_refused(self):
        for name, change in (
            ("scan_rbf", lambda c: [c["model"]["target"].update(scaling="prefix"),
                                    c["model"].update(min_rows=2)]),
            ("tnpd", lambda c: c["training"]["large"]["shapes"][0].update(least=0)),
            ("tnpd", lambda c: c["training"]["large"].update(shapes=[])),
            ("dva_10d", lambda c: c["training"]["large"]["shapes"][0].update(least=3)),
            ("scan_rbf", lambda c: c["training"]["large"]["shapes"][0].update(extra=8)),
            ("lbanp", lambda c: c["model"]["chain"].update(buffer=4)),
            ("vanilla_10d", lambda c: c["model"]["attention"].update(sinks=2)),
        ):
            c = small(name)
            check_config(c)
            change(c)
            with self.subTest(name), self.assertRaisesRegex(ConfigError, r"training\.large"):
                check_config(c)


# Stands for PyTorch on a device that has room for PLACES processes at a time.
TORCH = """
import atexit, os

class Square:
    def __matmul__(self, other):
        return self

    def sum(self):
        return self

    def item(self):
        return 512 ** 3

def ones(*_, device):
    for place in range(int(os.environ["PLACES"])):
        path = os.path.join(os.environ["FOLDER"], f"place{place}")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        atexit.register(os.remove, path)
        return Square()
    raise RuntimeError("no place is left")
"""
# Stands for a trainer: notes how it was called. Where FAILS names its model, it fails within the
# service or with captured steps.
PYTHON = """#!/bin/bash
[ "$1" != -c ] || exec {python} "$@"
named='' before='' eager=''
for word; do
    case $before:$word in
        --out:*) named=$(basename "$word" .safetensors) ;;
        *:--eager) eager=eager ;;
    esac
    before=$word
done
echo "$named:${{CUDA_MPS_PIPE_DIRECTORY:+mps}}:${{CUDA_DEVICE_MAX_CONNECTIONS:-}}:$eager" \
    >> "$FOLDER/calls"
[ "$named" != "$FAILS" ] || [ -n "$eager" ] || exit 1
echo "second 1.0  log density 0"
"""


class Beside(unittest.TestCase):
    """on_gpu, with stand-ins for the service, for PyTorch and for the trainer, and by a clock that
    stands still: a run is over when its trainings are, however long these take on a busy machine.
    """

    def calls(self, seconds, places, fails=""):
        """(what it says, how trainers were called, sorted)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("date", "#!/bin/sh\necho 1000\n"),
                               ("nvidia-cuda-mps-control", "#!/bin/sh\ntrue\n"),
                               ("torch.py", TORCH),
                               ("python", PYTHON.format(python=sys.executable))):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                os.chmod(path, 0o755)
            env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "SHARE"))}
            env.update(PATH=folder + ":" + env["PATH"], PYTHONPATH=folder, FOLDER=folder,
                       PYTHON=os.path.join(folder, "python"), PLACES=str(places), FAILS=fails,
                       DEVICE="cuda")
            done = subprocess.run(
                [os.path.join(os.path.dirname(CONFIGS), "on_gpu"), os.path.join(folder, "out"),
                 str(seconds), "tnpd", "lbanp", "tnpa_gp"],
                env=env, capture_output=True, text=True, check=True)
            self.assertTrue(os.path.exists(os.path.join(folder, "out", "train.tar")))
            with open(os.path.join(folder, "calls"), encoding="utf-8") as f:
                return done.stdout, sorted(f.read().split())

    def test_processes_of_a_service_ask_for_no_queues_of_their_own(self):
        said, calls = self.calls(90, 3)
        self.assertIn("share the device by mps", said)
        self.assertEqual(calls, ["lbanp:mps::", "tnpa_gp:mps::", "tnpd:mps::"])

    def test_what_dies_leaves_the_service_first_and_captured_steps_then(self):
        said, calls = self.calls(90, 3, "lbanp")
        self.assertEqual(said.count("lbanp is begun again"), 2)
        self.assertEqual(calls, ["lbanp:::", "lbanp:::eager", "lbanp:mps::", "tnpa_gp:mps::",
                                 "tnpd:mps::"])

    def test_a_service_without_room_for_all_is_left(self):
        said, calls = self.calls(15, 2)
        self.assertIn("share the device by threads", said)
        self.assertEqual([call.split(":")[1:] for call in calls], [["", "32", ""]])


if __name__ == "__main__":
    unittest.main()
