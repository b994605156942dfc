"""A column of a table: what it holds, and its values in the form that a model takes.

Every value is read on its own. A row therefore gets the same numbers alone, in a chunk and in the
whole table, from text files, from typed files, from lines and from requests.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask
from .._core.arrow import pa, pd
from .._core.validation import LARGEST, name_rows
from ..exceptions import TableError
from ._source import note
from .column_format import MISSING_CATEGORY as MISSING_CATEGORY
from .column_format import (
    OTHER_SIGN,
    PLAIN,
    ColumnFormat,
    currencies,
    days_since_1970,
    is_word_for_missing,
    number_parts,
    read_text,
    sentinels,
    simple_numbers,
)

_MOST_REMEMBERED = 1 << 12
#: Ids whose repetitions are counted.
_MOST_IDS = 1 << 22
_MUST_BE = {
    "numeric": "a finite number",
    "boolean": "true or false",
    "date": "a date such as 2024-05-31",
    "categorical": "a string",
}
#: The least and the most that options allow in the columns that they name, and these in words.
BOUNDS = {
    "value": (0.0, LARGEST, "of at least 0"),
    "effort": (math.ulp(0.0), LARGEST, "greater than 0"),
    "turnout": (0.0, 1.0, "from 0 to 1"),
    "time": (-LARGEST, LARGEST, "or dates"),
}
_LIKE_THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}\s*$"


@dataclass(frozen=True)
class Place:
    """Where values come from, for messages: a file, and how many of its rows came before."""

    file: str = "the table"
    n_before: int = 0

    def row(self, number: int) -> str:
        """Return a row in words; it counts from 1 below the heading."""
        return f"row {self.n_before + number + 1:,} of {self.file}"


SOMEWHERE = Place()


@dataclass(frozen=True)
class Feature:
    """A column that a model uses: its name, its kind, and how its values are written as texts.

    The kinds are "numeric", "categorical", "date" and "boolean".
    """

    name: str
    kind: str
    format: ColumnFormat = PLAIN

    @property
    def in_words(self) -> str:
        """The kind, and how values are written if that is not plain."""
        written = self.format.in_words
        return f"{self.kind} ({written})" if written else self.kind

    @property
    def dtype(self) -> Any:
        """The type of its values: texts for categories, and numbers (days since 1970 for dates)."""
        return object if self.kind == "categorical" else np.float64

    @property
    def read(self) -> Callable[[Any], Any]:
        """The function that reads one value, as JSON has it; it raises an error for others."""
        return _reader(self)

    def values(self, column: Any, *, place: Place = SOMEWHERE) -> Any:
        """Return the values of an Arrow column."""
        column = plain(column)
        if self.kind == "date" and is_moment(column.type):
            return _days(column)
        if self.kind == "numeric" and is_number(column.type):
            values = _floats(column)
            values[np.isin(values, list(sentinels(self.format)))] = np.nan
        elif self.kind == "numeric" and is_text(column.type):
            values = self._numbers(column, place)
        else:
            return self._read_each(column, place)
        too_large = np.flatnonzero(np.abs(values) > LARGEST)
        if too_large.size:
            raise self._unreadable(column, too_large[0], place)
        return values

    def _read_each(self, column: Any, place: Place) -> Any:
        """Read different values once."""
        self._check_type(column, place)
        encoded = column.dictionary_encode()
        different = encoded.dictionary.to_pylist()
        read = self.read
        values = [read(None)] * (len(different) + 1)
        for number, value in enumerate(different):
            try:
                values[number] = read(value)
            except (TypeError, ValueError):  # the first value that cannot be read occurs first
                row = pa.compute.index(encoded.indices, number).as_py()
                raise self._unreadable(column, row, place) from None
        rows = pa.compute.fill_null(encoded.indices, len(different)).to_numpy()
        return np.array(values, self.dtype)[rows]

    def _check_type(self, column: Any, place: Place) -> None:
        """Refuse types that no value of this column has; numbers may be codes or truths."""
        kind = column.type
        may_be_codes = self.kind != "categorical" or self.format.codes
        if is_text(kind) or (may_be_codes and (is_number(kind) or pa.types.is_boolean(kind))):
            return
        filled = np.flatnonzero(column.is_valid())
        if filled.size:
            raise self._unreadable(column, filled[0], place)

    def _unreadable(self, column: Any, row: Any, place: Place) -> TableError:
        shown = f"{place.row(int(row))} holds"
        return TableError(f"The column {self.complaint(column[int(row)].as_py(), shown)}")

    def complaint(self, value: Any, where: str) -> str:
        """Say what values must be, where another one is, and how it could be read."""
        said = f"{self.name!r} must be {_MUST_BE[self.kind]}; {where} {value!r:.80}. "
        if not isinstance(value, (str, float)):
            return f"{said}Correct it, or fit a new model."
        if self.kind == "date":
            said += f"Use date_format='{self.name}=...' if dates are written differently here. "
        if self.kind == "numeric" and isinstance(value, str):
            written = self.format.in_words or "plain numbers with a decimal point"
            said += (
                f"Its values were {written}: write them in the same way, or use "
                f"decimal={OTHER_SIGN[self.format.decimal]!r} if that is the decimal sign here. "
            )
        return f"{said}If it means missing, use na={str(value).strip()!r:.80}"

    def bounded(self, column: Any, option: str, *, place: Place = SOMEWHERE) -> Doubles:
        """Return the numbers of a column that an option names, within the bounds of the option."""
        numbers: Doubles = self.values(column, place=place)
        least, most, bounds = BOUNDS[option]
        bad = np.flatnonzero(~((numbers >= least) & (numbers <= most)))
        if bad.size:
            shown = "a missing value" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
            raise TableError(
                f"The column {self.name!r}, which {option}=... names, must hold numbers {bounds}; "
                f"got {shown} in {name_rows(place.n_before + bad + 1)}. Fill it, or leave these "
                "cases out."
            )
        return numbers

    # --- numbers that are written as texts ---

    def _numbers(self, texts: Any, place: Place) -> NDArray[np.float64]:
        """Return numbers, with notes on what has another meaning than at the fit."""
        values, is_left = simple_numbers(texts, self.format)
        if is_left.any():
            left = pa.compute.if_else(pa.array(is_left), texts, None)
            values = np.where(is_left, self._read_each(left, place), values)
            different = left.unique().drop_null().to_pylist()
            self._note_words(different)
            self._note_currencies(different)
        is_part = (values != np.floor(values)) & ~np.isnan(values)
        if self.format.whole and is_part.any():
            self._note_parts(texts.filter(pa.array(is_part)), values[is_part])
        return values

    def _note_words(self, texts: list[str]) -> None:
        known = ("", *self.format.missing)
        words = [t for t in texts if is_word_for_missing(t) and t.strip().lower() not in known]
        if words:
            note(f"{self.name!r} holds {', '.join(map(repr, words[:3]))}, read as missing.")

    def _note_currencies(self, texts: list[str]) -> None:
        before = self.format.currency or self.format.unit
        parts = (number_parts(text, self.format) for text in texts)
        known = before.split(" and ")
        others = [sign for sign in currencies(filter(None, parts)) if sign not in known]
        if others:
            note(
                f"{self.name!r} {f'was in {before}' if before else 'had no currency'} when the "
                f"model was fitted, and now holds {', '.join(others)}. The numbers "
                "are taken as they are. Convert them, or fit a new model."
            )

    def _note_parts(self, texts: Any, values: NDArray[np.float64]) -> None:
        """Say that a point may separate thousands, if there were whole numbers only."""
        if pa.compute.all(pa.compute.match_substring_regex(texts, _LIKE_THOUSANDS)).as_py():
            note(
                f"{self.name!r} had whole numbers when the model was fitted, and now has values "
                f"such as {texts[0].as_py()!r}, read as {values[0]:.15g}. If the sign separates "
                f"thousands, use decimal={OTHER_SIGN[self.format.decimal]!r}"
            )


def is_missing(values: NDArray[Any], kind: str) -> Mask:
    """Return which values of a column are missing."""
    return np.asarray(values == MISSING_CATEGORY if kind == "categorical" else np.isnan(values))


# --- single values ---


@functools.lru_cache(_MOST_REMEMBERED)
def _reader(feature: Feature) -> Callable[[Any], Any]:
    """Return the reader of single values, which remembers the latest words."""
    kind, format = feature.kind, feature.format
    parse = functools.partial(read_text, kind=kind, format=format)
    if kind == "numeric":
        return _number_reader(parse, sentinels(format))
    remembered = functools.lru_cache(_MOST_REMEMBERED)(parse)
    missing = MISSING_CATEGORY if kind == "categorical" else math.nan
    takes_others = kind != "date" or format.date_format is not None

    def read(value: Any) -> Any:
        if isinstance(value, str):
            return remembered(value)
        if value is None or value != value:
            return missing
        if takes_others and isinstance(value, (bool, int, float)):
            return remembered(str(value).lower() if isinstance(value, bool) else number_text(value))
        raise TypeError

    return read


def _number_reader(
    read_text: Callable[[str], float], missing: frozenset[float]
) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if value is None:
            return math.nan
        if isinstance(value, str):
            number = read_text(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(value)
        else:
            raise TypeError
        if abs(number) > LARGEST:
            raise ValueError
        return math.nan if number in missing else number

    return read


def number_text(number: float) -> str:
    """Return a number as a text file has it: 1 and 1.0 are the same text."""
    return str(int(number) if isinstance(number, float) and number.is_integer() else number)


# --- values with a type of their own ---


def _days(column: Any) -> NDArray[np.float64]:
    zone = getattr(column.type, "tz", None)
    moments = pa.compute.cast(column, pa.timestamp("us", zone), safe=False)
    return days_since_1970(moments.to_numpy(zero_copy_only=False))


def _floats(column: Any) -> NDArray[np.float64]:
    if pa.types.is_decimal(column.type):  # Arrow would divide by a power of ten, which rounds
        column = pa.compute.cast(column, pa.string())
    cast = pa.compute.cast(column, pa.float64(), safe=False)
    return np.array(cast.to_numpy(zero_copy_only=False), dtype=np.float64)


# --- types of Arrow ---


def plain(column: Any) -> Any:
    """Return a column in one piece, with texts of one type."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    other_texts = (pa.types.is_large_string, pa.types.is_string_view)
    is_other = any(is_one(column.type) for is_one in other_texts)
    return pa.compute.cast(column, pa.string()) if is_other else column


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type holds numbers."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_moment(kind: Any) -> bool:
    """Return whether an Arrow type holds dates or moments."""
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def is_text(kind: Any) -> bool:
    """Return whether the Arrow type of a plain column holds texts."""
    return bool(pa.types.is_string(kind))


# --- values in words ---


def is_of_nines(value: float) -> bool:
    """Return whether a number often stands for a missing one: -1, 99, -999 and so on.

    >>> is_of_nines(-1.0), is_of_nines(9999.0), is_of_nines(98.0)
    (True, True, False)
    """
    return value == -1 or re.fullmatch(r"-?99+(\.0)?", repr(value)) is not None


def shown_value(value: Any, kind: str) -> str:
    """Return a number or a date as `na` takes it, or a category in quotes.

    >>> shown_value(-999.0, "numeric"), shown_value(19724.0, "date")
    ('-999', '2024-01-02')
    """
    if kind == "categorical":
        return f"{value!r:.80}"
    return date_text(value) if kind == "date" else f"{value:.15g}"


def date_text(days: float) -> str:
    """Return a number of days since 1970 as a date, with the time if there is one.

    Examples
    --------
    >>> date_text(19724.0)
    '2024-01-02'
    """
    moment = np.datetime64(round(days * 86_400), "s")
    return str(moment.astype("datetime64[D]") if days == int(days) else moment)


# --- ids ------------------------------------------------------------------------------------------


class RepeatedIds:
    """Counts rows that repeat the id of another row."""

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.uint64]] = []
        self._n_seen = 0

    def add(self, ids: NDArray[Any]) -> None:
        """Look at some ids."""
        if self._n_seen < _MOST_IDS:
            names = np.asarray(ids, dtype=object)
            self._hashes.append(pd.util.hash_array(names, categorize=False))
        self._n_seen += len(ids)

    def notes(self, id: str | None, consequence: str) -> list[str]:
        """Say how many rows there are, and what comes of it."""
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes])
        n_rows = hashes.size - np.unique(hashes).size
        about = "" if hashes.size == self._n_seen else "At least "
        said = f"{about}{n_rows:,} rows repeat an id ({id!r}) of another row, {consequence}"
        return [said] if n_rows else []
