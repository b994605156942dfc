"""The budget: how it is spent, and which arguments it accepts."""

import copy
import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController
from shortlist.online._pacing import EXPECTED

DAY = 86_400.0


def make(calibration, capacity=20, **options):
    """Return a budget of twenty a day."""
    options = {"period": DAY, "expected_arrivals": 1_000, **options}
    return BudgetController(Capacity.count(capacity), calibration_scores=calibration, **options)


def arrivals(rng, days, per_day=1_000):
    """Return scores and rising times."""
    times = np.sort(rng.uniform(0, days * DAY, size=days * per_day))
    return rng.normal(size=times.size), times


def caught(scores, times, flagged, capacity):
    """Return the share of each day's highest scores that were flagged."""
    days = (times // DAY).astype(int)
    shares = []
    for day in range(days.max() + 1):
        today = days == day
        best = np.sort(scores[today])[-capacity]
        shares.append((scores[today & flagged] >= best).mean() if flagged[today].any() else 0)
    return np.array(shares)


def test_most_of_the_highest_scores_are_flagged(rng):
    """On a steady stream, nearly the whole budget goes to the highest scores."""
    scores, times = arrivals(rng, 10)
    budget = make(rng.normal(size=5_000))
    flagged = budget.decide_many(scores, at=times).flagged
    days = np.bincount((times[flagged] // DAY).astype(int))
    assert days.max() <= 20
    assert days.min() >= 18
    assert caught(scores, times, flagged, 20).mean() > 0.7


def test_tied_scores_use_the_budget_too(rng):
    """With five per cent of all items tied at the top, a day still uses its two per cent."""
    scores, times = arrivals(rng, 10)
    scores = np.minimum(scores, np.quantile(scores, 0.95))
    flagged = make(scores).decide_many(scores, at=times).flagged
    days = np.bincount((times[flagged] // DAY).astype(int), minlength=10)
    assert days.max() <= 20
    assert days.min() >= 15
    assert (scores[flagged] == scores.max()).mean() > 0.7


def test_a_day_that_always_ends_high_is_learned(rng):
    """Scores that rise through the day are anticipated from the pattern of earlier days."""
    scores, times = arrivals(rng, 12)
    order = np.lexsort((scores, times // DAY))
    flagged = make(rng.normal(size=5_000)).decide_many(scores[order], at=times).flagged
    late = slice(5, None)  # after some days to learn from
    assert caught(scores[order], times, flagged, 20)[late].mean() > 0.6


def test_a_lowered_capacity_holds_at_once(rng):
    """Below the number already used, nothing more is flagged until the next day."""
    budget = make(rng.normal(size=5_000))
    rising = np.arange(9.0, 21.0)
    assert budget.decide_many(rising, at=0.0).flagged.sum() == 12
    budget.set_capacity(Capacity.count(10))
    assert budget.remaining == 0
    decision = budget.decide(99.0, at=1.0)
    assert (decision.flag, decision.reason) == (False, "capacity used up")
    assert budget.decide_many(100 + rising, at=DAY).flagged.sum() == 10


def test_a_larger_capacity_thins_the_lists_and_is_used(rng):
    """From twenty to two thousand in mid-day: the lists do not grow, and the limit holds."""
    budget = make(rng.normal(size=5_000))
    scores, times = arrivals(rng, 4, per_day=20_000)
    budget.decide_many(scores[:10_000], at=times[:10_000])
    budget.set_capacity(Capacity.count(2_000))
    flagged = budget.decide_many(scores[10_000:], at=times[10_000:]).flagged
    days = np.bincount((times[10_000:][flagged] // DAY).astype(int))
    assert days.max() <= 2_000
    assert days[1:].min() > 1_900


def test_moments_may_be_datetimes(rng):
    """Datetimes, with a time zone or without (UTC), equal seconds; periods start at any hour."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    budgets = [make(rng.normal(size=50) * 0, capacity=1) for _ in range(3)]
    for budget, at in zip(
        budgets, (noon, noon.replace(tzinfo=None), noon.timestamp()), strict=True
    ):
        assert budget.decide(1.0, at=at).flag
        assert not budget.decide(1.0, at=noon + timedelta(hours=11)).flag
        assert budget.decide(1.0, at=noon + timedelta(hours=12)).flag
    eastern = make(np.zeros(5), capacity=1, starts_at=5 * 3_600)
    assert eastern.decide(1.0, at=noon).flag
    assert not eastern.decide(1.0, at=noon + timedelta(hours=16)).flag
    assert eastern.decide(1.0, at=noon + timedelta(hours=17)).flag


def test_moments_are_passed_in():
    """A missing moment raises an error."""
    with pytest.raises(ValueError, match="at is required"):
        make(np.zeros(5)).decide(1.0)


def test_a_clock_that_flaps_at_midnight_opens_no_budget_twice():
    """Back and forth over midnight, both days together use at most two budgets."""
    budget = make(np.zeros(5), capacity=5)
    times = DAY + np.tile([-1.0, 1.0], 100)
    assert budget.decide_many(np.ones(200), at=times).flagged.sum() <= 10


def test_the_first_day_may_be_joined_late(rng):
    """Nothing is learned from a day that was not seen from its start."""
    budget = make(rng.normal(size=5_000))
    expected = budget.state_floats[2]
    budget.decide_many(rng.normal(size=10), at=0.9 * DAY)
    budget.decide(0.0, at=DAY)
    assert budget.state_floats[2] == expected


@pytest.mark.parametrize("hour", [1, 12, 22, 23.9])
def test_a_stream_that_starts_late_in_the_day_starts_at_the_usual_threshold(hour):
    """Unseen hours are no silence: the share of the flags that is left meets its share of items."""
    calibration = np.linspace(0, 1, 1_440)
    late, early = (make(calibration, 50, expected_arrivals=1_440) for _ in range(2))
    usual = early.decide(0.0, at=0.0).threshold
    assert usual == pytest.approx(1 - 50 / 1_440, abs=0.01)
    assert late.decide(0.026, at=hour * 3_600).threshold == pytest.approx(usual, abs=0.01)
    assert not late.decide(0.026, at=hour * 3_600).flag


def test_a_stream_that_starts_late_uses_its_share_of_the_number(rng):
    """From 18:00 on, a quarter of the flags are used; from the next day on, all of them."""
    scores, times = arrivals(rng, 3)
    seen = times > 0.75 * DAY
    flagged = make(rng.normal(size=5_000)).decide_many(scores[seen], at=times[seen]).flagged
    days = np.bincount((times[seen][flagged] // DAY).astype(int))
    assert 3 <= days[0] <= 5  # of twenty
    assert days[1:].min() >= 18


def test_a_part_of_a_flag_is_not_spent_on_any_item(rng):
    """From 22:00 on, 4.2 of 50 flags are left: the last goes to a high score, or to none."""
    calibration = rng.normal(size=5_000)
    usual = np.quantile(calibration, 1 - 50 / 1_440)
    times = DAY * (22 + np.linspace(0, 1.999, 120)) / 24
    for _ in range(20):
        budget = make(calibration, 50, expected_arrivals=1_440)
        scores = rng.normal(size=120)
        scores[:4] = 9.0
        flagged = budget.decide_many(scores, at=times).flagged
        assert flagged[:4].all()
        assert flagged.sum() <= 5
        assert scores[flagged].min() > usual - 0.2


@pytest.mark.parametrize(("seconds", "unseen"), [(0.0, 0.0), (200.0, 0.0), (21_600.0, 0.25)])
def test_the_gap_before_the_first_item_is_no_late_start(seconds, unseen):
    """Of a thousand items a day, the first may come some minutes after midnight; none is unseen."""
    budget = make(np.arange(50.0)).observe(1.0, at=seconds)
    assert budget.state_floats[5] == pytest.approx(unseen)


def test_a_stream_may_start_at_the_last_instant_of_a_day():
    """Nothing but rounding is left of the day, and the state can be loaded."""
    budget = make(np.zeros(5))
    budget.decide(1.0, at=float(np.nextafter(0.0, -1.0)))
    assert BudgetController.from_state(budget.state()).state() == budget.state()


def test_a_saved_budget_stays_small(rng):
    """Even for thousands of flags a day, the state fits into two megabytes."""
    budget = make(rng.normal(size=5_000), capacity=5_000, expected_arrivals=100_000)
    scores, times = arrivals(rng, 3, per_day=50_000)
    budget.decide_many(scores, at=times)
    assert len(json.dumps(budget.state())) < 2_000_000


@pytest.mark.parametrize(
    ("capacity", "options", "match"),
    [
        (Capacity.fraction(0.1), {}, "QuantileTracker"),
        (Capacity.count(5, per=10), {}, "period"),
        (Capacity.count(5), {"period": None}, "per=n"),
        (Capacity.count(5), {"expected_arrivals": None}, "expected_arrivals"),
        (Capacity.count(5), {"period": -1}, "period"),
    ],
)
def test_invalid_budgets_are_explained(capacity, options, match):
    """The error names the argument and the alternative."""
    options = {"period": DAY, "expected_arrivals": 10, **options}
    with pytest.raises((CapacityError, ValueError), match=match):
        BudgetController(capacity, calibration_scores=[0.0], **options)


# --- a multiple of the base rate ------------------------------------------------------------------


def of_rare(calibration, b=3, prevalence=0.01, **options):
    """Return a budget of b times the rare cases to be expected in a day."""
    options = {"period": DAY, "expected_arrivals": 1_000, **options}
    capacity = Capacity.multiple(b)
    return BudgetController(
        capacity, calibration_scores=calibration, prevalence=prevalence, **options
    )


def test_a_multiple_follows_the_base_rate(rng):
    """The number is b times the rare cases to be expected, rounded down, before and after."""
    budget = of_rare(rng.normal(size=500))
    rising, times = np.arange(10.0, 1_010.0), np.arange(1_000) * 86.0
    assert budget.decide_many(rising, at=times).flagged.sum() == 30
    budget.set_prevalence(0.0049)
    assert budget.decide_many(rising + 1_000, at=DAY + times).flagged.sum() == 14
    loaded = BudgetController.from_state(json.loads(json.dumps(budget.state())))
    assert loaded.set_prevalence(0.02).state() == budget.set_prevalence(0.02).state()
    assert budget.remaining == 60 - 14


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 0.3), st.integers(1, 60)), min_size=1, max_size=8),
    st.integers(0, 10**6),
)
def test_no_day_exceeds_the_multiple_of_the_rate_in_force(days, seed):
    """Whatever the base rate does, each day has at most b times what it made expect."""
    rng = np.random.default_rng(seed)
    budget = of_rare([0.0, 1.0], prevalence=0.1, expected_arrivals=30)
    for day, (prevalence, n) in enumerate(days):
        budget.set_prevalence(prevalence)
        allowed = 3 * prevalence * max(budget.state_floats[EXPECTED], 1)
        times = day * DAY + np.sort(rng.uniform(0, DAY - 1, size=n))
        assert budget.decide_many(rng.normal(size=n), at=times).flagged.sum() <= allowed + 1e-9


def test_a_rate_that_means_nothing_changes_nothing(rng):
    """A capacity without a base rate, and a share above 1, are errors that leave all as it was."""
    with pytest.raises(CapacityError, match="does not refer to the base rate"):
        make(rng.normal(size=50)).set_prevalence(0.1)
    budget = of_rare(rng.normal(size=50))
    before = budget.state()
    for wrong in (0.5, -0.1, np.nan, "0.1"):
        with pytest.raises((ValueError, TypeError)):
            budget.set_prevalence(wrong)
    assert budget.state() == before
    with pytest.raises(CapacityError, match="prevalence"):
        of_rare([0.0], prevalence=None)
    with pytest.raises(CapacityError, match="with the same n"):
        of_rare([0.0], period=None, expected_arrivals=None)


def test_a_base_rate_is_not_shared_with_copies(rng):
    """A copy follows another base rate without the first one."""
    budget = of_rare(rng.normal(size=50))
    before = budget.state()
    copy.deepcopy(budget).set_prevalence(0.02)
    assert budget.state() == before


def test_a_base_rate_that_an_announced_multiple_cannot_have_changes_nothing(rng):
    """Otherwise the change would be lost by an error when it is due."""
    budget = of_rare(rng.normal(size=50), prevalence=0.01)
    budget.decide(0.0, at=0.0)
    budget.set_capacity(Capacity.multiple(50), at=100.0)
    before = budget.state()
    with pytest.raises(CapacityError, match="at most 1 / prevalence"):
        budget.set_prevalence(0.05)
    assert budget.state() == before
    budget.decide(0.0, at=200.0)
    assert budget.capacity == Capacity.multiple(50)
