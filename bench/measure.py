"""Measure questions three ways on the same weights, in turns within one run, and print tables: what
was found, the goals, and where the time goes.

Run by bench/run in a private server. From SQL: per statement, end to end from a client on a socket,
prepared, warm. The engine alone: the same question asked by bench/engine.c, which also says what
the machine's vector units and memory can do at most. PyTorch eager: the calls alone, in-process, at
its best of a few numbers of threads, with the context encoded once and shared by all draws. Ratios
compare medians of the same run. Before anything is timed, all of them must agree with the float64
reference (bench/agreement.py).

SPDX-License-Identifier: PostgreSQL
"""
import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from goals import TABLE, WORK, Found, Limit, head, quantile, say_goals, say_where
from sides import FRACTIONS, PERIODS, Engine, Server, Subject, Torch


class Spinners:
    """As many busy processes as processors, while they are let."""

    def __init__(self):
        self.processes = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(os.cpu_count())
        ]
        self.tell(signal.SIGSTOP)

    def tell(self, what):
        for process in self.processes:
            process.send_signal(what)

    def __enter__(self):
        self.tell(signal.SIGCONT)

    def __exit__(self, *_):
        self.tell(signal.SIGSTOP)

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def claims(work, engines, server, torch):
    """What every side says to everything that it will be timed at: N -> claims."""
    said = {n: [] for n in PERIODS}
    for operation, n, size, _ in work:
        mine = [{
            "who": who,
            "operation": operation,
            "size": size,
            "values": engine.answer(operation, n, size),
            "narrow": engine.narrow
        } for who, engine in engines.items() if operation != "again" or who == "the engine"]
        if server and operation == "build":
            # a question about a context that must be built first
            mine.append({
                "who": "SQL without a cache",
                "operation": "predict",
                "size": 1,
                "values": server.answer(operation, n, size)
            })
        elif server and server.statement(operation, n, size):
            mine.append({
                "who": "SQL",
                "operation": operation,
                "size": size,
                "values": server.answer(operation, n, size)
            })
        if torch and operation != "again" and (operation, size) != ("density", 128):
            # PyTorch's random orders are its own; one order has the same code
            mine.append({
                "who": "PyTorch",
                "operation": operation,
                "size": size,
                "values": torch.answer(operation, n, size),
                "free": operation == "sample"
            })
        said[n] += mine
    return said


def verify(subject, said):
    """All claims are held against the reference, or the program ends."""
    parts = []
    for n, mine in said.items():
        slow = ("density", "again")
        for part in ([c for c in mine
                      if c["operation"] in slow], [c for c in mine if c["operation"] not in slow]):
            if part:
                parts.append((part,
                              subprocess.Popen(
                                  ["test/python", "bench/agreement.py"],
                                  stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE,
                                  text=True,
                                  env={
                                      **os.environ, "OPENBLAS_NUM_THREADS": "1",
                                      "OMP_NUM_THREADS": "1",
                                      "MKL_NUM_THREADS": "1"
                                  })))
                json.dump(
                    {
                        "path": subject.path,
                        "steps": FRACTIONS[:subject.columns],
                        "n": n,
                        "period": PERIODS[n],
                        "claims": part
                    }, parts[-1][1].stdin)
                parts[-1][1].stdin.close()
    wrong = []
    for part, process in parts:
        text = process.stdout.read()
        if process.wait() != 0:
            wrong.append(text or f"status {process.returncode}\n")
    if wrong:
        sys.exit(f"{subject.name}: nothing is timed, for these do not agree with the reference\n" +
                 "".join(wrong))
    return sum(len(part) for part, _ in parts)


def measure(found, engines, server, torch, spinners, a):
    """All sides in turns."""
    ask = found.operation, found.n, found.size
    statement = server.statement(*ask) if server else None
    for _ in range(a.rounds):
        found.engine += engines["the engine"].time(*ask, a.seconds)
        found.alone += engines["one thread"].time(*ask, a.seconds / 2)
        if "16 bits" in engines:
            found.half += engines["16 bits"].time(*ask, a.seconds)
        if statement:
            found.sql += server.time(statement, a.seconds, found.operation)
        for setting in torch.settings if torch else ():
            found.torch.setdefault(setting, []).extend(torch.time(*ask, a.seconds / 2, setting))
        with spinners:
            found.contended += engines["the engine"].time(*ask, a.seconds / 2)


def table(subject, a, spinners, say):
    """The tables of a model."""
    say(f"\n### {subject.name}: {subject.columns} column{'s' if subject.columns > 1 else ''}\n\n")
    engine = Engine(subject, a.threads)
    tables = [name.strip() for name in engine.say("list")]
    kernels = "cpu-avx2" if a.avx2 else tables[0]
    engine.say(f"kernels {kernels}")
    engines = {"the engine": engine, "one thread": Engine(subject, 1, kernels)}
    if kernels + "-half" in tables:
        engines["16 bits"] = Engine(subject, a.threads, kernels + "-half")
    for who, one in engines.items():
        one.narrow = who == "16 bits"
    server = None if a.avx2 else Server(subject, [16, 1024])
    try:
        torch = Torch(subject)
    except ImportError as missing:
        torch = None
        print(f"without PyTorch ({missing}); set PYTHON to a Python that has it for the ratios\n")
    work = [w for w in WORK if w[0].startswith(a.only)]
    if not work:
        sys.exit(f"no operation starts with {a.only}")
    agreed = verify(
        subject, claims(work + ([] if a.only else [("again", 1024, 1, "")]), engines, server,
                        torch))
    limits = engine.limits(a.seconds * 4)
    say(f"{os.cpu_count()} processors, kernels {limits['kernels']}, {a.threads} threads")
    say(f", {torch.describe()}" if torch else "")
    say(f"; {agreed} answers agreed with the reference\n\n1e9 per second, one thread / all: ")
    say(", ".join(f"{key} {limits['one'][key]:g} / {limits['all'][key]:g}"
                  for key in limits["one"]) + "\n\n" + head(TABLE))
    found = []
    for one in work:
        found.append(Found(one, subject.config, limits, a.threads))
        measure(found[-1], engines, server, torch, spinners, a)
        say(found[-1].line())
        sys.stdout.flush()
    if server:
        say("\nFrom SQL, build is the first prediction about a context value, with "
            "`posterior.cache = off`. Append has no value: a context value cannot be appended to, "
            "and an INSERT into a named "
            "context costs a transaction; `make bench-contexts` measures these.\n")
    again, above = (None,
                    None) if a.only else others(subject, engine, server, torch, limits, a, say)
    say_goals(found, again, above, say)
    engine.have(1024)
    say_where(found, engine.team(a.seconds), say)


def others(subject, engine, server, torch, limits, a, say):
    """What is compared with something else than PyTorch's best."""
    anew = 16 * statistics.median(wall for wall, _ in engine.time("again", 1024, 1, 0.1))
    buffered = quantile([wall for wall, _ in engine.time("sample", 1024, 16, a.seconds)], .5)
    say(f"\nDrawing 16 steps by encoding context and drawn rows anew at every step, "
        f"{anew / 16:.0f} ms per draw: {anew / buffered:.0f} times the buffered 16 draws"
        )
    theirs = math.nan
    if torch:
        theirs = 16 * min(
            statistics.median(torch.time("again", 1024, 1, 0.1, setting))
            for setting in torch.settings)
        say(f"; in PyTorch {theirs / 16:.0f} ms per draw: {theirs / buffered:.0f} times")
    say(".\n")
    again = theirs, buffered, Limit(subject.config, "sample", 1024,
                                    16).least(limits["all" if a.threads > 1 else "one"])
    if server is None:
        return again, None
    nothing, one = [], []
    for _ in range(a.rounds):
        nothing += server.time("SELECT 1", a.seconds)
        one += server.time(server.statement("predict", 1024, 1), a.seconds)
    above = quantile(one, .5) - quantile(nothing, .5)
    say(f"A scalar predict from SQL takes {quantile(one, .5):.3f} ms, SELECT 1 "
        f"{quantile(nothing, .5):.3f} ms.\n"
        )
    return again, above


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1, help="per measurement and side")
    parser.add_argument("--rounds", type=int, default=3, help="A B A B …")
    parser.add_argument("--threads",
                        type=int,
                        default=min(4, os.cpu_count()),
                        help="posterior.threads, and the engine's")
    parser.add_argument(
        "--avx2",
        action="store_true",
        help="as on a machine without AVX-512: engine and PyTorch with AVX2, nothing from SQL")
    parser.add_argument("--models",
                        nargs="+",
                        default=["buffer_paper", "tabular"],
                        choices=["buffer_paper", "tabular"],
                        help="default: both, tables of each")
    parser.add_argument("--only", default="", help="operations that start with this")
    a = parser.parse_args()
    if a.avx2:
        os.environ.update(ATEN_CPU_CAPABILITY="avx2",
                          ONEDNN_MAX_CPU_ISA="AVX2",
                          MKL_ENABLE_INSTRUCTIONS="AVX2",
                          OPENBLAS_CORETYPE="Haswell")
    os.environ["PGOPTIONS"] = f"-c posterior.threads={a.threads}"
    spinners = Spinners()
    try:
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            for name in a.models:
                path = os.path.join(place, f"{name}.safetensors")
                if name == "tabular":
                    shutil.copy("models/tabular.safetensors", path)
                else:
                    subprocess.run(["test/python", "bench/make_model.py", path], check=True)
                table(Subject(name, path,
                              len(FRACTIONS) if name == "tabular" else 1), a, spinners,
                      sys.stdout.write)
    finally:
        spinners.end()


if __name__ == "__main__":
    main()
