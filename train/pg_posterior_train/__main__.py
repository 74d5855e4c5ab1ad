"""Command line of the trainer: `python -m pg_posterior_train train configs/gp1d.json --minutes 25`,
and other verbs.
"""
import argparse
import json
import math
import os

from . import begin, evaluate, export, gate, keep, large, trainer
from .config import ConfigError, check_config


def positive(kind, zero=False):
    """An argument's type: numbers of a kind that are finite and more than 0, or 0 as well."""
    def number(text):
        value = kind(text)
        if not (math.isfinite(value) and (value > 0 or zero and value == 0)):
            raise argparse.ArgumentTypeError(f"{text} is not a number "
                                             + ("from 0 on" if zero else "above 0"))
        return value
    return number


def add_train(commands):
    p = commands.add_parser("train", help="train a model, or continue a training run")
    p.add_argument("config", help="a file of configs/")
    p.add_argument("--run", help="folder of the checkpoints (default: runs/<name of the config>)")
    p.add_argument("--out", help="model file to write at intervals and at the end")
    p.add_argument("--minutes", type=positive(float),
                   help="time budget, counted over all continuations")
    p.add_argument("--seed", type=int, help="instead of the configuration's")
    p.add_argument("--steps", type=positive(int), help="step budget instead of a time budget")
    p.add_argument("--processor-time", action="store_true",
                   help="--minutes are of processor time: equal budgets on a busy machine")
    p.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    p.add_argument("--workers", type=positive(int), default=1,
                   help="processes with gradient averaging (CPU)")
    p.add_argument("--threads", type=positive(int), default=1, help="threads of each process")
    p.add_argument("--compile", action="store_true", help="torch.compile of the blocks (PyTorch 2)")
    p.add_argument("--resume", default="latest", choices=["latest", "stable", "none"],
                   help="checkpoint to go on from; stable: before the decay; none: begin anew")
    p.add_argument("--start", help="model file (or checkpoint) whose weights a new run begins "
                                   "with; parts that it lacks begin at zero")
    p.add_argument("--export-minutes", type=positive(float, True), default=5.0,
                   help="interval of the exports")
    p.add_argument("--checkpoint-seconds", type=positive(float, True), default=60.0,
                   help="interval of the checkpoints")
    p.set_defaults(call=run_train)


def run_train(a):
    if not a.minutes and not a.steps:
        raise SystemExit("give a budget: --minutes or --steps")
    try:
        with open(a.config) as f:
            config = json.load(f)
    except (OSError, ValueError) as e:
        raise SystemExit(f"{a.config}: {e}") from e
    check_config(config)
    if a.seed is not None:
        config["training"]["seed"] = a.seed
    # A configuration that grows out of a bundled model names its file, relative to its own folder.
    grown = config["training"].get("start")
    start = a.start or (os.path.join(os.path.dirname(a.config), grown) if grown else None)
    folder = a.run or os.path.join("runs", os.path.splitext(os.path.basename(a.config))[0])
    trainer.train(config, folder, minutes=a.minutes, steps=a.steps, out=a.out, device=a.device,
                  workers=a.workers,
                  threads=a.threads, compile=a.compile, resume=a.resume, start=start,
                  export_minutes=a.export_minutes, checkpoint_seconds=a.checkpoint_seconds,
                  processor_time=a.processor_time)


def main():
    parser = argparse.ArgumentParser(prog="pg_posterior_train", description=__doc__)
    commands = parser.add_subparsers(required=True)
    add_train(commands)
    begin.add_command(commands)
    large.add_command(commands)
    export.add_command(commands)
    evaluate.add_command(commands)
    gate.add_command(commands)
    keep.add_commands(commands)
    a = parser.parse_args()
    try:
        a.call(a)
    except ConfigError as e:
        raise SystemExit(f"this cannot be trained: {e}") from e


if __name__ == "__main__":
    main()
