"""One process that reads files and folders block by block: tables larger than memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .._core.extras import load_extra
from .._core.files import write_whole
from ..exceptions import TableError
from ..tables.read import files_of
from .engine import BLOCK, FEW, Engine, RowKernel, blocks_of, ranked

__all__ = ["LocalEngine"]

_BATCH, _FEW_COLUMNS = 1 << 17, 3
_READ_AHEAD = {"batch_readahead": 8, "fragment_readahead": 1}
_FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "feather"),
    **dict.fromkeys((".csv", ".csv.gz"), "csv"),
}


class LocalEngine(Engine):
    """Reads Parquet, Feather and CSV files, and folders of them, in bounded memory."""

    def opened(self, table: Any, texts: Collection[str] | None = ()) -> Any:
        """Return an Arrow dataset of a path, a folder or Arrow.

        `texts` are columns of CSV files that are not numbers, whatever they look like: 007 is not
        7. None refuses CSV files.
        """
        dataset = load_extra("pyarrow.dataset", needed_for="Reading large tables")
        if isinstance(table, dataset.Dataset):
            return table
        if not isinstance(table, (str, Path)):
            return _in_memory(dataset, table)
        path = Path(table)
        if not path.exists():
            raise TableError(f"There is no file or folder {path}.")
        format = _format_of(path)
        if format is None:
            raise TableError(
                f"The format of {path} cannot be inferred from its extension. Use .parquet, "
                ".feather, .arrow or .csv."
            )
        if format != "csv":
            return dataset.dataset(str(path), format=format)
        if texts is None:
            raise TableError(
                f"{path} is a text file, and only the commands and shortlist.tables know how a "
                "model reads its values; they read files of any size. Or convert it to Parquet."
            )
        return dataset.dataset(str(path), format=_csv(texts))

    def column_types(self, table: Any) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        names = table.schema.names
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise TableError(f"Two columns are called {min(twice)!r}. Rename one of them.")
        return dict(zip(names, table.schema.types, strict=True))

    def batches(self, table: Any, columns: list[str] | None, size: int = BLOCK) -> Iterator[Any]:
        """Read some columns in batches, as they lie in the file, the next ones ahead."""
        size = min(size, _BATCH)
        yield from table.to_batches(
            columns=columns, batch_size=size, **_READ_AHEAD, **_scanning(table)
        )

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

    def write_rows(self, table: Any, kernel: RowKernel, schema: Any, out: Path) -> None:
        """Write the rows that a kernel returns to a Parquet file, whole or not at all."""
        parquet = load_extra("pyarrow.parquet", needed_for="Writing large tables")
        with write_whole(out) as file, parquet.ParquetWriter(file, schema) as writer:
            for block in self._blocks(table, kernel.columns, FEW):
                writer.write_table(kernel(block).cast(schema))

    @contextmanager
    def kept_rows(self, table: Any, kernel: RowKernel, schema: Any) -> Iterator[Any]:
        """Write such rows to a temporary Parquet file."""
        with TemporaryDirectory(prefix="shortlist-") as folder:
            path = Path(folder) / "rows.parquet"
            self.write_rows(table, kernel, schema, path)
            yield self.opened(path)

    def in_order(self, rows: Any, score: str) -> Any:
        """Return the rows of a list in order."""
        return ranked(rows, score)


def _format(dataset: Any) -> str | None:
    return getattr(getattr(dataset, "format", None), "default_extname", None)


def _scanning(dataset: Any) -> dict[str, Any]:
    """Return how to read: columns of local Parquet files are not buffered as a whole.

    That would take as much memory as the column, and three times as long.
    """
    if _format(dataset) != "parquet" or dataset.filesystem.type_name != "local":
        return {}
    arrow = load_extra("pyarrow.dataset", needed_for="Reading large tables")
    return {"fragment_scan_options": arrow.ParquetFragmentScanOptions(pre_buffer=False)}


def _format_of(path: Path) -> str | None:
    """Return the format of a file, or of the files of a folder; None for others."""
    first = files_of(path)[0] if path.is_dir() else path
    suffixes = first.suffixes[-2:] if first.suffix.lower() == ".gz" else first.suffixes[-1:]
    return _FORMATS.get("".join(suffixes).lower())


def _csv(texts: Collection[str]) -> Any:
    pa = load_extra("pyarrow", needed_for="Reading large tables")
    csv = load_extra("pyarrow.csv", needed_for="Reading large tables")
    convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
    return pa.dataset.CsvFileFormat(convert_options=convert)


def _in_memory(dataset: Any, table: Any) -> Any:
    try:
        return dataset.dataset(table)
    except TypeError:
        raise TableError(
            "table must be the path of a file or folder, an Arrow dataset or an Arrow table; got "
            f"{type(table).__name__}. For a data frame of pandas: pyarrow.Table.from_pandas(...)."
        ) from None
