"""The sides that the benchmarks compare: SQL, the engine alone, PyTorch. Each can be timed, and
asked for the numbers that it computes.

SPDX-License-Identifier: PostgreSQL
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import time

from engine_process import EngineProcess

STEPS = 16
FRACTIONS = [
    0.6180339887, 0.4142135624, 0.7320508076, 0.2360679775, 0.6457513111, 0.3166247904,
    0.6055512755, 0.1231056256
]
PERIODS = {
    1024: 1 << 20,
    10000: 499
}  # of the rows of contexts: the float64 reference is held against all of them, and has seconds
LONG = 0.5                               # seconds: what takes longer needs no second time


def psql(sql):
    return subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"],
                          input=sql,
                          text=True,
                          check=True,
                          stdout=subprocess.PIPE).stdout


class Subject:
    """A model file and the columns that it is asked about: column j of row i is the fraction of i
    FRACTIONS[j], spread over [-2, 2]."""

    def __init__(self, name, path, columns):
        self.name, self.path, self.columns = name, path, columns
        with open(path, "rb") as f:
            length = int.from_bytes(f.read(8), "little")
            self.config = json.loads(json.loads(f.read(length))["__metadata__"]["pg_posterior"])

    def names(self, table=""):
        return ", ".join(f"{table}x{j}" for j in range(1, self.columns + 1))

    def row(self, n, i):
        """Row i (from 0) of the table whose first n rows are a context."""
        place = i % PERIODS[n] + 1
        return [
            -2 + 4 * (place * step - math.floor(place * step)) for step in FRACTIONS[:self.columns]
        ]


class Server:
    """The SQL side: contexts of n rows and arrays of m queries, in a schema of the subject's name.
    """

    def __init__(self, subject, queries):
        self.subject = subject
        row = f"ROW({subject.names()})::cells" if subject.columns > 1 else "x1"
        columns = ", ".join(f"-2 + 4 * (place * {step} - floor(place * {step})) AS x{j}"
                            for j, step in enumerate(FRACTIONS[:subject.columns], 1))
        rows = " UNION ALL ".join(
            f"SELECT {n} AS n, i, (i - 1) % {period} + 1 AS place FROM generate_series(1, {n} + "
            f"{max(queries)}) i"
            for n, period in PERIODS.items())
        psql(f"""
            CREATE EXTENSION IF NOT EXISTS pg_posterior;
            CREATE SCHEMA {subject.name};
            SET search_path = {subject.name};
            SELECT posterior.load_model('bench_{subject.name}',
                pg_read_binary_file('{subject.path}'));
            CREATE TABLE row AS SELECT n, i, {columns} FROM ({rows}) r;
            ALTER TABLE row ADD y float8;
            UPDATE row SET y = sin(3 * x1) + 0.1 * cos(57 * x{subject.columns});
            CREATE TABLE context (n int PRIMARY KEY, ctx posterior.context);
            CREATE TYPE cells AS ({subject.names().replace(",", " float8,")} float8);
            CREATE TABLE query (n int, m int, xs {'cells' if subject.columns > 1 else 'float8'}[]);
            CREATE TABLE target AS SELECT * FROM row WHERE i > n AND i <= n + {STEPS};
            SET posterior.model = 'bench_{subject.name}';
            INSERT INTO context SELECT n, posterior.context(y, {subject.names()} ORDER BY i)
                FROM row WHERE i <= n GROUP BY n;
        """ + "".join(
            f"INSERT INTO query SELECT n, {m}, array_agg({row} ORDER BY i) FROM row WHERE i > n "
            f"AND i <= n + {m} GROUP BY n;"
            for m in queries))

    def statement(self, operation, n, size, numbers=False):
        """The SQL of a question, or None; with `numbers`, such that it says what Engine.answer
        does."""
        names = self.subject.names("t.")
        given = f"FROM context c, query q, posterior.%s WHERE c.n = {n} AND q.n = {n} AND m = %d"
        target = f"FROM context c, target t WHERE c.n = {n} AND t.n = {n} GROUP BY ctx"
        if operation == "build" or (operation == "predict" and size == 1):
            one = f"posterior.predict(ctx, {', '.join(map(repr, self.subject.row(n, n)))})"
            if not numbers:
                return f"SELECT {one} FROM context WHERE n = {n}"
            return ("SELECT posterior.mean(p), posterior.stddev(p) "
                    f"FROM (SELECT {one} AS p FROM context WHERE n = {n} OFFSET 0) s")
        if operation == "predict":
            return ("SELECT posterior.mean(prediction), posterior.stddev(prediction) " if numbers
                    else "SELECT count(*) ") + given % ("predict_rows(ctx, xs)", size) + (
                        " ORDER BY ord" if numbers else "")
        if operation == "sample":
            return ("SELECT y " if numbers else "SELECT count(*) ") + given % (
                f"sample(ctx, xs, {size}, 1)", STEPS) + (" ORDER BY draw, ord" if numbers else "")
        if operation == "density" and size == 1:
            return f"SELECT posterior.log_density(ctx, y, {names} ORDER BY i) {target}"
        if operation == "density":
            return (f"SELECT posterior.log_density_averaged(ctx, {size}, 1, y, {names} ORDER BY i) "
                    + target)
        return None

    def settings(self, operation):
        """A context is built by the first question about it, which is every one where nothing is
        kept."""
        name = self.subject.name
        return f"-c posterior.model=bench_{name} -c search_path={name}" + (
            " -c posterior.cache=off" if operation == "build" else "")

    def environment(self, operation):
        return {**os.environ, "PGOPTIONS": f"{os.environ['PGOPTIONS']} {self.settings(operation)}"}

    def answer(self, operation, n, size):
        said = subprocess.run([
            "psql", "-XqAt", "-F", "\n", "-v", "ON_ERROR_STOP=1", "-c",
            self.statement(operation, n, size, True)
        ],
                              check=True,
                              text=True,
                              stdout=subprocess.PIPE,
                              env=self.environment(operation)).stdout
        return [float(line) for line in said.split()]

    def time(self, sql, seconds, operation=""):
        """Milliseconds of each statement over `seconds` of one pgbench client."""
        with tempfile.TemporaryDirectory() as place:
            script = os.path.join(place, "statement.sql")
            with open(script, "w") as f:
                f.write(sql + ";\n")
            subprocess.run([
                "pgbench", "-n", "-M", "prepared", "-T",
                str(max(1, round(seconds))), "-l", "--log-prefix",
                os.path.join(place, "log"), "-f", script
            ],
                           check=True,
                           capture_output=True,
                           env=self.environment(operation))
            found = []
            for name in os.listdir(place):
                if name.startswith("log"):
                    with open(os.path.join(place, name)) as f:
                        found += [
                            int(line.split()[2]) / 1000 for line in f if line.split()[2] != "0"
                        ]
        # the first statement of a session encodes the context
        return found[1:] or found


class Engine(EngineProcess):
    """The engine alone, in a process of its own."""

    def __init__(self, subject, threads, kernels=None):
        super().__init__(subject.path)
        self.rows = None
        self.say("features " + " ".join(map(str, FRACTIONS[:subject.columns])))
        if kernels:
            self.say(f"kernels {kernels}")
        self.say(f"threads {threads}")

    def have(self, n):
        if self.rows != n:
            self.say(f"rows {n} {PERIODS[n]}")
            self.rows = n

    def answer(self, operation, n, size):
        self.have(n)
        return [float(line) for line in self.say(f"answer {operation} {size}")]

    def time(self, operation, n, size, seconds):
        """Milliseconds by the clock, and of processors."""
        self.have(n)
        return [
            tuple(map(float, line.split()))
            for line in self.say(f"time {operation} {size} {seconds}")
        ]

    def team(self, seconds):
        return [float(line) for line in self.say(f"team {seconds}")]

    def limits(self, seconds):
        return json.loads(self.say(f"limits {seconds}")[0])


class Torch:
    """PyTorch eager with the same rows, one encoding per context size."""

    def __init__(self, subject):
        import torch

        sys.path[:0] = ["bench", "train"]
        import torch_baseline

        self.torch, self.module, self.subject = torch, torch_baseline, subject
        self.settings = self.thread_settings()
        self.contexts = {}

    def thread_settings(self):
        """What PyTorch is measured with, (threads, threads of a BLAS of its own); the best counts.
        A BLAS that PyTorch does not rule, as in Debian's package, must not have threads within its
        threads.
        """
        processors = os.cpu_count()
        if "BLAS_INFO=generic" not in self.torch.__config__.show():
            return [(n, None) for n in sorted({1, processors})]
        try:
            import threadpoolctl
        except ImportError:
            raise ImportError(
                "it leaves products to the system's BLAS; that needs threadpoolctl, Debian's "
                "python3-threadpoolctl, and OpenBLAS, libopenblas0-pthread"
            )
        self.blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
        if not self.blas.info():
            raise ImportError(
                "it leaves products to the system's BLAS, which is none whose threads can be set; "
                "that needs OpenBLAS, Debian's libopenblas0-pthread"
            )
        return sorted({(1, 1), (processors, 1), (1, processors)})

    def describe(self):
        name = f"PyTorch {self.torch.__version__} at its best of "
        if self.settings[0][1] is None:
            return name + " and ".join(str(n) for n, _ in self.settings) + " threads"
        blas = self.blas.info()[0]
        return name + ", ".join(f"{n}/{own}" for n, own in self.settings) + (
            f" threads of its own/of {blas['internal_api']} {blas['version']}")

    def context(self, n):
        """(baseline with n rows encoded, inputs x and y of all rows, y as it enters the model, the
        target's center and scale)."""
        if n not in self.contexts:
            x = self.torch.tensor([self.subject.row(n, i) for i in range(2 * n + STEPS)],
                                  dtype=self.torch.float64)
            y = self.torch.sin(3 * x[:, 0]) + 0.1 * self.torch.cos(57 * x[:, -1])
            with self.torch.no_grad():
                x, y, entering, center, scale = self.module.inputs(self.subject.config, x, y, n)
                baseline = self.module.Baseline(self.subject.path)
                baseline.encode(x[:n], entering[:n])
                self.contexts[n] = baseline, x, y, entering, center, scale
        return self.contexts[n]

    def call(self, operation, n, size):
        baseline, x, y, entering, _, _ = self.context(n)
        more = slice(n, n + (size if operation in ("predict", "append") else STEPS))
        return {
            "predict":
            lambda: baseline.predict(x[more]),
            "sample":
            lambda: baseline.sample(x[more], size),
            "density":
            lambda: baseline.density(x[more], y[more], size),
            "append":
            lambda: baseline.append(x[more], entering[more]),
            "again":
            lambda: baseline.sample_again(x[:n], entering[:n], x[more], size),
            "build":
            lambda: self.module.Baseline(self.subject.path, baseline.model).encode(
                x[:n], entering[:n])
        }[operation]

    def answer(self, operation, n, size):
        """What Engine.answer says; draws are from random numbers of PyTorch's own."""
        baseline, x, _, _, center, scale = self.context(n)
        self.torch.manual_seed(1)
        with self.torch.no_grad():
            if operation == "density":
                return [float(self.call(operation, n, size)()) - STEPS * math.log(scale)]
            if operation == "sample":
                return (center +
                        scale * self.call(operation, n, size)().double()).flatten().tolist()
            kept = baseline.cache, baseline.keys
            if operation == "append":
                new = self.call(operation, n, size)()
                baseline.cache = [
                    tuple(self.torch.cat(both, 1) for both in zip(*layers))
                    for layers in zip(baseline.cache, new)
                ]
                baseline.keys += size
            first = n + (size if operation == "append" else 0)
            weights, means, sds = (
                part.double()
                for part in baseline.predict(x[first:first +
                                               (size if operation == "predict" else STEPS)]))
            baseline.cache, baseline.keys = kept
            mean = (weights.exp() * means).sum(-1)
            sd = ((weights.exp() * (sds ** 2 + (means - mean[:, None]) ** 2)).sum(-1)) ** 0.5
            return self.torch.stack([center + scale * mean, scale * sd], 1).flatten().tolist()

    def time(self, operation, n, size, seconds, setting):
        self.torch.set_num_threads(setting[0])
        if setting[1] is not None:
            self.blas.limit(limits=setting[1])
        call = self.call(operation, n, size)
        found = []
        with self.torch.no_grad():
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or (len(found) < 2 and found[0] < 1000 * LONG):
                start = time.perf_counter()
                call()
                found.append(1000 * (time.perf_counter() - start))
        return found
