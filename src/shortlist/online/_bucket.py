"""A token bucket behind a quantile tracker: a rate that also holds over short stretches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats
from .._core.validation import check_count, check_positive
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._inputs import (
    check_optional_positive,
    check_optional_prevalence,
    check_period,
    flags_allowed,
)
from ._time import Clock
from ._tracker import LOG_RATE, OFFSET, RATE, ScaledController, offset_within, track
from .decisions import ABOVE_THRESHOLD, CAPACITY_USED_UP

# The ints: tokens, the largest number of tokens, tokens per item, and whether time refills them.
TOKENS, MOST_TOKENS, TOKENS_PER_ITEM, REFILLED_BY_TIME = range(4)
# The floats after those of the tracker: flags per second, the moment of the last refill, the
# average time between items, and over how many items it is averaged. The knots of the scale are
# the last.
FLAGS_PER_SECOND, LAST_REFILL, GAP, GAP_MEMORY = range(4, 8)
_KNOTS = 8
# Tokens are counted in whole parts and rounded down: rounding errors never add up to a flag.
_PARTS = 1 << 40
_LARGEST_BURST = 1 << 20
_ROUND_DOWN = 1.0 - 1e-15


@njit(cache=True)
def _refill(at: float, floats: Any, ints: Any) -> None:
    if ints[REFILLED_BY_TIME]:
        elapsed = max(at - floats[LAST_REFILL], 0.0)
        floats[LAST_REFILL] = max(at, floats[LAST_REFILL])
        refill = elapsed * floats[FLAGS_PER_SECOND] * _PARTS * _ROUND_DOWN
        room = ints[MOST_TOKENS] - ints[TOKENS]
        ints[TOKENS] += room if refill >= room else int(refill)
    else:
        ints[TOKENS] = min(ints[TOKENS] + ints[TOKENS_PER_ITEM], ints[MOST_TOKENS])


@njit(cache=True)
def _update_rate(at: float, floats: Any) -> None:
    """Turn flags per second into flags per item, by the average time between items."""
    gap = max(at - floats[LAST_REFILL], 0.0)
    floats[GAP] += (gap - floats[GAP]) / floats[GAP_MEMORY]
    rate = min(max(floats[GAP] * floats[FLAGS_PER_SECOND], 1e-12), 1.0)
    floats[RATE] = rate if floats[FLAGS_PER_SECOND] > 0 else 0.0
    floats[LOG_RATE] = np.log(rate)


@njit(cache=True)
def _bucket_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    if ints[REFILLED_BY_TIME]:
        if np.isinf(floats[LAST_REFILL]):
            floats[LAST_REFILL] = at
        else:
            _update_rate(at, floats)
    _refill(at, floats, ints)
    # The tracker counts the item as flagged even if the bucket is empty. Otherwise an empty bucket
    # would lower the threshold.
    code, threshold = track(score, 1.0, floats, floats[_KNOTS:].reshape(2, -1))
    if code == ABOVE_THRESHOLD and deciding:
        if ints[TOKENS] < _PARTS:
            return CAPACITY_USED_UP, threshold, 0.0
        ints[TOKENS] -= _PARTS
    return code, threshold, 1.0 if code == ABOVE_THRESHOLD else 0.0


@njit(cache=True)
def _bucket_loop(items: Any, deciding: bool, answers: Any, floats: Any, ints: Any) -> None:
    scores, times, works, numbers = items
    codes, thresholds, probabilities = answers
    for i in range(scores.size):
        codes[i], thresholds[i], probabilities[i] = _bucket_step(
            scores[i], times[i], deciding, works[i], numbers[i], floats, ints
        )


class TokenBucketController(ScaledController):
    """Keep a rate with a hard limit on bursts.

    A bucket holds at most `burst` tokens and is refilled at the rate of the capacity. Each flag
    takes one token. On every stretch there are at most `burst` flags more than the capacity of that
    stretch, whatever the scores do. Quantile tracking chooses the items that get the tokens; an
    empty bucket does not affect its threshold.

    Parameters
    ----------
    capacity : Capacity
        A rate (a fraction, a count with `per`, or a multiple with `prevalence`): each item refills
        the bucket by it. Or ``Capacity.count(k)`` with `period`: time refills the bucket.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model.
    burst : int, default=10
        The largest number of tokens, at least 1. The bucket starts full.
    period : float or str, default=None
        The period of a count, in seconds, or of a calendar as in :class:`CalendarPeriod`.
    expected_arrivals : int, default=None
        Items in a period, as a first estimate that is then learned. Required with `period`.
    step : float, default=0.03
        As for :class:`QuantileTracker`.
    prevalence : number, default=None
        Share of rare items, for a multiple.
    clock, remember
        As for :class:`Controller`.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import TokenBucketController
    >>> bucket = TokenBucketController(
    ...     Capacity.fraction(0.1), calibration_scores=np.arange(100), burst=2
    ... )
    >>> [bucket.decide(99.0).reason for _ in range(3)]
    ['above threshold', 'above threshold', 'capacity used up']
    """

    compiled_step = staticmethod(_bucket_step)
    compiled_loop = staticmethod(_bucket_loop)
    n_head = _KNOTS

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        burst: int = 10,
        period: float | str | None = None,
        expected_arrivals: int | None = None,
        step: float = 0.03,
        prevalence: Any = None,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        if (period is None) != (expected_arrivals is None):
            raise ValueError(
                "period and expected_arrivals belong together: with a number of flags per period, "
                "pass the usual number of items in one."
            )
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            burst=check_count("burst", burst, at_most=_LARGEST_BURST),
            period=None if period is None else check_period(period),
            expected_arrivals=check_optional_positive("expected_arrivals", expected_arrivals),
            step=check_positive("step", step),
            prevalence=check_optional_prevalence(prevalence),
        )

    def check_capacity(self, capacity: Capacity) -> None:
        """Accept a rate, or with a period a count."""
        if not self.is_timed:
            self.rate(capacity)
        elif capacity.kind != "count" or capacity.per is not None:
            raise CapacityError(
                f"With period=..., the capacity is a number of flags in a period; got {capacity!r}."
                " Use Capacity.count(k), or leave the period out."
            )
        else:
            flags_allowed(capacity)

    def initial_state(self, calibration_scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Start with a full bucket, and a tracker on the scale of the calibration scores."""
        most = self.options["burst"] * _PARTS
        gap, memory = 0.0, 1.0
        if self.is_timed:
            memory = max(self.options["expected_arrivals"], 1.0)
            gap = self.period_length / memory
        floats = self.with_knots([0.0, 0.0, 0.0, self.options["step"], 0.0, -np.inf, gap, memory])
        return floats, np.array([most, most, 0, self.is_timed], dtype=np.int64)

    def apply_capacity(self, capacity: Capacity, *, since: float | None = None) -> None:
        """Set the refill and the rate of the tracker."""
        floats, ints = self.state_floats, self.state_ints
        if self.is_timed:
            if np.isfinite(floats[LAST_REFILL]):  # until now, the old capacity refills the bucket
                _refill(max(self.now, floats[LAST_REFILL]), floats, ints)
            floats[FLAGS_PER_SECOND] = self._per_second(capacity)
            rate = min(floats[FLAGS_PER_SECOND] * floats[GAP], 1.0)
        else:
            ints[TOKENS_PER_ITEM] = self._tokens_per_item(capacity)
            rate = self.rate(capacity)
        floats[RATE] = rate
        if rate > 0:
            floats[LOG_RATE] = math.log(rate)
            floats[OFFSET] = offset_within(self.scale, floats[OFFSET], floats[LOG_RATE])

    def _per_second(self, capacity: Capacity) -> float:
        """Return flags per second."""
        return flags_allowed(capacity) / self.period_length if self.is_timed else 0.0

    def _tokens_per_item(self, capacity: Capacity) -> int:
        """Return parts of tokens per item."""
        if self.is_timed:
            return 0
        return math.floor(capacity.as_ratio(self.options["prevalence"]) * _PARTS)
