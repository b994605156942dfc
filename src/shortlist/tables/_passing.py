"""Rows of a long table that pass in chunks, and the few numbers that are kept of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError
from ._fingerprints import SeenCounter, SeenRows
from ._model import TableModel
from ._reading import Reading
from ._schema import TableRows

__all__ = ["Columns", "Passing", "RowsRead"]

#: Called with the number of rows that were read so far.
RowsRead = Callable[[int], None]


class Passing:
    """Reads the rows of a table in chunks, and counts those that the model has seen before.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table, or a folder with the parts of one.
    target : str or callable, default=None
        The column with the labels, or a function that finds it among the columns.
    reading : Reading, default=None
        What to know about this file.
    on_progress : callable, default=None
        Called with the number of rows that were read so far.

    Attributes
    ----------
    hashes : ndarray or None
        Fingerprints of the latest rows, if those of the fit are known.
    n_rows : int
        Number of rows read so far.
    """

    def __init__(
        self,
        model: TableModel,
        path: Path,
        *,
        target: str | Callable[[list[str]], str | None] | None = None,
        reading: Reading | None = None,
        on_progress: RowsRead | None = None,
    ) -> None:
        self._model, self._path, self._reading = model, path, reading
        self.target = target
        self._on_progress = on_progress or (lambda n_rows: None)
        known = model.fingerprints
        self._counter = None if known is None else SeenCounter(known)
        self.hashes: Any = None
        self.n_rows = 0

    def __iter__(self) -> Iterator[TableRows]:
        schema = self._model.schema
        with schema.open(self._path, reading=self._reading) as source:
            if callable(self.target):
                self.target = self.target(source.columns)
            for rows in schema.rows(source, target=self.target):
                if len(rows.X):
                    self.hashes = None if self._counter is None else self._counter.add(rows)
                    self.n_rows += len(rows.X)
                    yield rows
                    self._on_progress(self.n_rows)
            if not self.n_rows:
                raise TableError(f"{source.name} has a heading, but no rows.")

    @property
    def seen(self) -> SeenRows | None:
        """How many of the rows trained or calibrated the model; None if that is not known."""
        return None if self._counter is None else self._counter.seen


class Columns:
    """Gathers a few numbers of each row."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = defaultdict(list)

    def add(self, **columns: Any) -> None:
        """Add the numbers of some rows."""
        for name, values in columns.items():
            self._parts[name].append(np.asarray(values))

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def get(self, name: str) -> NDArray[Any] | None:
        """Return the numbers of that name; None if there are none."""
        return self[name] if self._parts.get(name) else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        if len(self._parts[name]) > 1:  # put together once; the parts are then let go
            self._parts[name] = [np.concatenate(self._parts[name])]
        return self._parts[name][0]
