"""One column at a time: its kind, and its values in the form that a model takes.

Every value is converted on its own. A row therefore gets the same numbers alone, in a chunk and in
the whole table, from text files and from typed files.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.extras import load_extra
from ..exceptions import TableError

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")
pd = load_extra("pandas", needed_for="Reading tables")

__all__ = ["MISSING_CATEGORY", "as_ids", "as_labels", "as_values", "kind_of"]

#: The category of a missing value. That a value is missing is often informative.
MISSING_CATEGORY = "(missing)"
_TRUTHS = {"true": 1.0, "false": 0.0}
_DAY = np.timedelta64(1, "D")
_TIME = r"([T ]\d{2}:\d{2}.*)?$"
#: Formats of dates, and how each is turned into the first; none confuses day and month.
_DATES = {
    r"^(\d{4})-(\d{2})-(\d{2})" + _TIME: r"\1-\2-\3\4",
    r"^(\d{4})/(\d{2})/(\d{2})" + _TIME: r"\1-\2-\3\4",
    r"^(\d{2})\.(\d{2})\.(\d{4})" + _TIME: r"\3-\2-\1\4",
}


def kind_of(column: Any) -> str:
    """Return the kind of an Arrow column, from its type or from all of its texts."""
    kind = pa.types
    if kind.is_boolean(column.type):
        return "boolean"
    if _is_number(column.type) or kind.is_null(column.type):
        return "numeric"
    if kind.is_timestamp(column.type) or kind.is_date(column.type):
        return "date"
    if not _is_text(column.type):
        raise TableError(
            f"A model cannot use values of type {column.type}. Leave the column out, or "
            "convert it to numbers, texts, dates or true and false."
        )
    return _kind_of_text(_as_text(column))


def _kind_of_text(text: Any) -> str:
    present = text.drop_null()
    if len(present) == 0 or _numbers_in(present) is not None:
        return "numeric"
    if set(_lowered(present.unique())) <= set(_TRUTHS):
        return "boolean"
    if any(_all_match(present, pattern) for pattern in _DATES):
        return "date"
    return "categorical"


def _all_match(texts: Any, pattern: str) -> bool:
    trimmed = pa.compute.utf8_trim_whitespace(texts)
    return pa.compute.all(pa.compute.match_substring_regex(trimmed, pattern)).as_py()


def as_values(column: Any, kind: str, name: str) -> Any:
    """Return a column as 64-bit floats (days since 1970 for dates), or as texts for categories."""
    values = _CONVERTERS[kind](column, name)
    if kind == "numeric" and np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise TableError(
            f"The column {name!r} holds {int(np.isinf(values).sum())} infinite values, the first "
            f"in row {row + 1} of its chunk. Leave unknown values empty, or replace infinity by a "
            "number."
        )
    return values


def as_labels(column: Any, name: str) -> NDArray[Any]:
    """Return labels as texts, without surrounding spaces."""
    return np.array([label.strip() for label in as_ids(column, name).tolist()], dtype=object)


def as_ids(column: Any, name: str) -> NDArray[Any]:
    """Return ids as texts; 1, 1.0 and "1" are the same id in every file format."""
    if column.null_count or _n_nan(column):
        missing = int(column.null_count) + _n_nan(column)
        raise TableError(
            f"The column {name!r} is empty in {missing} of {len(column)} rows. "
            "Remove these rows from the table, or fill the column."
        )
    if pa.types.is_floating(column.type):
        values = column.to_numpy()
        return np.array([str(int(v)) if v.is_integer() else repr(v) for v in values.tolist()], "O")
    # Whole numbers that were written as floats, such as 1.0.
    text = pa.compute.replace_substring_regex(_as_text(column), r"^(-?[0-9]+)\.0+$", r"\1")
    return np.asarray(text.to_pylist(), dtype=object)


def _n_nan(column: Any) -> int:
    if not pa.types.is_floating(column.type):
        return 0
    return pa.compute.sum(pa.compute.is_nan(column)).as_py() or 0


def _numeric(column: Any, name: str) -> NDArray[np.float64]:
    if _is_text(column.type):
        numbers = _numbers_in(_as_text(column))
        if numbers is None:
            raise _changed(column, name, "numeric")
        column = numbers
    elif not (_is_number(column.type) or pa.types.is_null(column.type)):
        raise _changed(column, name, "numeric")
    return _floats(column)


def _boolean(column: Any, name: str) -> NDArray[np.float64]:
    if pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
        return _floats(pa.compute.cast(column, pa.uint8()))
    if _is_text(column.type):
        words = _lowered(_as_text(column))
        if all(word is None or word in _TRUTHS for word in set(words)):
            return np.array([np.nan if word is None else _TRUTHS[word] for word in words])
    raise _changed(column, name, "true or false")


def _date(column: Any, name: str) -> NDArray[np.float64]:
    if not (_is_text(column.type) or _is_moment(column.type) or pa.types.is_null(column.type)):
        raise _changed(column, name, "a date")
    try:
        moments = pd.to_datetime(
            _as_iso(column).to_pandas() if _is_text(column.type) else column.to_pandas(),
            format="ISO8601" if _is_text(column.type) else None,
            utc=True,
        )
    except ValueError as error:
        raise _changed(column, name, "a date such as 2024-05-31", str(error)) from None
    return ((moments - pd.Timestamp(0, tz="UTC")) / _DAY).to_numpy(dtype=np.float64)


def _as_iso(column: Any) -> Any:
    texts = pa.compute.utf8_trim_whitespace(_as_text(column))
    for sign in ("/", "."):  # most dates have neither and need no change
        if pa.compute.any(pa.compute.match_substring(texts, sign)).as_py():
            for pattern, iso in _DATES.items():
                texts = pa.compute.replace_substring_regex(texts, pattern, iso)
    return texts


def _categorical(column: Any, name: str) -> Any:
    if not (_is_text(column.type) or pa.types.is_null(column.type)):
        raise _changed(column, name, "text")
    texts = pa.compute.utf8_trim_whitespace(_as_text(column)).fill_null("")
    # A text of spaces is missing, too.
    filled = pa.compute.if_else(pa.compute.equal(texts, ""), MISSING_CATEGORY, texts)
    return np.asarray(filled.to_numpy(), dtype=object)


_CONVERTERS = {
    "numeric": _numeric,
    "boolean": _boolean,
    "date": _date,
    "categorical": _categorical,
}


def _changed(column: Any, name: str, wanted: str, detail: str = "") -> TableError:
    example = next(
        (value for value in column.slice(0, 1000).to_pylist() if value is not None), None
    )
    return TableError(
        f"The column {name!r} was {wanted} when the model was fitted; now it is of type "
        f"{column.type}, for example {example!r}. Convert it back, or fit a new model."
        + (f" ({re.sub(r'[.,].*', '', detail)}.)" if detail else "")
    )


def _floats(column: Any) -> NDArray[np.float64]:
    cast = pa.compute.cast(column, pa.float64(), safe=False)
    return np.array(cast.to_numpy(), dtype=np.float64)


def _numbers_in(text: Any) -> Any:
    """Return texts as numbers, or None if one of them is not a number."""
    try:
        return pa.compute.cast(pa.compute.utf8_trim_whitespace(text), pa.float64())
    except pa.ArrowInvalid:
        return None


def _as_text(column: Any) -> Any:
    return pa.compute.cast(column, pa.string())


def _lowered(text: Any) -> list[str | None]:
    return pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(text)).to_pylist()


def _is_number(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_moment(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_text(kind) for is_text in texts)
