"""Terms of a score in eight bits: bounds that are quick to add, to compare and to count.

All is measured in parts of one small length. A sum is written in whole parts above a base, and a
term in units of 1 to 64 parts above a low value of its own, so that the sum of two codes fits into
sixteen bits, and a vector register adds and compares many at a time. Common items are rounded
down, and rare ones up: where a common code reaches a level, its sum does so for sure, and where a
rare code does not, its sum lies below, by a whole part. What does not fit into the range is coded
so that it never counts, or, if rare, always. Levels run from 0 to `HIGHEST`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "HIGHEST",
    "code_level",
    "code_rare_sums",
    "code_rare_term",
    "code_sums",
    "code_term",
    "count_doubtful",
    "count_possible",
    "count_sure",
    "find_part",
    "low_level",
    "order_highest",
    "value_of",
]

HIGHEST = 2**14 - 1  # of a sum or a level; with a term on top it still fits into sixteen bits
_NEVER = -(2**14)  # with the highest term on top, it lies below every level
_BEYOND = np.int16(2**15 - 1)  # what no common code reaches
_FULL = 255  # a term at the end of its range, or beyond
_LARGEST_UNIT = 64  # in parts
_SPAN = 200.0  # units in the range that a sample of a term shows
_SAMPLE = 64  # terms, and items of each, that show the range
_SMALLEST = 2.0**-1000  # a part whose inverse is finite
_COARSEST = 2.0**40  # parts in a low value, beyond which rounding would reach a whole part
_BLOCK = 256  # items coded or counted at a time
_LARGE_BLOCK = 4096  # items counted in sixteen bits without looking whether they are enough
_STEP = 32  # parts between levels that are tried first
_CLOSE = 4  # parts that do not matter for a level
_COARSE = 3  # bits of a sum that do not matter for an order


def find_part(terms: NDArray[np.float64]) -> float:
    """Return the length of a part, for which the widest of some terms still has its range."""
    if not terms.size:
        return 1.0
    sample = terms[:: max(len(terms) // _SAMPLE, 1), :: max(terms.shape[1] // _SAMPLE, 1)]
    with np.errstate(over="ignore"):
        widest = float((sample.max(axis=1) - sample.min(axis=1)).max())
    part = widest / (_SPAN * _LARGEST_UNIT)
    return part if np.isfinite(part) and part > _SMALLEST else 1.0


@njit(cache=True)
def code_term(term, part, codes):
    """Code what a term adds to common items; return its low value and its unit in parts.

    The low value is -inf where a term cannot be coded.
    """
    low, high, unit = np.inf, -np.inf, 1
    for item in range(0, term.size, max(term.size // _SAMPLE, 1)):
        low, high = min(low, term[item]), max(high, term[item])
    while unit < _LARGEST_UNIT and high - low > _SPAN * unit * part:
        unit *= 2
    low -= unit * part  # code 0 is what lies below the first unit, however far
    if not abs(low) <= _COARSEST * part:
        codes[:] = 0
        return -np.inf, np.int16(unit)
    scale = 1 / (unit * part)
    whole = np.empty(_BLOCK, np.int32)
    for start in range(0, term.size, _BLOCK):
        row, out = term[start : start + _BLOCK], codes[start : start + _BLOCK]
        for item in range(row.size):
            units = (row[item] - low) * scale
            units = units if units > 0.0 else 0.0
            whole[item] = np.int32(units if units < _FULL else _FULL)
        for item in range(row.size):  # on its own, so that the compiler uses vectors
            out[item] = np.uint8(whole[item])
    return low, np.int16(unit)


@njit(cache=True)
def code_rare_term(term, low, unit, part, codes):
    """Code what a term adds to rare items, rounded up, with the low value and unit of the term."""
    scale = 1 / (unit * part)
    for item in range(term.size):
        units = (term[item] - low) * scale + 1.0
        units = units if units > 0.0 else 0.0
        codes[item] = np.uint8(np.int32(units if units < _FULL else _FULL))


@njit(cache=True)
def code_sums(sums, base, part):
    """Code sums of common items as whole parts above a base, rounded down."""
    return _code_sums(sums, base, part, 0.0)


@njit(cache=True)
def code_rare_sums(sums, base, part):
    """Code sums of rare items as whole parts above a base, rounded up."""
    return _code_sums(sums, base, part, 1.0)


@njit(cache=True)
def _code_sums(sums, base, part, more):
    codes = np.empty(sums.size, np.int16)
    scale = 1 / part
    for item in range(sums.size):
        parts = (sums[item] - base) * scale + more
        parts = parts if parts < HIGHEST else HIGHEST
        codes[item] = np.int16(np.int32(np.floor(parts if parts >= _NEVER else _NEVER)))
    return codes


@njit(cache=True)
def code_level(value, base, low, part):
    """Return a level, such that codes which reach it stand for sums that reach the value."""
    parts = (value - base - low) / part
    if not parts < HIGHEST - 2:
        return _BEYOND
    # One part more, so that no rounding of the parts themselves can matter.
    return np.int16(max(np.ceil(parts) + 1, 0.0))


@njit(cache=True)
def value_of(level, base, low, part):
    """Return the value that a level stands for, or inf if rounding would reach half a part."""
    return base + low + level * part if abs(base) <= _COARSEST * part else np.inf


@njit(cache=True, inline="always")
def count_sure(sums, term, unit, level, enough):
    """Count the common items that reach a level for sure, or until more than `enough` do."""
    count = np.intp(0)
    for start in range(0, sums.size, _BLOCK):
        some_sums, some_terms = sums[start : start + _BLOCK], term[start : start + _BLOCK]
        n_here = np.int16(0)
        # From 0 and in sixteen bits throughout, so that the compiler uses vector registers.
        for item in range(some_sums.size):
            code = np.int16(some_terms[item])
            reaches = (np.int16(some_sums[item] + np.int16(code * unit)) >= level) & (code > 0)
            n_here = np.int16(n_here + reaches)
        count += np.intp(n_here)
        if count > enough:
            break
    return count


@njit(cache=True, inline="always")
def count_possible(sums, term, unit, level):
    """Count the rare items that may reach a level."""
    count = np.intp(0)
    for start in range(0, sums.size, _LARGE_BLOCK):
        some_sums = sums[start : start + _LARGE_BLOCK]
        some_terms = term[start : start + _LARGE_BLOCK]
        n_here = np.int16(0)
        for item in range(some_sums.size):
            code = np.int16(some_terms[item])
            reaches = np.int16(some_sums[item] + np.int16(code * unit)) >= level
            n_here = np.int16(n_here + (reaches | (code == _FULL)))
        count += np.intp(n_here)
    return count


@njit(cache=True)
def low_level(sums, term, unit, needed, guess, scratch):
    """Look from a guess for a low level that fewer than `needed` rare items may reach."""
    for item in range(sums.size):
        code = np.int16(term[item])
        parts = np.int16(sums[item] + np.int16(code * unit))
        scratch[item] = _BEYOND if code == _FULL else parts
    low, high = -1, HIGHEST + 1  # what enough items may reach, and what fewer may reach
    middle, step = min(max(guess, 0), HIGHEST), _STEP
    while high - low > _CLOSE:
        level, count = np.int16(middle), np.intp(0)
        for start in range(0, scratch.size, _LARGE_BLOCK):
            some = scratch[start : start + _LARGE_BLOCK]
            n_here = np.int16(0)
            for item in range(some.size):
                n_here = np.int16(n_here + (some[item] >= level))
            count += np.intp(n_here)
        if count < needed:
            high = middle
            middle = max(high - step, (low + high) // 2)
        else:
            low = middle
            middle = min(low + step, (low + high) // 2)
        step *= 2
    return np.int16(high) if high <= HIGHEST else _BEYOND


@njit(cache=True)
def count_doubtful(coded, exact, unit, level, value, scratch):
    """Count the common items whose codes fall short of a level, but whose sums reach its value.

    `coded` has sums, terms and places of some items; `exact` the sums and terms of all.
    """
    sum_codes, term_codes, places = coded
    sums, term = exact
    n_doubtful = 0
    for item in range(places.size):  # without branches, which could not be foreseen
        code = np.int32(term_codes[item])
        parts = sum_codes[item] + code * unit
        scratch[n_doubtful] = places[item]
        n_doubtful += ((parts >= level - unit - 1) | (code == _FULL)) & (
            (parts < level) | (code == 0)
        )
    count = 0
    for item in range(n_doubtful):
        place = scratch[item]
        count += sums[place] + term[place] >= value
    return count


@njit(cache=True)
def order_highest(codes, places):
    """Write the places of the highest sums, the highest first, but for a few parts."""
    ends = np.zeros(((HIGHEST - _NEVER) >> _COARSE) + 2, np.int32)
    for code in codes:
        ends[((HIGHEST - code) >> _COARSE) + 1] += 1
    last = 0
    while last < ends.size - 1 and ends[last] < places.size:
        last += 1
        ends[last] += ends[last - 1]
    for item in range(codes.size):
        rank = (HIGHEST - codes[item]) >> _COARSE
        if rank < last and ends[rank] < places.size:
            places[ends[rank]] = item
            ends[rank] += 1
