"""Measures a one-dimensional model on the tasks of the papers, as their tables do.

    python3 -m pg_posterior_train.protocols MODEL.safetensors [--config CONFIG.json]
        [--tasks N] [--out FILE]

What is measured stands in the configuration's `evaluation` (default: the configuration with the
model's name): a list of

    title     what the table is
    prior     options of prior/curves.py, without its name
    process   another prior whose options these are: "feeder", "fields", "images", "multisensory",
              "sir"
    errors    true, or some of "squared error", "absolute error": means that are shown as well
    per_pixel true: so is the negative log likelihood of a row, of all its targets
    context   sizes, or {"from": a, "to": b} for a size drawn for every batch
    targets   rows asked
    orders    random orders over which joint densities are averaged (log of the mean density),
              default 1
    blocks    sizes K of the buffer: after K answers, all rows so far are encoded again as context;
              1 is plain autoregression
    paper     the published figures, shown beside ours

An entry with `optimise` is Bayesian optimisation (optimisation.py): of `points` points of a
function `start` have been seen, and `steps` are asked for. `noise` is what the models were taught
that observations have, and `every` how many steps lie between the table's rows (default 10).

Figures are nats per target; ± is the standard error over tasks. `exact` is the process that drew
the tasks, with its true hyperparameters; sawtooth waves, simulators and pictures have none. A model
of one target that is asked about several answers about each by itself.
"""
import argparse
import json
import math
import os

import torch

from . import optimisation
from .export import load_model
from .predict import chain
from .protocol_tasks import ALONE, batch_of, draw, independent
from .tasks import Tasks, choose

SEED = 880_001
SEQUENCES = 256      # sequences encoded together
TABLES = ("classes", "numbers", "tabular")    # priors of models that are measured on real tables
COLUMNS = {"feeder": 64, "images": 2, "multisensory": 4, "sir": 2}


def repeat(tasks, times):
    return Tasks(tasks.x.repeat_interleave(times, 0), tasks.y.repeat_interleave(times, 0),
                 tasks.categorical.repeat_interleave(times, 0))


def chain_density(model, tasks, given, block):
    """Joint log density [B] of the rows after the first `given`, encoded again after every `block`
    of them.
    """
    total = torch.zeros(tasks.y.shape[0], dtype=torch.float64)
    for start in range(given, tasks.y.shape[1], block):
        end = min(start + block, tasks.y.shape[1])
        part = Tasks(tasks.x[:, :end], tasks.y[:, :end], tasks.categorical)
        total += chain(model, part, start).log_prob(part.y[:, start:]).double().sum(1)
    return total


def averaged_density(model, tasks, given, block, orders, generator):
    """The logarithm [B] of the joint density averaged over random orders of the rows after the
    first `given`.
    """
    count, rows = tasks.y.shape
    many = repeat(tasks, orders)
    later = torch.rand(count * orders, rows - given, generator=generator).argsort(1) + given
    order = torch.cat([torch.arange(given).expand(count * orders, -1), later], 1)
    many = choose(many, order)
    parts = [
        chain_density(model,
                      Tasks(many.x[i:i + SEQUENCES], many.y[i:i + SEQUENCES],
                            many.categorical[i:i + SEQUENCES]), given, block)
             for i in range(0, count * orders, SEQUENCES)]
    return torch.cat(parts).reshape(count, orders).logsumexp(1) - math.log(orders)


def sizes(spec):
    """(label, function that gives the size of batch i)."""
    if isinstance(spec, dict):
        low, high = spec["from"], spec["to"]
        # Evenly over the range, so that every run sees the same sizes.
        return [
            (f"{low} to {high}", lambda i, n: low + round((i + 0.5) / n * (high - low + 1) - 0.5))]
    return [(str(size), lambda i, n, size=size: size) for size in spec]


def blocks_of(model, protocol):
    """Sizes of the buffer to be measured: none of joint heads, of latent functions, of tasks whose
    rows are asked alone."""
    alone = protocol["prior"].get("latent") or protocol.get("process") in ALONE
    alone = alone or protocol.get("chains") is False
    if model.config["head"]["kind"] == "joint-gaussian" or alone:
        return []
    return protocol.get("blocks", [protocol["targets"]])


def one_size(model, protocol, size_of, tasks):
    """Mean and standard error of every figure of one row of the table."""
    batch = batch_of(protocol, size_of(0, 1))
    batches, found = -(-tasks // batch), {}
    for i in range(batches):
        given, m = size_of(i, batches), protocol["targets"]
        generator = torch.Generator().manual_seed(SEED + 1000 * i + given)
        data, exact = draw(protocol, generator, batch, given)
        row = independent(model, protocol, data, given)
        for block in blocks_of(model, protocol):
            joint = averaged_density(model, data, given, block, protocol.get("orders", 1),
                                     generator)
            row["autoregressive" if block >= m and "blocks" not in protocol
                else f"K = {block}"] = joint / m
        row.update(exact)
        if "factorised" in row and "exact, factorised" in row:
            # On the same tasks: its standard error is far smaller than that of the levels.
            row["below exact"] = row["exact, factorised"] - row["factorised"]
        for name, values in row.items():
            found.setdefault(name, []).append(values)
    out = {}
    for name, values in found.items():
        v = torch.cat(values)[:tasks]
        out[name] = {"mean": float(v.mean()), "se": float(v.std() / math.sqrt(len(v)))}
    return out


@torch.no_grad()
def evaluate(model, protocols, tasks):
    """All tables of a configuration: a list of {title, rows}."""
    result = []
    for protocol in protocols:
        if "optimise" in protocol:
            result.append(optimisation.evaluate(model, protocol, tasks))
            continue
        rows = {label: one_size(model, protocol, size_of, tasks)
                for label, size_of in sizes(protocol["context"])}
        result.append({"title": protocol["title"], "targets": protocol["targets"],
                       "orders": protocol.get("orders", 1), "tasks": tasks,
                       "rows": rows, "paper": protocol.get("paper", {})})
    return result


def figure(one):
    """A figure with its standard error; squared errors are small, and those of voltages smaller."""
    size = abs(one["mean"])
    form = ".3f" if size >= 0.01 else ".6f" if size >= 1e-4 or size == 0 else ".2e"
    return f"{one['mean']:{form}} ± {one['se']:{form}}"


def caption(table):
    return (f"{table['targets']} targets, {table['orders']} "
            f"order{'s' if table['orders'] > 1 else ''}, "
            f"{table['tasks']} tasks per row; nats per target.")


def markdown(result):
    lines = []
    for table in result:
        names = list(next(iter(table["rows"].values())))
        head, optimised = table.get("head", "context rows"), "caption" in table
        lines += [f"## {table['title']}", "", table["caption"] if optimised else caption(table), "",
                  f"| {head} | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
        for label, row in table["rows"].items():
            lines.append(f"| {label} | " + " | ".join(figure(row[n]) for n in names) + " |")
        if len(table["rows"]) > 1 and not optimised:
            means = [sum(row[n]["mean"] for row in table["rows"].values()) / len(table["rows"])
                     for n in names]
            lines.append("| mean | " + " | ".join(f"{v:.3f}" for v in means) + " |")
        lines.append("")
        if table["paper"]:
            lines += ["Published: " + "; ".join(f"{k} {v}" for k, v in table["paper"].items())
                      + ".", ""]
    return "\n".join(lines)


def find_config(model_file, config):
    """The evaluation part of the configuration."""
    name = os.path.splitext(os.path.basename(model_file))[0]
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "configs")
    path = config or os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        raise SystemExit(f"protocols: there is no configuration {path}; name one with --config")
    with open(path, encoding="utf-8") as f:
        read = json.load(f)
    if read.get("evaluation"):
        return read["evaluation"]
    if read.get("prior", {}).get("name") in TABLES:
        raise SystemExit(f"protocols: models of {os.path.basename(path)} are measured with a "
                         f"folder of tables: make evaluate MODEL={model_file} DATA=<folder of CSV "
                         f"files>; train/README.md says how these are described")
    raise SystemExit(f"protocols: {os.path.basename(path)} has no evaluation, the list of what is "
                     f"measured; name another configuration with --config")


def use_folder(protocols, folder):
    """Protocols whose pictures are those of a folder."""
    pictures = [p for p in protocols if p.get("process") == "images"]
    if folder and not pictures:
        raise SystemExit("protocols: these tasks are drawn, and need no folder")
    for p in pictures:
        p["prior"] = {**p["prior"], **({"folder": folder} if folder else {})}
        if not os.path.isdir(p["prior"]["folder"]):
            raise SystemExit(f"protocols: there is no folder {p['prior']['folder']} of PNG files; "
                             f"name one: make evaluate MODEL=... PROTOCOL=... DATA=<folder>")
    return protocols


def features_of(protocol):
    """Columns of a protocol's tasks."""
    return COLUMNS.get(protocol.get("process")) or protocol["prior"].get("features", 1)


def main():
    p = argparse.ArgumentParser(prog="pg_posterior_train.protocols",
                                description=__doc__.split("\n\n")[0])
    p.add_argument("model")
    p.add_argument("--config", help="configuration whose evaluation is run")
    p.add_argument("--folder", help="pictures, instead of the configuration's folder")
    p.add_argument("--tasks", type=int, default=256, help="tasks for every row of a table")
    p.add_argument("--out", help="write the numbers as JSON")
    p.add_argument("--factorised", action="store_true", help="no chains, which take longest")
    a = p.parse_args()
    protocols = use_folder(find_config(a.model, a.config), a.folder)
    if a.factorised:
        protocols = [{**p, "chains": False} for p in protocols]
    model = load_model(a.model)
    features = model.config["inputs"].get("features")
    if any(features_of(p) != features for p in protocols):
        raise SystemExit(f"protocols: the tasks have other features than the model, which takes "
                         f"{features}")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    result = evaluate(model, protocols, a.tasks)
    print(f"# {os.path.splitext(os.path.basename(a.model))[0]}\n\n{markdown(result)}")
    if a.out:
        with open(a.out, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
