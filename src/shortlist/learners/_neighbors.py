"""What both nearest-neighbour classifiers share: scaling, checks and the search."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from ._search import NeighborSearch

__all__ = ["ScaledNeighbors", "check_enough_rows", "check_n_neighbors"]

Floats = NDArray[np.float64]


class ScaledNeighbors:
    """A search among training rows, after dividing features by their standard deviation."""

    def __init__(self, X: Any, *, scale: bool, algorithm: str) -> None:
        self.factors = _scale_factors(X) if scale else None
        self.search = NeighborSearch(self._scaled(X), algorithm=algorithm)
        self.n_features = X.shape[1]

    def query(self, X: Any, k: int) -> tuple[Floats, NDArray[np.intp]]:
        """Return distances and rows of the `k` nearest training rows of each row of `X`."""
        return self.search.query(self._scaled(X), k)

    def query_training(self, k: int) -> tuple[Floats, NDArray[np.intp]]:
        """Return distances and rows of the `k` nearest *other* training rows of each."""
        return self.search.query_training(k)

    def _scaled(self, X: Any) -> Any:
        if self.factors is None:
            return X
        return csr_array(X.multiply(self.factors)) if issparse(X) else X * self.factors


def _scale_factors(X: Any) -> Floats:
    """Return 1 / standard deviation (n - 1 in its denominator), and 0 for a constant feature."""
    if issparse(X):
        variances = mean_variance_axis(X, axis=0)[1] * X.shape[0] / max(X.shape[0] - 1, 1)
    else:
        variances = np.var(X, axis=0, ddof=min(1, len(X) - 1))
    deviations = np.sqrt(variances)
    # Rounding leaves a constant feature with a tiny deviation, which must not become a huge factor.
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if issparse(largest) else np.asarray(largest).ravel()
    constant = deviations <= 1e-12 * largest
    return np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviations))


def check_n_neighbors(name: str, value: Any) -> int:
    """Return a number of neighbours as an int of at least 1."""
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    if not whole or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    return int(value)


def check_enough_rows(k: int, n_rows: int) -> None:
    """Complain when there is no neighbour k + 1, whose distance scales the others."""
    if k + 1 > n_rows:
        raise ValueError(
            f"n_neighbors={k} needs at least {k + 1} training rows, since the distance of "
            f"neighbour k + 1 scales weights; got n_samples = {n_rows}. Use a smaller n_neighbors."
        )
