"""The exact solution in whole numbers: a scale for them, the rows that matter, flow and prices."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from .._core.arrays import Floats, Ints, Rows
from .._core.ranking import TieKeys
from ._flow import FORBIDDEN, best_flow
from ._prices import lowest_prices

# The largest gain gets this many bits. Paths through up to 2**14 classes then fit into 64.
_BITS = 46


class FixedPoint(NamedTuple):
    """A scale for values as whole numbers, whose sums and comparisons are exact.

    The value 1 becomes ``2**exponent`` units. A power of two keeps whole numbers whole.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist.assignment.integers import FixedPoint
    >>> gains = np.array([0.25, 0.5, -1.0])
    >>> scale = FixedPoint.for_gains(gains)
    >>> units = scale.to_integers(gains)
    >>> bool(units[1] == 2 * units[0]), scale.to_floats(units).tolist()
    (True, [0.25, 0.5, -1.0])
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
        forbidden = np.isneginf(gains)
        scaled = np.clip(scaled, -largest, largest)
        if forbidden.any():
            scaled[forbidden] = 0
        integers = scaled.astype(np.int64)
        if forbidden.any():
            integers[forbidden] = FORBIDDEN
        return integers

    def to_floats(self, units: Ints | int) -> Floats:
        """Convert units back to floats."""
        return np.ldexp(np.asarray(units, dtype=np.float64), -self.exponent)


class IntegerSolution(NamedTuple):
    """The chosen column of each row, and prices in the units of the gains."""

    columns: Ints
    class_prices: Ints
    segment_prices: Ints
    total_price: int


class _Limits(NamedTuple):
    classes: Ints
    segment_of: Rows
    segments: Ints
    total: int


def solve_integers(
    gains: Ints,
    *,
    class_limits: Ints,
    segment_of: Rows,
    segment_limits: Ints,
    total: int,
    tie_keys: TieKeys | None = None,
) -> IntegerSolution:
    """Solve an assignment problem whose gains are whole numbers, without checking the arguments.

    :func:`~shortlist.assign` and :class:`~shortlist.MulticlassCapacityClassifier` are built on it.

    Parameters
    ----------
    gains : ndarray of int64, shape (n_rows, m)
        The gain of each column over leaving the row alone, from `FixedPoint.to_integers`.
    class_limits : ndarray of int64, shape (m,)
        How many rows may get each column.
    segment_of : ndarray of int, shape (n_rows,)
        The number of each row's segment.
    segment_limits : ndarray of int64
        How many rows of each segment may get any column.
    total : int
        How many rows may get any column.
    tie_keys : callable, default=None
        Returns a key for each of some row numbers; the lowest key wins a tie. `None` prefers the
        first row. Prices do not depend on it.

    Returns
    -------
    IntegerSolution
        Column 0 leaves the row alone; column j + 1 stands for column j of the gains. The prices are
        the lowest that prove the optimum: first of the total, then of the classes, then of the
        segments.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist.assignment.integers import solve_integers
    >>> found = solve_integers(
    ...     np.array([[5, 1], [6, 4], [3, 0]]),
    ...     class_limits=np.array([1, 1]),
    ...     segment_of=np.zeros(3, dtype=int),
    ...     segment_limits=np.array([3]),
    ...     total=3,
    ... )
    >>> found.columns.tolist(), found.class_prices.tolist()
    ([1, 2, 0], [3, 0])
    """
    limits = _Limits(class_limits, segment_of, segment_limits, total)
    class_prices = np.zeros(class_limits.size, dtype=np.int64)
    segment_prices, total_price = np.zeros(segment_limits.size, dtype=np.int64), 0
    columns = _unlimited(gains)
    if _within(columns, limits):
        return IntegerSolution(columns, class_prices, segment_prices, total_price)
    columns = np.zeros(len(gains), dtype=np.int64)
    usable = _usable(gains, limits)
    if usable.size:
        if tie_keys is not None:
            usable = usable[np.argsort(tie_keys(usable), kind="stable")]
        open_classes = np.flatnonzero(class_limits > 0)
        names, segment = np.unique(segment_of[usable], return_inverse=True)
        part = _solve_part(
            np.ascontiguousarray(gains[np.ix_(usable, open_classes)]),
            _Limits(
                class_limits[open_classes], segment.astype(np.int64), segment_limits[names], total
            ),
        )
        columns[usable] = np.concatenate([[0], open_classes + 1])[part.columns]
        class_prices[open_classes], segment_prices[names] = part.class_prices, part.segment_prices
        total_price = part.total_price
    solution = IntegerSolution(columns, class_prices, segment_prices, total_price)
    return _price_what_is_closed(solution, gains, limits)


def _unlimited(gains: Ints) -> Ints:
    """Give each row its best column, as if there were no limits."""
    if gains.shape[1] == 0:
        return np.zeros(len(gains), dtype=np.int64)
    return np.where(gains.max(axis=1) > 0, gains.argmax(axis=1) + 1, 0)


def _within(columns: Ints, limits: _Limits) -> bool:
    by_class = np.bincount(columns, minlength=limits.classes.size + 1)[1:]
    by_segment = np.bincount(limits.segment_of[columns > 0], minlength=limits.segments.size)
    return bool(
        np.all(by_class <= limits.classes)
        and np.all(by_segment <= limits.segments)
        and by_class.sum() <= limits.total
    )


def _usable(gains: Ints, limits: _Limits) -> Rows:
    """Return the rows that an optimum, or its prices, may need.

    With room for F flags in a segment, only its F best rows of each class can matter: any other row
    could be replaced by one of these that is left alone. One more row sets the price.
    """
    total = min(limits.total, int(limits.classes.sum()), int(limits.segments.sum()))
    room = np.minimum(limits.segments, total)
    if total == 0:
        return np.zeros(0, dtype=np.intp)
    usable = np.zeros(len(gains), dtype=bool)
    for s, rows in enumerate(_rows_by_segment(limits)):
        if not rows.size or not room[s]:
            continue
        keep = int(room[s]) + 1
        for j in np.flatnonzero(limits.classes > 0):
            gain = gains[rows, j]
            # A gain below 0 is never taken, and no row has to set a price of 0.
            lowest = 0 if keep > rows.size else max(0, np.partition(gain, -keep)[-keep])
            usable[rows[gain >= lowest]] = True
    return np.flatnonzero(usable)


def _rows_by_segment(limits: _Limits) -> list[Rows]:
    if limits.segments.size == 1:
        return [np.arange(limits.segment_of.size)]
    by_segment = np.argsort(limits.segment_of, kind="stable")
    ends = np.cumsum(np.bincount(limits.segment_of, minlength=limits.segments.size))
    return np.split(by_segment, ends[:-1])


def _solve_part(gains: Ints, limits: _Limits) -> IntegerSolution:
    """Solve for the rows that matter: classes with room, and segments that all occur."""
    order = np.stack([np.lexsort((-gain, limits.segment_of)) for gain in gains.T])
    start = np.concatenate([[0], np.cumsum(np.bincount(limits.segment_of))])
    first = _first_steps(gains, limits)
    columns, enter, change, leave, class_load, segment_load = best_flow(
        gains,
        limits.segment_of,
        order,
        start,
        first,
        limits.classes,
        limits.segments,
        limits.total,
    )
    prices = lowest_prices(
        gains,
        enter,
        change,
        leave,
        class_load < limits.classes,
        segment_load < limits.segments,
        int(class_load.sum()) < limits.total,
    )
    return IntegerSolution(columns, *prices)


def _first_steps(gains: Ints, limits: _Limits) -> Ints:
    """Give the best rows their best class, until the first limit would be exceeded."""
    best, gain = gains.argmax(axis=1), gains.max(axis=1)
    ranked = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0)]
    n_first = min(
        limits.total,
        ranked.size,
        _first_excess(best[ranked], limits.classes),
        _first_excess(limits.segment_of[ranked], limits.segments),
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


def _price_what_is_closed(
    solution: IntegerSolution, gains: Ints, limits: _Limits
) -> IntegerSolution:
    """Price the capacities of zero, which the flow leaves out, at the most that a row would pay."""
    _, class_prices, segment_prices, total_price = solution
    if not gains.size:
        return solution
    if limits.total == 0:
        return solution._replace(total_price=max(0, int(gains.max())))
    is_open = limits.classes > 0
    for s in np.flatnonzero(limits.segments == 0):
        surplus = gains[limits.segment_of == s] - class_prices - total_price
        segment_prices[s] = max(0, int(surplus[:, is_open].max(initial=0)))
    closed = np.flatnonzero(~is_open)
    if closed.size:
        surplus = gains - class_prices - segment_prices[limits.segment_of, np.newaxis] - total_price
        paid = np.maximum(surplus[:, is_open].max(axis=1, initial=0), 0)
        class_prices[closed] = np.maximum((surplus[:, closed] - paid[:, np.newaxis]).max(axis=0), 0)
    return solution
