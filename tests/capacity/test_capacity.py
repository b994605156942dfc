"""A capacity is a number with a unit, and its arithmetic is exact."""

import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import CapacityError


@pytest.mark.parametrize(
    ("fraction", "n", "flags"),
    [(0.29, 100, 29), (0.072, 375, 27), (0.0, 10, 0), (1.0, 10, 10), (0.5, 3, 1), (1e-9, 10, 0)],
)
def test_a_fraction_is_read_as_it_is_written(fraction, n, flags):
    """Decimals that binary floating point cannot hold give the number people expect."""
    assert Capacity.fraction(fraction).max_flags(n) == flags


@given(thousandths=st.integers(0, 1000), n=st.integers(0, 100_000))
def test_the_floor_agrees_with_decimal_arithmetic(thousandths, n):
    """No fraction with three decimals is ever rounded the wrong way."""
    exact = Decimal(thousandths) / 1000 * n
    assert Capacity.fraction(thousandths / 1000).max_flags(n) == int(exact)


def test_a_multiple_counts_in_units_of_the_prevalence():
    """The example of the paper: 10,000 clients, two per cent rare, b = 3."""
    assert Capacity.multiple(3).max_flags(10_000, prevalence=0.02) == 600
    assert Capacity.multiple(3).as_fraction(prevalence=0.02) == 0.06


def test_an_exact_prevalence_is_used_exactly():
    """One third has no finite decimal, but three times one third is one."""
    assert Capacity.multiple(3).max_flags(3, prevalence=Fraction(1, 3)) == 3


def test_a_count_works_where_the_number_of_items_is_known():
    """Fifty scans a day are fifty, or everyone when fewer come."""
    assert Capacity.count(50).max_flags(1_000) == 50
    assert Capacity.count(50).max_flags(20) == 20


def test_a_count_per_items_is_a_rate():
    """Six hundred per ten thousand are sixty per thousand."""
    assert Capacity.count(600, per=10_000).as_fraction() == 0.06
    assert Capacity.count(600, per=10_000).max_flags(1_000) == 60


def test_a_bare_count_is_no_rate():
    """Where a rate is needed, the complaint says how to write one."""
    with pytest.raises(CapacityError, match="per="):
        Capacity.count(50).as_fraction()


def test_a_multiple_without_prevalence_says_what_is_missing():
    """The complaint names the argument."""
    with pytest.raises(CapacityError, match="prevalence="):
        Capacity.multiple(2).max_flags(100)


def test_more_than_everything_is_impossible():
    """b times the prevalence cannot exceed one."""
    with pytest.raises(CapacityError, match="at most 1 / prevalence"):
        Capacity.multiple(3).as_fraction(prevalence=0.5)
    assert Capacity.multiple(2).as_fraction(prevalence=0.5) == 1.0


@pytest.mark.parametrize("bad", [-1, -0.1, float("nan"), float("inf"), True, np.True_, "3", None])
@pytest.mark.parametrize("make", [Capacity.multiple, Capacity.fraction, Capacity.count])
def test_what_is_not_a_capacity_is_an_error(make, bad):
    """Negatives, NaN, infinity, booleans and strings are refused."""
    with pytest.raises((ValueError, TypeError)):
        make(bad)


@pytest.mark.parametrize("bad", [1.5, "10", True, 0, -1, 40])
def test_a_count_needs_a_sensible_reference(bad):
    """`per` is a whole number no smaller than the count."""
    with pytest.raises((ValueError, TypeError)):
        Capacity.count(50, per=bad)


def test_a_fraction_above_one_suggests_what_was_meant():
    """Someone who writes 5 for 5 % or for five items gets both answers."""
    with pytest.raises(CapacityError, match=r"Capacity.count\(5\).*Capacity.fraction\(0.05\)"):
        Capacity.fraction(5)


def test_capacities_are_values():
    """Equal, hashable, immutable, and shown as they are written."""
    assert Capacity.multiple(2) == Capacity.multiple(2.0)
    assert len({Capacity.count(5), Capacity.count(5), Capacity.count(5, per=10)}) == 2
    assert repr(Capacity.count(600, per=10_000)) == "Capacity.count(600, per=10000)"
    assert eval(repr(Capacity.fraction(0.29))) == Capacity.fraction(0.29)
    assert Capacity.fraction(np.float32(0.29)) == Capacity.fraction(0.29)
    with pytest.raises(AttributeError):
        Capacity.count(5).value = 6
    capacity = Capacity.multiple(2)
    assert copy.deepcopy(capacity) == pickle.loads(pickle.dumps(capacity)) == capacity


@given(
    b=st.floats(0, 5, allow_nan=False),
    prevalence=st.floats(0, 0.2, allow_nan=False),
    n=st.integers(0, 10_000),
)
def test_flags_never_exceed_the_capacity(b, prevalence, n):
    """The floor is a floor, in exact arithmetic."""
    capacity = Capacity.multiple(b)
    limit = Fraction(str(b)) * Fraction(str(prevalence)) * n
    assert 0 <= capacity.max_flags(n, prevalence) <= limit < capacity.max_flags(n, prevalence) + 1


@pytest.mark.parametrize(
    "capacity",
    [
        Capacity.count(50),
        Capacity.count(50, per=1_000),
        Capacity.fraction(0.29),
        Capacity.multiple(Fraction(1, 3)),
    ],
)
def test_a_capacity_survives_json(capacity):
    """What is written to a file is read as the same capacity."""
    assert Capacity.from_json(json.loads(json.dumps(capacity.to_json()))) == capacity


@pytest.mark.parametrize(
    "form",
    [
        None,
        ["count", 50, None],
        {"kind": "count", "value": 50},
        {"kind": "count", "value": -1, "per": None},
        {"kind": "share", "value": 1, "per": None},
        {"kind": "fraction", "value": "1/0", "per": None},
        {"kind": "fraction", "value": "a third", "per": None},
        {"kind": "fraction", "value": None, "per": None},
    ],
)
def test_what_is_no_capacity_is_refused(form):
    """A damaged file gives an error that shows what was read."""
    with pytest.raises(CapacityError):
        Capacity.from_json(form)


def test_a_budget_of_work_is_exact_and_goes_through_json():
    """Budgets read decimals as they are written, and refuse what needs a number of flags."""
    budget = Capacity.effort(0.3, per=10)
    assert budget.max_effort(10) == Fraction(3, 10)
    assert budget.effort_per_item() == Fraction(3, 100)
    assert Capacity.from_json(budget.to_json()) == budget
    assert repr(Capacity.effort(480)) == "Capacity.effort(480)"
    for wrong in (lambda: budget.max_flags(10), lambda: budget.as_fraction(0.1)):
        with pytest.raises(CapacityError, match="is a budget of work"):
            wrong()
    with pytest.raises(CapacityError, match="limits the number of flags"):
        Capacity.count(5).max_effort(10)
    with pytest.raises(CapacityError, match="a rate is needed here"):
        Capacity.effort(480).effort_per_item()
    for bad in (-1, np.inf, "8h", True):
        with pytest.raises((ValueError, TypeError)):
            Capacity.effort(bad)
    with pytest.raises(CapacityError, match="at least one item"):
        Capacity.effort(5, per=0)
