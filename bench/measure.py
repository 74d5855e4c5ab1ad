"""Measure questions from SQL by pgbench, interleaved with PyTorch eager on the same weights, and print one table.

Run by bench/run in a private server. Times are per statement, end to end from a client on a socket, prepared, warm: p50, p95 and best. PyTorch's times are
the calls alone, in-process, without any database. Ratios compare medians of the same run.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

MODEL = os.path.join("models", "gp1d.safetensors")
STEPS = 16


def psql(sql):
    return subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=sql, text=True, check=True, capture_output=True).stdout


def prepare(contexts, queries):
    """Contexts of n rows of one function, and arrays of m queries; the same numbers for both sides."""
    psql("""
        CREATE EXTENSION IF NOT EXISTS pg_posterior;
        CREATE TABLE row AS SELECT i, -2 + 4 * (i * 0.6180339887 - floor(i * 0.6180339887)) AS x FROM generate_series(1, 4096) i;
        ALTER TABLE row ADD y float8;
        UPDATE row SET y = sin(3 * x) + 0.1 * cos(57 * x);
        CREATE TABLE context (n int PRIMARY KEY, ctx posterior.context);
        CREATE TABLE query (m int PRIMARY KEY, xs float8[]);
        CREATE TABLE target AS SELECT x, y FROM row WHERE i > 4096 - %d;
    """ % STEPS)
    for n in contexts:
        psql(f"INSERT INTO context SELECT {n}, posterior.context(y, x ORDER BY i) FROM row WHERE i <= {n}")
    for m in queries:
        psql(f"INSERT INTO query SELECT {m}, array_agg(x ORDER BY i) FROM row WHERE i > 4096 - {m}")


def latencies(sql, seconds):
    """Milliseconds of each statement over `seconds` of one pgbench client."""
    with tempfile.TemporaryDirectory() as place:
        script = os.path.join(place, "statement.sql")
        with open(script, "w") as f:
            f.write(sql + ";\n")
        subprocess.run(["pgbench", "-n", "-M", "prepared", "-T", str(seconds), "-l", "--log-prefix", os.path.join(place, "log"), "-f", script],
                       check=True, capture_output=True, env={**os.environ, "PGOPTIONS": "-c posterior.model=gp1d"})
        found = []
        for name in os.listdir(place):
            if name.startswith("log"):
                with open(os.path.join(place, name)) as f:
                    found += [int(line.split()[2]) / 1000 for line in f if line.split()[2] != "0"]
    # the first statement of a session encodes the context
    return found[1:] or found


def time_torch(call, seconds):
    import torch

    found = []
    with torch.no_grad():
        call()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(found) < 3:
            start = time.perf_counter()
            call()
            found.append(1000 * (time.perf_counter() - start))
    return found


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def workloads(contexts):
    """(name, SQL, PyTorch's question or None)"""
    yield "B0 SELECT 1", "SELECT 1", None
    yield "B0 an accessor", "SELECT posterior.mean('normal(1, 2)')", None
    for n in contexts:
        yield (f"B1 predict, N {n}, M 1", f"SELECT posterior.predict(ctx, 0.5) FROM context WHERE n = {n}", ("predict", n, 1))
        for m in (16, 1024):
            yield (f"B1 predict, N {n}, M {m}",
                   f"SELECT count(*) FROM context, query, posterior.predict_rows(ctx, xs) WHERE n = {n} AND m = {m}", ("predict", n, m))
        for draws in (1, 16, 256):
            yield (f"B3 sample, N {n}, K {STEPS}, B {draws}",
                   f"SELECT count(*) FROM context, query, posterior.sample(ctx, xs, {draws}) WHERE n = {n} AND m = {STEPS}", ("sample", n, draws))
        yield (f"B4 log density, N {n}, K {STEPS}", f"SELECT posterior.log_density(ctx, y, x) FROM context, target WHERE n = {n}", ("density", n, 1))
        yield (f"B4 averaged over 128 orders, N {n}", f"SELECT posterior.log_density_averaged(ctx, 128, 1, y, x) FROM context, target WHERE n = {n}", ("density", n, 128))


class Torch:
    """The baseline with the same rows, one encoding per context size, at the best of a few thread settings."""

    def __init__(self, contexts):
        import torch

        sys.path.insert(0, "bench")
        sys.path.insert(0, "train")
        from torch_baseline import Baseline

        self.torch = torch
        rows = [line.split("|") for line in psql("SELECT x, y FROM row ORDER BY i").split()]
        x, y = (torch.tensor([float(r[i]) for r in rows]) for i in range(2))
        self.x, self.y = x, y
        self.context = {}
        with torch.no_grad():
            for n in contexts:
                self.context[n] = Baseline(MODEL)
                self.context[n].encode(x[:n], y[:n])

    def verify(self, n):
        """Both sides give the same mean and sd at 0.5."""
        with self.torch.no_grad():
            weights, means, sds = self.context[n].predict(self.torch.tensor([0.5]))
            mean = float((weights.exp() * means).sum())
            sd = float((weights.exp() * (sds ** 2 + means ** 2)).sum() - mean ** 2) ** 0.5
        sql = psql(f"SET posterior.model = 'gp1d'; SELECT posterior.mean(p), posterior.stddev(p) FROM (SELECT posterior.predict(ctx, 0.5) p FROM context WHERE n = {n}) s")
        theirs = [float(v) for v in sql.strip().split("|")]
        if abs(theirs[0] - mean) > 1e-4 or abs(theirs[1] - sd) > 1e-4:
            sys.exit(f"the two sides disagree at N = {n}: SQL {theirs}, PyTorch {[mean, sd]}")

    def call(self, question):
        kind, n, size = question
        model = self.context[n]
        last = slice(len(self.x) - (size if kind == "predict" else STEPS), None)
        if kind == "predict":
            return lambda: model.predict(self.x[last])
        if kind == "sample":
            return lambda: model.sample(self.x[last], size)
        return lambda: model.density(self.x[last], self.y[last], size)

    def measure(self, question, seconds):
        best = None
        for threads in sorted({1, os.cpu_count()}):
            self.torch.set_num_threads(threads)
            found = time_torch(self.call(question), seconds / 2)
            if best is None or statistics.median(found) < statistics.median(best):
                best = found
        return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1, help="per measurement and side")
    parser.add_argument("--rounds", type=int, default=3, help="A B A B …")
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 1024])
    a = parser.parse_args()
    prepare(a.contexts, [16, 1024])
    try:
        torch = Torch(a.contexts)
    except ImportError as missing:
        torch = None
        print(f"without PyTorch ({missing}); set PYTHON to a Python that has it for the ratios")
    if torch is not None:
        for n in a.contexts:
            torch.verify(n)
        print(f"PyTorch {torch.torch.__version__}, best of 1 and {os.cpu_count()} threads; this side: one backend, one thread")
    print(f"{'ms per statement':34s} {'p50':>9s} {'p95':>9s} {'best':>9s} {'PyTorch p50':>12s} {'ratio':>7s}")
    for name, sql, question in workloads(a.contexts):
        ours, theirs = [], []
        for _ in range(a.rounds):
            ours += latencies(sql, max(1, round(a.seconds)))
            if torch is not None and question is not None:
                theirs += torch.measure(question, a.seconds)
        line = f"{name:34s} {quantile(ours, .5):9.3f} {quantile(ours, .95):9.3f} {min(ours):9.3f}"
        if theirs:
            line += f" {quantile(theirs, .5):12.3f} {quantile(theirs, .5) / quantile(ours, .5):7.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
