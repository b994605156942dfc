"""From a checked problem to the flow: leave out what cannot matter, solve, and price the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.ranking import TieKeys
from ._flow import best_flow
from ._prices import lowest_prices

__all__ = ["Solution", "solve"]

Ints = NDArray[np.int64]


class Solution(NamedTuple):
    """The chosen column of each row, and the prices in units of the fixed point."""

    columns: Ints
    class_prices: Ints
    segment_prices: Ints
    total_price: int


def solve(
    gains: Ints,
    *,
    class_limits: Ints,
    segment_of: NDArray[np.intp],
    segment_limits: Ints,
    total: int,
    tie_keys: TieKeys,
) -> Solution:
    """Solve the problem exactly for whole-number gains of shape (n_rows, n_classes)."""
    class_prices = np.zeros(class_limits.size, dtype=np.int64)
    segment_prices, total_price = np.zeros(segment_limits.size, dtype=np.int64), 0
    columns = _unlimited(gains)
    if _within(columns, class_limits, segment_of, segment_limits, total):
        return Solution(columns, class_prices, segment_prices, total_price)
    columns = np.zeros(len(gains), dtype=np.int64)
    usable = _usable(gains, class_limits, segment_of, segment_limits, total)
    if usable.size:
        usable = usable[np.argsort(tie_keys(usable), kind="stable")]
        open_classes = np.flatnonzero(class_limits > 0)
        names, segment = np.unique(segment_of[usable], return_inverse=True)
        part = _solve_part(
            np.ascontiguousarray(gains[np.ix_(usable, open_classes)]),
            class_limits[open_classes],
            segment.astype(np.int64),
            segment_limits[names],
            total,
        )
        columns[usable] = np.concatenate([[0], open_classes + 1])[part.columns]
        class_prices[open_classes], segment_prices[names] = part.class_prices, part.segment_prices
        total_price = part.total_price
    solution = Solution(columns, class_prices, segment_prices, total_price)
    return _price_what_is_closed(solution, gains, class_limits, segment_of, segment_limits, total)


def _unlimited(gains: Ints) -> Ints:
    """Give each row its best column, as if there were no limits."""
    if gains.shape[1] == 0:
        return np.zeros(len(gains), dtype=np.int64)
    return np.where(gains.max(axis=1) > 0, gains.argmax(axis=1) + 1, 0)


def _within(
    columns: Ints,
    class_limits: Ints,
    segment_of: NDArray[np.intp],
    segment_limits: Ints,
    total: int,
) -> bool:
    by_class = np.bincount(columns, minlength=class_limits.size + 1)[1:]
    by_segment = np.bincount(segment_of[columns > 0], minlength=segment_limits.size)
    return bool(
        np.all(by_class <= class_limits)
        and np.all(by_segment <= segment_limits)
        and by_class.sum() <= total
    )


def _usable(
    gains: Ints,
    class_limits: Ints,
    segment_of: NDArray[np.intp],
    segment_limits: Ints,
    total: int,
) -> NDArray[np.intp]:
    """Return the rows that an optimum, or its prices, may need.

    With room for F flags in a segment, only its F best rows of each class can matter: a row
    behind them could give way to one of them that is left alone. One more row sets the price.
    """
    total = min(total, int(class_limits.sum()), int(segment_limits.sum()))
    room = np.minimum(segment_limits, total)
    if total == 0:
        return np.zeros(0, dtype=np.intp)
    usable = np.zeros(len(gains), dtype=bool)
    for rows in _rows_by_segment(segment_of, segment_limits.size):
        if not rows.size or not room[segment_of[rows[0]]]:
            continue
        keep = int(room[segment_of[rows[0]]]) + 1
        for j in np.flatnonzero(class_limits > 0):
            gain = gains[rows, j]
            # A gain below 0 is never taken, and the price 0 needs nobody to set it.
            lowest = 0 if keep > rows.size else max(0, np.partition(gain, -keep)[-keep])
            usable[rows[gain >= lowest]] = True
    return np.flatnonzero(usable)


def _rows_by_segment(segment_of: NDArray[np.intp], n_segments: int) -> list[NDArray[np.intp]]:
    if n_segments == 1:
        return [np.arange(segment_of.size)]
    by_segment = np.argsort(segment_of, kind="stable")
    ends = np.cumsum(np.bincount(segment_of, minlength=n_segments))
    return np.split(by_segment, ends[:-1])


def _solve_part(
    gains: Ints, class_limits: Ints, segment: Ints, segment_limits: Ints, total: int
) -> Solution:
    order = np.stack([np.lexsort((-gain, segment)) for gain in gains.T])
    start = np.concatenate([[0], np.cumsum(np.bincount(segment))])
    columns, enter, change, leave, class_load, segment_load = best_flow(
        gains,
        segment,
        order,
        start,
        _first_steps(gains, class_limits, segment, segment_limits, total),
        class_limits,
        segment_limits,
        total,
    )
    prices = lowest_prices(
        gains,
        enter,
        change,
        leave,
        class_load < class_limits,
        segment_load < segment_limits,
        int(class_load.sum()) < total,
    )
    return Solution(columns, *prices)


def _first_steps(
    gains: Ints, class_limits: Ints, segment: Ints, segment_limits: Ints, total: int
) -> Ints:
    """Give the best rows their best class, until the first limit would be exceeded."""
    best, gain = gains.argmax(axis=1), gains.max(axis=1)
    ranked = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0)]
    n_first = min(
        total,
        ranked.size,
        _first_excess(best[ranked], class_limits),
        _first_excess(segment[ranked], segment_limits),
    )
    columns = np.zeros(len(gains), dtype=np.int64)
    columns[ranked[:n_first]] = best[ranked[:n_first]] + 1
    return columns


def _first_excess(groups: Ints, limits: Ints) -> int:
    """Return how many of a row of items fit, before one of them exceeds the limit of its group."""
    counts = np.bincount(groups, minlength=limits.size)
    exceeded = counts > limits
    if not exceeded.any():
        return groups.size
    by_group = np.argsort(groups, kind="stable")
    begins = np.cumsum(counts) - counts
    return int(by_group[begins[exceeded] + limits[exceeded]].min())


def _price_what_is_closed(
    solution: Solution,
    gains: Ints,
    class_limits: Ints,
    segment_of: NDArray[np.intp],
    segment_limits: Ints,
    total: int,
) -> Solution:
    """Price the capacities of zero, which took no part: at the most that a row would pay."""
    _, class_prices, segment_prices, total_price = solution
    if not gains.size:
        return solution
    if total == 0:
        return solution._replace(total_price=max(0, int(gains.max())))
    for s in np.flatnonzero(segment_limits == 0):
        surplus = gains[segment_of == s] - class_prices - total_price
        surplus = surplus[:, class_limits > 0]
        segment_prices[s] = max(0, int(surplus.max(initial=0)))
    closed = np.flatnonzero(class_limits == 0)
    if closed.size:
        surplus = gains - class_prices - segment_prices[segment_of, np.newaxis] - total_price
        paid = np.maximum(surplus[:, class_limits > 0].max(axis=1, initial=0), 0)
        class_prices[closed] = np.maximum((surplus[:, closed] - paid[:, np.newaxis]).max(axis=0), 0)
    return solution
