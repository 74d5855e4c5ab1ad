"""Measures a model on the tables of a folder, through SQL and the extension, beside classical
baselines.

    python3 -m pg_posterior_train.measure MODEL.safetensors FOLDER [--out FILE]

Needs NumPy, psql and a database with the extension (test/with-server); scikit-learn adds a random
forest and a Gaussian process, PyTorch a comparison with this package's own answers. Prints
Markdown, writes JSON.

All scores are in units of the context's standard deviation of the target. Standard errors are those
of the mean over queries (over blocks for joint densities); where splits share queries, as in small
tables, they are too small.
"""
import argparse
import json
import math
import os
import sys
from importlib.util import find_spec

import numpy as np

from . import baselines
from .measure_classes import is_classifier_file, measure_classes
from .measure_classes import markdown as class_markdown
from .server import Server, ServerError
from .tables import BadTable, descriptions, read_table

LEVELS = (0.5, 0.8, 0.9)
PROTOCOLS = ("splits", "missing", "absent", "noise", "appended", "ordered")
MISSING = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
ABSENT = ("nothing", "number", "label", "unknown label")
UNKNOWN = 1e6    # identity that no table has
NOISE = (0, 1, 2, 4, 8, 16)
GROWTH = (1, 2, 4, 8)
GROWTH_QUERIES = 64
LARGEST_PROCESS = 300    # context rows up to which the Gaussian process is fitted unless --slow
erf = np.vectorize(math.erf, otypes=[float])


# Scores -------------------------------------------------------------------------------------------


def gaussian_crps(error, sd):
    """Continuous ranked probability scores [m] of Gaussians with deviations sd, whose means targets
    miss by `error` deviations (Gneiting and Raftery 2007).
    """
    density = np.exp(-0.5 * error ** 2) / math.sqrt(2 * math.pi)
    return sd * (error * erf(error / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))


def scores(log_density, mean, sd, cdf, crps, y):
    """Values for every query [m] each, all arguments in the context's units. `gaussian` and
    `gaussian_crps` are what the Gaussian of the same moments has: where targets have few levels, a
    log density tells how narrow the peaks of a mixture are.
    """
    error = (y - mean) / sd
    gaussian = -0.5 * error ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi)
    out = {"log_density": log_density, "square": (y - mean) ** 2, "crps": crps,
           "gaussian": gaussian, "gaussian_crps": gaussian_crps(error, sd)}
    for level in LEVELS:
        out[f"coverage_{round(100 * level)}"] = (
            (cdf > (1 - level) / 2) & (cdf < (1 + level) / 2)).astype(float)
    return out


def model_scores(server, context, queries, offset, scale):
    """Scores of the model's answers through SQL."""
    log_density, mean, sd, cdf, crps = server.predict(context, queries).T
    sd = np.maximum(sd / scale, 1e-9)
    return scores(log_density + math.log(scale), (mean - offset) / scale, sd, cdf, crps / scale,
                  (queries.y - offset) / scale)


def baseline_scores(make, context, queries, offset, scale):
    """Scores of a baseline's Gaussians."""
    design = baselines.Design(context.x, context.categorical)
    predictor = make()
    predictor.fit(design(context.x), (context.y - offset) / scale)
    mean, sd = predictor.predict(design(queries.x))
    sd = np.maximum(sd, 1e-3)
    y = (queries.y - offset) / scale
    z = (y - mean) / sd
    cdf = 0.5 * (1 + erf(z / math.sqrt(2)))
    return scores(-0.5 * z ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi), mean, sd, cdf,
                  gaussian_crps(z, sd), y)


def summarise(splits):
    """Means over splits of means over queries, with standard errors; `splits` is a list of results
    of `scores`.
    """
    out = {}
    for key in splits[0]:
        values = [s[key] for s in splits]
        out[key] = float(np.mean([v.mean() for v in values]))
        out[key + "_se"] = float(
            math.sqrt(sum(v.var(ddof=1) / len(v) for v in values if len(v) > 1)) / len(values))
    out["rmse"] = math.sqrt(out.pop("square"))
    out["rmse_se"] = out.pop("square_se") / (2 * max(out["rmse"], 1e-12))
    out["queries"], out["splits"] = int(sum(len(s["square"]) for s in splits)), len(splits)
    return out


def paired(ours, theirs):
    """How far `ours` is ahead in log density, with the standard error of the difference."""
    difference = [a["log_density"] - b["log_density"] for a, b in zip(ours, theirs)]
    error = (math.sqrt(sum(d.var(ddof=1) / len(d) for d in difference if len(d) > 1))
             / len(difference))
    return {"ahead": float(np.mean([d.mean() for d in difference])), "ahead_se": error}


def unit(context):
    """Mean and standard deviation of the context's target."""
    return context.y.mean(), max(context.y.std(), 1e-12)


def kinds(context_rows, slow):
    """The baselines that can be had for a context of this size."""
    out = dict(baselines.BASELINES)
    if find_spec("sklearn"):
        out["forest"] = baselines.Forest
        if slow or context_rows <= LARGEST_PROCESS:
            out["process"] = baselines.GaussianProcess
    if find_spec("sklearn") and find_spec("lightgbm"):
        out["boosted"] = baselines.Boosted
    return out


# Protocols ----------------------------------------------------------------------------------------


def split(table, n, queries, seed):
    """n random context rows and up to `queries` others."""
    order = np.random.default_rng(seed).permutation(len(table.y))[:n + queries]
    return table.rows(order[:n]), table.rows(order[n:])


def compare(server, pairs, makers):
    """Summaries of the model and of the baselines on (context, queries) pairs; baselines also with
    how far the model is ahead of them.
    """
    ours = [model_scores(server, c, q, *unit(c)) for c, q in pairs]
    out = {"model": summarise(ours)}
    for name, make in makers.items():
        theirs = [baseline_scores(make, c, q, *unit(c)) for c, q in pairs]
        out[name] = {**summarise(theirs), **paired(ours, theirs)}
    return out


def splits_protocol(server, table, options):
    """Random splits for every context size of the description."""
    d, out = table.description["splits"], {}
    for n in d["context"]:
        if len(table.y) < n + 20:
            continue
        pairs = [split(table, n, options.queries or d["queries"], seed)
                 for seed in range(options.repeats or d["repeats"])]
        out[str(n)] = compare(server, pairs, kinds(n, options.slow))
    return out


def check_size(table):
    """Raise unless a split fits the table: rows of the smallest context and 20 queries."""
    if "splits" in table.description:
        least = min(table.description["splits"]["context"])
        if len(table.y) < least + 20:
            raise BadTable(f"table {table.name} has {len(table.y)} rows with a target: the least "
                           f"context of its splits, {least}, and 20 queries need {least + 20}")


def middle_size(table):
    """A context size of at most 256 for the protocols that vary something else."""
    sizes = ([n for n in table.description["splits"]["context"] if n <= 256]
             or [min(table.description["splits"]["context"])])
    return max(n for n in sizes if len(table.y) >= n + 20)


def without_cells(table, share, seed):
    """The table with a share of all cells missing at random; a smaller share is a part of a larger
    one.
    """
    hidden = np.random.default_rng(1000 + seed).random(table.x.shape) < share
    out = table.rows(np.arange(len(table.y)))
    out.x = np.where(hidden, np.nan, out.x)
    return out


def lacking(queries, what, seed):
    """Queries of which each lacks one cell, of a random column of that kind; None where there is no
    such column.
    """
    out = queries.rows(np.arange(len(queries.y)))
    columns = np.flatnonzero(queries.categorical == (what != "number"))
    if what == "nothing":
        return out
    if len(columns) == 0:
        return None
    column = np.random.default_rng(5000 + seed).choice(columns, len(out.y))
    out.x = out.x.copy()
    out.x[np.arange(len(out.y)), column] = UNKNOWN if what == "unknown label" else np.nan
    return out


def absent_protocol(server, table, options):
    """Complete contexts, and queries of which each lacks a cell, or has a label that the context
    does not know.
    """
    d, n, out = table.description["splits"], middle_size(table), {}
    complete = table.rows(np.flatnonzero(~np.isnan(table.x).any(1)))
    if len(complete.y) < n + 20:
        return out
    pairs = [(*split(complete, n, options.queries or d["queries"], seed), seed)
             for seed in range(options.repeats or d["repeats"])]
    for what in ABSENT:
        asked = [(context, lacking(queries, what, seed)) for context, queries, seed in pairs]
        if asked[0][1] is not None:
            out[what] = compare(server, asked, {"ridge": baselines.BayesianRidge})
    return out


def with_noise(table, count, seed):
    """The table with `count` further columns of Gaussian noise."""
    out = table.rows(np.arange(len(table.y)))
    extra = np.random.default_rng(2000 + seed).standard_normal(
        (len(table.y), max(NOISE)))[:, :count]
    out.x = np.concatenate([table.x, extra], 1)
    out.columns = table.columns + [f"noise{j}" for j in range(count)]
    out.categorical = np.concatenate([table.categorical, np.zeros(count, bool)])
    return out


def changed_protocol(server, table, options, settings, change):
    """The same splits under a change of the table, for every setting."""
    d, n, out = table.description["splits"], middle_size(table), {}
    for setting in settings:
        tables = [(change(table, setting, seed), seed)
                  for seed in range(options.repeats or d["repeats"])]
        pairs = [split(changed, n, options.queries or d["queries"], seed)
                 for changed, seed in tables]
        out[f"{setting:g}"] = compare(server, pairs, {"ridge": baselines.BayesianRidge})
    return out


def missing_protocol(server, table, options):
    """0 to 50 % of the cells missing."""
    return changed_protocol(server, table, options, MISSING, without_cells)


def noise_protocol(server, table, options):
    """0 to 16 further columns of noise."""
    return changed_protocol(server, table, options, NOISE, with_noise)


def appended_protocol(server, table, options):
    """Rows after the prefix, up to 8 times its length, against a prefix of all of them.

    Both ways answer the same chain of queries; log_density takes rows of its group as rows after
    the prefix, so the appended ones are given as its first rows.
    """
    prefix = 2 ** int(math.log2(min(128, (len(table.y) - GROWTH_QUERIES) // max(GROWTH))))
    if prefix < 8:
        return {}
    out, costs = {}, {k: [] for k in GROWTH}
    for seed in range(options.repeats or 8):
        order = np.random.default_rng(3000 + seed).permutation(len(table.y))
        for k in GROWTH:
            scale = math.log(unit(table.rows(order[:prefix]))[1])
            first, later = order[:prefix], order[prefix:prefix * k]
            asked = order[prefix * max(GROWTH):prefix * max(GROWTH) + GROWTH_QUERIES]
            grown = server.joint(table.rows(first), table.rows(np.concatenate([later, asked])),
                                 len(later))
            rebuilt = server.joint(table.rows(order[:prefix * k]), table.rows(asked))
            costs[k].append((grown / len(asked) + scale, rebuilt / len(asked) + scale))
    for k, values in costs.items():
        grown, rebuilt = np.array(values).T
        cost = rebuilt - grown
        out[str(k)] = {"appended": grown.mean(), "rebuilt": rebuilt.mean(), "cost": cost.mean(),
                       "cost_se": cost.std(ddof=1) / math.sqrt(len(cost)) if len(cost) > 1 else 0.0,
                       "prefix": prefix, "repeats": len(cost)}
    return {k: {name: float(v) if not isinstance(v, int) else v for name, v in row.items()}
            for k, row in out.items()}


def blocks(table, history, block, repeats):
    """(context, block) of contiguous rows of one group, at places spread over the table; seeds
    choose the places.
    """
    rng = np.random.default_rng(4000)
    groups = [np.flatnonzero(table.group == g) for g in sorted(set(table.group))]
    groups = [g for g in groups if len(g) >= history + block]
    for i in range(repeats if groups else 0):
        rows = groups[i % len(groups)]
        start = int(rng.integers(0, len(rows) - history - block + 1))
        yield table.rows(rows[start:start + history]), table.rows(
            rows[start + history:start + history + block])


def ordered_protocol(server, table, options):
    """Blocks that follow their context in time: joint log density against the sum of the marginals,
    in nats per row.
    """
    d = table.description["ordered"]
    found = []
    for context, block in blocks(table, d["history"], d["block"], options.repeats or d["repeats"]):
        scale = math.log(unit(context)[1])
        joint = server.joint(context, block) / len(block.y) + scale
        ours = model_scores(server, context, block, *unit(context))
        ridge = baseline_scores(baselines.BayesianRidge, context, block, *unit(context))
        found.append((joint, ours["log_density"].mean(), ridge["log_density"].mean(),
                      ours["coverage_80"].mean()))
    if not found:
        return {}
    joint, marginal, ridge, coverage = np.array(found).T
    gain = joint - marginal
    return {"joint": float(joint.mean()), "marginals": float(marginal.mean()),
            "ridge": float(ridge.mean()), "gain": float(gain.mean()),
            "gain_se": float(gain.std(ddof=1) / math.sqrt(len(gain))) if len(gain) > 1 else 0.0,
            "gain_median": float(np.median(gain)), "coverage_80": float(coverage.mean()),
            "blocks": len(gain), **d}


# PyTorch ------------------------------------------------------------------------------------------


def difference_from_torch(server, model_file, table, options):
    """Largest difference of log densities between the extension and this package on one split, or
    None without PyTorch, or where this package does not know the model's family.
    """
    if not find_spec("torch"):
        return None
    import torch

    from .config import ConfigError
    from .export import load_model
    from .predict import predict
    from .tasks import Tasks

    # Numbers only: the extension gives labels other identities, and codes follow from their order.
    numbers = np.flatnonzero(~table.categorical)
    if len(numbers) == 0:
        return None
    table = table.rows(np.arange(len(table.y)))
    table.x, table.categorical = table.x[:, numbers], table.categorical[numbers]
    n = middle_size(table)
    context, queries = split(table, n, min(options.queries or 200, 200), 0)
    both = np.concatenate([context.x, queries.x]), np.concatenate([context.y, queries.y])
    tasks = Tasks(torch.from_numpy(both[0])[None], torch.from_numpy(both[1])[None],
                  torch.from_numpy(table.categorical)[None])
    try:
        model = load_model(model_file, torch.float64)
    except ConfigError:    # of a family that is not trained, such as sums
        return None
    theirs = predict(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
    ours = server.predict(context, queries)[:, 0]
    return float(np.abs(ours - theirs).max())


# Report -------------------------------------------------------------------------------------------


def cell(row, key):
    return f"{row[key]:.3f} ± {row[key + '_se']:.3f}"


def percent(row):
    return " / ".join(f"{100 * row[f'coverage_{round(100 * level)}']:.0f}" for level in LEVELS)


def markdown(result):
    """The tables of a result as text."""
    lines = [f"# {result['model']}", "", "Scores in units of the context's standard deviation; log "
                                         "density: higher is better. ± is one standard error.", ""]
    splits = [(name, n, rows) for name, t in result["tables"].items()
              for n, rows in t.get("splits", {}).items()]
    if splits:
        lines += ["| table, context rows | predictor | log density | RMSE | CRPS | 50 / 80 / 90 % "
                  "intervals cover | model ahead by |", "|---|---|---|---|---|---|---|"]
        for name, n, rows in splits:
            for who, row in rows.items():
                ahead = f"{row['ahead']:+.3f} ± {row['ahead_se']:.3f}" if "ahead" in row else ""
                lines.append(f"| {name} {n} | {who} | {cell(row, 'log_density')} | "
                             f"{cell(row, 'rmse')} | {row['crps']:.3f} | {percent(row)} | "
                             f"{ahead} |")
        lines.append("")
    for key, title, labels in (("missing", "share of cells missing", MISSING),
                               ("noise", "added columns of noise", NOISE)):
        found = [(name, t[key]) for name, t in result["tables"].items() if t.get(key)]
        if found:
            names = [f"{v:g}" for v in labels]
            lines += [f"| {title} | predictor | " + " | ".join(names) + " |",
                      "|---|---|" + "---|" * len(names)]
            for name, rows in found:
                for who in next(iter(rows.values())):
                    lines.append(f"| {name} | {who} | "
                                 + " | ".join(cell(rows[v][who], "log_density") for v in names)
                                 + " |")
            lines.append("")
    found = [(name, what, rows) for name, t in result["tables"].items()
             for what, rows in t.get("absent", {}).items()]
    if found:
        lines += ["| queries lack | predictor | log density | RMSE | 50 / 80 / 90 % intervals "
                  "cover |", "|---|---|---|---|---|"]
        lines += [f"| {name}: {what} | {who} | {cell(row, 'log_density')} | {cell(row, 'rmse')} | "
                  f"{percent(row)} |"
                  for name, what, rows in found for who, row in rows.items()]
        lines.append("")
    found = [(name, t["appended"]) for name, t in result["tables"].items() if t.get("appended")]
    if found:
        lines += ["| rows, as a multiple of the prefix | prefix | "
                  + " | ".join(f"{k}" for k in GROWTH) + " |", "|---|---|" + "---|" * len(GROWTH)]
        for name, rows in found:
            lines.append(f"| {name}: cost of appending against a rebuild, nats per row | "
                         f"{rows['1']['prefix']} | " +
                         " | ".join(cell(rows[str(k)], "cost") for k in GROWTH) + " |")
        lines.append("")
    found = [(name, t["ordered"]) for name, t in result["tables"].items() if t.get("ordered")]
    if found:
        lines += ["| ordered table | history, block | blocks | joint, nats per row | sum of "
                  "marginals | gain | median gain | ridge |", "|---|---|---|---|---|---|---|---|"]
        for name, r in found:
            lines.append(f"| {name} | {r['history']}, {r['block']} | {r['blocks']} | "
                         f"{r['joint']:.3f} | {r['marginals']:.3f} | {cell(r, 'gain')} | "
                         f"{r['gain_median']:.3f} | {r['ridge']:.3f} |")
        lines.append("")
    found = [(name, t["torch"]) for name, t in result["tables"].items()
             if t.get("torch") is not None]
    if found:
        lines.append("Largest difference of a log density from PyTorch's: "
                     + ", ".join(f"{name} {v:.1e}" for name, v in found) + ".")
    return "\n".join(lines)


def measure(model_file, folder, options):
    """All protocols on all tables of the folder."""
    tables = descriptions(folder)
    if options.tables:
        unknown = set(options.tables) - {name for name, _ in tables}
        if unknown:
            raise BadTable(f"{folder} has no table {sorted(unknown)[0]!r}; it has "
                           f"{', '.join(n for n, _ in tables) or 'none'}")
        tables = [(name, d) for name, d in tables if name in options.tables]
    if not tables:
        raise BadTable(f"{folder} has no described table: put a description NAME.json beside each "
                       f"CSV file (its keys are listed in "
                       "train/pg_posterior_train/tables.py)")
    server = Server(model_file)
    result = {"model": os.path.splitext(os.path.basename(model_file))[0], "tables": {}}
    run = {"splits": splits_protocol, "missing": missing_protocol, "absent": absent_protocol,
           "noise": noise_protocol, "appended": appended_protocol,
           "ordered": ordered_protocol}
    # all of them before any is measured, which takes long
    read = [(d, read_table(folder, name, d)) for name, d in tables]
    for description, table in read:
        check_size(table)
    for description, table in read:
        name = table.name
        rows = result["tables"][name] = {"rows": len(table.y), "columns": table.columns}
        for protocol in options.protocols:
            needs = "ordered" if protocol == "ordered" else "splits"
            if needs in description:
                print(f"{name}: {protocol}", file=sys.stderr, flush=True)
                rows[protocol] = run[protocol](server, table, options)
        if "splits" in description:
            rows["torch"] = difference_from_torch(server, model_file, table, options)
    return result


def parse(arguments=None):
    p = argparse.ArgumentParser(prog="pg_posterior_train.measure",
                                description=__doc__.splitlines()[0])
    p.add_argument("model", help="model file")
    p.add_argument("folder", help="folder of CSV files and descriptions")
    p.add_argument("--tables", nargs="*", help="only these tables")
    p.add_argument("--protocols", nargs="*", choices=PROTOCOLS, default=list(PROTOCOLS))
    p.add_argument("--repeats", type=int, help="splits or blocks, instead of the description's")
    p.add_argument("--queries", type=int, help="queries of a split, instead of the description's")
    p.add_argument("--slow", action="store_true",
                   help=f"the Gaussian process also beyond {LARGEST_PROCESS} context rows")
    p.add_argument("--out", help="write the numbers as JSON")
    return p.parse_args(arguments)


def main():
    options = parse()
    try:
        classifier = is_classifier_file(options.model)
        result = (measure_classes if classifier else measure)(options.model, options.folder,
                                                              options)
    except (BadTable, ServerError, OSError) as e:
        raise SystemExit(f"evaluate: {e}") from e
    print((class_markdown if classifier else markdown)(result))
    if options.out:
        os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
        with open(options.out, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
