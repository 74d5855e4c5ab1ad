"""The first checkpoint of a run, with the weights of a trained model of another kind as far as they
fit.

A classifier shares its trunk with a regression model of the same width: blocks, sinks, norms and
the first numbers of every cell. Head and target encoder are new.
"""
import json

from .classes import COMMON
from .keep import read_checkpoint
from .trainer import Run

TARGET_MEAN = 3    # the cell number that regression has and classification has not


def adapt(name, given, own):
    """The tensor to start with, or None where the given one does not fit."""
    if given.shape == own.shape:
        return given.clone()
    if name != "embed.x.slot.weight" or given.shape[:2] != own.shape[:2]:
        return None
    # New numbers of the cells start small beside those that the model knows.
    out = 0.3 * own
    out[..., :COMMON] = given
    out[..., TARGET_MEAN] = 0
    return out


def begin(config, folder, checkpoint):
    """Write `latest.pt` to the folder; returns the names of the tensors that start anew."""
    given = read_checkpoint(checkpoint, "cpu")["average"]
    run = Run(config, folder)
    state, fresh = run.model.state_dict(), []
    for name, own in state.items():
        fits = (adapt(name, given[name], own) if name in given
                and not name.startswith(("head.", "embed.y.")) else None)
        if fits is None:
            fresh.append(name)
        else:
            state[name] = fits
    run.model.load_state_dict(state)
    run.average = {k: v.detach().clone() for k, v in run.model.state_dict().items()}
    run.save()
    return fresh


def run_begin(a):
    with open(a.config) as f:
        config = json.load(f)
    print("new:", ", ".join(begin(config, a.run, a.checkpoint)))


def add_command(commands):
    p = commands.add_parser("begin", help="start a run from the trunk of another model")
    p.add_argument("config", help="a file of configs/")
    p.add_argument("checkpoint", help="runs/<name>/stable.pt of the other model")
    p.add_argument("--run", required=True,
                   help="folder of the new run; then: train CONFIG --run FOLDER")
    p.set_defaults(call=run_begin)
