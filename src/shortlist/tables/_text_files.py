"""CSV and TSV files: their encoding, their separator, and their rows in blocks of whole lines."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Rows
from .._core.extras import load_extra
from ..exceptions import TableError
from ._source import MISSING_TEXTS, OpenTable, not_utf8, translated
from ._totals import about_subtotal, is_subtotal, rows_left_out
from .options import ReadOptions

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.csv", needed_for="Reading tables")

_CHUNK_BYTES = 1 << 22
_LONGEST_HEADING = 1 << 22
_LONGEST_LINE = 1 << 26
_QUOTE = ord('"')
#: So many bytes at the end of a file may hold its totals and empty rows.
_END_BYTES = 1 << 13
_ZIP = b"PK\x03\x04"
#: Parts of the words for totals, which are found quickly; so many of them are looked at in a block.
_IN_TOTALS = (b"otal", b"OTAL", b"umme", b"UMME", b"omme", b"rgebnis", b"oyenne", b"Result")
_MOST_TRIED = 1_000
#: The first of them wins if they are equally frequent: names of columns may hold commas.
_SEPARATORS = "\t|;,"


def open_text(
    path: Path, name: str, stack: contextlib.ExitStack, reading: ReadOptions
) -> OpenTable:
    """Open a CSV or TSV file; `-` is standard input."""
    file = open_binary(path, stack, reading)
    columns, delimiter = _header(file, name, reading)
    notes: list[str] = []
    named = _named(columns, name, notes)

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        n_before, has_subtotal = 0, False
        rest = _Rest(file)
        blocks = whole_lines(rest, _CHUNK_BYTES, delimiter=delimiter, name=name)
        with translated(name):
            for block in _without_end(blocks, rest, delimiter, name, reading, notes):
                if b"\0" in block:
                    raise TableError(_no_text(name))
                if not (has_subtotal or reading.keep_total) and (
                    cells := _subtotal(block, delimiter)
                ):
                    has_subtotal = True
                    notes.append(about_subtotal(name, cells))
                with _rows_counted(n_before):
                    table = _parsed(block, named, delimiter, wanted, numeric, reading)
                n_before += table.num_rows
                yield table

    return OpenTable(name, [c for c in columns if c], chunks, reading, notes, delimiter)


def _parsed(
    block: bytes,
    columns: list[str],
    delimiter: str,
    wanted: Collection[str],
    numeric: Collection[str],
    reading: ReadOptions,
) -> Any:
    """Parse a block; numbers that are not written plainly come as texts."""
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def read(plain: Collection[str], use_threads: bool = True) -> Any:
        convert = pa.csv.ConvertOptions(
            include_columns=list(wanted),
            column_types={c: pa.float64() if c in plain else pa.string() for c in wanted},
            null_values=[*MISSING_TEXTS, *reading.na],
            strings_can_be_null=True,
        )
        # In one piece, because a value that spans lines must not be cut.
        options = pa.csv.ReadOptions(
            column_names=columns, block_size=len(block) + 1, use_threads=use_threads
        )
        return pa.csv.read_csv(_arrow_memory(block), options, parse, convert)

    try:
        return read(numeric)
    except pa.ArrowInvalid as error:
        if "conversion error to double" in str(error):
            return read(())
        return read(numeric, use_threads=False)  # its error names the row


@contextlib.contextmanager
def _rows_counted(n_before: int) -> Iterator[None]:
    """Let errors of the parser count rows from the first one below the heading."""
    try:
        yield
    except pa.ArrowInvalid as error:
        counted = re.sub(
            r"^CSV parse error: (?:Row #(\d+): )?",
            lambda row: f"row {n_before + int(row[1]):,}: " if row[1] else "",
            str(error),
        )
        raise pa.ArrowInvalid(counted) from None


def _arrow_memory(block: bytes) -> Any:
    """Copy bytes into memory that Arrow's threads can read without Python."""
    stream = pa.BufferOutputStream()
    stream.write(block)
    return pa.BufferReader(stream.getvalue())


# --- encodings ---


def open_binary(path: Path, stack: contextlib.ExitStack, reading: ReadOptions) -> Any:
    """Open a text file as UTF-8 bytes, whatever its encoding is."""
    if str(path) == "-":
        file: Any = sys.stdin.buffer
    else:
        opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
        file = stack.enter_context(opener(path, "rb"))
    encoding = _marked(file) or reading.encoding
    is_utf8 = encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8", "ascii")
    if is_utf8:
        return file
    recoded = _Recoded(file, encoding)
    stack.callback(recoded.release)
    return recoded


def _marked(file: Any) -> str | None:
    """Return the encoding that the first bytes tell: a mark, or every second byte zero."""
    head = file.peek(4)[:4] if hasattr(file, "peek") else b""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head[:3] == b"\xef\xbb\xbf":
        return "utf-8"
    if len(head) == 4 and head[1] == head[3] == 0:
        return "utf-16-le"
    return "utf-16-be" if len(head) == 4 and head[0] == head[2] == 0 else None


class _Recoded:
    """A binary file in UTF-8, made from one in another encoding."""

    def __init__(self, file: Any, encoding: str | None) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, newline="")

    def read(self, size: int) -> bytes:
        """Return about so many bytes, and none at the end."""
        return self._text.read(size).encode()

    def release(self) -> None:
        """Leave the file inside open: it may be standard input."""
        self._text.detach()


def is_utf8(path: Path) -> bool:
    """Return whether a file is UTF-8 text with letters beyond ASCII; False for standard input."""
    if str(path) == "-" or not path.is_file():
        return False
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    beyond = False
    try:
        with opener(path, "rb") as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            while piece := text.read(_CHUNK_BYTES):
                beyond |= not piece.isascii()
    except (UnicodeError, OSError, EOFError):
        return False
    return beyond


# --- the heading ---


def _header(file: Any, name: str, reading: ReadOptions) -> tuple[list[str], str]:
    """Read the heading and nothing after it; return the column names and the delimiter."""
    with translated(name):
        line = _first_line(file, name)
        if line.startswith(_ZIP):
            raise TableError(
                f"{name} is not a text file, but an Excel workbook or another archive. Give it the "
                "extension .xlsx, or save it as CSV."
            )
        text = line.decode("utf-8-sig")
        told = re.fullmatch(r"sep=(.)", text.strip(" \ufeff"))  # a line that Excel knows
        if told:
            text = _first_line(file, name).decode()
    if not text:
        raise TableError(f"{name} is empty. Its first line must hold the column names.")
    if "\0" in text:
        raise TableError(_no_text(name))
    said = told[1] if told else reading.sep
    delimiter = said if said and said in text else _separator(text)
    columns = _split(text, delimiter)
    if not any(column.strip() for column in columns):
        raise TableError(f"The first line of {name} must hold the column names; it is blank.")
    return [column.strip() for column in columns], delimiter


def _no_text(name: str) -> str:
    return (
        f"{name} is damaged or not what its extension says: a text file holds no zero bytes. Save "
        "it again, or name its encoding with encoding=...."
    )


def _separator(heading: str) -> str:
    outside = re.sub(r'"[^"]*"', "", heading)
    return max(_SEPARATORS, key=outside.count) if any(s in outside for s in _SEPARATORS) else ","


def _named(columns: list[str], name: str, notes: list[str]) -> list[str]:
    """Return a name for every column; those without one are left out, and noted."""
    without = [place for place, column in enumerate(columns, 1) if not column]
    if without:
        places = ", ".join(str(place) for place in without[:5])
        notes.append(f"{name} has no name for column {places}, which is left out.")
    return [column or f"\0{place}" for place, column in enumerate(columns, 1)]


def _first_line(file: Any, name: str) -> bytes:
    """Read up to the first line end outside quotes: that of Unix, Windows or an old Macintosh."""
    line, quoted = bytearray(), False
    while byte := file.read(1):
        if byte in b"\r\n" and not quoted:
            if line:
                break
            continue
        quoted ^= byte == b'"'
        line += byte
        if len(line) > _LONGEST_HEADING:
            raise TableError(f"{name} does not start with a line of column names; is it a table?")
    return bytes(line)


# --- blocks of whole lines ---
#
# Arrow's streaming reader asks a Python file for blocks from its own threads, many blocks ahead.
# That costs memory. After an error, the program can also end while such a thread is still reading.
# Here nothing is read before it is needed.


def whole_lines(file: Any, size: int, *, delimiter: str, name: str) -> Iterator[bytes]:
    """Yield the rest of a file in blocks of about `size` bytes; each ends at a line end."""
    rest = b""
    while piece := file.read(size):
        block = rest + piece
        end = _end_of_last_line(block, delimiter)
        if end:
            yield block[:end]
        rest = block[end:]
        if len(rest) > _LONGEST_LINE:
            raise TableError(
                f'{name} has a line of more than {_LONGEST_LINE >> 20} MB. Is a quote (") missing?'
            )
    if rest:
        yield rest


def _end_of_last_line(block: bytes, delimiter: str) -> int:
    """Return the position after the last line end outside quotes, or 0."""
    quotes = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == _QUOTE)
    if not _come_in_pairs(block, quotes, delimiter):
        block, quotes = _without_values_in_quotes(block, delimiter), quotes[:0]
    end = len(block)
    while True:
        place = max(block.rfind(b"\n", 0, end), block.rfind(b"\r", 0, end))
        n_before = int(np.searchsorted(quotes, place))
        if place < 0 or n_before % 2 == 0:
            return place + 1
        end = int(quotes[n_before - 1])  # inside a value: look before it


def _come_in_pairs(block: bytes, quotes: Rows, delimiter: str) -> bool:
    """Return whether every first, third, ... quote opens a value or follows a doubled quote.

    If so, a position lies outside all quoted values exactly if an even number of quotes precedes
    it.
    """
    firsts = quotes[::2]
    signs = np.frombuffer(b"\n" + block, dtype=np.uint8)[firsts]  # the character before each
    return bool(np.isin(signs, list(f'{delimiter}\r\n"'.encode())).all())


def _without_values_in_quotes(block: bytes, delimiter: str) -> bytes:
    """Blank out quoted values, even an unfinished one at the end; other quotes are no delimiters.

    This is slow, and is needed only if a quote occurs inside an unquoted value, as in 12" pipe.
    """
    before = re.escape(delimiter).encode() + rb"\r\n"
    values = rb"(?:(?<=[" + before + rb'])|\A)"[^"]*(?:""[^"]*)*(?:"|\Z)'
    return re.sub(values, lambda value: b"." * len(value[0]), block)


# --- the end of the file: totals and empty rows ---


class _Rest:
    """A file that knows whether it has ended."""

    def __init__(self, file: Any) -> None:
        self._file, self.has_ended = file, False

    def read(self, size: int) -> bytes:
        """Return so many bytes, or fewer at the end."""
        piece: bytes = self._file.read(size)
        self.has_ended = len(piece) < size
        return piece


def _without_end(
    blocks: Iterator[bytes],
    file: _Rest,
    delimiter: str,
    name: str,
    reading: ReadOptions,
    notes: list[str],
) -> Iterator[bytes]:
    """Hold back the last lines; at the end of the file, leave out a total and empty rows."""
    rest = b""
    for block in blocks:
        block = rest + block
        if file.has_ended:
            rest = block + b"".join(blocks)
            break
        place = _end_of_last_line(block[:-_END_BYTES], delimiter)
        if place:
            yield block[:place]
        rest = block[place:]
    lengths: list[int] = []
    upward = _upward(rest, lengths, delimiter, name)
    n_left_out, n_empty = rows_left_out(upward, name, reading, notes)
    rest = rest[: len(rest) - sum(lengths[:n_left_out])]
    if n_empty:
        notes.append(f"{name} ends with {n_empty} empty rows, which are left out.")
    if rest:
        yield rest


def _subtotal(block: bytes, delimiter: str) -> list[str] | None:
    """Return the cells of the first row that looks like a total; None if there is none."""
    for word in _IN_TOTALS:
        place = -1
        for _ in range(_MOST_TRIED):
            place = block.find(word, place + 1)
            if place < 0:
                break
            start = max(block.rfind(b"\n", 0, place), block.rfind(b"\r", 0, place)) + 1
            line = block[start : start + _END_BYTES].splitlines()[0]
            cells = _split(line.decode(errors="replace"), delimiter)
            if is_subtotal(cells):
                return cells
    return None


def _upward(rest: bytes, lengths: list[int], delimiter: str, name: str) -> Iterator[list[str]]:
    """Yield the cells of the last rows, the last one first, and keep how long their lines are."""
    end = len(rest)
    while end:
        last = _last_line(rest[:end], delimiter)
        lengths.append(len(last))
        end -= len(last)
        yield _cells(last, delimiter, name)


def _last_line(rest: bytes, delimiter: str) -> bytes:
    end = len(rest.rstrip(b"\r\n"))
    return rest[_end_of_last_line(rest[:end], delimiter) :]


def _cells(line: bytes, delimiter: str, name: str) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise TableError(not_utf8(name)) from None
    return _split(text, delimiter)


def _split(text: str, delimiter: str) -> list[str]:
    """Return the cells of the first row; none if a cell is too long to be a name or a total."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error:
        return []
