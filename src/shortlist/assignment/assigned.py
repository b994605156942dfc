"""`assign`: the best column for each row within the limits of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Ints
from .._core.ids import check_ids, keys_by_id
from .._core.validation import check_seed
from .integers import FixedPoint, PerLimit, solve_integers
from .problem import Problem, check_problem


@dataclass(frozen=True)
class Assignment:
    """The best assignment, and prices that prove it; made by :func:`solve_assignment`.

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
) -> Ints:
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

    Returns
    -------
    ndarray of int, shape (n_rows,)
        The column chosen for each row: an exact optimum.

    See Also
    --------
    shortlist.assignment.solve_assignment : The same, with prices that prove the optimum.

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
    """
    return solve_assignment(
        values,
        capacities,
        total=total,
        segments=segments,
        segment_capacities=segment_capacities,
        ids=ids,
        random_state=random_state,
    ).columns


def solve_assignment(
    values: ArrayLike,
    capacities: Sequence[Any],
    *,
    total: Any = None,
    segments: ArrayLike | None = None,
    segment_capacities: Mapping[Any, Any] | None = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
) -> Assignment:
    """Solve the problem of :func:`~shortlist.assign`, and return prices that prove the optimum.

    If a row, after paying the prices, is worth strictly more in one column than in all others, it
    has that column in every optimum. No assignment is worth more than `bound`.

    Parameters
    ----------
    values, capacities, total, segments, segment_capacities, ids, random_state
        As for :func:`~shortlist.assign`.

    Returns
    -------
    Assignment
        With `columns`, `value`, `prices`, `total_price`, `segment_prices` and `bound`.

    Examples
    --------
    One more place in column 1 is worth 3, because the third row would take it:

    >>> from shortlist.assignment import solve_assignment
    >>> found = solve_assignment([[0, 5, 1], [0, 6, 4], [0, 3, 0]], [1, 1])
    >>> found.columns.tolist(), found.value, found.bound
    ([1, 2, 0], 9.0, 9.0)
    >>> found.prices.tolist()
    [3.0, 0.0]
    """
    problem = check_problem(
        values,
        capacities,
        total=total,
        segments=segments,
        segment_capacities=segment_capacities,
    )
    keys = keys_by_id(check_ids(ids, len(problem.gains)), seed=check_seed(random_state))
    scale = FixedPoint.for_gains(problem.gains)
    units = scale.to_integers(problem.gains)
    columns, found = solve_integers(units, problem.limits, problem.segment_of, keys)
    prices = PerLimit(*(scale.to_floats(each) for each in found))
    flagged = np.flatnonzero(columns)
    return Assignment(
        columns,
        prices.classes,
        float(prices.total),
        dict(zip(problem.segment_names, prices.segments.tolist(), strict=False)),
        float(problem.left_alone.sum() + problem.gains[flagged, columns[flagged] - 1].sum()),
        _bound(problem, prices),
    )


def _bound(problem: Problem, prices: PerLimit) -> float:
    """Return what no assignment exceeds: the price of all limits, and what rows keep beyond it."""
    limits = problem.limits
    paid = limits.classes @ prices.classes + limits.segments @ prices.segments
    surplus = problem.gains - prices.classes - prices.segments[problem.segment_of, np.newaxis]
    kept = np.maximum(surplus.max(axis=1, initial=-np.inf) - prices.total, 0)
    return float(problem.left_alone.sum() + paid + limits.total * prices.total + kept.sum())
