"""The gate to a process's answer, fitted alone: everything else stays as a model file has it
(docs/model-format.md, section 8, "process").

What the network and the process say of a query does not depend on the gate, so that each query of
a task of the prior becomes some numbers, once: those that the gate reads, and the two log densities
between which it chooses. The fit takes them from memory.

Log density alone would let the gate hedge where a process is exact: a twentieth of the weight costs
0.05 nats, and moves the mean by hundreds of the process's deviations if the network is that far
off. So the fit also counts, a little, how far means are moved, in logs of what the process is off.
"""

import json
import os
import time

import torch
import torch.nn.functional as F

from . import process
from .line import is_certain
from .config import ConfigError, check_config
from .export import write_model
from .heads import Gate
from .mixture import Mixture
from .normalise import ask, prepare
from .questions import training_questions
from .trainer import LARGEST_DENSITY, LARGEST_TARGET, Run

QUERIES = 192          # of a task at most: more of them say little more
HELD_OUT = 8           # every so many batches one is
EPOCHS, BATCH, RATE, DECAY = 30, 4096, 0.006, 1e-4
MOST_DENSITY = 8.0     # that counts in the fit
HEDGING = 0.2          # what a log of the distance that means are moved counts, in nats


def gaussian(y, mean, log_sd):
    """Log density."""
    return Mixture(torch.stack([mean, log_sd], -1), {"kind": "gaussian", "std": "exp"}).log_prob(y)


@torch.no_grad()
def answers(model, tasks, rows, prefix, generator):
    """[Q, read + 4]: what the gate reads, log density of the network's answer and of the process's,
    log of how far the network's mean is from the process's, in deviations of what this is off, and
    the query's share of its task; of at most QUERIES queries of every task.
    """
    asked = training_questions(model.config, rows, tasks.y.shape[1], prefix, tasks.y.device)
    inputs = prepare(tasks, asked.statistics, model.config)
    outputs = ask(model, inputs, asked)
    queries, y = inputs.x[:, asked.first :], inputs.y[:, asked.first :]
    head = outputs[..., :-3]
    gate = model.head.gate
    behind = (asked.visible - asked.statistics).clamp_min(0)
    read = gate.numbers(head, queries[..., -process.NUMBERS :], queries, behind)
    within = y.clamp(-LARGEST_TARGET, LARGEST_TARGET)
    own = Mixture(head, gate.plain).log_prob(within)
    other = gaussian(within, *outputs[..., -2:].unbind(-1))
    some = torch.randperm(y.shape[1], generator=generator)[:QUERIES]
    # A line that is certain does not ask the gate.
    asks = ~is_certain(queries[..., -1])
    kept = (asks & (y.abs() <= LARGEST_TARGET))[:, some]
    share = kept / kept.sum(1, keepdim=True).clamp_min(1)
    mean, log_sd = outputs[..., -2:].unbind(-1)
    off = torch.maximum((mean - within).abs(), log_sd.exp())
    apart = ((Mixture(head, gate.plain).moments()[0] - mean).abs() / off + 1e-9).log()
    densities = torch.stack([own[:, some], other[:, some], apart[:, some], share], -1)
    table = torch.cat([read[:, some], densities], -1)
    return table[kept]


def collect(run, batches=0, minutes=0, path=None):
    """Tables of `answers`, one of every batch that was drawn; with a path, those of an earlier call
    are there already, and all are kept in it.
    """
    found = torch.load(path) if path and os.path.exists(path) else []
    end = time.monotonic() + 60 * minutes
    run.model.eval()
    new = 0
    while new < batches if batches else time.monotonic() < end:
        run.step = len(found) + 1
        tasks, rows, prefix = run.draw()
        table = answers(run.model, tasks, rows, prefix, run.generator())
        found.append(table)
        new += 1
        if path and (new % 20 == 0 or new == batches):
            torch.save(found, path)
    if path:
        torch.save(found, path)
    return found


def loss(gate, table, most=LARGEST_DENSITY, hedging=0.0):
    """Mean negative log density, of `most` at most, of a task's queries, and `hedging` times what
    their means are moved by; table [Q, read + 4].
    """
    read, own, other, apart, share = table.split([gate.read, 1, 1, 1, 1], -1)
    u = super(Gate, gate).forward(read)
    both = torch.stack([own + F.logsigmoid(-u), other + F.logsigmoid(u)])
    density = both.logsumexp(0).clamp_max(most)
    moved = 0.5 * F.softplus(2 * (F.logsigmoid(-u) + apart))
    return (share * (hedging * moved - density)).sum() / share.sum()


def fit(gate, tables, seed=0, epochs=EPOCHS):
    """Fit the gate, from where it is; returns the mean negative log density of batches held out: of
    the network alone, at the gate's beginning, and with the gate of the epoch that had the least
    loss.
    """
    if len(tables) < 2:
        raise ConfigError("a gate needs the answers to two batches of tasks at least")
    generator = torch.Generator().manual_seed(seed)
    held = torch.cat(tables[::HELD_OUT])
    seen = torch.cat([t for i, t in enumerate(tables) if i % HELD_OUT])
    # The scale of the numbers read goes into the first layer, when all is done.
    read = gate.read
    center, scale = seen[:, :read].mean(0), seen[:, :read].std(0) + 1e-3

    def scaled(table):
        return torch.cat([(table[:, :read] - center) / scale, table[:, read:]], 1)

    held, seen = scaled(held), scaled(seen)
    with torch.no_grad():
        gate[0].bias.add_(gate[0].weight @ center)
        gate[0].weight.mul_(scale)
        own = held[:, read].clamp_max(MOST_DENSITY)
        alone = -(held[:, -1] * own).sum() / held[:, -1].sum()
        first = found = loss(gate, held, MOST_DENSITY).item()
        best = loss(gate, held, MOST_DENSITY, HEDGING).item()
    kept = {k: v.clone() for k, v in gate.state_dict().items()}
    optimiser = torch.optim.AdamW(gate.parameters(), RATE, weight_decay=DECAY)
    steps = epochs * -(-len(seen) // BATCH)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(epochs):
        for part in torch.randperm(len(seen), generator=generator).split(BATCH):
            optimiser.zero_grad()
            loss(gate, seen[part], MOST_DENSITY, HEDGING).backward()
            optimiser.step()
            falling.step()
        with torch.no_grad():
            now = loss(gate, held, MOST_DENSITY, HEDGING).item()
            if now < best:
                best, found = now, loss(gate, held, MOST_DENSITY).item()
                kept = {k: v.clone() for k, v in gate.state_dict().items()}
    gate.load_state_dict(kept)
    with torch.no_grad():
        gate[0].weight.div_(scale)
        gate[0].bias.sub_(gate[0].weight @ center)
    return alone.item(), first, found


def read_gate(gate, path):
    """Go on from a kept gate."""
    with open(path, encoding="utf-8") as f:
        kept = {k: torch.tensor(v) for k, v in json.load(f).items()}
    wrong = {k: tuple(v.shape) for k, v in kept.items()} != {
        k: tuple(v.shape) for k, v in gate.state_dict().items()}
    if wrong:
        raise ConfigError(f"{path} is not of a gate of this configuration")
    gate.load_state_dict(kept)


def keep_gate(gate, path):
    """Some hundred numbers, as text."""
    with open(path, "w", encoding="utf-8") as f:
        json.dump({k: v.tolist() for k, v in gate.state_dict().items()}, f)


def add_command(commands):
    p = commands.add_parser("fit-gate", help="fit the gate to a process's answer, and nothing else")
    p.add_argument("config", help="a file of configs/ whose head has a process")
    p.add_argument("start", help="model file or checkpoint whose weights stay")
    p.add_argument("out", nargs="?", help="model file to write")
    p.add_argument("--minutes", type=float, default=0, help="time for drawing tasks of the prior")
    p.add_argument("--batches", type=int, default=0, help="how many to draw instead")
    p.add_argument("--answers", metavar="FILE",
                   help="keep what was drawn: a later call draws further tasks, or none")
    p.add_argument("--gate", metavar="FILE",
                   help="go on from the gate in it, where it is there, and keep the fitted one")
    p.add_argument("--seed", type=int, help="instead of the configuration's")
    p.add_argument("--threads", type=int, default=1)
    p.set_defaults(call=run_fit)


def run_fit(a):
    torch.set_num_threads(a.threads)
    with open(a.config, encoding="utf-8") as f:
        config = json.load(f)
    check_config(config)
    if not config["model"]["head"].get("process"):
        raise ConfigError(f"{a.config} has no head.process: there is no gate to fit")
    if a.seed is not None:
        config["training"]["seed"] = a.seed
    run = Run(config, "")
    run.start(a.start)
    gate = run.model.head.gate
    if a.gate and os.path.exists(a.gate):
        read_gate(gate, a.gate)
    tables = collect(run, a.batches, a.minutes, a.answers)
    if tables:
        alone, first, best = fit(gate, tables, config["training"]["seed"])
        print(f"{len(tables)} batches, {sum(map(len, tables))} queries; of those held out, nats: "
              f"the network alone {-alone:+.4f}, the gate at first {-first:+.4f}, fitted "
              f"{-best:+.4f}")
        if a.gate:
            keep_gate(gate, a.gate)
    if a.out:
        write_model(a.out, config["model"], run.model.state_dict())
