"""Weighted sums of columns along which a target is a wave (docs/sums.md, "The basis"): the axes
that a process has beside its columns (docs/model-format.md, section 5, "Process").

Fixed candidates are screened by how much their sine and cosine say of what a line leaves of the
targets, the best ones moved by Levenberg and Marquardt's steps (Marquardt 1963), and the best of
these is taken if it says more than its parameters cost. Weights are rounded, so that the last
digits of sums do not matter. NumPy, task by task.
"""

import math

import numpy as np

RANDOM, ALONG = 256, 8           # candidates by chance, and along the slope of the targets
KEPT, STEPS = 4, 8               # candidates that are moved, and how often
STREAM = 5                       # of random numbers
SCREENED = 512                   # rows that candidates are compared on, at most
PER_PARAMETER = 16               # rows, at least
UNIT = 1024                      # weights are multiples of 1 / UNIT, ...
MOST_WEIGHT = 2.0 ** 14          # ... at most this
MOST_ANGLE = 2.0 ** 20
PENALTY, RIDGE = 0.1, 1e-6
WAVES = 8                        # of a direction, which later ones do not see


def uniform_pairs(direction, count):
    """[count, 2] numbers in (0, 1): Philox 4x32-10 (Salmon et al. 2011) of seed 0, steps 0 …
    count - 1 of one draw (docs/model-format.md, section 11).
    """
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    c = [np.full(count, direction, np.uint64), np.zeros(count, np.uint64),
         np.arange(count, dtype=np.uint64), np.full(count, STREAM, np.uint64)]
    key = [0, 0]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> half) ^ c[1] ^ np.uint64(key[0]), q & low,
             (p >> half) ^ c[3] ^ np.uint64(key[1]), p & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    words = [w.astype(np.float64) for w in
             (c[0] >> np.uint64(5), c[1] >> np.uint64(6), c[2] >> np.uint64(5),
              c[3] >> np.uint64(6))]
    return np.stack([(words[i] * 2.0 ** 26 + words[i + 1] + 0.5) / 2.0 ** 53 for i in (0, 2)], 1)


def regressed(design, y, penalty=PENALTY):
    gram = design.T @ design + penalty * np.eye(design.shape[1])
    return np.linalg.solve(gram, design.T @ y)


def left_by(design, y):
    return y - design @ regressed(design, y)


def lengths(at):
    """From a half to four as `at` goes from 0 to 3."""
    whole = np.floor(at)
    return (1 + at - whole) * 2.0 ** (whole - 1)


def candidates(slope, search):
    """[RANDOM + ALONG, F] frequency vectors."""
    pairs = uniform_pairs(search, RANDOM * len(slope))
    random = (pairs.sum(1) - 1).reshape(RANDOM, -1)
    random *= (lengths(3 * (np.arange(RANDOM) + 0.5) / RANDOM)
               / np.sqrt(np.square(random).sum(1)))[:, None]
    along = lengths(3 * np.arange(ALONG) / (ALONG - 1))[:, None] * slope
    return np.concatenate([random, along])


def screened(z, rest, vectors):
    """Which vectors' sine and cosine take most squares, best first."""
    rows = min(SCREENED, len(rest))
    chosen = np.arange(rows) * len(rest) // rows
    angle = z[chosen] @ vectors.T
    sine, cosine, rest = (v - v.mean(0) for v in (np.sin(angle), np.cos(angle), rest[chosen]))
    ss, sc, cc = (np.einsum("ij,ij->j", a, b) for a, b in
                  ((sine, sine), (sine, cosine), (cosine, cosine)))
    by_sine, by_cosine = sine.T @ rest, cosine.T @ rest
    gain = ((cc * by_sine ** 2 - 2 * sc * by_sine * by_cosine + ss * by_cosine ** 2)
            / np.maximum(ss * cc - sc ** 2, 1e-9))
    return np.argsort(-gain, kind="stable")[:KEPT]


def wave(z, rest, w):
    """(squares left, errors, design [n, 3] of a constant, a sine and a cosine, coefficients)."""
    angle = z @ w
    if not np.all(np.abs(angle) <= MOST_ANGLE):
        return math.inf, None, None, None
    design = np.stack([np.ones(len(angle)), np.sin(angle), np.cos(angle)], 1)
    k = regressed(design, rest, RIDGE)
    error = rest - design @ k
    return error @ error, error, design, k


def moved(z, rest, w):
    """(squares left, w) after the steps."""
    damping, here = 1e-2, wave(z, rest, w)
    for _ in range(STEPS):
        _, error, design, k = here
        slope = k[1] * design[:, 2] - k[2] * design[:, 1]
        jacobian = np.concatenate([slope[:, None] * z, design], 1)
        gram = jacobian.T @ jacobian
        gram += damping * np.diag(np.diag(gram) + 1e-6)
        next_w = w + np.linalg.solve(gram, jacobian.T @ error)[:len(w)]
        there = wave(z, rest, next_w)
        if there[0] < here[0]:
            w, here, damping = next_w, there, damping * 0.3
        else:
            damping *= 5
    return here[0], w


def smooth_rest(z, rest, w):
    """What a smooth function along w leaves; None where its sums are all the same."""
    score = z @ w
    sd = score.std()
    if not sd > 0:
        return None
    size = score / sd
    size = np.where(np.abs(size) <= 2, size,
                    np.sign(size) * (4 - 4 / np.maximum(np.abs(size), 1e-300)))
    angle = np.pi * (size + 4) / 8
    waves = [np.sin(k * angle) for k in range(1, WAVES + 1)]
    return left_by(np.stack([np.ones(len(score)), *waves, np.sin(score), np.cos(score)], 1), rest)


def says_more(z, before, after):
    """Whether squares sink by more than a direction's parameters, and the search, cost."""
    n, columns = z.shape
    cost = (columns + 2) / 2 * math.log(n) + 2 * math.sqrt(columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        return n / 2 * np.log(np.float64(before) / after) >= cost


def find(z, y, most):
    """[found, F] weights of the columns z [n, F], standard scores, for scaled targets y [n]."""
    columns, found = z.shape[1], []
    if columns < 2 or len(z) < PER_PARAMETER * (columns + 2):
        return np.zeros((0, columns))
    slope = regressed(z, y)
    norm = np.linalg.norm(slope)
    slope = slope / norm if norm > 0 else slope
    rest = left_by(np.concatenate([np.ones((len(y), 1)), z], 1), y)
    for search in range(2 * most):
        if len(found) == most:
            break
        vectors, least, best = candidates(slope, search), math.inf, None
        for i in screened(z, rest, vectors):
            squares, w = moved(z, rest, vectors[i])
            if squares < (1 - 1e-9) * least:
                least, best = squares, w
        if not says_more(z, np.sum((rest - rest.mean()) ** 2), least):
            break
        sd = (z @ best).std()
        if not (sd > 0 and np.all(np.abs(best / sd) <= MOST_WEIGHT)):
            break
        # A function of one column is no direction: that column is an axis as it is.
        along = smooth_rest(z, rest, best)
        alone = smooth_rest(z, rest, np.where(np.arange(columns) == np.argmax(np.abs(best)), best,
                                              0.0))
        if alone is not None and not says_more(z, alone @ alone, along @ along):
            rest = alone
            continue
        rest = along
        found.append(np.rint(best / sd * UNIT) / UNIT)
    return np.array(found).reshape(-1, columns)
