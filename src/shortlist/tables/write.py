"""Writing tables: CSV, Excel, JSON lines and Parquet."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .._core.extras import load_extra
from ..exceptions import TableError, TableNote

pa = load_extra("pyarrow", needed_for="Writing tables")
for _module in ("csv", "parquet"):
    load_extra(f"pyarrow.{_module}", needed_for="Writing tables")

Write = Callable[[dict[str, Any]], None]
_MOST_ROWS_OF_A_SHEET = 1_048_576
_MOST_SIGNS_OF_A_CELL = 32_767
_FORBIDDEN = {code: None for code in range(32) if chr(code) not in "\t\n\r"}


def output_format(path: Path) -> str:
    """Return the format of an output file, by its extension."""
    suffix = path.suffix.lower().removeprefix(".")
    known = {"pq": "parquet", "ndjson": "jsonl"}.get(suffix, suffix)
    if known not in _WRITERS:
        raise TableError(
            f"Tables cannot be written with the extension of {path}. "
            "Use .csv, .xlsx, .parquet or .jsonl."
        )
    return known


@contextlib.contextmanager
def open_writer(file: BinaryIO, format: str, schema: dict[str, str]) -> Iterator[Write]:
    """Write columns to an open file; `schema` gives their names and Arrow types."""
    arrow = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in schema.items()])
    with _WRITERS[format](file, arrow) as writer:
        yield lambda columns: writer.write(pa.record_batch(columns, schema=arrow))


def _csv(file: BinaryIO, schema: Any) -> Any:
    options = pa.csv.WriteOptions(quoting_style="needed")
    return pa.csv.CSVWriter(file, schema, write_options=options)


class _JsonLines(contextlib.AbstractContextManager[Any]):
    """Writes an object per row."""

    def __init__(self, file: BinaryIO, schema: Any) -> None:
        self._file = file

    def __exit__(self, *error: object) -> None:
        pass

    def write(self, batch: Any) -> None:
        for row in batch.to_pylist():
            self._file.write(json.dumps(row).encode() + b"\n")


class _Workbook(contextlib.AbstractContextManager[Any]):
    """Writes a sheet, which is saved at the end; texts stay texts, also those that begin with =."""

    def __init__(self, file: BinaryIO, schema: Any) -> None:
        openpyxl = load_extra("openpyxl", needed_for="Writing Excel files")
        self._file, self._book = file, openpyxl.Workbook(write_only=True)
        self._sheet, self._cell = self._book.create_sheet("shortlist"), openpyxl.cell.WriteOnlyCell
        self._n_rows = self._n_cut = 0
        self._append(schema.names)

    def write(self, batch: Any) -> None:
        for row in batch.to_pylist():
            self._append(row.values())

    def _append(self, values: Any) -> None:
        self._n_rows += 1
        if self._n_rows > _MOST_ROWS_OF_A_SHEET:
            raise TableError("A sheet of Excel has too few rows for this table. Write a .csv file.")
        self._sheet.append([self._text(v) if isinstance(v, str) else v for v in values])

    def _text(self, text: str) -> Any:
        kept = text.translate(_FORBIDDEN)[:_MOST_SIGNS_OF_A_CELL]
        self._n_cut += kept != text
        cell = self._cell(self._sheet, kept)
        cell.data_type = "s"
        return cell

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._book.save(self._file)
        if self._n_cut:
            warnings.warn(
                f"{self._n_cut:,} texts have control characters or more than "
                f"{_MOST_SIGNS_OF_A_CELL:,} characters, which Excel does not take. They are "
                "shortened. Files that end in .csv or .parquet have them as they are.",
                TableNote,
                stacklevel=2,
            )


_WRITERS: dict[str, Any] = {
    "csv": _csv,
    "xlsx": _Workbook,
    "parquet": pa.parquet.ParquetWriter,
    "jsonl": _JsonLines,
}
