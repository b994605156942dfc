"""Greedy forward selection of the terms of a score, for detection within a number of flags.

A score is a sum of terms, and each step adds the term that detects the most: the number of rare
items strictly above the (`max_flags` + 1)-th highest sum. The search is exact, and looks at little:
a term leads when it detects one rare item more than the leader, or as many, where it stands first,
and nearly all are refuted by a few codes of eight bits (`_refutation`). Only what this fails to
refute is computed. All terms are read once, in the first step, which codes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ._coded_terms import (
    code_level,
    code_rare_sums,
    code_rare_term,
    code_sums,
    code_term,
    count_sure,
    find_part,
    order_highest,
)
from ._refutation import Sums, Terms, is_refuted, next_open, sums_by_order

__all__ = ["GreedyPath", "greedy_path"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_BLOCK = 128  # items counted before looking whether they are enough
_WIDTH = 3  # columns of the table of high items, for each flag
_UNORDERED = 2  # first steps, whose sums say too little about later ones to order items by them
_DRIFT = 0.05  # how soon the levels of later terms follow what earlier ones have shown


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
    terms = Terms(
        rare=rare,
        common=common,
        rare_codes=np.empty(rare.shape, dtype=np.uint8),
        codes=np.empty(common.shape, dtype=np.uint8),
        lows=np.empty(n_terms),
        units=np.empty(n_terms, dtype=np.int16),
        table=np.empty((n_terms, min(_WIDTH * int(limits[0]), n_common)), dtype=np.uint8),
        orders=np.full(n_terms, -1),
        levels=np.zeros(n_terms, dtype=np.int16),
    )
    path = _choose_all(terms, limits, min(n_steps, n_terms), find_part(common))
    return GreedyPath(*path)


@njit(cache=True)
def _choose_all(terms, limits, n_steps, part):
    """Return the chosen terms, and what is detected after each."""
    chosen, detected = np.empty(n_steps, np.intp), np.empty(n_steps, np.intp)
    rare_sums, common_sums = np.zeros(terms.rare.shape[1]), np.zeros(terms.common.shape[1])
    orders = np.empty((n_steps, terms.table.shape[1]), np.uint32)
    candidates, base, n_orders = np.arange(len(terms.rare)), 0.0, 0
    found = np.intp(0)  # of this type from the start, or what it is passed to is compiled twice
    for step in range(n_steps):
        codes = code_sums(common_sums, base, part)
        if step >= _UNORDERED:
            order_highest(codes, orders[n_orders])
            n_orders += 1
        sums = Sums(
            rare_sums,
            common_sums,
            code_rare_sums(rare_sums, base, part),
            codes,
            sums_by_order(codes, orders[:n_orders], terms.orders),
            orders,
            base,
            part,
        )
        best, found, leaders = _best_term(candidates, terms, sums, limits, found, step == 0)
        chosen[step], detected[step] = best, found
        rare_sums += terms.rare[best]
        common_sums += terms.common[best]
        candidates = _leaders_first(candidates, leaders, best)
        # Measured from there, levels stay about the same while all sums rise or fall.
        some = common_sums[orders[n_orders - 1]] if n_orders else common_sums.copy()
        base = _nth_largest(some, min(limits[0], some.size - 1)) if some.size else 0.0
    return chosen, detected


@njit(cache=True)
def _leaders_first(candidates, leaders, best):
    """Leave out the chosen term, and put first those that did well: the rest fail against them."""
    is_placed = np.zeros(candidates.max() + 1, np.bool_)
    is_placed[best] = True
    ordered, n_placed = np.empty(candidates.size - 1, candidates.dtype), 0
    for term in np.concatenate((leaders[::-1], candidates)):
        if not is_placed[term]:
            is_placed[term] = True
            ordered[n_placed] = term
            n_placed += 1
    return ordered


@njit(cache=True)
def _best_term(candidates, terms, sums, limits, likely, is_first):
    """Return the best term, what it detects, and all that led for a while."""
    best, n_leaders = candidates.max() + 1, 0
    leaders = np.empty_like(candidates)
    found = np.zeros(limits.size, np.intp)
    scores, scratch = np.empty(sums.rare.size), np.empty(sums.rare.size, np.int16)
    place, drift = -1, 0.0
    while True:
        # With several limits, a term that ties at the first one may win at the next.
        needed = (found[0], best, found[0] + (limits.size == 1))
        place = next_open(candidates, place + 1, terms, sums, needed, limits[0], int(drift))
        if place == candidates.size:
            break
        term = candidates[place]
        if is_first:
            _code(term, terms, sums.part)
        n_needed = needed[0] if term < best else needed[2]
        if n_needed > 0:
            former = terms.levels[term]
            refuted = is_refuted(term, terms, sums, n_needed, limits[0], scratch)
            drift += _DRIFT * (terms.levels[term] - former - drift)
            if refuted:
                continue
        for item in range(scores.size):
            scores[item] = sums.rare[item] + terms.rare[term, item]
        first, known = _first_better_limit(scores, term, terms, sums, limits, found, term < best)
        if first == limits.size:
            continue
        best = leaders[n_leaders] = term
        n_leaders += 1
        for later in range(first, limits.size):
            guess = likely if later == 0 else known
            found[later] = _count_detected(scores, term, terms, sums, limits[later], known, guess)
            known = 0
    return best, found[0], leaders[:n_leaders]


@njit(cache=True)
def _code(term, terms, part):
    low, unit = code_term(terms.common[term], part, terms.codes[term])
    code_rare_term(terms.rare[term], low, unit, part, terms.rare_codes[term])
    terms.lows[term], terms.units[term] = low, unit


@njit(cache=True)
def _first_better_limit(scores, term, terms, sums, limits, found, wins_ties):
    """Return the place of the first limit under which a term is better, and what it detects there.

    It may detect more. If there is no such limit, the place is their number.
    """
    last = limits.size - 1
    for place in range(last):
        if not _detects(scores, term, terms, sums, limits[place], found[place]):
            return limits.size, 0
        if _detects(scores, term, terms, sums, limits[place], found[place] + 1):
            return place, found[place] + 1
    needed = found[last] if wins_ties else found[last] + 1
    if _detects(scores, term, terms, sums, limits[last], needed):
        return last, needed
    return limits.size, 0


@njit(cache=True)
def _count_detected(scores, term, terms, sums, max_flags, known, guess):
    """Find how many rare items a term detects, at least those known, by steps from a guess."""
    low, high = known, scores.size
    n_tried, step = max(low + 1, guess), 1
    while low < high:
        if _detects(scores, term, terms, sums, max_flags, n_tried):
            low = n_tried
            n_tried = min(low + step, (low + high + 1) // 2)
        else:
            high = n_tried - 1
            n_tried = max(high - step, (low + high + 1) // 2)
        step *= 2
    return low


@njit(cache=True)
def _detects(scores, term, terms, sums, max_flags, needed):
    """Tell whether at least `needed` rare items are detected."""
    if needed == 0:
        return True
    if needed > min(scores.size, max_flags):
        return False
    value = _nth_largest(scores, needed - 1)
    room = max_flags
    for item in range(scores.size):
        room -= scores[item] >= value
    if room < 0:
        return False
    level = code_level(value, sums.base, terms.lows[term], sums.part)
    if count_sure(sums.codes, terms.codes[term], terms.units[term], level, room) > room:
        return False
    return room >= _count_from(sums.common, terms.common[term], value, room)


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
