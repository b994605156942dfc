"""Halves that change places, with some items left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist.aware._swaps import draw_swaps


@given(
    n_rare=st.integers(3, 20),
    n_common=st.integers(3, 40),
    n_swaps=st.integers(1, 7),
    leave_out=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_swap_uses_every_row_once(n_rare, n_common, n_swaps, leave_out, seed):
    """A row is fitted on, chosen on or left out, and both classes are there to fit and choose."""
    is_rare = np.arange(2 * max(n_rare, n_common)) % 2 == 1
    kinds = np.flatnonzero(is_rare)[:n_rare], np.flatnonzero(~is_rare)[:n_common]
    rows = np.sort(np.concatenate(kinds))
    swaps = draw_swaps(is_rare, rows, n_swaps, np.random.default_rng(seed), leave_out=leave_out)
    assert len(swaps) == n_swaps
    for swap in swaps:
        (first, second), turned = swap.pairs
        assert turned[0] is second
        assert turned[1] is first
        used = np.concatenate([first, second, swap.left_out])
        assert_array_equal(np.sort(used), rows)
        assert all(set(is_rare[half]) == {True, False} for half in (first, second))
        assert leave_out or not swap.left_out.size


@given(st.integers(3, 7), st.integers(0, 99))
def test_every_row_is_left_out_in_turn(n_swaps, seed):
    """By one swap and no other, so that each item speaks once."""
    rows = np.arange(40)
    swaps = draw_swaps(rows < 10, rows, n_swaps, np.random.default_rng(seed), leave_out=True)
    assert_array_equal(np.sort(np.concatenate([swap.left_out for swap in swaps])), rows)
