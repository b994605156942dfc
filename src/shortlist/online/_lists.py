"""Lists of the highest scores, and the score that so many of them exceed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ._book import LISTED, MEMORY, STRIDE

__all__ = ["by_pattern", "by_recent", "insert"]


@njit(cache=True)
def insert(table: Any, n: int, score: float, phase: float) -> int:
    """Put a score into a list in falling order, and return the list's new length."""
    size = table.shape[1]
    if n == size and score <= table[0, n - 1]:
        return n
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if table[0, middle] >= score:
            low = middle + 1
        else:
            high = middle
    if n < size:
        n += 1
    for i in range(n - 1, low, -1):
        table[0, i] = table[0, i - 1]
        table[1, i] = table[1, i - 1]
    table[0, low], table[1, low] = score, phase
    return n


@njit(cache=True)
def by_recent(target: float, phase: float, book: Any) -> float:
    """Find the score that so many of the last period's length of arrivals exceeded."""
    whole, today, past = book.whole, book.today, book.past[0]
    n_past = int(book.sizes[0, 0])
    i, j, heap, last = 0, 0, 0.0, -np.inf
    weight = float(whole[STRIDE])
    per_past = book.sizes[1, 0] * book.sizes[2, 0]  # what one entry of the last period stands for
    while heap <= target:
        while j < n_past and past[1, j] <= phase:
            j += 1
        from_past = j < n_past
        if i < whole[LISTED] and (not from_past or today[0, i] >= past[0, j]):
            last = today[0, i]
            heap += weight
            i += 1
        elif from_past:
            last = past[0, j]
            heap += per_past
            j += 1
        else:
            break
    return last


@njit(cache=True)
def by_pattern(target: float, phase: float, book: Any) -> float:
    """Find the score that this share of a period's arrivals exceeded in its later hours.

    Earlier periods differ. A flag that is kept for a rich rest of the day and not needed costs an
    item near the threshold, one that is missing then costs an item from the top: the richer half
    of the earlier periods decides.
    """
    found = np.empty(MEMORY)
    for age in range(MEMORY):
        found[age] = _in_later_hours(target, phase, age, book)
    found.sort()
    return found[MEMORY // 2 :].mean()


@njit(cache=True)
def _in_later_hours(target: float, phase: float, age: int, book: Any) -> float:
    past, listed = book.past[age], int(book.sizes[0, age])
    heap = 0.0
    for i in range(listed):
        if past[1, i] > phase:
            heap += book.sizes[1, age]
            if heap > target:
                return past[0, i]
    return past[0, listed - 1]
