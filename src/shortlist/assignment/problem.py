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
    capacities: Sequence[int | None],
    *,
    total: int | None,
    segments: ArrayLike | None,
    segment_capacities: Segments | None,
    case_values: ArrayLike | None,
    efforts: ArrayLike | None = None,
) -> Problem:
    """Check the arguments of :func:`assign`."""
    table = _check_values(values)
    n, m = table.shape[0], table.shape[1] - 1
    work = _check_efforts(efforts, n, m)
    limits = _check_capacities(capacities, n, m, work)
    each = work[0] if work and len(set(work)) == 1 else None
    return Problem(
        *_gains(table, _check_case_values(case_values, n)),
        limits,
        _check_limit("total", total, n, each),
        _check_segments(segments, segment_capacities, n, each),
    )


def _check_efforts(efforts: ArrayLike | None, n: int, m: int) -> list[float] | None:
    """Return the work of a row in each column."""
    if efforts is None:
        return None
    work = np.asarray(efforts, dtype=np.float64)
    if work.shape != (m,) or not np.all((work > 0) & np.isfinite(work)):
        raise ValueError(
            f"efforts must hold one finite number greater than 0 for each of the {m} columns of "
            f"values after the first: what a row takes there; got shape {work.shape}. Efforts that "
            "differ from row to row have no exact assignment: use select for one column at a time."
        )
    return [float(each) for each in work]


def in_flags(limit: Any, effort: Any) -> Any:
    """Return a budget of work as a number of flags that take the same effort; others as given."""
    if not isinstance(limit, Capacity) or limit.kind != "effort":
        return limit
    if effort is None:
        raise CapacityError(
            f"{limit!r} is a budget of work. Say how much a row takes: efforts=[30, 10] for the "
            "columns of an assignment, class_efforts={'fraud': 30, 'error': 10} for a classifier. "
            "A budget for several of them together is exact only if they take the same."
        )
    return limit.as_flags(effort)


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


def _check_case_values(case_values: ArrayLike | None, n: int) -> Floats | None:
    if case_values is None:
        return None
    amounts = np.asarray(case_values, dtype=np.float64)
    if amounts.shape != (n,) or not np.all(np.isfinite(amounts)) or np.any(amounts < 0):
        raise ValueError(
            f"case_values must be one finite number >= 0 for each of the {n} rows; got shape "
            f"{amounts.shape}."
        )
    return amounts


def _gains(table: Floats, amounts: Floats | None) -> tuple[Floats, Floats]:
    left_alone = table[:, 0]
    with np.errstate(over="ignore"):
        gains = table[:, 1:] - left_alone[:, np.newaxis]
        if amounts is not None:
            forbidden = np.isneginf(gains)
            gains = np.where(forbidden, 0.0, gains) * amounts[:, np.newaxis]
            gains[forbidden] = -np.inf
            left_alone = left_alone * amounts
    overflown = np.isinf(gains) != np.isinf(table[:, 1:])
    if np.any(overflown) or not np.all(np.isfinite(left_alone)):
        raise ValueError(
            "values are too far apart for floating point: their differences, times case_values, "
            "exceed 1e308. Divide them by a constant; this does not change the best assignment."
        )
    return gains, left_alone


def _check_capacities(
    capacities: Sequence[Any], n: int, m: int, work: list[float] | None = None
) -> Ints:
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
    efforts: list[float | None] = [None] * m if work is None else [*work]
    limits = [
        _check_limit(f"capacities[{j}]", limit, n, effort)
        for j, (limit, effort) in enumerate(zip(given, efforts, strict=True))
    ]
    return np.array(limits, dtype=np.int64)


def _check_limit(name: str, limit: Any, n: int, effort: float | None = None) -> int:
    """Return how many of `n` rows a limit allows."""
    limit = in_flags(limit, effort)
    if isinstance(limit, Capacity):
        if limit.kind != "count" or limit.per is not None:
            raise CapacityError(
                f"A limit of an assignment is a number of rows, or a budget of work; got {limit!r}."
            )
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
    segments: ArrayLike | None, capacities: Segments | None, n: int, effort: float | None = None
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
        _check_segmentation(column, limits, effort)
        for column, limits in zip(columns, several, strict=True)
    )


def _check_segmentation(
    column: NDArray[Any], capacities: Limits, effort: float | None
) -> Segmentation:
    try:
        labels, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "segments must be of one type, all numbers or all texts, because they are sorted."
        ) from error
    limits = {
        label: _check_limit(f"segment_capacities[{label!r}]", limit, column.size, effort)
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
