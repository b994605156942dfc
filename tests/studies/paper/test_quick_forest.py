"""The quick forest is scikit-learn's, tree for tree."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from studies.paper.quick_forest import QuickForest, quick


def made(n=800, *, share=0.1, seed=0):
    """Return whole numbers, few values, a constant, and real numbers, with a rare class."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.integers(0, 3, n),
            rng.integers(-2, 9, n),
            np.full(n, 4.0),
            1_000 * rng.lognormal(size=n),
            rng.normal(size=(n, 4)).round(2),
            rng.integers(0, 200, (n, 3)),
        ]
    )
    y = (X[:, 1] + X[:, 4] + rng.normal(size=n) > np.quantile(X[:, 1] + X[:, 4], 1 - share)) + 0
    return X, y


def agree(model, X, y, X_test):
    """Compare all that forests say."""
    theirs, ours = clone(model).fit(X, y), quick(clone(model)).fit(X, y)
    assert ours.trees_ is not None
    assert_array_equal(ours.predict_proba(X_test), theirs.predict_proba(X_test))
    assert_array_equal(ours.predict(X_test), theirs.predict(X_test))
    if model.oob_score:
        assert_array_equal(ours.oob_decision_function_, theirs.oob_decision_function_)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(
    "settings",
    [
        {"min_samples_split": 6},
        {"criterion": "entropy", "min_samples_leaf": 3, "max_features": 0.5, "oob_score": True},
        {"criterion": "entropy", "max_features": 1.0, "min_samples_leaf": 40},
    ],
)
def test_scores_are_those_of_scikit_learn(settings, share):
    """To the last digit, on the rows that it learned from and on others."""
    X, y = made(share=share)
    X_test, _ = made(seed=1)
    model = RandomForestClassifier(30, random_state=7, **settings)
    agree(model, X, y, np.vstack([X, X_test]))


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_any_kind_and_rows_of_many_sizes(seed):
    """Few rows, of which some trees see one class only."""
    X, y = made(20 + 37 * seed, share=0.2, seed=seed)
    agree(RandomForestClassifier(25, random_state=seed), X, np.where(y == 1, "a", "b"), X)


@pytest.mark.parametrize(
    "settings", [{"max_depth": 3}, {"class_weight": "balanced"}, {"max_features": 4}]
)
def test_what_is_not_quick_is_fitted_by_scikit_learn(settings):
    """Other settings, three classes, gaps, and values that scikit-learn takes as equal."""
    X, y = made()
    model = RandomForestClassifier(5, random_state=0, **settings)
    ours = quick(model).fit(X, y)
    assert ours.trees_ is None
    assert_array_equal(ours.predict_proba(X), model.fit(X, y).predict_proba(X))


@pytest.mark.parametrize("odd", ["three classes", "a gap", "close values"])
def test_odd_data_are_left_to_scikit_learn(odd):
    """It takes values that differ by less than 1e-7 as equal, and gaps as a side of their own."""
    X, y = made()
    if odd == "three classes":
        y[:5] = 2
    elif odd == "a gap":
        X[3, 3] = np.nan
    else:
        X[:2, 4] = 1e-9, 0
    ours = QuickForest(5, random_state=0).fit(X, y)
    assert ours.trees_ is None
    theirs = RandomForestClassifier(5, random_state=0).fit(X, y)
    assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_other_models_stay_as_they_are():
    """Only a forest of scikit-learn has a quick form, with the same parameters."""
    other = ExtraTreesClassifier()
    assert quick(other) is other
    forest = RandomForestClassifier(7, min_samples_split=6)
    assert quick(forest).get_params() == forest.get_params()
