"""One process that reads files and folders block by block: tables larger than memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from .._core.atomic import write_whole
from .._core.extras import load_extra
from ..exceptions import TableError
from ..tables import TableModel
from ..tables.read import files_of
from .engine import BLOCK, FEW, Engine, RowKernel, as_columns, blocks_of, ranked

__all__ = ["LocalEngine"]

_BATCH, _FEW_COLUMNS = 1 << 17, 3
_CHUNK, _SPARE = 1 << 16, 1 << 16  # scores that stay in the cache of the processor
_READ_AHEAD = {"batch_readahead": 8, "fragment_readahead": 1}
_FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "feather"),
    **dict.fromkeys((".csv", ".csv.gz"), "csv"),
}


class LocalEngine(Engine):
    """Reads Parquet, Feather and CSV files, and folders of them, in bounded memory."""

    def opened(self, table: Any, texts: Collection[str] = (), model: Any = None) -> Any:
        """Return an Arrow dataset of a path, a folder or Arrow; text files as a model reads them.

        Without a model, `texts` are columns of CSV files that are not numbers, whatever they look
        like: 007 is not 7.
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
        if model is not None and format not in ("parquet", "feather"):
            return _text_table(model, path)
        if format is None:
            raise TableError(
                f"The format of {path} cannot be inferred from its extension. Use .parquet, "
                ".feather, .arrow or .csv."
            )
        return dataset.dataset(str(path), format=_csv(texts) if format == "csv" else format)

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

    def listed_rows(self, table: Any, kernel: RowKernel, schema: Any, score: str) -> Any:
        """Return the rows of a list as one Arrow table, in order."""
        return ranked(self.map_rows(table, kernel, schema), score)

    def between(self, table: Any, score: str, low: float, high: float) -> Any:
        """Return the rows with a score from one number to another, both included, or more rows."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        # Arrow refuses to compare large whole numbers with floats, even where it was told to round.
        if not pa.types.is_floating(table.schema.field(score).type):
            return table
        field = load_extra("pyarrow.dataset", needed_for="Reading large tables").field(score)
        number = field.cast(pa.float64())
        return table.filter((number >= low) & (number <= high))

    def n_rows(self, table: Any) -> int | None:
        """Return the number of rows, if it is known without reading them."""
        in_memory = type(table).__name__ == "InMemoryDataset"
        known = in_memory or _format(table) in ("parquet", "feather", "ipc")
        return table.count_rows() if known else None

    def highest(self, table: Any, score: str, count: int) -> Doubles:
        """Keep the highest scores while the others pass.

        A score that is behind so many others now is behind them at the end as well, so almost all
        of them are one comparison. What is not a number is not below anything.
        """
        kept, n_kept, floor = [np.empty(0)], 0, np.nan
        for batch in self.batches(table, [score]):
            scores = np.asarray(as_columns(batch, [score])[score], dtype=np.float64)
            for start in range(0, scores.size, _CHUNK):
                chunk = scores[start : start + _CHUNK]
                behind = chunk <= floor
                if behind.all():
                    continue
                kept.append(chunk[~behind])
                n_kept += kept[-1].size
                if n_kept > 2 * count + _SPARE:
                    kept = [_largest(kept, count)]
                    n_kept, floor = count, kept[0].min()
        return _largest(kept, count)


def _largest(parts: list[Doubles], count: int) -> Doubles:
    scores = np.concatenate(parts)
    if scores.size <= count:
        return scores
    return np.partition(scores, scores.size - count)[scores.size - count :]


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


def _text_table(model: Any, path: Path) -> Any:
    if isinstance(model, TableModel):
        return _TextTable(model, path)
    raise TableError(
        f"{path} is a text file, and a classifier does not know how its values are written. "
        "Convert the file to Parquet, or make a model file with: shortlist fit."
    )


class _TextTable:
    """A text file or folder of them, read as a table model reads it, in the form of a dataset."""

    def __init__(self, model: TableModel, path: Path) -> None:
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        self._model, self._path = model, path
        with model.schema.open(path) as source:
            plain = self._plain(source)
            types = [pa.float64() if name in plain else pa.string() for name in source.columns]
            self.schema = pa.schema(list(zip(source.columns, types, strict=True)))
            source.take_notes()

    def to_batches(self, columns: list[str] | None = None, **options: Any) -> Iterator[Any]:
        """Return tables with some columns."""
        pa = load_extra("pyarrow", needed_for="Reading large tables")
        names = self.schema.names if columns is None else columns
        schema = pa.schema([self.schema.field(name) for name in names])
        with self._model.schema.open(self._path) as source:
            for chunk in source.chunks(names, self._plain(source)):
                yield chunk.cast(schema)

    def _plain(self, source: Any) -> Collection[str]:
        """Return the columns that the model reads as plain numbers; the others are texts."""
        features = self._model.schema.adapted(source.reading).features
        return {f.name for f in features if f.kind == "numeric" and f.format.is_plain}
