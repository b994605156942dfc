"""The default: every labelled row works, in the models of ten folds."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import make_fraud
from shortlist.metrics import out_of_fold_detection

LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())
TENTH = Capacity.fraction(0.1)


@pytest.fixture(scope="module")
def model():
    """Return a fitted classifier with all defaults."""
    X, y = make_fraud(1_500, prevalence=0.1, random_state=0)
    return CapacityClassifier(LOGISTIC, capacity=TENTH, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def recent():
    """Return new items."""
    return make_fraud(3_000, prevalence=0.1, random_state=1)


@pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names")
@pytest.mark.parametrize("ids", [None, "ids"])
def test_a_frame_and_an_array_are_decided_alike(recent, ids):
    """Whichever of them the classifier learned from, and in whatever order names come."""
    X, y = recent
    frame = pd.DataFrame(X).rename(columns="f{}".format)
    known = {} if ids is None else {"ids": np.arange(len(X))}
    capacity = Capacity.fraction(0.05)
    for learned, other in ((frame, X), (X, frame)):
        fitted = CapacityClassifier(LOGISTIC, capacity=capacity, random_state=0)
        fitted.fit(learned[:1_000], y[:1_000], **{"ids": np.arange(1_000)} if known else {})
        assert_array_equal(fitted.flag(learned, **known), fitted.flag(other, **known))
        fitted = fitted.recalibrate(other, **known)
        assert_array_equal(fitted.flag(learned, **known), fitted.flag(other, **known))


def test_lists_are_ranked_by_all_models(model, recent):
    """Ten models have learned from nine tenths of the rows each, and their mean ranks."""
    X, y = recent
    assert len(model.rule_.calibrations) == len(model.estimators_) == 10
    mean = np.mean([each.predict_proba(X) for each in model.estimators_], axis=0)
    assert_allclose(model.predict_proba(X), mean)
    assert_allclose(model.score_samples(X), mean[:, 1])
    assert_array_equal(model.select(X, Capacity.count(50)), mean[:, 1] >= np.sort(mean[:, 1])[-50])
    assert model.score(X, y) == pytest.approx(y[np.argsort(-mean[:, 1])[:300]].sum() / y.sum())
    margin, ranked = model.decision_function(X), np.argsort(mean[:, 1])
    settled = ranked[np.abs(margin[ranked]) > 1e-12]  # elsewhere one model overrules the mean
    assert (np.diff(margin[settled]) >= 0).all()
    assert_array_equal(margin > 0, model.flag(X))


def test_single_rows_are_judged_by_one_model_each(model, recent):
    """Alone as in a batch, by a model that the row itself picks, and about as often as allowed."""
    X, _ = recent
    flagged = model.flag(X)
    assert 0.06 < flagged.mean() < 0.14
    decided = model.decide(X)
    alone = [model.decide(X[row : row + 1]) for row in range(0, 3_000, 75)]
    assert_array_equal([each.flagged[0] for each in alone], flagged[::75])
    assert_allclose([each.scores[0] for each in alone], decided.scores[::75])
    by_model = np.array([each.predict_proba(X)[:, 1] for each in model.estimators_])
    judges = np.abs(by_model - decided.scores).argmin(axis=0)
    assert_allclose(by_model[judges, np.arange(len(X))], decided.scores)
    assert (np.bincount(judges) > 200).all()
    by_lot = flagged & (decided.scores <= model.thresholds_[judges])
    assert_array_equal(decided.thresholds[~by_lot], model.thresholds_[judges][~by_lot])
    assert (decided.scores > decided.thresholds)[by_lot].all()
    assert by_lot.sum() < 20
    wider = model.with_capacity(Capacity.fraction(0.3))
    assert wider.flag(X)[flagged].all()


def test_scores_out_of_fold_are_kept_with_their_rows(model):
    """Each row has the score of the model that has not seen it, and a measure comes from them."""
    X, y = make_fraud(1_500, prevalence=0.1, random_state=0)
    for row in (0, 7, 1_499):
        judge = model.estimators_[model.folds_[row]]
        assert model.out_of_fold_scores_[row] == pytest.approx(judge.predict_proba(X[[row]])[0, 1])
    found = out_of_fold_detection(y == 1, model.out_of_fold_scores_, model.folds_, TENTH)
    assert found.low < found.detection < found.high
    assert np.unique(model.folds_).size == 10
    half = CapacityClassifier(LOGISTIC, capacity=TENTH, cv=0.5, random_state=0).fit(X, y)
    assert np.isnan(half.out_of_fold_scores_).sum() == (half.folds_ == -1).sum() == 750


def test_recent_items_give_one_threshold_for_the_mean(model, recent):
    """Every guarantee is then possible, and the model is the full one."""
    X, _ = recent
    again = pickle.loads(pickle.dumps(model)).set_params(guarantee="simultaneous")
    again.recalibrate(X)
    assert len(again.rule_.calibrations) == 1
    assert_array_equal(again.decide(X).scores, model.score_samples(X))
    assert "whichever capacity" in again.promise_
    assert "mean" not in again.promise_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["at most 10 % of all items, on average", "One of 10 models", "one score for all"]),
        ({"guarantee": "confident"}, ["with 95 % confidence", "the model has not seen"]),
        ({"guarantee": "confident", "cv": 4}, ["with 95 % confidence", "One of 4 models"]),
        ({"guarantee": "plug-in", "cv": 0.5}, ["nothing is promised"]),
        (
            {"guarantee": "next-batch", "capacity": Capacity.count(20, per=100), "n_batches": 3},
            ["each of 3 batches has at most 20 flags, with 95 % confidence"],
        ),
    ],
)
def test_it_says_which_promise_holds(options, words):
    """For the flags of single rows, and for lists."""
    X, y = make_fraud(1_500, prevalence=0.1, random_state=0)
    options = {"capacity": TENTH, "random_state": 0, **options}
    model = CapacityClassifier(LOGISTIC, **options).fit(X, y)
    for expected in [*words, "Row by row", "Lists (select)"]:
        assert expected in model.promise_
    low, high = model.rule_.flag_rate_interval
    assert 0 <= low < high <= 1


def test_a_confidence_holds_rows_out_by_default():
    """One threshold from half of the rows uses more than ten from a tenth; folds may be asked."""
    X, y = make_fraud(1_500, prevalence=0.1, random_state=0)
    options = {"capacity": TENTH, "guarantee": "confident", "random_state": 0}
    held_out = CapacityClassifier(LOGISTIC, **options).fit(X, y)
    assert held_out.calibration_.n_calibration == 750
    folds = CapacityClassifier(LOGISTIC, cv=3, **options).fit(X, y)
    assert len(folds.calibrations_) == 3
    assert 0 < folds.flag(X).mean() < held_out.flag(X).mean()
    for guarantee in ("next-batch", "simultaneous"):
        options = {"capacity": Capacity.count(10, per=100), "guarantee": guarantee}
        with pytest.raises(ValueError, match=r"3 folds has its own\. Hold items out with cv=0\.5"):
            CapacityClassifier(LOGISTIC, cv=3, **options).fit(X, y)


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize(
    ("n_rare", "n_common", "n_folds"), [(2, 50, 10), (7, 100, 10), (60, 3, 10), (3, 4, 7)]
)
def test_the_number_of_folds_does_not_depend_on_labels(n_rare, n_common, n_folds):
    """Each model has learned from some of both classes."""
    y = np.repeat([1, 0], [n_rare, n_common])
    X = np.random.default_rng(0).normal(size=(y.size, 2)) + y[:, np.newaxis]
    options = {"capacity": Capacity.fraction(0.2), "rare_label": 1, "random_state": 0}
    model = CapacityClassifier(DecisionTreeClassifier(max_depth=2), **options).fit(X, y)
    assert len(model.estimators_) == n_folds
    assert all(each.classes_.size == 2 for each in model.estimators_)
    assert model.select(X).sum() == int(0.2 * y.size)
    with pytest.raises(ValueError, match="at least two items of this class"):
        clone(model).fit(X[n_rare - 1 :], y[n_rare - 1 :])


def test_folds_are_drawn_by_the_seed():
    """The same seed gives the same folds, another one others, whatever the order of the rows."""
    X, y = make_fraud(600, prevalence=0.1, random_state=0)
    options = {"capacity": TENTH, "cv": 3}
    folds = [
        CapacityClassifier(LOGISTIC, random_state=seed, **options).fit(X, y).folds_
        for seed in (0, 0, 1)
    ]
    assert_array_equal(folds[0], folds[1])
    assert np.any(folds[0] != folds[2])
    assert np.bincount(folds[0]).tolist() == [200, 200, 200]


def test_segments_work_with_folds():
    """Every segment has a threshold in each fold, and keeps its own capacity."""
    X, y = make_fraud(2_000, prevalence=0.1, random_state=0)
    regions = np.random.default_rng(0).choice(["north", "south"], 2_000)
    model = CapacityClassifier(
        LOGISTIC,
        capacity=TENTH,
        segment_capacities={"north": Capacity.fraction(0.05), "south": None},
        random_state=0,
    ).fit(X, y, segments=regions)
    new, _ = make_fraud(4_000, prevalence=0.1, random_state=1)
    where = np.random.default_rng(1).choice(["north", "south"], 4_000)
    flagged = model.flag(new, segments=where)
    assert 0.02 < flagged[where == "north"].mean() < 0.08
    assert 0.05 < flagged[where == "south"].mean() < 0.14
    assert len(model.rule_.segment_calibrations["north"]) == 10
    listed = model.select(new, segments=where)
    assert listed[where == "north"].sum() <= 0.05 * (where == "north").sum()
    recent = model.recalibrate(new, segments=where)
    assert isinstance(recent.rule_.segment_calibrations["north"].value, float)


def test_a_row_has_the_same_score_alone():
    """The scores of ten models are added up in the same order, whatever rows come along."""
    X, y = make_fraud(n_samples=3_000, random_state=0)
    learner = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = CapacityClassifier(learner, capacity=Capacity.fraction(0.1), random_state=0).fit(X, y)
    assert len(model.estimators_) == 10
    alone = [model.score_samples(row)[0] for row in X[:300, np.newaxis]]
    assert_array_equal(alone, model.score_samples(X[:300]))
