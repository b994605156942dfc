"""The plug-in threshold is what the paper's formulas mean, written out."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from shortlist import Capacity, CapacityClassifier, calibrate_threshold
from shortlist.theory import empirical_loss

SAMPLES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.7, 0.9]) | st.floats(0, 1), st.booleans()),
    min_size=2,
    max_size=30,
)


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@given(sample=SAMPLES, pi0=st.floats(0.01, 0.4), b=st.floats(0.1, 2.5))
@settings(deadline=None)
def test_the_threshold_has_the_least_loss_within_the_capacity(sample, pi0, b):
    """The least of F̂ in Proposition 3, and argmax of P̂₀₀(t) with P̂(t) ≤ bπ₀, for any ties."""
    scores, is_rare = map(np.array, zip(*sample, strict=True))
    assume(is_rare.any())
    y = np.where(is_rare, 0, 1)
    capacity = b * pi0
    levels = [-math.inf, *np.unique(scores)]
    within = [t for t in levels if np.mean(scores > t) <= capacity + 1e-12]
    assume(all(abs(np.mean(scores > t) - capacity) > 1e-9 for t in levels))  # no rounding
    best = calibrate_threshold(
        scores, Capacity.multiple(b), prevalence=pi0, guarantee="plug-in", ties="exclude"
    )
    flagged = best.flag(scores)
    np.testing.assert_array_equal(flagged, scores > min(within))
    losses = [empirical_loss(y, np.where(scores > t, 0, 1), rare_label=0) for t in within]
    assert empirical_loss(y, np.where(flagged, 0, 1), rare_label=0) == min(losses)
    # Read literally, the smallest level with P̂ - bπ₀ ≥ 0 flags everything, where anything is.
    literal = [t for t in levels if np.mean(scores > t) - capacity >= 0]
    assert (min(literal, default=math.inf) == -math.inf) == (capacity <= 1)


def test_votes_of_neighbours(rng):
    """The largest a₀ within the capacity, where M₀ > M₁ flags: that is η̂ > 1 - a₀."""
    X = rng.normal(size=(900, 2))
    y = np.where(X[:, 0] + rng.normal(size=900) > 2, 0, 1)
    neighbours = KNeighborsClassifier(15).fit(X[:300], y[:300])

    def flags(a0, X):
        votes = y[neighbours.kneighbors(X, return_distance=False)]
        return a0 * (votes == 0).mean(axis=1) > (1 - a0) * (votes == 1).mean(axis=1)

    # Between the values 1 - j / 15 at which the flags change.
    grid = 1 - (np.arange(16) + 0.5) / 15
    within = [a0 for a0 in grid if flags(a0, X[300:600]).mean() <= 2 * 0.1]
    by_capacity = CapacityClassifier(
        FrozenEstimator(neighbours),
        capacity=Capacity.multiple(2),
        prevalence=0.1,
        guarantee="plug-in",
        ties="exclude",
    ).fit(X[300:600], y[300:600])
    found = by_capacity.predict(X[600:]) == 0
    np.testing.assert_array_equal(found, flags(max(within), X[600:]))
    assert abs(1 - by_capacity.threshold_ - max(within)) <= 1 / 15
    assert found.any()


def test_a_score_without_free_parameters_leaves_only_the_threshold(rng):
    """Proposition 4: the classifier is its score, cut post hoc."""
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] + rng.normal(size=600) > 2, 0, 1)
    model = LogisticRegression().fit(X[:200], y[:200])
    by_capacity = CapacityClassifier(
        FrozenEstimator(model),
        capacity=Capacity.multiple(2),
        prevalence=0.1,
        guarantee="plug-in",
        ties="exclude",
    ).fit(X[200:400], y[200:400])
    cut = np.sort(model.predict_proba(X[200:400])[:, 0])[::-1][40]  # the first of 200 left out
    flags = model.predict_proba(X[400:])[:, 0] > cut
    np.testing.assert_array_equal(by_capacity.predict(X[400:]) == 0, flags)
    assert 0 < flags.sum() < 200
