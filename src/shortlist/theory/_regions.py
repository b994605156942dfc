"""Regions of the real line where the ratio of two densities exceeds a level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from .._core.arrays import Floats

Interval1D = tuple[float, float]

_SMALLEST_TAIL = 1e-13  # probability beyond the outermost points of the grid
_GRID_POINTS = 1501  # between the quantiles of 1 % and 99 %
_MOST_CUTS = 40
_ROUNDING = 1e-13
_PARTS = np.linspace(0, 1, 65)


class LikelihoodRatio:
    """The log ratio of two densities on the real line, and the regions where it exceeds a level.

    The turning points of the ratio are found once. Between neighbouring knots the ratio is then
    monotone and crosses every level at most once: narrow intervals are not missed.
    """

    def __init__(self, rare: Any, common: Any) -> None:
        self.rare, self.common = rare, common
        grid = _grid(rare, common)
        self.knots = np.unique(np.concatenate([grid, _turning_points(self.log, grid)]))
        self._log_at_knots = self.log(self.knots)
        self.support = (
            float(min(rare.support()[0], common.support()[0])),
            float(max(rare.support()[1], common.support()[1])),
        )

    def log(self, x: Any) -> Floats:
        """Return log(f0 / f1), and minus infinity where both densities are 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.asarray(self.rare.logpdf(x)) - np.asarray(self.common.logpdf(x))
        return np.where(np.isnan(ratio), -np.inf, ratio)

    def region_above(self, log_level: float) -> list[Interval1D]:
        """Return the disjoint intervals, in order, where the log ratio exceeds `log_level`."""
        inside = self._log_at_knots > log_level
        changes = np.flatnonzero(inside[1:] != inside[:-1])
        edges = self._crossings(self.knots[changes], self.knots[changes + 1], log_level)
        ends = [
            *([self.support[0]] if inside[0] else []),
            *edges.tolist(),
            *([self.support[1]] if inside[-1] else []),
        ]
        return list(zip(ends[::2], ends[1::2], strict=True))

    def _crossings(self, left: Floats, right: Floats, log_level: float) -> Floats:
        """Cut all brackets into many parts at once, again and again.

        Only comparisons are needed, and jumps are allowed.
        """
        starts_inside, brackets = self.log(left) > log_level, np.arange(left.size)
        for _ in range(_MOST_CUTS):
            points = left[:, np.newaxis] + (right - left)[:, np.newaxis] * _PARTS
            is_inside = self.log(points.ravel()).reshape(points.shape) > log_level
            has_crossed = is_inside != starts_inside[:, np.newaxis]
            has_crossed[:, 0], has_crossed[:, -1] = False, True
            first, before = np.argmax(has_crossed, axis=1), (left, right)
            left, right = points[brackets, first - 1], points[brackets, first]
            if np.array_equal(before, (left, right)):
                break
        return left + (right - left) / 2


def probability(distribution: Any, region: list[Interval1D]) -> float:
    """Return the probability of a union of disjoint intervals, exact in both tails."""
    median = distribution.median()
    total = 0.0
    for low, high in region:
        if low > median:
            total += distribution.sf(low) - distribution.sf(high)
        else:
            total += distribution.cdf(high) - distribution.cdf(low)
    return float(total)


def _grid(*distributions: Any) -> Floats:
    """Place points where any of the distributions has mass, far into the tails."""
    tails = np.geomspace(_SMALLEST_TAIL, 0.01, 200)
    levels = np.concatenate([tails, np.linspace(0.01, 0.99, _GRID_POINTS)[1:-1]])
    points = [x for d in distributions for x in (d.ppf(levels), d.isf(tails), d.support())]
    grid = np.unique(np.concatenate(points))
    return grid[np.isfinite(grid)]


def _turning_points(function: Callable[[Any], Floats], grid: Floats) -> Floats:
    """Refine every local extremum on the grid."""
    values = function(grid)
    with np.errstate(invalid="ignore"):
        steps = np.diff(values)
        # Where the ratio is flat, rounding errors are not turns.
        slopes = np.where(np.abs(steps) > _ROUNDING * (1 + np.abs(values[1:])), np.sign(steps), 0)
    turns = np.flatnonzero(slopes[1:] * slopes[:-1] < 0) + 1
    return np.array([_refine(function, grid[i - 1], grid[i + 1], slopes[i - 1]) for i in turns])


def _refine(function: Callable[[Any], Floats], low: float, high: float, rising: float) -> float:
    result = minimize_scalar(
        lambda x: float(-rising * function(x)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12 * max(1.0, abs(low), abs(high))},
    )
    return float(result.x)
