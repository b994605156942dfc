"""Splitting strata at random, in exact proportion."""

from __future__ import annotations

import numpy as np
import pytest

from shortlist._core.folds import hold_out


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.99])
def test_every_stratum_is_split_in_proportion(share):
    """Each item goes to one side, and each side gets some of every stratum."""
    strata = np.repeat([0, 1, 2], [1000, 50, 2])
    kept, held_out = hold_out(strata, share, np.random.default_rng(0))
    assert sorted([*kept, *held_out]) == list(range(strata.size))
    for code, size in enumerate([1000, 50, 2]):
        n_held_out = np.count_nonzero(strata[held_out] == code)
        assert n_held_out == min(max(round(share * size), 1), size - 1)


def test_all_subsets_are_equally_likely():
    """Of five items two are held out in ten ways, each in a tenth of the cases."""
    rng, n_draws = np.random.default_rng(0), 20_000
    held_out = np.stack([hold_out(np.zeros(5, int), 0.4, rng)[1] for _ in range(n_draws)])
    _, counts = np.unique(held_out, axis=0, return_counts=True)
    assert counts.size == 10
    # Chi-square with 9 degrees of freedom: above 33.7 with probability 1e-4.
    assert np.sum((counts - n_draws / 10) ** 2 / (n_draws / 10)) < 33.7


def test_the_split_does_not_follow_items_drawn_from_the_same_seed():
    """Simulated items and the split often share the seed 0, and must not share their coins."""
    coins = np.random.default_rng(0).random(1_000, dtype=np.float32) < 0.5
    _, held_out = hold_out(np.zeros(1_000, int), 0.5, np.random.default_rng(0))
    # Binomial(1000, 1/4): 250 with a standard deviation of 13.7.
    assert abs(np.count_nonzero(coins[held_out]) - 250) < 5 * 13.7


def test_a_stratum_that_nobody_belongs_to_is_passed_over():
    """Numbers of strata may have gaps."""
    kept, held_out = hold_out(np.array([0, 0, 2, 2]), 0.5, np.random.default_rng(0))
    assert (len(kept), len(held_out)) == (2, 2)
