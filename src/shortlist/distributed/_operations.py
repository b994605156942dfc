"""Lists and thresholds from scored tables, with any engine that calls kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.hashing import hash_ids
from .._core.ranking import Cut
from .._core.validation import check_seed
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, TableError
from ..thresholds import CalibratedThreshold, calibrate_counts
from ._cut import CutSearch, SearchColumns, Summaries, Totals
from ._engine import Engine, OnArrays, as_columns, check_columns
from ._kernels import ALL, Columns, RowsBefore

__all__ = ["TIE_KEY", "Before", "ListedRows", "find_list", "find_threshold", "on_arrays"]


@dataclass(frozen=True)
class Before:
    """Marks the rows of a list: before the cut of their segment, and before the one for all."""

    parts: tuple[RowsBefore, ...]

    def __call__(self, columns: Columns) -> Mask:
        """Return a mask of the rows of a block."""
        return np.logical_and.reduce([part(columns) for part in self.parts])


@dataclass(frozen=True)
class _Restricted:
    """Calls a kernel on the marked rows of a block only."""

    kernel: Any
    mark: RowsBefore

    def __call__(self, columns: Columns) -> Any:
        kept = self.mark(columns)
        return self.kernel({name: column[kept] for name, column in columns.items()})


@dataclass(frozen=True)
class ListedRows:
    """Keeps the rows of a list, and adds the key that puts tied rows in order."""

    mark: Before
    needs: list[str]
    id: str
    seed: int
    columns: list[str] | None = None

    @property
    def least(self) -> float:
        """No row with a lower score is on the list."""
        cuts = [cut for part in self.mark.parts[:1] for cut in part.cuts.values()]
        return min((cut.value for cut in cuts), default=np.inf)

    def __call__(self, block: Any) -> Any:
        """Return the listed rows of an Arrow table, with a column `tie_key`."""
        pa = load_extra("pyarrow", needed_for="Selecting from a large table")
        columns = as_columns(block, self.needs)
        kept = block.filter(pa.array(self.mark(columns)))
        keys = hash_ids(as_columns(kept, [self.id])[self.id], seed=self.seed)
        return kept.append_column(TIE_KEY, pa.array(keys, pa.float64()))


#: The column with the order of tied rows, in the rows of a list.
TIE_KEY = "tie_key"


def find_list(
    engine: Engine,
    table: Any,
    capacity: Capacity | Mapping[Any, Capacity],
    *,
    score: str,
    id: str,
    segment: str | None = None,
    total: Capacity | None = None,
    random_state: Any = None,
) -> ListedRows:
    """Find the cuts of a list, and return the kernel that keeps its rows.

    Parameters
    ----------
    engine, table
        The engine, and a table of its kind.
    capacity : Capacity or dict from segments to Capacity
        How many rows may be listed: of all rows, or of each segment. Rows of segments that a dict
        does not name are not listed.
    score, id : str
        Columns with the scores and the ids.
    segment : str, default=None
        The column with the segments.
    total : Capacity, default=None
        With segments: how many rows may be listed in total.
    random_state : int, RandomState instance or None, default=None
        Key of the hash that orders tied rows.

    Returns
    -------
    ListedRows
    """
    check_columns(engine, table, score=score, id=id, segment=segment, free=("rank", TIE_KEY))
    seed = check_seed(random_state)
    columns = SearchColumns(score, id, segment, seed, _only_place(capacity, segment))
    needs, search = columns.names, engine.search(table, columns)
    totals = search.totals()
    by_segment = search.cuts(totals, _wanted(capacity, totals, segment))
    first = RowsBefore(score, id, by_segment, seed, segment)
    if total is None:
        return ListedRows(Before((first,)), needs, id, seed)
    if segment is None:
        raise CapacityError("total=... belongs to segments; pass it as the capacity.")
    n_rows = sum(each.n for each in totals.values())
    summaries = on_arrays(engine, table, needs)
    restricted = CutSearch(
        lambda kernel: summaries(_Restricted(kernel, first)), score, id, None, seed
    )
    second = _total_cut(restricted, check_capacity(total).max_flags(n_rows))
    return ListedRows(Before((first, RowsBefore(score, id, second, seed))), needs, id, seed)


def _only_place(
    capacity: Capacity | Mapping[Any, Capacity], segment: str | None
) -> Callable[[int], int] | None:
    if segment is not None or isinstance(capacity, Mapping):
        return None
    return check_capacity(capacity).max_flags


def on_arrays(engine: Engine, table: Any, columns: list[str]) -> Summaries:
    """Return a function that calls a kernel for arrays on every block."""
    return lambda kernel: engine.summaries(table, columns, OnArrays(kernel, columns))


def _total_cut(search: CutSearch, k: int) -> dict[Any, Cut]:
    return search.cuts({ALL: Totals.empty(), **search.totals()}, {ALL: k})


def _wanted(
    capacity: Capacity | Mapping[Any, Capacity], totals: Mapping[Any, Any], segment: str | None
) -> dict[Any, int]:
    if not isinstance(capacity, Mapping):
        limit = check_capacity(capacity)
        return {name: limit.max_flags(each.n) for name, each in totals.items()}
    if segment is None:
        raise CapacityError("A dict of capacities needs segment=..., the column with the segments.")
    unknown = [name for name in capacity if name not in totals]
    if unknown:
        raise TableError(
            f"The column {segment!r} has no rows with {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(map(repr, sorted(totals, key=str)))}."
        )
    return {
        name: check_capacity(limit).max_flags(totals[name].n) for name, limit in capacity.items()
    }


def find_threshold(
    engine: Engine,
    table: Any,
    capacity: Capacity,
    *,
    score: str,
    id: str | None,
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    n_batches: int = 1,
    random_state: Any = None,
) -> CalibratedThreshold:
    """Calibrate a threshold on a column of scores, as one machine would.

    Parameters
    ----------
    engine, table
        The engine, and a table of its kind.
    capacity, prevalence, guarantee, confidence, n_batches, random_state
        As for :func:`~shortlist.calibrate_threshold`.
    score, id : str, str or None
        Columns with the scores, and with the ids that divide tied scores. Without ids, tied scores
        are left out as a block.

    Returns
    -------
    CalibratedThreshold
    """
    check_columns(engine, table, score=score, id=id)
    seed = check_seed(random_state)
    search = engine.search(table, SearchColumns(score, id, None, seed))
    totals = search.totals().get(ALL) or Totals.empty()
    return calibrate_counts(
        totals.n,
        check_capacity(capacity),
        find_cut=lambda k: search.cut_at(totals, k, hashed=id is not None),
        prevalence=prevalence,
        guarantee=guarantee,
        confidence=confidence,
        ties="exclude" if id is None else "hash",
        seed=seed,
        n_batches=n_batches,
    )
