"""`assign`: the best column for each row within the limits of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Ints, Rows
from .._core.ids import check_ids, keys_by_id
from .._core.validation import check_seed, name_rows
from ..capacity import Capacity, check_whole
from ..exceptions import CapacityError, CapacityTypeError
from .integers import FixedPoint, solve_integers


@dataclass(frozen=True)
class Assignment:
    """The best assignment, and prices that prove it; made by :func:`~shortlist.assign`.

    Attributes
    ----------
    columns : ndarray of int, shape (n_rows,)
        The column chosen for each row; 0 is "leave it".
    prices : ndarray of shape (n_columns - 1,)
        The value of one more unit of each column's capacity; 0 where the capacity is not used up.
    total_price : float
        The same for the total.
    segment_prices : dict
        The same for each segment.
    value : float
        Sum of the chosen values.
    bound : float
        The prices prove that no assignment within the limits is worth more. It equals `value` up
        to rounding.
    """

    columns: Ints
    prices: Floats
    total_price: float
    segment_prices: dict[Any, float]
    value: float
    bound: float


def assign(
    values: ArrayLike,
    capacities: Sequence[Any],
    *,
    total: Any = None,
    segments: ArrayLike | None = None,
    segment_capacities: Mapping[Any, Any] | None = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
    return_details: bool = False,
) -> Any:
    """Choose a column for each row within the limits: the sum of the chosen values is maximal.

    Parameters
    ----------
    values : array-like of shape (n_rows, m + 1)
        The value of each column for each row. Column 0 is "leave it" and has no limit. A row gets
        another column only if that column is worth more. Minus infinity forbids a column.
    capacities : sequence of m ints
        How many rows may get each of the other columns; `None` means no limit. A budget of work is
        a number of rows, too: ``Capacity.effort(480).as_flags(30)`` if each row takes 30.
    total : int, default=None
        How many rows may get any of the other columns.
    segments : array-like of shape (n_rows,), default=None
        The segment of each row (a region, a team, a product).
    segment_capacities : dict, default=None
        How many rows of each segment may get any of the other columns; `None` means no limit. Every
        segment that occurs must be named.
    ids : array-like of shape (n_rows,), default=None
        Identifiers that break ties, by a keyed hash; row positions by default.
    random_state : int, RandomState instance or None, default=None
        Key of the hash; `None` is a fixed key.
    return_details : bool, default=False
        Return an `Assignment` rather than the columns alone.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        The column chosen for each row: an exact optimum.
    Assignment
        With ``return_details=True``: `columns`, `value`, and prices that prove the optimum:
        `prices`, `total_price`, `segment_prices` and `bound`. If a row, after paying the prices, is
        worth strictly more in one column than in all others, it has that column in every optimum.
        No assignment is worth more than `bound`.

    Notes
    -----
    Values are compared as whole multiples of 2⁻⁴⁶ times the largest difference to column 0, which
    keeps whole numbers exact. Columns, segments and a total form a network. It is solved by
    successive best paths, in time about proportional to the rows, plus (segments × columns +
    columns²) for each flag. The very first call compiles the solver, which takes about ten seconds.

    Examples
    --------
    Both rows prefer column 1, which has room for one. The second row has the better alternative:

    >>> from shortlist import Capacity, assign
    >>> assign([[0, 5, 1], [0, 6, 4]], [1, 1]).tolist()
    [1, 2]
    >>> assign([[0, 5, 1], [0, 6, 4]], [1, 1], total=1).tolist()
    [0, 1]

    An inspection (column 1) takes 30 minutes, a call (column 2) takes 5, and there is an hour for
    each:

    >>> hour = Capacity.effort(60)
    >>> values = [[0, 5, 4], [0, 6, 4], [0, 7, 1]]
    >>> assign(values, [hour.as_flags(30), hour.as_flags(5)]).tolist()
    [2, 1, 1]

    Ten and two are at stake, and each region has one inspector:

    >>> import numpy as np
    >>> assign(
    ...     np.multiply([[0, 0.5], [0, 0.6], [0, 0.1]], [[10], [2], [2]]),
    ...     [None],
    ...     segments=["north", "north", "south"],
    ...     segment_capacities={"north": 1, "south": 1},
    ... ).tolist()
    [1, 0, 1]

    One more place in column 1 is worth 3, because the third row would take it:

    >>> found = assign([[0, 5, 1], [0, 6, 4], [0, 3, 0]], [1, 1], return_details=True)
    >>> found.columns.tolist(), found.value, found.bound, found.prices.tolist()
    ([1, 2, 0], 9.0, 9.0, [3.0, 0.0])
    """
    gains, left_alone = _check_values(values)
    n, m = gains.shape
    names, segment_of, by_segment = _check_segments(segments, segment_capacities, n)
    of_columns = _check_capacities(capacities, n, m)
    limits = np.array([*of_columns, *by_segment, check_limit("total", total, n)], dtype=np.int64)
    keys = keys_by_id(check_ids(ids, n), seed=check_seed(random_state))
    scale = FixedPoint.for_gains(gains)
    columns, found = solve_integers(scale.to_integers(gains), limits, segment_of, keys)
    if not return_details:
        return columns
    prices = scale.to_floats(found)
    flagged, alone = np.flatnonzero(columns), left_alone.sum()
    # No assignment exceeds the price of all limits, and what rows keep beyond it.
    surplus = gains - prices[:m] - (prices[m + segment_of] + prices[-1])[:, np.newaxis]
    kept = surplus.max(axis=1, initial=0).sum()
    return Assignment(
        columns,
        prices[:m],
        float(prices[-1]),
        dict(zip(names, prices[m:-1].tolist(), strict=False)),
        float(alone + gains[flagged, columns[flagged] - 1].sum()),
        float(alone + limits @ prices + kept),
    )


def _check_values(values: ArrayLike) -> tuple[Floats, Floats]:
    """Return the gains over column 0, and the values of that column."""
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
    with np.errstate(over="ignore"):
        gains = table[:, 1:] - table[:, :1]
    if np.any(np.isinf(gains) != np.isinf(table[:, 1:])):
        raise ValueError(
            "values are too far apart for floating point: their differences exceed 1e308. Divide "
            "them by a constant; this does not change the best assignment."
        )
    return gains, table[:, 0]


def _check_capacities(capacities: Sequence[Any], n: int, m: int) -> list[int]:
    is_listed = isinstance(capacities, Iterable) and not isinstance(capacities, Mapping)
    if not is_listed or len(capacities) != m:
        raise CapacityTypeError(
            f"capacities must be a sequence of {m} whole numbers, one for each of the {m} columns "
            f"of values after the first, which is 'leave it' and has no limit; got {capacities!r}."
        )
    return [check_limit(f"capacities[{j}]", limit, n) for j, limit in enumerate(capacities)]


def check_no_work(limit: Any) -> None:
    """Raise an error for a budget of work, which joint limits do not know."""
    if isinstance(limit, Capacity) and limit.kind == "effort":
        raise CapacityError(
            f"{limit!r} is a budget of work, and joint limits count rows. If each row takes the "
            f"same, say 30, pass {limit!r}.as_flags(30). Efforts that differ from row to row have "
            "no exact assignment: use select or CapacityClassifier for one class at a time."
        )


def check_limit(name: str, limit: Any, n: int) -> int:
    """Return how many of `n` rows a limit allows."""
    if isinstance(limit, Capacity):
        check_no_work(limit)
        if limit.kind != "count" or limit.per is not None:
            raise CapacityError(f"A limit of an assignment is a number of rows; got {limit!r}.")
        limit = int(limit.value)
    return n if limit is None else min(check_whole(name, limit), n)


def _check_segments(
    segments: ArrayLike | None, capacities: Mapping[Any, Any] | None, n: int
) -> tuple[list[Any], Rows, list[int]]:
    """Return the names of the segments, the number of each row's segment, and their limits."""
    if segments is None and capacities is None:
        return [], np.zeros(n, dtype=np.intp), [n]
    column = np.asarray(segments)
    if column.shape != (n,) or not isinstance(capacities, Mapping):
        raise ValueError(
            f"segments must name one segment for each of the {n} rows, and segment_capacities must "
            f"be a dict from segments to limits; got shape {column.shape} and {capacities!r}. Pass "
            "both, or neither."
        )
    try:
        labels, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError("segments must be all numbers or all texts: they are sorted.") from error
    limits = {
        label: check_limit(f"segment_capacities[{label!r}]", limit, n)
        for label, limit in capacities.items()
    }
    names = labels.tolist()
    unknown = [label for label in names if label not in limits]
    if unknown:
        raise CapacityError(
            f"segments holds {', '.join(map(repr, unknown[:5]))}, for which there is no limit in "
            "segment_capacities. Add these segments to it; None means no limit."
        )
    return names, codes, [limits[name] for name in names]
