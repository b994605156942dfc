"""The file formats of tables: which function reads which extension, and Parquet and Feather.

The extension of a file decides its format. To add a format, add a function to `_OPENERS`; formats
for writing are in `write.py`.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from .._core.extras import load_extra
from ..exceptions import TableError, TableNote
from ._records import open_json_lines, open_workbook
from ._source import OpenTable as OpenTable
from ._source import listed, translated
from ._text_files import open_text
from .options import INFER_ALL, ReadOptions

pa = load_extra("pyarrow", needed_for="Reading tables")
for _module in ("ipc", "parquet"):
    load_extra(f"pyarrow.{_module}", needed_for="Reading tables")

_CHUNK_BYTES = 1 << 22
_CHUNK_ROWS = 1 << 16
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
_OLD_EXCEL = (".xls", ".xlsb", ".ods", ".numbers")


@contextlib.contextmanager
def open_table(path: Path, *, reading: ReadOptions | None = None) -> Iterator[OpenTable]:
    """Open a table by its extension; `-` is CSV from standard input."""
    reading = INFER_ALL if reading is None else reading
    opener = _opener(path)
    name = "Standard input" if str(path) == "-" else str(path)
    with contextlib.ExitStack() as stack:
        with translated(name):
            source = opener(path, name, stack, reading)
        _check_unique(source)
        try:
            yield source
        finally:  # a note may explain an error
            for note in source.notes:
                warnings.warn(note, TableNote, stacklevel=3)


def is_table(path: Path) -> bool:
    """Return whether a path can be that of a table, by its extension."""
    try:
        return bool(_opener(path))
    except TableError:
        return False


def _opener(path: Path) -> Opener:
    if str(path) == "-":
        return open_text
    if path.is_dir():
        return _open_folder
    if _extension(path) in _OLD_EXCEL:
        raise TableError(f"{path} has a format that is not read. Save it as .xlsx or .csv.")
    opener = _OPENERS.get(_extension(path))
    if opener is None:
        raise TableError(
            f"The format of {path} cannot be inferred from its extension. Use .csv, .tsv, "
            ".csv.gz, .xlsx, .jsonl, .parquet, .feather or .arrow, or - for CSV on standard input."
        )
    return opener


def _open_typed(
    path: Path, name: str, stack: contextlib.ExitStack, reading: ReadOptions
) -> OpenTable:
    """Open a Parquet or Feather file, without the row numbers that pandas saves."""
    raw = stack.enter_context(pa.OSFile(str(path)))
    if _extension(path) in _FEATHER:
        feather = pa.ipc.open_file(raw)
        schema = feather.schema
    else:
        # With buffering in advance, the whole file would end up in memory.
        options = {"buffer_size": _CHUNK_BYTES, "pre_buffer": False}
        parquet = stack.enter_context(pa.parquet.ParquetFile(raw, **options))
        schema = parquet.schema_arrow

    def batches(wanted: list[str]) -> Iterator[Any]:
        if _extension(path) in _FEATHER:
            return map(feather.get_batch, range(feather.num_record_batches))
        return iter(parquet.iter_batches(_CHUNK_ROWS, columns=wanted))

    def chunks(wanted: Collection[str]) -> Iterator[Any]:
        with translated(name):
            for batch in batches(list(wanted)):
                yield pa.Table.from_batches([batch]).select(list(wanted))

    columns = [column for column in schema.names if not _UNNAMED_INDEX.fullmatch(column)]
    return OpenTable(name, columns, chunks, reading)


def _extension(path: Path) -> str:
    """Return the extension of a file in small letters, and both if the last one is .gz."""
    return "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else [path.suffix]).lower()


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder with the parts of one table, in the order of their names."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    )
    kinds = {_extension(path) for path in files}
    if len(kinds) != 1:
        shown = ", ".join(kind or "files without one" for kind in sorted(kinds)) or "no files"
        raise TableError(
            f"The files of the folder {folder} must have one extension, such as .parquet or .csv; "
            f"it has {shown}. Name one file, or a folder with the parts of one table."
        )
    return files


def _open_folder(
    path: Path, name: str, stack: contextlib.ExitStack, reading: ReadOptions
) -> OpenTable:
    files = files_of(path)
    notes: list[str] = []
    with open_table(files[0], reading=reading) as first:
        columns, sep, _ = first.columns, first.sep, first.take_notes()

    def chunks(wanted: Collection[str]) -> Iterator[Any]:
        for file in files:
            with open_table(file, reading=reading) as source:
                source.require(wanted, f"which {files[0]} has")
                yield from source.chunks(wanted)
                notes.extend(note for note in source.take_notes() if note not in notes)

    return OpenTable(name, columns, chunks, reading, notes, sep)


def _check_unique(source: OpenTable) -> None:
    twice = [column for column, times in Counter(source.columns).items() if times > 1]
    if twice:
        raise TableError(
            f"{source.name} has more than one column named {listed(twice)}. "
            "Rename or remove the copies: it is unclear which one is meant."
        )


Opener = Callable[[Path, str, contextlib.ExitStack, ReadOptions], OpenTable]
_TEXT, _LINES = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson")
_PARQUET, _FEATHER = (".parquet", ".pq"), (".feather", ".arrow")
_OPENERS: dict[str, Opener] = {
    **dict.fromkeys((*_TEXT, *(f"{suffix}.gz" for suffix in _TEXT)), open_text),
    **dict.fromkeys((*_LINES, *(f"{suffix}.gz" for suffix in _LINES)), open_json_lines),
    **dict.fromkeys((".xlsx", ".xlsm"), open_workbook),
    **dict.fromkeys((*_PARQUET, *_FEATHER), _open_typed),
}
