# SPDX-License-Identifier: PostgreSQL
"""Distributions as values: what posterior.distribution holds, with the methods of scipy.stats'
frozen distributions.

Only the standard library is used. Numbers agree with the accessors in SQL, but for the entropy of
mixtures, which is a mean over 500 quantiles; mixtures are inverted by bisection.
"""
import bisect
import json
import math
import random
import re
import struct
from statistics import NormalDist

__all__ = [
    "Distribution", "Normal", "Mixture", "Bars", "Quantiles", "Categorical", "parse", "from_bytes",
    "from_json"
]

_KINDS = {1: "normal", 2: "mixture", 3: "bars", 4: "bars_half_normal", 5: "categorical",
          6: "quantiles"}
_QUARTILE = NormalDist().inv_cdf(0.75)
_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)


def _log(p):
    return math.log(p) if p > 0 else -math.inf


def _log_sum(terms):
    """The logarithm of the sum of the terms' exponentials."""
    terms = list(terms)
    top = max(terms)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(t - top) for t in terms))


def _log_normal_tail(u):
    """The logarithm of the probability that a standard normal number is above u."""
    if u < 30:
        return math.log(0.5 * math.erfc(u / math.sqrt(2)))
    # the asymptotic series, to 1e-16 there
    return -0.5 * u * u - _LOG_SQRT_TAU - math.log(u) + math.log1p(
        -1 / u ** 2 + 3 / u ** 4 - 15 / u ** 6 + 105 / u ** 8)


class Distribution:
    """A distribution over numbers: cdf and pdf come from the kind, the rest from these."""

    def mean(self):
        raise NotImplementedError

    def var(self):
        raise NotImplementedError

    def cdf(self, y):
        """Probability of at most y."""
        raise NotImplementedError

    def pdf(self, y):
        raise NotImplementedError

    def _support(self):
        raise NotImplementedError

    def std(self):
        return math.sqrt(self.var())

    def median(self):
        return self.ppf(0.5)

    def logpdf(self, y):
        return _log(self.pdf(y))

    def sf(self, y):
        """Probability of more than y."""
        return 1 - self.cdf(y)

    def ppf(self, p):
        """Quantile at probability p, by bisection."""
        if not 0 <= p <= 1:
            raise ValueError(f"a probability is between 0 and 1, not {p}")
        low, high = self._support()
        if p in (0, 1):
            return low if p == 0 else high
        step = self.std() or 1.0
        low = self.mean() - step if math.isinf(low) else low
        high = self.mean() + step if math.isinf(high) else high
        while self.cdf(low) > p:
            low -= step
            step *= 2
        while self.cdf(high) < p:
            high += step
            step *= 2
        for _ in range(200):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self.cdf(middle) < p else (low, middle)
        return (low + high) / 2

    def isf(self, p):
        """The value that is exceeded with probability p."""
        return -self._mirrored().ppf(p)

    def _mirrored(self):
        """The distribution of -y."""
        raise NotImplementedError

    def logcdf(self, y):
        return _log(self.cdf(y))

    def logsf(self, y):
        return self._mirrored().logcdf(-y)

    def support(self):
        """Lowest and highest value."""
        return self._support()

    def stats(self, moments="mv"):
        """Mean (m) and variance (v), those that are asked for, in this order."""
        if not moments or not set(moments) <= set("mv"):
            raise ValueError("moments are m and v")
        found = tuple(value() for name, value in (("m", self.mean), ("v", self.var))
                      if name in moments)
        return found if len(found) > 1 else found[0]

    def expect(self, function=lambda y: y, points=500):
        """The mean of a function of the value, over this many quantiles of equal probability."""
        return math.fsum(function(self.ppf((i + 0.5) / points)) for i in range(points)) / points

    def entropy(self, points=500):
        """Differential entropy in nats, over this many quantiles of equal probability."""
        return -self.expect(self.logpdf, points)

    def interval(self, confidence=0.9):
        """The central interval that holds this probability."""
        return self.ppf((1 - confidence) / 2), self.ppf((1 + confidence) / 2)

    def rvs(self, size=None, random_state=None):
        """One draw, or a list of them; random_state is a seed or a random.Random."""
        source = random_state if isinstance(random_state,
                                            random.Random) else random.Random(random_state)
        draws = [self.ppf(source.random()) for _ in range(1 if size is None else size)]
        return draws[0] if size is None else draws


class Mixture(Distribution):
    """A mixture of normal distributions."""

    kind = "mixture"

    def __init__(self, weights, means, sds):
        if not (len(weights) == len(means) == len(sds) > 0) or min(sds) <= 0 or min(weights) < 0:
            raise ValueError("a mixture has as many weights as means and positive sds")
        total = math.fsum(weights)
        self.weights = tuple(w / total for w in weights)
        self.means = tuple(means)
        self.sds = tuple(sds)

    def _sum(self, values):
        return math.fsum(w * v for w, v in zip(self.weights, values))

    def mean(self):
        return self._sum(self.means)

    def var(self):
        mean = self.mean()
        return self._sum(s * s + (m - mean) ** 2 for m, s in zip(self.means, self.sds))

    def cdf(self, y):
        return self._sum(0.5 * math.erfc((m - y) / (s * math.sqrt(2)))
                         for m, s in zip(self.means, self.sds))

    def sf(self, y):
        return self._sum(0.5 * math.erfc((y - m) / (s * math.sqrt(2)))
                         for m, s in zip(self.means, self.sds))

    def pdf(self, y):
        return self._sum(math.exp(-0.5 * ((y - m) / s) ** 2) / (s * math.sqrt(2 * math.pi))
                         for m, s in zip(self.means, self.sds))

    def logpdf(self, y):
        return _log_sum(_log(w) - 0.5 * ((y - m) / s) ** 2 - math.log(s) - _LOG_SQRT_TAU
                        for w, m, s in zip(self.weights, self.means, self.sds))

    def logcdf(self, y):
        return _log_sum(_log(w) + _log_normal_tail((m - y) / s)
                        for w, m, s in zip(self.weights, self.means, self.sds))

    def _mirrored(self):
        return Mixture(self.weights, [-m for m in self.means], self.sds)

    def _support(self):
        return -math.inf, math.inf

    def __repr__(self):
        return "mixture(" + " + ".join(f"{w!r}*normal({m!r}, {s!r})"
                                       for w, m, s in zip(self.weights, self.means, self.sds)) + ")"


class Normal(Mixture):
    """A normal distribution."""

    kind = "normal"

    def __init__(self, mean, sd):
        super().__init__((1.0,), (mean,), (sd,))

    def ppf(self, p):
        if p in (0, 1):
            return math.inf if p else -math.inf
        return NormalDist(self.means[0], self.sds[0]).inv_cdf(p)

    def entropy(self):
        """Differential entropy in nats."""
        return 0.5 + _LOG_SQRT_TAU + math.log(self.sds[0])

    def _mirrored(self):
        return Normal(-self.means[0], self.sds[0])

    def __repr__(self):
        return f"normal({self.means[0]!r}, {self.sds[0]!r})"


class Bars(Distribution):
    """A histogram; with half-normal tails its first and last bucket are unbounded."""

    def __init__(self, masses, borders, half_normal_tails=False):
        if len(borders) != len(masses) + 1 or any(a >= b for a, b in zip(borders, borders[1:])):
            raise ValueError("bars have increasing borders, one more than masses")
        total = math.fsum(masses)
        self.masses = tuple(m / total for m in masses)
        self.borders = tuple(borders)
        self.half_normal_tails = half_normal_tails
        self.kind = "bars_half_normal" if half_normal_tails else "bars"

    def _tail(self, i):
        return self.half_normal_tails and i in (0, len(self.masses) - 1)

    def _bucket(self, i):
        """Left border, width, and of a half-normal bucket its scale."""
        width = self.borders[i + 1] - self.borders[i]
        return self.borders[i], width, width / _QUARTILE

    def mean(self):
        def middle(i):
            left, width, scale = self._bucket(i)
            if not self._tail(i):
                return left + width / 2
            offset = scale * math.sqrt(2 / math.pi)
            return left + width - offset if i == 0 else left + offset
        return math.fsum(m * middle(i) for i, m in enumerate(self.masses))

    def var(self):
        mean, total = self.mean(), []
        for i, mass in enumerate(self.masses):
            left, width, scale = self._bucket(i)
            if self._tail(i):
                offset = scale * math.sqrt(2 / math.pi)
                middle = left + width - offset if i == 0 else left + offset
                total.append(mass * (scale * scale * (1 - 2 / math.pi) + (middle - mean) ** 2))
            else:
                total.append(mass * (width * width / 12 + (left + width / 2 - mean) ** 2))
        return math.fsum(total)

    def cdf(self, y):
        def below(i):
            left, width, scale = self._bucket(i)
            if not self._tail(i):
                return min(max((y - left) / width, 0.0), 1.0)
            u = (left + width - y if i == 0 else y - left) / scale
            if i == 0:
                return math.erfc(u / math.sqrt(2)) if u > 0 else 1.0
            return math.erf(u / math.sqrt(2)) if u > 0 else 0.0
        return min(math.fsum(m * below(i) for i, m in enumerate(self.masses)), 1.0)

    def pdf(self, y):
        for i, mass in enumerate(self.masses):
            left, width, scale = self._bucket(i)
            if self._tail(i) and (y <= left + width if i == 0 else y > left):
                u = (left + width - y if i == 0 else y - left) / scale
                return mass * 2 * math.exp(-u * u / 2) / (scale * math.sqrt(2 * math.pi))
            if not self._tail(i) and (left < y or (i == 0 and y == left)) and y <= left + width:
                return mass / width
        return 0.0

    def logpdf(self, y):
        for i, mass in enumerate(self.masses):
            left, width, scale = self._bucket(i)
            if self._tail(i) and (y <= left + width if i == 0 else y > left):
                u = (left + width - y if i == 0 else y - left) / scale
                return _log(mass) + math.log(2) - u * u / 2 - math.log(scale) - _LOG_SQRT_TAU
        return _log(self.pdf(y))

    def logcdf(self, y):
        left, width, scale = self._bucket(0)
        if self._tail(0) and y <= left + width:
            return _log(self.masses[0]) + math.log(2) + _log_normal_tail((left + width - y) / scale)
        return _log(self.cdf(y))

    def entropy(self):
        """Differential entropy in nats."""
        def spread(i):
            _, width, scale = self._bucket(i)
            return (0.5 + math.log(scale / 2) + _LOG_SQRT_TAU if self._tail(i)
                    else math.log(width))
        return math.fsum(m * (spread(i) - math.log(m)) for i, m in enumerate(self.masses) if m > 0)

    def _mirrored(self):
        return Bars(self.masses[::-1], [-b for b in self.borders[::-1]], self.half_normal_tails)

    def _support(self):
        return (-math.inf, math.inf) if self.half_normal_tails else (self.borders[0],
                                                                     self.borders[-1])


class Quantiles(Distribution):
    """Increasing quantiles at the levels k / (n + 1), uniform between them, exponential tails."""

    kind = "quantiles"

    def __init__(self, quantiles, lower_tail, upper_tail):
        if len(quantiles) < 2 or any(a >= b for a, b in zip(quantiles, quantiles[1:])):
            raise ValueError("there are at least two quantiles, and they increase")
        if not (lower_tail > 0 and upper_tail > 0):
            raise ValueError("the scales of tails are positive")
        self.quantiles = tuple(quantiles)
        self.lower_tail, self.upper_tail = lower_tail, upper_tail
        self._mass = 1 / (len(quantiles) + 1)

    def _intervals(self):
        return zip(self.quantiles, self.quantiles[1:])

    def mean(self):
        tails = self.quantiles[0] - self.lower_tail, self.quantiles[-1] + self.upper_tail
        return self._mass * math.fsum([*tails, *((a + b) / 2 for a, b in self._intervals())])

    def var(self):
        mean = self.mean()
        parts = [self.lower_tail ** 2 + (self.quantiles[0] - self.lower_tail - mean) ** 2,
                 self.upper_tail ** 2 + (self.quantiles[-1] + self.upper_tail - mean) ** 2]
        parts += [(b - a) ** 2 / 12 + ((a + b) / 2 - mean) ** 2 for a, b in self._intervals()]
        return self._mass * math.fsum(parts)

    def cdf(self, y):
        first, last = self.quantiles[0], self.quantiles[-1]
        if y <= first:
            return self._mass * math.exp((y - first) / self.lower_tail)
        if y > last:
            return 1 - self._mass * math.exp((last - y) / self.upper_tail)
        i = bisect.bisect_left(self.quantiles, y)
        a, b = self.quantiles[i - 1:i + 1]
        return self._mass * (i + (y - a) / (b - a))

    def sf(self, y):
        last = self.quantiles[-1]
        if y > last:
            return self._mass * math.exp((last - y) / self.upper_tail)
        return 1 - self.cdf(y)

    def pdf(self, y):
        first, last = self.quantiles[0], self.quantiles[-1]
        if y <= first:
            return self._mass * math.exp((y - first) / self.lower_tail) / self.lower_tail
        if y > last:
            return self._mass * math.exp((last - y) / self.upper_tail) / self.upper_tail
        i = bisect.bisect_left(self.quantiles, y)
        return self._mass / (self.quantiles[i] - self.quantiles[i - 1])

    def logpdf(self, y):
        first, last = self.quantiles[0], self.quantiles[-1]
        if y <= first:
            return (y - first) / self.lower_tail + math.log(self._mass / self.lower_tail)
        if y > last:
            return (last - y) / self.upper_tail + math.log(self._mass / self.upper_tail)
        return _log(self.pdf(y))

    def logcdf(self, y):
        first = self.quantiles[0]
        return (math.log(self._mass) + (y - first) / self.lower_tail if y <= first
                else _log(self.cdf(y)))

    def entropy(self):
        """Differential entropy in nats."""
        tails = [1 - math.log(self._mass / t) for t in (self.lower_tail, self.upper_tail)]
        return self._mass * math.fsum(tails + [math.log((b - a) / self._mass)
                                               for a, b in self._intervals()])

    def _mirrored(self):
        return Quantiles([-q for q in self.quantiles[::-1]], self.upper_tail, self.lower_tail)

    def ppf(self, p):
        place = p / self._mass
        n = len(self.quantiles)
        if place <= 1:
            return self.quantiles[0] + self.lower_tail * math.log(place) if p > 0 else -math.inf
        if place > n:
            return (self.quantiles[-1] - self.upper_tail * math.log((1 - p) / self._mass)
                    if p < 1 else math.inf)
        i = min(int(place), n - 1)
        return self.quantiles[i - 1] + (place - i) * (self.quantiles[i] - self.quantiles[i - 1])

    def _support(self):
        return -math.inf, math.inf

    def __repr__(self):
        return f"quantiles({self.lower_tail!r} [" + ", ".join(map(repr, self.quantiles)) \
            + f"] {self.upper_tail!r})"


class Categorical:
    """Probabilities of labels."""

    kind = "categorical"

    def __init__(self, labels, probabilities):
        if len(labels) != len(probabilities) or len(set(labels)) != len(labels):
            raise ValueError("each label has one probability")
        self.probabilities = dict(zip(labels, probabilities))

    def pmf(self, label):
        return self.probabilities[label]

    def logpmf(self, label):
        p = self.probabilities[label]
        return math.log(p) if p > 0 else -math.inf

    def rvs(self, size=None, random_state=None):
        """One label, or a list of them; random_state is a seed or a random.Random."""
        if not isinstance(random_state, random.Random):
            random_state = random.Random(random_state)
        drawn = random_state.choices(list(self.probabilities), list(self.probabilities.values()),
                                     k=1 if size is None else size)
        return drawn[0] if size is None else drawn

    def mode(self):
        return max(self.probabilities, key=self.probabilities.get)

    def entropy(self):
        return -math.fsum(p * math.log(p) for p in self.probabilities.values() if p > 0)


def from_json(value):
    """The distribution of what posterior.to_jsonb writes, as text or as a dict."""
    value = json.loads(value) if isinstance(value, (str, bytes)) else value
    kind = value["kind"]
    if kind == "normal":
        return Normal(value["mean"], value["sd"])
    if kind == "mixture":
        return Mixture(value["weights"], value["means"], value["sds"])
    if kind in ("bars", "bars_half_normal"):
        return Bars(value["masses"], value["borders"], kind == "bars_half_normal")
    if kind == "quantiles":
        return Quantiles(value["quantiles"], value["lower_tail"], value["upper_tail"])
    if kind == "categorical":
        return Categorical(value["labels"], value["probabilities"])
    raise ValueError(f"unknown kind of distribution: {kind}")


def from_bytes(data):
    """The distribution of its binary form: version, kind, count, big-endian doubles, labels that
    end with NUL."""
    data = bytes(data)
    version, kind, n = struct.unpack_from("!BBi", data)
    if version != 1 or kind not in _KINDS:
        raise ValueError(f"unknown binary distribution: version {version}, kind {kind}")
    size = {1: 2, 2: 3 * n, 3: 2 * n + 1, 4: 2 * n + 1, 5: n, 6: n + 2}[kind]
    numbers = struct.unpack_from(f"!{size}d", data, 6)
    if kind == 1:
        return Normal(*numbers)
    if kind == 2:
        return Mixture(numbers[:n], numbers[n:2 * n], numbers[2 * n:])
    if kind in (3, 4):
        return Bars(numbers[:n], numbers[n:], kind == 4)
    if kind == 6:
        return Quantiles(numbers[:n], *numbers[n:])
    labels = data[6 + 8 * size:].split(b"\0")[:n]
    return Categorical([label.decode() for label in labels], numbers)


_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"


def parse(text):
    """The distribution of its text form."""
    text = text.strip()
    if text.startswith("normal("):
        return Normal(*map(float, re.findall(_NUMBER, text[7:])))
    if text.startswith("mixture("):
        parts = re.findall(rf"{_NUMBER}\*normal\({_NUMBER}, {_NUMBER}\)", text)
        return Mixture(*zip(*[tuple(map(float, part)) for part in parts]))
    if text.startswith(("bars(", "bars_half_normal(")):
        numbers = list(map(float, re.findall(_NUMBER, text[text.index("("):])))
        return Bars(numbers[1::2], numbers[0::2], text.startswith("bars_half"))
    if text.startswith("quantiles("):
        lower, *quantiles, upper = map(float, re.findall(_NUMBER, text))
        return Quantiles(quantiles, lower, upper)
    if text.startswith("categorical("):
        pairs = re.findall(rf'("(?:[^"\\]|\\.)*"): {_NUMBER}', text)
        return Categorical([json.loads(label) for label, _ in pairs], [float(p) for _, p in pairs])
    if text.startswith(("mean ", '"')):
        raise ValueError("a summary cannot be read back: SET posterior.distribution_style = full, "
                         "or ask for binary results")
    raise ValueError(f"unknown distribution: {text[:40]}")
