"""The exact quantile of a sliding window, in logarithmic time per item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats
from .._core.validation import check_count
from ..capacity import Capacity
from ._inputs import check_optional_prevalence
from ._scale import TailScale
from ._time import Clock
from .controller import Controller
from .decisions import ABOVE_THRESHOLD, BELOW_THRESHOLD

# The floats are the ring of scores. The ints begin with the wanted size of the upper heap, its
# actual size, and the slot of the oldest score; the two heaps follow.
WANTED, UPPER, OLDEST = range(3)
_HEAPS = 3
_LARGEST_WINDOW = 1 << 24

# A slot is a place in the ring of scores. The k highest scores form a heap with the lowest of them
# on top; the others form a heap with their highest on top, which is the threshold. `heaps[0]` holds
# both, the upper one from the front and the lower one from the back. `heaps[1]` holds the place of
# each slot.


@njit(cache=True)
def _goes_first(slot: int, other: int, upper: bool, ring: Any) -> bool:
    return ring[slot] < ring[other] if upper else ring[slot] > ring[other]


@njit(cache=True)
def _put(place: int, slot: int, upper: bool, heaps: Any) -> None:
    index = place if upper else heaps.shape[1] - 1 - place
    heaps[0, index], heaps[1, slot] = slot, index


@njit(cache=True)
def _at(place: int, upper: bool, heaps: Any) -> int:
    return heaps[0, place if upper else heaps.shape[1] - 1 - place]


@njit(cache=True)
def _settle(place: int, size: int, upper: bool, ring: Any, heaps: Any) -> None:
    """Move the slot at a place up or down to where it belongs."""
    slot = _at(place, upper, heaps)
    while place > 0 and _goes_first(slot, _at((place - 1) // 2, upper, heaps), upper, ring):
        _put(place, _at((place - 1) // 2, upper, heaps), upper, heaps)
        place = (place - 1) // 2
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _goes_first(
            _at(child + 1, upper, heaps), _at(child, upper, heaps), upper, ring
        ):
            child += 1
        if not _goes_first(_at(child, upper, heaps), slot, upper, ring):
            break
        _put(place, _at(child, upper, heaps), upper, heaps)
        place = child
    _put(place, slot, upper, heaps)


@njit(cache=True)
def _resize(ints: Any, ring: Any, heaps: Any) -> None:
    """Move slots from one heap to the other until the upper one has its wanted size."""
    n = ring.size
    while ints[UPPER] != ints[WANTED]:
        from_upper = ints[UPPER] > ints[WANTED]
        size = ints[UPPER] if from_upper else n - ints[UPPER]
        moving, last = _at(0, from_upper, heaps), _at(size - 1, from_upper, heaps)
        if size > 1:
            _put(0, last, from_upper, heaps)
            _settle(0, size - 1, from_upper, ring, heaps)
        ints[UPPER] += -1 if from_upper else 1
        _put(n - size, moving, not from_upper, heaps)
        _settle(n - size, n - size + 1, not from_upper, ring, heaps)


@njit(cache=True)
def _replace_oldest(score: float, ints: Any, ring: Any, heaps: Any) -> None:
    """Replace the oldest score by a new one."""
    n, k, slot = ring.size, ints[UPPER], ints[OLDEST]
    ring[slot] = score
    ints[OLDEST] = (slot + 1) % n
    upper = heaps[1, slot] < k
    place = heaps[1, slot] if upper else n - 1 - heaps[1, slot]
    _settle(place, k if upper else n - k, upper, ring, heaps)
    if 0 < k < n:
        lowest_above, highest_below = _at(0, True, heaps), _at(0, False, heaps)
        if ring[lowest_above] < ring[highest_below]:
            _put(0, highest_below, True, heaps)
            _put(0, lowest_above, False, heaps)
            _settle(0, k, True, ring, heaps)
            _settle(0, n - k, False, ring, heaps)


@njit(cache=True)
def _window_step(
    score: float, at: float, deciding: bool, work: int, number: float, ring: Any, ints: Any
) -> tuple[int, float, float]:
    heaps = ints[_HEAPS:].reshape(2, -1)
    if ints[UPPER] != ints[WANTED]:
        _resize(ints, ring, heaps)
    threshold = ring[_at(0, False, heaps)] if ints[UPPER] < ring.size else -np.inf
    _replace_oldest(score, ints, ring, heaps)
    if ints[WANTED] == 0:
        return BELOW_THRESHOLD, np.inf, 0.0
    flag = score > threshold
    return (ABOVE_THRESHOLD, threshold, 1.0) if flag else (BELOW_THRESHOLD, threshold, 0.0)


@njit(cache=True)
def _window_loop(items: Any, deciding: bool, answers: Any, ring: Any, ints: Any) -> None:
    scores, times, works, numbers = items
    _, thresholds, codes, probabilities = answers
    for i in range(scores.size):
        codes[i], thresholds[i], probabilities[i] = _window_step(
            scores[i], times[i], deciding, works[i], numbers[i], ring, ints
        )


class WindowController(Controller):
    """Flag the items that stand out among the most recent ones.

    The threshold is the exact quantile of a sliding window of scores. Each update takes time
    proportional to the logarithm of the window. There is no guarantee for the rate of a stream that
    changes.

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
    prevalence : number, default=None
        Share of rare items, for a multiple.
    clock, remember
        As for :class:`Controller`.

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
        prevalence: Any = None,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            window=check_count("window", window, at_most=_LARGEST_WINDOW),
            prevalence=check_optional_prevalence(prevalence),
        )

    def check_capacity(self, capacity: Capacity) -> None:
        """Accept every capacity that is a rate."""
        capacity.as_ratio(self.options["prevalence"])

    def initial_state(self, calibration_scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Fill the window with the last calibration scores."""
        size = self.options["window"]
        ring = np.resize(calibration_scores[-size:], size)
        return ring, np.concatenate([np.zeros(_HEAPS, np.int64), _sorted_heaps(ring).ravel()])

    def apply_capacity(self, capacity: Capacity, *, since: float | None = None) -> None:
        """Set the wanted size of the upper heap."""
        self.state_ints[WANTED] = self._wanted(capacity)

    def _wanted(self, capacity: Capacity) -> int:
        return int(capacity.as_ratio(self.options["prevalence"]) * self.options["window"])

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all scores in the window."""
        # The translation keeps the order; therefore the heaps remain valid.
        self.state_floats[:] = old.translate(self.state_floats, to=new)

    def is_consistent(self) -> bool:
        """Check the sizes and the order of the heaps."""
        n, ring, ints = self.options["window"], self.state_floats, self.state_ints
        return (
            ring.shape == (n,)
            and bool(np.isfinite(ring).all())
            and ints.shape == (_HEAPS + 2 * n,)
            and ints[WANTED] == self._wanted(self.capacity)
            and 0 <= ints[UPPER] <= n
            and 0 <= ints[OLDEST] < n
            and _are_heaps(ints[_HEAPS:].reshape(2, -1), int(ints[UPPER]), ring)
        )


def _sorted_heaps(ring: Floats) -> NDArray[np.int64]:
    """Return two heaps, the upper one empty. A sorted array is a heap."""
    order = np.argsort(ring, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return np.vstack([order, places]).astype(np.int64)


def _are_heaps(heaps: NDArray[np.int64], k: int, ring: Floats) -> bool:
    """Whether every slot has one place, and both heaps are in order."""
    slots = np.arange(ring.size)
    if not np.array_equal(np.sort(heaps[0]), slots):
        return False
    if not np.array_equal(heaps[1][heaps[0]], slots):
        return False
    upper, lower = ring[heaps[0, :k]], -ring[heaps[0, k:]][::-1]
    in_order = all(
        np.all(heap[1:] >= heap[(np.arange(1, heap.size) - 1) // 2]) for heap in (upper, lower)
    )
    return in_order and (k in (0, ring.size) or bool(upper[0] >= -lower[0]))
