"""Writing tables: CSV, Excel, JSON lines, Parquet and Feather."""

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
for _module in ("csv", "ipc", "parquet"):
    load_extra(f"pyarrow.{_module}", needed_for="Writing tables")

Write = Callable[[dict[str, Any]], None]
_MOST_ROWS_OF_A_SHEET = 1_048_576
_MOST_SIGNS_OF_A_CELL = 32_767
_FORBIDDEN = {code: None for code in range(32) if chr(code) not in "\t\n\r"}


def output_format(path: Path) -> str:
    """Return the format of an output file, by its extension."""
    suffix = path.suffix.lower().removeprefix(".")
    known = {"pq": "parquet", "arrow": "feather", "ndjson": "jsonl"}.get(suffix, suffix)
    if known not in _WRITERS:
        raise TableError(
            f"Tables cannot be written with the extension of {path}. "
            "Use .csv, .xlsx, .parquet, .feather or .jsonl."
        )
    return known


@contextlib.contextmanager
def open_writer(file: BinaryIO, format: str, schema: dict[str, str]) -> Iterator[Write]:
    """Write columns to an open file; `schema` gives their names and Arrow types."""
    arrow = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in schema.items()])
    with _WRITERS[format](file, arrow) as write:
        yield lambda columns: write(pa.record_batch(columns, schema=arrow))


@contextlib.contextmanager
def _csv(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    with pa.csv.CSVWriter(
        file, schema, write_options=pa.csv.WriteOptions(quoting_style="needed")
    ) as writer:
        yield writer.write


@contextlib.contextmanager
def _xlsx(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    openpyxl = load_extra("openpyxl", needed_for="Writing Excel files")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("shortlist")
    n_rows = n_cut = 0

    def append(values: list[Any]) -> None:
        nonlocal n_rows, n_cut
        n_rows += 1
        n_cut += sum(isinstance(value, str) and _as_cell(value) != value for value in values)
        if n_rows > _MOST_ROWS_OF_A_SHEET:
            raise TableError("A sheet of Excel has too few rows for this table. Write a .csv file.")
        sheet.append([_cell(openpyxl, sheet, value) for value in values])

    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            append(list(row.values()))

    append(list(schema.names))
    yield write
    book.save(file)
    if n_cut:
        warnings.warn(
            f"{n_cut:,} texts have control characters or more than {_MOST_SIGNS_OF_A_CELL:,} "
            "characters, which Excel does not take. They are shortened. Files that end in .csv or "
            ".parquet have them as they are.",
            TableNote,
            stacklevel=2,
        )


def _as_cell(text: str) -> str:
    return text.translate(_FORBIDDEN)[:_MOST_SIGNS_OF_A_CELL]


def _cell(openpyxl: Any, sheet: Any, value: Any) -> Any:
    """Return a cell; a text that starts with = stays a text."""
    if not isinstance(value, str):
        return value
    cell = openpyxl.cell.WriteOnlyCell(sheet, _as_cell(value))
    cell.data_type = "s"
    return cell


@contextlib.contextmanager
def _parquet(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    with pa.parquet.ParquetWriter(file, schema) as writer:
        yield writer.write_batch


@contextlib.contextmanager
def _feather(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    with pa.ipc.new_file(file, schema) as writer:
        yield writer.write


@contextlib.contextmanager
def _jsonl(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            file.write(json.dumps(row).encode() + b"\n")

    yield write


_WRITERS: dict[str, Any] = {
    "csv": _csv,
    "xlsx": _xlsx,
    "parquet": _parquet,
    "feather": _feather,
    "jsonl": _jsonl,
}
