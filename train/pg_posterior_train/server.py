"""Answers of a model through SQL: contexts, predictions and joint densities of the extension, by
psql and COPY.

Works in the database that the PG* variables name, in temporary tables; the model file is loaded
under the name `evaluated`. `test/with-server` gives a server of its own to a command.
"""
import csv
import io
import subprocess

import numpy as np

MODEL = "evaluated"


class ServerError(RuntimeError):
    """What psql said."""


class Server:
    """One model behind one database."""

    def __init__(self, model_file):
        with open(model_file, "rb") as f:
            content = f.read().hex()
        self.ask("CREATE EXTENSION IF NOT EXISTS pg_posterior;\n"
                 f"SELECT posterior.drop_model(name) FROM posterior.models WHERE name = "
                 f"'{MODEL}';\n"
                 f"SELECT posterior.load_model('{MODEL}', '\\x{content}'::bytea);\n")

    @staticmethod
    def ask(script):
        """The rows that a script writes to its standard output as CSV."""
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerError(done.stderr.strip() or f"psql ended with status {done.returncode}")
        return [row for row in csv.reader(io.StringIO(done.stdout)) if row]

    @staticmethod
    def copy(name, table):
        """Statements that make a temporary table of a Table: i, y and one column for each feature.
        """
        kinds = ["text" if c else "float8" for c in table.categorical]
        out = io.StringIO()
        out.write(f"CREATE TEMPORARY TABLE {name} (i integer, y float8, "
                  f"{', '.join(f'x{j} {kind}' for j, kind in enumerate(kinds))});\n")
        out.write(f"COPY {name} FROM STDIN (FORMAT csv);\n")
        for i, (row, y) in enumerate(zip(table.x, table.y)):
            cells = ["" if np.isnan(v) else f"c{int(v)}" if c else repr(float(v))
                     for v, c in zip(row, table.categorical)]
            out.write(",".join([str(i), repr(float(y)), *cells]) + "\n")
        out.write("\\.\n")
        return out.getvalue()

    def start(self, context, queries):
        """Both tables, and the columns of each as arguments."""
        columns = ", ".join(f"{{0}}.x{j}" for j in range(context.x.shape[1]))
        script = (f"BEGIN;\nSET LOCAL posterior.model = '{MODEL}';\n"
                  + self.copy("context", context) + self.copy("queries", queries))
        script += ("CREATE TEMPORARY TABLE encoded AS SELECT posterior.context(r.y, "
                   + columns.format("r") + " ORDER BY r.i) AS c"
                   " FROM context r;\n")
        return script, columns.format("q")

    def predict(self, context, queries):
        """[queries, 5]: log density, mean, standard deviation, distribution function and CRPS of
        every query given the context.
        """
        script, arguments = self.start(context, queries)
        script += ("COPY (SELECT posterior.log_pdf(p, q.y), posterior.mean(p), "
                   "posterior.stddev(p), posterior.cdf(p, q.y), posterior.crps(p, q.y)"
                   f" FROM encoded e, queries q, LATERAL posterior.predict(e.c, {arguments}) p "
                   f"ORDER BY q.i) TO STDOUT (FORMAT csv);\nCOMMIT;\n")
        answer = np.array(self.ask(script), float)
        if answer.shape != (len(queries.y), 5):
            raise ServerError(f"{len(queries.y)} queries, answers of shape {answer.shape}")
        return answer

    def joint(self, context, queries, given=0):
        """Joint log density of the queries after the first `given`, in their order, given the
        context and those.
        """
        script, arguments = self.start(context, queries)
        density = f"posterior.log_density(e.c, q.y, {arguments} ORDER BY q.i)"
        whole = f"SELECT {density} FROM encoded e, queries q"
        first = (f" - (SELECT {density} FROM encoded e, queries q WHERE q.i < {int(given)})"
                 if given else "")
        script += f"COPY (SELECT ({whole}){first}) TO STDOUT (FORMAT csv);\nCOMMIT;\n"
        return float(self.ask(script)[0][0])
