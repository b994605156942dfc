"""Order statistics, fast and slow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist._core import ranking as _ranking
from shortlist._core.ranking import Cut, cut_after, flag_above, nth_largest


@pytest.fixture
def small_pieces(monkeypatch):
    """Make a small array take the path of a large one."""
    monkeypatch.setattr(_ranking, "_SORT_BELOW", 8)
    monkeypatch.setattr(_ranking, "_SAMPLE", 32)


@pytest.mark.parametrize("kind", ["distinct", "tied", "constant", "infinite", "float32", "sorted"])
def test_the_sampled_search_agrees_with_sorting(small_pieces, rng, kind):
    """Every place of arrays of every kind is found, also when the sample is far too small."""
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


def test_a_sample_that_sees_one_value_only(monkeypatch):
    """The bracket collapses on a block that does not hold the answer."""
    monkeypatch.setattr(_ranking, "_SORT_BELOW", 8)
    scores = np.r_[np.full(900, 5.0), np.ones(100)]
    monkeypatch.setattr(_ranking, "_bracket", lambda scores, place: (np.float64(5), np.float64(5)))
    assert nth_largest(scores, 899) == 5
    assert nth_largest(scores, 950) == 1


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
