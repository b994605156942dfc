"""Queues with efforts, a least worth and probes: both databases count what controllers promise."""

import itertools
import json

import numpy as np
import pytest

from shortlist.online.decisions import REASONS
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.settings import QueueSettings, units_of
from shortlist.service.store import CAPACITY, MODEL, OBSERVATION, Group, PromiseError
from tests.service.helpers import FakeClock, FaultyStore, Hand, new_queue

PERIOD = 100.0
_names = itertools.count()


class Desk:
    """A queue with a clock, and processes for it."""

    def __init__(self, address, capacity, **options):
        self.clock, self.address = FakeClock(), address
        self.settings = QueueSettings(PERIOD, 50, **options)
        self.id = new_queue(address, capacity=capacity, at=self.clock.wall, settings=self.settings)
        self.steady, self.hands = self.clock.make(), []

    def hand(self, **options):
        """Return a process."""
        hand = Hand(self.address, self.id, clock=self.steady, **options)
        hand.store._store.clock = lambda: None
        self.hands.append(hand)
        return hand

    def close(self):
        """Close all connections, and return what an audit finds."""
        for hand in self.hands:
            hand.close()
        with opened(self.address) as store:
            [found] = audit_store(store)
            assert found.problems == []
            return found

    def query(self, statement):
        """Ask the database."""
        with opened(self.address) as store:
            return store.query(statement)


def efforts(rng, n):
    """Return n cases with scores and efforts."""
    return [
        (f"case {next(_names)}", {"score": float(s), "effort": float(e)})
        for s, e in zip(rng.normal(size=n), rng.integers(5, 61, n), strict=True)
    ]


def test_work_is_never_overspent(address):
    """Two processes share 120 minutes in a period; retries, faults and changes cost no minute."""
    desk, rng = Desk(address, 120.0, usual_effort=30.0), np.random.default_rng(0)
    one, other = desk.hand(), desk.hand()
    for step in range(12):
        hand = (one, other)[step % 2]
        hand.store.step = FaultyStore.STEPS[step % len(FaultyStore.STEPS)] if step % 3 else None
        cases = efforts(rng, 8)
        first = hand.decide(cases)
        again = other.decide(cases)
        assert [a.flag for a in first] == [a.flag for a in again]
        assert {a.effort for a in first} == {fields["effort"] for _, fields in cases}
        desk.clock.advance(20)
    one.change(CAPACITY, effort=12.5)
    assert not any(a.flag for a in other.decide([("big", {"score": 99.0, "effort": 12.6})]))
    rows = desk.query(
        "SELECT period, sum(work), max(spent) FROM log WHERE slot > 0 GROUP BY period"
    )
    assert all(int(work) == spent <= units_of(120.0) for _, work, spent in rows)
    assert max(spent for *_, spent in rows) > units_of(60.0)
    assert desk.close().n_replayed == 12 * 8 + 1


def test_the_database_itself_refuses_work_too_much(address):
    """A wrong program cannot spend more than the capacity, or leave work out of the sum."""
    desk = Desk(address, 100.0, usual_effort=30.0)
    hand = desk.hand()
    hand.decide([(f"a{n}", {"score": 9.0, "effort": 40.0}) for n in range(4)])
    with opened(address) as store:
        row, entries, _ = store.begin(desk.id, 0)
        last = max((e for e in entries if e.slot), key=lambda entry: entry.slot)
        store.rollback()
        for work, spent in ((50_000_000, last.spent + 50_000_000), (1, 1), (None, None)):
            row, _, _ = store.begin(desk.id, row.last_seq)
            wrong = last._replace(
                seq=row.last_seq + 1, case_id="x", slot=last.slot + 1, work=work, spent=spent
            )
            with pytest.raises(PromiseError):
                store.commit(Group(row._replace(last_seq=row.last_seq + 1), [wrong]))
            store.rollback()
    desk.close()


def test_two_versions_share_a_budget_of_work(address):
    """A version counts the work that another one has spent."""
    desk, rng = Desk(address, 120.0, usual_effort=30.0), np.random.default_rng(1)
    old, new = desk.hand(build="old"), desk.hand()
    for step in range(10):
        (old, new)[step % 2].decide(efforts(rng, 6))
        desk.clock.advance(30)
    rows = desk.query("SELECT max(spent) FROM log GROUP BY period")
    assert max(spent or 0 for (spent,) in rows) <= units_of(120.0)
    assert desk.close().n_other == 30


def test_cases_of_less_worth_leave_slots_empty(address):
    """Nothing below the least worth is flagged, and every process says so alike."""
    desk = Desk(address, 3, worth=1.5)
    one, other = desk.hand(), desk.hand()
    scores = [0.3, 2.0, 1.4, 1.5, -1.0]
    answers = one.decide([(f"a{n}", score) for n, score in enumerate(scores)])
    other.decide([("b", 0.0)])
    assert [a.reason == "not worth a slot" for a in answers] == [True, False, True, False, True]
    assert [a.threshold for a in answers if a.reason == "not worth a slot"] == [1.5] * 3
    assert not any(a.flag and a.score < 1.5 for a in answers)
    assert desk.close().n_replayed == 6


def test_probes_are_drawn_alike_and_recorded(address):
    """Some flags go below the threshold, each with its chance; retries are drawn alike."""
    desk, rng = Desk(address, 10, probe=0.3, probe_key="a test"), np.random.default_rng(2)
    one, other = desk.hand(), desk.hand()
    told = []
    for step in range(24):
        cases = [(f"{step}-{n}", float(score)) for n, score in enumerate(rng.normal(size=12))]
        told += (one, other)[step % 2].decide(cases)
        again = one.decide(cases)
        assert [(a.flag, a.inclusion) for a in again] == [(a.flag, a.inclusion) for a in told[-12:]]
        desk.clock.advance(25)
    probes = [a for a in told if a.selected_by == "probe"]
    assert len(probes) > 3
    assert all(a.flag and 0 < a.inclusion < 1 for a in probes)
    assert all(a.threshold is None or a.score <= a.threshold for a in probes)
    assert all(a.inclusion == 1 for a in told if a.selected_by == "score")
    flags = desk.query("SELECT count(*) FROM log WHERE slot > 0 GROUP BY period")
    assert 3 < max(n for (n,) in flags) <= 10
    assert desk.close().n_replayed == 24 * 12


def test_observations_are_events_that_every_process_follows(address):
    """They raise the threshold for all, use no flag, and have their place in the log."""
    desk = Desk(address, 3)
    one, other = desk.hand(), desk.hand()
    one.decide([("a", 0.0)])
    told = one.observe([5.0] * 40)
    [answer] = other.decide([("b", 2.0)])  # which would be flagged without them
    assert (answer.flag, answer.reason) == (False, "below threshold")
    assert answer.threshold > 2.0  # more cases have come than were expected
    [(kind, body)] = desk.query(f"SELECT kind, body FROM log WHERE seq = {told['seq']}")
    assert (kind, len(json.loads(body)["scores"])) == (OBSERVATION, 40)
    other.change(MODEL, model=2)  # before the next ones are scored
    [(body,)] = desk.query(f"SELECT body FROM log WHERE seq = {one.observe([5.0])['seq']}")
    assert (json.loads(body)["model"], json.loads(body)["scores"]) == (2, [10.0])
    assert one.decide([("c", 0.0)])[0].reason in REASONS
    assert desk.close().n_replayed == 3


def test_observed_scores_raise_the_bar_of_later_periods(address):
    """What is to come is judged by the same hours of earlier periods, observed ones included."""
    desk = Desk(address, 3)
    one, other = desk.hand(), desk.hand()
    bars = []
    for _ in range(4):
        [answer] = other.decide([(f"first {len(bars)}", 0.0)])
        bars.append(answer.threshold)
        for _ in range(10):
            desk.clock.advance(9)
            one.observe([5.0] * 4)
        desk.clock.advance(PERIOD - 90)
    assert bars == sorted(bars)
    assert bars[0] < 2.5
    assert bars[3] == 5.0  # by then, the richer half of the last six periods is known
    assert desk.close().n_replayed == 4
