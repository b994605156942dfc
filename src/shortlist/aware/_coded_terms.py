"""Terms of a score in sixteen bits: bounds that are quick to add, and quick to count.

A term is written in whole units above a low value of its own, rounded down, and a sum of scores in
whole units above a base; so the sum of two codes is a lower bound of the sum, and a vector register
adds and compares many at a time. Where the bound reaches a level, the sum does so for sure. What
does not fit into the range is coded so that it never counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "CodedTerms",
    "code_level",
    "code_sums",
    "code_terms",
    "count_codes",
    "round_up",
    "take_columns",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]

_TOP = 2**14 - 1  # two codes up to this can be added in sixteen bits
_NEVER = -(2**14)  # added to any code, it lies below every level
_SAMPLE = 64  # terms, and items of each, that show the range
_FINE = 2.0**13  # units in the widest of these ranges
_COARSEST = 2.0**40  # units in a low value, beyond which rounding would reach a whole unit
_BLOCK = 128  # items coded or counted at a time


class CodedTerms(NamedTuple):
    """Codes of all terms, with their low values and the unit."""

    codes: Codes
    lows: Floats
    unit: float


def code_terms(terms: Floats) -> CodedTerms:
    """Code all terms; `lows` is -inf where a term cannot be coded."""
    codes, lows = np.empty(terms.shape, dtype=np.int16), np.full(len(terms), -np.inf)
    if not codes.size:
        return CodedTerms(codes, lows, 1.0)
    sample = terms[:: max(len(terms) // _SAMPLE, 1), :: max(terms.shape[1] // _SAMPLE, 1)]
    with np.errstate(over="ignore"):
        widest = float((sample.max(axis=1) - sample.min(axis=1)).max())
    unit = widest / _FINE if np.isfinite(widest) and widest / _FINE > 0 else 1.0
    _write_codes(terms, unit, codes, lows)
    return CodedTerms(codes, lows, unit)


@njit(cache=True)
def round_up(terms):
    """Round terms up to single precision: upper bounds, also of a rounded sum with them."""
    bounds = np.empty(terms.shape, np.float32)
    bits = bounds.view(np.int32)
    for term in range(len(terms)):
        for item in range(terms.shape[1]):
            bounds[term, item] = np.float32(terms[term, item])
        for item in range(terms.shape[1]):  # on its own, so that the compiler uses vectors
            # The next number up has the next bits, or the ones before if it is negative.
            up = 1 if bits[term, item] >= 0 else -1
            bits[term, item] += up if bounds[term, item] < terms[term, item] else 0
    return bounds


@njit(cache=True)
def _write_codes(terms, unit, codes, lows):
    n_terms, n_items = terms.shape
    whole = np.empty(_BLOCK, np.int32)
    scale = 1 / unit
    for term in range(n_terms):
        low = terms[term, :: max(n_items // _SAMPLE, 1)].min()
        for start in range(0, n_items, _BLOCK):
            row, out = terms[term, start : start + _BLOCK], codes[term, start : start + _BLOCK]
            for item in range(row.size):
                units = (row[item] - low) * scale
                units = units if units < _TOP else _TOP
                whole[item] = np.int32(units if units >= 0 else _NEVER)
            for item in range(row.size):  # on its own, so that the compiler uses vectors
                out[item] = np.int16(whole[item])
        if abs(low) <= _COARSEST * unit:
            lows[term] = low


@njit(cache=True)
def code_sums(sums, base, unit):
    """Code sums as whole units above a base, rounded down."""
    codes = np.empty(sums.size, np.int16)
    for item in range(sums.size):
        units = (sums[item] - base) / unit
        units = units if units < _TOP else _TOP
        codes[item] = np.int16(np.int32(np.floor(units if units >= _NEVER else _NEVER)))
    return codes


@njit(cache=True)
def code_level(level, base, low, unit):
    """Return a level in units, such that codes which reach it stand for sums that do."""
    units = (level - base - low) / unit
    if not units < 2 * _TOP - 1:
        return np.int16(2 * _TOP + 1)
    # One unit more, so that no rounding of the units themselves can matter.
    return np.int16(max(np.ceil(units) + 1, 0.0))


@njit(cache=True)
def count_codes(sums, term, level, enough):
    """Count the items that reach a level for sure; stop soon after there are more than `enough`."""
    count = np.intp(0)
    for start in range(0, sums.size, _BLOCK):
        some_sums, some_terms = sums[start : start + _BLOCK], term[start : start + _BLOCK]
        n_here = np.int16(0)
        # From 0 and in sixteen bits throughout, so that the compiler uses vector registers.
        for item in range(some_sums.size):
            reaches = np.int16(some_sums[item] + some_terms[item]) >= level
            n_here = np.int16(n_here + reaches)
        count += np.intp(n_here)
        if count > enough:
            break
    return count


@njit(cache=True)
def take_columns(codes, items, table):
    """Copy some columns into a table, in their order."""
    for term in range(len(codes)):
        row, out = codes[term], table[term]
        for place in range(items.size):
            out[place] = row[items[place]]
