"""Tables from files, by extension: whole, or a chunk at a time in constant memory."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..exceptions import TableError
from ._extra import pyarrow as pa
from ._lines import whole_lines

__all__ = ["Source", "open_source"]

#: Texts in a CSV file that stand for a missing value.
MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<null>")
_CHUNK_BYTES = 1 << 22
_CHUNK_ROWS = 1 << 16
_LONGEST_HEADING = 1 << 22
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class Source:
    """An open table: its column names, its types where the file has any, and its chunks.

    `types` is None for text formats. `chunks(columns, numeric)` may be called once; it yields
    Arrow tables with the named columns, of which `numeric` are read as numbers from text.
    """

    name: str
    columns: list[str]
    types: dict[str, Any] | None
    chunks: Callable[[Collection[str], Collection[str]], Iterator[Any]]

    def read(self) -> Any:
        """Return the whole table, with text as text."""
        chunks = list(self.chunks(self.columns, ()))
        if not chunks or sum(chunk.num_rows for chunk in chunks) == 0:
            raise TableError(f"{self.name} has no rows. Check how the file was made.")
        return pa.concat_tables(chunks)

    def require(self, columns: Collection[str], why: str) -> None:
        """Complain about columns that are not there."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            raise TableError(
                f"{self.name} has no column {_listed(missing)}, {why}. "
                f"Its columns are {_listed(self.columns)}."
            )


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open CSV, TSV (also gzipped), Parquet or Feather by extension; `-` is CSV from stdin."""
    kind = _kind(path)
    name = "Standard input" if str(path) == "-" else str(path)
    with contextlib.ExitStack() as stack:
        with _translated(name):
            source = _OPENERS[kind](path, name, stack)
        _check_unique(source)
        yield source


def _kind(path: Path) -> str:
    if str(path) == "-":
        return "text"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes = suffixes[:-1] if suffixes[-2:-1] in ([".csv"], [".tsv"], [".txt"]) else []
    kind = _KINDS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise TableError(
            f"{path} has an extension that says nothing about its format. Use .csv, .tsv, "
            ".csv.gz, .parquet, .feather or .arrow, or - for CSV on standard input."
        )
    return kind


_KINDS = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
}


def _open_text(path: Path, name: str, stack: contextlib.ExitStack) -> Source:
    file = _binary(path, stack)
    columns, delimiter = _header(file, name)

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        types = {c: pa.float64() if c in numeric else pa.string() for c in wanted}
        convert = pa.csv.ConvertOptions(
            include_columns=list(wanted),
            column_types=types,
            null_values=list(MISSING),
            strings_can_be_null=True,
        )
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        with _translated(name, columns):
            for block in whole_lines(file, _CHUNK_BYTES, delimiter=delimiter, name=name):
                # All in one piece: a value that spans lines must not be cut.
                read = pa.csv.ReadOptions(column_names=columns, block_size=len(block) + 1)
                yield pa.csv.read_csv(_arrow_memory(block), read, parse, convert)

    return Source(name, columns, None, chunks)


def _arrow_memory(block: bytes) -> Any:
    """Copy bytes to where Arrow's threads need not ask Python for them."""
    stream = pa.BufferOutputStream()
    stream.write(block)
    return pa.BufferReader(stream.getvalue())


def _binary(path: Path, stack: contextlib.ExitStack) -> BinaryIO:
    if str(path) == "-":
        return sys.stdin.buffer
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return stack.enter_context(opener(path, "rb"))


def _header(file: BinaryIO, name: str) -> tuple[list[str], str]:
    """Read the heading alone, so that what follows can be streamed under its names."""
    first = _first_line(file, name)
    if not first:
        raise TableError(f"{name} is empty: not even a heading with column names was found.")
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(_not_utf8(name)) from None
    delimiter = max(",;\t", key=text.count)
    columns = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    if not any(columns):
        raise TableError(f"The first line of {name} must hold the column names; it is blank.")
    return [column.strip() for column in columns], delimiter


def _first_line(file: BinaryIO, name: str) -> bytes:
    """Read up to the first line end outside quotes, be it of Unix, Windows or an old Macintosh."""
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


def _open_parquet(path: Path, name: str, stack: contextlib.ExitStack) -> Source:
    raw = stack.enter_context(pa.OSFile(str(path)))
    # Buffered beforehand, all of the file would in the end be held in memory.
    options = {"buffer_size": _CHUNK_BYTES, "pre_buffer": False}
    file = stack.enter_context(pa.parquet.ParquetFile(raw, **options))

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        with _translated(name):
            for batch in file.iter_batches(_CHUNK_ROWS, columns=list(wanted)):
                yield pa.Table.from_batches([batch]).select(list(wanted))

    return _typed_source(name, file.schema_arrow, chunks)


def _open_feather(path: Path, name: str, stack: contextlib.ExitStack) -> Source:
    file = pa.ipc.open_file(stack.enter_context(pa.OSFile(str(path))))

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        with _translated(name):
            for number in range(file.num_record_batches):
                yield pa.Table.from_batches([file.get_batch(number)]).select(list(wanted))

    return _typed_source(name, file.schema, chunks)


def _typed_source(name: str, schema: Any, chunks: Callable[..., Iterator[Any]]) -> Source:
    """Leave out the unnamed index that pandas saves: row numbers are nothing to learn from."""
    types = dict(zip(schema.names, schema.types, strict=True))
    columns = [column for column in schema.names if not _UNNAMED_INDEX.fullmatch(column)]
    return Source(name, columns, {column: types[column] for column in columns}, chunks)


_OPENERS: dict[str, Callable[[Path, str, contextlib.ExitStack], Source]] = {
    "text": _open_text,
    "parquet": _open_parquet,
    "feather": _open_feather,
}


def _check_unique(source: Source) -> None:
    twice = [column for column, times in Counter(source.columns).items() if times > 1]
    if twice:
        raise TableError(
            f"{source.name} has more than one column named {_listed(twice)}. "
            "Rename or remove the copies: which one is meant cannot be told."
        )


@contextlib.contextmanager
def _translated(name: str, columns: list[str] | None = None) -> Iterator[None]:
    """Say in the user's words what the readers complain about."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"There is no file {name}. Check the path.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}.") from None
    except (pa.ArrowException, EOFError, gzip.BadGzipFile) as error:
        raise TableError(_in_words(name, str(error), columns)) from None
    except OSError as error:
        # Parquet reports damaged pages this way; what has an errno is the system's own.
        if error.errno is not None:
            raise
        raise TableError(_in_words(name, str(error), columns)) from None


def _in_words(name: str, complaint: str, columns: list[str] | None) -> str:
    if "invalid UTF8" in complaint:
        return _not_utf8(name)
    value = re.search(
        r"column #(\d+):.*conversion error to double: invalid value '(.*)'", complaint
    )
    if value and columns:
        return (
            f"{name} holds {value[2]!r} in the column {columns[int(value[1])]!r}, which was "
            "numeric when the model was fitted. Correct the value, leave it empty, or fit a new "
            "model."
        )
    if "Expected" in complaint and "columns, got" in complaint:
        return f"{name} has a line of another length than its heading: {_one_line(complaint)}"
    return f"{name} is damaged or not what its extension says: {_one_line(complaint)}"


def _one_line(complaint: str) -> str:
    return " ".join(complaint.split())[:200]


def _not_utf8(name: str) -> str:
    return (
        f"{name} is not UTF-8 text. Save it as UTF-8, for example with: "
        f"iconv -f latin1 -t utf-8 {name} > utf8.csv"
    )


def _listed(names: Collection[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
