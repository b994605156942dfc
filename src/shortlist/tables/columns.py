"""One column at a time: its kind, and its values in the form that a model takes.

Every value is converted on its own. A row therefore gets the same numbers alone, in a chunk and in
the whole table, from text files and from typed files.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.validation import LARGEST
from ..exceptions import TableError, TableNote
from ._dates import as_days, days_since_1970
from ._inference import Guess, guess_format
from .column_format import (
    PLAIN,
    TRUTHS,
    ColumnFormat,
    as_numbers,
    combined,
    currencies,
    is_number,
    is_word_for_missing,
    lowered,
    sentinels,
)

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")

#: The category of a missing value. That a value is missing is often informative.
MISSING_CATEGORY = "(missing)"
_WAS = {"numeric": "numeric", "boolean": "true or false", "date": "a date"}
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


def guess_column(
    column: Any, name: str, *, format: ColumnFormat = PLAIN, numeric: bool = False
) -> Guess:
    """Tell the kind and the form of an Arrow column, from its type or from all of its texts."""
    if is_text(column.type):
        return guess_format(_as_text(column), name, format=format, numeric=numeric)
    kind = pa.types
    if kind.is_null(column.type) or (kind.is_floating(column.type) and _is_empty(column).all()):
        return Guess("numeric", format, [f"{name!r} is empty. Nothing can be learned from it."])
    if kind.is_boolean(column.type):
        return Guess("boolean", format)
    if _is_number(column.type):
        whole = bool(pa.types.is_integer(column.type))
        return Guess("numeric", replace(format, whole=whole))
    if _is_moment(column.type):
        return Guess("date", format)
    raise TableError(
        f"A model cannot use values of type {column.type}. Leave the column out, or "
        "convert it to numbers, texts, dates or true and false."
    )


def as_values(
    column: Any, kind: str, name: str, format: ColumnFormat = PLAIN, *, place: Place = SOMEWHERE
) -> Any:
    """Return a column as 64-bit floats (days since 1970 for dates), or as texts for categories."""
    values = _CONVERTERS[kind](column, name, format, place)
    if kind == "numeric":
        _check_size(values, name, place)
    return values


def _check_size(values: NDArray[np.float64], name: str, place: Place) -> None:
    """Refuse numbers that no learner can take."""
    too_large = np.abs(values) > LARGEST
    if not too_large.any():
        return
    row = int(np.argmax(too_large))
    is_infinite = bool(np.isinf(values[row]))
    what = "infinite values" if is_infinite else f"values beyond {LARGEST:g}"
    raise TableError(
        f"The column {name!r} holds {int(too_large.sum())} {what}, the first in {place.row(row)}. "
        f"Leave unknown values empty, read them as missing with na='{float(values[row])!r}', or "
        f"replace {'infinity' if is_infinite else 'them'} by a number."
    )


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
        values = column.to_numpy()
        return np.array([str(int(v)) if v.is_integer() else repr(v) for v in values.tolist()], "O")
    # Whole numbers that were written as floats, such as 1.0.
    text = pa.compute.replace_substring_regex(_as_text(column), r"^(-?[0-9]+)\.0+$", r"\1")
    return np.asarray(text.to_pylist(), dtype=object)


def look_damaged(ids: Any) -> bool:
    """Return whether a spreadsheet has shortened long ids to numbers such as 1.23E+12."""
    texts = pa.array([str(id) for id in ids[:10_000]])
    return bool(pa.compute.any(pa.compute.match_substring_regex(texts, _SCIENTIFIC)).as_py())


def _is_empty(column: Any) -> Mask:
    column = combined(column)
    if pa.types.is_floating(column.type):
        return np.isnan(np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64))
    empty = pa.compute.is_null(column)
    if is_text(column.type):
        spaces = pa.compute.equal(pa.compute.utf8_trim_whitespace(_as_text(column)), "")
        empty = pa.compute.or_(empty, pa.compute.fill_null(spaces, False))
    return np.array(empty, dtype=bool)


# --- one kind at a time ---


def _numeric(column: Any, name: str, format: ColumnFormat, place: Place) -> NDArray[np.float64]:
    if is_text(column.type):
        texts = combined(_as_text(column))
        values, is_odd = as_numbers(texts, format)
        if is_odd.any():
            raise _unreadable(texts, is_odd, name, "numeric", format, place)
        _tell_of_words(texts, np.isnan(values), name, format)
        _tell_of_signs(texts, values, name, format)
        return np.array(values, dtype=np.float64)
    if not (_is_number(column.type) or pa.types.is_null(column.type)):
        raise _changed(column, name, "numeric")
    values = _floats(column)
    if format.missing:
        values[np.isin(values, sentinels(format))] = np.nan
    return values


def _boolean(column: Any, name: str, format: ColumnFormat, place: Place) -> NDArray[np.float64]:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return _floats(pa.compute.cast(column, pa.uint8()))
    if _is_number(kind):
        values = _floats(column)
        if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            return values
    elif is_text(kind):
        texts = combined(_as_text(column))
        words = [word or "" for word in lowered(texts).to_pylist()]
        is_odd = np.array([not (w in TRUTHS or is_word_for_missing(w, format)) for w in words])
        if not is_odd.any():
            return np.array([TRUTHS.get(word, np.nan) for word in words], dtype=np.float64)
        raise _unreadable(texts, is_odd, name, "boolean", format, place)
    raise _changed(column, name, "true or false")


def _date(column: Any, name: str, format: ColumnFormat, place: Place) -> NDArray[np.float64]:
    if is_text(column.type):
        texts = combined(_as_text(column))
        days = as_days(texts, format)
        if format.missing:  # a date may stand for a missing one
            days[_is_called_missing(texts, format)] = np.nan
        lacks = np.flatnonzero(np.isnan(days))
        is_odd = np.zeros(len(days), dtype=bool)
        odd = [not is_word_for_missing(texts[int(row)].as_py() or "", format) for row in lacks]
        is_odd[lacks] = odd
        if is_odd.any():
            raise _unreadable(texts, is_odd, name, "date", format, place)
        return days
    if _is_number(column.type) and format.date_format is not None:
        return _date(pa.array(as_ids(column.fill_null(0), name)), name, format, place)
    if not (_is_moment(column.type) or pa.types.is_null(column.type)):
        raise _changed(column, name, "a date")
    zone = getattr(column.type, "tz", None)
    moments = pa.compute.cast(combined(column), pa.timestamp("us", zone), safe=False)
    return np.asarray(days_since_1970(moments.to_numpy(zero_copy_only=False)))


def _categorical(column: Any, name: str, format: ColumnFormat, place: Place) -> Any:
    if format.codes and _is_number(column.type):
        column = _codes(column)
    if not (is_text(column.type) or pa.types.is_null(column.type)):
        raise _changed(column, name, "text")
    texts = pa.compute.utf8_trim_whitespace(_as_text(column)).fill_null("")
    # A text of spaces is missing, too.
    is_missing = pa.compute.equal(texts, "")
    if format.missing:
        texts = combined(texts)
        is_missing = pa.compute.or_(
            combined(is_missing), pa.array(_is_called_missing(texts, format))
        )
    filled = pa.compute.if_else(is_missing, MISSING_CATEGORY, texts)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=object)


def _is_called_missing(texts: Any, format: ColumnFormat) -> Mask:
    """Return which texts are words that mean "missing" in this column alone."""
    known = pa.compute.is_in(lowered(texts), value_set=pa.array(format.missing, pa.string()))
    return np.array(known, dtype=bool)


def _codes(column: Any) -> Any:
    """Return numbers as texts, as a text file has them; what is missing stays so."""
    values = [None if v is None or v != v else v for v in combined(column).to_pylist()]
    whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    return pa.array([None if v is None else str(v) for v in whole], pa.string())


_CONVERTERS: dict[str, Any] = {
    "numeric": _numeric,
    "boolean": _boolean,
    "date": _date,
    "categorical": _categorical,
}


# --- what goes wrong ---


def _tell_of_words(texts: Any, is_missing: Mask, name: str, format: ColumnFormat) -> None:
    """Say which words are read as missing that did not occur when the model was fitted."""
    present = texts.filter(pa.array(is_missing)).drop_null().unique().to_pylist()
    words = [
        text for text in present if text.strip() and text.strip().lower() not in format.missing
    ]
    if words:
        shown = ", ".join(repr(word) for word in words[:3])
        _note(f"{name!r} holds {shown}, read as missing.")


def _tell_of_signs(texts: Any, values: Any, name: str, format: ColumnFormat) -> None:
    """Say where signs of numbers may mean something else than when the model was fitted."""
    is_part = values != np.floor(values)
    is_part &= ~np.isnan(values)
    if format.whole and is_part.any():
        parts = texts.filter(pa.array(is_part))
        if pa.compute.all(pa.compute.match_substring_regex(parts, _LIKE_THOUSANDS)).as_py():
            _note(
                f"{name!r} had whole numbers when the model was fitted, and now has such as "
                f"{parts[0].as_py()!r}, read as {values[is_part][0]:.15g}. If the sign separates "
                f"thousands, use decimal={_other(format.decimal)!r}"
            )
    before = format.currency or format.unit
    if before:
        others = [sign for sign in currencies(texts, format) if sign != before]
        if others:
            _note(
                f"{name!r} was in {before} when the model was fitted, and now holds "
                f"{', '.join(others)}. The numbers are taken as they are. Convert them, or fit a "
                "new model."
            )


def _note(message: str) -> None:
    warnings.warn(message, TableNote, stacklevel=2)


def _other(decimal: str) -> str:
    return "," if decimal == "." else "."


def _unreadable(
    texts: Any, is_odd: Mask, name: str, kind: str, format: ColumnFormat, place: Place
) -> TableError:
    row = int(np.flatnonzero(is_odd)[0])
    text = str(texts[row].as_py())
    return TableError(
        f"The column {name!r} was {_WAS[kind]} when the model was fitted; now {place.row(row)} "
        f"holds {text!r:.80}, for example. {_remedy(text, name, kind, format)}"
    )


def _remedy(text: str, name: str, kind: str, format: ColumnFormat) -> str:
    missing = f"If it means missing, use na={text!r:.80}; otherwise correct it, or fit a new model."
    if kind == "date":
        return f"Use date_format='{name}=...' if dates are written differently here. {missing}"
    if kind == "numeric" and format.percent and is_number(text, replace(format, percent=False)):
        return f"Its numbers ended in %, and 12 % is 0.12. Write the % here, too. {missing}"
    if kind == "numeric" and is_number(text, replace(format, percent=True)):
        return f"Its numbers had no %. Write them without it, in the same unit. {missing}"
    other = _other(format.decimal)
    if is_number(text, format) or not is_number(
        text, ColumnFormat(decimal=other, thousands=format.decimal)
    ):
        return missing
    words = "commas" if other == "," else "points"
    return f"Use decimal={other!r} if this file has decimal {words}. {missing}"


def _changed(column: Any, name: str, wanted: str) -> TableError:
    example = next(
        (value for value in column.slice(0, 1000).to_pylist() if value is not None), None
    )
    return TableError(
        f"The column {name!r} was {wanted} when the model was fitted; now it is of type "
        f"{column.type}, for example {example!r}. Convert it back, or fit a new model."
    )


def _floats(column: Any) -> NDArray[np.float64]:
    if pa.types.is_decimal(column.type):  # Arrow would divide by a power of ten, which rounds
        column = _as_text(column)
    cast = pa.compute.cast(column, pa.float64(), safe=False)
    return np.array(cast.to_numpy(), dtype=np.float64)


def _as_text(column: Any) -> Any:
    return pa.compute.cast(column, pa.string())


def _is_number(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_moment(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type holds texts."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_one(kind) for is_one in texts)
