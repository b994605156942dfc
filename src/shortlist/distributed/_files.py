"""Files and folders as tables that are read block by block."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from .._core.extras import load_extra
from ..exceptions import TableError
from ..tables import ReadOptions, TableModel
from ..tables.read import files_of

__all__ = ["TextTable", "open_table"]

_FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "feather"),
    **dict.fromkeys((".csv", ".csv.gz"), "csv"),
}


class TextTable:
    """A text file or folder of them, read as a table model reads it, in the form of a dataset.

    Parameters
    ----------
    model : TableModel
        Knows how the values of its columns are written.
    path : Path
        CSV, TSV or JSON lines, or any other format of tables.
    reading : ReadOptions, default=None
        What to know about this file.
    """

    def __init__(self, model: TableModel, path: Path, reading: ReadOptions | None = None) -> None:
        self._model, self._path, self._reading = model, path, reading
        self._schema: Any = None

    @property
    def schema(self) -> Any:
        """Names and types of the columns: numbers where the model reads plain ones, else text."""
        if self._schema is None:
            pa = load_extra("pyarrow", needed_for="Reading large tables")
            with self._open() as source:
                plain = self._plain(source)
                self._schema = pa.schema(
                    [
                        (name, pa.float64() if name in plain else pa.string())
                        for name in source.columns
                    ]
                )
                source.take_notes()
        return self._schema

    def to_batches(self, columns: list[str] | None = None, **options: Any) -> Iterator[Any]:
        """Return tables with some columns."""
        names = self.schema.names if columns is None else columns
        schema = load_extra("pyarrow", needed_for="Reading large tables").schema(
            [self.schema.field(name) for name in names]
        )
        with self._open() as source:
            for chunk in source.chunks(names, self._plain(source)):
                yield chunk.cast(schema)

    def _open(self) -> Any:
        return self._model.schema.open(self._path, reading=self._reading)

    def _plain(self, source: Any) -> Collection[str]:
        features = self._model.schema.adapted(source.reading).features
        return {f.name for f in features if f.kind == "numeric" and f.format.is_plain}


def open_table(table: Any, texts: Collection[str] = ()) -> Any:
    """Return an Arrow dataset: of a path, a folder, a list of paths or an Arrow table.

    Parameters
    ----------
    table : path, Arrow dataset or Arrow table
        A Parquet, Feather or CSV file, or a folder of them.
    texts : collection of str, default=()
        Columns of CSV files that are not numbers, whatever they look like: 007 is not 7.

    Returns
    -------
    pyarrow.dataset.Dataset or TextTable
    """
    dataset = load_extra("pyarrow.dataset", needed_for="Reading large tables")
    if isinstance(table, (dataset.Dataset, TextTable)):
        return table
    if not isinstance(table, (str, Path)):
        return _in_memory(dataset, table)
    path = Path(table)
    if not path.exists():
        raise TableError(f"There is no file or folder {path}.")
    format = format_of(path)
    if format is None:
        raise TableError(
            f"The format of {path} cannot be inferred from its extension. Use .parquet, .feather, "
            ".arrow or .csv."
        )
    return dataset.dataset(str(path), format=_csv(texts) if format == "csv" else format)


def format_of(path: Path) -> str | None:
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
