"""Codes of sixteen bits never claim more than is true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist.aware._coded_terms import (
    code_level,
    code_sums,
    code_terms,
    count_codes,
    round_up,
    take_columns,
)

ELEMENTS = {
    "plain": st.floats(-10, 10),
    "tied": st.sampled_from([-1.0, -0.0, 0.0, 0.1, 0.2, 0.3]),
    "extreme": st.sampled_from([-1e308, -1e300, -1.0, 0.0, 1e-310, 1.0, 1e18, 1e300, 1e308]),
}


def surely_reaching(terms, sums, base, level):
    """Count by codes the sums with each term that reach a level."""
    coded = code_terms(terms)
    sum_codes = code_sums(sums, base, coded.unit)
    return [
        count_codes(sum_codes, coded.codes[term], code_level(level, base, low, coded.unit), 10**9)
        for term, low in enumerate(coded.lows)
    ]


@pytest.mark.parametrize("kind", ELEMENTS)
@given(data=st.data())
@settings(max_examples=150)
def test_no_sum_is_counted_that_lies_below_the_level(kind, data):
    """Whatever the numbers, also where they overflow, vanish or tie with the level."""
    elements = ELEMENTS[kind]
    terms = data.draw(hnp.arrays(np.float64, (3, 20), elements=elements))
    sums = data.draw(hnp.arrays(np.float64, 20, elements=elements))
    base, level = data.draw(elements), data.draw(elements)
    with np.errstate(over="ignore"):
        truth = (sums + terms >= level).sum(axis=1)
    assert np.all(surely_reaching(terms, sums, base, level) <= truth)


def test_nearly_all_sums_above_a_level_are_counted():
    """Else nothing would be gained: a unit is a ten-thousandth of the range."""
    rng = np.random.default_rng(0)
    terms, sums = rng.gamma(0.5, size=(5, 10_000)), rng.normal(size=10_000)
    counted = surely_reaching(terms, sums, base=1.0, level=1.5)
    truth = (sums + terms >= 1.5).sum(axis=1)
    assert np.all(counted > 0.98 * truth)


def test_counting_stops_soon_after_enough():
    """At the end of the block in which there were enough."""
    sums, term = np.zeros(10_000, dtype=np.int16), np.ones(10_000, dtype=np.int16)
    assert 10 < count_codes(sums, term, np.int16(1), 10) < 1000


@given(hnp.arrays(np.float64, (2, 10), elements=ELEMENTS["extreme"] | ELEMENTS["plain"]))
def test_rounding_up_never_lowers(terms):
    """And is as close as single precision allows."""
    bounds = round_up(terms)
    assert bounds.dtype == np.float32
    assert np.all(bounds >= terms)
    with np.errstate(over="ignore"):
        assert np.all(np.nextafter(bounds, np.float32(-np.inf)) < terms)


def test_columns_are_taken_in_their_order():
    """The highest items first."""
    codes, table = np.arange(12, dtype=np.int16).reshape(2, 6), np.empty((2, 2), dtype=np.int16)
    take_columns(codes, np.array([4, 1], dtype=np.uint32), table)
    assert_array_equal(table, [[4, 1], [10, 7]])


def test_nothing_to_code_is_no_error():
    """No terms, or no common items."""
    for shape in ((0, 5), (5, 0)):
        assert code_terms(np.empty(shape)).codes.shape == shape
