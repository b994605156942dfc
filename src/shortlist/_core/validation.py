"""Checks of arguments, with errors that say what arrived and what is needed."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Collection
from datetime import UTC, datetime
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Trees and networks compute in single precision. Larger numbers are codes for missing values.
LARGEST = 1e38
#: Stands for "as it is" where None has a meaning of its own.
UNCHANGED: Any = "unchanged"
_MOST_ROWS_NAMED = 5
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_NONE = np.empty(0, dtype=np.intp)


def is_unchanged(value: Any) -> bool:
    """Whether a value is the marker for "as it is"."""
    return isinstance(value, str) and value == UNCHANGED


def check_option(name: str, value: Any, options: Collection[str]) -> str:
    """Return `value` if it is one of the short strings in `options`."""
    if not isinstance(value, str) or value not in options:
        choices = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {choices}; got {value!r}.")
    return value


def check_number(name: str, value: Any) -> Real:
    """Return `value` if it is a finite real number; booleans and strings are not numbers here."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}.")
    try:
        finite = bool(np.isfinite(float(value)))
    except OverflowError:
        finite = False
    if not finite:
        raise ValueError(f"{name} must be finite; got {value!r}.")
    return value


def check_positive(name: str, value: Any) -> float:
    """Return `value` as a float if it is greater than 0."""
    number = float(check_number(name, value))
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0; got {value!r}.")
    return number


def check_count(name: str, value: Any, *, at_least: int = 1, at_most: int | None = None) -> int:
    """Return `value` as an int if it is a whole number within its limits."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and value >= at_least and (at_most is None or value <= at_most):
        return int(value)
    limits = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    raise ValueError(f"{name} must be a whole number {limits}; got {value!r}.")


def check_confidence(confidence: Any) -> float:
    """Return `confidence` as a float strictly between 0 and 1."""
    confidence = float(check_number("confidence", confidence))
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence must lie strictly between 0 and 1; got {confidence!r}. "
            "For example 0.95 allows the promise to fail in one calibration out of twenty."
        )
    return confidence


def check_scores(
    scores: ArrayLike,
    *,
    name: str = "scores",
    rows: NDArray[np.intp] | None = None,
    instead: str = "Give these items a score, or leave them out before selecting.",
) -> NDArray[np.floating]:
    """Return `scores` as a one-dimensional float array without NaN; infinities are allowed.

    float32 and float64 are kept as they are, and large arrays are not copied. `rows` are the user's
    numbers of the items, if they are not simply 0, 1, 2, ..., and `instead` says what to do.
    """
    array = np.asarray(scores)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one number per item; got shape {array.shape}. "
            "For the output of predict_proba, pass the column of the rare label."
        )
    if array.dtype not in _FLOATS:
        array = _as_floats(array, name)
    # The least number is NaN if one is, and takes no memory. A product would be as quick, but the
    # threads of a linear algebra library keep spinning, and slow down the next model.
    has_nan = math.isnan(np.min(array, initial=np.inf))
    bad = np.flatnonzero(np.isnan(array)) if has_nan else _NONE
    if bad.size:
        named = name_rows(bad if rows is None else rows[bad])
        raise ValueError(
            f"{name} must not be NaN; found {bad.size} NaN of {array.size} at {named}. {instead}"
        )
    return array


def _as_floats(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    holds_text = array.dtype.kind == "O" and any(isinstance(value, str) for value in array)
    if array.dtype.kind in "USmMc" or holds_text:
        raise ValueError(f"{name} must be numbers; got dtype {array.dtype}.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers; got dtype {array.dtype}.") from error
    except OverflowError as error:
        raise ValueError(
            f"{name} must lie between -1.8e308 and 1.8e308, as 64-bit floats do; got a number "
            "beyond that. Scale them down."
        ) from error


def name_rows(rows: NDArray[np.intp]) -> str:
    """Name the first few rows, and count the others."""
    named = ", ".join(str(row) for row in rows[:_MOST_ROWS_NAMED])
    more = rows.size - _MOST_ROWS_NAMED
    return f"row{'s' if rows.size > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")


def check_same_length(**arrays: Any) -> None:
    """Raise an error if the named arguments, other than `None`, have different lengths."""
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Arguments must have the same number of items, but {listed}.")


def check_sample_weight(sample_weight: ArrayLike) -> NDArray[np.float64]:
    """Return weights as floats that are finite, not negative and not all zero."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1 or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be one finite number >= 0 per item.")
    if not weights.sum() > 0:
        raise ValueError("sample_weight must not be all zero.")
    return weights


def check_as_calibrated(**given: tuple[bool, bool]) -> None:
    """Raise an error if something is given with items here, but was not in calibration, or not."""
    for name, (here, then) in given.items():
        if here != then:
            raise ValueError(
                f"The threshold was calibrated {'with' if then else 'without'} {name}, and these "
                f"items come {'with' if here else 'without'} them. Pass {name}=... both in "
                "calibration (fit or recalibrate) and here, or nowhere."
            )


def check_seed(random_state: Any) -> int:
    """Turn `random_state` into the key of a hash; `None` is the fixed key 0."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63 - 1, dtype=np.int64))
    raise ValueError(
        "random_state must be None, an int, a numpy Generator or a RandomState; "
        f"got {random_state!r}."
    )


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called this package, however deep we are in it."""
    package = f"{Path(__file__).parents[1]}{os.sep}"
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# --- moments in time, as seconds since 1970 ------------------------------------------------------

_FARTHEST = 1e15  # thirty million years; anything beyond is a mistake


def to_seconds(at: Any) -> float:
    """Return a moment in seconds; a datetime without a time zone is read as UTC."""
    if type(at) is float and -_FARTHEST <= at <= _FARTHEST:  # the common case comes first
        return at
    if isinstance(at, (bool, np.bool_)) or not isinstance(
        at, (int, float, np.number, datetime, np.datetime64)
    ):
        raise TypeError(
            f"at must be seconds or a datetime; got {at!r} of type {type(at).__name__}."
        )
    if isinstance(at, np.datetime64):
        at = at.astype("datetime64[us]").item()
    if isinstance(at, datetime) and at == at:  # a missing time differs from itself
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    try:
        moment = float(at)
    except (TypeError, ValueError, OverflowError):
        moment = math.nan
    if not -_FARTHEST <= moment <= _FARTHEST:  # false for NaT and NaN, too
        raise ValueError(f"at must be a moment within {_FARTHEST:g} seconds; got {at!r}.")
    return moment


def parse_moment(text: str) -> float:
    """Return the seconds of a moment in ISO 8601, such as 2026-05-31T10:00:00Z."""
    try:
        return to_seconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r:.80} is not a moment. Use seconds, or a text such as 2026-05-31T10:00:00Z."
        ) from None


def check_moments(at: Any, n: int) -> NDArray[np.float64]:
    """Return one moment in seconds per item; a single moment applies to all items."""
    if np.ndim(at) == 0:
        return np.full(n, to_seconds(at[()] if isinstance(at, np.ndarray) else at))
    moments = np.asarray(at)
    if moments.shape != (n,):
        raise ValueError(f"at must hold one moment for each of {n} items; got {moments.shape}.")
    if moments.dtype.kind not in "fiu":
        return np.array([to_seconds(moment) for moment in moments], dtype=np.float64)
    moments = moments.astype(np.float64)
    if not np.all(np.abs(moments) <= _FARTHEST):
        raise ValueError(f"at must hold numbers of seconds within {_FARTHEST:g}, and no NaN.")
    return moments
