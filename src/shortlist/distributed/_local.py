"""One process that reads files and folders block by block: tables larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .._core.extras import load_extra
from .._core.files import write_whole
from ..exceptions import TableError
from ..tables.read import files_of
from .engine import BLOCK, FEW, Engine, Plan, blocks_of, ranked

_BATCH, _FEW_COLUMNS = 1 << 17, 3
_READ_AHEAD = {"batch_readahead": 8, "fragment_readahead": 1}
_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather"}


class LocalEngine(Engine):
    """Reads Parquet and Feather files, and folders of them, in bounded memory."""

    def opened(self, table: Any, *, passes: int = 1) -> Any:
        """Return an Arrow dataset of a path, a folder or Arrow."""
        arrow = load_extra("pyarrow.dataset", needed_for="Reading large tables")
        if isinstance(table, arrow.Dataset):
            return table
        if isinstance(table, (str, Path)):
            return arrow.dataset(str(table), format=_format_of(Path(table)))
        try:
            return arrow.dataset(table)
        except TypeError:
            raise TableError(
                "table must be the path of a file or folder, an Arrow dataset or an Arrow table; "
                f"got {type(table).__name__}. For a data frame of pandas: "
                "pyarrow.Table.from_pandas(...)."
            ) from None

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        names = table.schema.names
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise TableError(f"Two columns are called {min(twice)!r}. Rename one of them.")
        return dict(zip(names, table.schema.types, strict=True))

    def batches(self, table: Any, columns: list[str] | None, size: int) -> Iterator[Any]:
        """Read some columns in batches, as they lie in the file, the next ones ahead."""
        size = min(size, _BATCH)
        yield from table.to_batches(
            columns=columns, batch_size=size, **_READ_AHEAD, **_scanning(table)
        )

    def summaries(self, table: Any, columns: list[str], kernel: Any) -> Iterator[Any]:
        """Call a kernel on the columns of every block; blocks of many columns are shorter."""
        size = BLOCK if len(columns) <= _FEW_COLUMNS else BLOCK >> 2
        return map(kernel, blocks_of(self.batches(table, columns, size), size))

    def _mapped(self, plan: Plan) -> Iterator[Any]:
        for block in blocks_of(self.batches(plan.table, plan.columns, FEW), FEW):
            yield plan.kernel(block).cast(plan.schema)

    def map_rows(self, plan: Plan) -> Any:
        """Return the rows of a plan as one Arrow table."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        return pa.concat_tables([plan.schema.empty_table(), *self._mapped(plan)])

    def write_rows(self, plan: Plan, out: Path) -> None:
        """Write the rows of a plan to a Parquet file, whole or not at all."""
        parquet = load_extra("pyarrow.parquet", needed_for="Writing large tables")
        with write_whole(out) as file, parquet.ParquetWriter(file, plan.schema) as writer:
            for rows in self._mapped(plan):
                writer.write_table(rows)

    @contextmanager
    def kept_rows(self, plan: Plan) -> Iterator[Any]:
        """Write such rows to a temporary Parquet file."""
        with TemporaryDirectory(prefix="shortlist-") as folder:
            path = Path(folder) / "rows.parquet"
            self.write_rows(plan, path)
            yield self.opened(path)

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another; all, if they are not doubles."""
        if str(table.schema.field(score).type) != "double":
            return table  # Arrow refuses to round large whole numbers
        field = load_extra("pyarrow.dataset", needed_for="Reading large tables").field(score)
        return table.filter((field >= low) & (field <= high))

    def in_order(self, rows: Any, score: str) -> Any:
        """Return the rows of a list in order."""
        return ranked(rows, score)


def _format_of(path: Path) -> str:
    """Return the format of a file, or of the files of a folder."""
    if not path.exists():
        raise TableError(f"There is no file or folder {path}.")
    first = files_of(path)[0] if path.is_dir() else path
    if first.suffix.lower() not in _FORMATS:
        raise TableError(
            f"{first} is not a .parquet, .feather or .arrow file. Text files are read by the "
            "commands and by shortlist.tables, at any size; or convert it to Parquet."
        )
    return _FORMATS[first.suffix.lower()]


def _scanning(dataset: Any) -> dict[str, Any]:
    """Return how to read: columns of local Parquet files are not buffered as a whole.

    That would take as much memory as the column, and three times as long.
    """
    format = getattr(getattr(dataset, "format", None), "default_extname", None)
    if format != "parquet" or dataset.filesystem.type_name != "local":
        return {}
    arrow = load_extra("pyarrow.dataset", needed_for="Reading large tables")
    return {"fragment_scan_options": arrow.ParquetFragmentScanOptions(pre_buffer=False)}
