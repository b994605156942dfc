"""Boosted trees, weighted and stopped for a capacity."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shortlist import Capacity, select
from shortlist.aware import CapacityAwareBoostingClassifier

lightgbm = pytest.importorskip("lightgbm")

from shortlist.aware._booster_training import (  # noqa: E402
    Trainer,
    faded,
    fading_scores,
    round_numbers,
)

CAPACITY = Capacity.multiple(2)
TRAINER = Trainer(learning_rate=0.1, num_leaves=3, min_samples_leaf=20, max_bin=31, seed=0)


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
    booster = TRAINER.train(X, y, 60)
    plain = [booster.predict(X, raw_score=True, num_iteration=n) for n in rounds]
    assert_allclose(fading_scores(booster, X, rounds)[-1], np.mean(plain, axis=0))
    assert_allclose(faded(booster, rounds).predict(X, raw_score=True), np.mean(plain, axis=0))


def test_weights_make_the_capacity_the_rule_of_bayes(few_rare):
    """Weighted log odds are positive for about as many items as may be flagged."""
    model = fit(few_rare, loss="weighted", max_rounds=200)
    flagged = np.mean(model.score_samples(few_rare[0]) > 0)
    assert model.rare_weight_ > 2
    assert_allclose(flagged, CAPACITY.as_fraction(few_rare[1].mean()), rtol=0.3)


def test_training_for_detection_finds_more_of_what_it_is_trained_on(few_rare):
    """Starting from uninformative scores, training detects more."""
    X, y = few_rare
    start = np.zeros(y.size)
    booster = TRAINER.train_for_detection(X, y, 30, start=start, fraction=0.08)
    top = np.argsort(-booster.predict(X, raw_score=True))[: round(0.08 * y.size)]
    assert y[top].mean() > 4 * y.mean()


def test_nothing_to_split_on_leaves_nothing_to_train():
    """Constant features cannot be split, and there is nothing to train."""
    is_rare = np.arange(100) < 10
    options = {"start": np.zeros(100), "fraction": 0.1}
    booster = TRAINER.train_for_detection(np.ones((100, 2)), is_rare, 5, **options)
    assert booster is None
    assert_allclose(fading_scores(booster, np.ones((4, 2)), [5]), 0)


@pytest.mark.parametrize("loss", ["log-loss", "weighted", "blend", "detection", "auto"])
def test_every_loss_finds_rare_items(loss, few_rare, others):
    """Its out-of-fold detection is close to its detection on new items."""
    model = fit(few_rare, loss=loss)
    allowed = Capacity.fraction(CAPACITY.as_fraction(few_rare[1].mean()))
    found = np.mean(select(model.score_samples(others[0]), allowed)[others[1]])
    # 80 rare items out of fold: a standard error of at most sqrt(0.25 / 80) = 0.056.
    assert_allclose(model.detection_[model.loss_], found, atol=4 * 0.056)
    assert found > 0.5


def test_auto_stays_with_the_blend_without_clear_evidence(few_rare):
    """The other losses that were tried are recorded."""
    model = fit(few_rare)
    assert model.loss_ == "blend"
    assert set(model.detection_) == {"blend", "log-loss", "weighted"}
    assert set(model.n_rounds_) == {"log-loss", "weighted"}
    assert len(model.boosters_) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss"),
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
