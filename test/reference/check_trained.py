"""Trained models of the families, test/models/*.safetensors: engine against oracle, and against the
process that they were trained on (docs/papers.md).

Means and standard deviations must agree to 1e-4, log densities to 1e-3. On Gaussian processes of
the incremental paper the mean log density must come as near to exact inference as docs/papers.md
says, with room for the few tasks here. A model that the engine does not know yet is skipped.

SPDX-License-Identifier: PostgreSQL
"""
import glob
import math
import os

import numpy as np

from check_bundled import gp_task
from check_parity import moments
from checking import HERE, Tap, Tool, arguments, cells, close, table
from reference import Model, build, whole_prefix

TASKS, SIZES = 60, (4, 16, 64)
# How far below exact inference, in nats; a model that has learnt nothing is above 1.2 below.
ALLOWED = {"cnp": 0.32, "inctnp_seq": 0.1, "lbanp": 0.2, "tnpd": 0.14}


def densities(answer, y):
    """Log densities of Gaussian answers."""
    mean, sd = np.array(answer["mean"]), np.array(answer["sd"])
    return -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi)


def check_parity(tap, tool, model, name):
    random = np.random.RandomState(5)
    for n in (1, 12, 50):
        x, y, _, _ = gp_task(random, n)
        encoding = build(model, x[:n, None], y[:n], whole_prefix(model, n))
        m = 6
        later, values = x[n:n + m, None], y[n:n + m]
        mean, sd = moments(encoding.predict(later))
        wanted = {"mean": (mean, 1e-4), "sd": (sd, 1e-4)}
        asked = {"queries": cells(later), "score": table(later, values)}
        if model.config["head"]["kind"] == "joint-gaussian":
            together = encoding.joint(later)
            asked["joint"] = table(later)
            wanted["joint_mean"] = (together.mean, 1e-4)
            wanted["covariance"] = (together.covariance, 1e-4)
            wanted["log_density"] = (encoding.score(later, values), m * 1e-3)
        else:
            wanted["per_row"] = (encoding.conditionals(later, values), 1e-3)
        answer = tool.ask(context=table(x[:n, None], y[:n]), prefix="whole", **asked)
        wrong = [f"{field}: {bad}" for field, (value, tolerance) in wanted.items()
                 if (bad := close(answer.get(field, []), value, tolerance)) is not None]
        tap.ok(not wrong, f"{name}: {n} rows", *wrong, answer.get("error", ""))


def check_shift(tap, tool, name):
    """A kernel bias knows differences alone: inputs a million further on have the same answers."""
    x, y, _, _ = gp_task(np.random.RandomState(7), 40)
    here, there = (tool.ask(context=table((x + by)[:40, None], y[:40]), prefix="whole",
                            queries=cells((x + by)[40:46, None])) for by in (0.0, 1e6))
    wrong = [bad for field in ("mean", "sd")
             if (bad := close(there.get(field, []), here[field], 1e-5)) is not None]
    tap.ok(not wrong, f"{name}: shifted by a million", *wrong)


def check_process(tap, tool, name):
    random, gaps = np.random.RandomState(6), []
    for n in SIZES:
        for _ in range(TASKS):
            x, y, mean, sd = gp_task(random, n)
            answer = tool.ask(context=table(x[:n, None], y[:n]), queries=cells(x[n:, None]))
            exact = densities({"mean": mean, "sd": sd}, y[n:])
            gaps.append(np.mean(exact) - np.mean(densities(answer, y[n:])))
    gap = float(np.mean(gaps))
    print(f"# {name}: {gap:.3f} nats below exact inference")
    tap.ok(-0.02 < gap < ALLOWED[name], f"{name}: near exact inference", f"{gap:.3f} nats below")


def main():
    options, tap = arguments(__doc__.split("\n\n")[0]), Tap()
    folder = options.models or os.path.join(os.path.dirname(HERE), "models")
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        name = os.path.splitext(os.path.basename(path))[0]
        if options.only not in name:
            continue
        with Tool(options.tool, path) as tool:
            error = tool.ask().get("error", {})
            if error.get("status") == "bad config":
                tap.skip(name, error["message"])
                continue
            check_parity(tap, tool, Model.open(path), name)
            if name.startswith("scan"):
                check_shift(tap, tool, name)
            if name in ALLOWED:
                check_process(tap, tool, name)
    tap.done()


if __name__ == "__main__":
    main()
