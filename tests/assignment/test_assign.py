"""assign: exact optima, small enough to check by hand, and errors for invalid problems."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from assignment_by_highs import best_value
from shortlist import assign
from shortlist.assignment.integers import FixedPoint, solve_integers
from shortlist.exceptions import CapacityError


def test_a_row_makes_way_for_one_without_an_alternative():
    """A greedy choice would give column 1 to the second row, and be worth less."""
    assert_array_equal(assign([[0, 5, 0], [0, 6, 5]], [1, 1]), [1, 2])


def test_a_chain_of_rows_moves_on():
    """Each row gives up its first choice for the next, and the last is left alone."""
    values = [[0, 9, 8, 0], [0, 9, 0, 8], [0, 10, 0, 0], [0, 0, 9, 1]]
    found = assign(values, [1, 1, 1], return_details=True)
    assert_array_equal(found.columns, [0, 3, 1, 2])
    assert found.value == found.bound == 27


def test_leaving_alone_is_preferred_when_it_is_worth_as_much():
    """Only a strict gain uses capacity."""
    assert_array_equal(assign([[1, 1], [2, 1], [0, 1]], [3]), [0, 0, 1])


@pytest.mark.parametrize("values", [np.zeros((0, 3)), np.zeros((4, 1)), np.ones((0, 1))])
def test_no_rows_or_no_columns(values):
    """With nothing to choose from, nothing is chosen."""
    found = assign(values, [2] * (values.shape[1] - 1), return_details=True)
    assert_array_equal(found.columns, np.zeros(len(values)))
    assert found.value == found.bound == values[:, 0].sum()


def test_limits_of_zero_close_a_column_a_segment_or_everything():
    """Their price is the most that a row would pay."""
    values = [[0, 3, 1], [0, 2, 5]]
    closed = assign(values, [0, 1], return_details=True)
    assert_array_equal(closed.columns, [0, 2])
    assert closed.prices.tolist() == [3, 1]
    nothing = assign(values, [1, 1], total=0, return_details=True)
    assert_array_equal(nothing.columns, [0, 0])
    assert (nothing.total_price, nothing.bound) == (5, 0)
    segment = assign(
        values,
        [1, 1],
        segments=["a", "b"],
        segment_capacities={"a": 1, "b": 0},
        return_details=True,
    )
    assert_array_equal(segment.columns, [1, 0])
    assert segment.segment_prices == {"a": 0, "b": 5}


def test_minus_infinity_forbids_a_column():
    """A row that may get no other column is left alone, whatever that is worth."""
    values = [[0, -np.inf, 1], [-5, -np.inf, -np.inf]]
    assert_array_equal(assign(values, [2, 2]), [2, 0])


def test_all_values_equal_fill_the_limits_by_the_hash_of_the_ids():
    """Ties do not depend on the order of the rows."""
    ids = np.arange(100)
    columns = assign(np.tile([0.0, 1.0, 1.0], (100, 1)), [7, 5], ids=ids)
    assert np.bincount(columns).tolist() == [88, 7, 5]
    assert not columns[:12].all()
    again = assign(np.tile([0.0, 1.0, 1.0], (100, 1)), [7, 5], ids=ids[::-1])
    assert_array_equal(again[::-1], columns)
    other = assign(np.tile([0.0, 1.0, 1.0], (100, 1)), [7, 5], ids=ids, random_state=1)
    assert (other != columns).any()


def test_extreme_values_are_solved_exactly():
    """The fixed point adapts to the largest difference, however large or small."""
    for unit in (1e300, 1.0, 1e-300, 5e-324):
        assert_array_equal(assign(np.array([[0, 3, 1], [0, 4, 3]]) * unit, [1, 1]), [1, 2])
    with pytest.raises(ValueError, match="too far apart"):
        assign([[-1.7e308, 1.7e308]], [1])


VALUES = np.zeros((3, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: assign([1, 2], []), ValueError, "a row for each item"),
        (lambda: assign([[0, np.nan]], [1]), ValueError, "row 0. NaN and"),
        (lambda: assign([[0, np.inf]], [1]), ValueError, "cannot be summed"),
        (lambda: assign([[-np.inf, 0]], [1]), ValueError, "column other than 0"),
        (lambda: assign(VALUES, [1]), CapacityError, "each of the 2 columns"),
        (lambda: assign(VALUES, 1), CapacityError, "a sequence of 2 whole numbers"),
        (lambda: assign(VALUES, [1, 0.5]), CapacityError, r"capacities\[1\] must be a whole"),
        (lambda: assign(VALUES, [1, True]), CapacityError, "whole number"),
        (lambda: assign(VALUES, [1, -1]), CapacityError, "must not be negative"),
        (lambda: assign(VALUES, [1, 1], total=2.5), CapacityError, "total must be"),
        (lambda: assign(VALUES, [1, 1], segments=[1, 2, 3]), ValueError, "both, or neither"),
        (
            lambda: assign(VALUES, [1, 1], segment_capacities={1: 1}),
            ValueError,
            "both, or neither",
        ),
        (
            lambda: assign(VALUES, [1, 1], segments=[1, 2], segment_capacities={1: 1}),
            ValueError,
            "one segment for each of the 3 rows",
        ),
        (
            lambda: assign(VALUES, [1, 1], segments=[1, 1, 2], segment_capacities={1: 1}),
            CapacityError,
            "segments holds 2, for which there is no limit",
        ),
        (
            lambda: assign(
                VALUES, [1, 1], segments=np.array([1, "a", 2], object), segment_capacities={1: 1}
            ),
            ValueError,
            "all numbers or all texts",
        ),
        (
            lambda: assign(VALUES, [1, 1], segments=[1, 1, 2], segment_capacities={1: -1}),
            CapacityError,
            r"segment_capacities\[1\]",
        ),
    ],
)
def test_errors_say_what_to_do(call, error, message):
    """The message names the argument, its value and what is needed."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("n_segments", [1, 6])
@pytest.mark.parametrize("coarse", [True, False])
def test_hundreds_of_rows_that_compete(rng, n_segments, coarse):
    """Correlated columns make rows change their column many times; HiGHS agrees on the value."""
    for _ in range(5):
        values = rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, 5))
        values = np.round(2 * values) if coarse else values
        problem = {
            "capacities": rng.integers(10, 80, size=4).tolist(),
            "total": int(rng.integers(100, 250)),
            "segments": rng.integers(n_segments, size=400),
            "segment_capacities": {s: int(rng.integers(5, 60)) for s in range(n_segments)},
        }
        found = assign(values, **problem, return_details=True)
        assert found.value == pytest.approx(best_value(values, **problem), rel=1e-9)
        assert found.bound == pytest.approx(found.value, rel=1e-12)


def test_a_fixed_point_keeps_whole_numbers_and_forbidden_columns():
    """Whole numbers survive the way to units and back; minus infinity stays below everything."""
    gains = np.array([[3.0, -np.inf], [-7.0, 0.0]])
    scale = FixedPoint.for_gains(gains)
    units = scale.to_integers(gains)
    assert_array_equal(scale.to_floats(units[:, 0]), [3, -7])
    assert units[0, 1] < units[1].min()


@pytest.mark.parametrize("tie_keys", [None, lambda rows: -rows.astype(float)])
def test_whole_numbers_are_solved_with_ties_by_key_or_by_row(tie_keys):
    """The first row wins a tie without keys, the lowest key with them; the price is the same."""
    gains, limits = np.array([[2], [2], [2]]), np.array([1, 3, 3])
    columns, prices = solve_integers(gains, limits, np.zeros(3, dtype=np.intp), tie_keys)
    assert_array_equal(columns, [1, 0, 0] if tie_keys is None else [0, 0, 1])
    assert_array_equal(prices, [2, 0, 0])
