"""Joint capacities of a table beyond memory: an exact assignment, from few candidates.

If at most C rows are flagged in all, an optimum needs no rows but the C highest of each column: a
flagged row that is not among these can be replaced by one that is, and is not flagged yet. Within a
segment with room for K rows, the K highest of each column suffice. One more of each is taken: one
of these is not flagged, and prices at which it is worth nothing leave lower rows nothing as well.
The candidates are solved on one machine. The prices then go through the whole table in one more
pass: they prove that no assignment of all rows is worth more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.extras import load_extra
from ..assignment import Assignment, solve_assignment
from ..capacity import Capacity
from ..exceptions import CapacityError, TableError
from ._engine import Engine, OnArrays, as_columns
from ._kernels import Columns
from ._operations import ListedRows, find_list

__all__ = ["LargeAssignment", "find_assignment"]


@dataclass(frozen=True)
class LargeAssignment:
    """The best assignment of a large table, and prices that prove it.

    Attributes
    ----------
    rows : pyarrow.Table
        The rows that get a column: id, segment if there is one, and `column`.
    value : float
        Sum of the chosen values.
    bound : float
        No assignment of all rows within the limits is worth more: the prices were compared with
        every row of the table. It equals `value` up to rounding.
    prices, segment_prices : dict
        The value of one more unit of the capacity of each column, and of each segment.
    total_price : float
        The same for the total.
    n_candidates : int
        How many rows were solved for.
    """

    rows: Any
    value: float
    bound: float
    prices: dict[str, float]
    segment_prices: dict[Any, float]
    total_price: float
    n_candidates: int


@dataclass(frozen=True)
class _Candidates:
    """Hands over some columns of the rows that are on a list."""

    listed: ListedRows
    columns: list[str]

    def __call__(self, block: Any) -> Any:
        return self.listed(block).select(self.columns)


@dataclass(frozen=True)
class _Surplus:
    """Adds up what rows are worth after paying the prices, where that is more than nothing."""

    prices: dict[str, float]
    total_price: float
    segment: str | None
    segment_prices: dict[Any, float]

    def __call__(self, columns: Columns) -> float:
        paid = np.full(next(iter(columns.values())).size, self.total_price)
        if self.segment is not None:
            names, codes = np.unique(columns[self.segment], return_inverse=True)
            paid += np.array([self.segment_prices.get(name, np.inf) for name in names.tolist()])[
                codes
            ]
        surplus = [columns[name] - price - paid for name, price in self.prices.items()]
        return math.fsum(np.maximum(np.max(surplus, axis=0), 0))


def find_assignment(
    engine: Engine,
    table: Any,
    capacities: Mapping[str, int | None],
    *,
    id: str,
    total: int | None = None,
    segment: str | None = None,
    segment_capacities: Mapping[Any, int] | None = None,
    random_state: Any = None,
) -> LargeAssignment:
    """Choose a column for each row of a table within joint limits, with any engine.

    Parameters
    ----------
    engine, table
        The engine, and a table of its kind.
    capacities : dict from columns to int or None
        How many rows may get each column; `None` means no limit. The columns hold what a row is
        worth there, compared with leaving it; rows that are worth nothing are left.
    id : str
        The column with the ids, each of which occurs once.
    total : int, default=None
        How many rows may get any column.
    segment : str, default=None
        A column with the segment of each row.
    segment_capacities : dict from segments to int, default=None
        How many rows of each segment may get any column; rows of others are left.
    random_state : int, RandomState instance or None, default=None
        Key of the hash that orders rows of equal worth.

    Returns
    -------
    LargeAssignment
    """
    if (segment is None) != (segment_capacities is None):
        raise CapacityError("segment=... and segment_capacities=... belong together.")
    most = _most(capacities, total, segment_capacities)
    limits: Any = Capacity.count(most + 1)
    if segment_capacities is not None:
        limits = {name: Capacity.count(min(k, most) + 1) for name, k in segment_capacities.items()}
    options: dict[str, Any] = {"id": id, "segment": segment, "random_state": random_state}
    kept = [id, *([segment] if segment else []), *capacities]
    parts = []
    for column in capacities:
        listed = find_list(engine, table, limits, score=column, **options)
        parts += list(engine.summaries(table, kept, _Candidates(listed, kept)))
    rows = _distinct(parts, id)
    found = _solved(rows, capacities, total, segment, segment_capacities, id, random_state)
    prices = dict(zip(capacities, found.prices.tolist(), strict=True))
    by_segment = dict(found.segment_prices) if isinstance(found.segment_prices, dict) else {}
    surplus = _Surplus(prices, found.total_price, segment, by_segment)
    needs = [*capacities, *([segment] if segment else [])]
    spent = [price * (capacities[name] or 0) for name, price in prices.items()]
    spent += [by_segment[name] * limit for name, limit in (segment_capacities or {}).items()]
    left = list(engine.summaries(table, needs, OnArrays(surplus, needs)))
    return LargeAssignment(
        _chosen(rows, found, list(capacities), [id, *([segment] if segment else [])]),
        found.value,
        math.fsum([*left, *spent, found.total_price * (total or 0)]),
        prices,
        by_segment,
        found.total_price,
        rows.num_rows,
    )


def _most(
    capacities: Mapping[str, int | None], total: int | None, by_segment: Mapping[Any, int] | None
) -> int:
    """Return how many rows can get a column in all."""
    limits = [] if total is None else [total]
    if by_segment is not None:
        limits.append(sum(by_segment.values()))
    if not any(limit is None for limit in capacities.values()):
        limits.append(sum(limit or 0 for limit in capacities.values()))
    if not capacities or not limits:
        raise CapacityError(
            "Nothing limits how many rows get a column. Give each column a capacity, or a total."
        )
    return min(limits)


def _distinct(parts: list[Any], id: str) -> Any:
    pa = load_extra("pyarrow", needed_for="Large assignments")
    rows = pa.concat_tables(parts)
    first = np.unique(as_columns(rows, [id])[id].astype(str), return_index=True)[1]
    return rows.take(pa.array(np.sort(first)))


def _solved(
    rows: Any,
    capacities: Mapping[str, int | None],
    total: int | None,
    segment: str | None,
    segment_capacities: Mapping[Any, int] | None,
    id: str,
    random_state: Any,
) -> Assignment:
    columns = as_columns(rows, [*capacities, id, *([segment] if segment else [])])
    values = np.column_stack(
        [np.zeros(rows.num_rows), *(columns[name].astype(np.float64) for name in capacities)]
    )
    try:
        return solve_assignment(
            values,
            list(capacities.values()),
            total=total,
            segments=None if segment is None else columns[segment],
            segment_capacities=None if segment_capacities is None else dict(segment_capacities),
            ids=columns[id],
            random_state=random_state,
        )
    except CapacityError as error:
        raise TableError(str(error)) from None


def _chosen(rows: Any, found: Assignment, names: list[str], kept: list[str]) -> Any:
    pa = load_extra("pyarrow", needed_for="Large assignments")
    places = np.flatnonzero(found.columns)
    labels = np.array(names, dtype=object)[np.asarray(found.columns)[places] - 1]
    chosen = rows.select(kept).take(pa.array(places))
    return chosen.append_column("column", pa.array(labels.tolist(), pa.string()))
