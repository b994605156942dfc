"""What a budget remembers: this period, the periods before, and how its rules have done."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["MEMORY", "N_RULES", "Book", "first_book", "is_sound", "open_book", "stride_for"]

# The whole numbers: capacity, flags used, index of the period, arrivals seen in it, entries of
# today's list, every how many arrivals is listed, arrivals since the thresholds were computed, the
# leading rule, whether a period has begun, whether it was joined midway, whether the rule is
# pinned, and the longest list; then flags used and noted by each shadow.
CAPACITY, USED, PERIOD, SEEN, LISTED, STRIDE, SINCE, LEADER, BEGUN, JOINED, PINNED, SIZE = range(12)
SHADOW = 12
N_RULES = 2
NOTED = SHADOW + N_RULES
_WHOLE_SIZE = NOTED + N_RULES
# The floats: length and start of periods, expected arrivals, phase at which the thresholds were
# computed, the threshold in force; then thresholds of the shadows and averages of their catches.
LENGTH, ORIGIN, EXPECTED, PHASE, THRESHOLD = range(5)
SHADOW_THRESHOLD = 5
CATCH = SHADOW_THRESHOLD + N_RULES
_REAL_SIZE = CATCH + N_RULES

MEMORY = 6  # periods
# A list has room for four entries per flag, or if that would be too long, for at least two; it
# lists every second, fourth, ... arrival when it cannot hold two per flag.
_PER_FLAG, _LEAST_PER_FLAG = 4, 2
_SHORTEST_LIST, _MODERATE_LIST, _LONGEST_LIST = 64, 2_048, 4_096
_BLOCKS = 48  # of a period, for the pattern of its arrivals
_GOLDEN = 0.6180339887498949


class Book(NamedTuple):
    """Views of the two arrays that a budget lives in.

    A list holds the highest scores in falling order, with the phase of the period at which they
    came. `sizes` says for each earlier period how many are listed, which share of its arrivals an
    entry stands for, and how many arrivals there were. `profile` has the usual share of arrivals
    of each part of a period, and this period's counts. `caught` lists what each shadow has flagged.
    """

    whole: Any
    real: Any
    today: Any
    past: Any
    sizes: Any
    profile: Any
    caught: Any


@njit(cache=True)
def open_book(real: Any, whole: Any) -> Any:
    """Return the views."""
    size = whole[SIZE]
    today = _REAL_SIZE
    past = today + 2 * size
    sizes = past + MEMORY * 2 * size
    profile = sizes + 3 * MEMORY
    caught = profile + 2 * _BLOCKS
    return Book(
        whole,
        real,
        real[today:past].reshape(2, size),
        real[past:sizes].reshape(MEMORY, 2, size),
        real[sizes:profile].reshape(3, MEMORY),
        real[profile:caught].reshape(2, _BLOCKS),
        real[caught : caught + N_RULES * size].reshape(N_RULES, size),
    )


@njit(cache=True)
def stride_for(capacity: int, size: int) -> int:
    """Return every how many arrivals is listed, so that a list reaches well past the capacity."""
    stride = 1
    while _LEAST_PER_FLAG * capacity > stride * size:
        stride *= 2
    return stride


def first_book(
    calibration: NDArray[np.float64],
    *,
    capacity: int,
    length: float,
    origin: float,
    expected: float,
    rule: int | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the arrays of a budget for which calibration scores stand for the periods before."""
    size = _list_size(capacity)
    whole, real = np.zeros(_WHOLE_SIZE, np.int64), np.zeros(_n_floats(size))
    whole[SIZE], whole[STRIDE] = size, stride_for(capacity, size)
    whole[PINNED], whole[LEADER] = rule is not None, rule or 0
    real[LENGTH], real[ORIGIN], real[EXPECTED] = length, origin, expected
    book = open_book(real, whole)
    _make_up_periods(book, calibration)
    book.profile[0] = 1 / _BLOCKS
    return real, whole


def _list_size(capacity: int) -> int:
    """Return how many entries a list has room for."""
    roomy = min(max(_PER_FLAG * capacity, _SHORTEST_LIST), _MODERATE_LIST)
    return min(max(roomy, _LEAST_PER_FLAG * capacity), _LONGEST_LIST)


def _n_floats(size: int) -> int:
    return _REAL_SIZE + (2 + 2 * MEMORY + N_RULES) * size + 3 * MEMORY + 2 * _BLOCKS


def _make_up_periods(book: Any, calibration: NDArray[np.float64]) -> None:
    """Make up periods whose highest scores are those to be expected, spread evenly over them."""
    size, stride, expected = book.whole[SIZE], book.whole[STRIDE], book.real[EXPECTED]
    n = int(min(size, max(expected // stride, 1)))
    ranks = np.arange(n)
    shares = np.clip(1 - (ranks + 0.5) * stride / expected, 0, 1)
    for age in range(MEMORY):
        book.past[age, 0, :n] = np.quantile(calibration, shares)
        book.past[age, 1, :n] = ((ranks + 1) * _GOLDEN + age * _GOLDEN**2) % 1
        book.sizes[:, age] = n, stride / expected, expected


def is_sound(real: NDArray[np.float64], whole: NDArray[np.int64]) -> bool:
    """Whether the kernels can work with arrays that were loaded."""
    if whole.shape != (_WHOLE_SIZE,) or not _SHORTEST_LIST <= whole[SIZE] <= _LONGEST_LIST:
        return False
    size = int(whole[SIZE])
    if real.shape != (_n_floats(size),):
        return False
    book = open_book(real, whole)
    lengths = [whole[LISTED], *whole[NOTED:], *book.sizes[0]]
    scores = (book.past, book.today, book.caught)
    return (
        all(0 <= length <= size for length in lengths)
        and book.sizes[0].min() >= 1
        and 0 <= whole[LEADER] < N_RULES
        and 1 <= whole[STRIDE] <= 1 << 40
        and min(whole[[USED, SEEN, SINCE]].min(), whole[SHADOW:].min()) >= 0
        and set(whole[[BEGUN, JOINED, PINNED]].tolist()) <= {0, 1}
        and all(bool(np.isfinite(each).all()) for each in scores)
        and all(_are_shares(each) for each in (book.sizes, book.profile))
        and 0 < real[EXPECTED] < np.inf
        and 0 <= real[PHASE] <= 1
    )


def _are_shares(values: NDArray[np.float64]) -> bool:
    return bool(np.all((values >= 0) & np.isfinite(values)))
