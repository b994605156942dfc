"""The file formats of tables: which function reads which extension, Parquet, and folders.

The extension of a file decides its format. To add a format, add a function to `_OPENERS`; formats
for writing are in `write.py`.
"""

from __future__ import annotations

import contextlib
import math
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core.arrow import pa, pd
from .._core.extras import load_extra
from .._core.files import DatabaseTable, RemoteFile, as_path, without_user
from ..exceptions import TableError, TableNote
from ._databases import open_database
from ._records import as_arrow, open_json_lines, open_workbook
from ._source import INFER_ALL, ReadOptions, listed, translated
from ._source import OpenTable as OpenTable
from ._text_files import open_text

_CHUNK_BYTES = 1 << 22
_CHUNK_ROWS = 1 << 16
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


class Frame:
    """A data frame in place of a file."""

    name = "data frame"

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __str__(self) -> str:
        return "the data frame"


def table_at(given: Any) -> Any:
    """Return a table for :func:`open_table`: by its path or address, or in a data frame."""
    if isinstance(given, str):
        return as_path(given)
    if isinstance(given, pd.DataFrame) or hasattr(given, "__arrow_c_stream__"):
        return Frame(given)
    if not isinstance(given, (Path, DatabaseTable, RemoteFile, Frame)):
        raise TableError(
            "A table needs a file, an address, or a data frame of pandas, "
            f"polars or Arrow; got {type(given).__name__}."
        )
    return given


@contextlib.contextmanager
def open_table(path: Path, *, reading: ReadOptions | None = None) -> Iterator[OpenTable]:
    """Open a table by its extension; `-` is CSV from standard input."""
    reading = INFER_ALL if reading is None else reading
    opener = _opener(path)
    name = {"-": "Standard input", "the data frame": "The data frame"}.get(str(path), str(path))
    with contextlib.ExitStack() as stack:
        with translated(name):
            source = opener(path, OpenTable(name, reading=reading, stack=stack))
        _check_unique(source)
        try:
            yield source
        finally:  # a note may explain an error
            for note in source.notes:
                warnings.warn(note, TableNote, stacklevel=3)


def read_whole(source: OpenTable, most: float = math.inf) -> Any:
    """Return a whole table, with text as text; or its first rows, at least `most`."""
    chunks, n_rows = [], 0
    for chunk in source.chunks(source.columns, at_once=most):
        chunks.append(chunk)
        n_rows += chunk.num_rows
        if n_rows >= most:
            break
    if not n_rows:
        raise source.without_rows()
    with translated(source.name):  # parts may have other types, such as whole numbers only
        return pa.concat_tables(chunks, promote_options="permissive")


def is_table(path: Path) -> bool:
    """Return whether a path can be that of a table, by its extension."""
    try:
        return bool(_opener(path))
    except TableError:
        return False


def formats_in_words() -> str:
    """List the extensions of tables that can be read."""
    zipped = [each for each in _OPENERS if f"{each}.gz" in _OPENERS]
    plain = [each for each in _OPENERS if each not in zipped and not each.endswith(".gz")]
    return f"{', '.join(zipped)} (all of these also with .gz), {', '.join(plain)}"


def _opener(path: Path) -> Opener:
    if isinstance(path, DatabaseTable):
        return open_database
    if isinstance(path, Frame):
        return _open_frame
    if isinstance(path, RemoteFile):
        return _open_remote
    if str(path) == "-":
        return open_text
    if path.is_dir() or ("*" in path.name and not path.exists()):
        return _open_folder
    if _extension(path) not in _OPENERS:
        raise TableError(
            f"The extension of {path} is none of {formats_in_words()}. "
            "Save it as .xlsx or .csv, or use - for CSV on standard input."
        )
    return _OPENERS[_extension(path)]


def _open_parquet(path: Path, source: OpenTable) -> OpenTable:
    """Open a Parquet file, without the row numbers that pandas saves."""
    raw = source.stack.enter_context(pa.OSFile(str(path)))
    # With buffering in advance, the whole file would end up in memory.
    options = {"buffer_size": _CHUNK_BYTES, "pre_buffer": False}
    file = source.stack.enter_context(pa.parquet.ParquetFile(raw, **options))
    columns = [name for name in file.schema_arrow.names if not _UNNAMED_INDEX.fullmatch(name)]

    def chunks(wanted: Collection[str], at_once: float = 0) -> Iterator[Any]:
        with translated(source.name):
            for batch in file.iter_batches(_CHUNK_ROWS, columns=list(wanted)):
                yield pa.Table.from_batches([batch]).select(list(wanted))

    return replace(source, columns=columns, chunks=chunks)


def _open_frame(path: Frame, source: OpenTable) -> OpenTable:
    """Open a data frame, as a Parquet file that holds it; mixed values are texts, as in a file."""
    frame = path.frame
    if isinstance(frame, pd.DataFrame):
        frame = frame.reset_index(allow_duplicates=True) if any(frame.index.names) else frame
        columns = [_as_column(column) for _, column in frame.items()]
        frame = pa.table(columns, [str(name) for name in frame.columns])
    table = pa.table(frame)
    chunks = lambda wanted, **_: iter([table.select([*wanted])])  # noqa: E731
    return replace(source, columns=table.column_names, chunks=chunks)


def _as_column(column: Any) -> Any:
    if column.dtype != object:
        return pa.array(column, from_pandas=True)
    return as_arrow(column.where(column.notna(), None).tolist())


def _extension(path: Path) -> str:
    """Return the extension of a file in small letters, and both if the last one is .gz."""
    return "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else [path.suffix]).lower()


def files_of(folder: Path) -> list[Path]:
    """Return the parts of a table in the order of their names: of a folder, or by a name with *."""
    within, pattern = (folder, "**/*") if folder.is_dir() else (folder.parent, folder.name)
    files = sorted(
        path
        for path in within.glob(pattern)
        if path.is_file()
        and not any(part.startswith(("_", ".")) for part in path.relative_to(within).parts)
    )
    if not files:
        what = f"The folder {folder} is empty" if folder.is_dir() else f"No file matches {folder}"
        raise TableError(f"{what}. Name a file, or a folder with tables.")
    kinds = {_extension(path) for path in files}
    if len(kinds) != 1:
        shown = ", ".join(kind or "files without one" for kind in sorted(kinds))
        raise TableError(
            f"The files of {folder} must have one extension, such as .parquet or .csv; got "
            f"{shown}. Name one file, or a folder with the parts of one table."
        )
    return files


def _open_remote(path: RemoteFile, source: OpenTable) -> OpenTable:
    """Copy files from elsewhere, and open the copies."""
    name = source.name
    fsspec = load_extra("fsspec", needed_for=f"Reading {name}")
    folder = Path(source.stack.enter_context(tempfile.TemporaryDirectory(prefix="shortlist-")))
    try:
        system, where = fsspec.core.url_to_fs(path.url)
        found = sorted(system.glob(where)) if "*" in where else [where]
        for number, each in enumerate(found):  # two folders may have files of one name
            copy = folder / f"{number:06}-{Path(each.partition('?')[0]).name}"
            system.get_file(each, str(copy))
    except Exception as error:  # each place has errors of its own
        reason = without_user(str(error).replace(path.url, name)) or type(error).__name__
        kind = ImportError if isinstance(error, ImportError) else TableError
        raise kind(f"{name} cannot be read: {' '.join(reason.split()).rstrip('.')}.") from None
    if not found:
        raise TableError(f"No file matches {name}. Check the address.")
    opener, path_of = (_open_folder, folder) if len(found) > 1 else (_opener(copy), copy)
    return opener(path_of, source)


def _open_folder(path: Path, source: OpenTable) -> OpenTable:
    files, notes = files_of(path), source.notes
    with open_table(files[0], reading=source.reading) as first:
        columns, sep, _ = first.columns, first.sep, first.take_notes()

    def chunks(wanted: Collection[str], **at_once: float) -> Iterator[Any]:
        for file in files:
            with open_table(file, reading=source.reading) as part:
                part.require(wanted, f"which {files[0]} has")
                yield from part.chunks(wanted, **at_once)
                notes.extend(note for note in part.take_notes() if note not in notes)

    return replace(source, columns=columns, chunks=chunks, sep=sep)


def _check_unique(source: OpenTable) -> None:
    twice = [column for column, times in Counter(source.columns).items() if times > 1]
    if twice:
        raise TableError(
            f"{source.name} has more than one column named {listed(twice)}. "
            "Rename or remove the copies: it is unclear which one is meant."
        )


Opener = Callable[[Any, OpenTable], OpenTable]
_TEXT, _LINES = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson")
_OPENERS: dict[str, Opener] = {
    **dict.fromkeys((*_TEXT, *(f"{suffix}.gz" for suffix in _TEXT)), open_text),
    **dict.fromkeys((*_LINES, *(f"{suffix}.gz" for suffix in _LINES)), open_json_lines),
    **dict.fromkeys((".xlsx", ".xlsm"), open_workbook),
    **dict.fromkeys((".parquet", ".pq"), _open_parquet),
}
