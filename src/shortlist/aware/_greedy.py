"""Greedy forward selection of the terms of a score, for detection within a number of flags.

A score is a sum of terms, and each step adds the term that detects the most: the number of rare
items strictly above the (`max_flags` + 1)-th highest sum. The search is exact, but computes little.
A term leads if it detects one rare item more than the leader, or equally many and comes first.
Nearly all terms are refuted by a few codes of eight bits (`_coded_terms`), without their sums. Only
the sums of the others are computed.

A term detects r rare items exactly if at most k items lie at or above its r-th highest rare sum.
Any level refutes this that fewer than r rare sums reach, and more than k - r common ones. The level
that refuted a term in the last step usually does so again, which takes two short counts of codes.
Otherwise a low level that fewer than r rare sums reach is searched for, and tried.

Common items are counted in a table. Its rows hold, for each term, the codes of the items that
ranked high when the row was filled, the highest first: most counts end early. Old rows are filled
again when they no longer refute. Levels and tables are guesses, but every refutation is certain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .._core.arrays import Doubles, Rows
from ._coded_terms import (
    HIGHEST,
    code_rare_sums,
    code_rare_term,
    code_sums,
    code_term,
    count_possible,
    count_sure,
    find_part,
    low_level,
    order_highest,
)

__all__ = ["GreedyPath", "Sums", "Terms", "greedy_path", "is_refuted", "next_open", "sums_by_order"]

_BLOCK = 128  # items counted before checking whether they are enough
_TABLE_WIDTH = 3  # columns of the table of high items, for each flag
_STEPS_WITHOUT_TABLE = 2  # their sums say too little about later ones to order items by them
_DRIFT_RATE = 0.05  # how fast the levels of later terms follow what earlier ones have shown


class GreedyPath(NamedTuple):
    """The terms in the order of their choice, and the rare items detected after each."""

    chosen: Rows
    detected: Rows


class Terms(NamedTuple):
    """All terms, by rows: exact, coded, and what is remembered of each."""

    rare: Any
    common: Any
    rare_codes: Any
    codes: Any
    units: Any  # of the codes, in parts
    table: Any  # codes of high items
    orders: Any  # of the items in the rows of the table; -1 where a row is empty
    levels: Any  # that refuted a term last


class Sums(NamedTuple):
    """The sums so far: exact, coded, and coded for the items of each order."""

    rare: Any
    common: Any
    rare_codes: Any
    codes: Any
    by_order: Any
    orders: Any  # the items of each order; the last order in `by_order` is the newest
    part: float


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
    terms = Terms(
        rare=rare,
        common=common,
        rare_codes=np.empty(rare.shape, dtype=np.uint8),
        codes=np.empty(common.shape, dtype=np.uint8),
        units=np.empty(n_terms, dtype=np.int16),
        table=np.empty((n_terms, min(_TABLE_WIDTH * int(limits[0]), n_common)), dtype=np.uint8),
        orders=np.full(n_terms, -1),
        levels=np.zeros(n_terms, dtype=np.int16),
    )
    path = _choose_all(terms, limits, min(n_steps, n_terms), find_part(common))
    return GreedyPath(*path)


@njit(cache=True)
def _choose_all(terms, limits, n_steps, part):
    """Return the chosen terms, and the number of rare items detected after each."""
    chosen, detected = np.empty(n_steps, np.intp), np.empty(n_steps, np.intp)
    rare_sums, common_sums = np.zeros(terms.rare.shape[1]), np.zeros(terms.common.shape[1])
    orders = np.empty((n_steps, terms.table.shape[1]), np.uint32)
    candidates, base, n_orders = np.arange(len(terms.rare)), 0.0, 0
    found = np.zeros(limits.size, np.intp)
    for step in range(n_steps):
        codes = code_sums(common_sums, base, part)
        if step >= _STEPS_WITHOUT_TABLE:
            order_highest(codes, orders[n_orders])
            n_orders += 1
        sums = Sums(
            rare_sums,
            common_sums,
            code_rare_sums(rare_sums, base, part),
            codes,
            sums_by_order(codes, orders[:n_orders], terms.orders),
            orders,
            part,
        )
        best, found, leaders = _best_term(candidates, terms, sums, limits, found, step == 0)
        chosen[step], detected[step] = best, found[0]
        rare_sums += terms.rare[best]
        common_sums += terms.common[best]
        candidates = _leaders_first(candidates, leaders, best)
        # Measured from this base, levels stay about the same while all sums rise or fall.
        some = common_sums[orders[n_orders - 1]] if n_orders else common_sums.copy()
        base = _nth_largest(some, min(limits[0], some.size - 1)) if some.size else 0.0
    return chosen, detected


@njit(cache=True)
def _leaders_first(candidates, leaders, best):
    """Remove the chosen term, and put former leaders first: the others fail against them."""
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
def _best_term(candidates, terms, sums, limits, likely, is_first_step):
    """Return the best term, what it detects within each limit, and all that led for a while.

    `likely` is a guess of what it detects.
    """
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
        if is_first_step:
            _code(term, terms, sums.part)
        n_needed = needed[0] if term < best else needed[2]
        if n_needed > 0:
            former = terms.levels[term]
            refuted = is_refuted(term, terms, sums, n_needed, limits[0], scratch)
            drift += _DRIFT_RATE * (terms.levels[term] - former - drift)
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
            found[later] = _count_detected(
                scores, term, terms, sums, limits[later], known, likely[later]
            )
            known = 0
    return best, found, leaders[:n_leaders]


@njit(cache=True)
def _code(term, terms, part):
    low, unit = code_term(terms.common[term], part, terms.codes[term])
    code_rare_term(terms.rare[term], low, unit, part, terms.rare_codes[term])
    terms.units[term] = unit


@njit(cache=True)
def _first_better_limit(scores, term, terms, sums, limits, found, wins_ties):
    """Return the place of the first limit under which a term leads, and what it detects there.

    It may detect more than that. If there is no such limit, the place is the number of limits.
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
    """Return whether at least `needed` rare items are detected."""
    if needed == 0:
        return True
    if needed > min(scores.size, max_flags):
        return False
    value = _nth_largest(scores, needed - 1)
    room = max_flags
    for item in range(scores.size):
        room -= scores[item] >= value
    return room >= 0 and room >= _count_from(sums.common, terms.common[term], value, room)


@njit(cache=True)
def sums_by_order(codes, orders, in_use):
    """Return the coded sums of the items in each order that is in use, and in the newest."""
    is_used = np.zeros(len(orders) + 1, np.bool_)  # the last place is that of empty rows, -1
    is_used[len(orders) - 1] = True
    for order in in_use:
        is_used[order] = True
    by_order = np.empty(orders.shape, codes.dtype)
    for order in range(len(orders)):
        if is_used[order]:
            _take(codes, orders[order], by_order[order])
    return by_order


@njit(cache=True)
def next_open(candidates, start, terms, sums, needed, max_flags, drift):
    """Return the first place, from `start` on, whose term is not refuted by its last level.

    `drift` is added to all levels. `needed` holds the number of rare items that a term before the
    leader must detect, the leader, and the number for a term after it.
    """
    if_before, leader, if_after = needed
    for place in range(start, candidates.size):
        term = candidates[place]
        order, unit = terms.orders[term], terms.units[term]
        if order < 0:
            return place
        n_needed = if_before if term < leader else if_after
        level = np.int16(min(max(terms.levels[term] + drift, 0), HIGHEST))
        if count_possible(sums.rare_codes, terms.rare_codes[term], unit, level) >= n_needed:
            return place
        room = max_flags - n_needed
        if count_sure(sums.by_order[order], terms.table[term], unit, level, room) <= room:
            return place
        terms.levels[term] = level
    return candidates.size


@njit(cache=True, inline="always")
def is_refuted(term, terms, sums, n_needed, max_flags, scratch):
    """Return whether codes show that a term detects fewer than needed; remember the level."""
    rare_codes, unit, guess = terms.rare_codes[term], terms.units[term], terms.levels[term]
    level = low_level(sums.rare_codes, rare_codes, unit, n_needed, guess, scratch)
    terms.levels[term] = level
    room, order, newest = max_flags - n_needed, terms.orders[term], len(sums.by_order) - 1
    if order >= 0 and count_sure(sums.by_order[order], terms.table[term], unit, level, room) > room:
        return True
    if order < newest:
        _take(terms.codes[term], sums.orders[newest], terms.table[term])
        terms.orders[term] = newest
        if count_sure(sums.by_order[newest], terms.table[term], unit, level, room) > room:
            return True
    return count_sure(sums.codes, terms.codes[term], unit, level, room) > room


@njit(cache=True)
def _take(values, places, out):
    for item in range(places.size):
        out[item] = values[places[item]]


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
