"""Periods of a calendar, with summer time."""

import copy
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    CalendarPeriod,
    QuantileTracker,
)
from tests.online.checks import check_controller, decision_of

BERLIN = ZoneInfo("Europe/Berlin")
TEXTS = [
    "day Europe/Berlin",
    "week America/Havana",
    "month Pacific/Apia",
    "Mon-Fri 09:00-17:00 Europe/Berlin",
    "Wed-Sun 00:30-02:30 America/New_York",
]


def moment(*parts):
    """Return the seconds of a local time in Berlin."""
    return datetime(*parts, tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 23), (10, 25, 25), (6, 1, 24)])
def test_days_have_23_24_or_25_hours(month, day, hours):
    """A day lasts from midnight to midnight of its own clock."""
    period = CalendarPeriod("day Europe/Berlin")
    start, end = period.bounds(period.number(moment(2026, month, day, 12)))
    assert (end - start) / 3600 == hours
    assert datetime.fromtimestamp(start, BERLIN).hour == 0


@settings(max_examples=200)
@given(st.sampled_from(TEXTS), st.floats(0, 4e9))
def test_every_moment_lies_in_one_period(text, at):
    """The bounds of its period contain a moment, and neighbours touch."""
    period = CalendarPeriod(text)
    number = period.number(at)
    start, end = period.bounds(number)
    assert start <= at < end
    assert period.bounds(number + 1)[0] == end
    assert np.floor(period.progress(np.array([at])))[0] == number


@settings(max_examples=100)
@given(st.sampled_from(TEXTS), st.integers(-100, 1_000))
def test_the_last_instant_of_a_period_is_in_it(text, number):
    """Rounding never counts an item in a period that has not begun."""
    period = CalendarPeriod(text)
    start, end = period.bounds(number)
    if start < end:  # the island of Apia left out a day
        times = np.array([start, np.nextafter(end, -np.inf)])
        assert np.floor(period.progress(times)).tolist() == [number, number]
        assert [period.number(at) for at in times] == [number, number]


def test_nights_and_weekends_belong_to_the_next_working_day():
    """What arrives after closing is work for the day that opens next."""
    period = CalendarPeriod("Mon-Fri 09:00-17:00 Europe/Berlin")
    friday, evening, sunday, monday = (
        period.number(moment(2026, 6, day, hour))
        for day, hour in ((5, 16), (5, 18), (7, 12), (8, 16))
    )
    assert evening == sunday == monday == friday + 1
    opening = period.progress(np.array([moment(2026, 6, 8, 9)]))[0]
    assert opening == monday + 0.5


@pytest.mark.parametrize(
    "text",
    ["year UTC", "day", "day Moon/Sea", "Fri-Mon 09:00-17:00 UTC", "Mon-Fri 25:00-26:00 UTC"],
)
def test_texts_that_are_not_understood_are_refused(text):
    """The error says what arrived and shows what would do."""
    with pytest.raises(ValueError, match=r"such as|time zone"):
        CalendarPeriod(text)


def budget(period="day Europe/Berlin", count=5):
    """Return a budget on a calendar."""
    return BudgetController(
        Capacity.count(count), period=period, expected_arrivals=100,
        calibration_scores=np.random.default_rng(0).normal(size=500),
    )  # fmt: skip


def test_a_budget_keeps_its_number_on_every_local_day():
    """Also on the days when clocks change; the days of 23 and 25 hours get as many flags."""
    times = np.arange(moment(2026, 3, 27), moment(2026, 4, 1), 600)
    times = np.concatenate([times, np.arange(moment(2026, 10, 23), moment(2026, 10, 28), 600)])
    scores = np.random.default_rng(1).normal(size=times.size)
    flagged = budget().decide_many(scores, at=times).flagged
    days = [datetime.fromtimestamp(at, BERLIN).date() for at in times[flagged]]
    assert {days.count(day) for day in set(days)} == {5}
    assert len(set(days)) == 10


@pytest.mark.parametrize("period", [TEXTS[0], TEXTS[3]])
def test_controllers_on_a_calendar_pass_all_checks(period):
    """Saving, batching, clocks that run back: all as with seconds."""
    scores = np.random.default_rng(0).normal(size=500)
    check_controller(
        lambda: BudgetController(
            Capacity.count(20), period=period, expected_arrivals=1_000, calibration_scores=scores
        )
    )


@given(st.lists(st.integers(0, 12)), st.lists(st.integers(0, 12)), st.integers(1, 5))
@settings(max_examples=50)
def test_ids_of_a_bundle_are_those_of_one_at_a_time(known, bundle, size):
    """Ids of a bundle are found as if they came one by one, also when old ones are forgotten."""
    alone = QuantileTracker(Capacity.fraction(0.5), calibration_scores=[0, 1], remember=size)
    together = copy.deepcopy(alone)
    expected = [alone.decide(id / 6, id=id) for id in (*known, *bundle)]
    found = []
    for ids in (known, bundle):
        batch = together.decide_many(np.array(ids) / 6, ids=np.array(ids, dtype=int))
        found += [decision_of(batch, i) for i in range(len(ids))]
    assert found == expected
    assert together.state() == alone.state()
