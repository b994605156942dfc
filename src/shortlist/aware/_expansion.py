"""Scores that are sums of kernels around some rows of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from .._core.validation import check_number, check_option

__all__ = ["Expansion", "Kernel", "find_gamma", "mean_of"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_CHUNK = 1 << 14


def find_gamma(gamma: Any, X: Floats) -> float:
    """Return the coefficient of a kernel, where words mean what they mean to scikit-learn's SVC."""
    if isinstance(gamma, str):
        check_option("gamma", gamma, ("scale", "auto"))
        variance = X.var() if gamma == "scale" else 1.0
        return 1 / (X.shape[1] * variance) if variance > 0 else 1.0
    value = float(check_number("gamma", gamma))
    if value < 0:
        raise ValueError(f"gamma must not be negative; got {gamma!r}.")
    return value


class Kernel(NamedTuple):
    """A kernel of scikit-learn's SVC, with its parameters."""

    name: str
    gamma: float

    def between(self, X: Floats, Y: Floats) -> Floats:
        """Return the kernel of each row of `X` (rows) with each of `Y` (columns)."""
        # The parameters of scikit-learn's SVC, which differ from those of its kernel functions.
        params = {"gamma": self.gamma, "degree": 3, "coef0": 0.0}
        return pairwise_kernels(X, Y, metric=self.name, filter_params=True, **params)

    def terms(self, vectors: Floats, coefficients: Floats, X: Floats) -> Floats:
        """Return what each vector (rows) adds to the sum of each row of `X` (columns)."""
        terms = self.between(vectors, X)
        terms *= coefficients[:, np.newaxis]  # in place: this may be most of the memory
        return terms

    def sums(self, X: Floats, vectors: Floats, coefficients: Floats) -> Floats:
        """Return the sum over the vectors for each row of `X`, some rows at a time."""
        starts = range(0, len(X), _CHUNK)
        parts = [self.between(X[i : i + _CHUNK], vectors) @ coefficients for i in starts]
        return np.concatenate(parts)


class Expansion(NamedTuple):
    """Rows of the data, and the coefficients of the kernels around them."""

    rows: Places
    coefficients: Floats


def mean_of(expansions: Sequence[Expansion]) -> Expansion:
    """Return the expansion whose sum is the mean of theirs."""
    rows = np.concatenate([part.rows for part in expansions])
    coefficients = np.concatenate([part.coefficients for part in expansions])
    return Expansion(rows, coefficients / len(expansions))
