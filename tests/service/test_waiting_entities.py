"""Events of one entity that wait: one case with its highest score, one slot, from the log alone."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.online.decisions import ALLOWED, JOINED, WAITS
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.erasure import erase_cases
from shortlist.service.settings import QueueSettings
from shortlist.service.setup import change_queue
from shortlist.service.store import ALLOW, CAPACITY, CLOCK, MODEL, PULLED
from tests.service.helpers import FakeClock, FaultyStore, case, new_queue, serving
from tests.service.test_entities import Desk, event
from tests.service.test_log import by_hand, chain_again

PERIOD, WITHIN, SLOTS, WINDOW, COOLDOWN, RISE = 100.0, 70.0, 3, 20.0, 30.0, 1.0
RULE = {"entity": "customer", "window": WINDOW, "cooldown": COOLDOWN, "rise": RISE}


class WaitingDesk(Desk):
    """A queue where the events of customers wait, and hands that decide for it."""

    def __init__(self, address):
        self.address, self.clock, self.hands = address, FakeClock(), []
        settings = QueueSettings(PERIOD, 30, within=WITHIN, **RULE)
        self.id = new_queue(address, capacity=SLOTS, at=self.clock.wall, settings=settings)

    def log(self):
        """Return all decisions and slots in their order."""
        with opened(self.address, only_read=True) as store:
            return store.entries_where("kind IN (0, 8) ORDER BY seq")

    def close(self):
        """Close what was opened."""
        for hand in self.hands:
            hand.close()


@pytest.fixture
def desk(address):
    """Return a desk, and close what it has opened."""
    made = WaitingDesk(address)
    yield made
    made.close()


def check_rule(entries, slots=SLOTS):
    """Check every entry against the rule in words; return how many joined, and how many slots."""
    began, last, scores, n = {}, {}, {}, Counter()
    for entry in entries:
        if entry.kind == PULLED:
            first = began.pop(entry.joined)
            assert entry.at <= first.at + WITHIN
            assert (entry.case_id, entry.entity) == (first.case_id, first.entity)
            if entry.slot is not None:
                n[entry.period] += 1
                assert entry.slot == n[entry.period] <= slots
                assert entry.score == max(scores[entry.joined])
                last[entry.entity] = entry
            continue
        if entry.code == ALLOWED:
            assert (entry.slot, entry.joined) == (None, None)
            continue
        waits = [
            seq
            for seq, first in began.items()
            if first.entity == entry.entity and entry.at < first.at + WITHIN
        ]
        assert len(waits) <= 1
        assert entry.slot is None
        slot = last.get(entry.entity)
        since = np.inf if slot is None else entry.at - slot.at
        rose = slot is not None and entry.score >= max(scores[slot.joined]) + RISE
        if waits:
            assert (entry.code, entry.joined) == (JOINED, waits[0])
        elif since >= WINDOW + COOLDOWN or (since >= WINDOW and rose):
            assert (entry.code, entry.joined) == (WAITS, None)
            began[entry.seq], scores[entry.seq] = entry, []
        else:
            assert (entry.code, entry.joined) == (JOINED, slot.joined)
        scores[entry.joined or entry.seq].append(entry.score)
    return sum(entry.code == JOINED for entry in entries), sum(n.values())


steps = st.one_of(
    st.tuples(
        st.just("events"),
        st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from([-3.0, 1.0, 2.5, 3.5, 5.0])), min_size=1
        ),
    ),
    st.tuples(st.just("ask"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.5, 7.0, 20.0, 50.0, 70.0, 101.0])),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("fault"), st.sampled_from(FaultyStore.STEPS)),
    st.tuples(st.just("capacity"), st.integers(0, SLOTS)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), steps), max_size=30))
def test_two_workers_keep_one_rule(tmp_path_factory, history):
    """Whatever the order: never over, one slot for a case, one case for an event, and a replay."""
    desk = WaitingDesk(str(tmp_path_factory.mktemp("desk") / "shortlist.db"))
    workers, number = [desk.hand(), desk.hand()], 0
    for who, (what, value) in history:
        if what == "events":
            batch = [event(number + n, f"c{c}", score) for n, (c, score) in enumerate(value)]
            number += len(batch)
            workers[who].decide([*batch, *batch[:1]])  # one of them comes twice
        elif what == "ask":
            workers[who].change(PULLED)
        elif what == "wait":
            desk.clock.advance(value)
        elif what == "restart":
            workers[who] = desk.hand()
        elif what == "fault":
            workers[who].store.step = value
        else:
            workers[who].change(CAPACITY, count=value)
    entries = desk.log()
    assert len({e.case_id for e in entries if e.kind == 0}) == number
    check_rule(entries)
    assert desk.problems() == []
    desk.close()


@pytest.mark.parametrize(("pause", "code"), [(WITHIN, JOINED), (3 * PERIOD, WAITS)])
def test_an_event_meets_a_slot_that_was_due_before(desk, pause, code):
    """Both are written at once; the event joins the slot's case until its cool-down is over."""
    hand = desk.hand()
    hand.decide([event(0, "ann", 5.0)])
    desk.clock.advance(pause)
    hand.decide([event(1, "ann", 5.0)])
    first, slot, second = desk.log()
    assert (first.code, slot.kind, slot.joined) == (WAITS, PULLED, first.seq)
    assert (second.code, second.joined) == (code, first.seq if code == JOINED else None)
    assert desk.problems() == []


@pytest.mark.parametrize("seed", range(3))
def test_much_is_joined_and_handed_out(desk, seed):
    """The law above holds where there is much to hold, on both databases."""
    rng, number = np.random.default_rng(seed), 0
    workers = [desk.hand(), desk.hand()]
    for _ in range(80):
        desk.clock.advance(float(rng.choice([0.0, 1.0, 7.0, 29.0])))
        worker = workers[int(rng.integers(2))]
        if rng.random() < 0.3:
            worker.change(PULLED)
        else:
            scores = rng.choice([1.0, 2.5, 3.0, 4.2, 5.5], size=3)
            worker.decide(
                [event(number + n, f"c{rng.integers(4)}", score) for n, score in enumerate(scores)]
            )
            number += 3
    n_joined, n_slots = check_rule(desk.log())
    assert min(n_joined, n_slots) > 10
    assert desk.problems() == []


def test_a_case_ranks_by_its_highest_score(desk):
    """A later event lifts it above others, and its slot says so; columns are of its first event."""
    hand = desk.hand()
    hand.decide([event(1, "ann", 2.0), event(2, "bob", 3.0)])
    answers = hand.decide([event(3, "ann", 4.0), event(4, "bob", 1.0)])
    assert [each.reason for each in answers] == ["joined a case"] * 2
    hand.change(PULLED)
    [slot] = [entry for entry in desk.log() if entry.slot is not None]
    assert (slot.case_id, slot.entity, slot.score) == ("1", "ann", 4.0)
    # With its slot, the window begins; after the cool-down the next case does.
    assert hand.decide([event(5, "ann", 9.0)])[0].reason == "joined a case"
    desk.clock.advance(WINDOW)
    raised = hand.decide([event(6, "ann", 9.5), event(7, "ann", 10.5)])
    assert [each.reason for each in raised] == ["joined a case", "waits"]
    check_rule(desk.log())
    assert desk.problems() == []


def test_a_case_that_has_expired_is_over(desk):
    """The next event of its entity begins another one, at that very moment."""
    hand = desk.hand()
    hand.change(CAPACITY, count=0)
    hand.decide([event(1, "ann", -3.0)])
    desk.clock.advance(WITHIN)
    assert desk.hand().decide([event(2, "ann", -3.0)])[0].reason == "waits"
    check_rule(desk.log())
    assert desk.problems() == []


def test_allowances_and_erased_entities(desk):
    """What is allowed does not join, and what was erased waits no longer."""
    hand = desk.hand()
    hand.decide([event(1, "ann", 4.0), event(2, "bob", 3.0)])
    hand.change(ALLOW, entity="ann", until=desk.clock.wall + 10)
    assert hand.decide([event(3, "ann", 5.0)])[0].reason == "allowed"
    with opened(desk.address) as store:
        assert erase_cases(store, ["ann"]) == 3
    desk.clock.advance(11)
    assert desk.hand().decide([event(4, "ann", 2.0)])[0].reason == "waits"
    for _ in range(3):
        hand.change(PULLED)
    slots = [entry.case_id for entry in desk.log() if entry.slot is not None]
    assert slots[0] == "2"
    assert "1" not in slots
    assert desk.problems() == []


def test_another_model_and_another_clock(desk, monkeypatch):
    """Cases go on waiting, and their events go on joining them."""
    monkeypatch.setattr("time.time", lambda: desk.clock.wall)
    hand = desk.hand()
    hand.decide([event(1, "ann", 2.0), event(2, "bob", 1.9)])
    hand.change(MODEL, model=2)
    hand.decide([event(3, "bob", 2.6)])
    hand.close()
    with opened(desk.address) as store:
        back = {"from": desk.clock.wall - 50, "capacity": 4, "scheduled": []}
        change_queue(
            store, desk.id, [(CLOCK, back), (CAPACITY, {"count": 4, "from": back["from"]})]
        )
    desk.clock.advance(-40)
    hand = desk.hand(accept_clock=True)
    assert hand.decide([event(4, "ann", 1.0)])[0].reason == "joined a case"
    desk.clock.advance(WITHIN)
    hand.decide([event(5, "cy", 1.0)])
    assert desk.problems() == []


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("UPDATE log SET entity = 'bob' WHERE case_id = '3'", "joins another case"),
        ("UPDATE log SET score = 2.0 WHERE kind = 8", "is flagged, although"),
        ("UPDATE log SET entity = 'ann' WHERE case_id = '2'", "is flagged, although"),
    ],
)
def test_an_audit_without_a_replay_knows_the_rule(desk, edit, words):
    """Of another version of the program: whose event it is, and which score ranks a case."""
    hand = desk.hand()
    hand.decide([event(1, "ann", 2.0), event(2, "bob", 3.0)])
    hand.decide([event(3, "ann", 4.0)])
    hand.change(PULLED)
    hand.close()
    with by_hand(desk.address) as store:
        store.query(edit)
        chain_again(store)
        [found] = audit_store(store, build="another")
    assert any(words in each for each in found.problems), found.problems


def test_over_http(address, model_file):
    """Both options together; the list shows all events of a case."""
    url, made = "/v1/queues/default", {"within": 3_600.0, "entity": "customer", "window": 600.0}
    with serving(address, model_file, count=30, made=made) as client:
        cases = [
            {**case(n, 300.0 + 10 * n), "customer": customer}
            for n, customer in enumerate(["ann", "bob", "ann", "bob", "ann"])
        ]
        told = client.post(f"{url}/decisions", json=cases).json()
        reasons = [each["reason"] for each in told]
        assert reasons == ["waits", "waits", *["joined a case"] * 3]
        assert client.get(f"{url}/status").json()["pool"] == 2
        got = client.post(f"{url}/next", json={"reviewer": "kim"}).json()["case"]
        assert (got["id"], got["n_events"], got["score"]) == ("0", 3, told[4]["score"])
        late = {**case(9, 500.0), "customer": "ann"}
        assert client.post(f"{url}/decisions", json=late).json()["reason"] == "joined a case"
        shown = client.get(f"{url}/decisions/0").json()
        assert [each["id"] for each in shown["events"]] == ["0", "2", "4", "9"]
        got = client.post(f"{url}/next", json={"reviewer": "lee"}).json()["case"]
        assert (got["id"], got["n_events"]) == ("1", 2)
        assert client.get(f"{url}/status").json()["used"] == 2
    with opened(address, only_read=True) as store:
        assert [found.problems for found in audit_store(store)] == [[]]
