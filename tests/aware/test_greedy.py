"""The quick search finds the path of the plain search."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist.aware._greedy import greedy_path


def detections(scores, n_rare, limits):
    """Count the rare items strictly above the first score that is left out, for each limit."""
    n = scores.size
    cuts = [np.partition(scores, n - k - 1)[n - k - 1] if k < n else -np.inf for k in limits]
    return tuple(int(np.count_nonzero(scores[:n_rare] > cut)) for cut in cuts)


def plain_path(rare, common, limits, n_steps):
    """Try every term at every step; the first of the best wins."""
    terms, total, path = np.hstack([rare, common]), 0.0, []
    left = list(range(len(terms)))
    for _ in range(min(n_steps, len(terms))):
        found = {i: detections(total + terms[i], rare.shape[1], limits) for i in left}
        best = max(left, key=lambda i: (found[i], -i))
        path.append((best, found[best][0]))
        left.remove(best)
        total = total + terms[best]
    return path


def assert_same_path(rare, common, limits, n_steps):
    """The search finds the terms and counts of the plain one."""
    path = greedy_path(rare, common, limits, n_steps=n_steps)
    expected = plain_path(rare, common, limits, n_steps)
    assert list(zip(path.chosen.tolist(), path.detected.tolist(), strict=True)) == expected


@st.composite
def problems(draw, elements):
    """Draw terms of some rare and common items, and limits that may exceed their number."""
    n_terms, n_rare = draw(st.integers(1, 12)), draw(st.integers(1, 10))
    n_common = draw(st.integers(1, 30))
    terms = draw(hnp.arrays(np.float64, (n_terms, n_rare + n_common), elements=elements))
    limits = draw(st.lists(st.integers(0, n_rare + n_common + 2), min_size=1, max_size=3))
    return terms[:, :n_rare].copy(), terms[:, n_rare:].copy(), limits


@given(problems(st.floats(-10, 10)), st.integers(1, 8))
def test_the_path_is_that_of_the_plain_search(problem, n_steps):
    """This holds for any terms."""
    assert_same_path(*problem, n_steps)


@given(problems(st.sampled_from([-1.0, -0.0, 0.0, 0.1, 0.2, 0.3])), st.integers(1, 12))
@settings(max_examples=300)
def test_the_path_is_the_same_where_nearly_everything_ties(problem, n_steps):
    """Items tie, terms tie, and some sums differ only by rounding."""
    assert_same_path(*problem, n_steps)


@given(problems(st.sampled_from([-1e300, -1.0, 1e-310, 1.0, 1e18, 1e300])), st.integers(1, 8))
def test_the_path_is_the_same_for_huge_and_tiny_terms(problem, n_steps):
    """Some values exceed single precision, and some sums lose their smaller part."""
    assert_same_path(*problem, n_steps)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 40, 120]), st.booleans())
@settings(max_examples=20)
def test_the_path_is_the_same_at_a_realistic_size(seed, max_flags, is_coarse):
    """There are many items, with and without ties."""
    rng = np.random.default_rng(seed)
    terms = rng.gamma(0.3, size=(40, 800)) * rng.choice([-1, 1], size=(40, 1))
    terms[:, :25] += 0.3 * rng.random((40, 25))
    terms = np.round(terms, 1) if is_coarse else terms
    rare, common = terms[:, :25].copy(), terms[:, 25:].copy()
    assert_same_path(rare, common, [max_flags], 25)
    assert_same_path(rare, common, [max_flags, 2 * max_flags], 6)


def test_ties_go_to_the_term_that_comes_first():
    """Three equal terms are taken in their order."""
    path = greedy_path(np.ones((3, 2)), np.zeros((3, 5)), 2, n_steps=3)
    assert_array_equal(path.chosen, [0, 1, 2])
    assert_array_equal(path.detected, [2, 2, 2])


def test_a_wider_limit_breaks_ties():
    """Both terms detect one item at one flag; the second detects the other one at two flags."""
    rare, common = np.array([[3.0, 0.0], [3.0, 2.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    assert_array_equal(greedy_path(rare, common, 1, n_steps=1).chosen, [0])
    assert_array_equal(greedy_path(rare, common, [1, 2], n_steps=1).chosen, [1])


def test_without_room_nothing_is_detected():
    """No flags, no detections; the first terms are taken."""
    path = greedy_path(np.ones((2, 1)), np.zeros((2, 3)), 0, n_steps=5)
    assert_array_equal(path.chosen, [0, 1])
    assert_array_equal(path.detected, [0, 0])


def test_there_may_be_no_items_of_a_kind():
    """Without common items, every flag detects a rare item; without rare items, none does."""
    path = greedy_path(np.array([[1.0, 2.0], [2.0, 1.0]]), np.empty((2, 0)), 1, n_steps=2)
    assert_array_equal(path.detected, [1, 0])
    path = greedy_path(np.empty((2, 0)), np.ones((2, 3)), 1, n_steps=2)
    assert_array_equal(path.detected, [0, 0])
