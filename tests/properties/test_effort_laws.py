"""Laws of lists with values and efforts, for inputs that nobody imagined."""

import warnings
from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist import Capacity, calibrate_threshold, select
from shortlist._core import work
from shortlist._core.work import count_in_units

PROBABILITIES = st.sampled_from([0, 0.01, 0.1, 0.2, 0.3, 0.5, 0.7, 1]) | st.floats(0, 1)
VALUES = st.integers(0, 50) | st.floats(0, 1e6)
EFFORTS = st.sampled_from([0.1, 0.2, 0.5, 1, 5, 20, 60]) | st.floats(0.01, 1e4)
SHORT_EFFORTS = st.integers(1, 600).map(lambda tenths: tenths / 10)
BUDGETS = st.integers(0, 500).map(lambda tenths: tenths / 10)


def columns(*kinds, max_size=30):
    """Return lists of the same length, one of each kind."""
    return st.lists(st.tuples(*kinds), min_size=1, max_size=max_size).map(
        lambda rows: [np.array(column, dtype=float) for column in zip(*rows, strict=True)]
    )


@given(columns(PROBABILITIES, VALUES, EFFORTS), BUDGETS, st.none() | st.floats(0, 10))
def test_the_budget_is_never_exceeded(items, budget, worth):
    """In exact arithmetic, the flagged work fits into the budget."""
    p, values, efforts = items
    flagged = select(p, Capacity.effort(budget), values=values, efforts=efforts, worth=worth)
    assert sum(Fraction(float(e)) for e in efforts[flagged]) <= Fraction(str(budget)) + _noise(
        efforts[flagged]
    )


def _noise(efforts):
    """Short decimals are read as written, and their binary neighbours may be a little larger."""
    return sum(abs(Fraction(float(e)) - Fraction(str(float(e)))) for e in efforts)


def test_an_effort_of_many_digits_leaves_the_others_as_they_are():
    """Beside 1/3, three efforts of 0.1 still fit into 0.3."""
    options = {"efforts": [0.1, 0.1, 0.1, 1 / 3], "return_details": True}
    found = select([0.9, 0.9, 0.9, 0.9], Capacity.effort(0.3), **options)
    assert found.flagged.tolist() == [True, True, True, False]
    assert (found.used, found.gap) == (0.3, 0)


@settings(max_examples=60)
@given(
    columns(PROBABILITIES, VALUES, st.sampled_from([0.1, 0.2, 1 / 3, 2 / 3, 1 / 7]), max_size=9),
    st.data(),
)
def test_efforts_of_many_digits_are_summed_as_they_are_written(items, data):
    """Also within a budget that some of them fill to the last digit: no list gains more."""
    p, values, efforts = items
    exact = np.array([Fraction(str(e)) for e in efforts.tolist()], dtype=object)
    some = data.draw(st.lists(st.sampled_from(range(p.size)), unique=True))
    limit = Capacity.effort(sum(exact[some], start=Fraction(0)))
    found = select(p, limit, values=values, efforts=efforts, return_details=True)
    assert exact[found.flagged].sum() <= limit.value
    lists = np.array(list(product([False, True], repeat=p.size)))
    best = max((p * values)[each].sum() for each in lists if exact[each].sum() <= limit.value)
    assert np.isclose(found.gain, best, rtol=1e-9, atol=1e-12)


@given(columns(EFFORTS | st.floats(1e-9, 1e15)))
def test_units_never_understate_an_effort(items):
    """Exactly, as it is written, and by less than one unit more; sums have room."""
    (efforts,) = items
    units = count_in_units(efforts)
    for count, effort in zip(units.efforts.tolist(), efforts.tolist(), strict=True):
        assert 0 <= count * units.unit - Fraction(str(effort)) < units.unit
    assert sum(units.efforts.tolist()) < 2**63


@given(columns(EFFORTS), st.sampled_from([1e-30, 1e-3, 1.0, 1e30]))
def test_units_of_very_many_efforts_never_understate_one(items, size):
    """They are rounded up, by about the last digit of a number."""
    efforts = items[0] * size
    with mock.patch.object(work, "_MANY", 0):
        units = count_in_units(efforts)
    for count, effort in zip(units.efforts.tolist(), efforts.tolist(), strict=True):
        exact = Fraction(str(effort))
        assert 0 <= count * units.unit - exact <= 2 * units.unit + exact / 2**49


@given(columns(PROBABILITIES, VALUES, SHORT_EFFORTS), BUDGETS)
def test_decimals_are_summed_as_they_are_written(items, budget):
    """Three efforts of 0.1 fit into 0.3, and nothing more does."""
    p, values, efforts = items
    flagged = select(p, Capacity.effort(budget), values=values, efforts=efforts)
    assert sum(Fraction(str(e)) for e in efforts[flagged]) <= Fraction(str(budget))


@settings(max_examples=60)
@given(columns(PROBABILITIES, VALUES, SHORT_EFFORTS, max_size=9), BUDGETS)
def test_small_batches_are_solved_exactly(items, budget):
    """No list within the budget has a larger expected value."""
    p, values, efforts = items
    found = select(p, Capacity.effort(budget), values=values, efforts=efforts, return_details=True)
    tenths, room = np.rint(efforts * 10).astype(int), round(budget * 10)
    lists = np.array(list(product([False, True], repeat=p.size)))
    best = max((p * values)[each].sum() for each in lists if tenths[each].sum() <= room)
    assert np.isclose(found.gain, best, rtol=1e-9, atol=1e-12)
    assert found.gap == 0


@given(columns(st.floats(-5, 5), max_size=40), st.integers(0, 45), st.sampled_from([1, 3, 0.1]))
def test_equal_values_and_efforts_change_nothing(items, k, number):
    """The paper's case gives today's answer, whatever the scores are."""
    (scores,) = items
    same = np.full(scores.size, float(number))
    expected = select(scores, Capacity.count(k))
    assert_array_equal(select(scores, Capacity.count(k), values=same), expected)
    budget = Capacity.effort(Fraction(str(number)) * k)
    assert_array_equal(select(scores, budget, values=same, efforts=same), expected)
    assert_array_equal(select(scores, budget, efforts=same), expected)


@given(
    columns(PROBABILITIES, VALUES, SHORT_EFFORTS),
    BUDGETS,
    st.integers(-20, 20),
    st.randoms(use_true_random=False),
)
def test_neither_scale_nor_row_order_matters(items, budget, power, random):
    """Values in another currency and rows in another order give the same list."""
    p, values, efforts = items
    ids = np.array([f"case {i}" for i in range(p.size)])
    capacity = Capacity.effort(budget)
    flagged = select(p, capacity, values=values, efforts=efforts, ids=ids)
    scaled = select(p, capacity, values=values * 2.0**power, efforts=efforts, ids=ids)
    assert_array_equal(scaled, flagged)
    order = list(range(p.size))
    random.shuffle(order)
    shuffled = select(
        p[order], capacity, values=values[order], efforts=efforts[order], ids=ids[order]
    )
    assert_array_equal(shuffled, flagged[order])


@given(columns(PROBABILITIES, VALUES, SHORT_EFFORTS), BUDGETS, st.floats(0, 5))
def test_what_is_flagged_is_worth_it(items, budget, least):
    """No slot is used below the least worth."""
    p, values, efforts = items
    flagged = select(p, Capacity.effort(budget), values=values, efforts=efforts, worth=least)
    assert np.all((p * values / efforts)[flagged] >= least * (1 - 1e-9))
    likely = select(p, Capacity.count(5), worth=0.3)
    assert np.all(p[likely] >= 0.3 * (1 - 1e-9))


@settings(max_examples=25)
@given(columns(PROBABILITIES, st.floats(0.5, 1e4), EFFORTS, max_size=60), st.integers(-8, 8))
def test_a_threshold_does_not_depend_on_the_currency(items, power):
    """Values and worth in another currency flag the same items."""
    p, values, efforts = items
    options = {"efforts": efforts, "max_effort": float(efforts.max())}
    capacity, factor = Capacity.effort(float(efforts.mean()), per=2), 2.0**power
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (
            calibrate_threshold(p, capacity, values=values * by, worth=0.5 * by, **options).flag(
                p, values=values * by, efforts=efforts
            )
            for by in (1.0, factor)
        )
    assert_array_equal(one, other)
