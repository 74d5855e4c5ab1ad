"""What the check_*.py programs share: TAP output, the engine's tool as a process, and made-up
tables.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# what every comparison is made with; cpu is the best table of this machine
KERNELS = ("reference", "cpu")
# what keys and values of 16 bits may change, relative to the standard deviation of a prediction
HALF = 0.01


class Tap:
    """Test points on standard output."""

    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, name, *details):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        for detail in () if good else details:
            print("#   " + str(detail).replace("\n", "\n#   "))
        sys.stdout.flush()

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}")

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    root = os.path.dirname(os.path.dirname(HERE))
    parser.add_argument("--tool", default=os.path.join(root, "build", "tnp"),
                        help="the engine's tool")
    parser.add_argument("--models",
                        help="a folder of models; made anew in a temporary one where absent")
    parser.add_argument("--only", default="", help="models whose names contain this")
    return parser.parse_args()


def other_tables(tap, tool):
    """(those with floats, those with halves): names of the tables that this machine runs but for
    the best one, which is "cpu". The others are skipped, by name.
    """
    listed = [json.loads(line) for line in subprocess.run([tool, "kernels"], check=True,
                                                          capture_output=True,
                                                          text=True).stdout.splitlines()]
    for one in listed:
        if not one["runs"]:
            tap.skip(f"{one['name']} of {one['architecture']}", one["why"])
    runs = [one for one in listed if one["runs"]]
    return [one["name"] for one in runs if one["bits"] == 32][1:], [one["name"] for one in runs
                                                                    if one["bits"] == 16]


class MadeModels:
    """A folder with make_models.py's files: the given one, or a temporary one."""

    def __init__(self, folder):
        self.folder = folder
        self.temporary = None

    def __enter__(self):
        if self.folder is None:
            self.temporary = tempfile.TemporaryDirectory()
            self.folder = self.temporary.name
            for script, more in ("make_models.py", []), ("make_families.py", ["--engine"]):
                subprocess.run([sys.executable, os.path.join(HERE, script), self.folder, *more],
                               check=True)
        return self.folder

    def __exit__(self, *_):
        if self.temporary:
            self.temporary.cleanup()


def cells(value):
    """Numbers for JSON: missing ones are null."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [cells(v) for v in value]
    value = float(value)
    return None if math.isnan(value) else value


def table(x, y=None):
    return {"x": cells(x)} if y is None else {"x": cells(x), "y": cells(y)}


class Tool:
    """`tnp run MODEL`; ask() sends one request and waits for its answer."""

    def __init__(self, tool, model):
        self.process = subprocess.Popen([tool, "run", model], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the tool ended with status {self.process.wait()} on "
                               f"{json.dumps(request)[:2000]}")
        return json.loads(line)


def features(model, n, random):
    """(x [n, F], kinds): as many columns as the model wants; any number of any kind where it takes
    them.
    """
    if not model.takes_any_columns:
        return random.uniform(-2, 2, (n, model.config["inputs"]["features"])), None
    kinds = ["numeric", "categorical", "numeric", "numeric", "categorical", "numeric", "numeric"]
    x = np.stack([
        random.uniform(-2, 2, n),                       # plain
        random.choice([3.0, 17.0, 4e9, 2.0 ** 52], n),  # few categories
        np.round(random.standard_normal(n) * 2),        # ties
        np.full(n, 7.5),                                # constant
        # many categories, some of them new in queries
        random.randint(0, 40, n).astype(float),
        np.exp(2 * random.standard_normal(n)),          # long tail, clipped
        random.uniform(0, 1, n),                        # mostly missing
    ], axis=1)
    x[random.uniform(size=n) < 0.15, 0] = np.nan
    x[random.uniform(size=n) < 0.15, 1] = np.nan
    x[random.uniform(size=n) < 0.8, 6] = np.nan
    return x, kinds


def as_targets(model, y):
    """Numbers near 0 as what the model takes: for a classifier, classes."""
    room = model.config["head"].get("classes")
    return y if room is None else np.clip(np.floor(y + room / 2), 0, room - 1)


def several(model, y, random):
    """Targets y [n] as the [n, D] of a model that takes several: each is of its own scale."""
    if model.targets == 1:
        return y
    return np.stack([y * (1 - 0.4 * d) + 0.3 * d + 0.1 * random.standard_normal(len(y))
                     for d in range(model.targets)], axis=1)


def rows(model, n, seed):
    """(x, y, kinds) of n rows with some relation between them."""
    random = np.random.RandomState(seed)
    x, kinds = features(model, n, random)
    known = np.nan_to_num(x)
    y = np.sin(1.5 * known[:, 0]) + 0.3 * known[:, -1] + 0.2 * random.standard_normal(n)
    if kinds:
        y += 0.7 * (known[:, 1] == 17.0)
    y = several(model, as_targets(model, y), random)
    if model.config["target"]["scaling"] == "fixed":
        y = (np.array(model.config["target"]["center"])
             + np.array(model.config["target"]["scale"]) * y)
    return x, y, kinds


def close(got, wanted, tolerance):
    """None if all values agree, else what does not; one tolerance, or one for each value."""
    got = np.array(
        [np.nan if v is None else float(v) for v in np.ravel(np.array(got, dtype=object))])
    wanted = np.ravel(np.asarray(wanted, dtype=float))
    if got.shape != wanted.shape:
        return f"{got.size} values instead of {wanted.size}"
    same = (np.isnan(got) & np.isnan(wanted)) | (got == wanted)
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(got - wanted))
    tolerance = np.broadcast_to(tolerance, off.shape)
    if np.all(off <= tolerance):
        return None
    worst = int(np.argmax(np.where(np.isnan(off), np.inf, off - tolerance)))
    return (f"value {worst} is {got[worst]:.9g} instead of {wanted[worst]:.9g}, more than "
            f"{tolerance[worst]:g} off")
