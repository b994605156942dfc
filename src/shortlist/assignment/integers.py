"""The exact solution in whole numbers: a scale for them, the rows that matter, flow and prices."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._core.arrays import Floats, Ints, Rows
from .._core.ranking import TieKeys
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
    columns = _unlimited(gains)
    nothing = PerLimit(np.zeros_like(limits.classes), np.zeros_like(limits.segments), 0)
    if _within(columns, limits, segment_of):
        return columns, nothing
    columns, usable = np.zeros_like(columns), _usable(gains, limits, segment_of)
    if not usable.size:
        return columns, _with_closed(nothing, gains, limits, segment_of)
    if tie_keys is not None:
        usable = usable[np.argsort(tie_keys(usable), kind="stable")]
    classes = np.flatnonzero(limits.classes > 0)
    names, segment = np.unique(segment_of[usable], return_inverse=True)
    chosen, (class_prices, segment_prices, total_price) = _solve_part(
        np.ascontiguousarray(gains[np.ix_(usable, classes)]),
        PerLimit(limits.classes[classes], limits.segments[names], limits.total),
        segment.astype(np.int64),
    )
    columns[usable] = np.concatenate([[0], classes + 1])[chosen]
    nothing.classes[classes], nothing.segments[names] = class_prices, segment_prices
    prices = nothing._replace(total=total_price)
    return columns, _with_closed(prices, gains, limits, segment_of)


def _unlimited(gains: Ints) -> Ints:
    """Give each row its best column, as if there were no limits."""
    if gains.shape[1] == 0:
        return np.zeros(len(gains), dtype=np.int64)
    return np.where(gains.max(axis=1) > 0, gains.argmax(axis=1) + 1, 0)


def _within(columns: Ints, limits: PerLimit, segment_of: Rows) -> bool:
    by_class = np.bincount(columns, minlength=limits.classes.size + 1)[1:]
    by_segment = np.bincount(segment_of[columns > 0], minlength=limits.segments.size)
    return bool(
        np.all(by_class <= limits.classes)
        and np.all(by_segment <= limits.segments)
        and by_class.sum() <= limits.total
    )


def _usable(gains: Ints, limits: PerLimit, segment_of: Rows) -> Rows:
    """Return the rows that an optimum, or its prices, may need.

    With room for F flags in a segment, only its F best rows of each class can matter: any other row
    could be replaced by one of these that is left alone. One more row sets the price.
    """
    total = min(limits.total, int(limits.classes.sum()), int(limits.segments.sum()))
    usable = np.zeros(len(gains), dtype=bool)
    for s, rows in enumerate(_rows_by_segment(segment_of, limits.segments.size)):
        keep = int(min(limits.segments[s], total)) + 1
        if not rows.size or keep == 1:
            continue
        for j in np.flatnonzero(limits.classes > 0):
            gain = gains[rows, j]
            # A gain below 0 is never taken, and no row has to set a price of 0.
            lowest = 0 if keep > rows.size else max(0, np.partition(gain, -keep)[-keep])
            usable[rows[gain >= lowest]] = True
    return np.flatnonzero(usable)


def _rows_by_segment(segment_of: Rows, n_segments: int) -> list[Rows]:
    if n_segments == 1:
        return [np.arange(segment_of.size)]
    ends = np.cumsum(np.bincount(segment_of, minlength=n_segments))
    return np.split(np.argsort(segment_of, kind="stable"), ends[:-1])


def _solve_part(gains: Ints, limits: PerLimit, segment_of: Ints) -> tuple[Ints, Any]:
    """Solve for the rows that matter: classes with room, and segments that all occur."""
    order = np.stack([np.lexsort((-gain, segment_of)) for gain in gains.T])
    start = np.concatenate([[0], np.cumsum(np.bincount(segment_of))])
    first = _first_steps(gains, limits, segment_of)
    found: tuple[Ints, Any] = best_flow(gains, segment_of, order, start, first, *limits)
    return found


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


def _with_closed(prices: PerLimit, gains: Ints, limits: PerLimit, segment_of: Rows) -> PerLimit:
    """Price the capacities of zero, which the flow leaves out, at the most that a row would pay."""
    if not gains.size:
        return prices
    if limits.total == 0:
        return prices._replace(total=max(0, int(gains.max())))
    is_open, closed = limits.classes > 0, np.flatnonzero(limits.classes == 0)
    for s in np.flatnonzero(limits.segments == 0):
        surplus = gains[segment_of == s] - prices.classes - prices.total
        prices.segments[s] = max(0, int(surplus[:, is_open].max(initial=0)))
    if closed.size:
        paid_anyway = prices.segments[segment_of, np.newaxis] + prices.total
        surplus = gains - prices.classes - paid_anyway
        paid = np.maximum(surplus[:, is_open].max(axis=1, initial=0), 0)
        prices.classes[closed] = np.maximum(
            (surplus[:, closed] - paid[:, np.newaxis]).max(axis=0), 0
        )
    return prices
