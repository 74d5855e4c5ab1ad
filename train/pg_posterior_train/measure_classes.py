"""Measures a classifier on the tables of a folder, through SQL and the extension, beside classical
ones.

A description (tables.py) names the columns to predict in `classes`; each is predicted from all
other columns. Random splits, seeds 0, 1, … Log loss in nats; ± is the standard error of the mean
over splits, which share rows in small tables.
"""
import io
import json
import os
import struct
import sys

import numpy as np

from .baselines import Design
from .class_scores import baseline_probabilities, class_baselines, score, summarise
from .server import MODEL, Server, ServerError
from .tables import BadTable, Table, descriptions, encode, read_rows

CONTEXTS, QUERIES, REPEATS = (32, 64, 128, 256), 500, 10


def is_classifier_file(path):
    """Whether a model file holds a classifier."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    return json.loads(header["__metadata__"]["pg_posterior"])["target"]["scaling"] == "classes"


def read_class_table(folder, name, description, label):
    """The table whose y are the classes 0, 1, … of the column `label`; rows without one are left
    out.
    """
    path = os.path.join(folder, description["file"])
    rows = read_rows(path)
    names = (rows.pop(0) if description.get("header", True)
             else [str(i) for i in range(len(rows[0]))])
    missing = set(description.get("missing", ["", "NA", "nan"]))
    if label not in names:
        raise BadTable(f"{path} has no column {label!r} (description {name}); it has "
                       f"{', '.join(names)}")
    rows = [row for row in rows if row[names.index(label)] not in missing]
    kept = [j for j, column in enumerate(names) if column != label
            and column not in description.get("drop", [])]
    cells = list(zip(*rows))
    marked, times = description.get("categorical", []), description.get("time", [])
    encoded = [encode(cells[j], missing, names[j] in marked, names[j] in times) for j in kept]
    y = np.unique(cells[names.index(label)], return_inverse=True)[1]
    return Table(f"{name} {label}", [names[j] for j in kept], np.stack([c for c, _ in encoded], 1),
                 y, np.array([c for _, c in encoded]), np.array([""] * len(y)), description)


def class_tables(folder):
    """(name, table) of every column that a description of the folder calls a class."""
    for name, description in descriptions(folder):
        for label in description.get("classes", []):
            table = read_class_table(folder, name, description, label)
            yield table.name, table


class ClassServer(Server):
    """A classifier behind one database."""

    @staticmethod
    def copy(name, table):
        """As Server.copy; y is a label, k and two digits, so that the order of the labels is that
        of the classes.
        """
        kinds = ["text" if c else "float8" for c in table.categorical]
        out = io.StringIO()
        out.write(f"CREATE TEMPORARY TABLE {name} (i integer, y text, "
                  f"{', '.join(f'x{j} {kind}' for j, kind in enumerate(kinds))});\n")
        out.write(f"COPY {name} FROM STDIN (FORMAT csv);\n")
        for i, (row, y) in enumerate(zip(table.x, table.y)):
            cells = ["" if np.isnan(v) else f"c{int(v)}" if c else repr(float(v))
                     for v, c in zip(row, table.categorical)]
            out.write(",".join([str(i), f"k{y:02d}", *cells]) + "\n")
        out.write("\\.\n")
        return out.getvalue()

    def probabilities(self, context, queries):
        """[queries, K] for the K classes that the context has, in their order."""
        columns = ", ".join(f"{{0}}.x{j}" for j in range(context.x.shape[1]))
        script = (f"BEGIN;\nSET LOCAL posterior.class_model = '{MODEL}';\n"
                  + self.copy("context", context) + self.copy("queries", queries))
        script += ("CREATE TEMPORARY TABLE encoded AS SELECT posterior.class_context(r.y, "
                   + columns.format("r") + " ORDER BY r.i) AS c FROM context r;\n"
                   "COPY (SELECT (SELECT array_to_string(array_agg(probability), ' ') FROM "
                   "posterior.probabilities(p))"
                   f" FROM encoded e, queries q, LATERAL posterior.predict(e.c, "
                   f"{columns.format('q')}) p ORDER BY q.i) TO STDOUT (FORMAT csv);\nCOMMIT;\n")
        answer = np.array([row[0].split() for row in self.ask(script)], float)
        classes = len(set(context.y))
        if answer.shape != (len(queries.y), classes):
            raise ServerError(f"{len(queries.y)} queries and {classes} classes, answers of shape "
                              f"{answer.shape}")
        return answer


def split(table, n, queries, seed):
    """n random context rows, and others whose class is among theirs with the classes renumbered as
    the context has them.
    """
    order = np.random.default_rng(seed).permutation(len(table.y))[:n + queries]
    context, asked = table.rows(order[:n]), table.rows(order[n:])
    known = np.unique(context.y)
    asked = asked.rows(np.flatnonzero(np.isin(asked.y, known)))
    context.y, asked.y = np.searchsorted(known, context.y), np.searchsorted(known, asked.y)
    return context, asked


def compare(server, pairs, makers):
    """Summaries of the model and of the baselines on (context, queries) pairs."""
    scores, found = {}, {}
    for context, queries in pairs:
        classes = len(set(context.y))
        if classes < 2 or len(queries.y) == 0:
            continue
        answers = {"model": server.probabilities(context, queries)}
        design = Design(context.x, context.categorical)
        for name, make in makers.items():
            answers[name] = baseline_probabilities(make, design, context.x, context.y, queries.x,
                                                   classes)
        for name, answer in answers.items():
            one, pair = score(answer, queries.y)
            scores.setdefault(name, []).append(one)
            found.setdefault(name, []).append(pair)
    return summarise(scores, found)


def markdown(result):
    """The result as text."""
    lines = [f"# {result['model']}", "",
             "Log loss in nats, lower is better. ± is one standard error over splits.", "",
             "| table, context rows | predictor | log loss | accuracy | Brier score | calibration "
             "error | model ahead by |", "|---|---|---|---|---|---|---|"]
    for name, sizes in result["tables"].items():
        for n, rows in sizes.items():
            for who, row in rows.items():
                ahead = (f"{row['behind_model']:+.3f} ± {row['behind_model_error']:.3f}"
                         if "behind_model" in row else "")
                lines.append(f"| {name} {n} | {who} | {row['log_loss']:.3f} ± "
                             f"{row['log_loss_error']:.3f} | {100 * row['accuracy']:.1f} % | "
                             f"{row['brier']:.3f} | "
                             f"{row['calibration_error']:.3f} | {ahead} |")
    return "\n".join(lines)


def measure_classes(model_file, folder, options):
    """Random splits of every class column of the folder."""
    tables = [(name, table) for name, table in class_tables(folder) if not options.tables
              or name in options.tables or name.split()[0] in options.tables]
    if not tables:
        raise BadTable(f"{folder} has no column to classify: name some in \"classes\" of a "
                       f"description (train/pg_posterior_train/tables.py)")
    server = ClassServer(model_file)
    result = {"model": os.path.splitext(os.path.basename(model_file))[0], "tables": {}}
    for name, table in tables:
        print(name, file=sys.stderr, flush=True)
        sizes = [n for n in CONTEXTS if len(table.y) >= n + 40]
        result["tables"][name] = {
            str(n): compare(server,
                            [split(table, n, options.queries or QUERIES, seed)
                             for seed in range(options.repeats or REPEATS)], class_baselines())
            for n in sizes}
    return result
