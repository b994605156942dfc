"""A linear score learned for a capacity."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, select
from shortlist._core.folds import random_parts
from shortlist.aware import CapacityAwareLinearClassifier

CAPACITY = Capacity.fraction(0.04)


@pytest.fixture(scope="module")
def data():
    """Return 6,000 items of which the rare ones come in two kinds.

    Half of them stand far out in the first feature, where few others are. The rest have a little
    more of the second one, which is of no use at the top of the ranking.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    X[:120, 0] += 3
    X[120:240, 1] += 1.5
    X[:, 2] *= 1000
    return X, np.arange(6000) < 240


def fit(data, **options):
    """Fit with a seed."""
    return CapacityAwareLinearClassifier(CAPACITY, random_state=0, **options).fit(*data)


def test_the_score_is_the_weighted_sum_of_the_features(data):
    """The weights belong to the original features."""
    model = fit(data)
    assert model.coef_.shape == (1, 3)
    assert_allclose(model.score_samples(data[0]), data[0] @ model.coef_[0])


def test_scaled_weights_do_not_depend_on_units(data):
    """In grams or kilograms, the weight of a standard deviation is the same."""
    X, y = data
    model, other = fit(data), fit((X * [1, 1, 0.001] + [0, 5, 0], y))
    assert_allclose(model.scaled_coef_, other.scaled_coef_, atol=1e-3)
    assert_allclose(
        model.decision_function(X),
        other.decision_function(X * [1, 1, 0.001] + [0, 5, 0]),
        atol=0.01,
    )


def test_it_detects_more_than_logistic_regression_where_the_top_differs(data):
    """The first feature alone serves a small capacity; the second serves the average item."""
    X, y = data
    plain = LogisticRegression().fit(X, y)
    rng = np.random.default_rng(1)
    X_new = rng.normal(size=(50_000, 3)) * [1, 1, 1000]
    X_new[:1000, 0] += 3
    X_new[1000:2000, 1] += 1.5
    scores = [model.decision_function(X_new) for model in (fit(data), plain)]
    found = [np.count_nonzero(select(each, CAPACITY)[:2000]) for each in scores]
    assert found[0] > found[1]


def test_a_tiny_c_stays_with_logistic_regression(data):
    """The penalty holds the weights where they started, up to the scale of the scores."""
    weights = fit(data, C=1e-9).scaled_coef_[0]
    free = fit(data, C=10.0).scaled_coef_[0]
    X, y = data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    start = LogisticRegression().fit(X, y).coef_[0]
    start /= (X @ start).std()
    assert np.linalg.norm(weights - start) < 0.01
    assert np.linalg.norm(free - weights) > 0.3


def test_it_keeps_the_promise(data):
    """The calibration sample is within the capacity, and all guarantees are available."""
    learner = CapacityAwareLinearClassifier()
    model = CapacityClassifier(learner, capacity=CAPACITY, guarantee="confident").fit(*data)
    assert model.calibration_.flagged_fraction <= 0.04
    assert model.estimator_.n_iter_ > 0


def test_few_items_are_learned_from_at_a_wider_capacity(data):
    """Up to 150 flags in training, five times the capacity, or 5 % of all items."""
    model = CapacityAwareLinearClassifier(Capacity.fraction(0.004), random_state=0).fit(*data)
    assert model._target_fraction(15_000) == pytest.approx(150 / 15_000)
    assert model._target_fraction(100_000) == pytest.approx(0.004)
    assert model._target_fraction(1_000) == pytest.approx(5 * 0.004)
    assert fit(data)._target_fraction(1_000) == pytest.approx(0.05)


@pytest.mark.parametrize("with_ids", [True, False])
def test_hashed_ties_fill_the_capacity_exactly_in_calibration(rng, with_ids):
    """Prediction uses the tie keys of calibration, also for a data frame of integers."""
    X = pd.DataFrame({"a": rng.integers(0, 3, 2000), "b": rng.integers(0, 2, 2000)})
    if not with_ids:
        X["row"] = np.arange(2000) * 1e-14  # tells tied rows apart, and moves no score
    y = rng.random(2000) < 0.02 + 0.1 * (X["a"] == 2)
    ids = np.arange(2000) if with_ids else None
    model = CapacityClassifier(
        CapacityAwareLinearClassifier(C=1e-9),
        capacity=Capacity.fraction(0.1),
        cv=0.5,
        guarantee="plug-in",
        random_state=0,
    ).fit(X, y, ids=ids)
    unseen = random_parts(np.asarray(y), 0.5, np.random.default_rng(0))[0][1]
    flagged = model.flag(X, ids=ids)[unseen]
    assert np.count_nonzero(flagged) == model.calibration_.k == 100


def test_a_bad_penalty_is_named(data):
    """The error names the parameter and what it must be."""
    with pytest.raises(ValueError, match="C must be greater than 0; got 0"):
        fit(data, C=0)
