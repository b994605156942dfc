"""The rows of a long table that can be on a list, kept while the others pass.

A list of so many rows needs no more than that in memory: a row that is behind enough others now is
behind them at the end as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Rows
from .._core.extras import load_extra
from .._core.hashing import tie_keys_of
from .._core.ranking import lift
from .._core.validation import check_seed
from ._repeats import IdCounter, Repeated
from .model import TableModel

pd = load_extra("pandas", needed_for="Reading tables")

__all__ = ["Cases", "Pool"]

_SPARE = 1 << 16


@dataclass(frozen=True)
class Cases:
    """Rows of a table with their scores, the ids that name them, and columns to carry along.

    `numbers` are the positions of the rows in the table, `ids` break ties, and `names` name cases.
    """

    X: Any
    scores: Doubles
    numbers: Rows
    ids: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    segments: NDArray[Any] | None = None
    kept: Any = None

    def __len__(self) -> int:
        return self.numbers.size

    def take(self, places: Rows) -> Cases:
        """Return the rows at some positions."""
        others = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {name: _taken(values, places) for name, values in others.items()}
        return Cases(**taken)

    @classmethod
    def joined(cls, parts: list[Cases]) -> Cases:
        """Put rows together."""
        if len(parts) == 1:
            return parts[0]
        columns = {name.name: [getattr(part, name.name) for part in parts] for name in fields(cls)}
        return cls(**{name: _joined(values) for name, values in columns.items()})


def _taken(values: Any, places: Rows) -> Any:
    if values is None:
        return None
    return values.iloc[places] if hasattr(values, "iloc") else values[places]


def _joined(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if hasattr(parts[0], "iloc"):
        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)


class Pool:
    """Keeps the rows that can be on a list.

    Parameters
    ----------
    model : TableModel
        Its key puts tied rows in order.
    most : int, dict or None
        How many rows the list has, in total or for each segment; `None` keeps all rows.
    """

    def __init__(self, model: TableModel, most: int | Mapping[str, int] | None) -> None:
        self._seed = check_seed(model.classifier.random_state)
        self._most = most
        self._room = sum(most.values()) if isinstance(most, Mapping) else most
        self._parts: list[Cases] = []
        self._n_kept = 0
        self._floor = -np.inf
        self._ids = IdCounter()

    def add(self, cases: Cases) -> None:
        """Look at some rows."""
        if cases.names is not None:
            self._ids.add(cases.names)
        if self._floor > -np.inf:
            cases = cases.take(np.flatnonzero(lift(cases.scores) >= self._floor))
        if len(cases) or not self._parts:
            self._parts.append(cases)
            self._n_kept += len(cases)
        if self._room is not None and self._n_kept > 2 * self._room + _SPARE:
            self._trim(self._room)

    def ranked(self) -> Cases:
        """Return the rows, the most suspicious first; each id with its highest score only."""
        cases = Cases.joined(self._parts)
        keys = tie_keys_of(cases.X, cases.ids, seed=self._seed)(np.arange(len(cases)))
        order = np.lexsort((cases.numbers, keys, -lift(cases.scores)))
        if cases.names is not None:
            order = order[~pd.Series(cases.names[order]).duplicated().to_numpy()]
        return cases.take(order)

    def _trim(self, room: int) -> None:
        ranked = self.ranked()
        if isinstance(self._most, Mapping):
            assert ranked.segments is not None
            places = [np.flatnonzero(ranked.segments == s)[:k] for s, k in self._most.items()]
            ranked = ranked.take(np.sort(np.concatenate(places)))
        else:
            ranked = ranked.take(np.arange(min(room, len(ranked))))
            if len(ranked) == room:
                self._floor = float(lift(ranked.scores[-1:])[0]) if room else np.inf
        self._parts, self._n_kept = [ranked], len(ranked)

    @property
    def repeated(self) -> Repeated:
        """What is known about ids that occur more than once."""
        return self._ids.repeated
