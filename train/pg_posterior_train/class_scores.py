"""Scores of classifiers and classical ones to hold them against. Needs NumPy; scikit-learn adds
logistic regression and a random forest.
"""
from importlib.util import find_spec

import numpy as np

SMALLEST = 0.002  # no baseline pays more than ln(1/0.002) for one row
LEVELS = 10       # confidence levels of the calibration error


# Baselines ----------------------------------------------------------------------------------------


class Frequencies:
    """The shares of the classes in the context."""

    def fit(self, x, y, classes):
        self.share = (np.bincount(y, minlength=classes) + 1) / (len(y) + classes)

    def predict(self, x):
        return np.tile(self.share, (len(x), 1))


class Sklearn:
    """A classifier of scikit-learn; the context has every class."""

    def fit(self, x, y, classes):
        self.classes = classes
        self.model = self.make(y) if len(set(y)) > 1 else None
        if self.model is not None:
            self.model.fit(x, y)

    def predict(self, x):
        if self.model is None:
            return np.ones((len(x), 1))
        return self.model.predict_proba(x)


class Logistic(Sklearn):
    """Multinomial logistic regression, the penalty by five-fold cross-validation where every class
    has five rows.
    """

    @staticmethod
    def make(y):
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV

        if np.bincount(y).min() < 5:
            return LogisticRegression(C=1.0, max_iter=500)
        return GridSearchCV(LogisticRegression(max_iter=500), {"C": np.logspace(-2, 2, 5)}, cv=5,
                            scoring="neg_log_loss")


class Forest(Sklearn):
    """Random forest of 300 trees whose leaves hold at least two rows."""

    @staticmethod
    def make(y):
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(300, min_samples_leaf=2, random_state=0)


def class_baselines():
    """Those that can be had here."""
    return {"frequencies": Frequencies,
            **({"logistic": Logistic, "forest": Forest} if find_spec("sklearn") else {})}


# Scores -------------------------------------------------------------------------------------------


def score(p, y):
    """Scores of probabilities p [M, K] at classes y [M], and the pairs (confidence, right) for
    calibration.
    """
    p = np.maximum(p, 1e-300)
    right = p.argmax(1) == y
    onehot = np.eye(p.shape[1])[y]
    return dict(log_loss=float(-np.log(p[np.arange(len(y)), y]).mean()),
                accuracy=float(right.mean()),
                brier=float(((p - onehot) ** 2).sum(1).mean())), np.stack([p.max(1), right], 1)


def calibration_error(pairs):
    """Expected calibration error: mean distance of confidence and accuracy over bins of confidence,
    weighted by their rows.
    """
    place = np.minimum((pairs[:, 0] * LEVELS).astype(int), LEVELS - 1)
    return float(sum(abs(pairs[place == b].mean(0) @ (1, -1)) * (place == b).mean()
                     for b in range(LEVELS) if (place == b).any()))


def baseline_probabilities(make, design, x, y, queries, classes):
    """Probabilities [M, K] of a baseline: design(x) [n, F] and classes y [n] of the context,
    design(queries) [M, F].
    """
    baseline = make()
    baseline.fit(design(x), y, classes)
    q = np.maximum(baseline.predict(design(queries)), SMALLEST)
    return q / q.sum(1, keepdims=True)


def summarise(scores, pairs):
    """Means over splits and their standard errors; scores and pairs map a predictor to one entry
    for every split.
    """
    out = {}
    for name, rows in scores.items():
        out[name] = {key: float(np.mean([r[key] for r in rows])) for key in rows[0]}
        out[name]["log_loss_error"] = float(np.std([r["log_loss"] for r in rows])
                                            / np.sqrt(len(rows)))
        out[name]["calibration_error"] = calibration_error(np.concatenate(pairs[name]))
        out[name]["splits"] = len(rows)
        if name != "model":
            gain = np.array([b["log_loss"] - m["log_loss"] for b, m in zip(rows, scores["model"])])
            out[name]["behind_model"] = float(gain.mean())
            out[name]["behind_model_error"] = float(gain.std() / np.sqrt(len(gain)))
    return out
