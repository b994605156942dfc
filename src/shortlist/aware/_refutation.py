"""What shows that a term of a score does not detect enough, without computing its sums.

A term detects r rare items just when at most k items lie at or above its r-th highest rare sum. Any
level refutes it that fewer than r rare sums reach, and more than k - r common ones. A level near
one that refuted a term in the last step most often does so again, and that takes two short
counts of codes; else a low level that fewer than r rare sums reach is looked for, and tried.

Common items are counted in a table: for each term, the codes of those items that ranked high when
its row was filled, the highest first, so that most counts end soon. Where that is long ago, the
row is filled anew. Levels and tables are guesses; what they refute is refuted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ._coded_terms import (
    HIGHEST,
    count_doubtful,
    count_possible,
    count_sure,
    low_level,
    value_of,
)

__all__ = ["Sums", "Terms", "is_refuted", "next_open", "sums_by_order"]


class Terms(NamedTuple):
    """All terms, by rows: exact, coded, and what is remembered of each."""

    rare: Any
    common: Any
    rare_codes: Any
    codes: Any
    lows: Any
    units: Any  # in parts
    table: Any  # codes of high items
    orders: Any  # of the items in the rows of the table; -1 where a row is empty
    levels: Any  # that refuted a term last


class Sums(NamedTuple):
    """The sums so far: exact, coded, and for the items of all orders."""

    rare: Any
    common: Any
    rare_codes: Any
    codes: Any
    by_order: Any
    orders: Any  # the items, for each order; the last one in `by_order` is the newest
    base: float
    part: float


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

    `needed` has the rare items that a term must detect if it comes before a certain one, that one,
    and how many if it comes after.
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
    """Tell whether codes show that a term detects fewer than needed; remember the level."""
    rare_codes, unit, guess = terms.rare_codes[term], terms.units[term], terms.levels[term]
    level = low_level(sums.rare_codes, rare_codes, unit, n_needed, guess, scratch)
    terms.levels[term] = level
    room, order = max_flags - n_needed, terms.orders[term]
    # What mostly decides stands here, inlined: to look closer takes a call, as long as a count.
    if not len(sums.by_order):
        return count_sure(sums.codes, terms.codes[term], unit, level, room) > room
    if order >= 0 and count_sure(sums.by_order[order], terms.table[term], unit, level, room) > room:
        return True
    return _is_refuted_at(term, terms, sums, level, room)


@njit(cache=True)
def _is_refuted_at(term, terms, sums, level, room):
    """Tell whether more than `room` common items reach a level, looking ever closer."""
    if terms.orders[term] >= 0 and _in_table(term, terms, sums, level, room):
        return True
    newest = len(sums.by_order) - 1
    if terms.orders[term] < newest:
        _take(terms.codes[term], sums.orders[newest], terms.table[term])
        terms.orders[term] = newest
        if _in_table(term, terms, sums, level, room):
            return True
    return count_sure(sums.codes, terms.codes[term], terms.units[term], level, room) > room


@njit(cache=True)
def _in_table(term, terms, sums, level, room):
    """Tell whether more than `room` items of the table reach a level."""
    order, row, unit = terms.orders[term], terms.table[term], terms.units[term]
    n_sure = count_sure(sums.by_order[order], row, unit, level, room)
    if n_sure > room:
        return True
    # If sums half a unit higher were enough, those in doubt may be enough as well.
    if count_sure(sums.by_order[order], row, unit, np.int16(level - unit // 2), room) <= room:
        return False
    coded = (sums.by_order[order], row, sums.orders[order])
    exact = (sums.common, terms.common[term])
    value = value_of(level, sums.base, terms.lows[term], sums.part)
    scratch = np.empty(row.size + 1, np.uint32)
    return n_sure + count_doubtful(coded, exact, unit, level, value, scratch) > room


@njit(cache=True)
def _take(values, places, out):
    for item in range(places.size):
        out[item] = values[places[item]]
