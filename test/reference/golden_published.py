"""What published weights answer: the numbers of their authors' test file and of the float64 oracle.

    golden_published.py MODEL FIXTURE > ../tap/published_buffer.json

MODEL is the file that the trainer's `nanoace` converts, FIXTURE `gp1d_arbuffer.parity.json` of the
same project (MIT). Of it are taken: marginals that depend on data alone, and a chain of 16 rows,
whose conditional log densities have the noise of 32 bits (2e-4). The oracle adds those of 64 bits,
and averages over random orders.

SPDX-License-Identifier: PostgreSQL
"""

import json
import sys

import numpy as np

from reference import Model, build

SEED, ORDERS = 7, 8


def rows(tokens):
    """Context rows that are there."""
    kept = [i for i, there in enumerate(tokens["mask"]) if there]
    return [tokens["x"][i][0] for i in kept], [tokens["value"][i] for i in kept]


def is_data(tokens):
    return set(tokens["var_id"]) == {0}


def main(model, fixture):
    model = Model.open(model)
    with open(fixture, encoding="utf-8") as f:
        published = json.load(f)
    out = {"marginals": [], "chains": []}
    for case in published["plain"]:
        asked = case["target"]
        if is_data(case["context"]):
            x, y = rows(case["context"])
            out["marginals"] += [
                {"x": x, "y": y, "at": asked["x"][i][0], "observed": asked["value"][i],
                 "mean": case["mean"][i], "log_density": case["log_prob"][i]}
                for i, variable in enumerate(asked["var_id"]) if variable == 0]
    chain = published["chain"]
    x, y = rows(chain["context"])
    encoding = build(model, np.reshape(x, (-1, 1)), np.array(y), len(x))
    for values, logs in zip(chain["values"], chain["log_prob"]):
        at = [chain["grid"][i] for i in chain["order"]]
        observed = [values[i] for i in chain["order"]]
        asked = np.reshape(at, (-1, 1)), np.array(observed)
        out["chains"].append({
            "x": x, "y": y, "at": at, "observed": observed,
            "published": [logs[i] for i in chain["order"]],
            "conditionals": [round(v, 9) for v in encoding.conditionals(*asked)],
            "orders": ORDERS, "seed": SEED,
            "averaged": round(encoding.score(*asked, ORDERS, SEED), 9)})
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
