"""Rankers around a hit: which other cases are like it, and unlike ordinary ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from .._core.arrays import Floats

__all__ = ["RANKERS", "Reference"]

#: The two ways to look around a hit.
RANKERS = ("direction", "density")
_NEIGHBORS = 10
_SHRINKAGE = 0.1
_TINY = 1e-9


class Reference:
    """Ordinary cases: their centre, spread and density, with which hits are compared."""

    def __init__(self, X: Floats) -> None:
        self.center = X.mean(axis=0)
        self.scale = np.maximum(X.std(axis=0), _TINY)
        z = self._standard(X)
        covariance = np.cov(z, rowvar=False, ddof=0).reshape(z.shape[1], z.shape[1])
        shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * np.eye(z.shape[1])
        self.precision = np.linalg.inv(shrunk)
        self.tree = cKDTree(z)

    def _standard(self, X: Floats) -> Floats:
        return (X - self.center) / self.scale

    def rank(self, ranker: str, X: Floats, hits: Floats, misses: Floats) -> Floats:
        """Score cases by their likeness to hits: along a direction, or by densities."""
        z, near = self._standard(X), self._standard(hits)
        if ranker == "direction":
            return z @ (self.precision @ near.mean(axis=0))
        n_neighbors = min(_NEIGHBORS, self.tree.n)
        far = self.tree.query(z, k=[n_neighbors])[0][:, 0]
        if len(misses):
            far = np.minimum(far, cKDTree(self._standard(misses)).query(z)[0])
        return np.log(far + _TINY) - np.log(cKDTree(near).query(z)[0] + _TINY)
