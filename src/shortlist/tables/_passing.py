"""Rows of a long table that pass in chunks, and the few numbers that are kept of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError
from .fingerprints import SeenCounter, SeenRows
from .model import TableModel
from .monitor import DriftMonitor
from .options import ReadOptions
from .schema import TableRows

__all__ = ["Columns", "RowStream", "RowsRead"]

_MOST_HELD = 1 << 20  # rows
#: Called with the number of rows that were read so far.
RowsRead = Callable[[int], None]


class RowStream:
    """Reads the rows of a table in chunks, and counts those that the model has seen before.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table, or a folder with the parts of one.
    target : str or callable, default=None
        The column with the labels, or a function that finds it among the columns.
    reading : ReadOptions, default=None
        What to know about this file.
    on_progress : callable, default=None
        Called with the number of rows that were read so far.

    Attributes
    ----------
    monitor : DriftMonitor
        Compares the columns with the model card.
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
        reading: ReadOptions | None = None,
        on_progress: RowsRead | None = None,
    ) -> None:
        self._model, self._path, self._reading = model, path, reading
        self.target = target
        self._on_progress = on_progress or (lambda n_rows: None)
        known = model.fingerprints
        self._counter = None if known is None else SeenCounter(known)
        self.monitor = DriftMonitor(model)
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
                    self.monitor.add(rows)
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
    """Gathers a few numbers of each row: in memory, and beyond a million rows in temporary files.

    Close it after use, or open it in a `with` statement.
    """

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._folder: Path | None = None
        self._opened, self._n_held = ExitStack(), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def add(self, **columns: Any) -> None:
        """Add the numbers of some rows."""
        for name, values in columns.items():
            self._parts[name].append(np.asarray(values))
        self._n_held += max((np.asarray(values).size for values in columns.values()), default=0)
        if self._n_held > _MOST_HELD:
            self._write()

    def _write(self) -> None:
        if self._folder is None:
            folder = TemporaryDirectory(prefix="shortlist-")
            self._folder = Path(self._opened.enter_context(folder))
        for name, parts in self._parts.items():
            with (self._folder / name).open("ab") as file:
                for part in parts:
                    kept = self._dtypes.setdefault(name, part.dtype)
                    part.astype(kept, copy=False).tofile(file)
            parts.clear()
        self._n_held = 0

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def get(self, name: str) -> NDArray[Any] | None:
        """Return the numbers of that name; None if there are none."""
        return self[name] if name in self._parts else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.concatenate([*self._read(name), *self._parts[name]])

    def _read(self, name: str) -> Iterator[NDArray[Any]]:
        if self._folder is not None and name in self._dtypes:
            with (self._folder / name).open("rb") as file:
                while (part := np.fromfile(file, self._dtypes[name], _MOST_HELD)).size:
                    yield part

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def summaries(
        self, kernel: Callable[[dict[str, NDArray[Any]]], Any], names: Collection[str] | None = None
    ) -> Iterator[Any]:
        """Call a function on blocks of some columns, or of all, in the order of the rows."""
        names = [*self._parts] if names is None else names
        if self._folder is None:
            yield kernel({name: self[name] for name in names})
            return
        self._write()
        for block in zip(*(self._read(name) for name in names), strict=True):
            yield kernel(dict(zip(names, block, strict=True)))
