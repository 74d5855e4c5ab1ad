"""What a logistic regression of the prefix says about every row of a classifier
(docs/model-format.md, section 5, "Logistic").

Regressions of indicators (ridge.py) order classes well, but what a multiple of their answers is
worth as a probability differs from class to class and near the borders. A likelihood has no such
trouble: where classes are separated by planes, nothing in closed form is better.

All in float64: the penalty is the best of a grid, and which is best should not hang on rounding.
"""
import torch
from torch.nn.functional import one_hot

from .clip import soft_clip

# from the largest on, each fit starts where the last one ended
PENALTIES = [4.0 ** k for k in range(3, -4, -1)]
STEPS = 6                # of Newton, with the curvature at the start of a penalty
HALVINGS = 10            # of a step that makes things worse
WORSE = 1 + 1e-9         # by which rounding alone does not change a sum of losses
SMALLEST_REST = 1e-6     # of one minus a prefix row's leverage times its weight


class Fit:
    """The regression of classes y [B, n] on designs u [B, n, D]; known [B, C]: the task has the
    class, log_share [B, C]: offsets.

    Of the penalty under which the rows, each left out, have the largest probability these are kept:
    weights `kept` [B, D, C], log_p [B, n, C] of the rows left out, and quality [B], the mean of
    those of their classes.
    """

    def __init__(self, u, y, known, log_share):
        self.u, self.known, self.log_share = u, known, log_share
        self.onehot = one_hot(y, known.shape[1]).to(u.dtype)
        classes = known.sum(1)
        self.evenness = (classes / (classes - 1).clamp_min(1)).to(u.dtype)[:, None, None]
        # Tasks have different numbers of classes; matrices exist for those that are there.
        self.task, self.index = known.nonzero(as_tuple=True)
        self.weights = u.new_zeros(len(u), u.shape[2], known.shape[1])
        self.scores = log_share[:, None].expand(-1, u.shape[1], -1)
        self.quality = None
        self.descend()

    def normalise(self, scores):
        return scores.masked_fill(~self.known[:, None], float("-inf")).log_softmax(-1)

    def pairs(self, v):
        """v [B, m, C] of the classes that are there, [T, m]."""
        return v.transpose(1, 2)[self.task, self.index]

    def spread(self, v):
        """The inverse of `pairs`, with zeros."""
        out = v.new_zeros(len(self.known), self.known.shape[1], v.shape[1])
        out[self.task, self.index] = v
        return out.transpose(1, 2)

    def loss(self, scores, weights, penalty):
        own = self.normalise(scores).masked_fill(~self.known[:, None], 0) * self.onehot
        return 0.5 * penalty * weights.square().sum((1, 2)) - own.sum((1, 2))

    def curvature(self, p):
        """U'WU of every class, [T, D, D], and W [T, n]: p (1 - p) K / (K - 1), exact where all
        classes are as likely and where there are two.
        """
        w = self.pairs(p * (1 - p) * self.evenness)
        u = self.u[self.task]
        return (u * w[..., None]).transpose(1, 2) @ u, w

    def step(self, p, factor, penalty):
        """One step; returns the probabilities after it."""
        gradient = self.u.transpose(1, 2) @ (self.onehot - p) - penalty * self.weights
        d = self.spread(torch.cholesky_solve(self.pairs(gradient)[..., None], factor)[..., 0])
        change = self.u @ d
        before = self.loss(self.scores, self.weights, penalty)
        t = torch.ones_like(before)[:, None, None]
        for _ in range(HALVINGS):
            worse = (self.loss(self.scores + t * change, self.weights + t * d, penalty)
                     > before * WORSE)
            if not worse.any():
                break
            t = torch.where(worse[:, None, None], t / 2, t)
        self.weights = self.weights + t * d
        self.scores = self.scores + t * change
        return self.normalise(self.scores).exp()

    def without_own(self, p, gram, w, penalty):
        """Log probabilities [B, n, C] of every row under the fit without it, to first order."""
        u = self.u[self.task]
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram + penalty * self.unit))
        leverage = ((u @ inverse) * u).sum(-1)
        pull = self.spread(leverage / (1 - leverage * w).clamp_min(SMALLEST_REST))
        return self.normalise(self.scores - pull * (self.onehot - p))

    def descend(self):
        self.unit = torch.eye(self.u.shape[2], dtype=self.u.dtype, device=self.u.device)
        p = self.normalise(self.scores).exp()
        gram, w = self.curvature(p)
        for penalty in PENALTIES:
            factor = torch.linalg.cholesky(gram + penalty * self.unit)
            for _ in range(STEPS):
                p = self.step(p, factor, penalty)
            gram, w = self.curvature(p)
            self.keep_better(self.without_own(p, gram, w, penalty))

    def keep_better(self, log_p):
        quality = (log_p.masked_fill(~self.known[:, None], 0) * self.onehot).sum(2).mean(1)
        if self.quality is None:
            self.quality, self.log_p, self.kept = quality, log_p, self.weights
            return
        better = quality > self.quality
        wide = better[:, None, None]
        self.quality = torch.where(better, quality, self.quality)
        self.log_p = torch.where(wide, log_p, self.log_p)
        self.kept = torch.where(wide, self.weights, self.kept)

    def __call__(self, u):
        """Log probabilities [B, m, C] of rows that the fit has not seen, u [B, m, D]."""
        return self.normalise(u @ self.kept + self.log_share[:, None])


@torch.no_grad()
def opinions(u, y, classes, most, prefix, clip):
    """[B, N, most + 1]: for every class the log of how much more probable it is than by chance
    (clipped, 0 for classes the task lacks), and the same of the prefix rows' own classes in the
    mean; prefix rows are left out of their fit.

    u [B, N, D] designs, y [B, N] indices of classes, classes [B] how many there are.
    """
    known = torch.arange(most, device=y.device) < classes[:, None]
    count = one_hot(y[:, :prefix], most).sum(1)
    log_share = ((count + 0.5) / (prefix + 0.5 * classes[:, None])).to(u.dtype).log()
    fit = Fit(u[:, :prefix], y[:, :prefix], known, log_share)
    chance = classes.to(u.dtype).log()[:, None]
    said = torch.cat([fit.log_p, fit(u[:, prefix:])], 1) + chance[..., None]
    said = torch.where(known[:, None], soft_clip(said, clip), torch.zeros_like(said))
    return torch.cat([said, (fit.quality[:, None] + chance).expand(-1, u.shape[1])[..., None]], 2)


def opinions_width(classes):
    """How many numbers of a row the regression gives, with room for so many classes."""
    return classes + 1
