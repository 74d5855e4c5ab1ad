"""Measure questions three ways on the same weights, in turns within one run, and print one table.

Run by bench/run in a private server. From SQL: per statement, end to end from a client on a socket, prepared, warm. The engine alone: the same question asked by
bench/engine.c, which also says what the machine's vector units and memory can do at most. PyTorch eager: the calls alone, in-process, at its best of a few
numbers of threads, with the context encoded once and shared by all draws. Ratios compare medians of the same run. Before anything is timed, the three must
agree.

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = 16
ROWS = 20000
FRACTIONS = [0.6180339887, 0.4142135624, 0.7320508076, 0.2360679775, 0.6457513111, 0.3166247904, 0.6055512755, 0.1231056256]


def psql(sql):
    return subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=sql, text=True, check=True, capture_output=True).stdout


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


class Subject:
    """A model file and the columns that it is asked about: column j of row i is the fraction of i FRACTIONS[j], spread over [-2, 2]."""

    def __init__(self, name, path, columns):
        self.name, self.path, self.columns = name, path, columns
        with open(path, "rb") as f:
            length = int.from_bytes(f.read(8), "little")
            self.config = json.loads(json.loads(f.read(length))["__metadata__"]["pg_posterior"])

    def names(self, table=""):
        return ", ".join(f"{table}x{j}" for j in range(1, self.columns + 1))


class Server:
    """The SQL side: contexts of n rows and arrays of m queries, in a schema of the subject's name."""

    def __init__(self, subject, contexts, queries):
        self.subject = subject
        row = f"ROW({subject.names()})::cells" if subject.columns > 1 else "x1"
        columns = ", ".join(f"-2 + 4 * (i * {step} - floor(i * {step})) AS x{j}" for j, step in enumerate(FRACTIONS[:subject.columns], 1))
        psql(f"""
            CREATE EXTENSION IF NOT EXISTS pg_posterior;
            CREATE SCHEMA {subject.name};
            SET search_path = {subject.name};
            SELECT posterior.load_model('bench_{subject.name}', pg_read_binary_file('{subject.path}'));
            CREATE TABLE row AS SELECT i, {columns} FROM generate_series(1, {ROWS}) i;
            ALTER TABLE row ADD y float8;
            UPDATE row SET y = sin(3 * x1) + 0.1 * cos(57 * x{subject.columns});
            CREATE TABLE context (n int PRIMARY KEY, ctx posterior.context);
            CREATE TYPE cells AS ({subject.names().replace(",", " float8,")} float8);
            CREATE TABLE query (n int, m int, xs {'cells' if subject.columns > 1 else 'float8'}[]);
            CREATE TABLE target AS SELECT n, row.* FROM row, unnest(ARRAY{list(contexts)}) n WHERE i > n AND i <= n + {STEPS};
            SET posterior.model = 'bench_{subject.name}';
        """ + "".join(f"INSERT INTO context SELECT {n}, posterior.context(y, {subject.names()} ORDER BY i) FROM row WHERE i <= {n};" for n in contexts) + "".join(f"""
            INSERT INTO query SELECT {n}, {m}, array_agg({row} ORDER BY i) FROM row WHERE i > {n} AND i <= {n + m};""" for n in contexts for m in queries))

    def statement(self, operation, n, size):
        """The SQL of a question, or None."""
        names = self.subject.names("t.")
        if operation == "predict" and size == 1:
            return f"SELECT posterior.predict(ctx, {', '.join(['0.5'] * self.subject.columns)}) FROM context WHERE n = {n}"
        if operation == "predict":
            return f"SELECT count(*) FROM context c, query q, posterior.predict_rows(ctx, xs) WHERE c.n = {n} AND q.n = {n} AND m = {size}"
        if operation == "sample":
            return f"SELECT count(*) FROM context c, query q, posterior.sample(ctx, xs, {size}) WHERE c.n = {n} AND q.n = {n} AND m = {STEPS}"
        if operation == "density" and size == 1:
            return f"SELECT posterior.log_density(ctx, y, {names} ORDER BY i) FROM context c, target t WHERE c.n = {n} AND t.n = {n} GROUP BY ctx"
        if operation == "density":
            return f"SELECT posterior.log_density_averaged(ctx, {size}, 1, y, {names} ORDER BY i) FROM context c, target t WHERE c.n = {n} AND t.n = {n} GROUP BY ctx"
        return None

    def options(self):
        return f"{os.environ['PGOPTIONS']} -c posterior.model=bench_{self.subject.name} -c search_path={self.subject.name}"

    def time(self, sql, seconds):
        """Milliseconds of each statement over `seconds` of one pgbench client."""
        with tempfile.TemporaryDirectory() as place:
            script = os.path.join(place, "statement.sql")
            with open(script, "w") as f:
                f.write(sql + ";\n")
            subprocess.run(["pgbench", "-n", "-M", "prepared", "-T", str(max(1, round(seconds))), "-l", "--log-prefix", os.path.join(place, "log"), "-f", script],
                           check=True, capture_output=True, env={**os.environ, "PGOPTIONS": self.options()})
            found = []
            for name in os.listdir(place):
                if name.startswith("log"):
                    with open(os.path.join(place, name)) as f:
                        found += [int(line.split()[2]) / 1000 for line in f if line.split()[2] != "0"]
        # the first statement of a session encodes the context
        return found[1:] or found


class Engine:
    """The engine alone, in a process of its own."""

    def __init__(self, subject, threads, kernels=None):
        self.process = subprocess.Popen(["build/bench-engine", subject.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows = None
        self.say("features " + " ".join(map(str, FRACTIONS[:subject.columns])))
        if kernels:
            self.say(f"kernels {kernels}")
        self.say(f"threads {threads}")

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = []
        for line in self.process.stdout:
            if not line.strip():
                return answer
            answer.append(line)
        sys.exit(f"the engine ended at {command}")

    def time(self, operation, n, size, seconds):
        if self.rows != n:
            self.say(f"rows {n}")
            self.rows = n
        return [float(line) for line in self.say(f"time {operation} {size} {seconds}")]

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
        i = torch.arange(1, ROWS + 1, dtype=torch.float64)
        self.x = torch.stack([-2 + 4 * (i * step).frac() for step in FRACTIONS[:subject.columns]], 1)
        self.y = torch.sin(3 * self.x[:, 0]) + 0.1 * torch.cos(57 * self.x[:, -1])

    def thread_settings(self):
        """What PyTorch is measured with, (threads, threads of a BLAS of its own); the best counts. A BLAS that PyTorch does not rule, as in Debian's package, must
        not have threads within its threads."""
        processors = os.cpu_count()
        if "BLAS_INFO=generic" not in self.torch.__config__.show():
            return [(n, None) for n in sorted({1, processors})]
        try:
            import threadpoolctl
        except ImportError:
            raise ImportError("it leaves products to the system's BLAS; that needs threadpoolctl, Debian's python3-threadpoolctl, and OpenBLAS, libopenblas0-pthread")
        self.blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
        if not self.blas.info():
            raise ImportError("it leaves products to the system's BLAS, which is none whose threads can be set; that needs OpenBLAS, Debian's libopenblas0-pthread")
        return sorted({(1, 1), (processors, 1), (1, processors)})

    def describe(self):
        name = f"PyTorch {self.torch.__version__} at its best of "
        if self.settings[0][1] is None:
            return name + " and ".join(str(n) for n, _ in self.settings) + " threads"
        return name + ", ".join(f"{n}/{own}" for n, own in self.settings) + f" threads of its own/of {self.blas.info()[0]['internal_api']} {self.blas.info()[0]['version']}"

    def context(self, n):
        """(baseline with n rows encoded, inputs x and y of all rows, y as it enters the model, the target's scale)."""
        if n not in self.contexts:
            with self.torch.no_grad():
                x, y, entering, center, scale = self.module.inputs(self.subject.config, self.x, self.y, n)
                baseline = self.module.Baseline(self.subject.path)
                baseline.encode(x[:n], entering[:n])
                self.contexts[n] = baseline, x, y, entering, center, scale
        return self.contexts[n]

    def call(self, operation, n, size):
        baseline, x, y, entering, _, _ = self.context(n)
        more = slice(n, n + (size if operation in ("predict", "append") else STEPS))
        return {"predict": lambda: baseline.predict(x[more]), "sample": lambda: baseline.sample(x[more], size), "density": lambda: baseline.density(x[more], y[more], size),
                "append": lambda: baseline.append(x[more], entering[more]), "again": lambda: baseline.sample_again(x[:n], entering[:n], x[more], size),
                "build": lambda: self.module.Baseline(self.subject.path, baseline.model).encode(x[:n], entering[:n])}[operation]

    def time(self, operation, n, size, seconds, setting):
        self.torch.set_num_threads(setting[0])
        if setting[1] is not None:
            self.blas.limit(limits=setting[1])
        call = self.call(operation, n, size)
        found = []
        with self.torch.no_grad():
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or len(found) < 2:
                start = time.perf_counter()
                call()
                found.append(1000 * (time.perf_counter() - start))
        return found

    def verify(self, server, n):
        """Both sides give the same mean and sd of the first row after the context, and the same joint density of those after it."""
        baseline, x, _, _, center, scale = self.context(n)
        with self.torch.no_grad():
            weights, means, sds = baseline.predict(x[n:n + 1])
            mean = float((weights.exp() * means).sum())
            sd = float((weights.exp() * (sds ** 2 + means ** 2)).sum() - mean ** 2) ** 0.5
            ours = [center + scale * mean, scale * sd, float(self.call("density", n, 1)()) - STEPS * math.log(scale)]
        sql = psql(f"""SET posterior.model = 'bench_{self.subject.name}';
            SET search_path = {self.subject.name};
            SELECT posterior.mean(p), posterior.stddev(p), ({server.statement("density", n, 1)})
            FROM (SELECT posterior.predict(ctx, {self.subject.names()}) p FROM context, row WHERE n = {n} AND i = {n + 1}) s""")
        theirs = [float(v) for v in sql.strip().split("|")]
        if any(abs(a - b) > 1e-3 * (1 + abs(b)) for a, b in zip(theirs, ours)):
            sys.exit(f"the two sides disagree at N = {n}: SQL {theirs}, PyTorch {ours}")


def limit(config, operation, n, size, machine):
    """Milliseconds below which this machine cannot be: multiply-adds and exponentials one after the other, or keys, values and weights read once."""
    width, layers = config["width"], config["layers"]
    row = layers * (4 * width ** 2 + 2 * width * config["feedforward"])
    rows, pairs, reads = {
        "predict": (size, size * n, 1),
        "sample": (2 * size * STEPS, 2 * size * STEPS * (n + STEPS / 2), STEPS),
        "density": (2 * size * STEPS, 2 * size * STEPS * (n + STEPS / 2), 1),
        "append": (size, size * (n + size / 2), 1),
        "build": (n, n * n, 1),
    }[operation]
    compute = (rows * row + 2 * layers * width * pairs) / machine["multiply_add"] + layers * config["heads"] * pairs / machine["exp"]
    memory = 2 * row + 4 * 2 * layers * width * n    # weights of 16 bits
    rate = machine["read 4096 KiB"] if memory < 24 << 20 else machine["read 262144 KiB"]
    return max(compute, reads * memory / rate) * 1e-6


WORK = [  # operation, N, size, what it is called
    ("predict", 1024, 1, "predict, N 1,024, M 1"), ("predict", 1024, 16, "predict, N 1,024, M 16"), ("predict", 1024, 1024, "predict, N 1,024, M 1,024"),
    ("sample", 1024, 1, "sample K 16, N 1,024, B 1"), ("sample", 1024, 16, "sample K 16, N 1,024, B 16"), ("sample", 1024, 256, "sample K 16, N 1,024, B 256"),
    ("density", 1024, 1, "joint density, 16 rows"), ("density", 1024, 128, "joint density, 128 orders"),
    ("append", 1024, 1, "append 1 row, N 1,024"), ("append", 10000, 1, "append 1 row, N 10,000"), ("append", 10000, 1000, "append 1,000 rows, N 10,000"),
    ("build", 1024, 0, "build, N 1,024"), ("build", 10000, 0, "build, N 10,000"),
]


def spin(processes):
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]


def table(subject, a, say):
    """The table of a model: every operation by every side."""
    say(f"\n### {subject.name}: {subject.columns} column{'s' if subject.columns > 1 else ''}\n\n")
    engine = Engine(subject, a.threads)
    tables = [name.strip() for name in engine.say("list")]
    kernels = "cpu-avx2" if a.avx2 else tables[0]
    engine.say(f"kernels {kernels}")
    alone = Engine(subject, 1, kernels)
    halves = Engine(subject, a.threads, kernels + "-half") if kernels + "-half" in tables else None
    server = Server(subject, [1024, 10000], [16, 1024])
    try:
        torch = Torch(subject)
        torch.verify(server, 1024)
    except ImportError as missing:
        torch = None
        print(f"without PyTorch ({missing}); set PYTHON to a Python that has it for the ratios\n")
    limits = engine.limits(a.seconds * 4)
    everyone = limits["all" if a.threads > 1 else "one"]
    say(f"{os.cpu_count()} processors, kernels {limits['kernels']}, {a.threads} threads")
    say(f", {torch.describe()}\n" if torch else "\n")
    say("1e9 per second, one thread / all: " + ", ".join(f"{key} {limits['one'][key]:g} / {limits['all'][key]:g}" for key in limits["one"]) + "\n\n")
    say("| milliseconds | engine p50 | p95 | best | 16 bits p50 | from SQL p50 | PyTorch p50 | PyTorch / engine | PyTorch / 16 bits | engine / limit | one thread / its limit |\n")
    say("|---|---|---|---|---|---|---|---|---|---|---|\n")
    for operation, n, size, name in WORK:
        if not operation.startswith(a.only):
            continue
        statement = None if a.avx2 else server.statement(operation, n, size)
        ours, single, narrow, sql, theirs = [], [], [], [], {}
        for _ in range(a.rounds):
            ours += engine.time(operation, n, size, a.seconds)
            single += alone.time(operation, n, size, a.seconds / 2)
            narrow += halves.time(operation, n, size, a.seconds) if halves else [math.nan]
            if statement:
                sql += server.time(statement, a.seconds)
            for setting in torch.settings if torch else ():
                theirs.setdefault(setting, []).extend(torch.time(operation, n, size, a.seconds / 2, setting))
        p50, half = quantile(ours, .5), quantile(narrow, .5)
        floor, floor_alone = (limit(subject.config, operation, n, size, machine) for machine in (everyone, limits["one"]))
        best = min((quantile(v, .5) for v in theirs.values()), default=math.nan)
        say(f"| {name} | {p50:.3f} | {quantile(ours, .95):.3f} | {min(ours):.3f} | {half:.3f} | {f'{quantile(sql, .5):.3f}' if sql else ''} | {best:.2f} | {best / p50:.1f} | "
            f"{best / half:.1f} | {p50 / floor:.1f} | {quantile(single, .5) / floor_alone:.1f} |\n")
        sys.stdout.flush()
    if not a.only and not a.avx2:
        others(engine, server, torch, a, say)


def others(engine, server, torch, a, say):
    """What is compared with something else than PyTorch's best."""
    again = statistics.median(engine.time("again", 1024, 1, 0.1))
    buffered = quantile(engine.time("sample", 1024, 16, a.seconds), .5)
    say(f"\nDrawing 16 steps by encoding context and drawn rows anew at every step, {again:.0f} ms per draw: {16 * again / buffered:.0f} times the buffered 16 draws")
    if torch:
        theirs = min(statistics.median(torch.time("again", 1024, 1, 0.1, setting)) for setting in torch.settings)
        say(f"; in PyTorch {theirs:.0f} ms per draw: {16 * theirs / buffered:.0f} times")
    nothing, one = [], []
    for _ in range(a.rounds):
        nothing += server.time("SELECT 1", a.seconds)
        one += server.time(server.statement("predict", 1024, 1), a.seconds)
    say(f".\nA scalar predict from SQL takes {quantile(one, .5):.3f} ms, SELECT 1 {quantile(nothing, .5):.3f} ms.\n")
    for operation, size in (("predict", 1024), ("sample", 16)):
        quiet = quantile(engine.time(operation, 1024, size, a.seconds), .5)
        spinners = spin(os.cpu_count())
        contended = quantile(engine.time(operation, 1024, size, 2 * a.seconds), .5)
        for process in spinners:
            process.kill()
            process.wait()
        say(f"{operation} {size} beside {os.cpu_count()} busy processes: {contended / quiet:.1f} times slower.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1, help="per measurement and side")
    parser.add_argument("--rounds", type=int, default=3, help="A B A B …")
    parser.add_argument("--threads", type=int, default=min(4, os.cpu_count()), help="posterior.threads, and the engine's")
    parser.add_argument("--avx2", action="store_true", help="as on a machine without AVX-512: engine and PyTorch with AVX2, nothing from SQL")
    parser.add_argument("--models", nargs="+", default=["buffer_paper", "tabular"], choices=["buffer_paper", "tabular"], help="default: both, one table each")
    parser.add_argument("--only", default="", help="operations that start with this")
    a = parser.parse_args()
    if a.avx2:
        os.environ.update(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2", OPENBLAS_CORETYPE="Haswell")
    os.environ["PGOPTIONS"] = f"-c posterior.threads={a.threads}"
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        for name in a.models:
            path = os.path.join(place, f"{name}.safetensors")
            if name == "tabular":
                shutil.copy("models/tabular.safetensors", path)
            else:
                subprocess.run(["test/python", "bench/make_model.py", path], check=True)
            table(Subject(name, path, len(FRACTIONS) if name == "tabular" else 1), a, sys.stdout.write)


if __name__ == "__main__":
    main()
