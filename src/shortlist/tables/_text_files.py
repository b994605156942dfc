"""CSV and TSV files: their encoding, their separator, and their rows in chunks."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrow import pa
from .._core.formatting import counted
from ..exceptions import TableError
from ._source import OpenTable, cases_of, note_subtotal, translated
from .column_format import MISSING_TEXTS

#: No row may be longer. Arrow reads up to 32 such blocks ahead.
_BLOCK_BYTES = 1 << 21
#: Models score many rows at once much faster than few.
_BLOCKS_AT_ONCE = 8
_LONGEST_HEADING = 1 << 20
#: Python refuses to parse longer ones.
_LONGEST_CELL = 1 << 17
_MOST_TRIED = 1_000
#: The first of them wins if they are equally frequent: names of columns may hold commas.
_SEPARATORS = "\t|;,"
#: A line that is not blank; quotes protect line ends.
_LINE = re.compile(r'(?:[^"\r\n]|"[^"]*")+"?')
#: Line ends are below this sign.
_CONTROL = 14
_UTF8 = ("utf-8", "utf8", "ascii")
#: Letters in UTF-8, words of other alphabets, and signs that Western Windows programs do not write.
_NOT_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d]|[\xc2-\xdf][\x80-\xbf]|[\x80-\xff]{3}")
_BEYOND_ASCII = re.compile(rb"[A-Za-z]*[\x80-\xff]+[A-Za-z]*")


def open_text(path: Path, source: OpenTable) -> OpenTable:
    """Open a CSV or TSV file; `-` is standard input.

    The encoding of Western Windows programs is recognised and noted: numbers need no letters beyond
    ASCII, and equal texts stay equal, whatever was meant by a letter.
    """
    path, name, notes = utf8_file(path, source), source.name, source.notes
    if source.reading.encoding is None and (word := _windows_word(path)):
        notes.append(
            f"{name} is not UTF-8 text, and is read as text of Windows programs (cp1252). If "
            f"{word!r} is misspelt, name the encoding: encoding=..."
        )
        source = replace(source, reading=replace(source.reading, encoding="cp1252"))
        path = utf8_file(path, source)
    columns, delimiter, start, has_rows = _heading(path, source)
    without = [str(place) for place, column in enumerate(columns, 1) if not column]
    if without:
        shown = ", ".join(without[:5])
        notes.append(f"{name} has no name for column {shown}, which is left out.")
    if has_rows and not _ends_with_line(path):
        notes.append(f"The last line of {name} has no line end. Was the file written to the end?")
    named = [column or f"\0{place}" for place, column in enumerate(columns, 1)]

    def chunks(wanted: Collection[str], at_once: float = 0) -> Iterator[Any]:
        is_noted = False
        with translated(name):
            batches = _batches(path, start, named, delimiter, source) if has_rows else iter(())
            batches = _checked(batches, path, delimiter, source)
            for table in _cases(batches, source):
                is_noted = is_noted or note_subtotal(table, source)
                yield table.select(list(wanted))

    return replace(source, columns=[c for c in columns if c], chunks=chunks, sep=delimiter)


def _batches(
    path: Path, start: int, columns: list[str], delimiter: str, source: OpenTable
) -> Iterator[Any]:
    """Parse a file in blocks, with all values as texts.

    Arrow reads ahead in a thread of its own, which must not call Python: the program could end
    while the thread still runs. Therefore the file is one that Arrow opens by itself.
    """
    compression = "gzip" if path.suffix.lower() == ".gz" else None
    file = pa.input_stream(str(path), compression=compression)
    file.read(start)
    reader = pa.csv.open_csv(
        file,
        pa.csv.ReadOptions(
            column_names=columns,
            skip_rows_after_names=1,
            block_size=_BLOCK_BYTES,
            use_threads=False,  # errors then name the row
        ),
        pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[*MISSING_TEXTS, *source.reading.na],
            strings_can_be_null=True,
        ),
    )
    several = iter(lambda: list(itertools.islice(reader, _BLOCKS_AT_ONCE)), [])
    return (pa.Table.from_batches(batches).combine_chunks() for batches in several)


def _cases(batches: Iterator[Any], source: OpenTable) -> Iterator[Any]:
    """Yield the rows of a table without totals and empty rows at its end."""
    held: list[Any] = []
    for batch in batches:
        if any(column.null_count < len(column) for column in batch.columns):
            yield from held[:-1]
            held = held[-1:]
        held.append(batch)
    if held:
        end = pa.concat_tables(held)
        n_cases, n_empty = cases_of(end, source)
        if n_empty:
            empty = counted(n_empty, "empty row")
            source.notes.append(f"{source.name} ends with {empty}: left out.")
        yield end.slice(0, n_cases)


def _checked(
    batches: Iterator[Any], path: Path, delimiter: str, source: OpenTable
) -> Iterator[Any]:
    """Yield all tables; refuse zero bytes and a quote that is never closed.

    Arrow takes all that follows such a quote for one value.
    """
    name, last, n_before, like_rows = source.name, "", 0, None
    for table in batches:
        if not table.num_rows:
            continue
        row = _row_of_rows(table, name, delimiter)
        if row is not None and like_rows is None:
            like_rows = n_before + row + 1
        n_before += table.num_rows
        last = table.column(-1)[-1].as_py() or ""
        yield table
    if re.search("[\r\n]", last) and not _ends_with_quote(path):
        raise TableError(
            f'{name} has a quote (") that is never closed. It begins the last value of row '
            f"{n_before:,}, which begins with {last.splitlines()[0][:40]!r}. Close or remove it."
        )
    if like_rows is not None:
        source.notes.append(
            f"A value in row {like_rows:,} of {name} holds lines that look like rows of their own. "
            'If they are, a quote (") is missing at the end of a value, or one too many begins it.'
        )


def _row_of_rows(table: Any, name: str, delimiter: str) -> int | None:
    """Refuse zero bytes; return a row with a value that looks like several rows, or None.

    One of the lines of such a value has as many delimiters as a row.
    """
    n_signs = table.num_columns - 1
    cell, sign = f"[^\r\n{re.escape(delimiter)}]*", re.escape(delimiter)
    like_a_row = f"[\r\n]{cell}(?:{sign}{cell}){{{n_signs}}}[\r\n]"
    for column in table.columns:
        (chunk,) = column.chunks
        content = np.frombuffer(chunk.buffers()[2] or b"", dtype=np.uint8)
        if not content.all():
            raise TableError(_no_text(name))
        if 1 < n_signs <= _MOST_TRIED and (content < _CONTROL).any():
            row = pa.compute.index(pa.compute.match_substring_regex(chunk, like_a_row), True)
            if row.as_py() >= 0:
                return int(row.as_py())
    return None


def _ends_with_line(path: Path) -> bool:
    """Return whether a text file is whole: a line end or a quote ends it, or it has a checksum."""
    if path.suffix.lower() == ".gz":
        return True
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() in b'\r\n"'


def _ends_with_quote(path: Path) -> bool:
    """Return whether the last value of a file is closed: an odd number of quotes ends it."""
    end = b""
    with open_bytes(path) as file:
        while piece := file.read(_BLOCK_BYTES):
            end = (end + piece).rstrip(b" \t\r\n")[-1000:]
    return (len(end) - len(end.rstrip(b'"'))) % 2 == 1


# --- encodings ---


def open_bytes(path: Path) -> Any:
    """Open a file, uncompressed if it ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def _open_chars(path: Path, encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(open_bytes(path), encoding, newline="")


def utf8_file(path: Path, source: OpenTable) -> Path:
    """Return a UTF-8 file: this one, or a copy of standard input or of another encoding."""
    if str(path) == "-":
        path = _copy(source.stack)
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    with open_bytes(path) as file:
        encoding = _marked(file.read(4), source.name) or source.reading.encoding or "utf-8"
    if encoding.lower().replace("_", "-") in _UTF8 or _is_utf8(path):
        return path
    copy = _copy(source.stack)
    with (
        _open_chars(path, encoding) as file,
        copy.open("w", encoding="utf-8", newline="") as recoded,
    ):
        shutil.copyfileobj(file, recoded, 1 << 20)
    return copy


def _copy(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shortlist-"))) / "t.csv"


def _marked(head: bytes, name: str) -> str | None:
    """Return the encoding that the first bytes show: a mark, or every second byte zero."""
    if head == b"PK\x03\x04":
        raise TableError(
            f"{name} is not a text file, but an Excel workbook or another archive. Give it the "
            "extension .xlsx, or save it as CSV."
        )
    if head == b"PAR1":
        raise TableError(f"{name} is a Parquet file. Give it the extension .parquet.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head[:3] == b"\xef\xbb\xbf":
        return "utf-8"
    if len(head) == 4 and head[1] == head[3] == 0:
        return "utf-16-le"
    return "utf-16-be" if len(head) == 4 and head[0] == head[2] == 0 else None


def _windows_word(path: Path) -> str | None:
    """Return a word with a letter beyond ASCII of a text from Western Windows, or None."""
    found = None
    with open_bytes(path) as file:
        for line in file:
            if not line.isascii():
                if _NOT_WINDOWS.search(line):
                    return None
                found = found or _BEYOND_ASCII.search(line)
    return None if found is None else str(found[0].decode("cp1252"))


def _is_utf8(path: Path) -> bool:
    """Return whether a file is UTF-8 text with letters beyond ASCII, whatever was said about it."""
    try:
        with _open_chars(path) as file:
            pieces = iter(lambda: file.read(_BLOCK_BYTES), "")
            return not all(list(map(str.isascii, pieces)))  # all of them are read
    except UnicodeError:
        return False


# --- the heading ---


def _heading(path: Path, source: OpenTable) -> tuple[list[str], str, int, bool]:
    """Return the columns, the delimiter, how many bytes precede them, and whether rows follow."""
    with _open_chars(path) as file:
        name, head = source.name, file.read(_LONGEST_HEADING)
    line = _LINE.search(head, head.startswith("\ufeff"))
    of_excel = re.fullmatch(r"sep=(.)", line[0].strip(" ")) if line else None
    if of_excel and line:
        line = _LINE.search(head, line.end())
    if line is None:
        raise TableError(f"{name} is empty. Its first line must hold the column names.")
    cells = re.split(f"[{_SEPARATORS}]", line[0])
    if line.end() == _LONGEST_HEADING or len(max(cells, key=len)) > _LONGEST_CELL:
        raise TableError(f"{name} does not start with a line of column names; is it a table?")
    if "\0" in line[0]:
        raise TableError(_no_text(name))
    said = of_excel[1] if of_excel else source.reading.sep
    delimiter = said if said and said in line[0] else _separator(line[0])
    row = next(csv.reader(io.StringIO(line[0], newline=""), delimiter=delimiter), [])
    columns = [column.strip() for column in row]
    if not any(columns):
        raise TableError(f"The first line of {name} must hold the column names; it is blank.")
    first = _LINE.search(head, line.end())
    begin = first[0][:_LONGEST_CELL] if first else ""
    n_filled = sum(map(bool, next(csv.reader([begin], delimiter=delimiter), [])))
    if (n_named := sum(map(bool, columns))) < n_filled / 2:
        raise TableError(
            f"The first line of {name} names {n_named} of {n_filled} columns. If there are lines "
            "above the one with the column names, remove them."
        )
    below = re.search("[\r\n][^\r\n]", head[line.start() :])
    has_rows = below is not None or len(head) == _LONGEST_HEADING
    return columns, delimiter, len(head[: line.start()].encode()), has_rows


def _no_text(name: str) -> str:
    return (
        f"{name} is damaged or not what its extension says: a text file holds no zero bytes. Save "
        "it again, or name its encoding with encoding=...."
    )


def _separator(heading: str) -> str:
    outside = re.sub(r'"[^"]*"', "", heading)
    return max(_SEPARATORS, key=outside.count) if any(s in outside for s in _SEPARATORS) else ","
