"""The file formats of tables: reading them whole or in chunks, and writing them.

The extension of a file decides its format. To add a format, add a function to `_OPENERS` (reading)
or to `_WRITERS` (writing).
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._core.arrays import Rows
from .._core.extras import load_extra
from ..exceptions import TableError
from ._reading import NOTHING_SAID, Reading

__all__ = ["MISSING_TEXTS", "Source", "open_source", "open_writer", "output_format"]

pa = load_extra("pyarrow", needed_for="Reading tables")
for _module in ("csv", "ipc", "parquet"):
    load_extra(f"pyarrow.{_module}", needed_for="Reading tables")

#: Texts that stand for a missing value in a CSV file.
MISSING_TEXTS = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<null>")
_CHUNK_BYTES = 1 << 22
_CHUNK_ROWS = 1 << 16
_LONGEST_HEADING = 1 << 22
_LONGEST_LINE = 1 << 26
_QUOTE = ord('"')
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")

Write = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Source:
    """An open table: its column names and its chunks.

    `chunks(columns, numeric)` may be called once. It yields Arrow tables with the named columns.
    In text formats, the columns in `numeric` are read as numbers and the others as text.
    """

    name: str
    columns: list[str]
    chunks: Callable[[Collection[str], Collection[str]], Iterator[Any]]
    reading: Reading = NOTHING_SAID

    def read(self) -> Any:
        """Return the whole table, with text as text."""
        chunks = list(self.chunks(self.columns, ()))
        if not chunks or sum(chunk.num_rows for chunk in chunks) == 0:
            raise TableError(f"{self.name} has no rows. Check how the file was made.")
        return pa.concat_tables(chunks)

    def require(self, columns: Collection[str], why: str) -> None:
        """Raise an error if a column is missing; `why` says what needs it."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            raise TableError(
                f"{self.name} has no column {_listed(missing)}, {why}. "
                f"Its columns are {_listed(self.columns)}."
            )


@contextlib.contextmanager
def open_source(path: Path, *, reading: Reading | None = None) -> Iterator[Source]:
    """Open CSV, TSV (also gzipped), Parquet or Feather by extension; `-` is CSV from stdin."""
    reading = NOTHING_SAID if reading is None else reading
    opener = _opener(path)
    name = "Standard input" if str(path) == "-" else str(path)
    with contextlib.ExitStack() as stack:
        with _translated(name):
            source = opener(path, name, stack, reading)
        _check_unique(source)
        yield source


def _opener(path: Path) -> Opener:
    if str(path) == "-":
        return _open_text
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes = suffixes[:-1] if suffixes[-2:-1] in ([".csv"], [".tsv"], [".txt"]) else []
    opener = _OPENERS.get(suffixes[-1] if suffixes else "")
    if opener is None:
        raise TableError(
            f"The format of {path} cannot be inferred from its extension. Use .csv, .tsv, "
            ".csv.gz, .parquet, .feather or .arrow, or - for CSV on standard input."
        )
    return opener


def _open_text(path: Path, name: str, stack: contextlib.ExitStack, reading: Reading) -> Source:
    file = _binary(path, stack)
    columns, delimiter = _header(file, name, reading)

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        types = {c: pa.float64() if c in numeric else pa.string() for c in wanted}
        convert = pa.csv.ConvertOptions(
            include_columns=list(wanted),
            column_types=types,
            null_values=list(MISSING_TEXTS),
            strings_can_be_null=True,
        )
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        with _translated(name, columns):
            for block in whole_lines(file, _CHUNK_BYTES, delimiter=delimiter, name=name):
                # In one piece, because a value that spans lines must not be cut.
                read = pa.csv.ReadOptions(column_names=columns, block_size=len(block) + 1)
                yield pa.csv.read_csv(_arrow_memory(block), read, parse, convert)

    return Source(name, columns, chunks, reading)


def _arrow_memory(block: bytes) -> Any:
    """Copy bytes into memory that Arrow's threads can read without Python."""
    stream = pa.BufferOutputStream()
    stream.write(block)
    return pa.BufferReader(stream.getvalue())


def _binary(path: Path, stack: contextlib.ExitStack) -> BinaryIO:
    if str(path) == "-":
        return sys.stdin.buffer
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return stack.enter_context(opener(path, "rb"))


def _header(file: BinaryIO, name: str, reading: Reading) -> tuple[list[str], str]:
    """Read the heading and nothing after it; return the column names and the delimiter."""
    first = _first_line(file, name)
    if not first:
        raise TableError(f"{name} is empty. Its first line must hold the column names.")
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(_not_utf8(name)) from None
    delimiter = reading.sep or max(",;\t|", key=text.count)
    columns = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    if not any(columns):
        raise TableError(f"The first line of {name} must hold the column names; it is blank.")
    return [column.strip() for column in columns], delimiter


def _first_line(file: BinaryIO, name: str) -> bytes:
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


def whole_lines(file: BinaryIO, size: int, *, delimiter: str, name: str) -> Iterator[bytes]:
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


def _open_parquet(path: Path, name: str, stack: contextlib.ExitStack, reading: Reading) -> Source:
    raw = stack.enter_context(pa.OSFile(str(path)))
    # With buffering in advance, the whole file would end up in memory.
    options = {"buffer_size": _CHUNK_BYTES, "pre_buffer": False}
    file = stack.enter_context(pa.parquet.ParquetFile(raw, **options))

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        with _translated(name):
            for batch in file.iter_batches(_CHUNK_ROWS, columns=list(wanted)):
                yield pa.Table.from_batches([batch]).select(list(wanted))

    return _typed_source(name, file.schema_arrow, chunks, reading)


def _open_feather(path: Path, name: str, stack: contextlib.ExitStack, reading: Reading) -> Source:
    file = pa.ipc.open_file(stack.enter_context(pa.OSFile(str(path))))

    def chunks(wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        with _translated(name):
            for number in range(file.num_record_batches):
                yield pa.Table.from_batches([file.get_batch(number)]).select(list(wanted))

    return _typed_source(name, file.schema, chunks, reading)


def _typed_source(
    name: str, schema: Any, chunks: Callable[..., Iterator[Any]], reading: Reading
) -> Source:
    """Leave out the unnamed index that pandas saves: row numbers must not be learned from."""
    columns = [column for column in schema.names if not _UNNAMED_INDEX.fullmatch(column)]
    return Source(name, columns, chunks, reading)


Opener = Callable[[Path, str, contextlib.ExitStack, Reading], Source]
_OPENERS: dict[str, Opener] = {
    ".csv": _open_text,
    ".tsv": _open_text,
    ".txt": _open_text,
    ".parquet": _open_parquet,
    ".pq": _open_parquet,
    ".feather": _open_feather,
    ".arrow": _open_feather,
}


# --- writing ---


def output_format(path: Path) -> str:
    """Return the format of an output file, by its extension."""
    suffix = path.suffix.lower().removeprefix(".")
    known = {"pq": "parquet", "arrow": "feather", "ndjson": "jsonl"}.get(suffix, suffix)
    if known not in _WRITERS:
        raise TableError(
            f"Tables cannot be written with the extension of {path}. "
            "Use .csv, .parquet, .feather or .jsonl."
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
    "parquet": _parquet,
    "feather": _feather,
    "jsonl": _jsonl,
}


# --- errors ---


def _check_unique(source: Source) -> None:
    twice = [column for column, times in Counter(source.columns).items() if times > 1]
    if twice:
        raise TableError(
            f"{source.name} has more than one column named {_listed(twice)}. "
            "Rename or remove the copies: it is unclear which one is meant."
        )


@contextlib.contextmanager
def _translated(name: str, columns: list[str] | None = None) -> Iterator[None]:
    """Turn the errors of the readers into a TableError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"There is no file {name}. Check the path.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}.") from None
    except (pa.ArrowException, EOFError, gzip.BadGzipFile) as error:
        raise TableError(_in_words(name, str(error), columns)) from None
    except OSError as error:
        # Parquet reports damaged pages this way. An error with an errno is the system's own.
        if error.errno is not None:
            raise
        raise TableError(_in_words(name, str(error), columns)) from None


def _in_words(name: str, reason: str, columns: list[str] | None) -> str:
    if "invalid UTF8" in reason:
        return _not_utf8(name)
    value = re.search(r"column #(\d+):.*conversion error to double: invalid value '(.*)'", reason)
    if value and columns:
        return (
            f"{name} holds {value[2]!r} in the column {columns[int(value[1])]!r}, which was "
            "numeric when the model was fitted. Correct the value, leave it empty, or fit a new "
            "model."
        )
    if "Expected" in reason and "columns, got" in reason:
        return f"{name} has a line with more or fewer values than its heading: {_one_line(reason)}"
    return f"{name} is damaged or not what its extension says: {_one_line(reason)}"


def _one_line(reason: str) -> str:
    return " ".join(reason.split())[:200]


def _not_utf8(name: str) -> str:
    return (
        f"{name} is not UTF-8 text. Save it as UTF-8, for example with: "
        f"iconv -f latin1 -t utf-8 {name} > utf8.csv"
    )


def _listed(names: Collection[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
