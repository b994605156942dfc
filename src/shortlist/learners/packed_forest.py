"""A fitted forest in a few arrays: small files, written, read and walked in little time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._core import trees as core
from .._core.arrays import Doubles

_AT_ONCE = 1 << 16  # rows that are made dense together


class PackedForest:
    """The trees of a fitted forest with two classes, as a classifier."""

    classes_ = np.array([0, 1])

    def __init__(self, forest: Any) -> None:
        trees = [core.sklearn_tree(each.tree_, 1) for each in forest.estimators_]
        self.nodes, self.roots = core.packed(trees, [0] * len(trees))
        self.n_features_in_ = forest.n_features_in_

    def trees(self) -> list[core.GrownTree]:
        """Return the trees one by one; leaves have the share of the second class."""
        return core.unpacked(self.nodes, self.roots)

    def predict_proba(self, X: Any) -> Doubles:
        """Return the probabilities of both classes."""
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} columns; a forest of {self.n_features_in_} asks.")
        starts = range(0, X.shape[0], _AT_ONCE)
        parts = [self._shares(X[start : start + _AT_ONCE]) for start in starts]
        shares = np.concatenate([np.zeros(0), *parts])
        return np.column_stack([1 - shares, shares])

    def _shares(self, X: Any) -> Doubles:
        numbers = X.toarray() if sparse.issparse(X) else np.asarray(X)
        numbers = np.ascontiguousarray(numbers, dtype=np.float32).astype(np.float64)
        return core.mean_leaves(self.nodes, self.roots, numbers)

    @property
    def is_sound(self) -> bool:
        """Whether every walk ends, and only asks for numbers that exist."""
        starts = np.append(self.roots, self.nodes.size)
        if self.nodes.dtype != core.NODE or starts.dtype != np.int64 or starts[0] != 0:
            return False
        grown = self.trees() if (np.diff(starts) > 0).all() else []
        return bool(grown) and all(core.is_sound(*tree[:3], self.n_features_in_) for tree in grown)


def packed_if_forest(model: Any) -> Any:
    """Pack a fitted forest; other models stay as they are."""
    return PackedForest(model) if hasattr(model, "estimators_") else model


def n_averaged(model: Any) -> int:
    """Return how many trees a probability is the mean of; 0 for models without steps."""
    return len(getattr(model, "roots", ()))
