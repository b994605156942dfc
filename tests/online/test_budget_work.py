"""A budget of work per period: never exceeded, and filled by small cases where large ones end."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController, Controller, QuantileTracker
from shortlist.online._pacing import TOTAL, USED, USUAL_WORK
from tests.online.checks import array_of, check_controller, with_array, with_number

CALIBRATION = np.random.default_rng(0).exponential(size=500)


def budget(value=480, **options):
    """Return a controller for a budget of work in each 100 seconds."""
    return BudgetController(
        Capacity.effort(value),
        **{
            "period": 100,
            "expected_arrivals": 100,
            "expected_effort": 20,
            "calibration_scores": CALIBRATION,
            **options,
        },
    )


def test_it_passes_all_checks():
    """A budget of work keeps everything that every controller promises."""
    scores = np.random.default_rng(0).normal(size=500)
    check_controller(lambda: budget(30, calibration_scores=scores, expected_effort=2))


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 50),
            st.sampled_from([0.1, 0.3, 1, 7, 20, 60, 1 / 3, 1e-7]) | st.floats(0.001, 600),
            st.integers(-30, 60),
        ),
        min_size=1,
        max_size=80,
    ),
    st.integers(0, 6_000).map(lambda tenths: tenths / 10),
    st.integers(0, 79),
)
def test_no_period_exceeds_its_budget(items, value, restart):
    """In exact arithmetic, for any items, clocks and restarts, the work is within the budget."""
    controller, now, spent = budget(value), 0.0, {}
    for number, (score, effort, step) in enumerate(items):
        if number == restart:
            controller = Controller.from_state(json.loads(json.dumps(controller.state())))
        now += step
        if controller.decide(score, at=now, effort=effort).flag:
            period = int(controller.now // 100)
            spent[period] = spent.get(period, 0) + Fraction(str(effort))
    assert all(work <= Fraction(str(value)) for work in spent.values())


def test_efforts_of_one_are_a_number_of_flags():
    """With equal efforts, decisions and thresholds are those of a count, bit for bit."""
    rng = np.random.default_rng(1)
    scores, times = rng.exponential(size=2_000), np.sort(rng.uniform(0, 1_500, size=2_000))
    options = {
        "period": 100,
        "expected_arrivals": 100,
        "calibration_scores": CALIBRATION,
    }
    counted = BudgetController(Capacity.count(7), **options)
    worked = BudgetController(Capacity.effort(7), **options, expected_effort=1)
    expected = counted.decide_many(scores, at=times)
    found = worked.decide_many(scores, at=times, efforts=np.ones(2_000))
    assert np.array_equal(found.thresholds, expected.thresholds)
    assert np.array_equal(found.flagged, expected.flagged)
    assert worked.remaining == counted.remaining


def test_small_cases_fill_what_large_ones_leave():
    """A case that does not fit is left out, and a smaller one still gets the rest."""
    controller = budget(100, expected_arrivals=3)
    answers = [
        controller.decide(40 + i, at=float(i), effort=effort)
        for i, effort in enumerate([70, 60, 20, 20, 10, 5])
    ]
    assert [each.flag for each in answers] == [True, False, True, False, True, False]
    assert answers[1].reason == "capacity used up"
    assert controller.remaining == 0


def test_it_spends_the_budget_on_the_best():
    """Over days of random cases, most of the budget is spent, and well."""
    rng = np.random.default_rng(2)
    n = 20_000
    scores, minutes = rng.exponential(size=n), rng.integers(5, 61, size=n)
    times = np.sort(rng.uniform(0, 10_000, size=n))
    controller = budget(480, expected_arrivals=200, expected_effort=30)
    flagged = controller.decide_many(scores, at=times, efforts=minutes).flagged
    spent = np.bincount((times[flagged] // 100).astype(int), minutes[flagged], minlength=100)
    assert spent.max() <= 480
    assert spent.mean() > 0.9 * 480
    value = (scores * minutes)[flagged].sum()
    best = 0.0
    for day in range(100):
        rows = np.flatnonzero(times // 100 == day)
        rows = rows[np.argsort(-scores[rows])]
        kept = rows[np.cumsum(minutes[rows]) <= 480]
        best += (scores * minutes)[kept].sum()
    assert value > 0.85 * best


def test_budgets_and_efforts_belong_together():
    """Mixing flags and work raises an error that says what to do."""
    with pytest.raises(CapacityError, match="needs expected_effort"):
        budget(expected_effort=None)
    with pytest.raises(CapacityError, match="has no expected_effort"):
        BudgetController(
            Capacity.count(5),
            period=100,
            expected_arrivals=10,
            expected_effort=3,
            calibration_scores=CALIBRATION,
        )
    with pytest.raises(CapacityError, match="every item needs its effort"):
        budget().decide(1.0, at=0.0)
    with pytest.raises(CapacityError, match="cannot change to"):
        budget().set_capacity(Capacity.count(5))
    with pytest.raises(CapacityError, match="at most"):
        budget(1e15)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: with_number(state, "ints", USED, -5),
        lambda state: with_number(state, "ints", TOTAL, 10**15),
        lambda state: with_number(state, "floats", USUAL_WORK, 0.0),
        lambda state: with_array(state, "ints", array_of(state, "ints")[:-1]),
        lambda state: {**state, "capacity": {**state["capacity"], "kind": "count"}},
    ],
)
def test_tampered_states_are_refused(change):
    """A state that would open the budget again raises an error."""
    state = budget().state()
    with pytest.raises(ValueError, match="state"):
        Controller.from_state(change(state))


def test_a_rate_is_one_of_flags():
    """Work per so many items belongs to a budget, which no stretch of them exceeds."""
    with pytest.raises(CapacityError, match="BudgetController"):
        QuantileTracker(Capacity.effort(300, per=1_000), calibration_scores=CALIBRATION)
