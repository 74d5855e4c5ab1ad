#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Rows of a table scored against a context of 1,000: by SQL, and by scikit-learn beside the server.

    test/with-server --conf shared_preload_libraries=pg_posterior bench/scoring
    … bench/scoring --rows 20000 --rounds 3

Every way ends with a table of key, mean, standard deviation or band, and begins with rows in a
table: what scikit-learn needs is exported with COPY and its answers are imported with COPY, both
timed. The errors of the answers stand beside the times, for the methods differ in what they know.
"""
import argparse
import os
import statistics
import time

import psycopg

CONTEXT = 1000
QUANTILES = (0.05, 0.95)

SETUP = """
CREATE EXTENSION pg_posterior;
CREATE FUNCTION rows(first int, n int) RETURNS TABLE (id int, a float8, b float8, c float8,
    kind text, y float8) LANGUAGE sql AS $$
    SELECT i, a, b, c, kind, 3 * sin(a) + a * b + CASE kind WHEN 'x' THEN 2 WHEN 'y' THEN -1
        ELSE 0 END + 0.5 * z[4]
    FROM generate_series(first, first + n - 1) i,
        LATERAL (SELECT array_agg(d) AS z FROM posterior.draw(posterior.normal(0, 1), 4, i) d) d,
        LATERAL (SELECT z[1] AS a, z[2] AS b, z[3] AS c,
            (ARRAY['x', 'y', 'z'])[1 + i % 3] AS kind) f $$;
"""

LATERAL = """
CREATE TABLE answers AS SELECT r.id, posterior.mean(p) AS mean, posterior.stddev(p) AS stddev,
    posterior.quantile(p, ARRAY[0.05, 0.95]) AS band
FROM questions r, LATERAL posterior.predict('known'::name, r) p
"""

VERB = """
CREATE TABLE answers AS SELECT (row_key->>'id')::int AS id, mean, stddev, quantiles AS band
FROM posterior.score('known', 'questions', levels => '{0.05,0.95}')
"""

ERROR = """
SELECT sqrt(avg((a.mean - q.y) ^ 2)), avg((q.y BETWEEN a.band[1] AND a.band[2])::int)::float8
FROM answers a JOIN truth q USING (id)
"""


def fetch(connection, relation, columns):
    """Columns of a relation by COPY, as arrays; `kind` becomes its place among x, y, z."""
    import numpy
    rows = []
    with connection.cursor().copy(f"COPY (SELECT {columns} FROM {relation}) TO STDOUT") as copy:
        copy.set_types(["int4", "float8", "float8", "float8", "text"]
                       + ["float8"] * columns.count("y"))
        for row in copy.rows():
            rows.append(row[:4] + ("xyz".index(row[4]),) + row[5:])
    return numpy.array(rows, dtype=float)


def store(connection, keys, means, sds, low, high):
    """Answers into a table, by COPY."""
    connection.execute("CREATE TABLE answers (id int, mean float8, stddev float8, band float8[])")
    with connection.cursor().copy("COPY answers FROM STDIN") as copy:
        for row in zip(keys, means, sds, low, high):
            copy.write_row((int(row[0]), float(row[1]), None if row[2] is None else float(row[2]),
                            [float(row[3]), float(row[4])]))


def boosting(connection):
    """Three gradient-boosted ensembles of trees: mean, and the quantiles of the band."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    known = fetch(connection, "known", "id, a, b, c, kind, y")
    asked = fetch(connection, "questions", "id, a, b, c, kind")
    answers = []
    for options in ({}, *({"loss": "quantile", "quantile": q} for q in QUANTILES)):
        model = HistGradientBoostingRegressor(categorical_features=[3], **options)
        answers.append(model.fit(known[:, 1:5], known[:, 5]).predict(asked[:, 1:5]))
    store(connection, asked[:, 0], answers[0], [None] * len(asked), answers[1], answers[2])


def gaussian_process(connection):
    """A Gaussian process with a length scale per column, its parameters by marginal likelihood."""
    import numpy
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    known = fetch(connection, "known", "id, a, b, c, kind, y")
    asked = fetch(connection, "questions", "id, a, b, c, kind")

    def design(rows):
        return numpy.column_stack([rows[:, 1:4], *(rows[:, 4] == k for k in range(3))])

    kernel = ConstantKernel() * RBF([1.0] * 6) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(design(known), known[:, 5])
    means, sds = zip(*(model.predict(design(asked[i:i + 2000]), return_std=True)
                       for i in range(0, len(asked), 2000)))
    means, sds = numpy.concatenate(means), numpy.concatenate(sds)
    store(connection, asked[:, 0], means, sds, means - 1.645 * sds, means + 1.645 * sds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with psycopg.connect("dbname=postgres", autocommit=True) as admin:
        admin.execute("CREATE DATABASE scoring")
    connection = psycopg.connect("dbname=scoring", autocommit=True)
    connection.execute(SETUP)
    connection.execute(f"CREATE TABLE known AS SELECT * FROM rows(1, {CONTEXT})")
    connection.execute(f"CREATE TABLE truth AS SELECT * FROM rows({CONTEXT + 1}, {options.rows})")
    connection.execute("CREATE TABLE questions AS SELECT id, a, b, c, kind FROM truth")
    connection.execute("ALTER TABLE questions ADD PRIMARY KEY (id)")
    connection.execute("ANALYZE")
    connection.execute("SELECT posterior.create_context('known', 'known', 'y', '{a,b,c,kind}',"
                       " order_by => 'id')")
    connection.execute("SELECT posterior.warm_context('known')")
    ways = [("posterior.score", lambda c: c.execute(VERB)),
            ("LATERAL posterior.predict", lambda c: c.execute(LATERAL))]
    try:
        import sklearn
        ways += [(f"gradient boosting (scikit-learn {sklearn.__version__})", boosting),
                 (f"Gaussian process (scikit-learn {sklearn.__version__})", gaussian_process)]
    except ImportError:
        print("scikit-learn's side is left out: no such module")
    threads = connection.execute("SHOW posterior.threads").fetchone()[0]
    print(f"{options.rows} rows, a context of {CONTEXT}; "
          f"{len(os.sched_getaffinity(0))} processors, posterior.threads = {threads}, "
          f"load {os.getloadavg()[0]:.1f}, "
          f"median of {options.rounds} rounds")
    taken = {name: [] for name, _ in ways}
    said = {}
    for _ in range(options.rounds):
        for name, way in ways:
            connection.execute("DROP TABLE IF EXISTS answers")
            began = time.monotonic()
            way(connection)
            taken[name].append(time.monotonic() - began)
            said[name] = connection.execute(ERROR).fetchone()
    first = statistics.median(taken[ways[0][0]])
    print(f"{'way':44} {'seconds':>8} {'ratio':>6} {'rmse':>6} {'in 90 %':>8}")
    for name, _ in ways:
        seconds = statistics.median(taken[name])
        rmse, covered = said[name]
        print(f"{name:44} {seconds:8.1f} {seconds / first:6.2f} {rmse:6.3f} {covered:8.3f}")


if __name__ == "__main__":
    main()
