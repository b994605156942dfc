"""Rows of a long table that pass in chunks, and the few numbers that are kept of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.ids import is_drawn
from ..exceptions import TableError
from .fingerprints import SeenRows
from .model import TableModel
from .monitor import DriftMonitor
from .options import ReadOptions
from .schema import TableRows

__all__ = ["Columns", "RowStream", "RowsRead"]

_BLOCK_ROWS = 1 << 20
#: Called with the number of rows that were read so far.
RowsRead = Callable[[int], None]


class RowStream:
    """Reads the rows of a table in chunks, and compares them with what the model knows.

    `monitor` compares the columns with the model card, `n_rows` is the number of rows so far, and
    `hashes` are the fingerprints of the latest rows, if those of the fit are known.
    """

    def __init__(
        self,
        model: TableModel,
        path: Path,
        *,
        target: str | None = None,
        reading: ReadOptions | None = None,
        on_progress: RowsRead | None = None,
    ) -> None:
        self._model, self._path, self._reading, self._target = model, path, reading, target
        self._on_progress = on_progress or (lambda n_rows: None)
        self._seen = np.zeros(3, dtype=np.int64)
        self.monitor = DriftMonitor(model)
        self.hashes: Any = None
        self.n_rows = 0

    def __iter__(self) -> Iterator[TableRows]:
        schema = self._model.schema
        with schema.open(self._path, reading=self._reading) as source:
            for rows in schema.rows(source, target=self._target):
                if len(rows.X):
                    self._compare(rows)
                    self.monitor.add(rows)
                    self.n_rows += len(rows.X)
                    yield rows
                    self._on_progress(self.n_rows)
            if not self.n_rows:
                raise TableError(f"{source.name} has a heading, but no rows.")

    def _compare(self, rows: TableRows) -> None:
        known = self._model.fingerprints
        if known is not None:
            self.hashes = known.hashes_of(rows)
            self._seen += known.count(self.hashes)

    @property
    def seen(self) -> SeenRows | None:
        """How many of the rows trained or calibrated the model; None if that is not known."""
        known = self._model.fingerprints
        return None if known is None else known.seen_of(self._seen)


class Columns:
    """Gathers a few numbers of each row in a temporary file, so that memory is bounded.

    Close it after use, or open it in a `with` statement.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="shortlist-")  # noqa: SIM115
        self._dtype = np.dtype([])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, **columns: Any) -> None:
        """Add the numbers of some rows; None stands for a column that there is not."""
        given = {name: np.asarray(each) for name, each in columns.items() if each is not None}
        if not self._dtype.names:
            self._dtype = np.dtype([(name, each.dtype) for name, each in given.items()])
        rows = np.empty(len(next(iter(given.values()))), dtype=self._dtype)
        for name, each in given.items():
            rows[name] = each
        self._file.write(rows.tobytes())

    def __contains__(self, name: str) -> bool:
        return name in (self._dtype.names or ())

    def get(self, name: str) -> NDArray[Any] | None:
        """Return the numbers of that name; None if there are none."""
        return None if name not in (self._dtype.names or ()) else self[name]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.concatenate([block[name] for block in self.blocks()])

    def blocks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Return all columns, block by block in the order of the rows."""
        self._file.seek(0)
        while content := self._file.read(_BLOCK_ROWS * self._dtype.itemsize):
            rows = np.frombuffer(content, dtype=self._dtype)
            yield {name: np.ascontiguousarray(rows[name]) for name in self._dtype.names or ()}

    def summaries(self, kernel: Callable[[dict[str, NDArray[Any]]], Any]) -> Iterator[Any]:
        """Call a function on every block."""
        return map(kernel, self.blocks())

    def drawn(self, n_rows: int) -> dict[str, NDArray[Any]]:
        """Return the columns of about a million of these rows, drawn at random; of all if fewer."""
        parts, start = [], 0
        for block in self.blocks():
            size = next(iter(block.values())).size
            own = is_drawn(np.arange(start, start + size), n_rows)
            parts.append({name: column[own] for name, column in block.items()})
            start += size
        names = self._dtype.names or ()
        return {name: np.concatenate([part[name] for part in parts]) for name in names}
