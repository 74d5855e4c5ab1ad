"""The training loop: dense causal loss, Muon + AdamW, warm-up-stable-decay, checkpoints that
survive a kill.

Objective (section 3 of Mortimer et al. 2026, restricted to the suffix): a task has `N` rows, a
prefix of random length whose rows see each other, and a causal suffix. Every suffix row is
predicted from the rows before it; some further rows are predicted from the prefix alone. Statistics
are frozen at the prefix, as the database freezes them.

All randomness is a function of (seed, step, worker), so a killed run continues with the tasks it
would have seen.
"""
import fcntl
import json
import math
import os
import random
import time
from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist

from .bars import equal_mass_borders
from .classes import class_loss, is_classifier
from .config import MOST_PARAMETERS, ConfigError, check_config, check_tasks
from .curriculum import Curriculum
from .export import read_model, write_model
from .blocks import Block
from .heads import Joint, distribution
from .interrupt import STATUS, Interrupt
from .keep import read_checkpoint
from .model import make_model
from .normalise import ask, prepare
from .optim import make_optimisers, schedule
from .prior import PRIORS
from .questions import is_split, split_questions, training_questions

LARGEST_TARGET = 12.0    # rows further out than this many prefix sds are left out of the loss
LARGEST_DENSITY = 6.0    # cap of the log density, so that noise-free tasks do not own the gradient
PROGRESS_SECONDS, CHECKPOINT_SECONDS = 10, 60


def choose_shape(rng, training):
    """Rows, tasks, extra queries and prefix length of one step; the same for all workers, so that
    none waits.
    """
    shape = rng.choices(training["shapes"], [s["weight"] for s in training["shapes"]])[0]
    options, rows = training.get("prefix"), shape["rows"]
    if options is None:    # a causal model has no prefix
        return rows, shape["tasks"], shape["extra"], 0
    low, special = options["minimum"], options["none"] + options["all"]
    u = rng.random()
    if u < options["none"] and low == 0:
        prefix = 0
    elif u < options["none"] * (low == 0) + options["all"]:
        prefix = rows
    elif u < special + options.get("log", 0.5) * (1 - special):
        prefix = round(math.exp(rng.uniform(math.log(max(low, 1)), math.log(rows))))
    else:
        prefix = rng.randint(low, rows)
    return rows, shape["tasks"], shape["extra"], prefix


def draw_tasks(prior, generator, tasks, rows, shared, given=0):
    """Tasks of the prior that a configuration names, with its options; given: the rows of context,
    for priors whose further rows are of another kind.
    """
    options = dict(prior)
    name = options.pop("name")
    if options.get("latent"):
        options["given"] = given
    if name not in PRIORS:
        raise ConfigError(f"prior.name: {name!r} is not one of " + ", ".join(PRIORS))
    try:
        return PRIORS[name](generator, tasks, rows, shared=shared, **options)
    except TypeError as e:
        if "keyword argument" not in str(e):
            raise
        raise ConfigError(f"prior: {e}") from e
    except (ValueError, OSError) as e:
        raise ConfigError(f"prior: {e}") from e


def batch_loss(model, tasks, rows, prefix, split=False):
    """Mean negative log density of a target per task, averaged over tasks.

    tasks: tables of `rows` context rows followed by extra rows, which are asked given the prefix
    alone; with split, the extra rows alone are asked, given all others.
    """
    if is_classifier(model.config):
        return class_loss(model, tasks, rows, prefix)
    choose = split_questions if split else training_questions
    asked = choose(model.config, rows, tasks.y.shape[1], prefix, tasks.y.device)
    inputs = prepare(tasks, asked.statistics, model.config)
    return score(model, ask(model, inputs, asked), inputs.y[:, asked.first:])


def score(model, outputs, y):
    """Mean negative log density of the targets y [B, M], or [B, M, D], per task, averaged over
    tasks; outputs of a head that is no classifier's.
    """
    within = y.clamp(-LARGEST_TARGET, LARGEST_TARGET)
    if model.config["head"]["kind"] == "joint-gaussian":
        each = Joint(outputs).log_prob(within.flatten(1)) / within[0].numel()
        return -each.clamp_max(LARGEST_DENSITY).mean()
    if model.config["head"]["kind"] == "bars":
        within = within.clamp(model.head.borders[0], model.head.borders[-1])
    density = distribution(model, outputs).log_prob(within)
    kept = (y.abs() <= LARGEST_TARGET).to(density.dtype)
    density = density.clamp_max(LARGEST_DENSITY) * kept
    return -(density.flatten(1).sum(1) / kept.flatten(1).sum(1).clamp_min(1)).mean()


class Run:
    """One training run in a folder: model, optimisers, moving average and counters."""

    def __init__(self, config, folder, device="cpu", rank=0, workers=1):
        check_config(config)
        self.config, self.folder, self.device = config, folder, device
        self.rank, self.workers = rank, workers
        self.training = config["training"]
        torch.manual_seed(self.training["seed"])
        self.model = make_model(config["model"]).to(device)
        self.split = is_split(config["model"], self.training)
        self.curriculum = Curriculum(self.training.get("curriculum", []))
        self.fewest = max(1, config["model"]["min_rows"])
        parameters = sum(p.numel() for p in self.model.parameters())
        if parameters > MOST_PARAMETERS:
            raise ConfigError(f"the model has {parameters} parameters, and the engine reads at "
                              f"most {MOST_PARAMETERS}")
        if config["model"]["head"]["kind"] == "bars":
            self.set_borders()
        self.average = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.optimisers = make_optimisers(self.model, faster=self.training.get("faster"))
        self.step = self.tasks = 0
        self.seconds = 0.0
        self.skipped = 0
        self.stable_saved = False

    def set_borders(self, batches=64):
        """Bars of equal mass under the prior: borders from scaled targets of its tasks."""
        found = []
        self.step = self.tasks = 0
        for _ in range(batches):
            self.step += 1
            tasks, rows, prefix = self.draw(self.config["prior"])
            statistics = max(prefix, self.config["model"]["min_rows"])
            found.append(prepare(tasks, statistics, self.config["model"]).y.flatten())
        samples = torch.cat(found).clamp(-LARGEST_TARGET, LARGEST_TARGET)
        borders = equal_mass_borders(samples, self.config["model"]["head"]["buckets"])
        self.model.head.borders.copy_(borders)

    # Checkpoints ----------------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.folder, name + ".pt")

    def save(self, name="latest"):
        """Write a checkpoint atomically."""
        if self.rank:
            return
        os.makedirs(self.folder, exist_ok=True)
        state = dict(config=self.config, model=self.model.state_dict(), average=self.average,
                     optimisers=[o.state_dict() for o in self.optimisers], step=self.step,
                     tasks=self.tasks,
                     seconds=self.seconds, skipped=self.skipped, stable_saved=self.stable_saved,
                     curriculum=self.curriculum.state())
        temporary = self.path(name) + ".tmp"
        torch.save(state, temporary)
        os.replace(temporary, self.path(name))

    def load(self, name="latest"):
        """Continue from a checkpoint if there is one."""
        if not os.path.exists(self.path(name)):
            return False
        state = read_checkpoint(self.path(name), self.device)
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError as e:
            raise SystemExit(f"{self.path(name)} is of a run of another model; give --run another "
                             f"folder, or --resume none to begin anew ({e})") from e
        self.average = state["average"]
        for optimiser, saved in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(saved)
        for key in ("step", "tasks", "seconds", "skipped", "stable_saved"):
            setattr(self, key, state[key])
        if "curriculum" in state:
            self.curriculum.restore(state["curriculum"])
        if name == "stable":
            self.stable_saved = False    # a longer stable phase replaces it
        return True

    def start(self, path):
        """Begin with the weights of a model file or checkpoint. What the file lacks must be zero
        here, so that the answers stay the same.
        """
        state = (read_checkpoint(path, "cpu")["average"] if path.endswith(".pt")
                 else read_model(path)[1])
        own = self.model.state_dict()
        wrong = [f"{name} is {list(state[name].shape)} there and {list(own[name].shape)} here"
                 for name in own if name in state and state[name].shape != own[name].shape]
        new = tuple(self.training.get("faster", {}))
        wrong += [f"{name} is not there, and does not begin at zero" for name in own
                  if name not in state and own[name].any() and not name.startswith(new)]
        wrong += [f"{name} is there alone" for name in state if name not in own]
        if wrong:
            raise SystemExit(f"{path} cannot start this configuration: " + "; ".join(sorted(wrong)))
        self.model.load_state_dict({**own, **state})
        self.average = {k: v.detach().clone() for k, v in self.model.state_dict().items()}

    def export(self, path):
        """Write the averaged weights as a model file."""
        if self.rank == 0:
            write_model(path, self.config["model"], self.average)

    # One step -------------------------------------------------------------------------------------

    def generator(self):
        seed = (self.training["seed"] * 1_000_003 + self.step) * 1024 + self.rank
        return torch.Generator(device=self.device).manual_seed(seed)

    def draw(self, prior=None):
        """Tasks of this step and worker; prior: another than that of the stage of training."""
        shared = random.Random(self.training["seed"] * 1_000_003 + self.step)
        rows, tasks, extra, prefix = choose_shape(shared, self.training)
        if self.split:
            rows = shared.randint(self.fewest, rows)
            prefix = min(prefix, rows)
        prior = prior or self.curriculum.prior(self.config["prior"])
        drawn = draw_tasks(prior, self.generator(), tasks, rows + extra, shared, rows)
        check_tasks(self.config["model"], drawn)
        return drawn, rows, prefix

    def share_gradients(self):
        """Average the gradients over the workers."""
        if self.workers == 1:
            return
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat)
        flat /= self.workers
        for g, part in zip(grads, flat.split([g.numel() for g in grads])):
            g.copy_(part.view_as(g))

    def train_step(self, progress):
        """One update; returns the loss of this worker."""
        tasks, rows, prefix = self.draw()
        with nullcontext() if self.device == "cpu" else torch.autocast("cuda", torch.bfloat16):
            loss = batch_loss(self.model, tasks, rows, prefix, self.split)
        for p in self.model.parameters():
            p.grad = None
        loss.backward()
        for p in self.model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        self.share_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training["clip"])
        rate = self.training["learning_rate"] * schedule(
            progress, self.step, self.training["warmup"], self.training["decay"])
        if torch.isfinite(norm):
            for optimiser in self.optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = rate * group.get("times", 1.0)
                optimiser.step()
            keep = min(self.training["ema"], (1 + self.step) / (10 + self.step))
            with torch.no_grad():
                for name, value in self.model.state_dict().items():
                    self.average[name].lerp_(value, 1 - keep)
        else:
            self.skipped += 1
        self.step += 1
        self.tasks += len(tasks.y) * self.workers
        if not self.curriculum.ended and self.curriculum.heard(-self.agree(loss.item())):
            self.say(f"stage {self.curriculum.stage} of the curriculum ends at step {self.step}")
        return loss.item(), rate

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    # The loop -------------------------------------------------------------------------------------

    def agree(self, value):
        """Worker 0's number, for decisions that all workers must take alike."""
        if self.workers == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(shared, 0)
        return shared.item()

    def train(self, minutes=None, steps=None, out=None, export_minutes=5.0,
              checkpoint_seconds=CHECKPOINT_SECONDS, clock=time.monotonic, interrupt=None):
        """Train until the budget, counted over all continuations, is used up; then export.

        clock: seconds of the budget; time.process_time counts what worker 0 computes. interrupt:
        once worker 0's has been asked, the step under way ends, and a checkpoint is all that is
        written.
        """
        last = clock()
        shown = saved = exported = self.seconds
        recent, recent_tasks = [], self.tasks
        parent = os.getppid()
        while True:
            if self.workers > 1 and os.getppid() != parent:
                raise SystemExit("the parent process is gone")
            progress = self.agree(math.inf if interrupt and interrupt.asked else self.step / steps
                                  if steps else self.seconds / (60 * minutes))
            if progress == math.inf:
                self.save()
                self.say(f"stopped at step {self.step}; the same command goes on from there")
                return
            if progress >= 1:
                break
            if progress > 1 - self.training["decay"] and not self.stable_saved:
                # Kept so that a later, longer run can go on from the weights before the decay.
                self.stable_saved = True
                self.save("stable")
            loss, rate = self.train_step(progress)
            recent.append(loss)
            now = clock()
            self.seconds += now - last
            last = now
            if self.rank:
                continue
            if self.seconds - shown >= PROGRESS_SECONDS:
                print(f"minute {self.seconds / 60:6.1f}  {100 * progress:3.0f} %  step {self.step} "
                      f" tasks {self.tasks}  "
                      f"({(self.tasks - recent_tasks) / (self.seconds - shown):.0f}/s)  "
                      f"log density {-sum(recent) / len(recent):+.4f}  rate {rate:.1e}  skipped "
                      f"{self.skipped}", flush=True)
                shown, recent, recent_tasks = self.seconds, [], self.tasks
            if self.seconds - saved >= checkpoint_seconds:
                self.save()
                saved = self.seconds
            if out and self.seconds - exported >= 60 * export_minutes:
                self.export(out)
                exported = self.seconds
        self.save()
        if out:
            self.export(out)


def work(rank, config, folder, options):
    """Entry point of one worker process."""
    torch.set_num_threads(options["threads"])
    workers = options["workers"]
    if workers > 1:
        dist.init_process_group("gloo", init_method="file://" + os.path.abspath(options["store"]),
                                rank=rank, world_size=workers, timeout=timedelta(minutes=5))
    run = Run(config, folder, options["device"], rank, workers)
    if options["compile"]:
        # Fuses norms, activations and residuals: a quarter more tasks per second on CPU, for two
        # minutes of warm-up.
        Block.forward, Block.read = (torch.compile(f, dynamic=True)
                                     for f in (Block.forward, Block.read))
    if not run.load(options["resume"]):
        if options["start"]:
            run.start(options["start"])
    elif rank == 0:
        print(f"continuing at step {run.step}, {run.seconds / 60:.1f} minutes, {run.tasks} tasks",
              flush=True)
    with Interrupt(patient=workers > 1).heard() as interrupt:
        run.train(options["minutes"], options["steps"], options["out"], options["export_minutes"],
                  options["checkpoint_seconds"],
                  time.process_time if options["processor_time"] else time.monotonic, interrupt)
    if workers > 1:
        dist.destroy_process_group()
    elif interrupt.asked:
        raise SystemExit(STATUS)


def check_resume(folder, name):
    """Refuse to begin anew where a checkpoint that is asked for is not there and others are."""
    there = [found for found in ("latest", "stable")
             if os.path.exists(os.path.join(folder, found + ".pt"))]
    if there and name != "none" and name not in there:
        raise SystemExit(f"{folder} has no checkpoint {name}, and has {there[0]}: --resume "
                         f"{there[0]} goes on, --resume none begins anew")


def train(config, folder, **options):
    """Train with `workers` processes; see __main__.py for the options."""
    os.makedirs(folder, exist_ok=True)
    # two runs in a folder would take each other's checkpoints for theirs
    with open(os.path.join(folder, "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise SystemExit(f"another process trains in {folder}") from e
        check_resume(folder, options["resume"])
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f, indent=1)
        if options["workers"] == 1:
            return work(0, config, folder, options)
        options["store"] = os.path.join(folder, "store")
        if os.path.exists(options["store"]):
            os.remove(options["store"])
        with Interrupt().heard() as interrupt:
            torch.multiprocessing.spawn(work, (config, folder, options), options["workers"])
        if interrupt.asked:
            raise SystemExit(STATUS)
