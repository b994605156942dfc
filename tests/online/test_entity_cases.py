"""Events of one entity are one case: one slot, a cool-down, an allow-list, in any order."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.online import BudgetController, EntityCases, QuantileTracker

SLOTS, PERIOD, WINDOW, COOLDOWN, RISE = 3, 100.0, 20.0, 50.0, 2.0


def budget(**options):
    """Return a controller with three slots per 100 seconds that flags scores above 5 at first."""
    return BudgetController(
        Capacity.count(SLOTS),
        **{
            "period": PERIOD,
            "expected_arrivals": 20,
            "calibration_scores": np.linspace(0, 6, 50),
            **options,
        },
    )


def rule(**options):
    """Return the rule of most tests."""
    return EntityCases(**{"window": WINDOW, "cooldown": COOLDOWN, "rise": RISE, **options})


events = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from([0.0, 3.0, 5.5, 6.5, 8.0, 9.0, 30.0]),
        st.floats(-40, 40),  # seconds since the event before: some come late
        st.integers(0, 60),  # ids: some come again
    ),
    max_size=120,
)


def slow_twin(flags, now, score):
    """Return whether an event is to be decided, from the rule in words and all earlier flags.

    `flags` are the flags of the entity: moment, and the highest score of the case so far.
    """
    if not flags:
        return True
    begun, highest = flags[-1]
    if now < begun + WINDOW:
        return False
    return now >= begun + WINDOW + COOLDOWN or score >= highest + RISE


def test_a_late_event_counts_at_the_latest_moment():
    """A case that begins with it lasts from then on: its next event joins it."""
    controller, cases = budget(), rule()
    cases.decide(controller, 0.0, entity="b", at=90.0)
    assert cases.decide(controller, 9.0, entity="a", at=0.0).flag
    assert cases.decide(controller, 30.0, entity="a", at=95.0).reason == "joined a case"


@settings(max_examples=150, deadline=None)
@given(events, st.lists(st.integers(0, 119), max_size=4))
def test_no_order_of_events_takes_more_slots_or_raises_a_case_twice(stream, restarts):
    """Late events, repeats and restarts: the rule in words holds, and no period is over."""
    controller, cases = budget(), rule()
    at, now, first_answers = 0.0, -np.inf, {}
    flags = {entity: [] for entity in "abcd"}
    used: dict[float, int] = {}
    for place, (entity, score, step, id) in enumerate(stream):
        if place in restarts:
            controller = BudgetController.from_state(json.loads(json.dumps(controller.state())))
            cases = pickle.loads(pickle.dumps(cases))
        at += step
        answer = cases.decide(controller, score, entity=entity, at=at, id=id)
        if id in first_answers:
            assert (answer.flag, answer.reason) == (first_answers[id], "seen before")
            continue
        first_answers[id] = answer.flag
        now, own = max(now, at), flags[entity]
        assert (answer.reason != "joined a case") == slow_twin(own, now, score)
        if answer.flag:
            own.append((now, score))
            used[now // PERIOD] = used.get(now // PERIOD, 0) + 1
        elif own and now < own[-1][0] + WINDOW + COOLDOWN:
            own[-1] = own[-1][0], max(own[-1][1], score)
    assert all(n <= SLOTS for n in used.values())


@settings(max_examples=60, deadline=None)
@given(events)
def test_what_joins_changes_no_decision_about_others(stream):
    """The controller decides as if events that join had never come."""
    with_all, without = budget(), budget()
    cases, at = rule(), 0.0
    for entity, score, step, _ in stream:
        at += abs(step)
        answer = cases.decide(with_all, score, entity=entity, at=at)
        if answer.reason != "joined a case":
            assert without.decide(score, at=at) == answer


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 300)), max_size=60),
    st.randoms(use_true_random=False),
)
def test_every_row_of_a_table_is_in_one_case(rows, random):
    """Cases have one entity, lie within a window, are as few as that allows; order is no matter."""
    names, at = [name for name, _ in rows], np.array([moment for _, moment in rows])
    numbers = rule().number(names, at)
    for number in range(numbers.max(initial=-1) + 1):
        own = numbers == number
        assert len({names[i] for i in np.flatnonzero(own)}) == 1
        assert np.ptp(at[own]) < WINDOW
    for entity in "abc":
        own = np.array([name == entity for name in names], dtype=bool)
        starts = np.sort([at[numbers == n].min() for n in np.unique(numbers[own])])
        assert np.all(np.diff(starts) >= WINDOW)
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = rule().number([names[i] for i in order], at[order])
    pairs = {(a, b) for a, b in zip(numbers[order].tolist(), shuffled.tolist(), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_without_moments_all_rows_of_an_entity_are_one_case():
    """Entities may be numbers or texts, which differ."""
    assert rule().number([7, "a", 7, "7", "a"]).tolist() == [0, 1, 0, 2, 1]


def test_an_allowance_has_an_end():
    """Until then nothing of the entity is decided, and nobody else is spared."""
    controller, cases = budget(), rule(allowed={"a": 50})
    answers = [
        cases.decide(controller, 30.0, entity=entity, at=at, id=f"{entity}{at}").reason
        for at, entity in ((0, "a"), (49, "a"), (49, "b"), (50, "a"))
    ]
    assert answers == ["allowed", "allowed", "above threshold", "above threshold"]
    cases.allow("b", 500)
    assert cases.decide(controller, 99.0, entity="b", at=51).reason == "allowed"
    again = cases.decide(controller, 99.0, entity="a", at=52, id="a0")
    assert (again.flag, again.reason) == (False, "seen before")


def test_a_case_takes_the_effort_of_one():
    """What joins takes no work of the budget."""
    controller = BudgetController(
        Capacity.effort(60),
        period=PERIOD,
        expected_arrivals=20,
        expected_effort=20,
        calibration_scores=np.linspace(0, 6, 50),
    )
    cases = rule()
    for at in range(5):
        cases.decide(controller, 30.0 + at, entity="a", at=at, effort=25)
    assert controller.remaining == 35


def test_a_moment_far_ahead_is_refused_for_events_that_join_too():
    """A moment in milliseconds moves no clock, and ends no cool-down."""
    controller, cases = budget(), rule()
    assert cases.decide(controller, 30.0, entity="a", at=0, id=1).flag
    assert cases.decide(controller, 31.0, entity="a", at=1e12, id=2).reason == "moment refused"
    assert cases.decide(controller, 31.0, entity="a", at=1, id=2).reason == "joined a case"
    assert controller.now == 1


def test_rates_have_cases_too():
    """A tracker, which keeps no time of its own, gets the moments of the rule."""
    tracker, cases = QuantileTracker(Capacity.fraction(0.1), calibration_scores=range(9)), rule()
    answers = [cases.decide(tracker, 99.0, entity="a", at=at).flag for at in (0, 19, 20, 69, 70)]
    assert answers == [True, False, False, False, True]
    assert tracker.n_items == 2


def test_a_window_can_be_shorter_than_the_clock_can_tell():
    """A case is then over at once, and takes its slot all the same."""
    controller, cases = budget(), EntityCases(window=1e-7)
    assert cases.decide(controller, 30.0, entity="a", at=1.7e9).flag
    assert cases.case_of("a", 1.7e9) is None


def test_cases_that_are_over_are_forgotten():
    """The state does not grow with the entities that ever were."""
    tracker, cases = QuantileTracker(Capacity.fraction(1), calibration_scores=range(9)), rule()
    for at in range(0, 10_000, 10):
        assert cases.decide(tracker, 99.0, entity=at, at=at).flag
    assert len(cases._cases) <= (WINDOW + COOLDOWN) / 10 + 1
    assert cases.case_of(9_990, 9_995).at == 9_990
    assert cases.case_of(0, 9_995) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window must be greater than 0"),
        ({"cooldown": -1}, "cooldown must be at least 0"),
        ({"rise": 0}, "rise must be greater than 0"),
        ({"allowed": {None: 5}}, "entity must be a string or an integer"),
        ({"allowed": {"a": "soon"}}, "at must be seconds or a datetime"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(options, message):
    """The error says what arrived and what is needed."""
    with pytest.raises((TypeError, ValueError), match=message):
        rule(**options)


@pytest.mark.parametrize("bad", [{"entity": None}, {"entity": 1.5}, {"score": np.nan}, {"at": "x"}])
def test_a_bad_event_changes_nothing(bad):
    """Neither the controller nor the cases."""
    controller, cases = budget(), rule()
    cases.decide(controller, 30.0, entity="a", at=0)
    before = controller.state(), pickle.dumps(cases)
    event = {"score": 31.0, "entity": "a", "at": 1.0, **bad}
    with pytest.raises((TypeError, ValueError)):
        cases.decide(controller, event.pop("score"), **event)
    assert (controller.state(), pickle.dumps(cases)) == before
