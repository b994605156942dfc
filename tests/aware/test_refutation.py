"""Refutations by codes are correct, whatever levels, tables and drifts are remembered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from shortlist.aware._coded_terms import (
    code_rare_sums,
    code_rare_term,
    code_sums,
    code_term,
    find_part,
)
from shortlist.aware._greedy import Sums, Terms, is_refuted, next_open, sums_by_order

N_TERMS, N_RARE, N_COMMON, WIDTH = 6, 8, 60, 25
SEEDS = st.integers(0, 2**32 - 1)


@njit
def refuted(term, terms, sums, n_needed, max_flags, scratch):
    """Call what is otherwise inlined."""
    return is_refuted(term, terms, sums, n_needed, max_flags, scratch)


def draw_state(rng, spread):
    """Draw terms and sums, with tables in a random order of the items and random levels."""
    rare, common = rng.normal(size=(N_TERMS, N_RARE)), rng.normal(size=(N_TERMS, N_COMMON))
    rare_sums = spread * rng.normal(size=N_RARE)
    common_sums = spread * rng.normal(size=N_COMMON)
    if rng.random() < 0.3:  # sums that differ by less than a part
        rare_sums[:] = common_sums[:N_RARE] - 1e-6 * rng.random(N_RARE)
        rare[:] = common[:, :N_RARE]
    base, part = float(rng.choice(common_sums)), find_part(common)
    codes = np.empty(common.shape, dtype=np.uint8)
    rare_codes = np.empty(rare.shape, dtype=np.uint8)
    units = np.empty(N_TERMS, dtype=np.int16)
    for term in range(N_TERMS):
        low, units[term] = code_term(common[term], part, codes[term])
        code_rare_term(rare[term], low, units[term], part, rare_codes[term])
    orders = np.argsort(rng.random((2, N_COMMON)))[:, :WIDTH].astype(np.uint32)
    used = rng.integers(-1, 2, size=N_TERMS)
    table = np.array([row[orders[order]] for row, order in zip(codes, used, strict=True)])
    levels = rng.integers(-100, 2**15, size=N_TERMS).astype(np.int16)
    levels[::2] = rng.integers(0, 4000, size=levels[::2].size)
    sum_codes = code_sums(common_sums, base, part)
    return (
        Terms(rare, common, rare_codes, codes, units, table, used, levels),
        Sums(
            rare_sums,
            common_sums,
            code_rare_sums(rare_sums, base, part),
            sum_codes,
            sums_by_order(sum_codes, orders, used),
            orders,
            part,
        ),
    )


def detects(term, terms, sums, n_needed, max_flags):
    """Return whether a term detects enough, by plain counting."""
    if n_needed > N_RARE:
        return False
    rare, common = sums.rare + terms.rare[term], sums.common + terms.common[term]
    value = np.sort(rare)[-n_needed]
    return np.count_nonzero(rare >= value) + np.count_nonzero(common >= value) <= max_flags


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1e4])
@given(SEEDS, st.integers(1, N_RARE + 1), st.integers(0, 40), st.integers(-40_000, 40_000))
@settings(max_examples=150)
def test_no_term_is_skipped_that_detects_enough(spread, seed, n_needed, max_flags, drift):
    """This holds for sums near the threshold and for sums outside the range of the codes."""
    terms, sums = draw_state(np.random.default_rng(seed), spread)
    leader, place, found = 3, -1, []
    while place < N_TERMS:
        needed = (n_needed, leader, n_needed + 1)
        place = next_open(np.arange(N_TERMS), place + 1, terms, sums, needed, max_flags, drift)
        found.append(place)
    for term in set(range(N_TERMS)) - set(found):
        assert not detects(term, terms, sums, n_needed + (term >= leader), max_flags)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1e4])
@given(SEEDS, st.integers(1, N_RARE + 1), st.integers(0, 40))
@settings(max_examples=150)
def test_no_term_is_refuted_that_detects_enough(spread, seed, n_needed, max_flags):
    """This also holds after a row of the table has been filled again."""
    terms, sums = draw_state(np.random.default_rng(seed), spread)
    scratch = np.empty(N_RARE, dtype=np.int16)
    for term in range(N_TERMS):
        for _ in range(2):
            if refuted(term, terms, sums, n_needed, max_flags, scratch):
                assert not detects(term, terms, sums, n_needed, max_flags)


def test_clear_cases_are_refuted():
    """A term that moves all common items above the rare ones detects nothing."""
    terms, sums = draw_state(np.random.default_rng(0), 1.0)
    terms.rare[2] -= 20
    low, unit = code_term(terms.common[2], sums.part, terms.codes[2])
    code_rare_term(terms.rare[2], low, unit, sums.part, terms.rare_codes[2])
    scratch = np.empty(N_RARE, dtype=np.int16)
    assert refuted(2, terms, sums, 1, 10, scratch)
    assert next_open(np.array([2]), 0, terms, sums, (1, 3, 2), 10, 0) == 1
