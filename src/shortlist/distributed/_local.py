"""One process that reads block by block: the engine for tables larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.extras import load_extra
from ..exceptions import TableError
from ._cut import CutSearch, SearchColumns
from ._engine import BLOCK, FEW, RowKernel, as_columns, blocks_of
from ._files import TextTable, open_table
from ._floor import MOST_HELD, FloorSearch
from ._operations import TIE_KEY, ListedRows

__all__ = ["LocalEngine", "ranked"]

_BATCH, _FEW_COLUMNS = 1 << 17, 3
_READ_AHEAD = {"batch_readahead": 8, "fragment_readahead": 1}


class LocalEngine:
    """Reads Parquet, Feather and CSV files, and folders of them, in bounded memory.

    Parameters
    ----------
    on_progress : callable, default=None
        Called with the number of the pass and the number of rows read in it.
    texts : collection of str, default=()
        Columns of CSV files that are not numbers, whatever they look like: 007 is not 7.
    """

    def __init__(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        texts: Collection[str] = (),
    ) -> None:
        self._texts = texts
        self._on_progress = on_progress or (lambda number, rows: None)
        self._pass = 0

    def open(self, table: Any) -> Any:
        """Return an Arrow dataset: of a path, a folder, a list of paths or an Arrow table."""
        return open_table(table, self._texts)

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        schema = self.open(table).schema
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        if twice:
            raise TableError(f"Two columns are called {min(twice)!r}. Rename one of them.")
        return dict(zip(schema.names, schema.types, strict=True))

    def batches(self, table: Any, columns: list[str] | None, size: int = BLOCK) -> Iterator[Any]:
        """Read some columns in batches, as they lie in the file, the next ones ahead."""
        self._pass, n_rows = self._pass + 1, 0
        dataset = self.open(table)
        for batch in dataset.to_batches(
            columns=columns, batch_size=min(size, _BATCH), **_READ_AHEAD, **_scanning(dataset)
        ):
            n_rows += batch.num_rows
            yield batch
            self._on_progress(self._pass, n_rows)

    def _blocks(self, table: Any, columns: list[str] | None, size: int) -> Iterator[Any]:
        return blocks_of(self.batches(table, columns, size), size)

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every block; blocks of many columns are shorter."""
        size = BLOCK if len(columns) <= _FEW_COLUMNS else BLOCK >> 2
        return (kernel(block) for block in self._blocks(table, columns, size))

    def map_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Any:
        """Return the rows that a kernel returns as one Arrow table."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        parts = [kernel(block) for block in self._blocks(table, kernel.columns, FEW)]
        return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])

    def write_rows(self, table: Any, kernel: RowKernel, schema: Any, file: Any) -> None:
        """Write the rows that a kernel returns to an open Parquet file, in bounded memory."""
        parquet = load_extra("pyarrow.parquet", needed_for="Writing large tables")
        with parquet.ParquetWriter(file, schema) as writer:
            for block in self._blocks(table, kernel.columns, FEW):
                writer.write_table(kernel(block).cast(schema))

    @contextmanager
    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Iterator[Any]:
        """Write such rows to a temporary Parquet file, and return its path."""
        with TemporaryDirectory(prefix="shortlist-") as folder:
            path = Path(folder) / "rows.parquet"
            with path.open("wb") as file:
                self.write_rows(table, kernel, schema, file)
            yield path

    def search(self, table: Any, columns: SearchColumns) -> CutSearch:
        """Return what finds cuts in a table: in one pass, if its length and the place are known."""
        dataset = self.open(table)
        if columns.place is None or not _knows_length(dataset):
            return CutSearch.through(self, table, columns)
        place = columns.place(dataset.count_rows())
        if not 0 < place <= MOST_HELD:
            return CutSearch.through(self, table, columns)
        return FloorSearch.of(self, dataset, columns, place)

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another, both included, or more rows."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        dataset = self.open(table)
        # Arrow refuses to compare large whole numbers with floats, even where it was told to round.
        if isinstance(dataset, TextTable) or not pa.types.is_floating(
            dataset.schema.field(score).type
        ):
            return dataset
        field = load_extra("pyarrow.dataset", needed_for="Reading large tables").field(score)
        number = field.cast(pa.float64())
        return dataset.filter((number >= low) & (number <= high))

    def rows_at(self, dataset: Any, columns: list[str], rows: NDArray[np.int64]) -> Iterator[Any]:
        """Read the rows in some places of a dataset, in rising order."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        dataset, rows = _groups_with(dataset, rows)
        start = 0
        for batch in self.batches(dataset, columns):
            end = start + batch.num_rows
            own = rows[slice(*np.searchsorted(rows, [start, end]))]
            yield batch.take(pa.array(own - start))
            start = end

    def computed_once(self, table: Any) -> Any:
        """Return the table: files are not computed."""
        return table

    def listed_rows(self, table: Any, kernel: ListedRows, schema: Any, score: str) -> Any:
        """Return the rows of a list as one Arrow table, in order."""
        highest = self.between(table, score, kernel.least, np.inf)
        return ranked(self.map_rows(highest, kernel, schema), score)

    def check_versions(self, table: Any) -> None:
        """There is one process, and so nothing to check."""


def _format(dataset: Any) -> str | None:
    return getattr(getattr(dataset, "format", None), "default_extname", None)


def _knows_length(dataset: Any) -> bool:
    """Return whether the number of rows is known without reading them."""
    in_memory = type(dataset).__name__ == "InMemoryDataset"
    return in_memory or _format(dataset) in ("parquet", "feather", "ipc")


def _groups_with(dataset: Any, rows: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """Return the row groups of Parquet files that hold some rows, and their places in these."""
    if _format(dataset) != "parquet":
        return dataset, rows
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # of a filtered dataset: places count the rows that are left
        return dataset, rows
    groups = [each.row_groups for each in fragments]
    sizes = np.array([group.num_rows for own in groups for group in own])
    group_of = np.searchsorted(np.cumsum(sizes), rows, side="right")
    is_held = np.bincount(group_of, minlength=sizes.size) > 0
    skipped = np.cumsum(np.where(is_held, 0, sizes))
    held, flags = [], iter(is_held)
    for fragment, own in zip(fragments, groups, strict=True):
        ids = [group.id for group in own if next(flags)]
        held += [fragment.subset(row_group_ids=ids)] if ids else []
    arrow = load_extra("pyarrow.dataset", needed_for="Reading large tables")
    smaller = arrow.FileSystemDataset(held, dataset.schema, dataset.format, dataset.filesystem)
    return smaller, rows - skipped[group_of]


def _scanning(dataset: Any) -> dict[str, Any]:
    """Return how to read: columns of local Parquet files are not buffered as a whole.

    That would take as much memory as the column, and three times as long.
    """
    if _format(dataset) != "parquet" or dataset.filesystem.type_name != "local":
        return {}
    arrow = load_extra("pyarrow.dataset", needed_for="Reading large tables")
    return {"fragment_scan_options": arrow.ParquetFragmentScanOptions(pre_buffer=False)}


def ranked(rows: Any, score: str) -> Any:
    """Put listed rows in order, the most suspicious first, and number them."""
    columns = as_columns(rows, [score, TIE_KEY])
    scores = np.asarray(columns[score], dtype=np.float64)
    order = np.lexsort((columns[TIE_KEY], -scores))
    pa = load_extra("pyarrow", needed_for="Reading large tables")
    numbers = pa.array(np.arange(1, rows.num_rows + 1))
    return rows.take(pa.array(order)).drop_columns([TIE_KEY]).append_column("rank", numbers)
