"""Lifting scores to a grid keeps their order and forgets their last bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist._core.ranking import lift

scores_64 = hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(allow_nan=False))
scores_32 = hnp.arrays(
    np.float32, st.integers(1, 20), elements=st.floats(allow_nan=False, width=32)
)


@given(scores_64 | scores_32)
def test_lifting_goes_up_a_little_and_keeps_the_order(scores):
    """At most 1e-10 of the score (1e-5 in single precision); twice is once."""
    lifted = lift(scores)
    assert lifted.dtype == scores.dtype
    assert (lifted >= scores).all()
    ranked = lifted[np.argsort(scores)]
    assert (ranked[1:] >= ranked[:-1]).all()
    assert_array_equal(lift(lifted), lifted)
    tiny = np.finfo(scores.dtype).tiny
    ordinary = np.isfinite(lifted) & (np.abs(scores) > tiny)
    step = 1e-10 if scores.dtype == np.float64 else 1e-5
    with np.errstate(over="ignore", invalid="ignore"):
        assert (np.abs(lifted - scores) <= step * np.abs(scores))[ordinary].all()


@given(scores_64, st.floats(allow_nan=False))
def test_a_grid_point_cuts_lifted_and_plain_scores_alike(scores, value):
    """So a threshold on the grid needs no lifting in use."""
    (point,) = lift(np.array([value]))
    if np.isfinite(point):
        assert_array_equal(scores > point, lift(scores) > point)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_numbers_models_like_lie_well_inside_a_cell(dtype):
    """Three units in the last place either way do not matter for fractions of up to 500 trees."""
    for trees in (1, 2, 5, 10, 40, 64, 100, 128, 500):
        shares = (np.arange(1, trees + 1) / trees).astype(dtype)
        wobbled = [shares]
        for direction in (0, 2):
            moved = shares
            for _ in range(3):
                moved = np.nextafter(moved, dtype(direction))
            wobbled.append(moved)
        steady = [lift(values) for values in wobbled]
        same = (steady[0] == steady[1]) & (steady[0] == steady[2])
        # A cell has 65,536 numbers in double precision, 64 in single: chance allows a few.
        assert same.mean() > (0.999 if dtype is np.float64 else 0.85)


@given(scores_64 | scores_32)
def test_a_score_is_lifted_alone_as_in_a_batch(scores):
    """Infinities too, which stay what they are, whatever stands beside them."""
    alone = np.concatenate([lift(scores[[place]]) for place in range(scores.size)])
    assert_array_equal(lift(scores), alone)
    assert_array_equal(np.isneginf(lift(scores)), np.isneginf(scores))
