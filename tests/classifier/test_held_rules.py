"""The rule that a classifier holds: it decides in one pass and can change its capacity."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from shortlist import Capacity, CapacityClassifier

TENTH = Capacity.fraction(0.1)
LIMITS = {"north": Capacity.fraction(0.05), "south": Capacity.fraction(0.2)}


def logistic(**options):
    """Return a wrapped logistic regression."""
    options = {"cv": 0.5, **options}
    return CapacityClassifier(LogisticRegression(max_iter=1000), random_state=0, **options)


@pytest.fixture(scope="module")
def regions(fraud):
    """Return a region for each payment."""
    return np.random.default_rng(1).choice(["north", "south"], len(fraud[1]))


@pytest.mark.parametrize(
    ("options", "n_folds"),
    [
        ({}, 1),
        ({"cv": 3}, 3),
        ({"segment_capacities": LIMITS}, 1),
        ({"segment_capacities": LIMITS, "cv": 3}, 3),
    ],
)
def test_each_kind_of_classifier_holds_its_rule(fraud, regions, options, n_folds):
    """One threshold, one for each fold, or one for each segment."""
    X, y = fraud
    segments = {"segments": regions} if "segment_capacities" in options else {}
    model = logistic(capacity=TENTH, **options).fit(X, y, **segments)
    assert len(model.rule_.calibrations) == len(model.rule_.samples) == n_folds
    assert set(model.rule_.segment_calibrations) == set(options.get("segment_capacities", ()))
    assert [each.value for each in model.rule_.calibrations] == model.thresholds_.tolist()


@pytest.mark.parametrize("ties", ["exclude", "hash"])
def test_decide_gives_everything_in_one_pass(fraud, ties):
    """Flags, scores, thresholds and keys agree with what the other methods return."""
    X, y = fraud
    inner = KNeighborsClassifier(20)
    model = CapacityClassifier(inner, capacity=TENTH, ties=ties, random_state=0, cv=0.5).fit(X, y)
    ask = model.estimator_.predict_proba
    asked = []
    model.estimator_.predict_proba = lambda X: (asked.append(len(X)), ask(X))[1]
    decided = model.decide(X)
    assert asked == [len(X)]
    assert_array_equal(decided.flagged, model.flag(X))
    assert_array_equal(decided.scores, model.score_samples(X))
    assert_array_equal(decided.thresholds, np.full(len(X), model.threshold_))
    assert (decided.tie_keys is None) == (ties == "exclude")
    if ties == "hash":
        at_the_cut = decided.flagged & ~(decided.scores > decided.thresholds)
        assert (decided.tie_keys[at_the_cut] < model.calibration_.tie_key).all()


def test_a_rule_stays_as_it_is_when_the_capacity_changes(fraud):
    """Another capacity makes another rule, from the same calibration scores."""
    X, y = fraud
    model = logistic(capacity=TENTH).fit(X, y)
    before = model.threshold_
    wider = model.with_capacity(Capacity.fraction(0.3))
    assert model.threshold_ == before
    assert wider.threshold_ < model.threshold_
    assert_array_equal(wider.calibration_scores_, model.calibration_scores_)


def test_recalibrating_keeps_the_kind_of_the_rule(fraud, regions):
    """Segments stay segments, with thresholds from the new items."""
    X, y = fraud
    model = logistic(capacity=TENTH, segment_capacities=LIMITS).fit(X, y, segments=regions)
    before = model.rule_.segment_calibrations
    model.recalibrate(X[:2000] * 1.1, segments=regions[:2000])
    assert set(model.rule_.segment_calibrations) == set(LIMITS)
    assert model.rule_.segment_calibrations != before
    assert model.calibration_scores_.size == 2000


def test_labels_of_another_length_are_refused(fraud):
    """Recalibrating compares the number of labels with the number of items."""
    X, y = fraud
    model = logistic(capacity=TENTH).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.recalibrate(X[:100], y[:99])
