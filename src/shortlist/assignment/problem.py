"""An assignment problem, checked: values, limits and segments."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Ints, Rows
from .._core.validation import name_rows
from ..capacity import Capacity
from ..exceptions import CapacityError, CapacityTypeError
from .integers import PerLimit


@dataclass(frozen=True)
class Problem:
    """Gains over the column "leave it", of shape (n, m), the segment of each row, and all limits.

    Without segments, one without a name and without a limit holds all rows.
    """

    gains: Floats
    left_alone: Floats
    limits: PerLimit
    segment_of: Rows
    segment_names: list[Any]


def check_problem(
    values: ArrayLike,
    capacities: Sequence[Any],
    *,
    total: Any,
    segments: ArrayLike | None,
    segment_capacities: Mapping[Any, Any] | None,
) -> Problem:
    """Check the arguments of :func:`assign`."""
    table = _check_values(values)
    n, m = table.shape[0], table.shape[1] - 1
    with np.errstate(over="ignore"):
        gains = table[:, 1:] - table[:, :1]
    if np.any(np.isinf(gains) != np.isinf(table[:, 1:])):
        raise ValueError(
            "values are too far apart for floating point: their differences exceed 1e308. Divide "
            "them by a constant; this does not change the best assignment."
        )
    names, codes, by_segment = _check_segments(segments, segment_capacities, n)
    limits = PerLimit(
        _check_capacities(capacities, n, m), by_segment, _check_limit("total", total, n)
    )
    return Problem(gains, table[:, 0], limits, codes, names)


def _check_values(values: ArrayLike) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 1:
        raise ValueError(
            "values must be a table with a row for each item and a column for each option; column "
            f"0 is 'leave it'. Got shape {table.shape}."
        )
    bad = ~(table < np.inf)  # NaN and plus infinity
    bad[:, 0] |= np.isneginf(table[:, 0])
    rows = np.flatnonzero(bad.any(axis=1))
    if rows.size:
        raise ValueError(
            "values must be finite, or -inf to forbid a column other than 0; found other values "
            f"at {name_rows(rows)}. NaN and +inf cannot be summed: replace them by numbers."
        )
    return table


def _check_capacities(capacities: Sequence[Any], n: int, m: int) -> Ints:
    is_listed = isinstance(capacities, Iterable) and not isinstance(capacities, Mapping)
    if not is_listed or len(capacities) != m:
        raise CapacityTypeError(
            f"capacities must be a sequence of {m} whole numbers, one for each of the {m} columns "
            f"of values after the first, which is 'leave it' and has no limit; got {capacities!r}."
        )
    limits = [_check_limit(f"capacities[{j}]", limit, n) for j, limit in enumerate(capacities)]
    return np.array(limits, dtype=np.int64)


def check_no_work(limit: Any) -> None:
    """Raise an error for a budget of work, which joint limits do not know."""
    if isinstance(limit, Capacity) and limit.kind == "effort":
        raise CapacityError(
            f"{limit!r} is a budget of work, and joint limits count rows. If each row takes the "
            f"same, say 30, pass {limit!r}.as_flags(30). Efforts that differ from row to row have "
            "no exact assignment: use select or CapacityClassifier for one class at a time."
        )


def _check_limit(name: str, limit: Any, n: int) -> int:
    """Return how many of `n` rows a limit allows."""
    if isinstance(limit, Capacity):
        check_no_work(limit)
        if limit.kind != "count" or limit.per is not None:
            raise CapacityError(f"A limit of an assignment is a number of rows; got {limit!r}.")
        limit = int(limit.value)
    try:
        if isinstance(limit, (bool, np.bool_)):
            raise TypeError
        whole = n if limit is None else operator.index(limit)
    except TypeError:
        raise CapacityTypeError(
            f"{name} must be a whole number such as 50, or None for no limit; got {limit!r}."
        ) from None
    if whole < 0:
        raise CapacityError(f"{name} must not be negative; got {whole}.")
    return min(whole, n)


def _check_segments(
    segments: ArrayLike | None, capacities: Mapping[Any, Any] | None, n: int
) -> tuple[list[Any], Rows, Ints]:
    """Return the names of the segments, the number of each row's segment, and their limits."""
    if segments is None and capacities is None:
        return [], np.zeros(n, dtype=np.intp), np.array([n])
    if segments is None or capacities is None:
        given, missing = ("segment_capacities", "segments")[:: 1 if segments is None else -1]
        raise ValueError(f"{given} was given without {missing}; pass both, or neither.")
    column = np.asarray(segments)
    if column.shape != (n,) or not isinstance(capacities, Mapping):
        raise ValueError(
            f"segments must name one segment for each of the {n} rows, and segment_capacities must "
            f"be a dict from segments to limits; got shape {column.shape} and {capacities!r}."
        )
    try:
        labels, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "segments must be of one type, all numbers or all texts, because they are sorted."
        ) from error
    limits = {
        label: _check_limit(f"segment_capacities[{label!r}]", limit, n)
        for label, limit in capacities.items()
    }
    names = labels.tolist()
    unknown = [label for label in names if label not in limits]
    if unknown:
        raise CapacityError(
            f"segments holds {', '.join(map(repr, unknown[:5]))}, for which there is no limit in "
            "segment_capacities. Add these segments to it; None means no limit."
        )
    return names, codes, np.array([limits[name] for name in names], dtype=np.int64)
