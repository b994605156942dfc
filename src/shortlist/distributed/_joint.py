"""Joint capacities of a table beyond memory: an exact assignment, from few candidates.

If at most C rows are flagged in all, an optimum needs no rows but the C highest of each column: a
flagged row that is not among these can be replaced by one that is, and is not flagged yet. Within a
segment with room for K rows, the K highest of each column suffice. One more of each is taken: one
of these is not flagged, and prices at which it is worth nothing leave lower rows nothing as well.
So the prices of the candidates, which one machine solves for, hold for all rows.
"""

from __future__ import annotations

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
from .engine import as_columns, table_schema

__all__ = ["LargeAssignment", "find_assignment"]


@dataclass(frozen=True)
class LargeAssignment:
    """The best assignment of a large table.

    Attributes
    ----------
    rows : pyarrow.Table
        The rows that get a column: id, segment if there is one, and `column`.
    solved : Assignment
        The assignment of the candidates: its value, and prices that prove it.
    """

    rows: Any
    solved: Assignment


def find_assignment(
    ranks: Ranks,
    capacities: Mapping[str, int | None],
    total: int | None,
    by_segment: Mapping[Any, int] | None,
) -> LargeAssignment:
    """Choose a column for each row of a table within joint limits, with any engine."""
    segment = ranks.segment
    if (segment is None) != (by_segment is None):
        raise CapacityError("segment=... and segment_capacities=... belong together.")
    most = _most(capacities, total, by_segment)
    limits: Any = Capacity.count(most + 1)
    if by_segment is not None:
        limits = {name: Capacity.count(min(k, most) + 1) for name, k in by_segment.items()}
    names = [str(ranks.id), *([segment] if segment else [])]
    rows = _candidates(ranks, limits, names, list(capacities))
    columns = as_columns(rows, rows.column_names)
    solved = solve_assignment(
        np.column_stack([np.zeros(rows.num_rows), *(columns[name] for name in capacities)]),
        list(capacities.values()),
        total=total,
        segments=None if segment is None else columns[segment],
        segment_capacities=None if by_segment is None else dict(by_segment),
        ids=columns[names[0]],
        random_state=ranks.seed,
    )
    return LargeAssignment(_chosen(rows.select(names), solved, list(capacities)), solved)


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


def _candidates(ranks: Ranks, limits: Any, names: list[str], valued: list[str]) -> Any:
    """Return the highest rows of each column of values, each row once."""
    pa = load_extra("pyarrow", needed_for="Large assignments")
    kept = [*names, *valued]
    parts = [table_schema(ranks.engine, ranks.table, kept=kept, added={}).empty_table()]
    for column in valued:
        listed = replace(find_list(replace(ranks, score=column), limits), kept=kept)
        highest = ranks.engine.between(ranks.table, column, listed.least, np.inf)
        found = ranks.engine.summaries(highest, kept, listed)
        parts += [part.select(kept).cast(parts[0].schema) for part in found]
    rows = pa.concat_tables(parts)
    first = np.unique(as_columns(rows, names)[names[0]].astype(str), return_index=True)[1]
    return rows.take(pa.array(np.sort(first)))


def _chosen(rows: Any, solved: Assignment, names: list[str]) -> Any:
    pa = load_extra("pyarrow", needed_for="Large assignments")
    places = np.flatnonzero(solved.columns)
    labels = np.array(names, dtype=object)[np.asarray(solved.columns)[places] - 1]
    chosen = rows.take(pa.array(places))
    return chosen.append_column("column", pa.array(labels.tolist(), pa.string()))
