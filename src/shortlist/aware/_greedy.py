"""Greedy forward selection of the terms of a score, for detection within a number of flags.

A score is a sum of terms, and each step adds the term that detects the most: the number of rare
items strictly above the (`max_flags` + 1)-th highest sum. A term detects r rare items exactly if at
most `max_flags` items lie at or above its r-th highest rare sum. To lead, a term must detect one
rare item more than the leader, which most terms are soon seen not to do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .._core.arrays import Doubles, Rows

_BLOCK = 128  # items counted before checking whether they are enough


class GreedyPath(NamedTuple):
    """The terms in the order of their choice, and the rare items detected after each."""

    chosen: Rows
    detected: Rows


def greedy_path(rare: Doubles, common: Doubles, max_flags: Any, *, n_steps: int) -> GreedyPath:
    """Choose `n_steps` terms; each is the one that detects the most with those before it.

    Parameters
    ----------
    rare : ndarray of shape (n_terms, n_rare)
        What each term adds to the score of each rare item, in C order.
    common : ndarray of shape (n_terms, n_common)
        The same for the other items.
    max_flags : int or sequence of int
        How many items may be flagged. Of several numbers, the first decides; the second decides
        ties at the first, and so on. Remaining ties go to the term that comes first.
    n_steps : int
        How many terms to choose, or all if there are fewer.

    Examples
    --------
    The second term moves one of the two rare items to the top, the third the other one.

    >>> rare = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> common = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    >>> greedy_path(rare, common, 2, n_steps=2)
    GreedyPath(chosen=array([1, 2]), detected=array([1, 2]))
    """
    limits = np.atleast_1d(np.asarray(max_flags, dtype=np.intp))
    return GreedyPath(*_choose_all(rare, common, limits, min(n_steps, len(rare))))


@njit(cache=True)
def _choose_all(rare, common, limits, n_steps):
    """Return the chosen terms, and the number of rare items detected after each."""
    chosen, detected = np.empty(n_steps, np.intp), np.empty(n_steps, np.intp)
    rare_sums, common_sums = np.zeros(rare.shape[1]), np.zeros(common.shape[1])
    candidates = np.arange(len(rare))
    for step in range(n_steps):
        best, detected[step] = _best_term(candidates, rare, common, rare_sums, common_sums, limits)
        chosen[step] = best
        rare_sums += rare[best]
        common_sums += common[best]
        candidates = candidates[candidates != best]
    return chosen, detected


@njit(cache=True)
def _best_term(candidates, rare, common, rare_sums, common_sums, limits):
    """Return the first of the best terms, and how many rare items it detects."""
    best, found = -1, np.full(limits.size, -1)
    for term in candidates:
        scores, sums, own = rare_sums + rare[term], common_sums, common[term]
        for place in range(limits.size):
            limit, leader = limits[place], found[place]
            if best == term or _detects(scores, sums, own, limit, leader + 1):
                best, found[place] = term, _count_detected(scores, sums, own, limit)
            elif place + 1 == limits.size or not _detects(scores, sums, own, limit, leader):
                break
    return best, found[0]


@njit(cache=True)
def _count_detected(scores, sums, term, max_flags):
    """Find how many rare items a term detects, by halving."""
    low, high = 0, scores.size
    while low < high:
        middle = (low + high + 1) // 2
        if _detects(scores, sums, term, max_flags, middle):
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True)
def _detects(scores, sums, term, max_flags, needed):
    """Return whether at least `needed` rare items are detected."""
    if needed <= 0:
        return True
    if needed > min(scores.size, max_flags):
        return False
    place = scores.size - needed
    value = np.partition(scores, place)[place]
    room = max_flags
    for item in range(scores.size):
        room -= scores[item] >= value
    return room >= 0 and room >= _count_from(sums, term, value, room)


@njit(cache=True)
def _count_from(sums, term, value, enough):
    """Count the items at or above `value`, and stop soon after finding more than `enough`."""
    count = 0
    for start in range(0, sums.size, _BLOCK):
        some_sums, some_terms = sums[start : start + _BLOCK], term[start : start + _BLOCK]
        for item in range(some_sums.size):  # from 0: only then does the compiler vectorise
            count += some_sums[item] + some_terms[item] >= value
        if count > enough:
            break
    return count
