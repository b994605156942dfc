"""Cases that wait: what is handed out, what expires, and never more than the slots."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController, Controller, PullController

DAY, HOUR = 86_400.0, 3_600.0
SCORES = np.random.default_rng(0).normal(size=1_000)


def make(k=3, *, patience=4 * HOUR, **options):
    """Return a pool with a few slots a day."""
    options = {"period": DAY, "expected_arrivals": 50, "calibration_scores": SCORES, **options}
    return PullController(Capacity.count(k), patience=patience, **options)


def restarted(controller):
    """Return the controller, saved to JSON and loaded again."""
    return Controller.from_state(json.loads(json.dumps(controller.state(), allow_nan=False)))


def test_whoever_asks_gets_the_highest_score():
    """In the order of scores, ties in the order of arrival, and None when all slots are used."""
    pull = make()
    for id, score in enumerate([1.0, 3.0, 2.0, 3.0, 5.0]):
        assert pull.add(score, id=id, at=float(id))
    assert [pull.next(at=10.0).id for _ in range(3)] == [4, 1, 3]
    assert pull.next(at=11.0) is None
    assert (pull.remaining, pull.n_waiting) == (0, 2)
    pull.add(9.0, id="tomorrow", at=DAY)
    assert pull.next(at=DAY).id == "tomorrow"


def test_nobody_waits_longer_than_the_patience():
    """A case is handed out until the last moment of its patience, and not from its end on."""
    pull = make()
    pull.add(1.0, id="a", at=0.0)
    for _ in range(2):
        pull.decide(5.0, at=0.0)
    lower = make(calibration_scores=SCORES - 9)
    lower.add(1.0, id="a", at=0.0)
    assert lower.next(at=np.nextafter(4 * HOUR, 0)).id == "a"
    assert pull.next(at=np.nextafter(4 * HOUR, 0)) is None  # it is not worth the last slot
    assert pull.n_waiting == 1
    assert pull.next(at=4 * HOUR) is None
    assert (pull.n_waiting, pull.remaining) == (0, 1)


def test_slots_that_are_left_go_to_the_best_that_wait():
    """At the last moment of the period; also of periods in which nothing else happens."""
    pull = make(2, patience=3 * DAY)
    for id in range(7):
        pull.add(float(-id), id=id, at=float(id))
    assert copy.deepcopy(pull).flagged(at=DAY - 1) == []
    assert [case.id for case in copy.deepcopy(pull).flagged(at=DAY)] == [0, 1]
    assert [case.id for case in pull.flagged(at=3 * DAY)] == [0, 1, 2, 3, 4, 5]
    assert pull.n_waiting == 1


def test_a_high_score_gets_a_slot_when_its_patience_ends():
    """It is flagged then, handed out once, and its slot is used."""
    pull = make()
    pull.add(9.0, id="high", at=0.0)
    pull.add(-9.0, id="low", at=0.0)
    assert pull.remaining == 3
    asked, polled = copy.deepcopy(pull), copy.deepcopy(pull)
    assert asked.next(at=4 * HOUR).id == "high"
    assert asked.next(at=4 * HOUR) is None
    assert [case.id for case in polled.flagged(at=4 * HOUR)] == ["high"]
    assert polled.flagged(at=4 * HOUR) == []
    assert polled.next(at=5 * HOUR) is None
    assert asked.remaining == polled.remaining == 2


def test_better_cases_that_wait_raise_the_bar():
    """A case gives way if those that wait are better and need all slots."""
    alone, crowded = make(1), make(1)
    for pull in (alone, crowded):
        pull.add(4.0, id="a", at=0.0)
    crowded.add(5.0, id="b", at=HOUR)
    assert [case.id for case in alone.flagged(at=4 * HOUR)] == ["a"]
    assert crowded.flagged(at=4 * HOUR) == []
    assert crowded.next(at=4.5 * HOUR).id == "b"


def test_an_id_waits_once():
    """A repeated id changes nothing, waiting or handed out, and moments far ahead are refused."""
    pull = make()
    assert pull.add(5.0, id="a", at=0.0)
    assert not pull.add(9.0, id="a", at=1.0)
    assert pull.next(at=2.0).score == 5.0
    assert not pull.add(9.0, id="a", at=3.0)
    assert not pull.add(9.0, id="b", at=1e12)
    assert pull.next(at=1e12) is None
    assert (pull.now, pull.n_waiting, pull.n_items) == (2.0, 0, 1)


@pytest.mark.parametrize("many", [False, True])
def test_a_decision_does_not_prolong_any_patience(many):
    """An item that is decided at once settles first what was due before it."""
    asked, decided = make(), make()
    for pull in (asked, decided):
        pull.add(-1.0, id="low", at=0.0)
    if many:
        decided.decide_many([-9.0, -9.0], at=0.99 * DAY)
    else:
        decided.decide(-9.0, at=0.99 * DAY)
    assert asked.next(at=0.99 * DAY) is None
    assert decided.n_waiting == 0
    assert decided.next(at=0.99 * DAY) is None


def test_a_case_that_waits_is_known_however_many_came_after_it():
    """Neither added nor decided again, also after a restart and once flagged; then forgotten."""
    pull = make(remember=1)
    for id, score in (("a", 9.0), ("b", 8.0)):
        pull.add(score, id=id, at=0.0)
    for each in (pull, restarted(pull), copy.deepcopy(pull)):
        assert not each.add(9.0, id="a", at=1.0)
        assert each.decide(9.0, id="a", at=1.0).reason == "seen before"
        assert each.decide_many([9.0, 9.0], ids=["a", "b"], at=1.0).flagged.sum() == 0
    pull.decide(-9.0, id="c", at=5 * HOUR)  # both are flagged at the end of their patience
    for each in (pull, restarted(pull)):
        assert each.n_waiting == 0
        assert not each.add(9.0, id="a", at=5 * HOUR)
        assert [each.next(at=5 * HOUR).id for _ in range(2)] == ["a", "b"]
        assert each.add(9.0, id="a", at=5 * HOUR)


def test_waiting_cases_keep_their_order_under_another_model():
    """Their scores are translated to those that lie as far out by the new one."""
    pull = make()
    for id, score in (("a", 4.0), ("b", 6.0), ("c", 5.0)):
        pull.add(score, id=id, at=0.0)
    pull.swap_model(SCORES * 2 + 7)
    pull.add(2 * 5.5 + 7, id="new", at=1.0)
    pull = restarted(pull)
    found = [pull.next(at=2.0) for _ in range(3)]
    assert [case.id for case in found] == ["b", "new", "c"]
    assert [round(case.score, 1) for case in found] == [19.0, 18.0, 17.0]
    assert [case.flagged_at for case in found] == [2.0] * 3


def test_a_case_that_somebody_else_has_handed_out_waits_no_longer():
    """It takes no slot here; an id that does not wait changes nothing."""
    pull = make()
    pull.add(5.0, id="a", at=0.0)
    pull.add(4.0, id="b", at=0.0)
    pull.drop("a")
    pull.drop("unknown")
    assert (pull.n_waiting, pull.remaining) == (1, 3)
    assert pull.next(at=1.0).id == "b"


@pytest.mark.parametrize(
    ("capacity", "options"),
    [
        (Capacity.effort(5), {"expected_effort": 2}),
        (Capacity.count(5), {"probe": 0.2}),
        (Capacity.count(5, per=10), {"period": None}),
    ],
    ids=["work", "probes", "items"],
)
def test_what_cannot_wait_is_refused(capacity, options):
    """Slots are a number in a period of time."""
    given = {"period": DAY, "expected_arrivals": 50, "calibration_scores": SCORES, **options}
    with pytest.raises(CapacityError, match="number of slots per period"):
        PullController(capacity, patience=HOUR, **given)
    with pytest.raises(ValueError, match="patience"):
        make(patience=0)


scores = st.floats(-5, 5) | st.sampled_from([-1e300, 1.0, 2.0, 1e300])
gaps = st.floats(-20, 60)
steps = st.one_of(
    st.tuples(st.just("add"), scores, gaps),
    st.tuples(st.just("add"), scores, gaps),
    st.tuples(st.sampled_from(["next", "flagged", "decide"]), scores, gaps),
    st.tuples(st.just("capacity"), st.integers(0, 5), st.none() | st.floats(-50, 300)),
    st.tuples(st.just("restart"), scores, gaps),
    st.tuples(st.just("lift"), scores, st.integers(0, 120)),
    st.tuples(st.just("jump"), scores, st.sampled_from([7e5, 1e9])),
)


@given(st.lists(steps, max_size=120), st.integers(0, 4), st.sampled_from([1.0, 30.0, 100.0]))
@settings(max_examples=200, deadline=None)
def test_no_period_has_more_cases_than_slots(history, k, patience):
    """Nothing is handed out twice or after its end, and slots that are gone stay gone."""
    pull = make(k, patience=patience, period=40.0, expected_arrivals=8, calibration_scores=[0, 1])
    clock, added, handed = 0.0, {}, {}
    for number, (what, value, gap) in enumerate(history):
        before, out = copy.deepcopy(pull), []
        if what == "capacity":
            pull.set_capacity(Capacity.count(value), at=gap)
            continue
        if what == "restart":
            pull = restarted(pull)
            assert pull.state() == before.state()
            continue
        if what == "lift":
            pull.lift(gap, value)
            continue
        clock += gap
        if what in ("add", "jump"):
            if pull.add(value, id=number, at=clock):
                added[number] = pull.now
        elif what == "next":
            case = pull.next(at=clock)
            out = [] if case is None else [case]
        elif what == "flagged":
            out = pull.flagged(at=clock)
        else:
            pull.decide(value, at=clock)
        for case in out:
            assert case.id in added
            assert case.id not in handed
            handed[case.id] = pull.now
        if what == "jump":
            clock -= gap
        used = slots_used(pull)
        assert used <= max(pull.capacity.value, slots_used(before))
    assert len(handed) + pull.n_waiting <= len(added)


@given(
    st.lists(st.tuples(st.sampled_from("aln"), st.integers(0, 9), st.integers(-4, 4)), max_size=60),
    st.sets(st.integers(0, 9), min_size=1),
)
@settings(max_examples=200, deadline=None)
def test_the_highest_of_those_that_fit_is_handed_out(history, able):
    """By its highest score so far, the first to arrive of equal ones; after restarts, too."""
    pull, waiting = make(500, calibration_scores=[-9, -8], expected_arrivals=1), {}
    for what, id, score in history:
        pull = restarted(pull) if id == 9 else pull
        if what == "a":
            if pull.add(score, id=id, at=0.0):
                waiting[id] = score
        elif what == "l":
            pull.lift(id, score)
            assert pull.waits(id) == (id in waiting)
            if id in waiting:
                waiting[id] = max(waiting[id], score)
        else:
            fitting = {each: value for each, value in waiting.items() if each in able}
            best = max(fitting, key=fitting.get, default=None)
            case = pull.next(at=0.0, among=able.__contains__)
            assert (None if case is None else case.id) == best
            waiting.pop(best, None)
    assert pull.n_waiting == len(waiting)


def test_whoever_asks_leaves_better_cases_their_slots():
    """Of two slots, both are for the two better cases that only others are able to do."""
    pull = make(2)
    for id, score in enumerate([3.0, 2.9, 2.8]):
        pull.add(score, id=id, at=0.0)
    assert pull.next(at=1.0, among=lambda id: id == 2) is None
    assert pull.next(at=1.0, among=lambda id: id == 1).id == 1
    assert [pull.next(at=1.0).id, pull.next(at=1.0)] == [0, None]


def slots_used(pull):
    """Return the slots of the present period that are used."""
    from shortlist.online._pacing import USED

    return int(pull.state_ints[USED])


@given(st.lists(st.tuples(scores, st.floats(0, 30)), min_size=1, max_size=80), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_never_more_than_the_slots_of_the_periods_so_far(items, k):
    """Counted from outside, whoever asks: k in the first period, 2 k in the first two."""
    period, clock, n_handed = 40.0, 0.0, 0
    pull = make(k, patience=25.0, period=period, expected_arrivals=8, calibration_scores=[0, 1])
    for number, (score, gap) in enumerate(items):
        clock += gap
        pull.add(score, id=number, at=clock)
        n_handed += pull.next(at=clock) is not None
        n_handed += len(pull.flagged(at=clock))
        assert n_handed <= k * (1 + clock // period)


def test_with_hardly_any_patience_it_decides_like_a_budget(rng):
    """A pool that nobody asks flags what a budget flags at arrival, but for its own waiting."""
    times = np.sort(rng.uniform(0, 5 * DAY, size=2_000))
    values = rng.normal(size=2_000)
    options = {"period": DAY, "expected_arrivals": 400, "calibration_scores": SCORES}
    budget = BudgetController(Capacity.count(20), **options)
    pull = PullController(Capacity.count(20), patience=1e-6, **options)
    for number, (score, at) in enumerate(zip(values, times, strict=True)):
        pull.add(score, id=number, at=at)
    asked = {case.id for case in pull.flagged(at=5 * DAY)}
    at_once = set(np.flatnonzero(budget.decide_many(values, at=times).flagged).tolist())
    assert len(asked & at_once) >= 0.8 * len(at_once)
    assert len(asked) <= 100
