"""Rules without a guarantee: the quantile of a sliding window, and the rule of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Ints
from .._core.ranking import cut_after
from ..capacity import Capacity
from .controller import Controller
from .decisions import (
    ABOVE_THRESHOLD,
    BELOW_THRESHOLD,
    FARTHEST_SCORE,
    TailScale,
    check_calibration_scores,
    check_shared,
)


@njit(cache=True)
def _answer(flag: bool, threshold: float) -> tuple[int, float, float]:
    return (ABOVE_THRESHOLD, threshold, 1.0) if flag else (BELOW_THRESHOLD, threshold, 0.0)


# The floats: the scores of the window in rising order, and in the order of their arrival. The ints:
# how many scores may lie above the threshold, and the place of the oldest score.
WANTED, OLDEST = range(2)


@njit(cache=True)
def _replace_oldest(score: float, floats: Any, ints: Any) -> None:
    """Replace the oldest score by a new one, and shift those that lie between the two."""
    size, place = floats.size // 2, ints[OLDEST]
    rising, ring = floats[:size], floats[size:]
    hole, end = np.searchsorted(rising, ring[place]), np.searchsorted(rising, score)
    if hole < end:
        end -= 1
        rising[hole:end] = rising[hole + 1 : end + 1]
    else:
        rising[end + 1 : hole + 1] = rising[end:hole]
    rising[end] = ring[place] = score
    ints[OLDEST] = (place + 1) % size


@njit(cache=True)
def _window_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    size, wanted = floats.size // 2, ints[WANTED]
    threshold = floats[size - 1 - wanted] if wanted < size else -np.inf
    _replace_oldest(score, floats, ints)
    if wanted == 0:
        return BELOW_THRESHOLD, np.inf, 0.0
    return _answer(score > threshold, threshold)


@njit(cache=True)
def _window_loop(items: Any, deciding: bool, answers: Any, floats: Any, ints: Any) -> None:
    scores, times, works, numbers = items
    codes, thresholds, probabilities = answers
    for i in range(scores.size):
        codes[i], thresholds[i], probabilities[i] = _window_step(
            scores[i], times[i], deciding, works[i], numbers[i], floats, ints
        )


class WindowController(Controller):
    """Flag the items that stand out among the most recent ones.

    The threshold is the exact quantile of a sliding window of scores. There is no guarantee for the
    rate of a stream that changes.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`; rounded down to
        a whole number of items in the window. Choose the window large enough for some.
    calibration_scores : array-like of shape (n_items,)
        Recent scores in order of arrival. They fill the window and are repeated if there are too
        few.
    window : int, default=5000
        Number of items.
    **shared
        `prevalence`, the share of rare items, for a multiple; and `remember` as for
        :class:`Controller`.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import WindowController
    >>> window = WindowController(
    ...     Capacity.fraction(0.1), calibration_scores=np.arange(10), window=10
    ... )
    >>> [window.decide(score).threshold for score in (20.0, 30.0, 1.0)]
    [8.0, 9.0, 20.0]
    """

    compiled_step = staticmethod(_window_step)
    compiled_loop = staticmethod(_window_loop)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        window: int = 5_000,
        **shared: Any,
    ) -> None:
        options = {"window": window, **check_shared(shared)}
        super().__init__(capacity, calibration_scores=calibration_scores, **options)
        last = check_calibration_scores(calibration_scores)[-self.options["window"] :]
        self._fill(np.resize(last, self.options["window"]))
        self.state_ints = np.zeros(2, np.int64)
        self.apply_capacity(capacity)

    def _fill(self, ring: Floats) -> None:
        self.state_floats = np.concatenate([np.sort(ring), ring])

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set how many scores of the window lie above the threshold."""
        self.state_ints[WANTED] = int(self.ratio(capacity) * self.options["window"])

    def is_sound(self, n_floats: int, n_ints: int) -> bool:
        """Whether the window has its size, and the scores in rising order are its own."""
        if not super().is_sound(n_floats, n_ints):
            return False
        (rising, ring), (wanted, oldest) = np.split(self.state_floats, 2), self.state_ints
        return wanted >= 0 and 0 <= oldest < ring.size and np.array_equal(np.sort(ring), rising)

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all scores in the window."""
        self._fill(old.translate(np.split(self.state_floats, 2)[1], to=new))


# --- the rule of the paper: an average of the flags, or their share in a window, moves a threshold

THRESHOLD, AVERAGE, RATE, ALPHA, STEP = range(5)
# With a window, the ints: how many of its items are flagged, the place of the oldest, and the ring
# of flags.
FLAGGED, OLDEST_FLAG = range(2)
_FLAGS = 2


@njit(cache=True)
def _share_of_last(flag: bool, ints: Any) -> float:
    """Replace the oldest flag by a new one, and return the flagged share of the window."""
    ring, place = ints[_FLAGS:], ints[OLDEST_FLAG]
    ints[FLAGGED] += int(flag) - ring[place]
    ring[place] = int(flag)
    ints[OLDEST_FLAG] = (place + 1) % ring.size
    return ints[FLAGGED] / ring.size


@njit(cache=True)
def _ema_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    threshold = floats[THRESHOLD]
    if floats[RATE] <= 0.0:
        return BELOW_THRESHOLD, np.inf, 0.0
    flag = score > threshold
    if ints.size > 0:
        floats[AVERAGE] = _share_of_last(flag, ints)
    else:
        floats[AVERAGE] = (1.0 - floats[ALPHA]) * floats[AVERAGE] + floats[ALPHA] * flag
    floats[THRESHOLD] += floats[STEP] if floats[AVERAGE] > floats[RATE] else -floats[STEP]
    return _answer(flag, threshold)


@njit(cache=True)
def _ema_loop(items: Any, deciding: bool, answers: Any, floats: Any, ints: Any) -> None:
    scores, times, works, numbers = items
    codes, thresholds, probabilities = answers
    for i in range(scores.size):
        codes[i], thresholds[i], probabilities[i] = _ema_step(
            scores[i], times[i], deciding, works[i], numbers[i], floats, ints
        )


class EmaController(Controller):
    r"""Follow the flag rate by the rule of the paper, section 5.2.

    The threshold rises by `step` while the recent flag rate is above the capacity, and falls by
    `step` otherwise. The recent rate is an exponential average of the flags, or their share in a
    sliding window. The rule makes no guarantee. The average is skewed; therefore its
    *median* is driven to the rate, and the rate itself ends up above the capacity unless `alpha` is
    far below it. With a large step the threshold oscillates. :class:`QuantileTracker` has neither
    problem.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model, for the first threshold.
    alpha : float, default=0.002
        Weight of the newest item in the average.
    window : int, default=None
        Number of items whose flagged share takes the place of the average. Before the first item,
        it is as full as the capacity allows.
    step : float, default=None
        By how much the threshold moves, in units of the score. The paper gives no value. `None` is
        a thousandth of half the distance between the 16th and the 84th percentile of the
        calibration scores; for normal scores, half that distance is the standard deviation.
    **shared
        `prevalence`, the share of rare items, for a multiple; and `remember` as for
        :class:`Controller`.

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

    compiled_step = staticmethod(_ema_step)
    compiled_loop = staticmethod(_ema_loop)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        alpha: float = 0.002,
        window: int | None = None,
        step: float | None = None,
        **shared: Any,
    ) -> None:
        options = {"alpha": alpha, "window": window, "step": step, **check_shared(shared)}
        super().__init__(capacity, calibration_scores=calibration_scores, **options)
        scores, ratio = check_calibration_scores(calibration_scores), self.ratio(capacity)
        threshold = cut_after(scores, int(ratio * scores.size)).value
        if not np.isfinite(threshold):  # everything may be flagged: start at the lowest score
            threshold = float(scores.min())
        if step is None:
            low, high = np.quantile(scores, [0.16, 0.84])
            step = float(high - low) / 2_000 or 1e-3
        self.state_floats = np.array([threshold, ratio, ratio, alpha, step], dtype=np.float64)
        self.state_ints = (
            np.zeros(0, dtype=np.int64) if window is None else _full(window, float(ratio))
        )

    def is_sound(self, n_floats: int, n_ints: int) -> bool:
        """Whether the window has its size, and its count is that of its flags."""
        if not super().is_sound(n_floats, n_ints) or n_ints == 0:
            return super().is_sound(n_floats, n_ints)
        ints, ring = self.state_ints, self.state_ints[_FLAGS:]
        are_flags = bool(np.all((ring == 0) | (ring == 1)))
        return are_flags and 0 <= ints[OLDEST_FLAG] < ring.size and ints[FLAGGED] == ring.sum()

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set the rate."""
        self.state_floats[RATE] = self.ratio(capacity)

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate the threshold, and the step with the spread of the scores."""
        floats = self.state_floats
        floats[THRESHOLD] = old.translate(floats[THRESHOLD : THRESHOLD + 1], to=new)[0]
        step = float(floats[STEP]) * (new.spread / old.spread)
        floats[STEP] = min(max(step, 1.0 / FARTHEST_SCORE), FARTHEST_SCORE)


def _full(window: int, rate: float) -> Ints:
    """Return a window with as many flags as the rate allows, evenly spread."""
    flags = np.diff(np.floor(np.arange(window + 1) * rate)).astype(np.int64)
    return np.concatenate([[flags.sum(), 0], flags])
