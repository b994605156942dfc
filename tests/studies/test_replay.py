"""Replays, simulated streams and their display."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController, QuantileTracker, WindowController
from shortlist.worth import expected_worth
from studies.online.replay import ReplayDisplay, replay
from studies.online.streams import SCENARIOS, simulate_stream


def test_a_replay_by_hand():
    """Two periods of four items, one flag allowed in each, with numbers worked out by hand."""
    scores = [1.0, 5.0, 2.0, 0.0, 1.0, 9.0, 8.0, 0.0]
    y = [0, 0, 1, 0, 0, 1, 0, 0]
    times = [0, 1, 2, 3, 10, 11, 12, 13]
    controller = WindowController(
        Capacity.fraction(0.25), calibration_scores=[0.0, 1.0, 2.0, 3.0], window=4
    )
    table = replay(scores, y, times, controller, period=10, fixed_threshold=4)
    assert_array_equal(table.capacity, [1, 1])
    assert_array_equal(table.flags, [1, 2])  # 5 > 2, then 9 > 2 and 8 > 2 again
    assert_array_equal(table.detections, [0, 1])
    assert_array_equal(table.score, [0.0, 0.5])  # two flags where one can be seen
    assert_array_equal(table.oracle_detections, [0, 1])
    assert_array_equal(table.fixed_flags, [1, 2])
    assert table.relative_detection == 0.5
    assert table.overrun_share == 0.5
    assert json.loads(json.dumps(table.to_dict()))["flags"] == [1, 2]


def test_the_controller_stays_as_it_is():
    """Only a copy of the controller runs."""
    stream = simulate_stream(days=2, arrivals=200, max_flags=4)
    tracker = QuantileTracker(Capacity.fraction(0.02), calibration_scores=stream.calibration_scores)
    before = tracker.state()
    replay(stream.scores, stream.y, stream.times, tracker)
    assert tracker.state() == before


def test_announced_capacities_are_the_ones_in_force():
    """The controller is judged by the schedule of capacities that it was given."""
    stream = simulate_stream("capacity", days=4, arrivals=500, max_flags=10)
    budget = BudgetController(
        Capacity.count(10),
        period=stream.period,
        expected_arrivals=500,
        calibration_scores=stream.calibration_scores,
    )
    for day, capacity in enumerate(stream.capacities):
        budget.set_capacity(Capacity.count(capacity), at=day * stream.period)
    table = replay(stream.scores, stream.y, stream.times, budget)
    assert_array_equal(table.capacity, [10, 4, 10, 4])
    assert (table.flags <= table.capacity).all()


def test_a_period_without_items_is_a_row_of_zeros():
    """Without items, there are no flags."""
    tracker = QuantileTracker(Capacity.fraction(0.5), calibration_scores=[0.0, 1.0])
    table = replay([1.0, 2.0, 0.0], [0, 1, 0], [0.0, 25.0, 26.0], tracker, period=10)
    assert_array_equal(table.n_items, [1, 0, 2])
    assert_array_equal(table.flags[1], 0)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"times": [1.0, 0.0, 2.0]}, "sort"),
        ({"scores": []}, "one moment|at least one"),
        ({"y": [0, 1, 1, 0]}, "same number"),
        ({"capacity": [Capacity.count(1)] * 9}, "periods"),
        ({"times": [0.0, 1.0, 1e14], "period": 1.0}, "longer period"),
        ({"period": 0.0}, "period"),
    ],
)
def test_bad_recordings_are_explained(change, match):
    """The error says what is wrong."""
    tracker = QuantileTracker(Capacity.fraction(0.5), calibration_scores=[0.0, 1.0])
    arguments = {"scores": [0.0, 1.0, 0.0], "y": [0, 1, 0], "times": [0.0, 1.0, 2.0], **change}
    with pytest.raises(ValueError, match=match):
        replay(controller=tracker, **arguments)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_simulated_streams_are_in_order(scenario):
    """Times rise, each day has items, and the seed decides everything."""
    stream = simulate_stream(scenario, days=4, arrivals=300, max_flags=6, random_state=3)
    again = simulate_stream(scenario, days=4, arrivals=300, max_flags=6, random_state=3)
    assert (np.diff(stream.times) >= 0).all()
    assert set((stream.times // stream.period).astype(int)) == {0, 1, 2, 3}
    assert_array_equal(stream.scores, again.scores)
    assert stream.capacities.shape == (4,)


def test_an_unknown_scenario_is_named():
    """The error lists the known scenarios."""
    with pytest.raises(ValueError, match="stationary"):
        simulate_stream("war")


def test_the_picture_shows_what_the_table_says():
    """The lines have the values of the table."""
    stream = simulate_stream("jump", days=4, arrivals=500, max_flags=5)
    tracker = QuantileTracker(Capacity.fraction(0.01), calibration_scores=stream.calibration_scores)
    table = replay(stream.scores, stream.y, stream.times, tracker)
    display = ReplayDisplay(table, name="tracker").plot()
    drawn = {line.get_label(): line.get_ydata() for line in display.ax_flags_.get_lines()}
    assert_array_equal(drawn["tracker"], table.flags)
    assert_array_equal(drawn["capacity"], table.capacity)
    plt.close(display.figure_)


def test_a_replay_counts_value_against_hindsight():
    """The table has value and work per day, and compares them with an oracle."""
    rng = np.random.default_rng(4)
    n = 10_000
    p, values = rng.beta(0.5, 20, size=n), rng.lognormal(4, 1, size=n)
    minutes, y = rng.integers(5, 61, size=n), rng.uniform(size=n) < p
    times = np.sort(rng.uniform(0, 1_000, size=n))
    worth = expected_worth(p, values=values, efforts=minutes)
    controller = BudgetController(
        Capacity.effort(480),
        period=100,
        expected_arrivals=1_000,
        expected_effort=20,
        calibration_scores=worth[:2_000],
    )
    table = replay(
        p, y, times, controller, period=100, values=values, efforts=minutes, rare_label=True
    )
    assert table.capacity.tolist() == [480.0] * 10
    assert table.effort.max() <= 480
    assert table.overrun_share == 0
    assert table.value.sum() == pytest.approx(values[table.flagged & y].sum())
    assert 0.6 < table.relative_value < 1.5
    assert set(table.to_dict()) >= {"effort", "value", "oracle_value"}
    with pytest.raises(CapacityError, match="Pass efforts"):
        replay(p, y, times, controller, period=100, rare_label=True)
    plain = replay(
        p,
        y,
        times,
        BudgetController(
            Capacity.count(20), period=100, expected_arrivals=1_000, calibration_scores=p * values
        ),
        period=100,
        values=values,
        rare_label=True,
    )
    assert plain.flags.max() <= 20
    assert plain.relative_value > 0.5


def test_replay_counts_probes():
    """A replay says how many flags were probes in each period."""
    rng, day = np.random.default_rng(0), 1_000.0
    scores, times = rng.normal(size=5_000), np.sort(rng.uniform(0, 5 * day, 5_000))
    calibration, y = np.random.default_rng(0).normal(size=2_000), (scores > 1).astype(int)
    probed, plain = (
        BudgetController(
            Capacity.count(40),
            calibration_scores=calibration,
            period=day,
            expected_arrivals=1_000,
            probe=probe,
            probe_key="a key",
        )
        for probe in (0.25, 0)
    )
    table = replay(scores, y, times, probed, period=day)
    assert (table.flags <= 40).all()
    assert (table.probes > 0).any()
    assert (table.probes <= 21).all()
    assert table.to_dict()["probes"] == table.probes.tolist()
    assert "probes" not in replay(scores, y, times, plain, period=day).to_dict()
