"""Greedy forward selection of the terms of a score, for detection within a number of flags.

A score is a sum of terms, and each step adds the term that detects the most: the number of rare
items strictly above the (`max_flags` + 1)-th highest sum. The search is exact, and looks at little:

- A term detects r rare items just when at most `max_flags` items lie at or above its r-th highest
  rare sum. It leads when it detects one more than the leader; as many, where it stands first.
- Any level refutes a term that has fewer than r rare sums above it, and more than
  `max_flags` - r common sums at or above it. A level near one that refuted a term in the last step
  most often does so again, and that takes two short counts; else a better one is looked for.
- Rare sums are counted by upper bounds in single precision, and common ones by codes of sixteen
  bits, whose count is never too large (`_coded_terms`): first among the items that ranked high some
  steps ago, the highest first, where most counts end, and then among all. Only a term that all
  of this fails to refute is computed.

Levels and tables are guesses; what they refute is refuted. Bad ones only cost time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ._coded_terms import code_level, code_sums, code_terms, count_codes, round_up, take_columns

__all__ = ["GreedyPath", "greedy_path"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_BLOCK = 128  # items counted before looking whether they are enough
_WIDTH = 3  # columns of the table of high items, for each flag
_REFILL = 1.2  # counts among all, for each term, that are borne before the table is filled anew
_DRIFT = 0.05  # how soon the levels of later terms follow what earlier ones have shown
_TRIES = 12  # levels looked at in search of a better one


class GreedyPath(NamedTuple):
    """The terms in the order they were chosen, and the rare items detected after each."""

    chosen: Places
    detected: Places


def greedy_path(rare: Floats, common: Floats, max_flags: Any, *, n_steps: int) -> GreedyPath:
    """Choose `n_steps` terms, each the one that detects the most together with those before it.

    Parameters
    ----------
    rare : ndarray of shape (n_terms, n_rare)
        What each term adds to the score of each rare item, in C order.
    common : ndarray of shape (n_terms, n_common)
        The same for the other items.
    max_flags : int or sequence of int
        How many items may be flagged. Of several numbers, the first decides, the second where the
        first ties, and so on. What still ties goes to the term that stands first.
    n_steps : int
        How many terms to choose, if there are as many.

    Examples
    --------
    The second term lifts one of the two rare items to the top, the third the other one.

    >>> rare = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> common = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    >>> greedy_path(rare, common, 2, n_steps=2)
    GreedyPath(chosen=array([1, 2]), detected=array([1, 2]))
    """
    limits = np.atleast_1d(np.asarray(max_flags, dtype=np.intp))
    n_terms, n_common = common.shape
    rare_sums, common_sums, cut = np.zeros(rare.shape[1]), np.zeros(n_common), 0.0
    coded, rounded_up = code_terms(common), round_up(rare)
    levels = np.full(n_terms, np.inf)
    table = np.empty((n_terms, min(_WIDTH * int(limits[0]), n_common)), dtype=np.int16)
    high_items, n_full = np.empty(0, dtype=np.intp), 0
    candidates, path = np.arange(n_terms), []
    for _ in range(min(n_steps, n_terms)):
        codes = code_sums(common_sums, cut, coded.unit)
        best, found, leaders, n_more = _best_term(
            candidates,
            (rare, rounded_up, common, coded.codes, table),
            (rare_sums, common_sums, codes, codes[high_items]),
            limits,
            levels,
            (cut, coded.lows, coded.unit),
        )
        path.append((best, found))
        rare_sums += rare[best]
        common_sums += common[best]
        candidates = _leaders_first(candidates, leaders[::-1], best)
        some = common_sums[high_items] if high_items.size else common_sums
        former, cut = cut, _cut_of(some, int(limits[0]))
        levels += cut - former  # the whole ranking has moved about as far as its cut
        n_full += n_more
        if n_full > _REFILL * n_terms:
            high_items, n_full = _highest(common_sums, table.shape[1]), 0
            take_columns(coded.codes, high_items.astype(np.uint32), table)
    chosen, detected = np.array(path, dtype=np.intp).reshape(-1, 2).T
    return GreedyPath(chosen, detected)


def _cut_of(sums: Floats, k: int) -> float:
    place = max(sums.size - 1 - k, 0)
    return float(np.partition(sums, place)[place]) if sums.size else 0.0


def _highest(sums: Floats, n: int) -> Places:
    """Return the places of the `n` highest sums, the highest first."""
    places = np.argpartition(-sums, n - 1)[:n] if n else np.empty(0, dtype=np.intp)
    return places[np.argsort(-sums[places])]


def _leaders_first(candidates: Places, leaders: Places, best: int) -> Places:
    """Leave out the chosen term, and put first those that did well: the rest fail against them."""
    is_leader = np.zeros(candidates.max() + 1, dtype=bool)
    is_leader[leaders] = True
    return np.concatenate([leaders[leaders != best], candidates[~is_leader[candidates]]])


@njit(cache=True)
def _best_term(candidates, terms, sums, limits, levels, scale):
    """Return the best term, what it detects, all that led for a while, and counts among all."""
    rare_terms, rounded_up, common_terms, codes, table = terms
    rare_sums, common_sums, sum_codes, table_sums = sums
    base, lows, unit = scale
    best, n_leaders, n_full = -1, 0, np.zeros(1, np.intp)
    leaders = np.empty_like(candidates)
    found = np.zeros(limits.size, np.intp)
    scores = np.empty(rare_sums.size)
    drift = 0.0
    for term in candidates:
        wins_ties = best == -1 or term < best
        needed = found[0] + (limits.size == 1 and not wins_ties)
        room = limits[0] - needed
        level, rare_bounds = levels[term] + drift, rounded_up[term]
        if _count_above(rare_sums, rare_bounds, level) < needed:
            coded = code_level(level, base, lows[term], unit)
            if count_codes(table_sums, table[term], coded, room) > room:
                levels[term] = level
                continue
        coded_term = (table_sums, table[term], sum_codes, codes[term], base, lows[term], unit)
        if needed > 0:
            fresh = _lowest_level(rare_sums, rare_bounds, needed, level)
            if np.isfinite(level):
                drift += _DRIFT * (fresh - level)
            levels[term] = fresh
            if _surely_more(coded_term, fresh, room, n_full):
                continue
        for item in range(scores.size):
            scores[item] = rare_sums[item] + rare_terms[term, item]
        common = (common_sums, common_terms[term], coded_term, n_full)
        place = _first_better_limit(scores, common, limits, found, wins_ties)
        if place == limits.size:
            continue
        best = leaders[n_leaders] = term
        n_leaders += 1
        for later in range(place, limits.size):
            at_least = found[later] if later == place else 0
            found[later] = _count_detected(scores, common, limits[later], at_least)
    return best, found[0], leaders[:n_leaders], n_full[0]


@njit(cache=True)
def _lowest_level(sums, term, needed, guess):
    """Look for a low level with fewer than `needed` rare sums above it, from a guess on."""
    lowest, highest = np.inf, -np.inf
    for item in range(sums.size):
        score = sums[item] + term[item]
        lowest, highest = min(lowest, score), max(highest, score)
    low, high = lowest, highest
    level = guess if low < guess < high else (low + high) / 2
    step = (highest - lowest) / 64
    for _ in range(_TRIES):
        count = _count_above(sums, term, level)
        if count < needed:
            high = level
            if count == needed - 1:
                break
            level = max(level - step, (low + high) / 2) if low == lowest else (low + high) / 2
        else:
            low = level
            level = min(level + step, (low + high) / 2) if high == highest else (low + high) / 2
        step *= 2
    return high


@njit(cache=True)
def _surely_more(coded_term, level, room, n_full):
    """Tell whether codes show more than `room` common sums at or above a level."""
    table_sums, table_term, sums, term, base, low, unit = coded_term
    coded = code_level(level, base, low, unit)
    if count_codes(table_sums, table_term, coded, room) > room:
        return True
    n_full[0] += 1
    return count_codes(sums, term, coded, room) > room


@njit(cache=True)
def _first_better_limit(scores, common, limits, found, wins_ties):
    """Return the place of the first limit under which a term is better; their number if none."""
    last = limits.size - 1
    for place in range(last):
        if not _detects(scores, common, limits[place], found[place]):
            return limits.size
        if _detects(scores, common, limits[place], found[place] + 1):
            return place
    needed = found[last] if wins_ties else found[last] + 1
    return last if _detects(scores, common, limits[last], needed) else limits.size


@njit(cache=True)
def _count_detected(scores, common, max_flags, at_least):
    """Find by bisection how many rare items a term detects."""
    low, high = at_least, scores.size
    while low < high:
        middle = (low + high + 1) // 2
        if _detects(scores, common, max_flags, middle):
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True)
def _detects(scores, common, max_flags, needed):
    """Tell whether at least `needed` rare items are detected."""
    if needed == 0:
        return True
    if needed > min(scores.size, max_flags):
        return False
    value = _nth_largest(scores, needed - 1)
    room = max_flags
    for item in range(scores.size):
        room -= scores[item] >= value
    sums, term, coded_term, n_full = common
    if room < 0 or _surely_more(coded_term, value, room, n_full):
        return False
    return room >= _count_from(sums, term, value, room)


@njit(cache=True)
def _count_above(sums, term, value):
    count = 0
    for item in range(sums.size):
        count += sums[item] + term[item] > value
    return count


@njit(cache=True)
def _count_from(sums, term, value, enough):
    """Count the items at or above `value`, and stop soon after there are more than `enough`."""
    count = 0
    for start in range(0, sums.size, _BLOCK):
        some_sums, some_terms = sums[start : start + _BLOCK], term[start : start + _BLOCK]
        for item in range(some_sums.size):  # from 0, so that the compiler uses vector registers
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
