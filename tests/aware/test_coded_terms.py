"""Codes of eight bits never count what does not hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist.aware._coded_terms import (
    HIGHEST,
    code_rare_sums,
    code_rare_term,
    code_sums,
    code_term,
    count_possible,
    count_sure,
    find_part,
    low_level,
    order_highest,
)

ELEMENTS = {
    "plain": st.floats(-10, 10),
    "tied": st.sampled_from([-1.0, -0.0, 0.0, 0.1, 0.2, 0.3]),
    "extreme": st.sampled_from([-1e308, -1e300, -1.0, 0.0, 1e-310, 1.0, 1e18, 1e300, 1e308]),
}
KINDS = pytest.mark.parametrize("kind", ELEMENTS)
MANY = 10**9


class Coded:
    """A term and sums of common and of rare items, with their codes."""

    def __init__(self, term, sums, base, *, rare_term=(), rare_sums=()):
        self.term, self.sums, self.base = term, sums, base
        self.part = find_part(term[np.newaxis])
        self.codes = np.empty(term.size, dtype=np.uint8)
        self.low, self.unit = code_term(term, self.part, self.codes)
        self.sum_codes = code_sums(sums, base, self.part)
        self.rare_codes = np.empty(len(rare_term), dtype=np.uint8)
        code_rare_term(np.array(rare_term), self.low, self.unit, self.part, self.rare_codes)
        self.rare_sum_codes = code_rare_sums(np.array(rare_sums), base, self.part)

    def n_sure(self, level):
        """Count the common items that certainly reach a level."""
        return count_sure(self.sum_codes, self.codes, self.unit, np.int16(level), MANY)

    def n_possible(self, level):
        """Count the rare items that may reach a level."""
        return count_possible(self.rare_sum_codes, self.rare_codes, self.unit, np.int16(level))


def draw_coded(data, kind, n_rare=8):
    """Draw and code numbers of a kind; some overflow, underflow or tie."""
    elements = ELEMENTS[kind]
    term, sums = (data.draw(hnp.arrays(np.float64, 20, elements=elements)) for _ in range(2))
    rare = [data.draw(hnp.arrays(np.float64, n_rare, elements=elements)) for _ in range(2)]
    coded = Coded(term, sums, data.draw(elements), rare_term=rare[0], rare_sums=rare[1])
    with np.errstate(over="ignore"):
        return coded, sums + term, rare[0] + rare[1]


@KINDS
@given(data=st.data())
@settings(max_examples=150)
def test_rare_sums_that_may_not_reach_a_level_lie_below_those_that_do(kind, data):
    """At least as many common sums as are counted lie at or above the highest such rare sum."""
    coded, sums, rare = draw_coded(data, kind)
    level = data.draw(st.integers(0, HIGHEST))
    below = np.sort(rare)[: rare.size - coded.n_possible(level)]
    if below.size:
        assert coded.n_sure(level) <= np.count_nonzero(sums >= below[-1])


@KINDS
@given(data=st.data())
@settings(max_examples=100)
def test_a_low_level_is_one_that_few_enough_may_reach(kind, data):
    """This holds from any guess, and a level 4 parts lower would not do."""
    coded, _, _ = draw_coded(data, kind)
    needed, guess = data.draw(st.integers(1, 9)), data.draw(st.integers(-100, 2**15 - 1))
    scratch = np.empty(8, dtype=np.int16)
    level = int(
        low_level(
            coded.rare_sum_codes, coded.rare_codes, coded.unit, needed, np.int16(guess), scratch
        )
    )
    if level <= HIGHEST:
        assert coded.n_possible(level) < needed
    if level >= 4:
        assert coded.n_possible(min(level, HIGHEST + 1) - 4) >= needed


def test_nearly_all_sums_that_may_reach_a_level_are_counted():
    """Otherwise the codes would refute little: a unit is less than a hundredth of the range."""
    rng = np.random.default_rng(0)
    term, sums = rng.normal(size=10_000), rng.normal(size=10_000)
    coded = Coded(term, sums, 1.0, rare_term=term, rare_sums=sums)
    value = 1.5
    level = int((value - coded.base - coded.low) / coded.part)
    truth = np.count_nonzero(sums + term >= value)
    assert 0.95 * truth < coded.n_sure(level) < truth < coded.n_possible(level) < 1.05 * truth


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.floats(-10, 10))
def test_sums_are_rounded_down_where_common_and_up_where_rare(sums, base):
    """The codes differ by at most two parts; values outside the range are clipped."""
    sums, part = np.array(sums), 0.01
    inside = np.abs(sums - base) < 100
    low, high = code_sums(sums, base, part), code_rare_sums(sums, base, part)
    parts = (sums - base) / part
    tiny = 1e-9 * (1 + np.abs(parts))
    assert np.all((low <= parts + tiny)[inside] & (high >= parts - tiny)[inside])
    assert np.all((high - low.astype(int) <= 2)[inside])


def test_narrow_terms_have_finer_units():
    """Their codes then resolve them as well as wide ones."""
    term = np.linspace(0, 1, 1000)
    part = find_part(np.vstack([term, term / 10]))
    codes = np.empty(1000, dtype=np.uint8)
    units = [code_term(some, part, codes)[1] for some in (term, term / 10)]
    assert units[0] > 5 * units[1]


def test_counting_stops_soon_after_enough():
    """Counting stops at the end of the block in which enough were found."""
    sums, term = np.zeros(10_000, dtype=np.int16), np.ones(10_000, dtype=np.uint8)
    assert 10 < count_sure(sums, term, np.int16(1), np.int16(1), 10) < 1000


@given(st.lists(st.integers(-(2**14), HIGHEST), min_size=1, max_size=50), st.integers(0, 50))
def test_the_highest_sums_come_first(codes, n_places):
    """The order is exact up to 7 parts, and no item occurs twice."""
    codes = np.array(codes, dtype=np.int16)
    places = np.empty(min(n_places, codes.size), dtype=np.uint32)
    order_highest(codes, places)
    assert np.unique(places).size == places.size
    taken = codes[places].astype(int)
    assert np.all(np.diff(taken) < 8)
    left = np.delete(codes, places)
    if taken.size and left.size:
        assert left.max() < taken.min() + 8


def test_nothing_to_code_is_no_error():
    """Without terms, or without common items, a part has length 1."""
    assert_array_equal([find_part(np.empty(shape)) for shape in ((0, 5), (5, 0))], 1.0)
