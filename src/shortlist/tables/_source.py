"""An open table, and what goes wrong while it is read."""

from __future__ import annotations

import contextlib
import gzip
import math
import re
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from .._core.extras import load_extra
from ..exceptions import TableError
from .options import INFER_ALL, ReadOptions

pa = load_extra("pyarrow", needed_for="Reading tables")

#: Texts that stand for a missing value in text and Excel files.
MISSING_TEXTS = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<null>")
_VALUE = r"[-+]?[0-9][0-9.,:/ -]*|true|false|yes|no|nan"
_ABOVE = "If there are lines above the one with the column names, remove them. "


@dataclass(frozen=True)
class OpenTable:
    """An open table: its column names and its chunks.

    `chunks(columns)` may be called once. It yields Arrow tables with the named columns. Text files
    have texts only. `notes` are sentences about the file; chunks may add some.
    """

    name: str
    columns: list[str]
    chunks: Callable[[Collection[str]], Iterator[Any]]
    reading: ReadOptions = INFER_ALL
    notes: list[str] = field(default_factory=list)
    sep: str | None = None

    def read(self, most: float = math.inf) -> Any:
        """Return the whole table, with text as text; or its first rows, at least `most`."""
        chunks, n_rows = [], 0
        for chunk in self.chunks(self.columns):
            chunks.append(chunk)
            n_rows += chunk.num_rows
            if n_rows >= most:
                break
        if not n_rows:
            raise TableError(f"{self.name} has no rows. Check how the file was made.")
        return pa.concat_tables(chunks)

    def take_notes(self) -> list[str]:
        """Return the notes, and forget them."""
        notes = list(self.notes)
        self.notes.clear()
        return notes

    def require(self, columns: Collection[str], why: str) -> None:
        """Raise an error if a column is missing; `why` says what needs it."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            raise TableError(
                f"{self.name} has no column {listed(missing)}, {why}. "
                f"Its columns are {listed(self.columns)}.{self._hint(missing[0])}"
            )

    def _hint(self, missing: str) -> str:
        """Say what may be wrong with a heading in which a column is missing."""
        twins = [name for name in self.columns if _letters(name) == _letters(missing)]
        if twins:
            return f" Is {twins[0]!r} the column {missing!r}? Then write its name in the same way."
        values = [name for name in self.columns if re.fullmatch(_VALUE, name, re.IGNORECASE)]
        if 2 * len(values) >= len(self.columns):
            return " They look like values. Is the line with the column names missing?"
        if len(self.columns) == 1 and self.sep is not None:
            return " Is another sign between the columns? Then use sep=...."
        return ""


def _letters(name: str) -> str:
    """Return what a name has besides upper case, spaces and signs."""
    return re.sub(r"[\W_]+", "", name).casefold()


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn the errors of the readers into a TableError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"There is no file {name}. Check the path.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}.") from None
    except UnicodeError:
        raise TableError(not_utf8(name)) from None
    except (pa.ArrowException, EOFError, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise TableError(_in_words(name, str(error))) from None
    except OSError as error:
        # Parquet reports damaged pages this way. An error with an errno is the system's own.
        if error.errno is not None:
            raise
        raise TableError(_in_words(name, str(error))) from None


def _in_words(name: str, reason: str) -> str:
    if "invalid UTF8" in reason:
        return not_utf8(name)
    if "straddling" in reason:
        return f'{name} has a line that is too long to be a row. Is a quote (") missing?'
    if "Expected" in reason and "columns, got" in reason:
        # Arrow counts the heading as the first row.
        reason = re.sub(r".*Row #(\d+)", lambda row: f"row {int(row[1]) - 1:,}", reason)
        return (
            f"{name} has a line with more or fewer values than its heading: {_one_line(reason)}. "
            f"{_ABOVE if 'Expected 1 columns' in reason else ''}"
            "If another sign is between the columns, use sep=...."
        )
    return f"{name} is damaged or not what its extension says: {_one_line(reason)}"


def _one_line(reason: str) -> str:
    return " ".join(reason.split())[:200].rstrip(".")


def not_utf8(name: str) -> str:
    """Say that a text file has another encoding, and what to do."""
    return (
        f"{name} is not UTF-8 text. Name its encoding, for example encoding='cp1252' for files "
        "from Windows programs, or save it as UTF-8."
    )


def listed(names: Collection[str], most: int = 12) -> str:
    """Return names in quotes, for a message."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
