"""The exact quantile of a sliding window, in logarithmic time per item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ..capacity import Capacity
from ._base import Controller
from ._decision import ABOVE, BELOW
from ._input import check_reference, check_whole
from ._tail import map_scores
from ._timeline import Arrays, Clock

__all__ = ["WindowController"]

# The floats are the ring of scores. The whole numbers begin with the wanted size of the upper heap,
# its size, and the slot of the oldest score; then come the heaps.
WANTED, UPPER, OLDEST = range(3)
_HEAPS = 3

# A slot is a place in the ring of scores. The k highest scores form a heap with the lowest of them
# on top, the others a heap with their highest on top: the threshold. Both lie in `heaps[0]`, the
# upper one from the front and the lower one from the back, and `heaps[1]` says where a slot is.


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
    """Let the slot at a place rise or sink to where it belongs."""
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
def _resize(whole: Any, ring: Any, heaps: Any) -> None:
    """Move slots over the border until the upper heap has its wanted size."""
    n = ring.size
    while whole[UPPER] != whole[WANTED]:
        from_upper = whole[UPPER] > whole[WANTED]
        size = whole[UPPER] if from_upper else n - whole[UPPER]
        moving, last = _at(0, from_upper, heaps), _at(size - 1, from_upper, heaps)
        if size > 1:
            _put(0, last, from_upper, heaps)
            _settle(0, size - 1, from_upper, ring, heaps)
        whole[UPPER] += -1 if from_upper else 1
        _put(n - size, moving, not from_upper, heaps)
        _settle(n - size, n - size + 1, not from_upper, ring, heaps)


@njit(cache=True)
def _replace_oldest(score: float, whole: Any, ring: Any, heaps: Any) -> None:
    """Let a new score take the place of the oldest."""
    n, k, slot = ring.size, whole[UPPER], whole[OLDEST]
    ring[slot] = score
    whole[OLDEST] = (slot + 1) % n
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
    score: float, at: float, deciding: bool, ring: Any, whole: Any
) -> tuple[int, float]:
    heaps = whole[_HEAPS:].reshape(2, -1)
    if whole[UPPER] != whole[WANTED]:
        _resize(whole, ring, heaps)
    threshold = ring[_at(0, False, heaps)] if whole[UPPER] < ring.size else -np.inf
    flag = score > threshold and whole[WANTED] > 0
    _replace_oldest(score, whole, ring, heaps)
    return (ABOVE if flag else BELOW), (threshold if whole[WANTED] > 0 else np.inf)


@njit(cache=True)
def _window_many(
    scores: Any, times: Any, deciding: bool, codes: Any, thresholds: Any, ring: Any, whole: Any
) -> None:
    for i in range(scores.size):
        codes[i], thresholds[i] = _window_step(scores[i], times[i], deciding, ring, whole)


class WindowController(Controller):
    """Flag what stands out among the last so many items.

    The threshold is the exact quantile of a sliding window of scores, found in time that grows with
    the logarithm of the window. It makes no promise about the rate of a stream that changes.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`; rounded down to
        whole items of the window. The window should be large enough to hold some.
    calibration_scores : array-like of shape (n_items,)
        Recent scores in order of arrival. They fill the window, repeated if they are too few.
    window : int, default=5000
        Number of items.
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
    >>> from shortlist.online import WindowController
    >>> window = WindowController(
    ...     Capacity.fraction(0.1), calibration_scores=np.arange(10), window=10
    ... )
    >>> [window.decide(score).threshold for score in (20.0, 30.0, 1.0)]
    [8.0, 9.0, 20.0]
    """

    _step = staticmethod(_window_step)
    _many = staticmethod(_window_many)

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
            window=check_whole("window", window, "items", 1 << 24),
            prevalence=check_reference(prevalence),
        )

    def _check(self, capacity: Capacity) -> None:
        capacity.as_ratio(self._options["prevalence"])

    def _first_arrays(self, calibration: NDArray[np.float64]) -> Arrays:
        ring = np.resize(calibration[-self._options["window"] :], self._options["window"])
        return ring, np.concatenate([np.zeros(_HEAPS, np.int64), _sorted_heaps(ring).ravel()])

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        self._whole[WANTED] = self._wanted(capacity)

    def _wanted(self, capacity: Capacity) -> int:
        return int(capacity.as_ratio(self._options["prevalence"]) * self._options["window"])

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        # A rising map keeps the order, so that the heaps stay as they are.
        self._real[:] = map_scores(self._real, old, new)

    def _sound(self) -> bool:
        n, whole = self._options["window"], self._whole
        return (
            self._real.shape == (n,)
            and bool(np.isfinite(self._real).all())
            and whole.shape == (_HEAPS + 2 * n,)
            and whole[WANTED] == self._wanted(self._capacity)
            and 0 <= whole[UPPER] <= n
            and 0 <= whole[OLDEST] < n
            and _are_heaps(whole[_HEAPS:].reshape(2, -1), int(whole[UPPER]), self._real)
        )


def _sorted_heaps(ring: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return heaps of which the upper one is empty; a sorted array is a heap."""
    order = np.argsort(ring, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return np.vstack([order, places]).astype(np.int64)


def _are_heaps(heaps: NDArray[np.int64], k: int, ring: NDArray[np.float64]) -> bool:
    """Whether every slot is in one place, and no score lies above its parent in a heap."""
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
