"""The oracle: docs/model-format.md in float64, as simply as it can be said.

No state is kept. A context is its raw rows; every question encodes them again with full masks and
a dense softmax, and only what was asked word for word before, after the same rows, is remembered.
Nothing here is shared with the engine but the page. The parts: scaling.py
(section 3), rows.py (5), layers.py and trunk.py (4, 6, 7), heads.py (8), random_numbers.py (11);
this file has the verbs and chains (9, 10).

SPDX-License-Identifier: PostgreSQL
"""
import math
from types import SimpleNamespace

import numpy as np

from donors import Donors, apart_as_new, as_new_class, join, widened
from heads import NORMAL, Joint, Mixture, distribution
from layers import block, mlp
from line import SAYS_CERTAIN
from named import with_labels
from process_chain import conditioned, remembered
from random_numbers import permutation, value_uniforms
from rows import RowTokeniser, on_levels
from safetensors_io import read_model
from scaling import Scaling, near_cells, near_targets
from sums import SumsEncoding, statistics_of
from trees import pulled
from trunk import head_outputs, run

ALL_SLOTS_AHEAD, ALL_TOGETHER = 0.1, 12.0    # nats a row, and of all rows


class Model:
    """A configuration and its tensors (float64)."""

    def __init__(self, config, tensors):
        self.is_sums = config["architecture"] == "sums"
        if self.is_sums:                # what the page says of embedder and head of every other
            config = {**config, "activation": None,
                      "embedder": {
                          "x": {"kind": "rows" if "max_features" in config["inputs"]
                                else "linear"}},
                      "head": {"kind": "mixture"}}
        self.config = config
        self.tensors = {name: np.asarray(value, dtype=np.float64)
                        for name, value in tensors.items()}
        self.embedder_activation = config["embedder"].get("activation", config["activation"])
        self.context = config["context"]
        self.min_rows = config["min_rows"]
        self.buffer = config["chain"]["buffer"]
        if self.rows_append():
            self.context, self.buffer = "prefix-causal", None
        self.targets = config["target"].get("count", 1)

    def rows_append(self):
        """Whether a full context is read as a prefix-causal one (section 10)."""
        fixed = {"none", "fixed"}
        return (self.config["architecture"] == "decoupled" and self.config["layers"] == 1
                and self.config.get("backbone", {}).get("kind", "attention") == "attention"
                and self.context == "full" and not self.config["embedder"].get("positions")
                and self.config["inputs"]["scaling"] in fixed
                and self.config["target"]["scaling"] in fixed)

    @property
    def takes_each_target(self):
        """Whether rows may have several targets, each answered as if it were alone."""
        return (self.config["architecture"] == "decoupled" and self.targets == 1
                and self.config.get("backbone", {}).get("kind", "attention") == "attention")

    @classmethod
    def open(cls, path):
        return cls(*read_model(path))

    @property
    def has_tokeniser(self):
        return self.config["embedder"].get("x", {}).get("kind") == "rows"

    @property
    def takes_any_columns(self):
        return self.has_tokeniser or self.config["embedder"].get("kind") == "set"


def canonical_prefix(model, n):
    """Section 10, for n rows that arrived one after the other; n >= min_rows where rows are needed.
    """
    if model.context == "causal":
        return 0
    if model.context == "full" and model.buffer is not None:
        return model.min_rows + model.buffer * ((n - model.min_rows) // model.buffer)
    return 2 ** int(math.floor(math.log2(n))) if n > 0 else 0


def whole_prefix(model, n):
    return 0 if model.context == "causal" else n


class Encoding:
    """
    A context: rows x [n, F], y [n] of which the first `prefix` see each other, and the statistics
    of the first `statistics.n`.
    """

    chain = 0  # rows at the end that are of a chain

    def __init__(self, model, x, y, prefix, statistics):
        self.model, self.x, self.y, self.prefix, self.statistics = model, x, y, prefix, statistics

    def predict(self, queries):
        """One distribution for every query; of a joint head each query alone."""
        queries = self.statistics.near(queries)
        answers = self.afresh(queries)
        self.statistics.said.update((self.question(query), answer)
                                    for query, answer in zip(queries, answers))
        return answers

    def afresh(self, queries):
        model = self.model
        if model.config["head"]["kind"] == "joint-gaussian":
            return [self.joint([row]) for row in queries]
        if self.statistics.donors:
            return self.completed(np.asarray(queries, dtype=float))
        return self.as_they_are(queries)

    def question(self, query):
        """All that tells an answer from others under these statistics."""
        later = self.statistics.n
        return (self.x[later:].tobytes(), self.y[later:].tobytes(), self.prefix, self.chain,
                np.asarray(query, dtype=float).tobytes())

    def follow(self, query):
        """predict() for one row, which chains ask again and again after the same rows."""
        key = self.question(self.statistics.near(query))
        if key not in self.statistics.said:
            self.predict([query])
        return self.statistics.said[key]

    def completed(self, queries):
        """The answers that follow from those to queries with the cells of their donors."""
        donors, out, at = self.statistics.donors, [], 0
        lent = [donors(query) for query in queries]
        answers = self.as_they_are(np.concatenate([variants for variants, _, _ in lent]))
        for query, (variants, weights, sample) in zip(queries, lent):
            own, (labels, alike) = answers[at:at + len(weights)], donors.new_labels(query)
            own = widened(own, sample, apart_as_new(own, weights, variants[:, labels], alike))
            joined = join(own, weights)
            if self.statistics.classes:
                n0, classes = self.statistics.tokeniser.n0, self.statistics.classes
                there = np.bincount(self.y[:n0].astype(int), minlength=classes) > 0
                joined = as_new_class(joined, own, weights, variants[:, labels], alike,
                                      there / np.sum(there))
            out.append(donors.shifted(joined, query))
            at += len(weights)
        return out

    def as_they_are(self, queries):
        """One distribution for every query, whatever it lacks."""
        model, place = self.model, self.statistics.place
        seen = self.y if place is None else place[self.y.astype(int)]
        states = run(model, self.statistics, self.x, seen, self.prefix,
                     np.asarray(queries, dtype=float))
        scaling = self.statistics.scaling
        made = [distribution(model.config["head"], outputs, model.tensors.get("head.borders"),
                             scaling.y_center, scaling.y_scale, self.statistics.classes)
                for outputs in self.lean(head_outputs(model, states), queries)]
        if place is not None:
            return [answer.of_places(place) for answer in made]
        if not model.config["head"].get("process"):
            return made
        return [self.gated(answer, row)
                for answer, row in zip(made, np.asarray(queries, dtype=float))]

    def moved(self, mean, codes, z, query):
        """Where a mean moves: to what trees say, and from there to what regressions say."""
        head, tokeniser = self.model.config["head"], self.statistics.tokeniser
        trees, few = tokeniser.trees, tokeniser.few
        if tokeniser.processes[0].is_certain:
            return mean
        if trees is not None:
            share = trees.share(head["trees"], query[tokeniser.features])
            if share == 0 and trees.would_share(head["trees"]) > 0:
                return mean
            mean = mean + share * (trees(codes[None])[0] - mean)
        if few is None or few.weights is None:
            return mean
        said = [tokeniser.processes[0](codes, z, None)[0],
                tokeniser.ridges[1](codes[None], z[None], [])[0, 0]]
        return mean + head["few_values"] * (few.weights @ said - mean)

    def gated(self, answer, query):
        """The mixture with the answer of the process as one more component (section 8)."""
        model, scaling, tokeniser = self.model, self.statistics.scaling, self.statistics.tokeniser
        codes, z = (part[0][tokeniser.slots]
                    for part in (scaling.encode(query[None]), scaling.features(query[None])))
        m, spread, noise, quality = tokeniser.processes[0](codes, z, None)
        if self.chain > 0 and model.config["head"].get("process_chain"):
            m, spread = self.chained(codes, z)
        unit = abs(scaling.y_scale)
        mean, sd = (answer.mean() - scaling.y_center) / scaling.y_scale, answer.sd() / unit
        apart = abs(m - mean)
        read = np.array([quality, spread, noise, np.log(sd), spread - np.log(sd),
                         np.log(1 + apart / (sd + 1e-3)),
                         np.log(1 + apart / np.exp(spread)),
                         np.log(1 + min(tokeniser.n0, 1024)) / 8,
                         np.clip(quality + np.log(sd), -4, 4),
                         np.log(sd) - answer.weights @ np.log(answer.sds / unit),
                         *tokeniser.record])
        head = model.config["head"]
        if head.get("process_behind"):
            told = self.chain if head.get("process_chain") else 0
            behind = len(self.x) - self.statistics.n - told
            read = np.append(read, np.log(1 + min(behind, 512)) / 8)
        u = mlp(model.tensors, "head.gate", read,
                head.get("activation", model.config["activation"]))[0]
        weight = 1 / (1 + np.exp(-u))
        others = (answer.means - scaling.y_center) / scaling.y_scale
        if quality == SAYS_CERTAIN:
            weight = 1 - 1 / (tokeniser.n0 + 1)
            others = others + (m - mean)
        weights = np.append(answer.weights * (1 - weight), weight)
        means = np.append(others, m)
        sds = np.append(answer.sds / unit, np.exp(spread))
        if tokeniser.levels is not None and quality != SAYS_CERTAIN:
            means[:-1] = on_levels(means[:-1], sds[:-1], tokeniser.levels, head["levels"])
        taken = []
        for weight, *where in tokeniser.rare:
            # a component once taken weighs nothing of the network's any more
            least = np.argmin(np.where(np.isin(np.arange(len(weights) - 1), taken), np.inf,
                                       weights[:-1]))
            taken.append(least)
            weights = weights * (1 - weight) / (1 - weights[least])
            weights[least], means[least], sds[least] = weight, *where
        mean = weights @ means
        moved = self.moved(mean, codes, z, query)
        if moved != mean:
            weights = pulled(weights, means, sds, moved)
        return Mixture(weights, scaling.y_center + scaling.y_scale * means, unit * sds)

    def chained(self, codes, z):
        """What the process says of a query, given the rows of the chain (section 9)."""
        scaling, tokeniser = self.statistics.scaling, self.statistics.tokeniser
        rows = self.x[len(self.x) - self.chain:][remembered(self.chain):]
        y = self.y[len(self.y) - len(rows):]
        before = (part[:, tokeniser.slots] for part in (scaling.encode(rows),
                                                        scaling.features(rows)))
        return conditioned(tokeniser.processes[0], codes, z, *before, scaling.scaled(y))

    def joint(self, queries):
        """The joint Gaussian of all queries (docs/families.md)."""
        model, head = self.model, self.model.config["head"]
        queries = np.asarray(queries, dtype=float)
        h = run(model, self.statistics, self.x, self.y, self.prefix, queries)
        activation = head.get("activation", model.config["activation"])
        u = h
        for k in range(head["layers"]):
            u = block(model.tensors, f"head.block.{k}", model.config, model.config["heads"], u, u)
        w = mlp(model.tensors, "head.projector", u, activation).reshape(-1, head["rank"])
        factor = np.tril(w @ w.T) + head.get("jitter", 0) * np.eye(len(w))
        mean = mlp(model.tensors, "head.mean", h, activation).ravel()
        scaling = self.statistics.scaling
        center, scale = (np.tile(np.atleast_1d(v), len(queries))
                         for v in (scaling.y_center, scaling.y_scale))
        return Joint(center + scale * mean, scale[:, None] * factor)

    def lean(self, outputs, queries):
        """A classifier's logits, shares of which are what the logistic regression, a process and
        trees say (section 8).
        """
        queries, tokeniser = np.asarray(queries, dtype=float), self.statistics.tokeniser
        share = self.share()
        if share > 0:
            said = tokeniser.logistic(queries)
            outputs = [(1 - share) * logits + share * said[i, :len(logits)]
                       for i, logits in enumerate(outputs)]
        process, trees = self.process_share(), self.trees_share()
        if process == trees == 0:
            return outputs
        codes = self.statistics.scaling.encode(queries)[:, tokeniser.slots]
        if process > 0:
            z = self.statistics.scaling.features(queries)[:, tokeniser.slots]
            said = tokeniser.class_process(codes, z)
            outputs = [np.append((1 - process) * logits[:len(own)] + process * own,
                                 logits[len(own):]) for logits, own in zip(outputs, said)]
        if trees == 0:
            return outputs
        said = tokeniser.trees(codes)
        shares = [trees * tokeniser.trees.knows(query[tokeniser.features]) for query in queries]
        return [np.append((1 - share) * logits[:len(own)] + share * own, logits[len(own):])
                for logits, own, share in zip(outputs, said, shares)]

    def process_share(self):
        """How much of the logits the process of classes says."""
        most = self.model.config["head"].get("class_process", 0)
        return self.statistics.tokeniser.process_share(most) if most else 0

    def trees_share(self):
        """How much of the logits trees say."""
        head = self.model.config["head"]
        return self.statistics.tokeniser.trees_share() if head.get("trees") else 0

    def share(self):
        """How much of the logits that is."""
        most, classes = self.model.config["head"].get("logistic", 0), self.statistics.classes
        if most == 0 or classes < 2:
            return 0
        return most * np.clip(self.statistics.tokeniser.logistics[0].quality / np.log(classes), 0,
                              1)

    def append(self, x, y):
        """More rows behind the last one; prefix and statistics stay."""
        x = self.statistics.near(x)
        return Encoding(self.model, np.concatenate([self.x, x]), np.concatenate([self.y, y]),
                        self.prefix, self.statistics)

    def step(self, x, y):
        """One row of a chain: appended, and its block merged once K predictions are done (section
        9).
        """
        longer = self.append(np.reshape(x, (1, -1)), np.reshape(y, (1, *self.y.shape[1:])))
        longer.chain = self.chain + 1
        model = self.model
        if model.context == "full" and model.buffer is not None and len(
                longer.x) - longer.prefix == model.buffer:
            longer.prefix = len(longer.x)
        return longer

    def conditionals(self, x, y, asked=None):
        """The log density of each row given those before it, by one encoding per row; NaN where
        `asked` has no such place.
        """
        at, out = self, []
        for i, (row, target) in enumerate(zip(x, y)):
            out.append(at.follow(row).log_pdf(target) if asked is None or i in asked else np.nan)
            at = at.step(row, target)
        return np.array(out)

    def score(self, x, y, orders=0, seed=0):
        """The joint log density, or the log of its mean over random orders."""
        if orders == 0:
            return self.in_order(x, y)
        logs = []
        for order in range(orders):
            places = permutation(seed, order, len(y))
            logs.append(self.in_order(x[places], y[places]))
        return max(logs) + math.log(np.mean(np.exp(np.array(logs) - max(logs))))

    def in_order(self, x, y):
        """The joint log density of rows in this order."""
        if self.model.config["head"]["kind"] == "joint-gaussian":
            return float(self.joint(x).log_pdf(np.ravel(y)))
        return float(np.sum(self.conditionals(x, y)))

    def sample(self, queries, seed, draws, first=0):
        """Joint draws [draws, m], of several targets [draws, m, D]."""
        targets = self.model.targets
        out = np.zeros((draws, len(queries)) + (() if targets == 1 else (targets,)))
        for d in range(draws):
            at = self
            u = [[value_uniforms(seed, first + d, step, t) for t in range(targets)]
                 for step in range(len(queries))]
            if self.model.config["head"]["kind"] == "joint-gaussian":
                z = [NORMAL.inv_cdf(pair[1]) for row in u for pair in row]
                out[d] = self.joint(queries).draw(np.array(z)).reshape(out[d].shape)
                continue
            for step, row in enumerate(queries):
                answer = at.follow(row)
                out[d, step] = answer.draw(*u[step][0]) if targets == 1 else answer.draw(u[step])
                at = at.step(row, out[d, step])
        return out


def class_places(kinds, x, y, classes):
    """Where the network sees each class: the place [classes], by rows x [n0, F] with classes y
    [n0] (section 3, "Order of classes").
    """
    apart = np.zeros(len(x))
    for column, kind in zip(x.T, kinds):
        below, until = (np.sum(more, axis=1) for more in (column < column[:, None],
                                                          column <= column[:, None]))
        own = until - below if kind == "categorical" else abs(
            below + until - np.sum(~np.isnan(column)))
        apart += np.where(np.isnan(column), 0, own)
    count, total = np.bincount(y, minlength=classes), np.bincount(y, apart, classes)
    return np.argsort(np.lexsort((np.arange(classes), -total, -count))).astype(float)


def judged(make):
    """make(named, prune) where it prunes only if rows left out are not known better without."""
    plain = make(())
    if not plain.pruned:
        return make
    whole = make((), False)
    ahead = whole.processes[0].density - plain.processes[0].density
    better = ahead > ALL_SLOTS_AHEAD + ALL_TOGETHER / plain.n0
    return lambda named: make(named, not better)


def build(model, x, y, prefix, kinds=None, classes=None):
    """
    An encoding of raw rows x [n, F] (NaN: missing), y [n]; statistics from the first `prefix`, or
    min_rows where that is more. A classifier's targets are 0 … classes - 1, by default all that it
    has room for.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    kinds = kinds or ["numeric"] * x.shape[1]
    n0 = max(prefix, model.min_rows)
    assert n0 <= len(x) and 0 <= prefix
    if model.is_sums:
        basis, settings = statistics_of(model.config, kinds, x[:n0], y[:n0])
        return SumsEncoding(model, x, y, prefix,
                            SimpleNamespace(basis=basis, settings=settings, n=n0, classes=None))
    classes = classes or model.config["head"].get("classes")
    place = None
    if model.config["target"].get("order") == "counts":
        place = class_places(kinds, x[:n0], y[:n0].astype(int), classes)
    near = near_cells(model.config, kinds, x[:n0])
    x = near(x)
    near_y = near_targets(model.config, y[:n0], x[:n0])
    seen = near_y(y[:n0]) if place is None else place[y[:n0].astype(int)]
    statistics = SimpleNamespace(scaling=Scaling(model.config, kinds, x[:n0], seen, near_y), n=n0,
                                 tokeniser=None, donors=None, classes=classes, place=place,
                                 near=near, said={})
    if model.has_tokeniser:
        def tokeniser(named, prune=True):
            return RowTokeniser(model, Scaling(model.config, kinds, x[:n0], seen, near_y, named),
                                x[:n0], seen, classes, prune)

        if model.config["embedder"]["x"].get("prune_judged", False):
            tokeniser = judged(tokeniser)
        if model.config["embedder"]["x"].get("labels", False):
            statistics.tokeniser = with_labels(tokeniser, kinds, x[:n0], seen)
        else:
            statistics.tokeniser = tokeniser(())
        statistics.scaling = statistics.tokeniser.scaling
        most = model.config["embedder"]["x"].get("donors", 0)
        if most:
            statistics.donors = Donors(statistics.tokeniser, x[:n0], seen, most,
                                       model.config["embedder"]["x"].get("shift", False))
    return Encoding(model, x, y, prefix, statistics)


def evidence(model, x, y, kinds=None):
    """Conditionals [n] of rows that arrive one after the other, NaN for the first min_rows; their
    sum is the log evidence.
    """
    out = np.full(len(y), np.nan)
    for i in range(model.min_rows, len(y)):
        out[i] = build(model, x[:i], y[:i], canonical_prefix(model, i),
                       kinds).predict([x[i]])[0].log_pdf(y[i])
    return out
