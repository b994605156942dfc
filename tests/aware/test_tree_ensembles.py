"""What the capacity-aware forest and boosting have in common."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import CapacityAwareBoostingClassifier, CapacityAwareForestClassifier

CAPACITY = Capacity.multiple(2)
LEARNERS = {
    "forest": CapacityAwareForestClassifier(n_estimators=60),
    "boosting": CapacityAwareBoostingClassifier(max_rounds=150),
}


@pytest.fixture(params=LEARNERS, scope="module")
def make(request):
    """Return a maker of a classifier around one of the learners, by default with one fit."""
    if request.param == "boosting":
        pytest.importorskip("lightgbm")

    def make(random_state=0, cv="oob", guarantee="expected"):
        learner = clone(LEARNERS[request.param]).set_params(random_state=random_state)
        options = {"cv": cv, "guarantee": guarantee, "random_state": random_state}
        return CapacityClassifier(learner, capacity=CAPACITY, **options)

    return make


@pytest.fixture(scope="module")
def model(make, few_rare):
    """Return a fitted classifier."""
    return make().fit(*few_rare)


def test_the_top_is_rich_in_rare_items(model, others):
    """Twice as many flags as rare items find most of the rare items."""
    X, is_rare = others
    selected = model.select(X)
    assert selected.sum() == CAPACITY.max_flags(len(X), model.prevalence_)
    assert is_rare[selected].sum() > 0.5 * is_rare.sum()


def test_the_threshold_flags_about_the_capacity(model, others):
    """Within four standard errors of 180 calibration flags: 4 / sqrt(180) is less than a third."""
    assert_allclose(model.flag(others[0]).mean(), model.capacity_fraction_, rtol=1 / 3)


def test_the_same_seed_gives_the_same_scores(make, model, few_rare, others):
    """Another seed gives another model."""
    X = others[0][:500]
    assert_array_equal(make().fit(*few_rare).score_samples(X), model.score_samples(X))
    assert np.any(make(random_state=1).fit(*few_rare).score_samples(X) != model.score_samples(X))


def test_a_pickled_copy_decides_alike(model, others):
    """The fitted model is unchanged."""
    X = others[0][:500]
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.score_samples(X), model.score_samples(X))
    assert_array_equal(copy.flag(X), model.flag(X))


def test_another_capacity_moves_the_threshold_only(model, others):
    """The ranking stays the same."""
    X = others[0][:500]
    wider = model.with_capacity(Capacity.multiple(4))
    assert wider.threshold_ < model.threshold_
    assert_array_equal(wider.score_samples(X), model.score_samples(X))


def test_gaps_are_taken_as_they_are(make, few_rare):
    """Missing values need no filling, in training and in use."""
    X, y = few_rare
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    assert np.isfinite(make().fit(X, y).score_samples(X)).all()


@pytest.mark.parametrize("label", ["fraud", 7, True])
def test_labels_of_any_type_are_learned(make, few_rare, label):
    """The rare label is detected and predicted."""
    X, is_rare = few_rare
    other = {"fraud": "fine", 7: 3, True: False}[label]
    model = make().fit(X, np.where(is_rare, label, other))
    assert model.rare_label_ == label
    assert set(model.predict(X)) == {label, other}


def test_scores_by_parts_of_the_model_are_kept_where_they_are_used(make, model, few_rare):
    """Only then: they are as long as the training data."""
    assert model.estimator_.oob_scores_.shape == few_rare[1].shape
    assert "approximate" in model.promise_
    held_out = make(cv=0.25).fit(*few_rare)
    assert not hasattr(held_out.estimator_, "oob_scores_")
    with pytest.raises(ValueError, match="groups are not possible"):
        make().fit(*few_rare, groups=np.arange(2000) // 2)


def test_a_guarantee_takes_items_that_were_held_out(make, few_rare, others):
    """They are those of the wrapper, and the learner holds out none."""
    model = make(cv=0.25).fit(*few_rare)
    assert model.calibration_.n_calibration == 500
    # Four standard errors of 45 calibration flags.
    assert_allclose(model.flag(others[0]).mean(), model.capacity_fraction_, rtol=4 / 45**0.5)


def test_what_is_learned_can_be_stored_without_code(model, others):
    """Model files trust every type they contain."""
    skops = pytest.importorskip("skops.io")
    from shortlist.models import trusted_types

    stored = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=stored)) <= set(trusted_types())
    copy = skops.loads(stored, trusted=trusted_types())
    assert_array_equal(copy.flag(others[0][:500]), model.flag(others[0][:500]))
