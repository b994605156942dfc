"""Calibration on out-of-bag scores."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from shortlist import Capacity, CapacityClassifier

FOREST = RandomForestClassifier(60, min_samples_leaf=5, random_state=0)


def out_of_bag(estimator, **params):
    """Return a classifier that calibrates out of bag."""
    params = {"capacity": Capacity.fraction(0.05), "random_state": 0, **params}
    return CapacityClassifier(estimator, cv="oob", **params)


@pytest.mark.parametrize(
    "estimator",
    [
        FOREST,
        make_pipeline(StandardScaler(), FOREST),
        BaggingClassifier(DecisionTreeClassifier(min_samples_leaf=5), 60, random_state=0),
    ],
    ids=["forest", "pipeline", "bagging"],
)
def test_one_fit_on_everything_and_a_threshold_from_all_rows(estimator, fraud):
    """The model is the one that a plain fit would give, and every row is a calibration item."""
    X, y = fraud
    model = out_of_bag(estimator).fit(X, y)
    assert model.calibration_.n_calibration == len(X)
    assert model.calibration_.flagged_fraction <= 0.05
    assert_array_equal(model.predict_proba(X), estimator.fit(X, y).predict_proba(X))
    assert "oob_score=True" not in repr(estimator)


def test_new_items_stay_near_the_capacity(fraud):
    """Out-of-bag scores are approximate, and on the safe side here."""
    from shortlist.datasets import make_fraud

    model = out_of_bag(FOREST, ties="hash").fit(*fraud)
    rate = model.flag(make_fraud(20_000, prevalence=0.02, random_state=1)[0]).mean()
    assert 0.03 < rate < 0.06


def test_rows_that_every_tree_has_seen_are_left_out(fraud):
    """With three trees some rows have no score; they do not count as calibration items."""
    X, y = fraud
    forest = RandomForestClassifier(3, min_samples_leaf=50, random_state=0)
    with pytest.warns(UserWarning, match="OOB"):
        model = out_of_bag(forest).fit(X, y)
    assert 0.5 * len(X) < model.calibration_.n_calibration < len(X)
    with_ids = out_of_bag(forest, ties="hash")
    with pytest.warns(UserWarning, match="OOB"):
        with_ids.fit(X, y, ids=np.arange(len(X)))
    assert with_ids.flag(X[:10], ids=np.arange(10)).shape == (10,)


def test_a_threshold_at_the_bottom_is_warned_of(fraud):
    """Small leaves leave most items at 0 out of bag, and fewer of them when all trees score."""
    X, y = fraud
    small = RandomForestClassifier(60, random_state=0)
    wide = Capacity.fraction(0.4)
    with pytest.warns(UserWarning, match=r"lowest out-of-bag score, which [\d.]+ % of the items"):
        model = out_of_bag(small, capacity=wide).fit(X, y)
    assert model.flag(X).mean() > model.calibration_.flagged_fraction
    model = out_of_bag(small).fit(X, y)
    with pytest.warns(UserWarning, match="lowest out-of-bag score"):
        model.with_capacity(wide)
    with pytest.warns(UserWarning, match="lowest out-of-bag score"):
        out_of_bag(small, capacity=None, segment_capacities={"here": wide}).fit(
            X, y, segments=np.full(len(X), "here")
        )
    # Scores of the model in use say what they will be, and larger leaves tell items apart.
    assert model.recalibrate(X).with_capacity(wide).threshold_ < 1e-9
    assert out_of_bag(FOREST, capacity=wide).fit(X, y).threshold_ > 1e-9


def test_a_model_without_a_bag_is_refused(fraud):
    """The message says which models have one, and what to do instead."""
    with pytest.raises(ValueError, match=r"cv='oob' needs a model .* Use cv=5 instead"):
        out_of_bag(LogisticRegression()).fit(*fraud)
