"""The row tokeniser (docs/model-format.md section 5).

SPDX-License-Identifier: PostgreSQL
"""
import itertools

import numpy as np

import nearest
from class_process import ClassProcess
from layers import activate, block, linear, mlp
from line import Line
from process import Process
from record import record
from scaling import soft_clip
from trees import LEAST_ROWS, FewValues, NumberTrees, Trees

NUMERIC_BINS, CATEGORICAL_BINS = 8, 16
KNOTS = (-0.7, 0.0, 0.7)
ALWAYS_KEPT, CHANCE, DEVIATIONS, ENOUGH_ROWS = 8, 8.0, 2.5, 100
PAIR_ROWS = 1024


SHARED = {}


def shared(make, cards, codes, *given):
    """What is made of these, once: it does not depend on a model's weights, and cards follow from
    the rest but for kinds.
    """
    bins = tuple(card.categorical and tuple(card.bins.bin_of.items()) for card in cards)
    key = (make, bins, codes.tobytes(),
           *(part.tobytes() if isinstance(part, np.ndarray) else part for part in given))
    if key not in SHARED:
        SHARED[key] = make(cards, codes, *given)
    return SHARED[key]


class Bins:
    """The bins of one column, from its prefix cells, or of a categorical one the bin of every code;
    missing cells have the last bin.
    """

    def __init__(self, column, bin_of):
        self.categorical = categorical = bin_of is not None
        self.count = (CATEGORICAL_BINS if categorical else NUMERIC_BINS) + 1
        values = np.sort(column[~np.isnan(column)])
        if categorical:
            self.bin_of = bin_of
        else:
            self.edges = ([self.edge(values, j) for j in range(1, NUMERIC_BINS)] if len(values)
                          else [])

    @staticmethod
    def edge(values, j):
        h = (len(values) - 1) * j / NUMERIC_BINS
        low = int(np.floor(h))
        high = min(low + 1, len(values) - 1)
        unit = 4.0 if np.abs(values).max() > 1e300 else 1.0         # in which a difference has room
        return unit * (values[low] / unit + (values[high] / unit - values[low] / unit) * (h - low))

    def __call__(self, value):
        if np.isnan(value):
            return self.count - 1
        if self.categorical:
            return self.bin_of[value]
        return sum(edge < value for edge in self.edges)

    def of(self, values):
        """The bins of many values [n]."""
        if self.categorical:
            return np.array([self(value) for value in values], dtype=int)
        return np.where(np.isnan(values), self.count - 1, np.searchsorted(self.edges, values))


def says_nothing(codes):
    """Whether the cells of a column are all equal, or all missing."""
    missing = np.isnan(codes)
    return bool(missing.all() or not missing.any() and codes.min() == codes.max())


class Card:
    """What is known of one column: codes [n0] of the prefix, its scaled features z [n0] and targets
    [n0]; of a categorical one the bin of every code, else None.
    """

    def __init__(self, codes, z, y, bin_of):
        self.categorical = bin_of is not None
        self.bins = Bins(codes, bin_of)
        which = self.bins.of(codes)
        self.count = np.array([np.sum(which == b) for b in range(self.bins.count)], dtype=float)
        self.sum = np.array([np.sum(y[which == b]) for b in range(self.bins.count)])
        self.missing = np.mean(np.isnan(codes))
        present = ~np.isnan(codes)
        self.r = self.correlation(z[present], y[present])
        self.e, share = self.explained(y)
        self.relevance = np.rint(max(self.e, self.r ** 2) * 2 ** 20)
        self.tie = np.rint((share + self.r ** 2) * 2 ** 20)
        self.flat = says_nothing(codes)

    @staticmethod
    def correlation(a, b):
        if len(a) == 0 or a.min() == a.max() or b.min() == b.max():
            return 0.0
        a, b = a - a.mean(), b - b.mean()
        return np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))

    def explained(self, y):
        """The share of the variance between bins, adjusted and as it is."""
        n, k = len(y), np.sum(self.count > 0)
        if y.min() == y.max():
            return 0.0, 0.0
        filled = self.count > 0
        between = np.sum(
            self.count[filled] * (self.sum[filled] / self.count[filled] - y.mean()) ** 2)
        total = np.sum((y - y.mean()) ** 2)
        share = between / total
        return 0.0 if n <= k else max(0.0, 1 - (1 - share) * (n - 1) / (n - k)), share


class Design:
    """What a regression of the prefix knows of a row; cards of the slots."""

    def __init__(self, cards, splines):
        self.cards, self.entries = cards, []
        for s, card in enumerate(cards):
            bins = [b for b in range(card.bins.count) if card.count[b] > 0]
            if card.categorical:
                more = [(s, "bin", b) for b in bins]
            else:
                more = [(s, "value", None)] + [(s, "hinge", knot) for knot in KNOTS if splines]
                more += [(s, "bin", b) for b in bins if b == card.bins.count - 1]
            if len(self.entries) + len(more) > 127:
                break
            self.entries += more

    def rows(self, codes, z):
        """The regressors of rows with codes and scaled features [n, slots], [n, entries]; the
        intercept is last.
        """
        bins = [card.bins.of(column) for card, column in zip(self.cards, codes.T)]
        values = np.where(np.isnan(codes), 0.0, z).T
        out = np.ones((len(self.entries) + 1, len(codes)))
        for i, (s, what, which) in enumerate(self.entries):
            if what == "bin":
                out[i] = bins[s] == which
            else:
                out[i] = values[s] if what == "value" else np.maximum(values[s] - which, 0.0)
        return out.T


class Ridge:
    """One of the two regressions of the prefix: cards of the slots, codes and scaled features [n0,
    slots], targets [n0] or, several that share penalty and noise, [n0, T]."""

    def __init__(self, cards, codes, z, y, splines, knee):
        self.knee, self.design = knee, Design(cards, splines)
        u = self.design.rows(codes, z)
        # by singular values: where there are more entries than rows, the residual is tiny and a
        # difference of squares would drown it
        left, size, right = np.linalg.svd(u, full_matrices=False)
        n, best, along = len(y), -np.inf, left.T @ y
        apart = np.sum((y - left @ along) ** 2)
        for penalty in 4.0 ** np.arange(-6, 9):
            shrunk = size ** 2 + penalty
            noise = max((apart + np.sum((along ** 2).T * penalty / shrunk)) / n, 1e-8)
            evidence = -0.5 * (n * np.log(noise) + np.sum(np.log(shrunk / penalty)))
            if evidence > best:
                best, self.noise, self.weights = (evidence, noise, right.T
                                                  @ ((size / shrunk) * along.T).T)
                self.spread = noise * ((right.T * (size / shrunk) ** 2) @ right).diagonal()
                self.inverse = (right.T @ np.diag(1 / shrunk - 1 / penalty) @ right
                                + np.eye(u.shape[1]) / penalty)
                self.right, self.shrunk = right, shrunk

    def weighs(self, s, strictness):
        """Whether a weight of slot s is further from zero than the noise would carry it."""
        return any(entry[0] == s and self.weights[i] ** 2 > strictness * DEVIATIONS ** 2
                   * self.spread[i] for i, entry in enumerate(self.design.entries))

    def answer(self, codes, z, own):
        """Means and leverages of rows; own: the targets of the first ones, which are of the prefix
        and left out.
        """
        u, k = self.design.rows(codes, z), len(own)
        mean, leverage = u @ self.weights, np.sum((u @ self.inverse) * u, axis=1)
        # a row of the prefix lies in its row space; the inverse's differences would drown in what
        # leaving the row out makes of rounding
        inside = np.sum((u[:k] @ self.right.T) ** 2 / self.shrunk, axis=1)
        rest = np.maximum(1 - inside, 1e-6)
        leverage[:k] = inside / rest
        mean[:k] = own - ((own - mean[:k]).T / rest).T
        return mean, leverage

    def left_out(self, codes, z, targets):
        """The means of all rows of the prefix, each left out."""
        u = self.design.rows(codes, z)
        rest = np.maximum(1 - np.sum((u @ self.right.T) ** 2 / self.shrunk, axis=1), 1e-6)
        return targets - (targets - u @ self.weights) / rest[:, None]

    absent = 0.0

    def measure_absent(self, codes, z):
        """The variance of what every slot says to the prefix rows that have its cell."""
        u = self.design.rows(codes, z)
        slot = np.array([entry[0] for entry in self.design.entries])
        self.absent = np.zeros(codes.shape[1])
        for s in range(codes.shape[1]):
            own = np.append(slot == s, False)
            present = ~np.isnan(codes[:, s])
            if present.any() and own.any():
                self.absent[s] = np.var(u[np.ix_(present, own)] @ self.weights[own]) / self.noise

    def __call__(self, codes, z, own):
        """Numbers [n, 3] of rows; arguments as of answer()."""
        mean, leverage = self.answer(codes, z, own)
        leverage += np.sum(np.isnan(codes) * self.absent, axis=1)
        return np.stack([soft_clip(mean, self.knee), np.full(len(mean), 0.5 * np.log(self.noise)),
                         0.5 * np.log1p(leverage)], axis=1)


class ClassRidge(Ridge):
    """The same of a classifier with `classes` classes and room for `room`: probabilities from
    regressions of the classes' indicators.
    """

    def __init__(self, cards, codes, z, y, splines, knee, classes, room):
        self.classes, self.room = classes, room
        self.share = np.mean(self.indicators(y), axis=0)
        centred = self.indicators(y) - self.share
        super().__init__(cards, codes, z, centred, splines, knee)
        answers = self.left_out(codes, z, centred)
        smooth = np.log((self.share * len(y) + 0.5) / (len(y) + 0.5 * classes))
        ways = [(2.0 ** (k / 2), b * smooth) for k in range(-4, 11) for b in (0, 1)]
        own = [np.mean(self.log_p(answers, *way)[np.arange(len(y)), y.astype(int)]) for way in ways]
        self.way, self.quality = ways[int(np.argmax(own))], max(own) + np.log(classes)

    def indicators(self, y):
        return (np.reshape(y, (-1, 1)) == np.arange(self.classes)).astype(float)

    @staticmethod
    def log_p(answer, multiple, shift):
        z = multiple * answer + shift
        z = z - z.max(axis=-1, keepdims=True)
        return z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))

    def __call__(self, codes, z, own):
        mean, leverage = self.answer(codes, z, self.indicators(own) - self.share)
        said = soft_clip(self.log_p(mean, *self.way) + np.log(self.classes), self.knee)
        return np.concatenate([said, np.zeros((len(said), self.room - self.classes)),
                               np.full((len(said), 1), self.quality),
                               0.5 * np.log1p(leverage)[:, None]], axis=1)


class Logistic:
    """The multinomial logistic regression of the prefix of a classifier with `classes` classes and
    room for `room`; arguments as of ClassRidge.
    """

    def __init__(self, cards, codes, z, y, knee, classes, room):
        self.design, self.knee, self.classes, self.room = Design(cards, False), knee, classes, room
        u, own = self.design.rows(codes, z), y[:, None] == np.arange(classes)
        n, width = u.shape
        self.shift = np.log((own.sum(axis=0) + 0.5) / (n + 0.5 * classes))
        weights, self.quality, self.shortest = np.zeros((classes, width)), -np.inf, 1.0
        hessians = self.hessians(u, np.exp(self.log_p(u @ weights.T + self.shift)))
        for penalty in 4.0 ** np.arange(3, -4, -1):
            inverses = [np.linalg.inv(h + penalty * np.eye(width)) for h in hessians]
            for _ in range(6):
                p = np.exp(self.log_p(u @ weights.T + self.shift))
                gradient = (own - p).T @ u - penalty * weights
                step = np.array([inverse @ g for inverse, g in zip(inverses, gradient)])
                length = self.length(u, own, penalty, weights, step)
                self.shortest = min(self.shortest, length)
                weights = weights + length * step
            p = np.exp(self.log_p(u @ weights.T + self.shift))
            hessians = self.hessians(u, p)
            inverses = [np.linalg.inv(h + penalty * np.eye(width)) for h in hessians]
            leverage = np.array([np.sum((u @ inverse) * u, axis=1) for inverse in inverses]).T
            pull = leverage / np.maximum(1 - leverage * self.weight(p), 1e-6)
            left_out = self.log_p(u @ weights.T + self.shift - pull * (own - p))
            quality = np.mean(left_out[own]) + np.log(classes)
            if quality > self.quality:
                self.quality, self.weights, self.left_out = quality, weights, left_out

    @staticmethod
    def log_p(scores):
        scores = scores - scores.max(axis=1, keepdims=True)
        return scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))

    def weight(self, p):
        return p * (1 - p) * self.classes / max(self.classes - 1, 1)

    def hessians(self, u, p):
        return [(u.T * w) @ u for w in self.weight(p).T]

    def length(self, u, own, penalty, weights, step):
        """1, halved up to ten times as long as the step makes the penalised loss larger."""
        def loss(w):
            return 0.5 * penalty * np.sum(w ** 2) - np.sum(self.log_p(u @ w.T + self.shift)[own])

        before = loss(weights)
        for halved in range(10):
            if loss(weights + 0.5 ** halved * step) <= before * (1 + 1e-9):
                return 0.5 ** halved
        return 0.5 ** 10

    def __call__(self, codes, z, places):
        """The numbers of rows, of which the first are those of the prefix with these places."""
        log_p = self.log_p(self.design.rows(codes, z) @ self.weights.T + self.shift)
        log_p[:len(places)] = self.left_out[places]
        said = soft_clip(log_p + np.log(self.classes), self.knee)
        return np.concatenate([said, np.zeros((len(said), self.room - self.classes)),
                               np.full((len(said), 1), self.quality)], axis=1)


class ClassCard:
    """The same for targets that are classes, of which the model has room for `room`: y [n0] holds
    their indices.
    """

    def __init__(self, codes, z, y, bin_of, room):
        self.categorical = bin_of is not None
        self.bins = Bins(codes, bin_of)
        self.onehot = (y[:, None] == np.arange(room)).astype(float)
        self.share = self.onehot.mean(axis=0)
        which = self.bins.of(codes)
        self.count = np.array([np.sum(which == b) for b in range(self.bins.count)], dtype=float)
        self.sum = np.array(
            [np.sum(self.onehot[which == b] - self.share, axis=0) for b in range(self.bins.count)])
        self.missing = np.mean(np.isnan(codes))
        present = ~np.isnan(codes)
        square, ratio = self.between(np.unique(y[present], return_inverse=True)[1],
                                     z[present, None])
        self.r = np.sqrt(square)
        self.e, share = self.between(which, self.onehot)
        self.relevance = np.rint(max(self.e, self.r ** 2) * 2 ** 20)
        self.tie = np.rint((share + ratio) * 2 ** 20)
        self.flat = says_nothing(codes)

    @staticmethod
    def between(group, values):
        """The share of the variance of values [n, k] that lies between groups [n], adjusted and as
        it is.
        """
        n, members = len(values), [group == g for g in np.unique(group)]
        groups = len(members)
        if n == 0 or np.all(values == values[0]):
            return 0.0, 0.0
        center = values.mean(axis=0)
        inside = sum(np.sum(own) * np.sum((values[own].mean(axis=0) - center) ** 2)
                     for own in members)
        share = inside / np.sum((values - center) ** 2)
        return 0.0 if n <= groups else max(0.0, 1 - (1 - share) * (n - 1) / (n - groups)), share


def rare_targets(y, scaled, clipped, said, least):
    """Weight, mean and standard deviation of the scaled targets [n] beyond `least`, above and
    below, where more than half of the raw ones y [n] are one value (section 8, "Rare targets");
    clipped [n] as a process reads them, which says [n] of each without its row.
    """
    values, counts = np.unique(y, return_counts=True)
    if 2 * counts.max() <= len(y):
        return []
    common, found = scaled[y == values[counts.argmax()]][0], []
    for side in (1, -1):
        is_far = side * scaled > least
        far, unforeseen = scaled[is_far], np.sum(is_far & (side * said < side * clipped / 2))
        if unforeseen > 0:
            spread = np.sum((far - far.mean()) ** 2) + 2 * ((far.mean() - common) / 2) ** 2
            found.append((unforeseen / (len(y) + 1), far.mean(),
                          np.sqrt(spread / (len(far) + 2))))
    return found


def levels_of(scaled):
    """The values that scaled targets have, ascending, where they are few; or None."""
    values = np.unique(scaled)
    return values if 2 <= len(values) <= min(64, len(scaled) // 8) else None


def on_levels(means, sds, levels, narrow):
    """The means of components, those of narrow ones on the nearest level, if that is within four
    of their deviations.
    """
    nearest = np.abs(means[:, None] - levels).argmin(axis=1)
    gaps = np.concatenate([[np.inf], np.diff(levels), [np.inf]])
    apart = np.minimum(gaps[nearest], gaps[nearest + 1])
    near = np.abs(means - levels[nearest]) <= 4 * sds
    return np.where((sds < narrow * apart) & near, levels[nearest], means)


class RowTokeniser:
    """Rows -> vectors, with statistics frozen at the prefix x [n0, F], y [n0] (raw); `classes` is
    the number of classes, or None; without `prune` no slot is left out.
    """

    def __init__(self, model, scaling, x, y, classes=None, prune=True):
        self.classes, self.room = classes, model.config["head"].get("classes")
        self.model = model
        self.scaling = scaling
        self.n0 = len(y)
        self.made = {}                      # vectors of rows
        codes, z, targets = scaling.encode(x), scaling.features(x), scaling.target(y)
        make = (lambda *given: ClassCard(*given, self.room)) if classes else Card
        self.cards = [make(codes[:, f], z[:, f], targets, of and of.bin_of())
                      for f, of in enumerate(scaling.codes)]
        order = sorted((f for f, card in enumerate(self.cards) if not card.flat),
                       key=lambda f: (-self.cards[f].relevance, -self.cards[f].tie, f)) or [0]
        self.slots = order[:model.config["inputs"]["max_features"]]
        own = model.config["embedder"]["x"]
        many = "prune_below" in own and self.n0 >= own["prune_below"] * len(self.slots)
        whole = len(self.slots)
        if own.get("prune", False) and prune and whole > ALWAYS_KEPT and not many:
            self.slots = self.prune(codes, z, targets)
        self.pruned = len(self.slots) < whole
        self.features = [scaling.sources[f] for f in self.slots]
        self.ridges, self.processes, self.logistics = [], [], []
        given = [self.cards[f] for f in self.slots], codes[:, self.slots], z[:, self.slots], targets
        if model.config["embedder"]["x"].get("logistic", False):
            self.logistics = [shared(Logistic, *given, model.config["inputs"]["clip"], classes,
                                     self.room)]
        if model.config["embedder"]["x"].get("ridge", False):
            if classes:
                knee = model.config["inputs"]["clip"]
                self.ridges = [shared(ClassRidge, *given, splines, knee, classes, self.room)
                               for splines in (False, True)]
            else:
                self.ridges = [Ridge(*given, splines, model.config["target"]["clip"])
                               for splines in (False, True)]
                if model.config["embedder"]["x"].get("absent", False):
                    for ridge in self.ridges:
                        ridge.measure_absent(codes[:, self.slots], z[:, self.slots])
        self.trees = None
        trees = model.config["head"].get("trees") and self.n0 >= LEAST_ROWS
        if trees and classes and classes > 1:
            self.trees = shared(Trees, *given[:2], x[:, self.features], y, classes)
        self.class_process = None
        if model.config["head"].get("class_process") and classes and classes > 1:
            self.class_process = shared(ClassProcess, *given[:3], y, classes)
        if model.config["embedder"]["x"].get("process", False):
            self.processes = [shared(Process, *given, y * np.sign(scaling.y_scale),
                                     model.config["target"]["clip"], own.get("directions", 0),
                                     own.get("additive", False))]
            self.shifting = self.processes[0]       # which "Shift" asks
            if own.get("nearest", False):
                self.processes = [nearest.instead(self.shifting)]
            if own.get("line", False):
                line = Line(Design(given[0], False), given[1], scaling.center[self.slots],
                            scaling.scale[self.slots], scaling.scaled(y),
                            model.config["target"]["clip"])
                if line.wins(self.processes[0], y):
                    self.processes = [line]
                    self.shifting = line
            if trees:
                self.trees = shared(NumberTrees, *given[:2],
                                    x[:, self.features],
                                    (y - scaling.y_center) / scaling.y_scale,
                                    self.processes[0].left_out[:, 0])
        self.few = None
        if model.config["head"].get("few_values"):
            said = [self.processes[0].left_out[:, 0],
                    self.ridges[1](codes[:, self.slots], z[:, self.slots], targets)[:, 0]]
            self.few = FewValues(y, targets, np.stack(said, axis=1))
        self.record = []
        if model.config["head"].get("process_record"):
            self.record = record(self.processes[0], self.processes[0].y, self.ridges)
        self.levels = None
        if model.config["head"].get("levels"):
            self.levels = levels_of((y - scaling.y_center) / scaling.y_scale)
        self.rare = []
        if model.config["head"].get("rare"):
            self.rare = rare_targets(y, (y - scaling.y_center) / scaling.y_scale, targets,
                                     self.processes[0].left_out[:, 0],
                                     model.config["head"]["rare"])

    def prune(self, codes, z, targets):
        """The slots that do not look like noise."""
        strictness = min(1.0, self.n0 / ENOUGH_ROWS)
        first = Ridge([self.cards[f] for f in self.slots], codes[:, self.slots], z[:, self.slots],
                      targets, False, 0)
        together = set()
        if self.model.config["embedder"]["x"].get("pairs", False):
            together = self.pairs(codes, z, targets - first.design.rows(
                codes[:, self.slots], z[:, self.slots]) @ first.weights)
        return [f for s, f in enumerate(self.slots)
                if s < ALWAYS_KEPT or self.cards[f].relevance / 2 ** 20 * self.n0 > strictness
                * CHANCE or first.weighs(s, strictness) or f in together]

    def pairs(self, codes, z, residuals):
        """The slots that say something of the residuals in a product with another, or bent."""
        m, found, forms, labels = min(self.n0, PAIR_ROWS), set(), {}, {}
        looked_at = [(2 * i + 1) * self.n0 // (2 * m) for i in range(m)]
        for f in self.slots:
            if not self.cards[f].categorical:
                here = ~np.isnan(codes[looked_at, f])
                forms[f] = [np.where(here, form - form[here].mean() if here.any() else 0, 0)
                            for form in (z[looked_at, f], np.abs(z[looked_at, f]))]
            else:
                labels[f] = self.cards[f].bins.of(codes[looked_at, f])
        limit = 2 * np.log(len(self.slots) * (len(self.slots) - 1))
        for f, (_, bent) in forms.items():
            product = residuals[looked_at] * bent
            if np.sum(product) ** 2 > limit * np.sum(product ** 2):
                found.add(f)
        for f, g in itertools.combinations(forms, 2):
            products = [residuals[looked_at] * own * other for own in forms[f]
                        for other in forms[g]]
            if any(np.sum(p) ** 2 > limit * np.sum(p ** 2) for p in products):
                found |= {f, g}
        each = [(f, g, labels[f], [residuals[looked_at] * form for form in of])
                for f in labels for g, of in forms.items()]
        each += [(f, g, 1000 * labels[f] + labels[g], [residuals[looked_at]])
                 for f, g in itertools.combinations(labels, 2)]
        for f, g, label, products in each:
            there = np.all([labels[k] < self.cards[k].bins.count - 1 for k in (f, g)
                            if k in labels], axis=0)
            for product in products:
                groups = [product[there & (label == k)] for k in np.unique(label[there])]
                groups = [p for p in groups if np.any(p != 0)]
                if len(groups) > 1:
                    every, free = np.concatenate(groups), len(groups) - 1
                    said = (sum(np.sum(p) ** 2 / np.sum(p ** 2) for p in groups)
                            - np.sum(every) ** 2 / np.sum(every ** 2))
                    if said > free + np.sqrt(2 * free * limit) + limit:
                        found |= {f, g}
        return found

    def cells(self, f, codes, z, own):
        """The numbers of a column's cells, [n, numbers]; own: the scaled targets of the first rows,
        which are of the prefix.
        """
        card, k, missing = self.cards[f], len(own), np.isnan(codes)
        bins, more = card.bins.of(codes), np.where(np.arange(len(codes)) < k, 0.5, 1.5)
        left_out = np.zeros((len(codes),) + card.sum.shape[1:])
        left_out[:k] = (own[:, None] == np.arange(self.room)) - card.share if self.classes else own
        told = (((card.sum[bins] - left_out).T / (card.count[bins] + more))).T
        out = np.empty((len(codes), 8))
        out[:] = (0, 0, card.categorical, 0, np.log(1 + self.n0) / 8, card.r, card.e, card.missing)
        out[:, 0], out[:, 1] = np.where(missing, 0.0, z), missing
        if not self.classes:
            out[:, 3] = told
            return out
        out[:, 3] = self.classes / self.room
        return np.concatenate([out, told], axis=1)

    def __call__(self, x, prefix_y):
        """x [n, F] raw; prefix_y: the raw targets of its leading rows that are prefix rows. -> [n,
        d]
        """
        codes, z, targets = self.scaling.encode(x), self.scaling.features(x), self.scaling.target(
            prefix_y)
        # chains ask about the same rows again and again
        keys = [(min(i, len(targets)), targets[i:i + 1].tobytes(), codes[i].tobytes(),
                 z[i].tobytes()) for i in range(len(x))]
        new = [i for i, key in enumerate(keys) if key not in self.made]
        places = [i for i in new if i < len(targets)]
        if new:
            made = self.rows(codes[new], z[new], targets[places], places)
            self.made.update((keys[i], vector) for i, vector in zip(new, made))
        return np.array([self.made[key] for key in keys]).reshape(len(x),
                                                                  self.model.config["width"])

    def rows(self, codes, z, own, places):
        """The vectors of rows, the first of which are those of the prefix with these targets and
        places.
        """
        cells = [self.cells(f, codes[:, f], z[:, f], own) for f in self.slots]
        codes, z = codes[:, self.slots], z[:, self.slots]
        which = places + [None] * (len(codes) - len(places))
        return self.embed(cells, {
            "ridge": [ridge(codes, z, own) for ridge in self.ridges],
            "process": [np.array([process(*row) for row in zip(codes, z, which)])
                        for process in self.processes],
            "logistic": [logistic(codes, z, places) for logistic in self.logistics],
        }, len(codes))

    def logistic(self, x):
        """What the logistic regression says of rows x [n, F] that are not of the prefix, [n, room +
        1].
        """
        codes, z = self.scaling.encode(x), self.scaling.features(x)
        return self.logistics[0](codes[:, self.slots], z[:, self.slots], [])

    def process_share(self, most):
        """How much of the logits the process of classes says, at most."""
        if self.class_process is None:
            return 0
        known = max(opinion.quality for opinion in self.logistics + self.ridges)
        least = np.log(self.classes) - known
        return self.class_process.would_share(
            most, least if self.trees is None else min(least, self.trees.loss))

    def trees_share(self):
        """How much of the logits trees say."""
        if self.trees is None or not self.classes:
            return 0
        known = max(opinion.quality for opinion in self.logistics + self.ridges)
        return self.trees.share(self.model.config["head"]["trees"], known)

    def embed(self, cells, opinions, n):
        """Paths A and B for n rows: the cells [n, numbers] of each slot, and by kind what each
        regression says of them.
        """
        model, tensors = self.model, self.model.tensors
        config, activation = model.config, model.embedder_activation
        hidden = np.tile(tensors["embed.x.slot.bias"], (n, 1))
        for numbers, weight in zip(cells, tensors["embed.x.slot.weight"]):
            hidden += numbers @ weight.T
        for name, said in opinions.items():
            if said:
                hidden += np.concatenate(said, axis=1) @ tensors[f"embed.x.{name}.weight"].T
        out = linear(tensors, "embed.x.out", activate(activation, hidden))
        tokens = config["embedder"]["x"]["tokens"]
        if tokens is None:
            return out
        readouts = tokens["readouts"]
        for i in range(n):
            made = (mlp(tensors, "embed.x.cell", np.array([numbers[i] for numbers in cells]),
                        activation) + tensors["embed.x.code"][:len(cells)])
            h = np.concatenate([tensors["embed.x.readout"], made])
            for k in range(tokens["layers"]):
                h = block(tensors, f"embed.x.block.{k}",
                          {**config, "norm": {**config["norm"], "placement": "pre"}},
                          tokens["heads"], h, h)
            out[i] += linear(tensors, "embed.x.pool", h[:readouts].reshape(-1))
        return out
