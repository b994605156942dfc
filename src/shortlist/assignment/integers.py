"""The exact solution in whole numbers: a scale for them, the rows that matter, flow and prices."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._core.arrays import Floats, Ints, Rows, TieKeys
from ._flow import FORBIDDEN, best_flow

# The largest gain gets this many bits. Paths through up to 2**14 classes then fit into 64.
_BITS = 46


class FixedPoint(NamedTuple):
    """A scale for values as whole numbers, whose sums and comparisons are exact.

    The value 1 becomes ``2**exponent`` units. A power of two keeps whole numbers whole.
    """

    exponent: int

    @classmethod
    def for_gains(cls, gains: Floats) -> Self:
        """Return the scale on which the largest absolute gain uses all bits."""
        finite = np.where(np.isinf(gains), 0, gains)
        largest = max(float(gains.max(initial=0.0)), -float(finite.min(initial=0.0)))
        return cls(_BITS - int(np.frexp(largest)[1]))

    def to_integers(self, gains: Floats) -> Ints:
        """Round gains to units; minus infinity forbids a column, and extreme gains are clipped."""
        largest = 2.0 ** (_BITS + 4)
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(gains, self.exponent))
        integers = np.clip(scaled, -largest, largest).astype(np.int64)
        forbidden = np.isneginf(gains)
        if forbidden.any():
            integers[forbidden] = FORBIDDEN
        return integers

    def to_floats(self, units: Ints | int) -> Floats:
        """Convert units back to floats."""
        return np.ldexp(np.asarray(units, dtype=np.float64), -self.exponent)


class PerLimit(NamedTuple):
    """One entry for each limit: an array or a list for the classes and the segments, the total."""

    classes: Any
    segments: Any
    total: Any


def solve_integers(
    gains: Ints, limits: PerLimit, segment_of: Rows, tie_keys: TieKeys | None = None
) -> tuple[Ints, PerLimit]:
    """Solve an assignment problem whose gains are whole numbers; return columns and prices.

    `gains` over leaving a row alone have a column for each class, and `limits` are whole numbers.
    The lowest tie key wins a tie; without keys, the first row does. Column 0 leaves a row alone;
    column j + 1 stands for column j of the gains. The prices are the lowest that prove the optimum:
    first of the total, then of the classes, then of the segments; they do not depend on the keys.
    """
    columns, usable = np.zeros(len(gains), dtype=np.int64), _usable(gains, limits, segment_of)
    prices = PerLimit(np.zeros_like(limits.classes), np.zeros_like(limits.segments), 0)
    if not usable.size:
        return columns, prices
    if tie_keys is not None:
        usable = usable[np.argsort(tie_keys(usable), kind="stable")]
    names, segment = np.unique(segment_of[usable], return_inverse=True)
    own, segment = limits._replace(segments=limits.segments[names]), segment.astype(np.int64)
    first = _first_steps(gains[usable], own, segment)
    columns[usable], found = best_flow(gains[usable], segment, first, *own)
    prices.segments[names] = found[1]
    return columns, PerLimit(found[0], prices.segments, found[2])


def _usable(gains: Ints, limits: PerLimit, segment_of: Rows) -> Rows:
    """Return the rows that an optimum, or its prices, may need.

    With room for F flags in a segment, only its F best rows of each class can matter: any other row
    could be replaced by one of these that is left alone. One more row sets the price.
    """
    total = min(limits.total, int(limits.classes.sum()), int(limits.segments.sum()))
    usable = np.zeros(len(gains), dtype=bool)
    parts = _rows_by_segment(segment_of, limits.segments.size)
    for limit, rows in zip(limits.segments, parts, strict=False):  # no rows are in no segment
        keep = int(min(limit, total)) + 1
        for gain in gains[rows].T:
            # A gain below 0 is never taken, and no row has to set a price of 0.
            lowest = 0 if keep > rows.size else max(0, np.partition(gain, -keep)[-keep])
            usable[rows[gain >= lowest]] = True
    return np.flatnonzero(usable)


def _rows_by_segment(segment_of: Rows, n_segments: int) -> list[Rows]:
    if n_segments == 1:
        return [np.arange(segment_of.size)]
    ends = np.cumsum(np.bincount(segment_of, minlength=n_segments))
    return np.split(np.argsort(segment_of, kind="stable"), ends[:-1])


def _first_steps(gains: Ints, limits: PerLimit, segment_of: Ints) -> Ints:
    """Give the best rows their best class, until the first limit would be exceeded."""
    best, gain = gains.argmax(axis=1), gains.max(axis=1)
    ranked = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0)]
    n_first = min(
        limits.total,
        ranked.size,
        _first_excess(best[ranked], limits.classes),
        _first_excess(segment_of[ranked], limits.segments),
    )
    columns = np.zeros(len(gains), dtype=np.int64)
    columns[ranked[:n_first]] = best[ranked[:n_first]] + 1
    return columns


def _first_excess(groups: Rows, limits: Ints) -> int:
    """Return how many items fit, in their order, before one exceeds the limit of its group."""
    counts = np.bincount(groups, minlength=limits.size)
    exceeded = counts > limits
    if not exceeded.any():
        return groups.size
    by_group = np.argsort(groups, kind="stable")
    begins = np.cumsum(counts) - counts
    return int(by_group[begins[exceeded] + limits[exceeded]].min())
