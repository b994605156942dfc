"""The alarm, and controllers from a classifier."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist.online import BudgetController, DriftAlarm, QuantileTracker


def test_an_alarm_is_raised_when_the_evidence_reaches_its_bound(rng):
    """Not before, and at once: 1 / error is what Ville's inequality allows."""
    alarm = DriftAlarm(rng.normal(size=500), error=0.02)
    while not alarm.raised:
        before = alarm.evidence
        alarm.update(rng.normal(loc=1))
    assert before < 50 <= alarm.evidence


def test_an_alarm_stays_raised_and_can_be_pickled(rng):
    """Whatever follows, a raised alarm remains raised, and a loaded one continues alike."""
    alarm = DriftAlarm(rng.normal(size=500)).update(rng.normal(loc=3, size=100))
    loaded, later = pickle.loads(pickle.dumps(alarm)), rng.normal(size=20_000)
    assert alarm.raised
    assert alarm.update(later).raised
    assert loaded.update(later).evidence == alarm.evidence


@pytest.mark.parametrize("n", [1, 2, 5])
def test_gamblers_expect_to_win_nothing(n):
    """Over all orders of six scores, the evidence after each new score is one on average."""
    evidence = np.zeros((6 - n,))
    orders = list(itertools.permutations([0.1, 0.5, 1.0, 2.0, 3.0, 5.0]))
    for order in orders:
        alarm = DriftAlarm(order[:n])
        evidence += [alarm.update(score).evidence for score in order[n:]]
    assert evidence / len(orders) == pytest.approx(np.ones(6 - n), abs=1e-9)


def test_tied_scores_are_in_random_order():
    """With two values only, over many seeds and orders, the average is one within its error."""
    rng, values = np.random.default_rng(0), np.repeat([0.0, 1.0], [8, 2])
    evidence = [
        DriftAlarm(order[:5], random_state=seed).update(order[5:]).evidence
        for seed, order in enumerate(rng.permuted(np.tile(values, (4_000, 1)), axis=1))
    ]
    assert np.mean(evidence) == pytest.approx(1, abs=4 * np.std(evidence) / np.sqrt(4_000))


@pytest.mark.parametrize(
    "drift",
    [
        lambda scores, rng: scores + 0.5,
        lambda scores, rng: scores - 0.5,
        lambda scores, rng: 1.5 * scores,
        lambda scores, rng: 0.6 * scores,
        lambda scores, rng: np.where(rng.random(scores.size) < 0.05, 4.0, scores),
    ],
    ids=["higher", "lower", "wider", "narrower", "heavier tail"],
)
@pytest.mark.parametrize("quiet", [0, 10_000])
def test_a_drift_is_noticed(rng, drift, quiet):
    """It is noticed within two thousand scores, at once or after many without drift."""
    alarm = DriftAlarm(rng.normal(size=2_000)).update(rng.normal(size=quiet))
    assert not alarm.raised
    assert alarm.update(drift(rng.normal(size=2_000), rng)).raised


def test_a_drift_alarm_is_the_same_one_by_one(rng):
    """Batches change nothing, and an alarm stays raised."""
    calibration, scores = rng.normal(size=300), rng.normal(size=500).round(1) + 1
    one, many = DriftAlarm(calibration), DriftAlarm(calibration)
    evidence = [one.update(float(score)).evidence for score in scores]
    tracked = many.track(scores)
    assert one.evidence == many.evidence
    assert tracked == pytest.approx(np.maximum.accumulate(np.maximum(np.log(evidence), 0)))
    assert many.update(rng.normal(size=20_000)).raised


def test_a_drift_alarm_can_be_pickled(rng):
    """A loaded alarm continues with the same evidence, also on tied scores."""
    scores = rng.normal(size=3_000).round(1)
    kept = DriftAlarm(scores[:500], error=0.05, random_state=7).update(scores[500:2_000])
    loaded = pickle.loads(pickle.dumps(kept))
    assert loaded.update(scores[2_000:]).evidence == kept.update(scores[2_000:]).evidence


@pytest.mark.parametrize("scores", [np.nan, [np.inf], ["x"], [[1.0]]])
def test_a_drift_alarm_wants_finite_scores(scores):
    """Anything else raises an error and changes nothing."""
    alarm = DriftAlarm(np.arange(50.0)).update(3.0)
    before = pickle.dumps(alarm)
    with pytest.raises((TypeError, ValueError)):
        alarm.update(scores)
    with pytest.raises((TypeError, ValueError)):
        DriftAlarm(scores)
    assert pickle.dumps(alarm) == before


def test_an_error_is_a_probability():
    """No other number is accepted."""
    for error in (0, 1, -0.5, np.nan):
        with pytest.raises(ValueError, match="error"):
            DriftAlarm([1.0], error=error)


@pytest.fixture(scope="module")
def classifier():
    """Return a fitted classifier with some items."""
    rng = np.random.default_rng(0)
    y = np.arange(2_000) % 20 == 0
    X = rng.normal(size=(2_000, 2)) + 2 * y[:, np.newaxis]
    model = CapacityClassifier(
        LogisticRegression(), capacity=Capacity.multiple(2), random_state=0, cv=0.5
    )
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
