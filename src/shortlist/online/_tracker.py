"""Quantile tracking: a threshold that follows the flag rate, with a promise for any stream."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ..capacity import Capacity
from ..exceptions import CapacityError
from ._base import Controller
from ._decision import ABOVE, BELOW
from ._input import check_positive, check_reference
from ._tail import score_at, tail_range
from ._timeline import Arrays, Clock

__all__ = ["LOG_RATE", "OFFSET", "RATE", "STEP", "QuantileTracker", "track_step", "within_scale"]

#: What the floats begin with: the offset on the tail scale, the rate, its logarithm, and the step.
#: The tail scale is at their end.
OFFSET, RATE, LOG_RATE, STEP = range(4)
_SCALE = 4
_FARTHEST_LOG_RATE = 50.0


@njit(cache=True)
def track_step(score: float, real: Any, scale: Any) -> tuple[int, float]:
    """Decide one item, and move the offset against the error."""
    rate = real[RATE]
    if rate <= 0.0:
        return BELOW, np.inf
    threshold = score_at(real[OFFSET] - real[LOG_RATE], scale)
    if score > threshold:
        real[OFFSET] += real[STEP] * (1.0 - rate)
        return ABOVE, threshold
    real[OFFSET] -= real[STEP] * rate
    return BELOW, threshold


@njit(cache=True)
def _tracker_step(
    score: float, at: float, deciding: bool, real: Any, whole: Any
) -> tuple[int, float]:
    return track_step(score, real, real[_SCALE:].reshape(2, -1))


@njit(cache=True)
def _tracker_many(
    scores: Any, times: Any, deciding: bool, codes: Any, thresholds: Any, real: Any, whole: Any
) -> None:
    for i in range(scores.size):
        codes[i], thresholds[i] = _tracker_step(scores[i], times[i], deciding, real, whole)


def within_scale(offset: float, log_rate: float, scale: NDArray[np.float64]) -> float:
    """Keep an offset where the threshold it stands for is on the scale, or just beyond its end."""
    bottom, top = tail_range(scale)
    return min(max(offset, bottom + log_rate), top + log_rate)


class QuantileTracker(Controller):
    r"""Keep a flag rate on any stream: the default for rates.

    After each item the threshold moves up a little if it was flagged, and down a very little if it
    was not, in steps on a scale on which all models are alike. A change of capacity moves the
    threshold at once. On *every* stretch of the stream, whatever the scores do, the number of flags
    differs from what the rate allows by at most :meth:`interval_bound`, a constant.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model, for the first threshold and for the scale. No labels are needed.
    step : float, default=0.03
        How fast the threshold follows. Larger is quicker after a change, and closer to the rate
        over short stretches; smaller is steadier, and finds more where scores come in waves.
    prevalence : number, default=None
        Share of rare items, for a multiple.
    clock : callable, default=None
        Returns the present moment for items without `at`.
    remember : int, default=10000
        How many ids are known again.

    Notes
    -----
    With the score's level w = -log of the share of calibration scores that reach it, the rule is
    :math:`w_t > o_t - \log c_t` and :math:`o_{t+1} = o_t + \eta (\text{flag}_t - c_t)`. Because w
    is bounded, so is o, and the sum of the errors over a stretch is the difference of two o,
    divided by the step. Cf. Angelopoulos, Candès and Tibshirani, arXiv 2307.16895.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import QuantileTracker
    >>> rng = np.random.default_rng(0)
    >>> tracker = QuantileTracker(
    ...     Capacity.fraction(0.01), calibration_scores=rng.normal(size=5_000)
    ... )
    >>> tracker.decide(4.2).flag
    True
    >>> moved = rng.normal(loc=1, size=50_000)  # a fixed threshold would flag ten per cent
    >>> int(tracker.decide_many(moved).flagged.sum())  # 500 are allowed in the long run
    628
    """

    _step = staticmethod(_tracker_step)
    _many = staticmethod(_tracker_many)
    _CORRECTS: ClassVar[bool] = True

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        step: float = 0.03,
        prevalence: Any = None,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            step=check_positive("step", step),
            prevalence=check_reference(prevalence),
        )

    def interval_bound(
        self, smallest: Capacity | None = None, largest: Capacity | None = None
    ) -> float:
        """Return by how much flags and allowed flags can differ, on any stretch of any stream.

        Parameters
        ----------
        smallest, largest : Capacity, default=None
            Between which the capacity moves; `None` is the present one. Where the capacity is zero,
            nothing is flagged and nothing lost, so that `smallest` is the smallest one above zero.

        Returns
        -------
        float
            The bound: for every stretch, \\|flags - sum of rates\\| is at most this.

        Examples
        --------
        >>> import numpy as np
        >>> from shortlist import Capacity
        >>> tracker = QuantileTracker(
        ...     Capacity.fraction(0.01), calibration_scores=np.arange(999), step=0.1
        ... )
        >>> round(tracker.interval_bound(), 1)
        90.1
        """
        low, high = (
            self._rate(self._capacity if each is None else each) for each in (smallest, largest)
        )
        if high == 0:
            return 0.0
        if not 0 < low <= high:
            raise CapacityError(
                f"smallest must lie above 0 and not above largest; got rates of {low:g} and "
                f"{high:g}. Stretches at a capacity of zero need no bound: name the smallest "
                "capacity above it."
            )
        bottom, top = tail_range(self._scale)
        step = self._options["step"]
        return (top - bottom + math.log(high / low) + step * (1 - low + high)) / step

    def _rate(self, capacity: Capacity) -> float:
        return capacity.as_fraction(self._options["prevalence"])

    def _check(self, capacity: Capacity) -> None:
        self._rate(capacity)

    def _first_arrays(self, calibration: NDArray[np.float64]) -> Arrays:
        head = [0.0, 0.0, 0.0, self._options["step"]]
        return np.concatenate([head, self._scale.ravel()]), np.zeros(0, dtype=np.int64)

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        real, rate = self._real, self._rate(capacity)
        if since is not None and self._marks is not None:
            # The offset is the sum of the errors: count them again with the true rate.
            late = self._marks.items_since(since, self._n_items)
            real[OFFSET] += real[STEP] * (real[RATE] - rate) * late
        started = real[RATE] > 0
        real[RATE] = rate
        if rate > 0:
            real[LOG_RATE] = math.log(rate)
            # A rate so small that it lies beyond the scale starts at its end, and what there is to
            # make up for is not more than can be.
            if since is not None or not started:
                real[OFFSET] = within_scale(real[OFFSET], real[LOG_RATE], self._scale)

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        self._real = np.concatenate([self._real[:_SCALE], new.ravel()])

    def _sound(self) -> bool:
        rate = self._rate(self._capacity)
        return (
            self._real.shape == (_SCALE + self._scale.size,)
            and self._whole.shape == (0,)
            and np.array_equal(self._real[_SCALE:], self._scale.ravel())
            and bool(np.isfinite(self._real).all())
            and abs(self._real[OFFSET]) <= tail_range(self._scale)[1] + _FARTHEST_LOG_RATE
            and (self._real[RATE], self._real[STEP]) == (rate, self._options["step"])
            and (rate == 0 or self._real[LOG_RATE] == math.log(rate))
        )
