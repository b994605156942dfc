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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.extras import load_extra
from ..assignment.assigned import Assignment, solve_assignment
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._lists import find_list
from ._ranks import Ranks
from .engine import Columns, as_columns, on_arrays

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
class _Surplus:
    """Adds up what rows are worth after paying the prices, where that is more than nothing."""

    prices: dict[str, float]
    total_price: float
    segment: str | None
    segment_prices: dict[Any, float]

    def __call__(self, columns: Columns) -> float:
        paid: Any = self.total_price
        if self.segment is not None:
            names, codes = np.unique(columns[self.segment], return_inverse=True)
            prices = [self.segment_prices.get(name, np.inf) for name in names.tolist()]
            paid = paid + np.array(prices)[codes]
        surplus = [columns[name] - price - paid for name, price in self.prices.items()]
        return math.fsum(np.maximum(np.max(surplus, axis=0), 0))


def find_assignment(
    ranks: Ranks,
    capacities: Mapping[str, int | None],
    total: int | None,
    by_segment: Mapping[Any, int] | None,
) -> LargeAssignment:
    """Choose a column for each row of a table within joint limits, with any engine."""
    engine, table, segment = ranks.engine, ranks.table, ranks.segment
    if (segment is None) != (by_segment is None):
        raise CapacityError("segment=... and segment_capacities=... belong together.")
    most = _most(capacities, total, by_segment)
    limits: Any = Capacity.count(most + 1)
    if by_segment is not None:
        limits = {name: Capacity.count(min(k, most) + 1) for name, k in by_segment.items()}
    names = [str(ranks.id), *([segment] if segment else [])]
    kept = [*names, *capacities]
    parts = []
    for column in capacities:
        listed = find_list(replace(ranks, score=column), limits)
        parts += list(engine.summaries(table, kept, replace(listed, kept=kept)))
    rows = _distinct(parts, names[0])
    columns = as_columns(rows, kept)
    found = solve_assignment(
        np.column_stack([np.zeros(rows.num_rows), *(columns[name] for name in capacities)]),
        list(capacities.values()),
        total=total,
        segments=None if segment is None else columns[segment],
        segment_capacities=None if by_segment is None else dict(by_segment),
        ids=columns[names[0]],
        random_state=ranks.seed,
    )
    prices = dict(zip(capacities, found.prices.tolist(), strict=True))
    surplus = _Surplus(prices, found.total_price, segment, found.segment_prices)
    of_all = on_arrays(engine, table, [*capacities, *names[1:]])(surplus)
    return LargeAssignment(
        _chosen(rows, found, list(capacities), names),
        found.value,
        math.fsum([found.bound, -surplus(columns), *of_all]),
        prices,
        found.segment_prices,
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


def _chosen(rows: Any, found: Assignment, names: list[str], kept: list[str]) -> Any:
    pa = load_extra("pyarrow", needed_for="Large assignments")
    places = np.flatnonzero(found.columns)
    labels = np.array(names, dtype=object)[np.asarray(found.columns)[places] - 1]
    chosen = rows.select(kept).take(pa.array(places))
    return chosen.append_column("column", pa.array(labels.tolist(), pa.string()))
