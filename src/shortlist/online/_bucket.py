"""A token bucket behind a quantile tracker: a rate that also holds over short stretches."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ..capacity import Capacity
from ..exceptions import CapacityError
from ._base import Clock, Controller
from ._decision import ABOVE, FULL
from ._tail import tail_range
from ._tracker import LOG_RATE, OFFSET, RATE, check_positive, track_step

__all__ = ["TokenBucketController"]

# What `whole` holds: tokens, the most of them, what an item brings, and whether time brings them.
TOKENS, MOST, PER_ITEM, BY_TIME = range(4)
# What `pace` holds: tokens per second, the moment of the last refill, the usual time between
# items, how many items that is an average of, and flags per second.
PER_SECOND, LAST, GAP, MEMORY, FLAGS_PER_SECOND = range(5)
# Tokens are counted in whole parts and rounded down, so that no rounding adds up to a flag.
_PARTS = 1 << 40
_LARGEST_BURST = 1 << 20
_ROUND_DOWN = 1.0 - 1e-15


@njit(cache=True)
def _refill(at: float, whole: Any, pace: Any) -> None:
    if whole[BY_TIME]:
        gone = max(at - pace[LAST], 0.0)
        pace[LAST] = max(at, pace[LAST])
        brought = gone * pace[PER_SECOND] * _ROUND_DOWN
        room = whole[MOST] - whole[TOKENS]
        whole[TOKENS] += room if brought >= room else int(brought)
    else:
        whole[TOKENS] = min(whole[TOKENS] + whole[PER_ITEM], whole[MOST])


@njit(cache=True)
def _expect(at: float, real: Any, pace: Any) -> None:
    """Turn flags per second into flags per item, by the usual time between items."""
    gap = max(at - pace[LAST], 0.0)
    pace[GAP] += (gap - pace[GAP]) / pace[MEMORY]
    rate = min(max(pace[GAP] * pace[FLAGS_PER_SECOND], 1e-12), 1.0)
    real[RATE] = rate if pace[FLAGS_PER_SECOND] > 0 else 0.0
    real[LOG_RATE] = np.log(rate)


@njit(cache=True)
def _bucket_step(
    score: float, at: float, deciding: bool, real: Any, scale: Any, whole: Any, pace: Any
) -> tuple[int, float]:
    if whole[BY_TIME]:
        if np.isinf(pace[LAST]):
            pace[LAST] = at
        else:
            _expect(at, real, pace)
    _refill(at, whole, pace)
    # The tracker sees its own wish, not what the bucket grants: it must not lower the threshold
    # because the bucket is empty.
    code, threshold = track_step(score, at, deciding, real, scale)
    if code == ABOVE and deciding:
        if whole[TOKENS] < _PARTS:
            return FULL, threshold
        whole[TOKENS] -= _PARTS
    return code, threshold


@njit(cache=True)
def _bucket_many(
    scores: Any,
    times: Any,
    deciding: bool,
    codes: Any,
    thresholds: Any,
    real: Any,
    scale: Any,
    whole: Any,
    pace: Any,
) -> None:
    for i in range(scores.size):
        codes[i], thresholds[i] = _bucket_step(
            scores[i], times[i], deciding, real, scale, whole, pace
        )


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
    _ARRAYS: ClassVar[dict[str, Any]] = {
        "real": np.float64,
        "scale": np.float64,
        "whole": np.int64,
        "pace": np.float64,
    }

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
        if not isinstance(burst, (int, np.integer)) or not 1 <= burst <= _LARGEST_BURST:
            raise ValueError(
                f"burst must be a whole number from 1 to {_LARGEST_BURST}; got {burst!r}."
            )
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
            burst=int(burst),
            period=None if period is None else check_positive("period", period),
            expected_arrivals=None
            if expected_arrivals is None
            else check_positive("expected_arrivals", expected_arrivals),
            step=check_positive("step", step),
            prevalence=None if prevalence is None else float(prevalence),
        )

    def _check(self, capacity: Capacity) -> None:
        if not self._timed:
            capacity.as_ratio(self._options["prevalence"])
        elif capacity.kind != "count" or capacity.per is not None:
            raise CapacityError(
                f"With period=..., the capacity is a number of flags in a period; got {capacity!r}."
                " Use Capacity.count(k), or leave the period out."
            )

    def _first_arrays(self, calibration: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        most = self._options["burst"] * _PARTS
        gap, memory = 0.0, 1.0
        if self._timed:
            memory = max(self._options["expected_arrivals"], 1.0)
            gap = self._options["period"] / memory
        return {
            "real": np.array([0.0, 0.0, 0.0, self._options["step"]]),
            "scale": self._scale,
            "whole": np.array([most, most, 0, self._timed]),
            "pace": np.array([0.0, -np.inf, gap, memory, 0.0]),
        }

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        self._check(capacity)
        real, whole, pace = (self._array(name) for name in ("real", "whole", "pace"))
        if self._timed:
            if np.isfinite(pace[LAST]):
                _refill(max(self._now, pace[LAST]), whole, pace)  # up to now at the old pace
            pace[FLAGS_PER_SECOND] = int(capacity.value) / self._options["period"]
            pace[PER_SECOND] = pace[FLAGS_PER_SECOND] * _PARTS
            rate = min(pace[FLAGS_PER_SECOND] * pace[GAP], 1.0)
        else:
            ratio = capacity.as_ratio(self._options["prevalence"])
            whole[PER_ITEM] = math.floor(ratio * _PARTS)
            rate = float(ratio)
        real[RATE] = rate
        if rate > 0:
            real[LOG_RATE] = math.log(rate)
            bottom, top = tail_range(self._scale)
            real[OFFSET] = min(max(real[OFFSET], bottom + real[LOG_RATE]), top + real[LOG_RATE])

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        arrays = dict(zip(self._ARRAYS, self._arrays, strict=True))
        self._set_arrays(arrays | {"scale": new})
