"""Classical predictors with predictive densities, for comparison with a model on the same split.

Every baseline has `fit(x, y)` and `predict(x)` returning Gaussian (mean, sd) as float64 arrays;
features are the standardised design of `Design`, targets are standardised by the context.
"""
import math
import warnings

import numpy as np


class Design:
    """Numeric design matrix of a table: standardised numbers, missing flags, one-hot categories."""

    def __init__(self, x, categorical):
        self.parts = []
        for j in range(x.shape[1]):
            column = x[:, j]
            present = column[~np.isnan(column)]
            if categorical[j]:
                self.parts.append(("levels", j, np.unique(present)[:20]))
                continue
            sd = present.std() if len(present) else 0.0
            if sd > 0:
                self.parts.append(("number", j, (present.mean(), sd)))
            if 0 < len(present) < len(column):
                self.parts.append(("missing", j, None))

    def __call__(self, x):
        out = [np.zeros(len(x))]
        for kind, j, value in self.parts:
            column = x[:, j]
            if kind == "levels":
                out.extend((column == level).astype(float) for level in value)
            elif kind == "missing":
                out.append(np.isnan(column).astype(float))
            else:
                # Clipped: a column nearly constant in the context would give enormous queries.
                out.append(np.clip(np.nan_to_num((column - value[0]) / value[1]), -5, 5))
        return np.stack(out, 1)


class Constant:
    """The Gaussian of the context targets."""

    def fit(self, x, y):
        self.mean, self.sd = y.mean(), max(y.std() * math.sqrt((len(y) + 1) / (len(y) - 1)), 1e-3)

    def predict(self, x):
        return np.full(len(x), self.mean), np.full(len(x), self.sd)


class BayesianRidge:
    """Linear regression with a Gaussian prior; weight and noise scales by evidence on a grid
    (Bishop 2006, section 3.5).
    """

    def fit(self, x, y):
        self.mean_y = y.mean()
        n = len(y)
        u, s, vt = np.linalg.svd(np.concatenate([x, np.ones((n, 1))], 1), full_matrices=False)
        uy = u.T @ (y - self.mean_y)
        rest = ((y - self.mean_y) ** 2).sum() - (uy ** 2).sum()
        best = -np.inf
        for ratio in np.logspace(-4, 6, 41):      # noise variance over weight variance
            shrunk = s ** 2 / ratio + 1
            noise = max((rest + (uy ** 2 / shrunk).sum()) / n, 1e-8)
            evidence = -0.5 * (n * math.log(noise) + np.log(shrunk).sum())
            if evidence > best:
                best, self.noise, self.ratio = evidence, noise, ratio
        self.vt, self.inner = vt, 1 / (s ** 2 + self.ratio)
        self.weights = vt.T @ (self.inner * s * uy)
        self.features = x.shape[1]

    def predict(self, x):
        x = np.concatenate([x, np.ones((len(x), 1))], 1)
        inside = x @ self.vt.T
        outside = (x ** 2).sum(1) - (inside ** 2).sum(1)
        spread = (inside ** 2 * self.inner).sum(1) + np.maximum(outside, 0) / self.ratio
        return self.mean_y + x @ self.weights, np.sqrt(self.noise * (1 + spread))


class NearestNeighbours:
    """Mean of k neighbours; k and the standard deviation by leave-one-out on the context."""

    def fit(self, x, y):
        self.x, self.y = x, y
        order = self.distances(x, leave_out=True).argsort(1)
        best = np.inf
        for k in (1, 2, 3, 5, 8, 13, 21, 34):
            if k < len(y):
                error = math.sqrt(((y[order[:, :k]].mean(1) - y) ** 2).mean())
                if error < best:
                    best, self.k = error, k
        self.sd = max(best, 1e-3)

    def distances(self, x, leave_out=False):
        d = (x ** 2).sum(1)[:, None] + (self.x ** 2).sum(1) - 2 * x @ self.x.T
        if leave_out:
            np.fill_diagonal(d, np.inf)
        return d

    def predict(self, x):
        near = self.distances(x).argsort(1)[:, :self.k]
        return self.y[near].mean(1), np.full(len(x), self.sd)


class Forest:
    """Random forest (scikit-learn) with the out-of-bag residual standard deviation."""

    def fit(self, x, y):
        from sklearn.ensemble import RandomForestRegressor

        self.forest = RandomForestRegressor(200, min_samples_leaf=2, oob_score=True, random_state=0,
                                            max_features=0.5)
        self.forest.fit(x, y)
        self.sd = max(float(np.std(self.forest.oob_prediction_ - y)), 1e-3)

    def predict(self, x):
        return self.forest.predict(x), np.full(len(x), self.sd)


class GaussianProcess:
    """RBF kernel with one lengthscale per column, maximum marginal likelihood (scikit-learn)."""

    def fit(self, x, y):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        kernel = (ConstantKernel(1.0) * RBF(np.full(x.shape[1], 3.0), (0.05, 1e3))
                  + WhiteKernel(0.1, (1e-5, 10)))
        with warnings.catch_warnings():
            # A lengthscale at its bound is a column without influence.
            warnings.simplefilter("ignore")
            self.gp = GaussianProcessRegressor(kernel, alpha=1e-8).fit(x, y)

    def predict(self, x):
        return self.gp.predict(x, return_std=True)


class Boosted:
    """Boosted trees (LightGBM, its defaults but for small tables) with the residual standard
    deviation of five folds.
    """

    FOLDS = 5

    @staticmethod
    def make():
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=200, learning_rate=0.05, min_child_samples=5,
                             num_leaves=15, random_state=0, n_jobs=1,
                             deterministic=True, force_row_wise=True, verbose=-1)

    def fit(self, x, y):
        fold = np.random.default_rng(0).permutation(len(y)) % self.FOLDS
        residual = np.zeros(len(y))
        for k in range(self.FOLDS):
            out = fold == k
            residual[out] = y[out] - self.make().fit(x[~out], y[~out]).predict(x[out])
        self.trees = self.make().fit(x, y)
        self.sd = max(float(residual.std()), 1e-3)

    def predict(self, x):
        return self.trees.predict(x), np.full(len(x), self.sd)


BASELINES = {"constant": Constant, "ridge": BayesianRidge, "neighbours": NearestNeighbours}
SLOW = {"forest": Forest, "boosted": Boosted, "gaussian process": GaussianProcess}
