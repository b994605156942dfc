"""Rankers around a hit: which other cases are like it, and unlike ordinary ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from .._core.arrays import Floats, Rows

__all__ = ["RANKERS", "Surroundings"]

#: The two ways to look around a hit.
RANKERS = ("direction", "density")
_ORDINARY = 1_000  # cases of a period that stand for all
_NEIGHBORS = 10
_NEAREST = 800  # cases that are compared by densities
_SHRINKAGE = 0.1
_TRUSTED = 20  # misses that count as much as all ordinary cases
_TINY = 1e-9


class Surroundings:
    """The cases of a period, with the centre, spread and density of ordinary ones.

    Parameters
    ----------
    X : ndarray of shape (n_items, n_features)
        The cases.
    rng : Generator
        Draws some of them, which stand for ordinary cases.
    """

    def __init__(self, X: Floats, rng: np.random.Generator) -> None:
        sample = rng.choice(len(X), min(len(X), _ORDINARY), replace=False)
        self._center = X[sample].mean(axis=0)
        self._scale = np.maximum(X[sample].std(axis=0), _TINY)
        self._cases = self._standard(X)
        self._ordinary = self._cases[sample]
        n_features = X.shape[1]
        spread = np.cov(self._ordinary, rowvar=False, ddof=0).reshape(n_features, n_features)
        self._covariance = (1 - _SHRINKAGE) * spread + _SHRINKAGE * np.eye(n_features)

    def rank(self, ranker: str, free: Rows, hits: Floats, misses: Floats) -> Rows:
        """Return free cases, those most like the hits first."""
        z, near, far = self._cases[free], self._standard(hits), self._standard(misses)
        if ranker == "direction":
            return free[np.argsort(-self._along(z, near, far), kind="stable")]
        return free[self._by_density(z, near, far)]

    def _standard(self, X: Floats) -> Floats:
        return (X - self._center) / self._scale

    def _along(self, z: Floats, hits: Floats, misses: Floats) -> Floats:
        """Score along the direction from ordinary cases, and from misses, to hits."""
        toward: Floats = hits.mean(axis=0)
        if len(misses):
            toward = toward - len(misses) / (len(misses) + _TRUSTED) * misses.mean(axis=0)
        return np.asarray(z @ np.linalg.solve(self._covariance, toward))

    def _by_density(self, z: Floats, hits: Floats, misses: Floats) -> Rows:
        """Order the nearest cases by how much closer they are to hits than to anything else."""
        distances = cdist(z, hits).min(axis=1)
        nearest = np.argsort(distances, kind="stable")[:_NEAREST]
        n_neighbors = min(_NEIGHBORS, len(self._ordinary))
        others = cdist(z[nearest], self._ordinary)
        away = np.partition(others, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
        if len(misses):
            away = np.minimum(away, cdist(z[nearest], misses).min(axis=1))
        ratios = (away + _TINY) / (distances[nearest] + _TINY)
        return nearest[np.argsort(-ratios, kind="stable")]
