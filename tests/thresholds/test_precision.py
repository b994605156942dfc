"""A least precision that is promised although many thresholds are looked at."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from shortlist import Capacity, CapacityClassifier, Worth, calibrate_threshold


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_all_looks_together_keep_the_promise(level):
    """Scores that tell nothing: every threshold is too imprecise, and each is a chance to err."""
    rng, failed, n_trials = np.random.default_rng(1), 0, 400
    for _ in range(n_trials):
        scores, is_rare = rng.random(400), rng.random(400) < level - 0.005
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # mostly nothing may be flagged
            found = calibrate_threshold(
                scores,
                Capacity.fraction(0.9),
                y=is_rare,
                rare_label=True,
                guarantee="confident",
                confidence=0.9,
                worth=Worth.precision(level),
            )
        failed += found.value < np.inf
    assert failed / n_trials <= 0.1  # far more without a correction


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("guarantee", ["expected", "confident"])
@pytest.mark.parametrize("percent", [1, 9, 30])
def test_no_item_whose_precision_was_not_tested_is_drawn(guarantee, percent):
    """Only the two highest items are rare; below them, none is flagged, not even by lot."""
    scores = np.arange(40, 0, -1) / 50
    found = calibrate_threshold(
        scores,
        Capacity.fraction(percent / 100),
        ids=np.arange(40),
        y=np.arange(40) < 2,
        rare_label=True,
        guarantee=guarantee,
        worth=Worth.precision(1),
    )
    assert found.share == 0
    flagged = found.flag(np.linspace(0, 0.9, 1_000), ids=np.arange(1_000))
    assert not flagged.any() or found.k == 2


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident"])
def test_precision_is_tested_where_equal_rows_can_be_divided(guarantee):
    """Equal rows have equal keys: no threshold lies among the 100 with 90 rare ones.

    Below the ten rows that score higher, all of which are common, the capacity has no room for a
    hundred. The precision of the first rows of the hundred is that of no threshold.
    """
    X = np.repeat([3.0, 2.0, 1.0], [10, 100, 890])[:, np.newaxis]
    is_rare = np.zeros(1_000, dtype=bool)
    is_rare[10:100] = True
    model = FrozenEstimator(_OwnScore().fit(X, is_rare))
    options = {"rare_label": True, "guarantee": guarantee, "worth": Worth.precision(0.5)}
    rule = CapacityClassifier(model, capacity=Capacity.fraction(0.09), **options).fit(X, is_rare)
    assert not rule.flag(X).any()
    assert rule.with_capacity(Capacity.fraction(0.2)).flag(X)[:110].all()
    assert rule.decide(X, act=0.5).acted.tolist() == (X[:, 0] > 1).tolist()


class _OwnScore(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]
