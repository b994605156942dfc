"""The alarm, and controllers from a classifier."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist.online import BudgetController, QuantileTracker, RateAlarm

RATE = Capacity.fraction(0.01)


def test_evidence_is_the_wealth_of_a_gambler():
    """A first flag at even odds wins nothing; the bet on the second uses the flags so far."""
    alarm = RateAlarm(Capacity.fraction(0.5), side="either")
    assert alarm.update(True).evidence == pytest.approx(1)  # the estimate was the capacity
    # Now the estimate is (5 + 1) / (5 + 0.5) times a half.
    assert alarm.update(True).evidence == pytest.approx((6 / 5.5 * 0.5) / 0.5)


@pytest.mark.parametrize(("side", "rate"), [("above", 0.03), ("below", 0.001), ("either", 0.03)])
def test_a_rate_that_has_left_is_noticed(rng, side, rate):
    """Three times as many flags, or a tenth, raise the alarm within ten thousand items."""
    alarm = RateAlarm(RATE, side=side).update(rng.random(10_000) < rate)
    assert alarm.raised


def test_an_alarm_on_one_side_is_deaf_on_the_other(rng):
    """Too few flags raise no alarm for too many, and the reverse."""
    assert not RateAlarm(RATE, side="above").update(np.zeros(20_000, dtype=bool)).raised
    assert not RateAlarm(RATE, side="below").update(np.ones(2_000, dtype=bool)).raised


def test_an_alarm_stays_raised(rng):
    """Whatever follows, a raised alarm remains raised."""
    alarm = RateAlarm(RATE).update(np.ones(20, dtype=bool))
    assert alarm.update(np.zeros(50_000, dtype=bool)).raised


def test_no_capacity_and_a_flag_is_an_alarm():
    """If nothing may be flagged, the first flag raises the alarm."""
    assert not RateAlarm(Capacity.fraction(0)).update(False).raised
    assert RateAlarm(Capacity.fraction(0)).update(True).raised
    assert not RateAlarm(Capacity.fraction(1)).update(True).raised


def test_the_state_of_an_alarm_goes_through_json(rng):
    """A loaded alarm continues with the same evidence."""
    flags = rng.random(3_000) < 0.015
    kept = RateAlarm(RATE).update(flags[:1_000])
    loaded = RateAlarm.from_state(json.loads(json.dumps(kept.state(), allow_nan=False)))
    assert kept.update(flags[1_000:]).evidence == loaded.update(flags[1_000:]).evidence


@pytest.mark.parametrize("flags", [0.5, [1, 0], [[True]], "yes"])
def test_flags_are_true_or_false(flags):
    """Anything but booleans raises an error, because scores would raise a false alarm."""
    with pytest.raises(ValueError, match="flags"):
        RateAlarm(RATE).update(flags)


@pytest.fixture(scope="module")
def classifier():
    """Return a fitted classifier with some items."""
    rng = np.random.default_rng(0)
    y = np.arange(2_000) % 20 == 0
    X = rng.normal(size=(2_000, 2)) + 2 * y[:, np.newaxis]
    model = CapacityClassifier(LogisticRegression(), capacity=Capacity.multiple(2), random_state=0)
    return model.fit(X, y), X


def test_a_classifier_makes_a_tracker_for_its_rate(classifier):
    """A multiple refers to the prevalence that the classifier knows."""
    model, X = classifier
    controller = model.controller()
    assert isinstance(controller, QuantileTracker)
    flagged = controller.decide_many(model.score_samples(X)).flagged
    assert flagged.mean() == pytest.approx(0.1, abs=0.03)


def test_a_classifier_makes_a_budget_for_a_count(classifier):
    """A count with a period, or without `per`, makes a budget."""
    model, X = classifier
    scores, times = model.score_samples(X), np.arange(2_000.0)
    plain = model.controller(Capacity.count(10), period=500, expected_arrivals=500)
    per = model.controller(Capacity.count(10, per=500), period=500)
    for controller in (plain, per):
        assert isinstance(controller, BudgetController)
        flagged = controller.decide_many(scores, at=times).flagged
        assert np.bincount((times[flagged] // 500).astype(int)).max() <= 10
    assert isinstance(model.controller(Capacity.count(10, per=500)), QuantileTracker)
