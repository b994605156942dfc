"""An open table: what the user says about it, its chunks, and rows that are not cases."""

from __future__ import annotations

import contextlib
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._core.arrow import pa
from ..exceptions import TableError, TableNote

_SIGNS = (".", ",")
#: Letters of dates as spreadsheets know them, and those of `strptime`.
_LETTERS = (("YYYY", "%Y"), ("MM", "%m"), ("DD", "%d"), ("YY", "%y"))
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
#: What later files of a model have in common with the first.
_KEPT: tuple[Any, ...] = ("sep", "encoding", "sheet", "keep_total")
_TUPLES = ("na", "drop", "columns", "categorical", "numeric", "date_format")


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a file; everything else is inferred from the file.

    Attributes
    ----------
    sep : str or None
        The sign between the columns of a text file: one character, or "tab".
    decimal : {".", ","} or None
        The decimal sign of numbers that are written as text. The other one separates thousands.
    encoding : str or None
        The encoding of a text file, such as "cp1252".
    na : tuple of str
        Words (or numbers, such as "-999") that stand for a missing value, besides the usual ones.
    sheet : str or None
        The sheet of an Excel file.
    drop : tuple of str
        Columns to leave out.
    columns : tuple of str
        The columns to learn from; empty for all.
    categorical, numeric : tuple of str
        Columns to treat as categories or as numbers, whatever they look like.
    date_format : tuple of str
        How dates are written: "DD/MM/YYYY" or "%d/%m/%Y" for all columns, "column=DD/MM/YYYY" for
        one.
    keep_total : bool
        Whether to keep a last row that looks like a total.

    Examples
    --------
    >>> from shortlist.tables import ReadOptions
    >>> ReadOptions(decimal=",", drop=("cancelled_on",)).decimal
    ','
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None
    drop: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    date_format: tuple[str, ...] = ()
    keep_total: bool = False

    def __post_init__(self) -> None:
        if self.sep is not None:
            object.__setattr__(self, "sep", _NAMED_SEPARATORS.get(self.sep.lower(), self.sep))
            _check_separator(self.sep)
        if self.decimal is not None and self.decimal not in _SIGNS:
            raise TableError(f"decimal must be . or a comma; got {self.decimal!r}.")
        if self.sep == self.decimal == ",":
            raise TableError("sep=... and decimal=... are both a comma. They must differ.")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        for name in _TUPLES:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self.date_formats()  # raises an error for other texts

    def after(self, earlier: ReadOptions) -> ReadOptions:
        """Merge with earlier options; these take precedence.

        Parameters
        ----------
        earlier : ReadOptions
            What was said when the model was fitted.

        Returns
        -------
        ReadOptions
            What was said about numbers and dates is not repeated: the schema of the model has it
            for every column.
        """
        kept = {name: getattr(self, name) or getattr(earlier, name) for name in _KEPT}
        return replace(self, **kept, na=tuple(dict.fromkeys((*earlier.na, *self.na))))

    def date_formats(self) -> list[tuple[str | None, str]]:
        """Return pairs of a column (None for all others) and a format of `strptime`."""
        return [_date_format(given) for given in self.date_format]


#: Everything is inferred from the file.
INFER_ALL = ReadOptions()


def as_strptime(text: str) -> str:
    """Return a format of dates such as DD/MM/YYYY as `strptime` writes it."""
    if "%" in text:
        return text
    for letters, code in _LETTERS:
        text = text.replace(letters, code).replace(letters.lower(), code)
    return text


def _date_format(given: str) -> tuple[str | None, str]:
    column, sign, rest = given.rpartition("=")
    text = as_strptime(rest)
    if not {"d", "Y", "y", "j", "H", "b", "B", "m", "s"} & set(re.findall("%(.)", text)):
        raise TableError(
            f"date_format={given!r} is not a date format. Use for example DD/MM/YYYY, "
            "%d.%m.%Y, or COLUMN=MM/DD/YYYY for one column."
        )
    return (column if sign else None), text


def _check_separator(sep: str | None) -> None:
    if sep is None or len(sep) != 1 or not sep.isascii() or sep.isalnum() or sep in '"\r\n':
        raise TableError(
            f"sep must be one sign such as , ; | or tab; got {sep!r}. In a shell, quote it: sep='|'"
        )


def _check_encoding(encoding: str) -> None:
    try:
        "a".encode(encoding)  # raises an error for codecs that are not about text, too
    except LookupError:
        raise TableError(
            f"encoding={encoding!r} is unknown. Use for example utf-8, cp1252 or utf-16."
        ) from None


# --- a table ---

_VALUE = r"[-+]?[0-9][0-9.,:/ -]*|true|false|yes|no|nan"
_ABOVE = "If there are lines above the one with the column names, remove them. "


@dataclass(frozen=True)
class OpenTable:
    """An open table: its column names and its chunks.

    `chunks(columns)` may be called once. It yields Arrow tables with the named columns. Text files
    have texts only. Rows without types of their own (JSON lines, databases) get those of their
    chunk, which has at least `at_once` rows if that is given. `notes` are sentences about the file;
    chunks may add some.
    """

    name: str
    columns: list[str] = field(default_factory=list)
    chunks: Callable[..., Iterator[Any]] = lambda wanted, **_: iter(())
    reading: ReadOptions = INFER_ALL
    notes: list[str] = field(default_factory=list)
    sep: str | None = None
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    def without_rows(self) -> TableError:
        """Return the error of a table that has a heading only: the same in every command."""
        return TableError(
            f"{self.name} has no rows below its heading. If there were no cases, there is nothing "
            "to do; otherwise check how the file was made."
        )

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

    def named(self, **given: Collection[str]) -> list[list[str]]:
        """Return the columns that each option names, singly or with commas; none in two of them."""
        found: dict[str, list[str]] = {}
        for option, names in given.items():
            parts = ([each] if each in self.columns else each.split(",") for each in names)
            columns = [part.strip() for each in parts for part in each if part.strip()]
            self.require(columns, f"which {option}=... names")
            for other, taken in found.items():
                both = [column for column in columns if column in taken]
                if both:
                    raise TableError(
                        f"{option}=... and {other}=... both name {both[0]!r}. Name different "
                        "columns."
                    )
            found[option] = list(dict.fromkeys(columns))
        return list(found.values())

    def check_dates(self) -> None:
        """Raise an error if a date format is for a column that is not there."""
        columns = (column for column, _ in self.reading.date_formats() if column is not None)
        self.require(list(columns), "which date_format=... names")

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


def note(message: str) -> None:
    """Say something about a table to whoever reads it."""
    warnings.warn(message, TableNote, stacklevel=3)


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
    except (pa.ArrowException, EOFError, zipfile.BadZipFile, OSError) as error:
        # Damaged files have no errno. An error with one is the system's own.
        if getattr(error, "errno", None) is not None:
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


# --- totals, remarks and empty rows at the end ---

_TOTAL_WORDS = (
    r"(?:(?:grand|sub|overall|sous|eind)[ -]?)?(?:totals?|sums?|summe|gesamt|gesamtsumme|endsumme"
    r"|gesamtergebnis|teilergebnis|ergebnis|insgesamt|zwischensumme|somme|totale|totaux|suma|totaal"
    r"|result|count|anzahl|average|mean|mittelwert|durchschnitt|moyenne|"
    "\u03a3|\u2211"
    r")(?: (?:général|générale|general|complessivo|totale))?[ :=0-9.,()]*"
)
#: The first cell of a total, and of a subtotal such as "North total".
_TOTAL = rf"(?i)^\s*{_TOTAL_WORDS}\s*$"
_SUBTOTAL = rf"(?i)^\s*(?:\S+ ){{0,3}}{_TOTAL_WORDS}\s*$"
_NUMBER = re.compile(r"[^A-Za-z]*[0-9][^A-Za-z]*")
_MOST_TRIED = 1_000


def cases_of(table: Any, source: OpenTable) -> tuple[int, int]:
    """Return how many rows of a table of texts are cases, and how many empty ones follow.

    Totals at the end are no cases. They are noted, as is a last row that is nearly empty.
    """
    is_empty = pa.compute.is_null(pa.compute.coalesce(*table.columns)).to_numpy()
    keep_total = source.reading.keep_total
    totals = {} if keep_total else _totals(table, _TOTAL)
    n_cases, n_empty = table.num_rows, 0
    while n_cases and table.num_columns > 1:
        if is_empty[n_cases - 1]:
            n_empty += 1
        elif n_cases - 1 in totals:
            source.notes.append(
                f"The last row of {source.name} looks like a total ({totals[n_cases - 1]}) and is "
                "left out. If it is a case, use keep_total=True"
            )
        else:
            break
        n_cases -= 1
    last, before = ([], []) if n_cases < 2 else reversed(_cells(table.slice(n_cases - 2, 2)))
    if not keep_total and _looks_left_over(last, before):
        source.notes.append(
            f"The last row of {source.name} is nearly empty ({_in_short(last)}), but counts as a "
            "case. If it is a total or a remark, remove it."
        )
    return n_cases, n_empty


def note_subtotal(table: Any, source: OpenTable) -> bool:
    """Say that a row in the middle looks like a total; return whether there is one."""
    keep_total = source.reading.keep_total
    found = [] if keep_total else list(_totals(table, _SUBTOTAL, is_end=False).values())
    if found:
        source.notes.append(
            f"A row of {source.name} looks like a total ({found[0]}), but counts as a case. If it "
            "is not, remove it and all rows like it."
        )
    return bool(found)


def _totals(table: Any, pattern: str, *, is_end: bool = True) -> dict[int, str]:
    """Return rows that begin like a total, with their cells; most of them hold only numbers."""
    is_word = pa.compute.match_substring_regex(pa.compute.coalesce(*table.columns), pattern)
    places = np.flatnonzero(pa.compute.fill_null(is_word, False).to_numpy())[-_MOST_TRIED:]
    found = {}
    for place, cells in zip(places.tolist(), _cells(table.take(places)), strict=True):
        _, *others = filter(None, cells)
        has_gaps, numbers = len(others) + 1 < len(cells), all(map(_NUMBER.fullmatch, others))
        if has_gaps or numbers if is_end else has_gaps and numbers and others:
            found[place] = _in_short(cells)
    return found


def _looks_left_over(cells: list[str], before: list[str]) -> bool:
    """Return whether a last row looks like a total without a word, or like a remark."""
    n_filled, n_before = (sum(map(bool, row)) for row in (cells, before))
    if len(cells) < 3 or 2 * n_filled > len(cells) or 2 * n_before <= len(cells):
        return False
    return n_filled == 1 or bool(not cells[0] and before[0])


def _cells(table: Any) -> list[list[str]]:
    return [[(cell or "").strip() for cell in row.values()] for row in table.to_pylist()]


def _in_short(cells: Collection[str]) -> str:
    return ", ".join(filter(None, cells))[:80]
