"""A token bucket behind a quantile tracker: a rate that also holds over short stretches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ..capacity import Capacity
from ..exceptions import CapacityError
from ._base import Controller
from ._decision import ABOVE, FULL
from ._input import check_count, check_period, check_positive, check_reference, check_whole
from ._timeline import Arrays, Clock
from ._tracker import LOG_RATE, OFFSET, RATE, STEP, track_step, within_scale

__all__ = ["TokenBucketController"]

# The whole numbers: tokens, the most of them, what an item brings, and whether time brings them.
TOKENS, MOST, PER_ITEM, BY_TIME = range(4)
# The floats, after those of the tracker: tokens per second, the moment of the last refill, the
# usual time between items, how many items that is an average of, flags per second; then the scale.
PER_SECOND, LAST, GAP, MEMORY, FLAGS_PER_SECOND = range(4, 9)
_SCALE = 9
# Tokens are counted in whole parts and rounded down, so that no rounding adds up to a flag.
_PARTS = 1 << 40
_LARGEST_BURST = 1 << 20
_ROUND_DOWN = 1.0 - 1e-15


@njit(cache=True)
def _refill(at: float, real: Any, whole: Any) -> None:
    if whole[BY_TIME]:
        gone = max(at - real[LAST], 0.0)
        real[LAST] = max(at, real[LAST])
        brought = gone * real[PER_SECOND] * _ROUND_DOWN
        room = whole[MOST] - whole[TOKENS]
        whole[TOKENS] += room if brought >= room else int(brought)
    else:
        whole[TOKENS] = min(whole[TOKENS] + whole[PER_ITEM], whole[MOST])


@njit(cache=True)
def _expect(at: float, real: Any) -> None:
    """Turn flags per second into flags per item, by the usual time between items."""
    gap = max(at - real[LAST], 0.0)
    real[GAP] += (gap - real[GAP]) / real[MEMORY]
    rate = min(max(real[GAP] * real[FLAGS_PER_SECOND], 1e-12), 1.0)
    real[RATE] = rate if real[FLAGS_PER_SECOND] > 0 else 0.0
    real[LOG_RATE] = np.log(rate)


@njit(cache=True)
def _bucket_step(
    score: float, at: float, deciding: bool, real: Any, whole: Any
) -> tuple[int, float]:
    if whole[BY_TIME]:
        if np.isinf(real[LAST]):
            real[LAST] = at
        else:
            _expect(at, real)
    _refill(at, real, whole)
    # The tracker sees its own wish, not what the bucket grants: it must not lower the threshold
    # because the bucket is empty.
    code, threshold = track_step(score, real, real[_SCALE:].reshape(2, -1))
    if code == ABOVE and deciding:
        if whole[TOKENS] < _PARTS:
            return FULL, threshold
        whole[TOKENS] -= _PARTS
    return code, threshold


@njit(cache=True)
def _bucket_many(
    scores: Any, times: Any, deciding: bool, codes: Any, thresholds: Any, real: Any, whole: Any
) -> None:
    for i in range(scores.size):
        codes[i], thresholds[i] = _bucket_step(scores[i], times[i], deciding, real, whole)


class TokenBucketController(Controller):
    """Keep a rate with a hard limit on bursts.

    A bucket holds at most `burst` tokens and is refilled at the capacity; a flag takes one. On
    every stretch there are at most `burst` flags more than the capacity of that stretch, whatever
    the scores do. Which items deserve the tokens is decided by quantile tracking, whose threshold
    is not misled when the bucket is empty.

    Parameters
    ----------
    capacity : Capacity
        A rate (a fraction, a count with `per`, or a multiple with `prevalence`): each item refills
        the bucket by it. Or ``Capacity.count(k)`` with `period`: time refills the bucket.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model.
    burst : int, default=10
        The most tokens, at least 1. The bucket starts full.
    period : float, default=None
        Seconds that a count refers to.
    expected_arrivals : int, default=None
        Items in a period, to begin with; needed with `period`, then learned.
    step : float, default=0.03
        As for :class:`QuantileTracker`.
    prevalence : number, default=None
        Share of rare items, for a multiple.
    clock : callable, default=None
        Returns the present moment for items without `at`.
    remember : int, default=10000
        How many ids are known again.

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

    _step = staticmethod(_bucket_step)
    _many = staticmethod(_bucket_many)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        burst: int = 10,
        period: float | None = None,
        expected_arrivals: int | None = None,
        step: float = 0.03,
        prevalence: Any = None,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        if (period is None) != (expected_arrivals is None):
            raise ValueError(
                "period and expected_arrivals belong together: with a number of flags per period, "
                "say how many items usually come in one."
            )
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            burst=check_whole("burst", burst, "tokens", _LARGEST_BURST),
            period=None if period is None else check_period(period),
            expected_arrivals=None
            if expected_arrivals is None
            else check_positive("expected_arrivals", expected_arrivals),
            step=check_positive("step", step),
            prevalence=check_reference(prevalence),
        )

    def _check(self, capacity: Capacity) -> None:
        if not self._timed:
            capacity.as_ratio(self._options["prevalence"])
        elif capacity.kind != "count" or capacity.per is not None:
            raise CapacityError(
                f"With period=..., the capacity is a number of flags in a period; got {capacity!r}."
                " Use Capacity.count(k), or leave the period out."
            )
        else:
            check_count(capacity)

    def _first_arrays(self, calibration: NDArray[np.float64]) -> Arrays:
        most = self._options["burst"] * _PARTS
        gap, memory = 0.0, 1.0
        if self._timed:
            memory = max(self._options["expected_arrivals"], 1.0)
            gap = self._options["period"] / memory
        head = [0.0, 0.0, 0.0, self._options["step"], 0.0, -np.inf, gap, memory, 0.0]
        real = np.concatenate([head, self._scale.ravel()])
        return real, np.array([most, most, 0, self._timed], dtype=np.int64)

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        real, whole = self._real, self._whole
        if self._timed:
            if np.isfinite(real[LAST]):
                _refill(max(self._now, real[LAST]), real, whole)  # up to now at the old pace
            real[FLAGS_PER_SECOND], real[PER_SECOND] = self._refills(capacity)
            rate = min(real[FLAGS_PER_SECOND] * real[GAP], 1.0)
        else:
            whole[PER_ITEM] = self._brought(capacity)
            rate = capacity.as_fraction(self._options["prevalence"])
        real[RATE] = rate
        if rate > 0:
            real[LOG_RATE] = math.log(rate)
            real[OFFSET] = within_scale(real[OFFSET], real[LOG_RATE], self._scale)

    def _refills(self, capacity: Capacity) -> tuple[float, float]:
        """Return flags and parts of tokens per second."""
        flags = int(capacity.value) / self._options["period"] if self._timed else 0.0
        return flags, flags * _PARTS

    def _brought(self, capacity: Capacity) -> int:
        """Return parts of tokens per item."""
        if self._timed:
            return 0
        return math.floor(capacity.as_ratio(self._options["prevalence"]) * _PARTS)

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        self._real = np.concatenate([self._real[:_SCALE], new.ravel()])

    def _sound(self) -> bool:
        real, whole = self._real, self._whole
        if real.shape != (_SCALE + self._scale.size,) or whole.shape != (4,):
            return False
        most = self._options["burst"] * _PARTS
        expected = [most, self._brought(self._capacity), int(self._timed)]
        return (
            np.array_equal(real[_SCALE:], self._scale.ravel())
            and bool(np.isfinite(np.delete(real, LAST)).all())
            and real[LAST] <= self._now
            and real[STEP] == self._options["step"]
            and 0 <= real[RATE] <= 1
            and real[MEMORY] >= 1
            and (real[FLAGS_PER_SECOND], real[PER_SECOND]) == self._refills(self._capacity)
            and 0 <= whole[TOKENS] <= most
            and whole[MOST:].tolist() == expected
        )
