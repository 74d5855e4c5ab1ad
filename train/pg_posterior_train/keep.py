"""Small copies of a run's checkpoint, to be kept beside the code while the run lasts.

The weights stay as they are; their moving average and the optimisers' moments, which the next
hundreds of steps replace, are stored in 16 bits.
"""

import lzma
import os
import pickle

import torch

FORMAT = 1


def read_checkpoint(path, device):
    """The content of a checkpoint; ends the program by its path where it is none."""
    try:
        return torch.load(path, map_location=device)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as e:
        raise SystemExit(f"{path} is no checkpoint that can be read: {e}") from e


def narrow(value, dtype):
    """The floating-point tensors of a nested state in another precision, but for counters."""
    if isinstance(value, dict):
        return {k: narrow(v, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(narrow(v, dtype) for v in value)
    if torch.is_tensor(value) and value.is_floating_point() and value.ndim > 0:
        return value.to(dtype)
    return value


def keep(checkpoint, path):
    """Write the small copy of a checkpoint atomically."""
    state = read_checkpoint(checkpoint, "cpu")
    for part in ("average", "optimisers"):
        state[part] = narrow(state[part], torch.bfloat16)
    temporary = path + ".tmp"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with lzma.open(temporary, "wb") as f:
        torch.save({"kept": FORMAT, **state}, f)
    os.replace(temporary, path)


def restore(path, checkpoint):
    """Make a checkpoint of a small copy; a run in its folder then goes on."""
    try:
        with lzma.open(path, "rb") as f:
            state = torch.load(f, map_location="cpu")
    except (lzma.LZMAError, EOFError, pickle.UnpicklingError) as e:
        raise SystemExit(f"{path} is not a kept checkpoint: {e}") from e
    if not isinstance(state, dict) or state.pop("kept", None) != FORMAT:
        raise SystemExit(f"{path} is not a kept checkpoint")
    for part in ("average", "optimisers"):
        state[part] = narrow(state[part], torch.float32)
    if os.path.exists(checkpoint):
        raise SystemExit(f"{checkpoint} is there already: move it away first")
    os.makedirs(os.path.dirname(os.path.abspath(checkpoint)), exist_ok=True)
    temporary = checkpoint + ".tmp"
    torch.save(state, temporary)
    os.replace(temporary, checkpoint)


def add_commands(commands):
    for name, call, what in (
        ("keep", keep, "write a small copy of a run's checkpoint"),
        ("restore", restore, "make a checkpoint of a small copy"),
    ):
        p = commands.add_parser(name, help=what)
        p.add_argument("source")
        p.add_argument("target")
        p.set_defaults(call=lambda a, call=call: call(a.source, a.target))
