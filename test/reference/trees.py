"""Boosted trees of the prefix (docs/model-format.md, section 8, "Trees"), in float64 and whole
numbers, independent of the engine.
"""
import numpy as np

EDGES, DEPTH, FOLDS, ROUNDS, RATE, OF_TREE = 31, 5, 3, 40, 0.2, 12
LEAST_ROWS, MISSING_LABEL, SLOPE, SHARPER = 512, 16, 1.5, 1.5
LEAST_NUMBERS, FARTHEST, SLOPE_OF_SHARE = 8, 8.0, 2.0      # of trees of numbers
MASK = 2 ** 64 - 1


def mix(z):
    """A hash of an integer below 2^64."""
    z = (z + 0x9e3779b97f4a7c15) & MASK
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def log_softmax(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def sharpness(scores, y):
    """What scores [n, K] of rows left out are best multiplied by."""
    found = 1.0
    for _ in range(6):
        p = np.exp(log_softmax(found * scores))
        mean = (p * scores).sum(axis=1)
        variance = np.maximum((p * scores ** 2).sum(axis=1) - mean ** 2, 0)
        slope = np.rint((scores[np.arange(len(y)), y] - mean) * 2 ** 20).sum()
        curve = np.rint(variance * 2 ** 20).sum()
        if curve > 0:
            found = min(max(found + slope / curve, 0.25), 4.0)
    return found


class Tree:
    """A tree of one fold: splits (slot or None, bin) level by level, and the leaves' values."""

    def __init__(self, labels, bins, slope, curve, unit, slots, least=1):
        self.labels, self.splits, self.values = labels, [], []
        self.least = least * unit
        nodes = [np.arange(len(bins))]
        for _ in range(DEPTH):
            below = []
            for rows in nodes:
                split = self.best(bins[rows], slope[rows], curve[rows], unit, slots)
                left = self.goes_left(split, bins[rows])
                self.splits.append(split)
                below += [rows[left], rows[~left]]
            nodes = below
        for rows in nodes:
            self.values.append((-RATE * (slope[rows].sum(axis=0) / unit)
                                / (curve[rows].sum(axis=0) / unit + 1)).astype(np.float32))
        self.values = np.array(self.values, dtype=float)
        # every row is left of what is no split
        self.slot = np.array([slot or 0 for slot, _ in self.splits])
        self.bound = np.array([2 ** 30 if slot is None else at for slot, at in self.splits])
        self.equals = np.array([slot is not None and labels[slot] for slot, _ in self.splits])

    def best(self, bins, slope, curve, unit, slots):
        """The split of these rows that gains most."""
        def gain(s, c):
            return np.sum((s / unit) ** 2 / (c / unit + 1), axis=-1)

        both = np.concatenate([slope, curve], axis=1)
        total, k = both.sum(axis=0), slope.shape[1]
        whole = gain(total[:k], total[k:])
        # sums of whole numbers below 2^53, of all slots at once: [slots, bins, 2 k]
        at = ((np.arange(len(slots)) * (EDGES + 2) + bins[:, slots])[:, :, None] * (2 * k)
              + np.arange(2 * k))
        left = np.bincount(at.ravel(), np.repeat(both, len(slots), axis=0).ravel(),
                           len(slots) * (EDGES + 2) * 2 * k).reshape(len(slots), -1, 2 * k)
        labels = np.array(self.labels)[slots]
        left = np.where(labels[:, None, None], left, np.cumsum(left, axis=1))[:, :-1]
        right = total - left
        gains = (gain(left[..., :k], left[..., k:]) + gain(right[..., :k], right[..., k:])
                 - whole)
        enough = (np.minimum(left[..., k:].sum(axis=2), right[..., k:].sum(axis=2))
                  >= self.least)
        gains = np.where(enough, gains, -np.inf)
        if not gains.max() > 1e-6:
            return None, 0
        # the first slot of the largest gain, and its first bin
        place, found = np.unravel_index(gains.argmax(), gains.shape)
        return slots[place], int(found)

    def goes_left(self, split, bins):
        slot, at = split
        if slot is None:
            return np.ones(len(bins), dtype=bool)
        return bins[:, slot] == at if self.labels[slot] else bins[:, slot] <= at

    def __call__(self, bins):
        """Values [n, channels] of rows with bins [n, S]."""
        at, rows = np.zeros(len(bins), dtype=int), np.arange(len(bins))
        for _ in range(DEPTH):
            own = bins[rows, self.slot[at]]
            left = np.where(self.equals[at], own == self.bound[at], own <= self.bound[at])
            at = 2 * at + np.where(left, 1, 2)
        return self.values[at - len(self.splits)]


class Trees:
    """Trees of the prefix rows with codes [n, S] of the slots, whose cards they are given with, and
    classes y [n].
    """

    def __init__(self, cards, codes, cells, y, classes):
        self.cards, self.classes = cards, classes
        self.labels = [card.categorical for card in cards]
        self.few = self.few_values(cells)
        self.edges = [self.cut(codes[:, s]) for s in range(len(cards))]
        y, bins, n = y.astype(int), self.bins(codes), len(codes)
        fold = self.folds(bins, y)
        unit = 2.0 ** (30 - int(np.ceil(np.log2(n))))
        losses, folds = np.zeros(ROUNDS + 1), []
        left_out = np.zeros((ROUNDS + 1, n, classes))
        for f in range(FOLDS):
            given = fold != f
            share = np.bincount(y[given], minlength=classes) + 0.5
            start = np.log(share / share.sum())
            score = np.tile(self.channels(start[None]), (n, 1))
            trees = []
            for t in range(ROUNDS + 1):
                left_out[t][~given] = self.scores(score)[~given]
                log_p = log_softmax(self.scores(score))
                losses[t] += np.rint(
                    -log_p[np.arange(n), y][~given] * 2 ** 20).sum()
                if t == ROUNDS:
                    break
                p = np.exp(log_p)[:, classes - score.shape[1]:]
                own = (y[:, None] == np.arange(classes))[:, classes - score.shape[1]:]
                slope = np.rint((p - own) * unit).astype(np.int64)
                curve = np.rint(p * (1 - p) * unit).astype(np.int64)
                trees.append(Tree(self.labels, bins[given], slope[given], curve[given], unit,
                                  self.slots_of(t)))
                score = score + trees[-1](bins)
            folds.append((start, trees))
        self.rounds = int(losses.argmin())
        self.loss = losses.min() / 2 ** 20 / n
        self.folds_kept = [(start, trees[:self.rounds]) for start, trees in folds]
        self.sharpness = sharpness(left_out[self.rounds], y)

    def channels(self, scores):
        """Of two classes the score of the second, that of the first being 0."""
        return scores[:, 1:] - scores[:, :1] if self.classes == 2 else scores

    def scores(self, channels):
        if self.classes > 2:
            return channels
        return np.concatenate([np.zeros_like(channels), channels], axis=1)

    def cut(self, values):
        v = np.sort(values[~np.isnan(values)])
        return v[[((len(v) - 1) * j + 16) // 32 for j in range(1, EDGES + 1)]] if len(v) else v

    def bins(self, codes):
        """[n, S]"""
        out = np.zeros(codes.shape, dtype=int)
        for s, card in enumerate(self.cards):
            missing = np.isnan(codes[:, s])
            if self.labels[s]:
                out[:, s] = np.where(missing, MISSING_LABEL, card.bins.of(codes[:, s]))
            else:
                out[:, s] = np.where(missing, 0,
                                     1 + np.searchsorted(self.edges[s], codes[:, s]))
        return out

    @staticmethod
    def folds(bins, y):
        keys = []
        for row in bins:
            key = 0
            for own in row:
                key = mix(key ^ int(own))
            keys.append(key)
        fold = np.empty(len(y), dtype=int)
        fold[sorted(range(len(y)), key=lambda i: (keys[i], y[i]))] = np.arange(len(y)) % FOLDS
        return fold

    def slots_of(self, t):
        ranked = sorted(range(len(self.labels)), key=lambda s: mix(256 * t + s))
        return sorted(ranked[:OF_TREE])

    @staticmethod
    def equal(cells):
        """What is missing is equal to what is missing."""
        return np.where(np.isnan(cells), np.inf, cells)

    def few_values(self, cells):
        """The values of the slots of prefix cells [n, S] that have few."""
        values = [np.unique(column) for column in self.equal(cells).T]
        return {s: own for s, own in enumerate(values)
                if 1 < len(own) <= len(cells) // LEAST_NUMBERS}

    def knows(self, cells):
        """Whether the prefix has all cells [S] of a row in those slots."""
        return all(self.equal(cells)[s] in own for s, own in self.few.items())

    def share(self, most, known):
        """How much of the logits the trees say, where regressions have this quality."""
        loss = max(np.log(self.classes) - known, 1e-6)
        return min(max(SLOPE * (1 - self.loss / loss), 0), most)

    def __call__(self, codes):
        """ln K p [n, K] of rows."""
        bins = self.bins(codes)
        total = sum(self.channels(start[None]) + sum(tree(bins) for tree in trees)
                    for start, trees in self.folds_kept)
        return log_softmax(SHARPER * self.sharpness * self.scores(total / FOLDS)) \
            + np.log(self.classes)


class NumberTrees(Trees):
    """Trees of the scaled targets z [n] of the prefix with cells [n, S]; a process says left_out
    [n] of each without its own target.
    """

    def __init__(self, cards, codes, cells, z, left_out):
        self.cards, self.labels = cards, [card.categorical for card in cards]
        self.few = self.few_values(cells)
        self.edges = [self.cut(codes[:, s]) for s in range(len(cards))]
        z, bins, n = np.clip(z, -FARTHEST, FARTHEST), self.bins(codes), len(codes)
        fold = self.folds(bins, z)
        unit = 2.0 ** (25 - int(np.ceil(np.log2(n))))
        losses, folds = np.zeros(ROUNDS + 1), []
        for f in range(FOLDS):
            given = fold != f
            start = np.rint(z[given] * 2 ** 20).sum() / 2 ** 20 / given.sum()
            score, trees = np.full(n, start), []
            for t in range(ROUNDS + 1):
                error = np.clip(score - z, -32, 32)
                losses[t] += np.rint(error[~given] ** 2 / 2 * 2 ** 20).sum()
                if t == ROUNDS:
                    break
                slope = np.rint(error[given, None] * unit).astype(np.int64)
                trees.append(Tree(self.labels, bins[given], slope,
                                  np.full(slope.shape, int(unit)), unit, self.slots_of(t),
                                  LEAST_NUMBERS))
                score = score + trees[-1](bins)[:, 0]
            folds.append((start, trees))
        self.rounds = int(losses.argmin())
        self.loss = losses.min() / 2 ** 20 / n
        self.folds_kept = [(start, trees[:self.rounds]) for start, trees in folds]
        self.known = np.rint((left_out - z) ** 2 / 2 * 2 ** 20).sum() / 2 ** 20 / n

    def share(self, most, cells):
        """How far the mean of the answer to a row with cells [S] moves to what the trees say."""
        return self.would_share(most) if self.knows(cells) else 0

    def would_share(self, most):
        """The same of rows that are not of a new group."""
        if self.rounds == 0 or self.known == 0:
            return 0
        return min(max(0.5 + SLOPE_OF_SHARE * (1 - self.loss / self.known), 0), most)

    def __call__(self, codes):
        """Scaled targets [n] of rows."""
        bins = self.bins(codes)
        return sum(start + sum((tree(bins)[:, 0] for tree in trees), np.zeros(len(bins)))
                   for start, trees in self.folds_kept) / FOLDS


class FewValues:
    """Where the targets y [n] of the prefix have few values: the weights of what the process and
    the second regression say, for which their sum is nearest to the scaled targets; said [n, 2] of
    each row without its own target.
    """

    LEAST_ROWS = 256

    def __init__(self, y, targets, said):
        self.weights = None
        if len(y) < self.LEAST_ROWS or not 2 <= len(np.unique(y)) <= min(len(y) // 8, 16):
            return

        def loss(w):
            return np.sum((targets - said @ w) ** 2)

        corners, found = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [np.zeros(2)]
        for a, b in zip(corners, np.roll(corners, 1, axis=0)):
            along = said @ (b - a)
            if along @ along > 0:
                found.append(a + (b - a) * np.clip(along @ (targets - said @ a)
                                                   / (along @ along), 0, 1))
        inside = np.linalg.lstsq(said, targets, rcond=None)[0]
        if inside.min() >= 0 and inside.sum() <= 1:
            found.append(inside)
        self.weights = min(found, key=loss)


def pulled(weights, means, sds, wanted):
    """Weights of a mixture times exp(eta mean), so that its mean is wanted, as far as |eta| of
    three inverse deviations takes it.
    """
    mean = weights @ means
    away = means - mean

    def tilted(eta):
        out = weights * np.exp(eta * away - np.max(eta * away[weights > 0]))
        return out / out.sum()

    high = 3 / np.sqrt(weights @ (sds ** 2 + away ** 2))
    low = -high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tilted(middle) @ away < wanted - mean else (low, middle)
    return tilted((low + high) / 2)
