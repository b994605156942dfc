"""Sorting, ties and order statistics: every decision between tied scores is made here.

Items are ranked by score, the most suspicious first. Tied scores are either left in one block,
which is taken whole or not at all, or put in order by a *tie key*: a number in [0, 1) that
belongs to the item, the smaller the earlier. A :class:`Cut` is a place in that ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Cut",
    "TieKeys",
    "count_above",
    "cut_after",
    "flag_above",
    "flag_exactly",
    "keys_within",
    "rank",
    "tied_positions",
]

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]
#: Gives the tie keys of the items at the given positions. Only tied items are ever asked for.
TieKeys = Callable[[NDArray[np.intp]], NDArray[np.float64]]

_CHUNK = 1 << 16
_SAMPLE = 1 << 16
_SORT_BELOW = 1 << 20


class Cut(NamedTuple):
    """A place in the ranking: before it, scores above `value` and ties with a key below `key`."""

    value: float
    key: float = 0.0


BEFORE_ALL = Cut(np.inf, 0.0)
AFTER_ALL = Cut(-np.inf, 1.0)


def cut_after(scores: Floats, k: int, tie_keys: TieKeys | None = None) -> Cut:
    """Find the cut at the (k + 1)-th item: at most `k` items come strictly before it.

    Without tie keys the block of scores tied with that item lies behind the cut as a whole.
    """
    if k < 0:
        return BEFORE_ALL
    if k >= scores.size:
        return AFTER_ALL
    value = nth_largest(scores, k)
    if tie_keys is None:
        return Cut(value)
    keys = np.sort(tie_keys(np.flatnonzero(scores == value)))
    return Cut(value, float(keys[k - count_above(scores, value)]))


def flag_above(scores: Floats, cut: Cut, tie_keys: TieKeys | None = None) -> Mask:
    """Flag the items strictly before `cut`; without tie keys, never any of its tied block."""
    flagged = scores > _rounded_up(cut.value, scores.dtype)
    if tie_keys is not None and cut.key > 0:
        # With a float64 scalar NumPy compares in float64, and rounds no score to the cut.
        tied = np.flatnonzero(scores == np.float64(cut.value))
        if tied.size:
            flagged[tied] = tie_keys(tied) < cut.key
    return flagged


def _rounded_up(value: float, precision: np.dtype[Any]) -> np.floating:
    """Return the smallest number of a precision that is not below a value.

    Rounded to single precision, a score may come to lie above a cut in double precision that it
    was equal to, but never above the rounded cut.
    """
    if precision == np.float64:
        return np.float64(value)
    with np.errstate(over="ignore"):
        rounded = precision.type(value)
    below = float(rounded) < value
    return np.nextafter(rounded, precision.type(np.inf)) if below else rounded


def keys_within(tie_keys: TieKeys, rows: NDArray[np.intp]) -> TieKeys:
    """Return the tie keys of some of the items, which are then numbered from 0."""
    return lambda tied: tie_keys(rows[tied])


def flag_exactly(scores: Floats, k: int, tie_keys: TieKeys) -> Mask:
    """Flag exactly `k` items, the first of the ranking; equal keys go by position."""
    if k <= 0:
        return np.zeros(scores.size, dtype=bool)
    if k >= scores.size:
        return np.ones(scores.size, dtype=bool)
    value = nth_largest(scores, k - 1)
    flagged = scores > value
    tied = np.flatnonzero(scores == value)
    missing = k - int(np.count_nonzero(flagged))
    if missing < tied.size:
        tied = tied[np.argsort(tie_keys(tied), kind="stable")[:missing]]
    flagged[tied] = True
    return flagged


def rank(
    scores: Floats, tie_keys: TieKeys | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ranking as positions, and the numbers of leading items at which it can be cut.

    Without tie keys a cut cannot fall inside a tied block.
    """
    if tie_keys is not None:
        order = np.lexsort((tie_keys(np.arange(scores.size)), -scores))
        return order, np.arange(scores.size + 1)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    block_ends = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    return order, np.concatenate([[0], block_ends, [scores.size]])


def tied_positions(scores: Floats) -> NDArray[np.intp]:
    """Return the positions of all scores that occur more than once."""
    order = np.argsort(scores)
    ranked = scores[order]
    equals_next = ranked[1:] == ranked[:-1]
    tied = np.zeros(scores.size, dtype=bool)
    tied[1:] |= equals_next
    tied[:-1] |= equals_next
    return order[tied]


def count_above(scores: Floats, value: float) -> int:
    """Count the scores strictly above `value` without a temporary array of their size."""
    limit = np.float64(value)
    return sum(int(np.count_nonzero(chunk > limit)) for chunk in _chunks(scores))


def nth_largest(scores: Floats, place: int) -> float:
    """Return the score in the given place, counting from 0 at the largest.

    Large arrays are not copied: a random sample brackets the answer, one pass counts what lies
    above the bracket and gathers the few per cent inside it, and those are partitioned.
    """
    if scores.size <= _SORT_BELOW:
        return _nth_largest_by_partition(scores, place)
    low, high = _bracket(scores, place)
    above = at_high = at_low = 0
    inside = []
    for chunk in _chunks(scores):
        above += int(np.count_nonzero(chunk > high))
        at_high += int(np.count_nonzero(chunk == high))
        at_low += int(np.count_nonzero(chunk == low))
        inside.append(chunk[(chunk > low) & (chunk < high)])
    gathered = np.concatenate(inside)
    if low == high:
        at_low = 0  # the block has been counted already
    down_to_high, down_to_inside = above + at_high, above + at_high + gathered.size
    if above <= place < down_to_high:
        return float(high)
    if down_to_high <= place < down_to_inside:
        return _nth_largest_by_partition(gathered, place - down_to_high)
    if down_to_inside <= place < down_to_inside + at_low:
        return float(low)
    return _nth_largest_by_partition(scores, place)  # the sample was unlucky: rare, and slower


def _nth_largest_by_partition(scores: Floats, place: int) -> float:
    index = scores.size - 1 - place
    return float(np.partition(scores, index)[index])


def _bracket(scores: Floats, place: int) -> tuple[np.floating, np.floating]:
    """Guess two scores between which the wanted one lies, six standard errors either way."""
    positions = np.random.default_rng(0).integers(scores.size, size=_SAMPLE)
    sample = np.sort(scores[positions])
    share = 1 - place / scores.size
    margin = 6 * np.sqrt(max(share * (1 - share), 1 / _SAMPLE) / _SAMPLE)
    lower, upper = (share - margin) * _SAMPLE, (share + margin) * _SAMPLE
    low = sample[int(lower)] if lower >= 0 else scores.min()
    high = sample[int(upper)] if upper < _SAMPLE else scores.max()
    return low, high


def _chunks(scores: Floats) -> Iterator[Floats]:
    for start in range(0, scores.size, _CHUNK):
        yield scores[start : start + _CHUNK]
