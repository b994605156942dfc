"""What callers hand in: scores, ids and parameters, checked before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.validation import check_number, check_scores
from ..capacity import Capacity, check_prevalence
from ..exceptions import CapacityError
from ._tail import FARTHEST_SCORE

__all__ = [
    "check_calibration",
    "check_count",
    "check_id",
    "check_period",
    "check_positive",
    "check_score",
    "check_score_array",
    "check_whole",
]

_MOST_FLAGS = 1 << 40
_LARGEST = float(np.finfo(np.float64).max)


def check_score(score: Any) -> float:
    """Return one score as a finite float."""
    if type(score) is float and -_LARGEST <= score <= _LARGEST:  # the common case, kept short
        return score
    return float(check_number("score", score))


def check_score_array(scores: ArrayLike) -> NDArray[np.float64]:
    """Return scores as finite floats that lie next to each other."""
    values = np.ascontiguousarray(check_scores(scores), dtype=np.float64)
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"scores must be finite; got {values[bad]} in row {bad}. Nothing has been changed."
        )
    return values


def check_calibration(scores: ArrayLike) -> NDArray[np.float64]:
    """Return calibration scores as finite floats, at least one of them."""
    checked = check_scores(scores, name="calibration_scores").astype(np.float64)
    if checked.size == 0:
        raise ValueError("calibration_scores must hold at least one score; got none.")
    if not np.all(np.isfinite(checked)):
        raise ValueError("calibration_scores must be finite; leave out infinite scores.")
    return np.clip(checked, -FARTHEST_SCORE, FARTHEST_SCORE)


def check_id(id: Any) -> Any:
    """Return an id that JSON can keep."""
    if type(id) is str or type(id) is int:
        return id
    raise TypeError(
        f"id must be a text or a whole number, which JSON can keep; got {id!r} of type "
        f"{type(id).__name__}. Turn it into one with str(...)."
    )


def check_positive(name: str, value: Any) -> float:
    """Return a parameter that must be above zero, as a float."""
    number = float(check_number(name, value))
    if number <= 0:
        raise ValueError(f"{name} must be above 0; got {value!r}.")
    return number


def check_reference(prevalence: Any) -> float | None:
    """Return the prevalence that multiples refer to, as a float, if one was given."""
    return None if prevalence is None else float(check_prevalence(prevalence))


def check_period(period: Any) -> float:
    """Return the length of a period, in seconds."""
    length = check_positive("period", period)
    if not 1e-6 <= length <= 1e12:
        raise ValueError(f"period must be a number of seconds from 1e-6 to 1e12; got {period!r}.")
    return length


def check_count(capacity: Capacity) -> None:
    """Complain about a number of flags that no one can count to."""
    if capacity.value > _MOST_FLAGS:
        raise CapacityError(f"A number of flags can be at most {_MOST_FLAGS}; got {capacity!r}.")


def check_whole(name: str, value: Any, unit: str, most: int = 1 << 40) -> int:
    """Return a parameter that must be a whole number of something, at least 1."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= value <= most:
        return int(value)
    raise ValueError(f"{name} must be a whole number of {unit} from 1 to {most}; got {value!r}.")
