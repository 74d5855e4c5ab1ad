#!/usr/bin/env python3
"""Hold docs/model-format.md against the engine: its example is a model, and its ranges are the
engine's. Prints TAP.

The example's configuration and tensors are read out of the page, filled with random numbers and
asked; of every key of the page's table of ranges the two ends are accepted and what lies beyond is
refused.

SPDX-License-Identifier: PostgreSQL
"""

import json
import math
import os
import re
import tempfile

import numpy as np

from check_stranger import identity
from checking import HERE, KERNELS, Tap, Tool, arguments, cells, close, table
from make_models import BASE, MODELS
from reference import Model, build
from safetensors_io import write_model

PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "model-format.md")


def section(page, heading):
    """The text below a heading, up to the next one."""
    return re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", page, re.M | re.S).group(1)


def example(page):
    """(configuration, shapes of the tensors by name) of the page's example."""
    text = section(page, "15. A complete example")
    config = json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))
    listed = re.search(r"```text\n(.*?)```", text, re.S).group(1)
    shapes = dict(re.findall(r"^(\S+) +(\[.*\])$", listed, re.M))
    assert len(shapes) == len(listed.strip().splitlines())
    return config, {name: json.loads(shape) for name, shape in shapes.items()}


def random_tensors(shapes):
    random = np.random.RandomState(5)
    made = {}
    for name, shape in shapes.items():
        size = 1.4 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.2
        made[name] = size * random.standard_normal(shape) + ("norm" in name)
    return {name: value.astype(np.float32) for name, value in made.items()}


def check_example(tap, tool, folder, config, shapes):
    path, tensors = os.path.join(folder, "example.safetensors"), random_tensors(shapes)
    write_model(path, config, tensors)
    random = np.random.RandomState(6)
    x = 40 + 3 * random.standard_normal((20, config["inputs"]["features"]))
    y = 1000 + 50 * np.sin(x[:, 0]) + random.standard_normal(20)
    encoding = build(Model.open(path), x[:12], y[:12], 8)
    answers = encoding.predict(x[12:])
    for kernels in KERNELS:
        with Tool(tool, path) as engine:
            said = engine.ask(
                kernels=kernels,
                context=table(x[:12], y[:12]),
                prefix=8,
                queries=cells(x[12:]),
                score=table(x[12:], y[12:]),
            )
        wrong = [
            bad
            for bad in (
                close(said.get("mean", []), [d.mean() for d in answers], 1e-3),
                close(said.get("sd", []), [d.sd() for d in answers], 1e-3),
                close(said.get("per_row", []), encoding.conditionals(x[12:], y[12:]), 1e-3),
            )
            if bad
        ]
        tap.ok(not wrong, f"the example's answers are the reference's, {kernels}", *wrong, said)
    spread = np.ptp([d.mean() for d in answers])
    tap.ok(spread > 1, "they depend on the query", spread)
    for name in tensors:
        fewer = {other: value for other, value in tensors.items() if other != name}
        write_model(path, config, fewer)
        with Tool(tool, path) as engine:
            message = engine.ask()["error"]["message"]
        tap.ok(message == f'tensor "{name}" is missing', f"without {name}", message)


def configuration(name):
    """That of one of the models that tests use."""
    return json.loads(json.dumps({**BASE, **MODELS[name]}))


def check_labels(tap, page):
    """The page's labels have the identities that the page's recipe gives; sql/features.sql asks the
    server for these.
    """
    listed = re.findall(r"`'(\w*)'` is\s+(\d+)", page)
    wrong = [one for one in listed if identity(one[0]) != float(one[1])]
    tap.ok(len(listed) == 3 and not wrong, "identities of labels", wrong)


def base_for(key):
    """A model that has this key."""
    named = {
        "inputs.max_features": "rows_tokens",
        "embedder.x.prune_below": "rows_absent",
        "embedder.x.directions": "rows_directions",
        "embedder.x.split": "rows_split",
        "embedder.x.donors": "rows_donors",
        "embedder.hidden": "packed_flag",
        "head.buckets": "head_bars",
        "inputs.center": "incremental_fixed",
        "inputs.scale": "incremental_fixed",
        "target.center": "incremental_fixed",
        "target.scale": "incremental_fixed",
        "head.classes": "classes_plain",
        "head.logistic": "classes_lean",
        "head.trees": "classes_trees",
        "head.class_process": "classes_process",
        "head.few_values": "rows_few_values",
        "head.rare": "rows_rare",
        "head.levels": "rows_levels",
        "inputs.far": "rows_far",
        "target.far": "rows_far_targets",
        "head.process": "rows_gated",
    }
    name = "rows_tokens" if ".tokens." in key else named.get(key, "prefix_causal")
    config = configuration(name)
    if key in ("chain.buffer", "embedder.positions"):
        config = configuration("buffer_inclusive")
        config["embedder"]["positions"] = 0
        config["chain"]["buffer"] = 1 if key == "embedder.positions" else 4
    return config


def place(config, key):
    """The object that holds a key, and the key's own name."""
    *path, last = key.split(".")
    for name in path:
        config = config[name]
    return config, last


def with_value(key, kind, value):
    """A configuration with this value, and with what else must then change."""
    config = base_for(key)
    holder, name = place(config, key)
    if kind == "numbers":
        value = [value] * config["inputs"]["features"]
    elif kind == "sizes":
        value = [value]
    holder[name] = value
    if name == "features" and config["inputs"]["scaling"] == "fixed":
        config["inputs"]["scaling"] = "none"
    if name in ("width", "heads"):
        holder["heads" if name == "width" else "width"] = (
            1 if name == "width" else min(max(value, 1), 4096)
        )
    if name == "buckets":
        config["head"]["tails"] = "bounded"
    if name == "sinks":
        config["min_rows"] = 2
    return config


def beyond(kind, least, largest):
    """The values next to the range."""
    if kind in ("integer", "sizes"):
        return [least - 1, largest + 1]
    below = math.nextafter(least, -math.inf) if least > -1e308 else None
    above = math.nextafter(largest, math.inf) if largest < 1e308 else None
    return [value for value in (below, above) if value is not None]


def refusal(tool, folder, config):
    """What the engine says against a configuration, or None; no weights are needed to ask."""
    path = os.path.join(folder, "range.safetensors")
    write_model(path, config, {"none": np.zeros(1)})
    with Tool(tool, path) as engine:
        error = engine.ask()["error"]
    assert error["status"] in ("bad config", "bad tensor"), error
    return error["message"] + "; " + error["detail"] if error["status"] == "bad config" else None


def check_ranges(tap, tool, folder, page):
    listed = re.findall(
        r"^\| `([a-z_.]+)` \| (\w+) \| (\S+) \| (\S+) \|$", section(page, "Ranges"), re.M
    )
    for key, kind, least, largest in listed:
        least, largest = json.loads(least), json.loads(largest)
        inside = [refusal(tool, folder, with_value(key, kind, value)) for value in (least, largest)]
        tap.ok(inside == [None, None], f"{key}: {least} and {largest} are accepted", *inside)
        if kind == "sizes":
            most, more = (refusal(tool, folder, with_value(key, "list", [1] * n)) for n in (8, 9))
            tap.ok(most is None and key in more, f"{key}: at most 8 sizes", most, more)
        for value in beyond(kind, least, largest):
            said = refusal(tool, folder, with_value(key, kind, value)) or "nothing"
            tap.ok(key in said, f"{key}: {value} is refused", said)
    return {key for key, *_ in listed}


def check_complete(tap, listed):
    """Every key with a number, of all models of the tests, is in the table of ranges."""

    def numbers(value, path):
        if isinstance(value, dict):
            return set().union(
                set(), *(numbers(v, f"{path}.{k}" if path else k) for k, v in value.items())
            )
        return (
            {path}
            if isinstance(value, (int, float, list)) and not isinstance(value, bool)
            else set()
        )

    used = set().union(*(numbers(configuration(name), "") for name in MODELS)) - {"format"}
    tap.ok(used <= listed, "every key with a number has a range", sorted(used - listed))


def main():
    options = arguments(__doc__.split("\n\n")[0])
    tap = Tap()
    with open(PAGE) as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as folder:
        check_example(tap, options.tool, folder, *example(page))
        check_labels(tap, page)
        check_complete(tap, check_ranges(tap, options.tool, folder, page))
    tap.done()


if __name__ == "__main__":
    main()
