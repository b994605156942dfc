"""Terms of a score in eight bits: bounds that are quick to add, to compare and to count.

All lengths are measured in parts, a small unit. A sum is coded as whole parts above a base, and a
term as units of 1 to 64 parts above its own low value. The sum of two codes then fits into sixteen
bits, and a vector register adds and compares many at a time. Common items are rounded down and rare
items up: if a common code reaches a level, its sum certainly does; if a rare code does not reach
it, its sum lies below the level by a whole part. A common value outside the range never counts, and
a rare one always does. Levels run from 0 to `HIGHEST`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .._core.arrays import Doubles

__all__ = [
    "HIGHEST",
    "code_rare_sums",
    "code_rare_term",
    "code_sums",
    "code_term",
    "count_possible",
    "count_sure",
    "find_part",
    "low_level",
    "order_highest",
]

HIGHEST = 2**14 - 1  # code of a sum, or level; with a term added it still fits into sixteen bits
_NEVER = -(2**14)  # even with the highest term added, it lies below every level
_BEYOND = np.int16(2**15 - 1)  # a level that no common code reaches
_FULL = 255  # a term at the end of its range, or beyond
_LARGEST_UNIT = 64  # in parts
_SPAN = 200.0  # units in the range of a sample of a term
_SAMPLE = 64  # terms, and items of each, in the sample that estimates the range
_SMALLEST = 2.0**-1000  # a part whose inverse is finite
_COARSEST = 2.0**40  # parts in a low value, beyond which rounding would reach a whole part
_BLOCK = 256  # items coded or counted at a time
_LARGE_BLOCK = 4096  # items counted in sixteen bits without checking whether they are enough
_FIRST_STEP = 32  # parts from the guess of a level to the next one tried
_LEVEL_TOLERANCE = 4  # parts by which a level may be too high
_IGNORED_BITS = 3  # of a sum, when items are ordered


def find_part(terms: Doubles) -> float:
    """Return the length of a part that lets the codes cover the widest of a sample of terms."""
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

    The low value is -inf if a term cannot be coded.
    """
    low, high, unit = np.inf, -np.inf, 1
    for item in range(0, term.size, max(term.size // _SAMPLE, 1)):
        low, high = min(low, term[item]), max(high, term[item])
    while unit < _LARGEST_UNIT and high - low > _SPAN * unit * part:
        unit *= 2
    low -= unit * part  # code 0 stands for everything below the first unit
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
        for item in range(row.size):  # a loop of its own: only then does the compiler vectorise
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


@njit(cache=True, inline="always")
def count_sure(sums, term, unit, level, enough):
    """Count the common items that certainly reach a level; stop after more than `enough`."""
    count = np.intp(0)
    for start in range(0, sums.size, _BLOCK):
        some_sums, some_terms = sums[start : start + _BLOCK], term[start : start + _BLOCK]
        n_here = np.int16(0)
        # From 0 and in sixteen bits throughout: only then does the compiler vectorise.
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
    """Search, from a guess, for a low level that fewer than `needed` rare items may reach."""
    for item in range(sums.size):
        code = np.int16(term[item])
        parts = np.int16(sums[item] + np.int16(code * unit))
        scratch[item] = _BEYOND if code == _FULL else parts
    low, high = -1, HIGHEST + 1  # levels that enough items, and that fewer items, may reach
    middle, step = min(max(guess, 0), HIGHEST), _FIRST_STEP
    while high - low > _LEVEL_TOLERANCE:
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
def order_highest(codes, places):
    """Write the places of the highest sums, the highest first, up to a difference of 7 parts."""
    ends = np.zeros(((HIGHEST - _NEVER) >> _IGNORED_BITS) + 2, np.int32)
    for code in codes:
        ends[((HIGHEST - code) >> _IGNORED_BITS) + 1] += 1
    last = 0
    while last < ends.size - 1 and ends[last] < places.size:
        last += 1
        ends[last] += ends[last - 1]
    for item in range(codes.size):
        rank = (HIGHEST - codes[item]) >> _IGNORED_BITS
        if rank < last and ends[rank] < places.size:
            places[ends[rank]] = item
            ends[rank] += 1
