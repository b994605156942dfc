"""A problem whose optimal rule is known: rare items cluster inside the cloud of common ones.

Common items are standard normal in d dimensions; rare ones are normal with a smaller deviation s
around a point at distance m from the origin. The likelihood ratio falls with the distance from the
point m / (1 - s^2): the optimal rule flags an interval on a line and a disc in the plane. In the
plane, the square of that distance has a (scaled, noncentral) chi-squared distribution in both
classes and determines the likelihood ratio, which is all that `OptimalRule` needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shortlist import Capacity
from shortlist.theory import OptimalRule

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class KnownProblem:
    """The two classes, the share of rare items, and the capacity as a multiple of it."""

    dimension: int
    prevalence: float = 0.1
    multiple: float = 2
    distance: float = 1.0
    deviation: float = 0.4

    @property
    def capacity(self) -> Capacity:
        """The capacity as a share of all items."""
        return Capacity.fraction(Capacity.multiple(self.multiple).as_ratio(self.prevalence))

    @cached_property
    def optimal(self) -> OptimalRule:
        """The optimal rule, in terms of the number that determines the likelihood ratio."""
        m, s, d = self.distance, self.deviation, self.dimension
        rare, common = stats.norm(m, s), stats.norm()
        if d > 1:
            rare = stats.ncx2(d, ((m - self._centre) / s) ** 2, scale=s**2)
            common = stats.ncx2(d, self._centre**2)
        return OptimalRule(rare, common, prevalence=self.prevalence, capacity=self.capacity)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
        """Draw n independent items and their labels, 1 for the rare ones."""
        y = (rng.uniform(size=n) < self.prevalence).astype(np.int64)
        return self._place(rng.normal(size=(n, self.dimension)), y == 1), y

    def flag(self, X: Floats) -> Mask:
        """Return what the optimal rule flags."""
        if self.dimension == 1:
            return self.optimal.predict(X[:, 0])
        return self.optimal.predict((X[:, 0] - self._centre) ** 2 + (X[:, 1:] ** 2).sum(axis=1))

    def grid(self, n_each: int) -> Grid:
        """Return evenly spread points of both classes, to integrate over."""
        # In one dimension these are the middles of intervals of equal probability.
        uniform = (np.arange(n_each)[:, np.newaxis] + 0.5) / n_each
        if self.dimension > 1:
            uniform = stats.qmc.Sobol(self.dimension, rng=0).random(n_each)
        is_rare = np.repeat([False, True], n_each)
        X = self._place(np.tile(stats.norm.ppf(uniform), (2, 1)), is_rare)
        weights = np.where(is_rare, self.prevalence, 1 - self.prevalence) / n_each
        return Grid(X, is_rare, weights)

    @property
    def _centre(self) -> float:
        return self.distance / (1 - self.deviation**2)

    def _place(self, normal: Floats, is_rare: Mask) -> Floats:
        X = normal.copy()
        X[is_rare] *= self.deviation
        X[is_rare, 0] += self.distance
        return X


@dataclass(frozen=True)
class Grid:
    """Weighted points: sums over them approximate expectations with little noise."""

    X: Floats
    is_rare: Mask
    weights: Floats

    def probability(self, event: Mask) -> float:
        """Return the probability of an event."""
        return float(self.weights[event].sum())

    def adjusted_detection(self, flagged: Mask, capacity: Any) -> float:
        """Return the metric M of a rule."""
        rate, room = self.probability(flagged), capacity.as_fraction()
        detection = self.probability(flagged & self.is_rare) / self.probability(self.is_rare)
        return detection * min(1.0, room / rate if rate > 0 else 1.0)
