"""Checks of arguments, with errors that say what arrived and what is needed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection
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
