"""How a file is to be read: what the user says about it, in one object."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..exceptions import TableError

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
