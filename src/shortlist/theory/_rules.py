"""The optimal rule under a capacity when both densities are known, on the real line."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from .._core.arrays import Floats, Mask
from .._core.validation import check_number
from ..capacity import Capacity, check_capacity

Interval1D = tuple[float, float]

_SMALLEST_TAIL = 1e-13  # probability beyond the outermost points of the grid
_GRID_POINTS = 1501  # between the quantiles of 1 % and 99 %
_MOST_CUTS = 40
_ROUNDING = 1e-13
_PARTS = np.linspace(0, 1, 65)
_LARGEST = float(np.finfo(np.float64).max)
_LOG_MAX = math.log(_LARGEST)


class _LikelihoodRatioRule:
    """Flags where f0 / f1 exceeds `gamma`; everything else follows from that number."""

    # The logarithm is solved for: rounding gamma could move the level across a flat ratio.
    _log_gamma: float

    def __init__(
        self, rare: Any, common: Any, *, prevalence: float, capacity: Capacity | None
    ) -> None:
        self.rare, self.common, self.capacity = rare, common, capacity
        self.prevalence = float(check_number("prevalence", prevalence))
        if not 0 < self.prevalence < 1:
            raise ValueError(f"prevalence must lie strictly between 0 and 1; got {prevalence!r}.")
        grid = _grid(rare, common)
        # Between neighbouring knots the ratio is monotone: narrow intervals are not missed.
        self._knots = np.unique(np.concatenate([grid, _turning_points(self._log_ratio, grid)]))
        self._log_at_knots = self._log_ratio(self._knots)
        ends = np.array([rare.support(), common.support()], dtype=float)
        self._support = ends[:, 0].min().item(), ends[:, 1].max().item()

    @property
    def gamma(self) -> float:
        """Level of the likelihood ratio above which an item is flagged."""
        return float(np.exp(self._log_gamma)) if self._log_gamma < _LOG_MAX else math.inf

    @property
    def modified_prior(self) -> float:
        r"""Prior :math:`\pi_0'` under which the Bayes rule is this rule (Proposition 2)."""
        return float(expit(-self._log_gamma))

    @cached_property
    def region(self) -> list[Interval1D]:
        """Intervals of x in which an item is flagged, from left to right."""
        return [] if self._log_gamma == math.inf else self._region_above(self._log_gamma)

    @cached_property
    def sensitivity(self) -> float:
        """Flagged share of the rare items."""
        return probability(self.rare, self.region)

    @cached_property
    def specificity(self) -> float:
        """Share of the common items that is not flagged."""
        return 1 - probability(self.common, self.region)

    @property
    def flagged_fraction(self) -> float:
        """Flagged share of all items."""
        return self._mix(self.sensitivity, 1 - self.specificity)

    @property
    def accuracy(self) -> float:
        """Share of all items that is classified correctly."""
        return self._mix(self.sensitivity, self.specificity)

    @property
    def loss(self) -> float:
        """The paper's L: one less the share of all items that are rare and flagged."""
        return 1 - self.prevalence * self.sensitivity

    @property
    def adjusted_detection(self) -> float:
        """The metric M: the sensitivity, reduced if more than the capacity is flagged."""
        if self.capacity is None:
            return self.sensitivity
        fraction = self.capacity.as_fraction(self.prevalence)
        flagged = self.flagged_fraction
        return self.sensitivity * (1.0 if flagged <= fraction else fraction / flagged)

    def predict(self, x: ArrayLike) -> Mask:
        """Return True where x is flagged."""
        x = np.asarray(x, dtype=np.float64)
        flagged = np.zeros(x.shape, dtype=bool)
        for low, high in self.region:
            flagged |= (low < x) & (x < high)
        return flagged

    def _mix(self, rare: float, common: float) -> float:
        return self.prevalence * rare + (1 - self.prevalence) * common

    def _log_ratio(self, x: Any) -> Floats:
        """Return log(f0 / f1), and minus infinity where both densities are 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.asarray(self.rare.logpdf(x)) - np.asarray(self.common.logpdf(x))
        return np.where(np.isnan(ratio), -np.inf, ratio)

    def _region_above(self, log_level: float) -> list[Interval1D]:
        """Return the disjoint intervals, in order, where the log ratio exceeds `log_level`."""
        inside = self._log_at_knots > log_level
        changes = np.flatnonzero(inside[1:] != inside[:-1])
        edges = self._crossings(self._knots[changes], self._knots[changes + 1], log_level)
        ends = [
            *([self._support[0]] if inside[0] else []),
            *edges.tolist(),
            *([self._support[1]] if inside[-1] else []),
        ]
        return list(zip(ends[::2], ends[1::2], strict=True))

    def _crossings(self, left: Floats, right: Floats, log_level: float) -> Floats:
        """Cut all brackets into many parts at once, again and again.

        Only comparisons are needed, and jumps are allowed.
        """
        starts_inside, brackets = self._log_ratio(left) > log_level, np.arange(left.size)
        for _ in range(_MOST_CUTS):
            points = left[:, np.newaxis] + (right - left)[:, np.newaxis] * _PARTS
            is_inside = self._log_ratio(points.ravel()).reshape(points.shape) > log_level
            has_crossed = is_inside != starts_inside[:, np.newaxis]
            has_crossed[:, 0], has_crossed[:, -1] = False, True
            first, before = np.argmax(has_crossed, axis=1), (left, right)
            left, right = points[brackets, first - 1], points[brackets, first]
            if np.array_equal(before, (left, right)):
                break
        return left + (right - left) / 2


class OptimalRule(_LikelihoodRatioRule):
    r"""The rule that detects the most rare items within a capacity (Proposition 1 of the paper).

    It flags where the likelihood ratio :math:`f_0 / f_1` exceeds the level :math:`\gamma^*` at
    which exactly the capacity is flagged. It always uses the whole capacity, even if the Bayes rule
    would flag less.

    Parameters
    ----------
    rare, common : SciPy frozen continuous distribution
        Distribution of the feature among rare and among common items.
    prevalence : float
        Share of rare items :math:`\pi_0`.
    capacity : Capacity
        How many items can be followed up.

    Attributes
    ----------
    gamma : float
        The level :math:`\gamma^*`.
    modified_prior : float
        Prior :math:`\pi_0' = 1 / (1 + \gamma^*)` under which the Bayes rule is this rule.
    price : float
        What one more unit of capacity would find: the precision at the border.
    region : list of (float, float)
        Intervals in which an item is flagged.
    flagged_fraction, sensitivity, specificity, accuracy, loss : float
        Performance of the rule; `loss` is the paper's :math:`L = 1 - P(g = 0, Y = 0)`.
    adjusted_detection : float
        The metric M; here it is the sensitivity, because the capacity is respected.

    Notes
    -----
    If the likelihood ratio is constant (or infinite) on a set of positive probability, no level may
    use the capacity exactly. The rule then stays below it.

    Examples
    --------
    >>> from scipy import stats
    >>> from shortlist import Capacity
    >>> from shortlist.theory import OptimalRule
    >>> rule = OptimalRule(
    ...     stats.norm(), stats.cauchy(4), prevalence=0.01, capacity=Capacity.multiple(2)
    ... )
    >>> round(rule.gamma, 6), round(rule.sensitivity, 6)
    (20.260435, 0.369306)
    """

    def __init__(self, rare: Any, common: Any, *, prevalence: float, capacity: Capacity) -> None:
        super().__init__(rare, common, prevalence=prevalence, capacity=check_capacity(capacity))
        self._limit = float(capacity.as_ratio(prevalence))
        self._log_gamma = self._solve_log_gamma()

    @property
    def price(self) -> float:
        """What one more unit of capacity finds: the precision at the border."""
        return float(expit(self._log_gamma + logit(self.prevalence)))

    def _solve_log_gamma(self) -> float:
        """Bisect the logarithm of gamma until the capacity is used, from below."""
        if self._limit == 0:
            return math.inf
        if self._flagged_above(-math.inf) <= self._limit:
            return -math.inf
        if self._flagged_above(_LARGEST) > self._limit:  # already where there are rare items only
            return math.inf
        low, high = -1.0, 1.0
        while self._flagged_above(low) <= self._limit:
            low *= 2
        while self._flagged_above(high) > self._limit:
            high *= 2
        while low < (middle := low + (high - low) / 2) < high:
            if self._flagged_above(middle) > self._limit:
                low = middle
            else:
                high = middle
        return high

    def _flagged_above(self, log_level: float) -> float:
        region = self._region_above(log_level)
        return self._mix(probability(self.rare, region), probability(self.common, region))


class BayesRule(_LikelihoodRatioRule):
    r"""The rule with the highest accuracy: flag where :math:`\pi_0 f_0 > \pi_1 f_1`.

    It ignores the capacity. If the items are rare, it often flags nothing at all.

    Parameters
    ----------
    rare, common : SciPy frozen continuous distribution
        Distribution of the feature among rare and among common items.
    prevalence : float
        Share of rare items :math:`\pi_0`.
    capacity : Capacity, default=None
        Used by `adjusted_detection` only.

    Attributes
    ----------
    gamma : float
        The level :math:`\pi_1 / \pi_0` of the likelihood ratio.
    modified_prior : float
        The prevalence itself.
    region : list of (float, float)
        Intervals in which an item is flagged.
    flagged_fraction, sensitivity, specificity, accuracy, loss : float
        Performance of the rule; `loss` is the paper's :math:`L = 1 - P(g = 0, Y = 0)`.
    adjusted_detection : float
        The metric M under `capacity`; without a capacity it is the sensitivity.

    Examples
    --------
    Below a shift of 8.72 the Bayes rule never detects a rare item:

    >>> from scipy import stats
    >>> from shortlist.theory import BayesRule
    >>> BayesRule(stats.norm(), stats.cauchy(8.72), prevalence=0.01).region
    []
    >>> len(BayesRule(stats.norm(), stats.cauchy(8.721), prevalence=0.01).region)
    1
    """

    def __init__(
        self, rare: Any, common: Any, *, prevalence: float, capacity: Capacity | None = None
    ) -> None:
        capacity = None if capacity is None else check_capacity(capacity)
        super().__init__(rare, common, prevalence=prevalence, capacity=capacity)
        self._log_gamma = math.log1p(-self.prevalence) - math.log(self.prevalence)


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
