"""The exact quantile of a sliding window."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ..capacity import Capacity
from ._inputs import check_calibration_scores
from ._scale import TailScale
from .controller import Controller
from .decisions import ABOVE_THRESHOLD, BELOW_THRESHOLD

# The floats: the threshold, and the ring of scores. The ints: how many scores may lie above the
# threshold, how many do, how many are equal to it, and the place of the oldest score.
WANTED, ABOVE, EQUAL, OLDEST = range(4)
_RING = 1


@njit(cache=True)
def _rise(floats: Any, ints: Any) -> None:
    """Move the threshold up to the next higher score."""
    threshold, found, n = floats[0], np.inf, 0
    for score in floats[_RING:]:
        if threshold < score <= found:
            n = n + 1 if score == found else 1
            found = score
    floats[0], ints[ABOVE], ints[EQUAL] = found, ints[ABOVE] - n, n


@njit(cache=True)
def _fall(floats: Any, ints: Any) -> None:
    """Move the threshold down to the next lower score."""
    threshold, found, n = floats[0], -np.inf, 0
    for score in floats[_RING:]:
        if found <= score < threshold:
            n = n + 1 if score == found else 1
            found = score
    floats[0], ints[ABOVE], ints[EQUAL] = found, ints[ABOVE] + ints[EQUAL], n


@njit(cache=True)
def _replace_oldest(score: float, floats: Any, ints: Any) -> None:
    """Replace the oldest score by a new one, and move the threshold if it is no longer right."""
    ring, place = floats[_RING:], ints[OLDEST]
    oldest, ring[place] = ring[place], score
    ints[OLDEST] = (place + 1) % ring.size
    ints[ABOVE] += int(score > floats[0]) - int(oldest > floats[0])
    ints[EQUAL] += int(score == floats[0]) - int(oldest == floats[0])
    wanted = min(ints[WANTED], ring.size - 1)
    while ints[ABOVE] > wanted:
        _rise(floats, ints)
    while ints[ABOVE] + ints[EQUAL] <= wanted:
        _fall(floats, ints)


@njit(cache=True)
def _window_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    threshold = floats[0] if ints[WANTED] < floats.size - _RING else -np.inf
    _replace_oldest(score, floats, ints)
    if ints[WANTED] == 0:
        return BELOW_THRESHOLD, np.inf, 0.0
    flag = score > threshold
    return (ABOVE_THRESHOLD, threshold, 1.0) if flag else (BELOW_THRESHOLD, threshold, 0.0)


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

    The threshold is the exact quantile of a sliding window of scores. An item that moves the
    threshold takes time proportional to the window; most do not. There is no guarantee for the rate
    of a stream that changes.

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
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            window=window,
            **shared,
        )
        self.check_capacity(capacity)
        last = check_calibration_scores(calibration_scores)[-self.options["window"] :]
        ring = np.resize(last, self.options["window"])
        self.state_floats, self.state_ints = np.append(0.0, ring), np.zeros(4, np.int64)
        self.apply_capacity(capacity)

    def apply_capacity(self, capacity: Capacity) -> None:
        """Find the threshold that leaves the wanted number of scores above it."""
        ratio = capacity.as_ratio(self.options.get("prevalence"))
        self.state_ints[WANTED] = int(ratio * self.options["window"])
        self._find_threshold()

    def _find_threshold(self) -> None:
        ring, ints = self.state_floats[_RING:], self.state_ints
        place = max(ring.size - 1 - int(ints[WANTED]), 0)
        threshold = np.partition(ring, place)[place]
        self.state_floats[0] = threshold
        ints[[ABOVE, EQUAL]] = np.sum(ring > threshold), np.sum(ring == threshold)

    def is_sound(self, n_floats: int, n_ints: int) -> bool:
        """Whether the ring has its size, and the counts are those of its scores."""
        if not super().is_sound(n_floats, n_ints):
            return False
        (threshold, ring), ints = np.split(self.state_floats, [_RING]), self.state_ints
        counts = [np.sum(ring > threshold), np.sum(ring == threshold)]
        is_within = ints[WANTED] >= 0 and 0 <= ints[OLDEST] < ring.size
        return bool(is_within and ints[[ABOVE, EQUAL]].tolist() == counts)

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all scores in the window."""
        self.state_floats[:] = old.translate(self.state_floats, to=new)
        self._find_threshold()
