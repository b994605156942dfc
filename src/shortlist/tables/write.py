"""Writing tables: CSV, Excel, JSON lines and Parquet; no text becomes a formula."""

from __future__ import annotations

import contextlib
import json
import operator
import re
from pathlib import Path
from typing import Any, BinaryIO, Self

from .._core.arrow import pa
from .._core.extras import load_extra
from .._core.files import DatabaseTable, write_whole
from .._core.formatting import counted
from ..exceptions import TableError
from ._databases import append_whole, check_appendable
from ._source import note

#: Formats that spreadsheets open, and would take texts for formulas in.
_FOR_SPREADSHEETS = ("csv", "xlsx")
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")
_MOST_ROWS_OF_A_SHEET = 1_048_576
_MOST_SIGNS_OF_A_CELL = 32_767
_FORBIDDEN = {code: None for code in range(32) if chr(code) not in "\t\n\r"}


def output_format(path: Path) -> str:
    """Return the format of an output file, by its extension; Parquet on the way to a database."""
    if isinstance(path, DatabaseTable):
        check_appendable(path)
        return "parquet"
    suffix = path.suffix.lower().removeprefix(".")
    known = {"pq": "parquet", "ndjson": "jsonl"}.get(suffix, suffix)
    if known not in _WRITERS:
        raise TableError(
            f"Tables cannot be written with the extension of {path}. "
            "Use .csv, .xlsx, .parquet or .jsonl."
        )
    return known


def write_answers(path: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    """Open a file, or a table of a database, that gets all answers or none."""
    return append_whole(path) if isinstance(path, DatabaseTable) else write_whole(path)


def spreadsheet_safe(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula: with a ' before it.

    >>> spreadsheet_safe("=HYPERLINK(1)"), spreadsheet_safe("-12.5"), spreadsheet_safe("Ann")
    ("'=HYPERLINK(1)", '-12.5', 'Ann')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def without_escape(text: str) -> str:
    """Return a text as it was before :func:`spreadsheet_safe`.

    >>> without_escape("'=HYPERLINK(1)"), without_escape("'quoted'")
    ('=HYPERLINK(1)', "'quoted'")
    """
    return text[1:] if text.startswith("'") and spreadsheet_safe(text[1:]) == text else text


class TableWriter:
    """Writes columns to an open file, with formulas escaped where spreadsheets may open it.

    `types` gives the names of the columns and their Arrow types.
    """

    def __init__(self, file: BinaryIO, format: str, types: dict[str, str]) -> None:
        self._types, self._escapes = types, format in _FOR_SPREADSHEETS
        names = map(spreadsheet_safe, types) if self._escapes else types
        kinds = map(pa.type_for_alias, types.values())
        self._schema = pa.schema(list(zip(names, kinds, strict=True)))
        self._writer = _WRITERS[format](file, self._schema)
        self.n_escaped = 0

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def write(self, columns: dict[str, Any]) -> None:
        """Write some rows, given as columns."""
        values = [self._column(columns[name], kind) for name, kind in self._types.items()]
        named = dict(zip(self._schema.names, values, strict=True))
        self._writer.write(pa.record_batch(named, schema=self._schema))

    def _column(self, values: Any, kind: str) -> Any:
        if not self._escapes or kind != "string":
            return values
        texts = pa.array(values, pa.string()).to_pylist()
        safe = [text if text is None else spreadsheet_safe(text) for text in texts]
        self.n_escaped += sum(map(operator.ne, safe, texts))
        return safe

    @property
    def notes(self) -> list[str]:
        """What was escaped, if anything was."""
        if not self.n_escaped:
            return []
        return [
            f"{counted(self.n_escaped, 'cell begins', 'cells begin')} with =, +, -, @ or a control "
            "character, which spreadsheets take for a formula. A ' was put in front. Files that "
            "end in .parquet or .jsonl have the texts as they are."
        ]


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
    """Writes a sheet, which is saved at the end; texts like formulas are escaped by now."""

    def __init__(self, file: BinaryIO, schema: Any) -> None:
        openpyxl = load_extra("openpyxl", needed_for="Writing Excel files")
        self._file, self._book = file, openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("shortlist")
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

    def _text(self, text: str) -> str:
        kept = text.translate(_FORBIDDEN)[:_MOST_SIGNS_OF_A_CELL]
        self._n_cut += kept != text
        return kept

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._book.save(self._file)
        if self._n_cut:
            note(
                f"{self._n_cut:,} texts have control characters or more than "
                f"{_MOST_SIGNS_OF_A_CELL:,} characters, which Excel does not take. They are "
                "shortened. Files that end in .csv or .parquet have them as they are."
            )


_WRITERS: dict[str, Any] = {
    "csv": _csv,
    "xlsx": _Workbook,
    "parquet": pa.parquet.ParquetWriter,
    "jsonl": _JsonLines,
}
