"""What is measured, what the machine could do at most, and the goals: the numbers, and the tables
that hold one against the other.

SPDX-License-Identifier: PostgreSQL
"""
import math

from sides import STEPS

WORK = [  # operation, N, size, what it is called
    ("predict", 1024, 1, "predict, N 1,024, M 1"),
    ("predict", 1024, 16, "predict, N 1,024, M 16"),
    ("predict", 1024, 1024, "predict, N 1,024, M 1,024"),
    ("sample", 1024, 1, "sample K 16, N 1,024, B 1"),
    ("sample", 1024, 16, "sample K 16, N 1,024, B 16"),
    ("sample", 1024, 256, "sample K 16, N 1,024, B 256"),
    ("density", 1024, 1, "joint density, 16 rows"),
    ("density", 1024, 128, "joint density, 128 orders"),
    ("append", 1024, 1, "append 1 row, N 1,024"),
    ("append", 10000, 1, "append 1 row, N 10,000"),
    ("append", 10000, 1000, "append 1,000 rows, N 10,000"),
    ("build", 1024, 0, "build, N 1,024"),
    ("build", 10000, 0, "build, N 10,000"),
]

# operation, N, size: how many times faster than PyTorch, how many times the limit at most
GOALS = {
    ("predict", 1024, 1): (10, None), ("predict", 1024, 16): (8, None),
    ("predict", 1024, 1024): (5, 1.6),
    ("sample", 1024, 1): (18, None), ("sample", 1024, 16): (11, None),
    ("sample", 1024, 256): (7, 1.9),
    ("density", 1024, 128): (7, 1.7),
    ("append", 1024, 1): (18, None), ("append", 10000, 1): (20, None),
    ("append", 10000, 1000): (15, 1.8),
    ("build", 1024, 0): (10, 1.7), ("build", 10000, 0): (20, 1.7),
}
AGAIN = 1000            # encoding anew at every step, against the buffered draws: times
ABOVE_SELECT = 0.25     # a scalar predict from SQL, against SELECT 1: milliseconds
CONTENDED = 2.2         # beside as many busy processes as processors: times slower


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else math.nan


def number(value, digits=1):
    return "" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def percent(value):
    return f"{100 * value:.0f} %"


class Limit:
    """What an operation must do, and the least milliseconds that takes at measured rates."""

    def __init__(self, config, operation, n, size):
        width, layers = config["width"], config["layers"]
        row = layers * (4 * width ** 2 + 2 * width * config["feedforward"])
        rows, pairs, reads = {
            "predict": (size, size * n, 1),
            "sample": (2 * size * STEPS, 2 * size * STEPS * (n + STEPS / 2), STEPS),
            "density": (2 * size * STEPS, 2 * size * STEPS * (n + STEPS / 2), 1),
            "append": (size, size * (n + size / 2), 1),
            "build": (n, n * n, 1),
        }[operation]
        self.multiply_adds = rows * row + 2 * layers * width * pairs
        self.exponentials = layers * config["heads"] * pairs
        self.bytes = 2 * row + 4 * 2 * layers * width * n    # weights of 16 bits, keys and values
        self.reads = reads

    def parts(self, machine):
        """Milliseconds of multiply-adds, of exponentials, and of reading keys, values and weights
        once from where they lie."""
        read = machine["read 4096 KiB"] if self.bytes < 24 << 20 else machine["read 262144 KiB"]
        return 1e-6 * self.multiply_adds / machine[
            "multiply_add"], 1e-6 * self.exponentials / machine[
                "exp"], 1e-6 * self.reads * self.bytes / read

    def least(self, machine):
        """Arithmetic is one after the other; bytes arrive meanwhile."""
        multiply, exponential, read = self.parts(machine)
        return max(multiply + exponential, read)


class Found:
    """The milliseconds of one operation, of every side."""

    def __init__(self, work, config, limits, threads):
        self.operation, self.n, self.size, self.name = work
        self.limit, self.limits = Limit(config, *work[:3]), limits
        self.engine, self.alone, self.half, self.sql, self.contended = [], [], [], [], []
        self.torch = {}
        self.least = self.limit.least(limits["all" if threads > 1 else "one"])

    def p50(self, side):
        return quantile([wall for wall, _ in getattr(self, side)], .5)

    def processors(self, side):
        return quantile([used for _, used in getattr(self, side)], .5)

    def best_torch(self):
        return min((quantile(v, .5) for v in self.torch.values()), default=math.nan)

    def slower(self):
        return self.p50("contended") / self.p50("engine")

    def line(self):
        walls, p50, torch = [wall for wall, _ in self.engine], self.p50("engine"), self.best_torch()
        cells = [
            number(v, 3) for v in (p50, quantile(walls, .95), min(walls), self.p50("half"),
                                   quantile(self.sql, .5), quantile(self.sql, .95),
                                   min(self.sql, default=math.nan))
        ]
        cells += [number(torch, 2)] + [
            number(v)
            for v in (torch / p50, torch / self.p50("half"), torch / quantile(self.sql, .5),
                      p50 / self.least, self.p50("alone") / self.limit.least(self.limits["one"]),
                      self.slower())
        ]
        return f"| {self.name} | " + " | ".join(cells) + " |\n"


TABLE = [
    "milliseconds", "engine p50", "p95", "best", "16 bits p50", "from SQL p50", "p95", "best",
    "PyTorch p50", "PyTorch / engine", "PyTorch / 16 bits", "PyTorch / SQL", "engine / limit",
    "one thread / its limit", "contended / quiet"
]


def head(columns):
    return "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|\n"


def met(reached, goal, less=False):
    """Nothing where nothing was measured."""
    if goal is None or reached is None or math.isnan(reached):
        return None
    return reached <= goal if less else reached >= goal


def verdict(*each):
    known = [m for m in each if m is not None]
    return ("met" if all(known) else "not met") if known else ""


def say_goals(found, again, above, say):
    """The goals; `again`: (PyTorch's milliseconds of 16 draws encoding anew, the buffered ones,
    their limit), or None."""
    say("\n" + head([
        "goals", "PyTorch / engine, goal", "reached", "at the limit it would be",
        "engine / limit, goal", "reached", "one thread / its limit", ""
    ]))
    for f in found:
        if (f.operation, f.n, f.size) not in GOALS:
            continue
        (ratio, most), torch, p50 = GOALS[f.operation, f.n, f.size], f.best_torch(), f.p50("engine")
        reached, near, alone = torch / p50, p50 / f.least, f.p50("alone") / f.limit.least(
            f.limits["one"])
        say(f"| {f.name} | {ratio} | {number(reached)} | {number(torch / f.least)} | "
            f"{number(most)} | {number(near)} | {number(alone)} | "
            f"{verdict(met(reached, ratio), met(near, most, True))} |\n")
    if again:
        theirs, buffered, least = again
        say(f"| encoding anew at every step, against the buffered draws, B 16 | {AGAIN:,} | "
            f"{number(theirs / buffered, 0)} | {number(theirs / least, 0)} |  |  |  | "
            f"{verdict(met(theirs / buffered, AGAIN))} |\n"
            )
    say("\n" + head(["goals", "at most", "reached", ""]))
    if above is not None:
        say(f"| scalar predict from SQL above SELECT 1, ms | {ABOVE_SELECT} | {number(above, 3)} | "
            f"{verdict(met(above, ABOVE_SELECT, True))} |\n"
            )
    worst = max(found, key=Found.slower)
    say(f"| contended / quiet, the worst: {worst.name} | {CONTENDED} | {number(worst.slower())} | "
        f"{verdict(met(worst.slower(), CONTENDED, True))} |\n"
        )


def say_where(found, team, say):
    """Where the time of the processors goes."""
    say("\n" + head([
        "time of processors in a call", "ms", "processors at work", "multiply-adds", "exponentials",
        "keys, values and weights", "more than on one thread", "the rest"
    ]))
    for f in found:
        used, alone = f.processors("engine"), f.processors("alone")
        multiply, exponential, read = (part / used for part in f.limit.parts(f.limits["one"]))
        threads = max(0, 1 - alone / used)
        rest = 1 - max(multiply + exponential, read) - threads
        say(f"| {f.name} | {number(used, 3)} | {number(used / f.p50('engine'))} | "
            f"{percent(multiply)} | {percent(exponential)} | {percent(read)} | {percent(threads)} "
            f"| {percent(rest)} |\n"
            )
    say(f"\nShares of the time that all processors spend in a call at the median. What a core by "
        f"itself needs at its measured rates: multiply-adds and exponentials one after the "
        f"other, and meanwhile keys, values and weights from where they lie; what all threads need "
        f"more than one: starting, ending, waiting, and cores that hinder each other; the rest is "
        f"what neither explains. "
        f"Threads that have nothing to do start and end in {quantile(team, .5):.3f} ms.\n")
