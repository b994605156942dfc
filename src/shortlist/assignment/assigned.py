"""`assign`: the best column for each row within the limits of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Ints
from .._core.hashing import keys_by_id
from .._core.validation import check_ids, check_seed
from ._highs import solve_with_highs
from .integers import FixedPoint, PerLimit, solve_integers
from .problem import Problem, Segments, check_problem


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
    segment_prices : dict, or list of dicts
        The same for each segment; a list if several segmentations cross.
    """

    columns: Ints
    prices: Floats
    total_price: float
    segment_prices: dict[Any, float] | list[dict[Any, float]]
    problem: Problem = field(repr=False)

    @cached_property
    def value(self) -> float:
        """Sum of the chosen values."""
        return self.problem.value_of(self.columns)

    @cached_property
    def bound(self) -> float:
        """The prices prove that no assignment within the limits is worth more.

        It equals `value` up to rounding. If segmentations cross, `value` may be lower, because rows
        cannot be split.
        """
        problem = self.problem
        surplus = problem.gains - self.prices - self.total_price
        paid = problem.class_limits @ self.prices + problem.total * self.total_price
        named = self.segment_prices
        several = named if isinstance(named, list) else [named]
        for part, prices in zip(problem.segmentations, several, strict=False):
            own = np.array(list(prices.values()))
            surplus -= own[part.codes, np.newaxis]
            paid += part.limits @ own
        kept = np.maximum(surplus.max(axis=1, initial=0.0), 0.0)
        return float(problem.left_alone.sum() + paid + kept.sum())


def assign(
    values: ArrayLike,
    capacities: Sequence[Any],
    *,
    total: Any = None,
    segments: ArrayLike | None = None,
    segment_capacities: Segments | None = None,
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
    segments : array-like of shape (n_rows,) or (n_rows, q), default=None
        The segment of each row (a region, a team, a product), or q of them in q columns.
    segment_capacities : dict or list of q dicts, default=None
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
    keeps whole numbers exact. Columns, one segmentation and a total form a network. It is solved by
    successive best paths, in time about proportional to the rows, plus (segments × columns +
    columns²) for each flag. Several segmentations that cross do not form a network. SciPy's HiGHS
    solves them as a mixed-integer program, which takes much longer. The very first call compiles
    the solver, which takes about ten seconds.

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
    segment_capacities: Segments | None = None,
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
    keys = keys_by_id(check_ids(ids, problem.n_rows), seed=check_seed(random_state))
    if len(problem.segmentations) > 1:
        columns, prices = solve_with_highs(problem)
        m, sizes = problem.class_limits.size, [part.limits.size for part in problem.segmentations]
        by_segment = np.split(prices[m + 1 :], np.cumsum(sizes)[:-1])
        return _named(problem, columns, PerLimit(prices[:m], by_segment, float(prices[m])))
    scale, part = FixedPoint.for_gains(problem.gains), problem.one_segmentation
    limits = PerLimit(problem.class_limits, part.limits, problem.total)
    units = scale.to_integers(problem.gains)
    columns, found = solve_integers(units, limits, part.codes, keys)
    classes, segments, whole = (scale.to_floats(each) for each in found)
    return _named(problem, columns, PerLimit(classes, [segments], float(whole)))


def _named(problem: Problem, columns: Ints, prices: PerLimit) -> Assignment:
    """Return the assignment, with the names of the segments."""
    named = [
        dict(zip(part.labels.tolist(), own.tolist(), strict=True))
        for part, own in zip(problem.segmentations, prices.segments, strict=False)
    ]
    by_segment = named if len(named) > 1 else (named[0] if named else {})
    return Assignment(columns, prices.classes, prices.total, by_segment, problem)
