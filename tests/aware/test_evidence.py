"""What out-of-sample scores say about detection, and when they say it clearly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from shortlist._core.folds import stratified_folds
from shortlist.aware._base import (
    detected,
    detected_within,
    preferred,
    wider_limits,
)


@given(
    hnp.arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, 1.0])),
    st.integers(0, 35),
)
def test_chances_add_up_to_the_places(scores, max_flags):
    """Over all items, the chances add up to the number of places, however scores tie."""
    chances = detected(scores, np.ones(scores.size, dtype=bool), max_flags)
    assert_allclose(chances.sum(), min(max_flags, scores.size))
    assert np.all((chances >= 0) & (chances <= 1))


def test_items_that_tie_for_the_last_place_share_it():
    """Two items share one place."""
    scores = np.array([3.0, 2.0, 2.0, 1.0])
    assert_array_equal(detected(scores, np.ones(4, dtype=bool), 2), [1, 0.5, 0.5, 0])


def test_wider_capacities_end_at_everything():
    """Eight times three exceed ten items."""
    assert wider_limits(3, n_items=10) == [3, 6, 10, 10]
    assert wider_limits(0, n_items=10) == [0, 0, 0, 0]


@given(
    hnp.arrays(np.float64, 12, elements=st.sampled_from([0.0, 0.5, 1.0])),
    st.lists(st.integers(0, 12), min_size=1, max_size=4),
)
def test_several_capacities_are_averaged(scores, limits):
    """The mean lies between the detections of the narrowest and the widest."""
    is_rare = np.arange(12) < 5
    found = detected_within(scores, is_rare, limits)
    assert np.all(found >= detected(scores, is_rare, min(limits)) - 1e-12)
    assert np.all(found <= detected(scores, is_rare, max(limits)) + 1e-12)


def test_a_lucky_difference_changes_nothing():
    """Two items more among a hundred are less than two standard errors."""
    preferred_one = np.repeat([1.0, 0.0], [30, 70])
    lucky = np.roll(preferred_one, 5)
    lucky[90:92] = 1.0
    assert preferred([preferred_one, lucky]) == 0


def test_a_clear_difference_counts():
    """It detects every other item in addition."""
    few, many = np.repeat([1.0, 0.0], [30, 70]), np.repeat([1.0, 0.0], [65, 35])
    assert preferred([few, many]) == 1
    assert preferred([many, few]) == 0


def test_one_rare_item_is_not_enough_evidence():
    """A single difference has no standard error."""
    assert preferred([np.zeros(1), np.ones(1)]) == 0


@given(st.integers(2, 40), st.integers(2, 60), st.integers(2, 7), st.integers(0, 99))
def test_folds_share_each_class_evenly(n_rare, n_common, n_folds, seed):
    """No fold has two more of either class than another."""
    is_rare = np.repeat([True, False], [n_rare, n_common])
    folds = stratified_folds(is_rare, n_folds, np.random.default_rng(seed))
    for kind in (is_rare, ~is_rare):
        counts = np.bincount(folds[kind], minlength=n_folds)
        assert counts.max() - counts.min() <= 1
