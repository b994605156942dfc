"""A model whose posteriors are its input: tests can state them directly."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Posteriors(ClassifierMixin, BaseEstimator):
    """Return the first columns of `X` as probabilities."""

    def __init__(self, labels=(0, 1, 2)):
        self.labels = labels

    def fit(self, X, y=None):
        """Learn nothing."""
        self.classes_ = np.array(self.labels)
        return self

    def predict_proba(self, X):
        """Return the posteriors that were passed."""
        return np.asarray(X, dtype=float)[:, : len(self.labels)]


def draw(n, rng, labels=(0, 1, 2), decimals=None):
    """Draw posteriors of one common class and rare ones, and labels that agree with them."""
    X = rng.dirichlet([20, *[0.5] * (len(labels) - 1)], size=n)
    if decimals is not None:
        X = np.round(X, decimals)
        X[:, 0] = 1 - X[:, 1:].sum(axis=1)
    steps = X.cumsum(axis=1)
    y = np.array(labels)[
        (rng.uniform(size=n)[:, None] > steps).sum(axis=1).clip(0, len(labels) - 1)
    ]
    y[: len(labels)] = labels
    return X, y
