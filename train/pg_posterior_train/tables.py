"""Real tables: CSV files and the descriptions that say what is in them. Needs NumPy alone.

A description is a JSON object; those of well-known files are in train/tables, others lie beside
their CSV file:

    file         name of the CSV file, .gz or not
    header       whether its first line names the columns (default true); without, columns have the
                 numbers 0, 1, …
    target       column to predict, a number in every row that is used (rows without are left out)
    features     columns to predict from (default: all but the target and those of `drop`)
    drop         columns to leave out
    classes      columns of labels that a classifier is measured on, each predicted from all others
                 (default: none)
    categorical  columns that are labels though they look like numbers; text is always labels
    time         columns of timestamps, read as hours
    missing      texts that mean a missing cell (default: empty, NA, nan)
    order        column that orders the rows; rows keep the file's order otherwise
    group        column that divides them into sequences, for `ordered`
    splits       {"context": [sizes], "queries": n, "repeats": n}: random splits, seeds 0, 1, …
    ordered      {"history": rows, "block": rows, "repeats": n}: contiguous blocks after a
                 contiguous context, per group
"""
import csv
import glob
import gzip
import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone

import numpy as np

KEYS = {"file", "header", "target", "features", "drop", "categorical", "time", "missing", "order",
        "group", "splits", "ordered", "classes"}
HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tables")


class BadTable(ValueError):
    """A description or a file that does not fit it; the message names both."""


@dataclass
class Table:
    """x [n, F] with NaN for missing cells and identities in categorical columns; y [n]; categorical
    [F]; group [n] (text).
    """

    name: str
    columns: list
    x: np.ndarray
    y: np.ndarray
    categorical: np.ndarray
    group: np.ndarray
    description: dict

    def rows(self, which):
        """The same table with some rows, in the order of `which`."""
        return Table(self.name, self.columns, self.x[which], self.y[which], self.categorical,
                     self.group[which], self.description)


def read_description(path):
    """A checked description."""
    with open(path, encoding="utf-8") as f:
        try:
            d = json.load(f)
        except ValueError as e:
            raise BadTable(f"{path} is not JSON: {e}") from e
    if not isinstance(d, dict) or "file" not in d or "target" not in d:
        raise BadTable(f"{path} needs \"file\" and \"target\"")
    unknown = set(d) - KEYS
    if unknown:
        raise BadTable(f"{path}: unknown key {sorted(unknown)[0]!r}; known are "
                       f"{', '.join(sorted(KEYS))}")
    check_splits(path, d)
    return d


def check_splits(path, d):
    """Raise unless `splits` is as the head of this file has it."""
    splits = d.get("splits")
    if splits is None:
        return
    sizes = splits.get("context") if isinstance(splits, dict) else None
    numbers = ([*sizes, splits.get("queries"), splits.get("repeats")]
               if isinstance(sizes, list) and sizes else [None])
    if not all(isinstance(n, int) and n > 0 for n in numbers):
        raise BadTable(f"{path}: splits needs \"context\", a list of sizes, \"queries\" and "
                       "\"repeats\", all of them integers above 0")


def descriptions(folder):
    """(name, description) of every table in the folder: its own *.json first, then those of
    train/tables whose file it has.
    """
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "*.json"))) + sorted(
            glob.glob(os.path.join(folder, "*.json"))):
        d = read_description(path)
        if os.path.exists(os.path.join(folder, d["file"])):
            found[os.path.splitext(os.path.basename(path))[0]] = d
    return sorted(found.items())


def read_rows(path):
    """The rows of a CSV file, empty lines left out; a byte order mark is none of its first cell."""
    form = {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
    opened = gzip.open(path, **form) if path.endswith(".gz") else open(path, **form)
    try:
        with opened as f:
            return [row for row in csv.reader(f) if row]
    except (UnicodeDecodeError, csv.Error) as e:
        raise BadTable(f"{path} is no CSV file in UTF-8: {e}") from e


def hours(text):
    """Hours since 1970 of an ISO timestamp or a date of eight digits."""
    form = "%Y%m%d" if len(text) == 8 and text.isdigit() else None
    moment = (datetime.strptime(text, form) if form
              else datetime.fromisoformat(text.replace("Z", "+00:00")))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp() / 3600


def encode(column, missing, categorical, time):
    """(numbers with NaN for missing, whether categorical); labels become identities in alphabetical
    order.
    """
    absent = [v in missing for v in column]
    if time:
        try:
            return np.array([np.nan if m else hours(v) for v, m in zip(column, absent)]), False
        except ValueError as e:
            raise BadTable(f"it is a column of timestamps: {e}") from e
    if not categorical:
        try:
            return np.array([np.nan if m else float(v) for v, m in zip(column, absent)]), False
        except ValueError:
            pass
    identity = {v: i for i, v in enumerate(sorted({v for v, m in zip(column, absent) if not m}))}
    return np.array([np.nan if m else identity[v] for v, m in zip(column, absent)], float), True


def read_table(folder, name, description):
    """The table of a description, rows without target left out, in its order."""
    d = description
    path = os.path.join(folder, d["file"])
    rows = read_rows(path)
    if len(rows) < (2 if d.get("header", True) else 1):
        raise BadTable(f"{path} has no rows")
    names = rows.pop(0) if d.get("header", True) else [str(i) for i in range(len(rows[0]))]
    if any(len(row) != len(names) for row in rows):
        raise BadTable(f"{path}: not every row has {len(names)} cells")

    if len(set(names)) < len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise BadTable(f"{path} has two columns {twice!r}")

    def column(j, **kind):
        try:
            return encode(cells[j], missing, **kind)
        except BadTable as e:
            raise BadTable(f"{path}, column {names[j]!r}: {e}") from e

    def index(column):
        text = str(len(names) + column) if isinstance(column, int) and column < 0 else str(column)
        if text not in names:
            raise BadTable(f"{path} has no column {column!r} (description {name}); it has "
                           f"{', '.join(names)}")
        return names.index(text)

    target = index(d["target"])
    dropped = {index(c) for c in d.get("drop", [])} | {target}
    features = ([index(c) for c in d["features"]] if "features" in d
                else [j for j in range(len(names)) if j not in dropped])
    labels, times = {index(c) for c in d.get("categorical", [])}, {index(c)
                                                                   for c in d.get("time", [])}
    missing = set(d.get("missing", ["", "NA", "nan"]))
    cells = list(zip(*rows))
    y, text = column(target, categorical=False, time=False)
    if text or np.isinf(y).any():
        raise BadTable(f"{path}: the target {names[target]!r} is not a number in every row")
    encoded = [column(j, categorical=j in labels, time=j in times) for j in features]
    kept = np.flatnonzero(~np.isnan(y))
    if "order" in d:
        j = index(d["order"])
        kept = kept[np.argsort(column(j, categorical=False, time=j in times)[0][kept],
                               kind="stable")]
    group = np.array(cells[index(d["group"])] if "group" in d else [""] * len(rows))
    table = Table(name, [names[j] for j in features], np.stack([c for c, _ in encoded], 1), y,
                  np.array([c for _, c in encoded]), group, d)
    return table.rows(kept)
