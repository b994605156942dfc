"""Moments of every kind: none of them opens a budget twice."""

import itertools
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shortlist import Capacity
from shortlist.online import BudgetController, QuantileTracker
from shortlist.online.periods import FixedPeriod

DAY = 86_400.0


def budget(capacity=2, **options):
    """Return a budget that flags anything above zero."""
    options = {"period": DAY, "expected_arrivals": 10, **options}
    return BudgetController(Capacity.count(capacity), calibration_scores=np.zeros(5), **options)


@pytest.mark.parametrize("day", [1, 20_000, 10_000_000, -20_000])
def test_the_last_instant_of_a_day_belongs_to_it(day):
    """This holds even where the quotient of moment and period rounds up to the next day."""
    controller = budget().observe(0.0, at=(day - 1) * DAY)  # the stream sees the whole day
    last = np.nextafter(day * DAY, -np.inf)
    times = (last - 9, last, last, last, day * DAY)
    flags = [controller.decide(1.0 + i, at=at).flag for i, at in enumerate(times)]
    assert flags == [True, True, False, False, True]


@pytest.mark.parametrize("period", [0.1, 1 / 3, 7.0, 86_399.9])
def test_periods_of_any_length_start_where_their_numbers_say(period):
    """The controller and `FixedPeriod` agree on every item at and around a boundary."""
    starts = 1.7e9 + np.arange(1, 60) * period
    times = np.sort(np.concatenate([starts, np.nextafter(starts, 0), np.nextafter(starts, 2e9)]))
    controller = budget(1, period=period, starts_at=1.7e9)
    flagged = controller.decide_many(np.ones(times.size), at=times).flagged
    periods = FixedPeriod(period, 1.7e9)
    numbers = np.array([periods.number(at) for at in times])
    assert np.bincount(numbers[flagged]).max() == 1


def test_moments_before_1970_count_like_others():
    """Periods before 1970 have negative numbers and the same length."""
    controller = budget()
    times = [-1.5 * DAY, -1.2 * DAY, -1.1 * DAY, -1.0 * DAY, -0.1, 0.0]
    flags = [controller.decide(1.0 + i, at=at).flag for i, at in enumerate(times)]
    assert flags == [True, True, False, True, True, True]


def test_an_hour_that_comes_twice_is_two_hours():
    """When summer time ends, 02:30 occurs twice; the two are an hour apart and each counts once."""
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    second = first.replace(fold=1)
    controller = budget(1, period=3_600.0)
    assert [controller.decide(1.0, at=at).flag for at in (first, second)] == [True, True]
    controller = budget(1, period=7_200.0)
    assert [controller.decide(1.0, at=at).flag for at in (first, second)] == [True, False]


def test_the_same_moment_in_any_spelling():
    """With a time zone, without (UTC), pandas, NumPy or seconds: all are equal and can be mixed."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    spellings = [
        noon,
        noon.replace(tzinfo=None),
        noon.astimezone(timezone(timedelta(hours=-9))),
        noon.astimezone(ZoneInfo("Asia/Kolkata")),
        pd.Timestamp(noon),
        np.datetime64("2026-03-01T12:00:00"),
        int(noon.timestamp()),
        np.float64(noon.timestamp()),
    ]
    for one, other in itertools.permutations(spellings, 2):
        controller = budget(1)
        assert controller.decide(1.0, at=one).flag
        assert not controller.decide(2.0, at=other).flag
    mixed = budget(1)
    batch = mixed.decide_many(np.ones(len(spellings)), at=np.array(spellings, dtype=object))
    assert batch.flagged.sum() == 1


@pytest.mark.parametrize("missing", [pd.NaT, np.datetime64("NaT", "s"), np.nan, None])
def test_a_missing_moment_is_an_error_and_changes_nothing(missing):
    """One missing moment among many raises an error before the clock moves."""
    controller = budget()
    controller.decide(1.0, at=5.0)
    before = controller.state()
    with pytest.raises((TypeError, ValueError), match="at"):
        controller.decide(1.0, at=missing)
    with pytest.raises((TypeError, ValueError), match="at"):
        controller.decide_many([1.0, 1.0], at=np.array([6.0, missing], dtype=object))
    assert controller.state() == before


def test_without_a_period_moments_may_come_and_go():
    """A rate counts items; an item without a moment leaves the time unchanged."""
    plain, mixed = (
        QuantileTracker(Capacity.fraction(0.1), calibration_scores=np.arange(50.0), step=0.1)
        for _ in range(2)
    )
    scores = np.arange(40.0) % 13 + 40
    moments = [None, 5.0, None, 3.0, 9.0] * 8
    expected = plain.decide_many(scores).flagged
    flagged = [
        mixed.decide(float(score), at=at).flag for score, at in zip(scores, moments, strict=True)
    ]
    assert_array_equal(flagged, expected)


def test_one_moment_in_milliseconds_changes_nothing():
    """It is refused, its id is not remembered, and the items after it are decided as without it."""
    with_it, without = budget(), budget()
    for controller in (with_it, without):
        controller.decide(1.0, at=20_000 * DAY, id="a")
    refused = with_it.decide(9.0, at=20_000 * DAY * 1_000, id="b")
    assert refused == (False, np.inf, "moment refused", 0.0)
    assert with_it.now == 20_000 * DAY
    for controller in (with_it, without):
        assert controller.decide(2.0, at=20_000 * DAY + 5, id="b").flag
        assert not controller.decide(3.0, at=20_000 * DAY + 9).flag
        assert controller.decide(4.0, at=20_001 * DAY).flag
    assert with_it.state() == without.state()


@pytest.mark.parametrize(
    ("period", "farthest"), [(60.0, 7 * DAY), (DAY, 31 * DAY), (7 * DAY, 217 * DAY)]
)
def test_how_far_a_clock_may_jump(period, farthest):
    """Up to 31 periods, and at least a week, are a pause; beyond, a moment is refused."""
    for beyond, reason in ((0.0, "above threshold"), (1.0, "moment refused")):
        controller = budget(period=period)
        assert controller.farthest_jump == farthest
        controller.decide(1.0, at=0.0)
        assert controller.decide(2.0, at=farthest + beyond).reason == reason


def test_five_moments_in_a_row_move_the_clock():
    """An item from before starts the count again, and so does a moment that does not agree."""
    controller = budget()
    controller.decide(1.0, at=0.0)
    year = 365 * DAY
    times = [year] * 4 + [5.0] + [year] * 3 + [9 * year] + [year + 60 * i for i in range(5)]
    batch = controller.decide_many(np.arange(2.0, 16.0), at=np.array(times))
    refused = (batch.reasons == "moment refused").tolist()
    assert refused == [True] * 4 + [False] + [True] * 8 + [False]
    assert controller.now == year + 240
    assert not batch.flagged[refused].any()


def test_a_refused_moment_is_not_observed():
    """Neither the clock nor what was learned moves."""
    controller = budget().observe(1.0, at=0.0)
    before = controller.state()
    controller.observe([2.0, 3.0], at=np.array([1e12, 1e9]))
    assert {**controller.state(), "suspect": [], "digest": before["digest"]} == before


def test_a_rate_has_no_jumps():
    """Without a period, moments only date announcements."""
    tracker = QuantileTracker(Capacity.fraction(0.5), calibration_scores=np.arange(9.0))
    assert tracker.farthest_jump == np.inf
    tracker.decide(1.0, at=0.0)
    assert tracker.decide(9.0, at=1e12).reason == "above threshold"
