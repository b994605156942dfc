"""An assignment problem, checked: values, limits and segments; and the form of its solution."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats, Ints, Rows
from .._core.validation import name_rows
from ..capacity import Capacity
from ..exceptions import CapacityError, CapacityTypeError

Limits = Mapping[Any, Any]
Segments = Limits | Sequence[Limits]


@dataclass(frozen=True)
class Segmentation:
    """Which segment each row belongs to, and how many flags each segment allows."""

    labels: NDArray[Any]
    codes: Rows
    limits: Ints


@dataclass(frozen=True)
class Problem:
    """Gains over the column "leave it", of shape (n, m), and all limits."""

    gains: Floats
    left_alone: Floats
    class_limits: Ints
    total: int
    segmentations: tuple[Segmentation, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.gains)

    @property
    def one_segmentation(self) -> Segmentation:
        """The only segmentation; without any, one segment without a limit holds all rows."""
        if self.segmentations:
            return self.segmentations[0]
        n = self.n_rows
        return Segmentation(np.array([0]), np.zeros(n, dtype=np.intp), np.array([n]))

    def value_of(self, columns: Ints) -> float:
        """Return the sum of the chosen values."""
        flagged = np.flatnonzero(columns)
        return float(self.left_alone.sum() + self.gains[flagged, columns[flagged] - 1].sum())


def check_problem(
    values: ArrayLike,
    capacities: Sequence[Any],
    *,
    total: Any,
    segments: ArrayLike | None,
    segment_capacities: Segments | None,
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
    return Problem(
        gains,
        table[:, 0],
        _check_capacities(capacities, n, m),
        _check_limit("total", total, n),
        _check_segments(segments, segment_capacities, n),
    )


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
    try:
        if isinstance(capacities, Mapping):
            raise TypeError
        given = list(capacities)
    except TypeError:
        raise CapacityTypeError(
            f"capacities must be a sequence of {m} whole numbers, one for each column of values "
            f"after the first; got {capacities!r}."
        ) from None
    if len(given) != m:
        raise CapacityError(
            f"capacities must have one entry for each of the {m} columns of values after the "
            f"first, which is 'leave it' and has no limit; got {len(given)}."
        )
    limits = [_check_limit(f"capacities[{j}]", limit, n) for j, limit in enumerate(given)]
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
    segments: ArrayLike | None, capacities: Segments | None, n: int
) -> tuple[Segmentation, ...]:
    if (segments is None) != (capacities is None):
        given, missing = ("segment_capacities", "segments")[:: 1 if segments is None else -1]
        raise ValueError(f"{given} was given without {missing}; pass both, or neither.")
    if segments is None or capacities is None:
        return ()
    table = np.asarray(segments)
    columns = [table] if isinstance(capacities, Mapping) else list(table.T)
    several = [capacities] if isinstance(capacities, Mapping) else list(capacities)
    if any(column.shape != (n,) for column in columns) or len(columns) != len(several):
        raise ValueError(
            f"segments must name one segment for each of the {n} rows, with a dict as "
            "segment_capacities; or be a table with one column per dict in a list of dicts. Got "
            f"shape {table.shape} with {len(several)} dict{'s' if len(several) > 1 else ''}."
        )
    return tuple(
        _check_segmentation(column, limits) for column, limits in zip(columns, several, strict=True)
    )


def _check_segmentation(column: NDArray[Any], capacities: Limits) -> Segmentation:
    try:
        labels, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "segments must be of one type, all numbers or all texts, because they are sorted."
        ) from error
    limits = {
        label: _check_limit(f"segment_capacities[{label!r}]", limit, column.size)
        for label, limit in capacities.items()
    }
    unknown = [label for label in labels.tolist() if label not in limits]
    if unknown:
        raise CapacityError(
            f"segments holds {', '.join(map(repr, unknown[:5]))}, for which there is no limit in "
            "segment_capacities. Add these segments to it; None means no limit."
        )
    in_order = [limits[label] for label in labels.tolist()]
    return Segmentation(labels, codes, np.array(in_order, dtype=np.int64))
