"""Lists of the highest scores, and the score that so many of them exceed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ._book import AHEAD, LISTED, STRIDE

__all__ = ["by_pattern", "by_recent", "drop_passed", "insert", "look_ahead"]


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
def look_ahead(book: Any) -> None:
    """Merge the lists of all remembered periods into one, in falling order of scores."""
    n, ahead = 0, book.ahead
    for age in range(book.past.shape[0]):
        for i in range(int(book.sizes[0, age])):
            ahead[0, n], ahead[1, n], ahead[2, n] = book.past[age, 0, i], book.past[age, 1, i], age
            n += 1
    order = np.argsort(-ahead[0, :n], kind="mergesort")
    for row in range(3):
        ahead[row, :n] = ahead[row, :n][order]
    book.whole[AHEAD] = n


@njit(cache=True)
def drop_passed(phase: float, book: Any) -> None:
    """Forget what earlier periods had before this phase."""
    n, ahead = 0, book.ahead
    for i in range(book.whole[AHEAD]):
        if ahead[1, i] > phase:
            for row in range(3):
                ahead[row, n] = ahead[row, i]
            n += 1
    book.whole[AHEAD] = n


@njit(cache=True)
def by_pattern(target: float, memory: int, phase: float, book: Any) -> float:
    """Find the score that so many arrivals ahead exceed, going by earlier periods' later hours."""
    ahead, sizes = book.ahead, book.sizes
    memory = min(memory, sizes.shape[1])
    heap, last = 0.0, -np.inf
    for i in range(book.whole[AHEAD]):
        age = int(ahead[2, i])
        if age < memory and ahead[1, i] > phase:
            last = ahead[0, i]
            heap += sizes[1, age] / memory
            if heap > target:
                return last
    return last


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
