"""A model of all rows ranks lists, and the models of folds decide about single rows."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import CapacityAwareForestClassifier
from shortlist.datasets import make_fraud
from shortlist.models import compare_onnx, compile_scorer, export_onnx
from shortlist.models.files import dump_estimator, load_estimator

FOREST = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
TENTH = Capacity.fraction(0.1)
X, Y = make_fraud(1_500, prevalence=0.1, random_state=0)
RECENT, FOUND = make_fraud(2_000, prevalence=0.1, random_state=1)


def fitted(list_estimator=FOREST, **options):
    """Return a classifier whose folds are logistic."""
    options = {"capacity": TENTH, "cv": 5, "random_state": 0, **options}
    model = CapacityClassifier(
        LogisticRegression(max_iter=1_000), list_estimator=list_estimator, **options
    )
    return model.fit(X, Y)


@pytest.fixture(scope="module")
def model():
    """Return a classifier with a forest for lists."""
    return fitted()


def test_lists_are_ranked_by_the_model_of_all_rows(model):
    """Scores, probabilities, lists and the score of searches are those of one fit on every row."""
    p = clone(FOREST).fit(X, Y).predict_proba(RECENT)
    assert_array_equal(model.predict_proba(RECENT), p)
    assert_array_equal(model.score_samples(RECENT), p[:, 1])
    listed = model.select(RECENT, Capacity.count(40))
    assert listed.sum() == 40
    assert p[listed, 1].min() >= p[~listed, 1].max()
    alone = CapacityClassifier(clone(FOREST).fit(X, Y), capacity=TENTH, cv="prefit").fit(X, Y)
    assert model.score(RECENT, FOUND) == alone.score(RECENT, FOUND)
    assert model.list_estimators_ == [model.list_estimator_]


def test_single_rows_are_decided_by_the_folds(model):
    """With and without a model for lists, single rows get the same flags and thresholds."""
    without = fitted(None)
    assert without.list_estimators_ is without.estimators_
    assert not hasattr(without, "list_estimator_")
    ours, theirs = model.decide(RECENT), without.decide(RECENT)
    assert_array_equal(ours.flagged, theirs.flagged)
    assert_array_equal(ours.scores, theirs.scores)
    assert_array_equal(model.decision_function(RECENT) > 0, ours.flagged)


def test_recalibrated_the_model_of_lists_decides(model):
    """Unlabelled rows give it one threshold: at most a tenth of these rows lie above it."""
    recalibrated = pickle.loads(pickle.dumps(model)).recalibrate(RECENT)
    new, _ = make_fraud(3_000, prevalence=0.1, random_state=2)
    decided = recalibrated.decide(new)
    assert_array_equal(decided.scores, recalibrated.score_samples(new))
    assert len(recalibrated.calibrations_) == 1
    above = recalibrated.score_samples(RECENT) > recalibrated.threshold_
    assert above.sum() <= 0.1 * (len(RECENT) + 1)
    assert len(model.calibrations_) == 5


@pytest.mark.parametrize(
    "options",
    [
        {"cv": 0.3},
        {"cv": "auto", "guarantee": "confident"},
        {"cv": ShuffleSplit(1, random_state=0)},
        {"cv": "prefit"},
    ],
    ids=["share", "auto", "one split", "prefit"],
)
def test_one_model_ranks_and_decides(options):
    """Where there are no folds, a second model would rank by what its threshold does not know."""
    with pytest.raises(ValueError, match="makes one model, which does both"):
        CapacityClassifier(
            GaussianNB().fit(X, Y), capacity=TENTH, list_estimator=FOREST, **options
        ).fit(X, Y)
    with pytest.raises(ValueError, match="makes one model, which does both"):
        CapacityClassifier(FOREST, capacity=TENTH, list_estimator=FOREST, cv="oob").fit(X, Y)


def test_both_models_score_alike():
    """The output is one that both have; values give both probabilities."""
    model = fitted(LinearSVC(random_state=0))
    assert model.response_method_ == "decision_function"
    assert not hasattr(model, "predict_proba")
    assert_allclose(
        model.score_samples(RECENT), model.list_estimator_.decision_function(RECENT), rtol=1e-12
    )
    weighed = CapacityClassifier(
        LogisticRegression(max_iter=1_000),
        capacity=TENTH,
        list_estimator=LinearSVC(random_state=0),
        cv=3,
        random_state=0,
    ).fit(X, Y, values=np.ones(len(Y)))
    assert weighed.response_method_ == "predict_proba"
    assert weighed.predict_proba(RECENT).shape == (2_000, 2)
    with pytest.raises(ValueError, match="GaussianNB and Perceptron must score alike"):
        CapacityClassifier(GaussianNB(), capacity=TENTH, list_estimator=Perceptron()).fit(X, Y)
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        fitted(LinearSVC(), response_method="predict_proba")


def test_the_model_of_lists_learns_the_capacity():
    """As the models of folds do."""
    model = fitted(CapacityAwareForestClassifier(n_estimators=5, random_state=0))
    assert model.list_estimator_.capacity.as_ratio() == Fraction(1, 10)
    assert model.list_estimator_.rare_label == model.rare_label_


def test_weights_reach_the_model_of_lists():
    """Plainly, or where they were requested."""
    weights = np.where(Y == 1, 5.0, 1.0)
    folds = LogisticRegression(max_iter=1_000)
    options = {"capacity": TENTH, "cv": 3, "random_state": 0}
    plain = CapacityClassifier(folds, list_estimator=RidgeClassifier(), **options)
    plain.fit(X, Y, sample_weight=weights)
    expected = RidgeClassifier().fit(X, Y, sample_weight=weights).decision_function(RECENT)
    assert_allclose(plain.score_samples(RECENT), expected)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = RidgeClassifier().set_fit_request(sample_weight=True)
        unweighted = clone(folds).set_fit_request(sample_weight=False)
        routed = CapacityClassifier(unweighted, list_estimator=asks, **options)
        routed.fit(X, Y, sample_weight=weights)
    assert_allclose(routed.score_samples(RECENT), expected)
    bare = CapacityClassifier(folds, list_estimator=RidgeClassifier(), **options).fit(X, Y)
    assert_array_equal(routed.flag(RECENT), bare.flag(RECENT))


def test_copies_pickles_and_files_rank_alike(model):
    """The model of lists goes along."""
    refitted = clone(model).fit(X, Y)
    loaded = load_estimator(dump_estimator(model), "here")
    for copied in (refitted, pickle.loads(pickle.dumps(model)), loaded):
        assert_array_equal(copied.score_samples(RECENT), model.score_samples(RECENT))
        assert_array_equal(copied.flag(RECENT), model.flag(RECENT))


def test_a_compiled_scorer_scores_as_lists_do(model):
    """One row at a time, with the bits of the forest."""
    scorer = compile_scorer(model, RECENT[:50])
    assert scorer.kind == "exact"
    assert_array_equal(scorer.score_rows(RECENT.tolist()), model.score_samples(RECENT))


def test_a_graph_ranks_by_one_model_and_decides_by_folds(model, tmp_path):
    """With keys it flags what the classifier flags; recalibrated it needs no folds at all."""
    pytest.importorskip("onnxruntime")
    path, smaller = tmp_path / "folds.onnx", tmp_path / "one.onnx"
    assert "fold_key" in export_onnx(model, RECENT, path).keys
    compared = compare_onnx(model, path, RECENT)
    assert (compared.flagged_more, compared.flagged_less) == (0, 0)
    assert compared.flagged_by_both > 100
    assert compared.largest_difference < 1e-12
    recalibrated = pickle.loads(pickle.dumps(model)).recalibrate(RECENT)
    assert "fold_key" not in export_onnx(recalibrated, RECENT, smaller).keys
    compared = compare_onnx(recalibrated, smaller, RECENT)
    assert (compared.flagged_more, compared.flagged_less) == (0, 0)
    assert smaller.stat().st_size < path.stat().st_size
