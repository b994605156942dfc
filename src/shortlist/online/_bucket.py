"""A token bucket behind a quantile tracker: a rate that also holds over short stretches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._inputs import flags_allowed
from ._tracker import LOG_RATE, OFFSET, RATE, ScaledController, offset_within, track
from .decisions import ABOVE_THRESHOLD, CAPACITY_USED_UP

# The ints: tokens, and the largest number of tokens.
TOKENS, MOST_TOKENS = range(2)
# The floats after those of the tracker: flags per unit of time (a second, a period of a calendar,
# or without a period an item), the time of the last refill, the average time between items, and
# over how many items it is averaged. The knots of the scale are the last.
FLAGS_PER_TIME, LAST_REFILL, GAP, GAP_MEMORY = range(4, 8)
_KNOTS = 8
# Tokens are counted in whole parts and rounded down: rounding errors never add up to a flag.
_PARTS = 1 << 40
_ROUND_DOWN = 1.0 - 1e-15


@njit(cache=True)
def _refill(at: float, floats: Any, ints: Any) -> None:
    elapsed = max(at - floats[LAST_REFILL], 0.0)
    floats[LAST_REFILL] = max(at, floats[LAST_REFILL])
    refill = elapsed * floats[FLAGS_PER_TIME] * _PARTS * _ROUND_DOWN
    room = ints[MOST_TOKENS] - ints[TOKENS]
    ints[TOKENS] += room if refill >= room else int(refill)


@njit(cache=True)
def _update_rate(at: float, floats: Any) -> None:
    """Turn flags per unit of time into flags per item, by the average time between items."""
    gap = max(at - floats[LAST_REFILL], 0.0)
    if gap == floats[GAP]:
        return
    floats[GAP] += (gap - floats[GAP]) / floats[GAP_MEMORY]
    rate = min(max(floats[GAP] * floats[FLAGS_PER_TIME], 1e-12), 1.0)
    floats[RATE] = rate if floats[FLAGS_PER_TIME] > 0 else 0.0
    floats[LOG_RATE] = np.log(rate)


@njit(cache=True)
def _decide(
    score: float, at: float, deciding: bool, floats: Any, ints: Any, knots: Any
) -> tuple[int, float, float]:
    if np.isinf(floats[LAST_REFILL]):
        floats[LAST_REFILL] = at
    else:
        _update_rate(at, floats)
    _refill(at, floats, ints)
    # The tracker counts the item as flagged even if the bucket is empty. Otherwise an empty bucket
    # would lower the threshold.
    code, threshold = track(score, 1.0, floats, knots)
    if code == ABOVE_THRESHOLD and deciding:
        if ints[TOKENS] < _PARTS:
            return CAPACITY_USED_UP, threshold, 0.0
        ints[TOKENS] -= _PARTS
    return code, threshold, 1.0 if code == ABOVE_THRESHOLD else 0.0


@njit(cache=True)
def _bucket_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    return _decide(score, at, deciding, floats, ints, floats[_KNOTS:].reshape(2, -1))


@njit(cache=True)
def _bucket_loop(items: Any, deciding: bool, answers: Any, floats: Any, ints: Any) -> None:
    scores, times, _, _ = items
    codes, thresholds, probabilities = answers
    knots = floats[_KNOTS:].reshape(2, -1)
    for i in range(scores.size):
        codes[i], thresholds[i], probabilities[i] = _decide(
            scores[i], times[i], deciding, floats, ints, knots
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
    **shared
        `prevalence`, the share of rare items, for a multiple; and `remember` as for
        :class:`Controller`.

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
        **shared: Any,
    ) -> None:
        if (period is None) != (expected_arrivals is None):
            raise ValueError(
                "period and expected_arrivals belong together: with a number of flags per period, "
                "pass the usual number of items in one."
            )
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            burst=burst,
            period=period,
            expected_arrivals=expected_arrivals,
            step=step,
            **shared,
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
        most, gap, memory = self.options["burst"] * _PARTS, 1.0, 1.0
        if self.is_timed:
            memory = max(self.options["expected_arrivals"], 1.0)
            gap = self._time.length / memory
        floats = self.with_knots([0.0, 0.0, 0.0, self.options["step"], 0.0, -np.inf, gap, memory])
        return floats, np.array([most, most], dtype=np.int64)

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set the refill and the rate of the tracker."""
        floats = self.state_floats
        if np.isfinite(floats[LAST_REFILL]):  # until now, the old capacity refills the bucket
            _refill(self._time.present_time(), floats, self.state_ints)
        if self.is_timed:
            floats[FLAGS_PER_TIME] = flags_allowed(capacity) / self._time.length
        else:
            floats[FLAGS_PER_TIME] = self.rate(capacity)
        floats[RATE] = min(floats[FLAGS_PER_TIME] * floats[GAP], 1.0)
        if floats[RATE] > 0:
            floats[LOG_RATE] = math.log(floats[RATE])
            floats[OFFSET] = offset_within(self.scale, floats[OFFSET], floats[LOG_RATE])
