"""Order statistics, fast and slow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist._core.ranking import Cut, cut_after, flag_above, nth_largest


@pytest.mark.parametrize("kind", ["distinct", "tied", "constant", "infinite", "float32", "sorted"])
def test_places_are_those_of_sorted_scores(rng, kind):
    """Every place of arrays of every kind is found."""
    scores = {
        "distinct": rng.normal(size=300),
        "tied": rng.integers(0, 4, size=300).astype(float),
        "constant": np.zeros(300),
        "infinite": rng.choice([-np.inf, 0.0, 1.0, np.inf], size=300),
        "float32": rng.normal(size=300).astype(np.float32),
        "sorted": np.arange(300.0),
    }[kind]
    expected = np.sort(scores)[::-1]
    assert_array_equal([nth_largest(scores, place) for place in range(300)], expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(-1, 41))
def test_a_cut_leaves_at_most_k_items_before_it(values, k):
    """With keys exactly k (all keys differ), without keys at most k."""
    scores = np.array(values, dtype=float)
    keys = np.random.default_rng(0).permutation(scores.size) / scores.size
    strict = flag_above(scores, cut_after(scores, k))
    filled = flag_above(scores, cut_after(scores, k, keys.__getitem__), keys.__getitem__)
    assert strict.sum() <= max(k, 0)
    assert filled.sum() == np.clip(k, 0, scores.size)
    assert not (strict & ~filled).any()


def test_a_score_on_the_threshold_is_not_above_it_after_rounding():
    """0.1 becomes 0.100000001490... in single precision; the next such number is above."""
    rounded = np.float32(0.1)
    scores = np.array([rounded, np.nextafter(rounded, np.float32(1))])
    assert flag_above(scores, Cut(0.1)).tolist() == [False, True]
    assert flag_above(scores, Cut(float(rounded))).tolist() == [False, True]
