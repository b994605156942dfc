"""The rule of the paper: an exponential average of the flags moves the threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .._core.ranking import cut_after
from ..capacity import Capacity
from ._base import Controller
from ._decision import ABOVE, BELOW
from ._input import check_positive, check_reference
from ._tail import FARTHEST_SCORE, central_spread, map_scores
from ._timeline import Arrays, Clock

__all__ = ["EmaController"]

THRESHOLD, AVERAGE, RATE, ALPHA, STEP = range(5)


@njit(cache=True)
def _ema_step(score: float, at: float, deciding: bool, real: Any, whole: Any) -> tuple[int, float]:
    threshold = real[THRESHOLD]
    if real[RATE] <= 0.0:
        return BELOW, np.inf
    flag = score > threshold
    real[AVERAGE] = (1.0 - real[ALPHA]) * real[AVERAGE] + real[ALPHA] * flag
    real[THRESHOLD] += real[STEP] if real[AVERAGE] > real[RATE] else -real[STEP]
    return (ABOVE if flag else BELOW), threshold


@njit(cache=True)
def _ema_many(
    scores: Any, times: Any, deciding: bool, codes: Any, thresholds: Any, real: Any, whole: Any
) -> None:
    for i in range(scores.size):
        codes[i], thresholds[i] = _ema_step(scores[i], times[i], deciding, real, whole)


class EmaController(Controller):
    r"""Follow the flag rate by the rule of the paper, section 5.2.

    The threshold rises by `step` while the exponential average of the flags is above the rate, and
    falls by `step` otherwise. It is here under its own name and makes no promise: the average is
    skewed, so that its *median* is driven to the rate, and the rate itself ends up above the
    capacity unless `alpha` is far below it; with a large step it swings.
    :class:`QuantileTracker` has neither problem.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model, for the first threshold.
    alpha : float, default=0.002
        Weight of the newest item in the average.
    step : float, default=None
        By how much the threshold moves, in units of the score. The paper names no value; `None`
        is a thousandth of half the distance between the 16th and the 84th percentile of the
        calibration scores, which is the standard deviation of normal ones.
    prevalence : number, default=None
        Share of rare items, for a multiple.
    clock : callable, default=None
        Returns the present moment for items without `at`.
    remember : int, default=10000
        How many ids are known again.

    Notes
    -----
    :math:`\hat P_t = (1 - \alpha) \hat P_{t-1} + \alpha\,\text{flag}_t`.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import EmaController
    >>> ema = EmaController(Capacity.fraction(0.1), calibration_scores=np.arange(100), step=0.5)
    >>> [ema.decide(score).threshold for score in (95.0, 10.0, 10.0)]
    [89.0, 89.5, 90.0]
    """

    _step = staticmethod(_ema_step)
    _many = staticmethod(_ema_many)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        alpha: float = 0.002,
        step: float | None = None,
        prevalence: Any = None,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        if not 0 < check_positive("alpha", alpha) <= 1:
            raise ValueError(f"alpha must be at most 1; got {alpha!r}.")
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            alpha=float(alpha),
            step=None if step is None else check_positive("step", step),
            prevalence=check_reference(prevalence),
        )

    def _check(self, capacity: Capacity) -> None:
        capacity.as_ratio(self._options["prevalence"])

    def _first_arrays(self, calibration: NDArray[np.float64]) -> Arrays:
        k = self._capacity.as_ratio(self._options["prevalence"]) * calibration.size
        threshold = cut_after(calibration, int(k)).value
        if not np.isfinite(threshold):  # everything may be flagged: start at the lowest score
            threshold = float(calibration.min())
        step = self._options["step"]
        if step is None:
            low, high = np.quantile(calibration, [0.16, 0.84])
            step = float(high - low) / 2_000 or 1e-3
        rate = self._capacity.as_fraction(self._options["prevalence"])
        real = np.array([threshold, rate, rate, self._options["alpha"], step])
        return real, np.zeros(0, dtype=np.int64)

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        self._real[RATE] = capacity.as_fraction(self._options["prevalence"])

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        self._real[THRESHOLD] = map_scores(self._real[THRESHOLD : THRESHOLD + 1], old, new)[0]
        # The step is in units of scores.
        step = float(self._real[STEP]) * (central_spread(new) / central_spread(old))
        self._real[STEP] = min(max(step, 1.0 / FARTHEST_SCORE), FARTHEST_SCORE)

    def _sound(self) -> bool:
        return (
            self._real.shape == (5,)
            and self._whole.shape == (0,)
            and bool(np.isfinite(self._real).all())
            and self._real[RATE] == self._capacity.as_fraction(self._options["prevalence"])
            and self._real[ALPHA] == self._options["alpha"]
            and 0 <= self._real[AVERAGE] <= 1
            and self._real[STEP] > 0
        )
