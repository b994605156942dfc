"""Greedy forward selection of the terms of a score, for detection within a number of flags.

A score is a sum of terms, and each step adds the term that detects the most: the number of rare
items strictly above the (`max_flags` + 1)-th highest sum. A term detects r rare items exactly if at
most `max_flags` items lie at or above its r-th highest rare sum. To lead, a term must detect one
rare item more than the leader, or equally many and come first.

Nearly all terms are refuted without looking at all items. Any level refutes r detections that fewer
than r rare sums reach, and more than `max_flags` - r common ones. The level that refuted a term in
an earlier step usually does so again. Common items are counted among those that ranked high when
the term was last looked at, the highest first: most counts end early. Levels and high items are
guesses, but every refutation is certain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .._core.arrays import Doubles, Rows

__all__ = ["GreedyPath", "greedy_path"]

_BLOCK = 128  # items counted before checking whether they are enough
_HIGH = 3  # items that rank high, for each flag
_SPARE = 32  # one in so many rare items may rise above a level before it no longer refutes


class GreedyPath(NamedTuple):
    """The terms in the order of their choice, and the rare items detected after each."""

    chosen: Rows
    detected: Rows


class Memory(NamedTuple):
    """What is known about each term: its part of high items, their ranking, and a level."""

    high: Any
    rankings: Any  # the step that ranked the items; -1 where nothing is known
    levels: Any  # above the base of the sums


class Sums(NamedTuple):
    """The sums so far, and those of the items that ranked high in each step."""

    rare: Any
    common: Any
    high: Any
    rankings: Any
    step: int
    base: float


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
    n_terms, n_common = common.shape
    n_high = min(_HIGH * int(limits[0]), n_common)
    memory = Memory(
        high=np.empty((n_terms, n_high)),
        rankings=np.full(n_terms, -1),
        levels=np.full(n_terms, np.nan),
    )
    return GreedyPath(*_choose_all(rare, common, limits, min(n_steps, n_terms), memory))


@njit(cache=True)
def _choose_all(rare, common, limits, n_steps, memory):
    """Return the chosen terms, and the number of rare items detected after each."""
    chosen, detected = np.empty(n_steps, np.intp), np.empty(n_steps, np.intp)
    rare_sums, common_sums = np.zeros(rare.shape[1]), np.zeros(common.shape[1])
    n_high = memory.high.shape[1]
    rankings, high_sums = np.empty((n_steps, n_high), np.intp), np.empty((n_steps, n_high))
    candidates, base = np.arange(len(rare)), 0.0
    for step in range(n_steps):
        if n_high:
            rankings[step] = _highest(common_sums, n_high)
            # Measured from this base, levels stay about the same while all sums rise or fall.
            base = common_sums[rankings[step, min(limits[0], n_high - 1)]]
        for ranking in range(step + 1):
            high_sums[ranking] = common_sums[rankings[ranking]]
        sums = Sums(rare_sums, common_sums, high_sums, rankings, step, base)
        leaders, found = _best_term(candidates, rare, common, sums, limits, memory)
        best = leaders[0]
        chosen[step], detected[step] = best, found[0]
        rare_sums += rare[best]
        common_sums += common[best]
        candidates = _leaders_first(candidates, leaders)
    return chosen, detected


@njit(cache=True)
def _highest(sums, n_high):
    """Return the places of the highest sums, the highest first."""
    some = np.flatnonzero(sums >= _nth_largest(sums.copy(), n_high - 1))
    return some[np.argsort(-sums[some])][:n_high]


@njit(cache=True)
def _leaders_first(candidates, leaders):
    """Remove the chosen term, and put former leaders first: the others fail against them."""
    is_leader = np.zeros(candidates.max() + 1, np.bool_)
    is_leader[leaders] = True
    return np.concatenate((leaders[1:], candidates[~is_leader[candidates]]))


@njit(cache=True)
def _best_term(candidates, rare, common, sums, limits, memory):
    """Return all terms that led for a while, the best one first, and what that one detects."""
    best, n_leaders = candidates.max() + 1, 0
    leaders, found = np.empty_like(candidates), np.zeros(limits.size, np.intp)
    scores = np.empty(sums.rare.size)
    for term in candidates:
        # With several limits, a term that ties at the first one may win at the next.
        needed = found[0] + (limits.size == 1 and term > best)
        if _is_refuted(term, rare[term], sums, limits[0], needed, memory):
            continue
        for item in range(scores.size):
            scores[item] = sums.rare[item] + rare[term, item]
        if needed and not _detects_now(scores, term, common, sums, limits[0], needed, memory):
            continue
        first = _first_better(scores, sums.common, common[term], limits, found, term < best)
        if first == limits.size:
            continue
        best = leaders[n_leaders] = term
        n_leaders += 1
        for later in range(first, limits.size):
            found[later] = _count_detected(scores, sums.common, common[term], limits[later])
    return leaders[:n_leaders][::-1], found


@njit(cache=True)
def _is_refuted(term, rare, sums, max_flags, needed, memory):
    """Return whether the level that refuted a term earlier does so again."""
    level, ranking = memory.levels[term] + sums.base, memory.rankings[term]
    if ranking < 0:
        return False
    n_reaching = 0
    for item in range(rare.size):
        n_reaching += sums.rare[item] + rare[item] >= level
    room = max_flags - needed
    return (
        n_reaching < needed
        and _count_from(sums.high[ranking], memory.high[term], level, room) > room
    )


@njit(cache=True)
def _detects_now(scores, term, common, sums, max_flags, needed, memory):
    """Return whether a term detects as many as needed; remember what refuted it."""
    if needed > min(scores.size, max_flags):
        return False
    value = _nth_largest(scores, needed - 1)
    level = _nth_largest(scores, needed - 1 - needed // _SPARE)
    memory.levels[term] = max(level, np.nextafter(value, np.inf)) - sums.base
    room, ranking = max_flags - needed, memory.rankings[term]
    if ranking >= 0 and _count_from(sums.high[ranking], memory.high[term], value, room) > room:
        return False
    if ranking < sums.step:
        _take(common[term], sums.rankings[sums.step], memory.high[term])
        memory.rankings[term] = sums.step
        if _count_from(sums.high[sums.step], memory.high[term], value, room) > room:
            return False
    return _count_from(sums.common, common[term], value, room) <= room


@njit(cache=True)
def _take(values, places, out):
    for item in range(places.size):
        out[item] = values[places[item]]


@njit(cache=True)
def _first_better(scores, sums, term, limits, found, wins_ties):
    """Return the place of the first limit under which a term leads, or the number of limits."""
    last = limits.size - 1
    for place in range(last):
        if not _detects(scores, sums, term, limits[place], found[place]):
            return limits.size
        if _detects(scores, sums, term, limits[place], found[place] + 1):
            return place
    needed = found[last] if wins_ties else found[last] + 1
    return last if _detects(scores, sums, term, limits[last], needed) else limits.size


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
    """Return whether at least `needed` rare items are detected; reorders `scores`."""
    if needed == 0:
        return True
    if needed > min(scores.size, max_flags):
        return False
    value = _nth_largest(scores, needed - 1)
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


@njit(cache=True)
def _nth_largest(values, place):
    """Return the value in the given place, counting from 0 at the largest; reorders `values`."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if place <= right:
            high = right
        elif place >= left:
            low = left
        else:
            return values[place]
    return values[place]
