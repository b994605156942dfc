"""Groups in `fit`: whole groups are held out, and calibration counts groups."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_validate

from shortlist import Capacity, CapacityClassifier, MulticlassCapacityClassifier
from shortlist.datasets import make_fraud

TENTH = Capacity.fraction(0.1)


class RecordsRows(LogisticRegression):
    """Learns as usual, and remembers the groups it was fitted on: they are the last feature."""

    def fit(self, X, y, sample_weight=None):
        """Fit, and keep the groups."""
        self.groups_ = np.unique(np.asarray(X)[:, -1])
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        """Score, and keep the groups that were scored last."""
        self.scored_ = np.unique(np.asarray(X)[:, -1])
        return super().predict_proba(X)


@pytest.fixture(scope="module")
def customers():
    """Return rows of 300 customers, up to eight each, with the customer as the last feature."""
    X, y = make_fraud(1_200, prevalence=0.1, random_state=0)
    groups = np.random.default_rng(0).integers(300, size=1_200)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.column_stack([X, groups / 300]), y, groups


@pytest.mark.parametrize("cv", [0.4, 4, GroupKFold(4)])
@pytest.mark.parametrize("routing", [False, True])
def test_whole_groups_are_held_out(customers, cv, routing):
    """No model scores an item of a group that it has seen, with metadata routing on and off."""
    X, y, groups = customers
    options = {"capacity": TENTH, "random_state": 0, "cv": cv}
    with sklearn.config_context(enable_metadata_routing=routing):
        model = CapacityClassifier(RecordsRows(), **options).fit(X, y, groups=groups)
    for fold, fitted in enumerate(model.estimators_):
        assert not np.isin(fitted.scored_, fitted.groups_).any()
        assert fitted.scored_.size + fitted.groups_.size == np.unique(groups).size
        assert_array_equal(np.unique(model.rule_.samples[fold].groups).size, fitted.scored_.size)
    if cv == 0.4:
        share = model.estimators_[0].scored_.size / np.unique(groups).size
        assert share == pytest.approx(0.4, abs=0.01)


def test_a_splitter_that_divides_groups_is_refused(customers):
    """Its scores would come from models that know the customer."""
    X, y, groups = customers
    model = CapacityClassifier(LogisticRegression(), capacity=TENTH, cv=KFold(4))
    with pytest.raises(ValueError, match="divides groups"):
        model.fit(X, y, groups=groups)
    forest = CapacityClassifier(RandomForestClassifier(10), capacity=TENTH, cv="oob")
    with pytest.raises(ValueError, match="have seen other items of its group"):
        forest.fit(X, y, groups=groups)


@pytest.mark.parametrize("cv", [0.5, 3])
def test_groups_of_one_row_change_nothing(customers, cv):
    """The same split, scores and threshold, bit for bit."""
    X, y, _ = customers
    options = {"capacity": TENTH, "cv": cv, "random_state": 1}
    with_groups = CapacityClassifier(LogisticRegression(), **options)
    with_groups.fit(X, y, groups=np.arange(len(X))[::-1])
    without = CapacityClassifier(LogisticRegression(), **options).fit(X, y)
    assert_array_equal(with_groups.calibration_scores_, without.calibration_scores_)
    assert with_groups.calibrations_ == without.calibrations_


def test_a_trained_model_is_calibrated_by_groups(customers):
    """And so is `recalibrate`: fewer flags than for as many single items."""
    X, y, groups = customers
    trained = LogisticRegression().fit(X[:300], y[:300])
    options = {"capacity": TENTH, "cv": "prefit", "guarantee": "confident"}
    model = CapacityClassifier(trained, **options)
    alone = model.fit(X[300:], y[300:]).threshold_
    assert model.fit(X[300:], y[300:], groups=groups[300:]).threshold_ > alone
    grouped = model.threshold_
    assert model.recalibrate(X[300:]).threshold_ == alone
    assert model.recalibrate(X[300:], groups=groups[300:]).threshold_ == grouped
    assert np.isnan(model.calibration_.interval).all()


def test_several_classes_refuse_groups(customers):
    """Items of one group say too little to keep several capacities at once."""
    X, y, groups = customers
    model = MulticlassCapacityClassifier(LogisticRegression(), capacities={1: TENTH})
    with pytest.raises(ValueError, match=r"groups of items cannot be combined .* one item of each"):
        model.fit(X, y, groups=groups)


def test_groups_are_routed_through_cross_validation(customers):
    """With metadata routing, a group splitter outside and inside gets the same groups."""
    X, y, groups = customers
    with sklearn.config_context(enable_metadata_routing=True):
        model = CapacityClassifier(RecordsRows(), capacity=TENTH, cv=0.5, random_state=0)
        model.set_fit_request(groups=True)
        results = cross_validate(
            model, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True
        )
    for fitted in results["estimator"]:
        assert fitted.rule_.samples[0].groups is not None


@pytest.mark.parametrize("guarantee", ["plug-in", "expected"])
def test_a_segment_that_a_fold_lacks(guarantee):
    """Groups of different sizes, all of one segment in one fold: the others flag none of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y, groups = X[:, 0] + rng.normal(size=400) > 1.5, np.arange(400) // 2
    groups[:50] = 0
    segments = np.where(groups == 150, "b", "a")
    limits = {"a": Capacity.fraction(0.1), "b": Capacity.fraction(0.2)}
    model = CapacityClassifier(
        LogisticRegression(),
        capacity=None,
        segment_capacities=limits,
        guarantee=guarantee,
        cv=5,
        random_state=0,
    ).fit(X, y, groups=groups, segments=segments)
    assert model.flag(X, segments=segments)[segments == "a"].mean() < 0.15
