"""One column at a time: its values in the form that a model takes.

Every value is read on its own. A row therefore gets the same numbers alone, in a chunk and in the
whole table, from text files and from typed files.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.validation import LARGEST
from ..exceptions import TableError, TableNote
from ._dates import days_since_1970, read_date
from .column_format import MISSING_CATEGORY as MISSING_CATEGORY
from .column_format import (
    OTHER_SIGN,
    PLAIN,
    ColumnFormat,
    currencies,
    find_number,
    is_word_for_missing,
    number_parts,
    read_category,
    read_number,
    read_truth,
    sentinels,
    simple_numbers,
)

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")

_WAS = {
    "numeric": "numeric",
    "boolean": "true or false",
    "date": "a date",
    "categorical": "text",
}
_LIKE_THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}\s*$"
_SCIENTIFIC = r"^[0-9](\.[0-9]+)?[eE]\+[0-9]+$"


@dataclass(frozen=True)
class Place:
    """Where values come from, for messages: a file, and how many of its rows came before."""

    file: str = "the table"
    n_before: int = 0

    def row(self, number: int) -> str:
        """Return a row in words; it counts from 1 below the heading."""
        return f"row {self.n_before + number + 1:,} of {self.file}"


SOMEWHERE = Place()


@functools.cache
def text_reader(kind: str, format: ColumnFormat) -> Callable[[str], Any]:
    """Return the function that reads one text of a column; it raises ValueError for others."""
    reads = {"numeric": read_number, "boolean": read_truth, "categorical": read_category}
    return functools.partial(reads.get(kind, _read_date), format=format)


def _read_date(text: str, format: ColumnFormat) -> float:
    if (
        format.missing and text.strip().lower() in format.missing
    ):  # a date may stand for a missing one
        return np.nan
    try:
        return read_date(text, format.date_format)
    except ValueError:
        if is_word_for_missing(text):
            return np.nan
        raise


def missing_value(kind: str) -> Any:
    """Return what stands for a missing value in columns of a kind."""
    return MISSING_CATEGORY if kind == "categorical" else np.nan


def takes_numbers(kind: str, format: ColumnFormat) -> bool:
    """Return whether numbers with a type of their own are read as if they were texts."""
    said = {"boolean": True, "date": format.date_format is not None, "categorical": format.codes}
    return said.get(kind, False)


def number_text(number: float) -> str:
    """Return a number as a text file has it: 1 and 1.0 are the same text."""
    return str(int(number) if isinstance(number, float) and number.is_integer() else number)


def as_values(
    column: Any, kind: str, name: str, format: ColumnFormat = PLAIN, *, place: Place = SOMEWHERE
) -> Any:
    """Return a column as 64-bit floats (days since 1970 for dates), or as texts for categories."""
    column = combined(column)
    values = _typed_values(column, kind, format)
    if values is None and is_number(column.type) and takes_numbers(kind, format):
        numbers = [None if v is None or v != v else number_text(v) for v in column.to_pylist()]
        column = pa.array(numbers, pa.string())
    if values is None and is_text(column.type):
        values = _Texts(column, kind, name, format).values(place)
    if values is None:
        raise _changed(column, name, kind)
    if kind == "numeric":
        _check_size(values, column, name, place)
    return values


def _typed_values(column: Any, kind: str, format: ColumnFormat) -> Any:
    """Return values with a type that suits the kind; None for other types."""
    if pa.types.is_null(column.type):
        return np.full(len(column), missing_value(kind), object if kind == "categorical" else float)
    if kind == "numeric" and is_number(column.type):
        values = _floats(column)
        values[np.isin(values, list(sentinels(format)))] = np.nan
        return values
    if kind == "boolean" and pa.types.is_boolean(column.type):
        return _floats(pa.compute.cast(column, pa.uint8()))
    if kind == "date" and is_moment(column.type):
        zone = getattr(column.type, "tz", None)
        moments = pa.compute.cast(column, pa.timestamp("us", zone), safe=False)
        return days_since_1970(moments.to_numpy(zero_copy_only=False))
    return None


def _floats(column: Any) -> NDArray[np.float64]:
    if pa.types.is_decimal(column.type):  # Arrow would divide by a power of ten, which rounds
        column = pa.compute.cast(column, pa.string())
    cast = pa.compute.cast(column, pa.float64(), safe=False)
    return np.array(cast.to_numpy(zero_copy_only=False), dtype=np.float64)


def _check_size(values: NDArray[np.float64], column: Any, name: str, place: Place) -> None:
    """Refuse numbers that no learner can take."""
    too_large = np.abs(values) > LARGEST
    if not too_large.any():
        return
    row = int(np.argmax(too_large))
    is_infinite = bool(np.isinf(values[row]))
    what = "infinite values" if is_infinite else f"values beyond {LARGEST:g}"
    given = column[row].as_py()
    text = given.strip() if isinstance(given, str) else "" if is_infinite else repr(float(given))
    as_missing = f"read them as missing with na={text!r}, " if 0 < len(text) <= 40 else ""
    raise TableError(
        f"The column {name!r} holds {int(too_large.sum())} {what}, the first in {place.row(row)}. "
        f"Leave unknown values empty, {as_missing}or "
        f"replace {'infinity' if is_infinite else 'them'} by a number."
    )


class _Texts:
    """A column of texts: different texts are read once."""

    def __init__(self, column: Any, kind: str, name: str, format: ColumnFormat) -> None:
        self._texts, self._kind = pa.compute.cast(column, pa.string()), kind
        self._name, self._format = name, format

    def values(self, place: Place) -> Any:
        """Return the values, with notes on what has another meaning than at the fit."""
        if self._kind != "numeric":
            return self._read_each(self._texts, place)
        values, is_left = simple_numbers(self._texts, self._format)
        if is_left.any():
            left = pa.compute.if_else(pa.array(is_left), self._texts, None)
            values = np.where(is_left, self._read_each(left, place), values)
            self._tell_of_words(left, np.isnan(values))
        self._tell_of_parts(values)
        return values

    def _read_each(self, texts: Any, place: Place) -> Any:
        encoded = texts.dictionary_encode()
        different = encoded.dictionary.to_pylist()
        missing = missing_value(self._kind)
        read, values = text_reader(self._kind, self._format), [missing] * (len(different) + 1)
        for number, text in enumerate(different):
            try:
                values[number] = read(text)
            except ValueError:  # the first text that cannot be read occurs first
                row = int(pa.compute.index(encoded.indices, number).as_py())
                raise self._unreadable(text, place.row(row)) from None
        rows = pa.compute.fill_null(encoded.indices, len(different)).to_numpy()
        return np.array(values, object if self._kind == "categorical" else np.float64)[rows]

    def _tell_of_words(self, left: Any, is_missing: Mask) -> None:
        """Say which words are read as missing, and which currencies are new."""
        format, name = self._format, self._name
        words = left.filter(pa.array(is_missing)).drop_null().unique().to_pylist()
        new = [w for w in words if w.strip() and w.strip().lower() not in format.missing]
        if new:
            _note(f"{name!r} holds {', '.join(map(repr, new[:3]))}, read as missing.")
        before = format.currency or format.unit
        if not before:
            return
        texts = (text for text in left.unique().drop_null().to_pylist() if before not in text)
        parts = (number_parts(text, format) for text in texts)
        others = [sign for sign in currencies(filter(None, parts)) if sign != before]
        if others:
            _note(
                f"{name!r} was in {before} when the model was fitted, and now holds "
                f"{', '.join(others)}. The numbers are taken as they are. Convert them, or fit a "
                "new model."
            )

    def _tell_of_parts(self, values: NDArray[np.float64]) -> None:
        """Say that a point may separate thousands, if there were whole numbers only."""
        is_part = (values != np.floor(values)) & ~np.isnan(values)
        if not self._format.whole or not is_part.any():
            return
        parts = self._texts.filter(pa.array(is_part))
        if pa.compute.all(pa.compute.match_substring_regex(parts, _LIKE_THOUSANDS)).as_py():
            _note(
                f"{self._name!r} had whole numbers when the model was fitted, and now has such as "
                f"{parts[0].as_py()!r}, read as {values[is_part][0]:.15g}. If the sign separates "
                f"thousands, use decimal={OTHER_SIGN[self._format.decimal]!r}"
            )

    def _unreadable(self, text: str, row: str) -> TableError:
        remedy = remedy_for(text, self._name, self._kind, self._format)
        return TableError(
            f"The column {self._name!r} was {_WAS[self._kind]} when the model was fitted; now "
            f"{row} holds {text!r:.80}, for example. {remedy}If it means missing, use "
            f"na={text!r:.80}; otherwise correct it, or fit a new model."
        )


def remedy_for(text: str, name: str, kind: str, format: ColumnFormat) -> str:
    """Say which option or correction would let a text be read, if there is one."""
    if kind == "date":
        return f"Use date_format='{name}=...' if dates are written differently here. "
    if kind != "numeric":
        return ""
    if find_number(text, replace(format, percent=not format.percent)) is not None:
        if format.percent:
            return "Its numbers ended in %, and 12 % is 0.12. Write the % here, too. "
        return "Its numbers had no %. Write them without it, in the same unit. "
    other = OTHER_SIGN[format.decimal]
    if find_number(text, ColumnFormat(decimal=other, thousands=format.decimal)) is None:
        return ""
    words = "commas" if other == "," else "points"
    return f"Use decimal={other!r} if this file has decimal {words}. "


def _note(message: str) -> None:
    warnings.warn(message, TableNote, stacklevel=2)


def _changed(column: Any, name: str, kind: str) -> TableError:
    example = next(iter(column.slice(0, 1000).drop_null().to_pylist()), None)
    return TableError(
        f"The column {name!r} was {_WAS[kind]} when the model was fitted; now it is of type "
        f"{column.type}, for example {example!r}. Convert it back, or fit a new model."
    )


# --- ids and labels ---


def as_labels(column: Any, name: str, *, place: Place = SOMEWHERE) -> NDArray[Any]:
    """Return labels as texts, without surrounding spaces."""
    labels = [label.strip() for label in as_ids(column, name, place=place).tolist()]
    return np.array(labels, dtype=object)


def as_ids(column: Any, name: str, *, place: Place = SOMEWHERE) -> NDArray[Any]:
    """Return ids as texts; 1, 1.0 and "1" are the same id in every file format."""
    is_empty = _is_empty(column)
    if is_empty.any():
        first = int(np.flatnonzero(is_empty)[0])
        raise TableError(
            f"The column {name!r} is empty in {int(is_empty.sum())} of {len(column)} rows, first "
            f"in {place.row(first)}. Words such as NA, null and None count as empty. Remove these "
            "rows from the table, or fill the column."
        )
    if pa.types.is_floating(column.type):
        return np.array([number_text(value) for value in column.to_pylist()], dtype=object)
    # Whole numbers that were written as floats, such as 1.0.
    texts = pa.compute.cast(column, pa.string())
    texts = pa.compute.replace_substring_regex(texts, r"^(-?[0-9]+)\.0+$", r"\1")
    return np.asarray(texts.to_pylist(), dtype=object)


def look_damaged(ids: Any) -> bool:
    """Return whether a spreadsheet has shortened long ids to numbers such as 1.23E+12."""
    texts = pa.array([str(id) for id in ids[:10_000]])
    return bool(pa.compute.any(pa.compute.match_substring_regex(texts, _SCIENTIFIC)).as_py())


def _is_empty(column: Any) -> Mask:
    column = combined(column)
    empty = pa.compute.is_null(column, nan_is_null=True)
    if is_text(column.type):
        texts = pa.compute.utf8_trim_whitespace(pa.compute.cast(column, pa.string()))
        empty = pa.compute.or_(empty, pa.compute.fill_null(pa.compute.equal(texts, ""), False))
    return np.array(empty, dtype=bool)


# --- types of Arrow ---


def combined(column: Any) -> Any:
    """Return a column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type holds numbers."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_moment(kind: Any) -> bool:
    """Return whether an Arrow type holds dates or moments."""
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type holds texts."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_one(kind) for is_one in texts)
