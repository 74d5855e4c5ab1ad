"""Training by large batches on a device: steps of one shape that nothing in them stops.

A step of trainer.py has its own number of rows, and asks the device how it went. Small models spend
such a step on starting kernels. Here every task of a batch has a context of its own length in as
many slots as all others (attention.Slots), tasks are drawn for several steps together, parameters
and moments are one tensor each (flat.py), and on CUDA the whole step is captured once and replayed.
The learning rate falls with the time that is left, and the run ends when it is told to.

`"large"` in the training part of a configuration:

    shapes         as those of the training part: `rows` slots for the context, of which a task
                   has from `least` on; `extra` further rows that are asked
    learning_rate  its peak
    decay          the share of the time over which it falls at the end
    log            the share of contexts whose length is drawn on a logarithmic scale (default 0.5)
    functions      how many functions share inputs and hyperparameters (default 1)
"""
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from .bars import equal_mass_borders
from .attention import Slots
from .config import ConfigError, check_config, check_tasks
from .curriculum import Curriculum
from .export import read_model, write_model
from .flat import Flat
from .model import make_model
from .normalise import prepare
from .optim import schedule
from .trainer import LARGEST_TARGET, draw_tasks, score

ROUND = 8            # steps whose tasks are drawn together
WARMUP = 0.03        # share of the time, and
LEAST_WARMUP = 50    # steps, over which the rate rises
SLOWEST = 0.01       # seconds of a run that has hardly begun
REHEARSALS = 3       # steps before a capture, which load what a capture cannot
REHEARSED = 1e-3     # their rate
GRADIENTS_APART, LENGTHS_APART = 0.02, 0.2    # of a captured step and a plain one


@dataclass
class Batch:
    """Tasks in slots: rows x [B, P + J, F], y [B, P + J], asked [B, M, F] with targets [B, M], and
    how many of the P slots of the prefix a task has, seen [B].
    """

    x: torch.Tensor
    y: torch.Tensor
    asked: torch.Tensor
    target: torch.Tensor
    seen: torch.Tensor

    def tensors(self):
        return self.x, self.y, self.asked, self.target, self.seen

    def part(self, order):
        return Batch(*(t[order] for t in self.tensors()))


class Shape:
    """The sizes of a batch, and which rows it asks.

    Where a chain has a buffer of K, a block of K rows follows the context in random order, as
    chains are measured. Each is asked given those before it, and the extra rows given some of them;
    a model that knows its buffer from its context is asked about the block given the context alone
    as well.
    """

    def __init__(self, config, shape, device, tasks=None):
        model = config["model"]
        self.rows, self.least, self.extra = shape["rows"], shape["least"], shape["extra"]
        self.tasks, self.weight = tasks or shape["tasks"], shape["weight"]
        self.latent = bool(config["prior"].get("latent"))
        self.block = model["chain"]["buffer"]
        self.buffered = self.block - 1
        self.alone = self.block if self.buffered and model["embedder"].get("roles") else 0
        self.total = self.rows + self.extra + (self.block if self.buffered else 0)
        further = torch.arange(self.extra, device=device) % self.block
        if self.buffered:
            own = torch.arange(self.block, device=device)
            self.chain = torch.cat([own, torch.zeros_like(own[: self.alone]), further])
        else:
            self.chain = further

    def lengths(self, generator, tasks, log):
        """Lengths of contexts [B], even or logarithmic between the least and all rows."""
        low, high, device = self.least, self.rows, generator.device
        u, kind = torch.rand(2, tasks, generator=generator, device=device)
        even = low + u * (high - low + 1) - 0.5
        scale = torch.exp(math.log(low) + u * math.log(high / low))
        return torch.where(kind < log, scale, even).round().long().clamp(low, high)

    def arrange(self, inputs, seen, generator):
        """Network inputs of `total` rows in slots."""
        x, y, y_input, device = inputs.x, inputs.y, inputs.y_input, inputs.x.device
        tasks, after = len(x), torch.arange(self.extra, device=device)

        def pick(rows, *tensors):
            wide = rows[..., None].expand(-1, -1, x.shape[2])
            return [t.gather(1, wide if t.ndim == 3 else rows) for t in tensors]

        start = torch.full_like(seen, self.rows) if self.latent else seen
        if not self.buffered:
            asked, target = pick(start[:, None] + after, x, y)
            return Batch(x[:, : self.rows], y_input[:, : self.rows], asked, target, seen)
        order = torch.rand(tasks, self.block, generator=generator, device=device).argsort(1)
        block = start[:, None] + order
        kept, stored = pick(block[:, : self.buffered], x, y_input)
        further = start[:, None] + self.block + after
        asked, target = pick(torch.cat([block, block[:, : self.alone], further], 1), x, y)
        return Batch(torch.cat([x[:, : self.rows], kept], 1),
                     torch.cat([y_input[:, : self.rows], stored], 1), asked, target, seen)

    def loss(self, model, batch):
        seen = None if self.least == self.rows else batch.seen
        layout = Slots(seen, self.rows, self.buffered, self.chain, model.strict)
        outputs = model(batch.x, batch.y, batch.asked, self.rows, None, layout=layout)
        return score(model, outputs, batch.target)


class Step:
    """The update by a batch of one shape: captured, or computed anew each time."""

    def __init__(self, run, shape):
        self.run, self.shape, self.graph, self.batch, self.loss = run, shape, None, None, None

    def compute(self):
        loss = self.shape.loss(self.run.model, self.batch)
        self.run.flat.backward(loss)
        self.run.flat.step(self.run.training["clip"])
        self.loss.copy_(loss.detach())

    def __call__(self, batch):
        """The loss, where the next step will put its own."""
        if self.batch is None:
            self.batch = Batch(*(t.clone() for t in batch.tensors()))
            self.loss = torch.zeros((), device=batch.x.device)
            if self.run.captured:
                self.capture()
        else:
            for own, new in zip(self.batch.tensors(), batch.tensors()):
                own.copy_(new)
        if self.graph is None:
            self.compute()
        else:
            self.graph.replay()
        return self.loss

    def capture(self):
        """Capture the step and hold it against a plain one; both leave no trace.

        The stream is a run's own. Its matrix products then have a workspace that no other run's
        captured step writes to.
        """
        flat, rate = self.run.flat, self.run.flat.rate.clone()
        flat.rate.fill_(REHEARSED)
        before = flat.state()
        side, current = self.run.side(), torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(REHEARSALS):
                self.compute()
        current.wait_stream(side)
        flat.restore(before)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            self.compute()
        torch.cuda.synchronize()
        found = []
        for once in (self.compute, graph.replay):
            flat.restore(before)
            flat.gradient.zero_()
            self.loss.zero_()
            once()
            torch.cuda.synchronize()
            found.append((self.loss.item(), flat.gradient.clone(),
                          (flat.value - before["value"]).norm().item()))
        flat.restore(before)
        flat.rate.copy_(rate)
        (loss, gradient, length), (other_loss, other, other_length) = found
        apart = ((gradient - other).norm() / gradient.norm().clamp_min(1e-30)).item()
        alike = (abs(loss - other_loss) <= 1e-3 * (1 + abs(loss)) and apart <= GRADIENTS_APART
                 and abs(length - other_length) <= LENGTHS_APART * length)
        if not alike:
            raise RuntimeError(
                f"a captured step differs: losses {loss} and {other_loss}, gradients apart by "
                f"{apart}, steps of {length} and {other_length}")
        self.graph = graph


class LargeRun:
    """A run in a folder that ends at a time `until` (of time.time())."""

    def __init__(self, config, folder, device="cpu", captured=False, tasks=None):
        check_config(config)
        if "large" not in config["training"]:
            raise ConfigError("training.large: missing")
        self.config, self.folder, self.device = config, folder, torch.device(device)
        self.training, self.large = config["training"], config["training"]["large"]
        self.captured = captured
        torch.manual_seed(self.training["seed"])
        self.model = make_model(config["model"]).to(self.device)
        self.flat = Flat(self.model)
        self.curriculum = Curriculum(self.training.get("curriculum", []))
        self.shapes = [Shape(config, s, self.device, tasks) for s in self.large["shapes"]]
        self.steps = [Step(self, shape) for shape in self.shapes]
        self.step = self.tasks = self.round = 0
        self.began = self.log = self.capturing = None
        if config["model"]["head"]["kind"] == "bars":
            self.set_borders()

    def set_borders(self):
        """Bars of equal mass under the prior."""
        shape = self.shapes[0]
        tasks = self.draw(shape, ROUND, self.config["prior"], self.generator(999_999))
        y = prepare(tasks, self.config["model"]["min_rows"], self.config["model"]).y
        samples = y.flatten().clamp(-LARGEST_TARGET, LARGEST_TARGET)
        buckets = self.config["model"]["head"]["buckets"]
        self.model.head.borders.copy_(equal_mass_borders(samples, buckets))

    def start(self, path):
        """Begin with the weights of a model file, which must have all tensors."""
        self.model.load_state_dict(read_model(path)[1])
        self.flat.average.copy_(self.flat.value)

    def say(self, text):
        """A line of the log, which is the standard output where no file is named."""
        if self.log is None:
            print(text, flush=True)
            return
        with open(self.log, "a", encoding="utf-8") as f:
            print(text, file=f)

    def side(self):
        """The stream on which its steps are captured."""
        self.capturing = self.capturing or torch.cuda.Stream()
        return self.capturing

    # Checkpoints ----------------------------------------------------------------------------------

    def path(self):
        return os.path.join(self.folder, "large.pt")

    def save(self):
        state = dict(flat=self.flat.state(), step=self.step, tasks=self.tasks, round=self.round,
                     seconds=time.time() - self.began, curriculum=self.curriculum.state(),
                     model=self.model.state_dict())
        torch.save(state, self.path() + ".tmp")
        os.replace(self.path() + ".tmp", self.path())

    def load(self):
        """Continue from a checkpoint if there is one."""
        if not os.path.exists(self.path()):
            return False
        state = torch.load(self.path(), map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.flat.restore(state["flat"])
        self.curriculum.restore(state["curriculum"])
        for key in ("step", "tasks", "round"):
            setattr(self, key, state[key])
        self.began = time.time() - state["seconds"]
        return True

    def export(self, path):
        write_model(path, self.config["model"], self.flat.averaged(self.model))

    # Tasks ----------------------------------------------------------------------------------------

    def generator(self, number):
        seed = (self.training["seed"] * 1_000_003 + number) * 1024
        return torch.Generator(device=self.device).manual_seed(seed)

    def draw(self, shape, steps, prior, generator):
        """Tasks for some steps."""
        count = steps * shape.tasks
        functions = math.gcd(self.large.get("functions", 1), count)
        if functions > 1:
            prior = {**prior, "functions": functions}
        given = shape.rows if shape.latent else 0
        shared = random.Random(self.round)
        return draw_tasks(prior, generator, count, shape.total, shared, given)

    def batches(self, shape, steps, generator):
        """Batches of some steps, tasks of shared inputs far from each other."""
        prior = self.curriculum.prior(self.config["prior"])
        tasks = self.draw(shape, steps, prior, generator)
        if self.round == 0:
            check_tasks(self.config["model"], tasks)
        inputs = prepare(tasks, self.config["model"]["min_rows"], self.config["model"])
        seen = shape.lengths(generator, len(tasks.y), self.large.get("log", 0.5))
        whole = shape.arrange(inputs, seen, generator)
        order = torch.randperm(len(seen), generator=generator, device=self.device)
        return [whole.part(part) for part in order.split(shape.tasks)]

    def plan(self):
        """(step, batch) of the next round, shapes by their weights and mixed."""
        generator, shared = self.generator(self.round), random.Random(self.round)
        total, planned = sum(s.weight for s in self.shapes), []
        for step in self.steps:
            count = max(1, round(ROUND * step.shape.weight / total))
            planned += [(step, b) for b in self.batches(step.shape, count, generator)]
        self.round += 1
        shared.shuffle(planned)
        return planned

    # The loop -------------------------------------------------------------------------------------

    def rate(self, progress):
        rising = min(1.0, progress / WARMUP)
        factor = schedule(progress, self.step, LEAST_WARMUP, self.large["decay"])
        return self.large["learning_rate"] * factor * rising

    def one_round(self, progress):
        """The losses of a round, [steps]; `progress` says how much of the time is over."""
        losses, planned = [], None
        while planned is None:
            try:
                planned = self.plan()
            except torch.linalg.LinAlgError as e:
                # One matrix that has no factor in float64 does not end a run.
                self.say(f"tasks of round {self.round} drawn anew: {e}")
                self.round += 1
        for step, batch in planned:
            self.flat.rate.fill_(self.rate(progress()))
            self.flat.keep.fill_(min(self.training["ema"], (1 + self.step) / (10 + self.step)))
            losses.append(step(batch).clone())
            self.step += 1
            self.tasks += step.shape.tasks
        # The host waits here alone, so that it is never far ahead.
        losses = torch.stack(losses).tolist()
        for loss in losses:
            if math.isfinite(loss) and not self.curriculum.ended and self.curriculum.heard(-loss):
                self.say(f"stage {self.curriculum.stage} of the curriculum ends at step "
                         f"{self.step}")
        return losses

    def train(self, until, out, every=40.0):
        """Train until the time is over, with a checkpoint and a model file every so many seconds,
        and at the end.
        """
        clock = time.time
        if self.began is None:
            self.began = clock()
        saved = shown = clock()
        recent, tasks = [], self.tasks
        span = max(until - self.began, SLOWEST)

        def progress():
            return min((clock() - self.began) / span, 1.0)

        def keep():
            self.save()
            self.export(out)

        while clock() < until:
            recent += self.one_round(progress)
            now = clock()
            if now - shown >= 10 or now >= until:
                self.say(f"second {now - self.began:6.1f}  {100 * progress():3.0f} %  "
                         f"step {self.step}  tasks {self.tasks}  "
                         f"({(self.tasks - tasks) / (now - shown):.0f}/s)  "
                         f"log density {-sum(recent) / len(recent):+.4f}  rate "
                         f"{self.rate(progress()):.1e}  skipped {self.flat.skipped.item():.0f}")
                shown, recent, tasks = now, [], self.tasks
            if now - saved >= every:
                keep()
                saved = now
        keep()


def add_command(commands):
    p = commands.add_parser("train-large",
                            help="train by large batches on a device, until a time is over")
    p.add_argument("config", nargs="+", help="files of configs/ whose training part has `large`; "
                                             "several are trained beside each other")
    p.add_argument("--run", required=True,
                   help="folder of the checkpoint, which a run continues; of several, one in it")
    p.add_argument("--out", required=True,
                   help="model file, written with every checkpoint; of several, their folder")
    p.add_argument("--seconds", type=float, help="how long")
    p.add_argument("--until", type=float, help="or when it ends, in seconds of the epoch")
    p.add_argument("--device", default="cpu", help="cpu or cuda")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--tasks", type=int, help="tasks of a batch, instead of those of the shapes")
    p.add_argument("--seed", type=int, help="instead of the configuration's")
    p.add_argument("--start", help="model file whose weights a new run begins with")
    p.add_argument("--every", type=float, default=40.0, help="seconds between checkpoints")
    p.add_argument("--eager", action="store_true", help="capture no step")
    p.set_defaults(call=run_large)


def make_run(a, path, folder, captured):
    """The run of a configuration, where its checkpoint or its first weights are."""
    try:
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
    except (OSError, ValueError) as e:
        raise SystemExit(f"{path}: {e}") from e
    if a.seed is not None:
        config["training"]["seed"] = a.seed
    os.makedirs(folder, exist_ok=True)
    run = LargeRun(config, folder, a.device, captured, a.tasks)
    named = config["training"].get("start")
    start = a.start or named and os.path.join(os.path.dirname(path), named)
    if run.load():
        run.say(f"continuing at step {run.step}, {run.tasks} tasks")
    elif start:
        run.start(start)
    return run


def run_large(a):
    if not a.seconds and not a.until:
        raise SystemExit("give a budget: --seconds or --until")
    a.until = a.until or time.time() + a.seconds
    torch.set_num_threads(a.threads)
    # Inputs and answers that differ in the fourth digit matter to functions without noise.
    torch.set_float32_matmul_precision("highest")
    captured = a.device != "cpu" and not a.eager
    if len(a.config) > 1:
        return Together(a, captured).train()
    # A device that does not answer yet is no fault of captured steps.
    run = make_run(a, a.config[0], a.run, captured)
    try:
        run.train(a.until, a.out, a.every)
    except Exception as e:
        if not captured or isinstance(e, ConfigError):
            raise
        # A device that failed in a capture may be of no use to this process any more.
        traceback.print_exc()
        print("no captured steps from here on", flush=True)
        os.execv(sys.executable, command(a, a.config[0], a.run, a.out))


def command(a, path, folder, out):
    """The command that trains one configuration in a process of its own, capturing no step."""
    words = [sys.executable, "-m", "pg_posterior_train", "train-large", path, "--run", folder,
             "--out", out, "--eager"]
    for name in ("until", "device", "threads", "tasks", "seed", "start", "every"):
        value = getattr(a, name)
        words += [f"--{name}", str(value)] if value is not None else []
    return words


class Together:
    """Several runs of one process, each with a thread and a stream: their kernels, which are small,
    share the device. Steps are captured one run after the other, before the threads begin. A run
    that fails goes on in a process of its own.
    """

    def __init__(self, a, captured):
        self.a, self.captured, self.processes = a, captured, []
        os.makedirs(a.run, exist_ok=True)
        os.makedirs(a.out, exist_ok=True)

    def places(self, path):
        """(folder of the checkpoint, model file, log) of a configuration."""
        name = os.path.splitext(os.path.basename(path))[0]
        return (os.path.join(self.a.run, name), os.path.join(self.a.out, name + ".safetensors"),
                os.path.join(self.a.out, name + ".log"))

    def alone(self, path):
        """After an exception: the run goes on in another process."""
        folder, out, log = self.places(path)
        with open(log, "a", encoding="utf-8") as f:
            traceback.print_exc(file=f)
            f.flush()
            if not self.captured or time.time() + 15 > self.a.until:
                return
            words = command(self.a, path, folder, out)
            self.processes.append(subprocess.Popen(words, stdout=f, stderr=f))

    def begin(self, path):
        """(path, stream, run) with every step of the run captured; None where it failed."""
        folder, _, log = self.places(path)
        stream = torch.cuda.Stream() if self.captured else None
        try:
            with on_stream(stream):
                run = make_run(self.a, path, folder, self.captured)
                run.log = log
                run.one_round(lambda: 0.0)
            return path, stream, run
        except Exception:
            self.alone(path)
            return None

    def work(self, path, stream, run):
        try:
            with on_stream(stream):
                run.train(self.a.until, self.places(path)[1], self.a.every)
        except Exception:
            self.alone(path)

    def train(self):
        begun = [found for found in map(self.begin, self.a.config) if found]
        # Threads that wait for their streams want the interpreter back soon.
        sys.setswitchinterval(0.0005)
        threads = [threading.Thread(target=self.work, args=found, daemon=True) for found in begun]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for process in self.processes:
            process.wait()


def on_stream(stream):
    return nullcontext() if stream is None else torch.cuda.stream(stream)
