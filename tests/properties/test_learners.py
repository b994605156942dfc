"""Laws of the learners, for arbitrary inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from shortlist import Capacity, CapacityClassifier
from shortlist._core.folds import random_parts
from shortlist.learners import KernelDensityClassifier, KernelKNeighborsClassifier

# With few different values, copies, ties and constant features are common.
items = arrays(np.float64, st.tuples(st.just(40), st.integers(1, 3)), elements=st.integers(-2, 2))
labels = arrays(np.int64, 40, elements=st.integers(0, 1)).map(lambda y: np.r_[0, 0, 1, 1, y[4:]])


@pytest.mark.filterwarnings("ignore:The data were divided")
@settings(max_examples=50)
@given(
    X=items,
    y=labels,
    share=st.sampled_from([0.0, 0.05, 0.1, 0.5, 1.0]),
    ties=st.sampled_from(["exclude", "hash"]),
    tie_break=st.sampled_from(["smallest", "largest"]),
)
def test_calibration_items_stay_within_capacity(X, y, share, ties, tie_break):
    """This holds for any ties among the votes."""
    model = CapacityClassifier(
        KernelKNeighborsClassifier(range(1, 9), tie_break=tie_break),
        capacity=Capacity.fraction(share),
        rare_label=1,
        cv=0.5,
        ties=ties,
        random_state=0,
    ).fit(X, y, ids=np.arange(40) if ties == "hash" else None)
    ((_, held_out),) = random_parts(y, 0.5, np.random.default_rng(0))
    flagged = model.flag(X[held_out], ids=held_out if ties == "hash" else None)
    assert flagged.sum() <= Capacity.fraction(share).max_flags(held_out.size)


@settings(max_examples=50)
@given(X=items, y=labels, k=st.integers(1, 20))
def test_votes_are_shares(X, y, k):
    """They are not negative, not NaN, and sum to one."""
    shares = KernelKNeighborsClassifier(k).fit(X, y).predict_proba(X)
    assert (shares >= 0).all()
    assert_allclose(shares.sum(axis=1), 1)


@settings(max_examples=50)
@given(X=items, y=labels, far=st.floats(-1e6, 1e6))
def test_log_odds_are_always_finite(X, y, far):
    """This holds for any point."""
    model = KernelDensityClassifier(0.5).fit(X, y)
    assert np.isfinite(model.decision_function(X + far)).all()
