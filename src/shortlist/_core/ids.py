"""What an id is, whatever holds it.

Two ids are the same if these rules give the same value:

- A number is its value: 7, 7.0, True + 6, an int8 7, Decimal("7") and Fraction(7) are one id.
- A text is its UTF-8 bytes: "7" and b"7" are one id, which is another one than the number 7.
- A moment is the number of nanoseconds since 1970, in UTC. Without a time zone it counts as UTC,
  and a date is its midnight. A length of time is its number of nanoseconds.
- None, NaN, NaT, pandas.NA and a masked entry are the same missing id.
- Anything else is what `str` says about it.

They hold for lists, tuples, arrays, masked arrays, and the series of pandas, polars and Arrow.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from numbers import Rational, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["is_missing", "nanoseconds_per", "plain_id", "to_days", "values_of"]

_NANOSECONDS = {
    "W": 604_800 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def values_of(container: Any) -> NDArray[Any]:
    """Return the values of any container as an array that changes none of them.

    Whole numbers beside a gap stay whole, and a masked entry is None. A list is left as it is: an
    array would turn [7, "a"] into texts, and pairs into a table.
    """
    if isinstance(container, np.ma.MaskedArray):
        return _unmasked(container)
    if isinstance(container, np.ndarray):
        return container
    if isinstance(container, (list, tuple)):
        return _objects(container)
    series = nw.from_native(container, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _objects(series.to_list()) if _would_change(series) else series.to_numpy()
    if hasattr(container, "to_pylist"):  # an array of Arrow
        return _objects(container.to_pylist())
    if hasattr(container, "isna") and not isinstance(container.dtype, np.dtype):
        return _objects(list(container))  # an array or index of pandas
    return np.asarray(container)


def _would_change(series: Any) -> bool:
    """Whether NumPy would make floats of whole numbers, truths or decimals."""
    dtype = series.dtype
    if dtype.is_integer() or dtype == nw.Boolean:
        return bool(series.null_count())
    return dtype.is_decimal() or dtype == nw.Categorical


def _unmasked(array: Any) -> NDArray[Any]:
    mask = np.ma.getmaskarray(array)
    if not mask.any():
        return np.asarray(array.data)
    pairs = zip(array.data.ravel(), mask.ravel(), strict=True)
    return _objects([None if masked else value for value, masked in pairs]).reshape(array.shape)


def _objects(values: Any) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def plain_id(value: Any) -> int | float | bytes | None:
    """Return the value of one id: a number, the bytes of a text, or None if it is missing."""
    if isinstance(value, str):
        return value.encode()
    if is_missing(value):
        return None
    if isinstance(value, (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)):
        return _nanoseconds(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (Real, Decimal)):
        return _number(value)
    return value if isinstance(value, bytes) else _shown(value).encode()


def _number(value: Any) -> int | float:
    """Return a whole number exactly, whatever its type, and another number as a float."""
    is_whole = isinstance(value, (Rational, Decimal)) and math.isfinite(value) and not value % 1
    return int(value) if is_whole else float(value)


def _shown(value: Any) -> str:
    """Return what `str` says, without the names that NumPy gives its numbers inside a tuple."""
    if type(value) is tuple:
        value = tuple(each.item() if isinstance(each, np.generic) else each for each in value)
    return str(value)


def _nanoseconds(value: Any) -> int:
    value = getattr(value, "asm8", value)  # pandas keeps nanoseconds there, in UTC
    if isinstance(value, np.generic):
        value = to_days(value)
        return int(value.astype(np.int64)) * nanoseconds_per(value.dtype)
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset() or datetime.timedelta()
        value = (value.replace(tzinfo=None) - _EPOCH) - offset
    elif isinstance(value, datetime.date):
        value = datetime.timedelta(days=value.toordinal() - _EPOCH.toordinal())
    return (value // _MICROSECOND) * 1_000


def nanoseconds_per(dtype: np.dtype[Any]) -> int:
    """Return how many nanoseconds the unit of a moment or of a length of time has."""
    unit, count = np.datetime_data(dtype)
    return _NANOSECONDS.get(unit, 1) * count


def to_days(moments: Any) -> Any:
    """Return moments that are counted in years or months as days, and others as they are."""
    is_calendar = moments.dtype.kind == "M" and np.datetime_data(moments.dtype)[0] in "YM"
    return moments.astype("M8[D]") if is_calendar else moments


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or masked; all of them are the same id."""
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True
    except ValueError:  # an array inside a cell
        return False
