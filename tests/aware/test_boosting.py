"""Boosted trees, weighted and stopped for a capacity."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shortlist import Capacity, select
from shortlist.aware import CapacityAwareBoostingClassifier

lightgbm = pytest.importorskip("lightgbm")

from shortlist.aware._boosting import Trainer, faded, fading_scores, round_numbers  # noqa: E402

CAPACITY = Capacity.multiple(2)
SETTINGS = {"objective": "binary", "learning_rate": 0.1, "num_leaves": 3, "verbose": -1}


def fit(data, **options):
    """Fit a small model with a seed."""
    options = {"max_rounds": 50, "random_state": 0, **options}
    return CapacityAwareBoostingClassifier(CAPACITY, **options).fit(*data)


def test_round_numbers_double_in_two_steps_and_end_with_the_largest():
    """The list ends with the largest number, whatever it is."""
    assert round_numbers(400) == [25, 35, 50, 71, 100, 141, 200, 283, 400]
    assert round_numbers(60) == [25, 35, 50, 60]
    assert round_numbers(3) == [3]


def test_a_faded_booster_scores_the_mean_over_the_numbers_of_rounds(few_rare):
    """One prediction replaces one for each number of rounds."""
    X, y = few_rare
    rounds = round_numbers(60)
    booster = Trainer(X, y, SETTINGS).train(np.full(y.size, True), 60, 1.0)
    plain = [booster.predict(X, raw_score=True, num_iteration=n) for n in rounds]
    assert_allclose(fading_scores(booster, X, rounds)[-1], np.mean(plain, axis=0))
    assert_allclose(faded(booster, rounds).predict(X, raw_score=True), np.mean(plain, axis=0))


def test_weights_make_the_capacity_the_rule_of_bayes(few_rare):
    """Weighted log odds are positive for about as many items as may be flagged."""
    X, y = few_rare
    weight = fit(few_rare, max_rounds=200).rare_weight_
    assert weight > 2
    booster = Trainer(X, y, SETTINGS).train(np.full(y.size, True), 100, weight)
    flagged = np.mean(booster.predict(X, raw_score=True) > 0)
    assert_allclose(flagged, CAPACITY.as_fraction(y.mean()), rtol=0.3)


def test_it_finds_rare_items(few_rare, others):
    """Detection out of fold is close to that on new items."""
    model = fit(few_rare)
    allowed = Capacity.fraction(CAPACITY.as_fraction(few_rare[1].mean()))
    found = np.mean(select(model.score_samples(others[0]), allowed)[others[1]])
    # 80 rare items out of fold: a standard error of at most sqrt(0.25 / 80) = 0.056.
    assert_allclose(model.detection_[model.loss_], found, atol=4 * 0.056)
    assert found > 0.5


def test_it_stays_with_the_blend_without_clear_evidence(few_rare):
    """What else was tried is recorded."""
    model = fit(few_rare)
    assert model.loss_ == "blend"
    assert set(model.detection_) == {"blend", "log-loss", "weighted"}
    assert set(model.n_rounds_) == {"log-loss", "weighted"}
    assert len(model.boosters_) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": 0}, "max_rounds must be a whole number of at least 1; got 0"),
        ({"num_leaves": 1.5}, "num_leaves"),
        ({"learning_rate": 0}, "learning_rate must be greater than 0"),
        ({"cv": 1}, "cv as a number of folds must be a whole number of at least 2"),
    ],
)
def test_bad_settings_are_named(options, message, few_rare):
    """The error comes before anything is trained."""
    with pytest.raises(ValueError, match=message):
        fit(few_rare, **options)


def test_without_lightgbm_the_extra_is_named(few_rare, monkeypatch):
    """The error also names the forest as an alternative."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"shortlist\[boosting\].*CapacityAwareForestClassifier"):
        fit(few_rare)
