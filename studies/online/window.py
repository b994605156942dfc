"""A rule that is compared with ours: the exact quantile of a sliding window of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from shortlist import Capacity
from shortlist.online._inputs import TailScale, check_calibration_scores, check_shared
from shortlist.online.controller import Controller
from shortlist.online.decisions import ABOVE_THRESHOLD, BELOW_THRESHOLD

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
    flag = score > threshold
    return (ABOVE_THRESHOLD, threshold, 1.0) if flag else (BELOW_THRESHOLD, threshold, 0.0)


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
    >>> from studies.online.window import WindowController
    >>> window = WindowController(
    ...     Capacity.fraction(0.1), calibration_scores=np.arange(10), window=10
    ... )
    >>> [window.decide(score).threshold for score in (20.0, 30.0, 1.0)]
    [8.0, 9.0, 20.0]
    """

    compiled_step = staticmethod(_window_step)

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
            **check_shared(shared),
        )
        self.check_capacity(capacity)
        last = check_calibration_scores(calibration_scores)[-self.options["window"] :]
        ring = np.resize(last, self.options["window"])
        self.state_floats = np.concatenate([np.sort(ring), ring])
        self.state_ints = np.zeros(2, np.int64)
        self.apply_capacity(capacity)

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
        """Translate all scores in the window, which keep their order."""
        self.state_floats[:] = old.translate(self.state_floats, to=new)
