"""Probabilities and rates of controllers and alarms, with derived tolerances."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    DriftAlarm,
    QuantileTracker,
)
from studies.online.replay import replay
from studies.online.streams import simulate_stream


@pytest.mark.parametrize(("n", "decimals"), [(10, 9), (200, 9), (200, 0), (2_000, 9)], ids=str)
def test_drift_alarms_without_drift_are_as_rare_as_promised(n, decimals):
    """The promise holds for few calibration scores and for many ties, after each of 3,000 scores.

    Fixed odds from ten calibration scores, or ties that all count as below, would nearly always
    raise the alarm.
    """
    error, trials, raised = 0.05, 400, 0
    for seed in range(trials):
        rng = np.random.default_rng([seed, n])
        scores = rng.normal(size=n + 3_000).round(decimals)
        raised += DriftAlarm(scores[:n], error=error, random_state=seed).update(scores[n:]).raised
    # Binomial(400, 0.05): 20 expected at most, standard deviation 4.4; three of them above.
    assert raised <= 20 + 3 * 4.4


def test_a_drift_alarm_comes_in_time():
    """A shift by a quarter of a standard deviation is noticed within 600 scores, half the time."""
    delays = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        evidence = DriftAlarm(rng.normal(size=5_000)).track(rng.normal(loc=0.25, size=3_000))
        late = evidence >= -np.log(0.01)
        delays.append(np.argmax(late) if late[-1] else 3_000)
    # The median is about 270 in 200 streams, with a standard error of about 40 in 60.
    assert np.median(delays) < 600


def test_the_tracker_keeps_its_rate_through_a_drift():
    """A fixed threshold ends up at many times the capacity; the tracker stays close to it."""
    stream = simulate_stream("drift", days=20, arrivals=2_000)
    tracker = QuantileTracker(
        Capacity.fraction(0.025), calibration_scores=stream.calibration_scores
    )
    table = replay(stream.scores, stream.y, stream.times, tracker)
    # |total - allowed| <= interval bound, about 12 / 0.03 = 400 flags of 1,000 in the worst case;
    # on a drift of 1.2 the offset moves by no more than about 2, that is 67 flags.
    assert abs(table.flags.sum() - 1_000) <= 100
    assert table.fixed_flags[-1] > 3 * 50


def test_a_budget_loses_little_against_hindsight():
    """On steady streams, its detections are within a few per cent of the oracle's."""
    found = []
    for seed in range(1, 5):
        stream = simulate_stream(
            "stationary", days=30, arrivals=2_000, max_flags=20, random_state=seed
        )
        budget = BudgetController(
            Capacity.count(20),
            period=stream.period,
            expected_arrivals=2_000,
            calibration_scores=stream.calibration_scores,
        )
        table = replay(stream.scores, stream.y, stream.times, budget)
        assert table.overrun_share == 0
        found.append(table.relative_detection)
    # Twenty flags a day are few: over twelve streams of about 180 oracle detections the mean was
    # 0.947, with a standard deviation of 0.047. Three standard errors of a mean of four below it.
    assert np.mean(found) > 0.947 - 3 * 0.047 / 2
