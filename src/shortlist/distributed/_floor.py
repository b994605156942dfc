"""The cut of a stream in one pass, if it is known how many rows come before it.

A row that is behind so many others now is behind them at the end as well. So the pass keeps the
highest scores only, and everything at or below the lowest of them is one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles
from .._core.hashing import hash_ids
from ._cut import CutSearch, Located, SearchColumns, Totals, refuse_nan
from ._engine import Engine, as_columns
from ._kernels import ALL

__all__ = ["MOST_HELD", "FloorSearch"]

Rows = NDArray[np.int64]

#: At most so many scores are held, and so many tied rows: 170 megabytes.
MOST_HELD = 1 << 22
_SPARE = 1 << 16
_CHUNK = 1 << 16  # scores that stay in the cache of the processor


class _Highest:
    """The score in a place among all that were seen, how many lie above it, and which are tied."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._kept: list[Doubles] = []
        self._rows: list[Rows] = []  # of the kept scores
        self._tied: list[Rows] = []  # at the floor, unless they are too many
        self._n_kept = self._at_floor = self.n = self.n_nan = 0
        self._floor = -np.inf

    def add(self, scores: Doubles) -> None:
        for start in range(0, scores.size, _CHUNK):
            self._add(scores[start : start + _CHUNK], self.n + start)
        self.n += scores.size

    def _add(self, scores: Doubles, first: int) -> None:
        # One comparison for almost all scores. What is not a number is not below anything.
        below = scores < self._floor
        if below.all():
            return
        at = np.flatnonzero(~below)
        others, rows = scores[at], at + first
        is_higher = others > self._floor
        if not is_higher.all():
            self.n_nan += int(np.count_nonzero(np.isnan(others)))
            self._add_tied(rows[others == self._floor])
        self._kept.append(others[is_higher])
        self._rows.append(rows[is_higher])
        self._n_kept += self._kept[-1].size
        if self._n_kept > 2 * self._place + _SPARE:
            self._trim()

    def _add_tied(self, rows: Rows) -> None:
        self._at_floor += rows.size
        if self._at_floor <= MOST_HELD:
            self._tied.append(rows)
        else:
            self._tied.clear()

    def _trim(self) -> None:
        kept, rows = np.concatenate(self._kept), np.concatenate(self._rows)
        if kept.size > self._place:
            at = kept.size - 1 - self._place
            self._floor = float(np.partition(kept, at)[at])
            self._at_floor, self._tied = 0, []
            self._add_tied(rows[kept == self._floor])
            is_higher = kept > self._floor
            kept, rows = kept[is_higher], rows[is_higher]
        self._kept, self._rows, self._n_kept = [kept], [rows], kept.size

    def located(self) -> Located:
        self._trim()
        left = self._place - self._n_kept
        is_known = self._at_floor <= MOST_HELD
        rows = np.concatenate([np.empty(0, np.int64), *self._tied]) if is_known else None
        return Located(self._floor, self._n_kept, self._at_floor, left, rows)


@dataclass(frozen=True)
class FloorSearch(CutSearch):
    """Finds one cut whose place is known in a table that is read in order, in one pass.

    Parameters
    ----------
    engine, table
        The engine, and a table of its kind with a method `filter`.
    place : int
        How many rows come before the cut.
    """

    engine: Any = None
    table: Any = None
    place: int = 0

    @classmethod
    def of(cls, engine: Engine, table: Any, columns: SearchColumns, place: int) -> FloorSearch:
        """Search in a table of an engine for the cut in a place."""
        search = CutSearch.through(engine, table, columns)
        return cls(**vars(search), engine=engine, table=table, place=place)

    def totals(self) -> dict[Any, Totals]:
        """Make the one pass over the scores."""
        highest = _Highest(self.place)
        for scores in self._scores():
            highest.add(scores)
        refuse_nan(highest.n_nan, highest.n, score=self.score)
        if not highest.n:
            return {}
        return {ALL: Totals(highest.n, np.empty(0), [], [], found=highest.located())}

    def _scores(self) -> Iterator[Doubles]:
        for batch in self.engine.batches(self.table, [self.score]):
            yield np.asarray(as_columns(batch, [self.score])[self.score], dtype=np.float64)

    def locate(self, totals: dict[Any, Totals], places: dict[Any, int]) -> dict[Any, Located]:
        """Return what the pass has found; another place takes another search."""
        found = {name: totals[name].found for name in places}
        if all(places[name] == self.place and each for name, each in found.items()):
            return {name: each for name, each in found.items() if each is not None}
        certain = self._in_kernels(self.table)
        return certain.locate(certain.totals(), places)

    def keys(self, located: dict[Any, Located], limits: dict[Any, float]) -> dict[Any, Doubles]:
        """Hash the ids of the tied rows: in their places, or filtered by their score."""
        ((name, found),) = located.items()
        if found.rows is None:
            tied = self.engine.between(self.table, self.score, found.value, found.value)
            return self._in_kernels(tied).keys(located, limits)
        parts = self.engine.rows_at(self.table, [self.id], found.rows)
        keys = [hash_ids(as_columns(part, [self.id])[self.id], seed=self.seed) for part in parts]
        found_keys = np.concatenate(keys)
        return {name: found_keys[found_keys < limits[name]]}

    def _in_kernels(self, table: Any) -> CutSearch:
        return CutSearch.through(
            self.engine, table, SearchColumns(self.score, self.id, None, self.seed)
        )
