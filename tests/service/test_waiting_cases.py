"""Queues where cases wait: slots go to whoever asks, never too many, and the log says why."""

import json
import time

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.online import PullController
from shortlist.online._pacing import USED
from shortlist.service import _group, _replica
from shortlist.service._decider import Request
from shortlist.service._group import GroupMaker
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.erasure import erase_cases
from shortlist.service.reviewed import export_reviews
from shortlist.service.settings import QueueSettings
from shortlist.service.setup import change_queue
from shortlist.service.store import CAPACITY, CLOCK, MODEL, PULLED, PromiseError
from tests.service.helpers import FakeClock, Hand, calibration, case, new_queue, serving
from tests.service.test_log import by_hand, chain_again

PERIOD, WITHIN, SLOTS = 100.0, 130.0, 4


@pytest.fixture
def clock():
    """Return a clock at the beginning of a period."""
    return FakeClock(1_000_000.0)


@pytest.fixture
def queue(address, clock):
    """Return the number of a queue where cases wait."""
    settings = QueueSettings(PERIOD, 40, within=WITHIN)
    return new_queue(address, capacity=SLOTS, at=clock.wall, settings=settings)


def hand_of(address, queue, clock, **options):
    """Return a worker whose clock is ours alone."""
    hand = Hand(address, queue, clock=clock.make(), **options)
    hand.store._store.clock = lambda: None
    return hand


def ask_of(hand):
    """Ask for the next case; return the ids of the cases that got a slot by that."""
    before = slots(hand)
    hand.change(PULLED)
    return [id for id in slots(hand) if id not in before]


def slots(hand):
    """Return the ids of all cases that have a slot, in the order of the log."""
    rows = hand.store._store.query(
        "SELECT case_id FROM log WHERE queue = ? AND slot IS NOT NULL ORDER BY seq",
        hand.decider.queue,
    )
    return [id for (id,) in rows]


def problems(address):
    """Return what an audit finds, after it has made all decisions again."""
    with opened(address, only_read=True) as store:
        return [each for found in audit_store(store) for each in found.problems]


def kept_promises(address):
    """Check what must hold whatever happened: slots, each case once, none that had expired."""
    with opened(address, only_read=True) as store:
        flags = store.query("SELECT period, case_id, at, joined FROM log WHERE slot IS NOT NULL")
        since = dict(store.query("SELECT seq, at FROM log WHERE kind = 0"))
        counts = {p: sum(each[0] == p for each in flags) for p, *_ in flags}
        assert max(counts.values(), default=0) <= SLOTS
        assert len({each[1] for each in flags}) == len(flags)
        assert all(at <= since[waited] + WITHIN for _, _, at, waited in flags)
    assert problems(address) == []


def test_whoever_asks_gets_the_best_that_waits(address, queue, clock):
    """Nothing is flagged when it arrives; asking twice gives the two best, once each."""
    hand = hand_of(address, queue, clock)
    told = hand.decide([("a", 1.0), ("b", 3.5), ("c", 3.0)])
    assert [(each.flag, each.reason, each.threshold) for each in told] == [
        (False, "waits", None)
    ] * 3
    clock.advance(1)
    assert ask_of(hand) == ["b"]
    assert ask_of(hand) == ["c"]
    [again] = hand.decide([("b", 3.5)])
    assert (again.flag, again.reason, again.repeated) == (True, "asked for", True)
    hand.close()
    kept_promises(address)


def test_asking_in_vain_leaves_no_trace(address, queue, clock):
    """Pages may ask every second: neither the log nor the controller knows of it."""
    hand = hand_of(address, queue, clock)
    hand.decide([("low", -9.0)])
    with opened(address, only_read=True) as store:
        before = store.queues()
    state = hand.decider.replica.state()
    for _ in range(5):
        clock.advance(0.5)
        assert ask_of(hand) == []
    with opened(address, only_read=True) as store:
        assert store.queues() == before
    assert hand.decider.replica.state() == state
    hand.close()


@pytest.mark.parametrize("seed", range(6))
def test_two_workers_hand_out_what_one_controller_would(address, seed):
    """Cases, questions, pauses and restarts in any order; both workers stand at the same state."""
    rng, clock = np.random.default_rng(seed), FakeClock(1_000_000.0)
    settings = QueueSettings(PERIOD, 40, within=WITHIN)
    queue = new_queue(address, capacity=SLOTS, at=clock.wall, settings=settings)
    alone = PullController(
        Capacity.count(SLOTS), calibration_scores=calibration(), patience=WITHIN, period=PERIOD,
        expected_arrivals=40, remember=1,
    )  # fmt: skip
    hands, number, expected = [hand_of(address, queue, clock) for _ in range(2)], 0, []
    for _ in range(60):
        clock.advance(float(rng.exponential(12.0)))
        who = int(rng.integers(2))
        if rng.random() < 0.1:
            hands[who].close()
            hands[who] = hand_of(address, queue, clock)
        due = [each.id for each in alone.flagged(at=clock.wall)]
        if rng.random() < 0.6:
            cases = [(f"{number + n}", float(rng.normal(0.5, 1.2))) for n in range(3)]
            number += 3
            hands[who].decide(cases)
            for name, score in cases:
                alone.add(score, id=name, at=clock.wall)
        else:
            hands[who].change(PULLED)
            asked = None if due else alone.next(at=clock.wall)
            due += [] if asked is None else [asked.id]
        expected += due
        assert slots(hands[who]) == expected
    assert len(expected) > 10
    for hand in hands:
        replica = hand.decider.replica
        replica.follow(hand.store._store.follow(queue, replica.seq))
    states = [json.loads(hand.decider.replica.state())["controller"] for hand in hands]
    assert states[0] == states[1]
    for hand in hands:
        hand.close()
    kept_promises(address)


@pytest.mark.parametrize("step", ["begin", "commit before", "commit after"])
def test_a_fault_while_somebody_asks_takes_one_slot_at_most(address, queue, clock, step):
    """The question is asked again, or its answer is found in the log: no slot is given twice."""
    hand = hand_of(address, queue, clock)
    hand.decide([(f"{n}", 3.0 + n) for n in range(6)])
    hand.store.step = step
    hand.change(PULLED)
    assert slots(hand)[0] == "5"
    assert len(slots(hand)) <= 2
    for _ in range(9):
        hand.change(PULLED)
    assert len(slots(hand)) == SLOTS
    hand.close()
    kept_promises(address)


def test_a_case_gets_one_slot_however_wrong_a_program_is(address, queue, clock):
    """The database itself refuses the second one."""
    hand = hand_of(address, queue, clock)
    hand.decide([("a", 3.0), ("b", 2.0)])
    ask_of(hand)
    hand.close()
    with opened(address) as store:
        row, [*_, last], _ = store.begin(queue, 0)
        [full] = store.entries_where("queue = ? AND seq = ?", queue, last.seq)
        wrong = full._replace(seq=row.last_seq + 1, slot=(full.slot or 0) + 1)
        with pytest.raises(PromiseError):
            store.put("log", wrong._asdict())
        store.rollback()


def test_another_model_another_capacity_and_another_clock(address, queue, clock):
    """Cases that wait keep their order under another model, and go on waiting."""
    hand = hand_of(address, queue, clock)
    hand.decide([("a", 3.0), ("b", 3.5), ("c", 2.9)])
    hand.change(MODEL, model=2)  # doubles the scores
    hand.decide([("d", 3.2)])
    assert ask_of(hand) == ["b"] or slots(hand) == ["d"]
    hand.change(CAPACITY, count=2)
    clock.advance(5)
    while ask_of(hand):
        pass
    assert len(slots(hand)) == 2
    hand.close()
    with opened(address) as store:
        back = {"from": clock.wall - 50, "capacity": 4, "scheduled": []}
        change_queue(store, queue, [(CLOCK, back), (CAPACITY, {"count": 4, "from": back["from"]})])
    assert problems(address) == []


def test_an_erased_case_is_not_handed_out(address, queue, clock):
    """Nobody can review it: it takes no slot, and the next one does."""
    hand = hand_of(address, queue, clock)
    hand.decide([("gone", 4.0), ("b", 3.0), ("c", 2.5)])
    with opened(address) as store:
        assert erase_cases(store, ["gone"]) == 1
    clock.advance(1)
    assert ask_of(hand) == []
    assert ask_of(hand) == ["b"]
    hand.close()
    kept_promises(address)


def test_a_case_is_erased_with_its_slot(address, queue, clock):
    """Nothing of it is left in the entry that gave it the slot, whatever came in between."""
    hand = hand_of(address, queue, clock)
    hand.decide([("gone", 4.0), ("b", 3.0)])
    clock.advance(1)
    assert ask_of(hand) == ["gone"]
    hand.close()
    with opened(address) as store:
        assert erase_cases(store, [], before=clock.wall - 0.5) == 2
        left = store.query("SELECT case_id, digest, body FROM log WHERE kind IN (0, 8)")
        assert [each[1:] for each in left] == [(None, None)] * 3
        assert len({name for name, *_ in left}) == 2  # both entries are of one case
        assert not {"gone", "b"} & {name for name, *_ in left}
        [found] = audit_store(store)
    assert (found.problems, found.n_erased) == ([], 2)


def test_a_capacity_can_fall_while_slots_are_due(address, queue, clock):
    """Cases got theirs before it fell: nobody had asked yet, so that the log has both now."""
    hand = hand_of(address, queue, clock)
    hand.decide([(f"{n}", 3.0 + n) for n in range(6)])
    clock.advance(PERIOD + 1)
    hand.change(CAPACITY, count=1)
    assert slots(hand) == ["5", "4", "3", "2"]
    hand.close()
    kept_promises(address)


@pytest.mark.parametrize("later", [1, 9])
def test_slots_that_are_due_have_the_capacity_of_their_time(address, queue, clock, later):
    """Another one was announced for the next period, and nobody came before that."""
    hand = hand_of(address, queue, clock)
    hand.decide([(f"{n}", 3.0 + n) for n in range(6)])
    assert [ask_of(hand), ask_of(hand)] == [["5"], ["4"]]
    hand.change(CAPACITY, count=3)
    hand.change(CAPACITY, count=later, **{"from": clock.wall + PERIOD})
    # As after a clock that was set back: only the database knows of the two slots.
    hand.decider.replica.controller.state_ints[USED] = 0
    clock.advance(PERIOD + 1)
    with opened(address) as store:
        row, _, total = store.begin(queue, hand.decider.replica.seq)
        hand.decider.replica.store = store
        maker = GroupMaker(hand.decider.replica, row, total, clock.wall)
        store.commit(maker.group())
    assert slots(hand) == ["5", "4", "3"]
    hand.close()


def test_a_capacity_can_fall_while_somebody_asks(address, queue, clock):
    """Both in one group: whoever asks gets what the new capacity leaves."""
    hand = hand_of(address, queue, clock)
    hand.decide([(f"{n}", 3.0 + n) for n in range(6)])
    asked = [Request(kind=PULLED, deadline=time.monotonic() + 60) for _ in range(3)]
    for request in asked:
        hand.decider.submit(request)
    hand.change(CAPACITY, count=1)
    assert slots(hand) == ["5"]
    hand.close()
    kept_promises(address)


def test_whoever_asks_when_slots_are_due_moves_no_clock(address, queue, clock):
    """The row of the queue says what the last entry of the log says."""
    hand = hand_of(address, queue, clock)
    hand.decide([("a", 3.0), ("b", 3.5)])
    clock.advance(PERIOD + 7)
    assert ask_of(hand) == ["b", "a"]
    hand.close()
    kept_promises(address)


def test_whoever_asks_when_slots_are_due_is_not_ahead_of_others(address, clock, monkeypatch):
    """A worker whose clock is a little behind decides next, about a moment before the question."""
    monkeypatch.setattr(_group, "_SNAPSHOT_EVERY", 1)  # whoever joins begins with the saved state
    settings = QueueSettings(PERIOD, 40, within=30.0)
    queue = new_queue(address, capacity=SLOTS, at=clock.wall, settings=settings)
    behind = FakeClock(clock.wall - 5)
    one, other = hand_of(address, queue, clock), hand_of(address, queue, behind)
    one.decide([("a", 3.0)])
    for each in (clock, behind):
        each.advance(37)
    assert ask_of(one) == ["a"]  # which had its slot 7 seconds ago
    other.decide([("b", 3.5)])
    for each in (clock, behind):
        each.advance(27)
    assert ask_of(one) == ["b"]  # 2 seconds after it got a slot
    with opened(address) as store:
        moments = [each.at - 1_000_000 for each in store.entries_where("kind = ?", PULLED)]
    assert moments == [30, 62]
    for each in (one, other):
        each.close()
    assert problems(address) == []


@pytest.mark.parametrize("seed", [6, 26])
def test_two_workers_agree_under_models_of_other_shapes(address, queue, clock, seed, monkeypatch):
    """What is due before a change is settled before it, also by whoever only follows the log."""
    rng, skewed = np.random.default_rng(seed), np.random.default_rng(3).gamma(0.3, 5, 2_000) - 2
    models = {1: calibration(), 2: skewed}
    monkeypatch.setattr(_replica, "calibration_of", lambda store, model: models[model])
    hands, number = [hand_of(address, queue, clock) for _ in range(2)], 0
    for _ in range(80):
        clock.advance(float(rng.exponential(25.0)))
        hand, what = hands[rng.integers(2)], rng.random()
        if what < 0.5:
            hand.decide([(f"{number + n}", float(rng.normal(0.5, 1.2))) for n in range(3)])
            number += 3
        elif what < 0.7:
            hand.change(PULLED)
        elif what < 0.9:
            hand.change(MODEL, model=int(rng.integers(1, 3)))
        else:
            hand.change(CAPACITY, count=int(rng.integers(0, SLOTS + 1)))
    hands[0].decide([("last", 0.0)])
    replica = hands[1].decider.replica
    replica.follow(hands[1].store._store.follow(queue, replica.seq))
    assert replica.controller.state() == hands[0].decider.replica.controller.state()
    for hand in hands:
        hand.close()
    kept_promises(address)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE log SET joined = joined + 1 WHERE kind = 8",
        "UPDATE log SET at = at + 200 WHERE kind = 8",
        "UPDATE log SET slot = NULL WHERE kind = 8",
    ],
)
def test_an_audit_notices_what_was_changed(address, queue, clock, edit):
    """Whoever says that another case was asked for, or later, is found out, hashes or not."""
    hand = hand_of(address, queue, clock)
    hand.decide([("a", 3.0), ("b", 2.0), ("c", 1.0)])
    ask_of(hand)
    hand.close()
    assert problems(address) == []
    with by_hand(address) as store:
        store.query(edit)
        chain_again(store)
    assert problems(address) != []


@pytest.mark.parametrize("edit", ["joined = NULL", f"at = at + {2 * WITHIN}"])
def test_an_audit_without_a_replay_knows_who_waited(address, queue, clock, edit):
    """Of another version of the program: no slot goes to a case that never waited, or too long."""
    hand = hand_of(address, queue, clock)
    hand.decide([("a", 3.0), ("b", 2.0), ("c", 1.0)])
    ask_of(hand)
    hand.close()
    with by_hand(address) as store:
        store.query(f"UPDATE log SET {edit} WHERE kind = 8")
        chain_again(store)
        [found] = audit_store(store, build="another")
    assert any("does not wait, or no longer" in each for each in found.problems)


def test_what_cannot_wait_is_refused_when_the_queue_is_made(tmp_path, model_file):
    """Probes would tell that somebody looks, and efforts are not slots."""
    with (
        pytest.raises(ValueError, match="neither efforts nor probes"),
        serving(tmp_path / "a.db", model_file, made={"within": 60.0, "probe": 0.2}),
    ):
        pass


def test_reviewers_pull_their_cases_over_http(address, model_file, tmp_path):
    """Each gets the best that waits and is free; a held case comes again; then none is left."""
    url = "/v1/queues/default"
    with serving(address, model_file, count=3, made={"within": 3_600.0}) as client:
        told = client.post(
            f"{url}/decisions", json=[case(n, 300.0 + 20 * n) for n in range(8)]
        ).json()
        assert {each["reason"] for each in told} == {"waits"}
        ask = lambda name: client.post(f"{url}/next", json={"reviewer": name}).json()["case"]  # noqa: E731
        assert [ask(name)["id"] for name in ("kim", "lee", "kim")] == ["7", "6", "7"]
        done = {"id": "7", "rare": True, "reviewer": "kim"}
        assert client.post(f"{url}/outcomes", json=done).status_code == 200
        assert ask("kim")["id"] == "5"
        assert ask("mo") is None
        status = client.get(f"{url}/status").json()
        assert (status["used"], status["remaining"], status["pool"]) == (3, 0, 5)
        found = client.get(f"{url}/decisions/7").json()
        assert (found["flag"], found["columns"]["amount"]) == (True, 440.0)
        assert [each["id"] for each in found["events"]] == ["7"]
    with opened(address) as store:
        assert export_reviews(store, tmp_path / "reviewed.csv") == (3, 1)
        assert erase_cases(store, ["7"]) == 1
        [(n_left, n_words)] = store.query("SELECT count(*), count(body) FROM log WHERE slot > 0")
        assert (n_left, n_words) == (3, 2)
        assert not store.query("SELECT seq FROM log WHERE case_id = '7'")
        [(name,)] = store.query("SELECT case_id FROM outcome")
        assert len(store.query("SELECT seq FROM log WHERE case_id = ?", name)) == 2
    assert problems(address) == []


def test_who_asks_gets_the_best_case_that_they_are_able_to_do(address, model_file):
    """Nobody is idle while a case that waits fits them, and nobody uses up slots for others."""
    url, made = "/v1/queues/default", {"within": 3_600.0, "segment": "country"}
    with serving(address, model_file, count=40, made=made) as client:
        us = [case(n, 300.0 + n, "US") for n in range(8)]
        client.post(f"{url}/decisions", json=[*us, case("low", 200.0, "FR")])
        client.put("/v1/reviewers/lee", json={"minutes": 99, "segments": ["DE"]})
        for _ in range(4):
            assert client.post(f"{url}/next", json={"reviewer": "lee"}).json()["case"] is None
        assert client.get(f"{url}/status").json()["used"] == 0
        client.post(f"{url}/decisions", json=[case("de", 290.0, "DE"), case("de2", 280.0, "DE")])
        got = client.post(f"{url}/next", json={"reviewer": "lee"}).json()["case"]
        assert (got["id"], got["segment"]) == ("de", "DE")
        client.post(f"{url}/claims", json={"id": "de", "reviewer": "lee"})
        got = client.post(f"{url}/next", json={"reviewer": "kim"}).json()["case"]
        assert got["id"] == "7"
        client.post(f"{url}/releases", json={"id": "7", "reviewer": "kim", "decline": True})
        # A free case that fits nobody who asks keeps nobody from the next one.
        assert client.post(f"{url}/next", json={"reviewer": "kim"}).json()["case"]["id"] == "6"
        client.post(f"{url}/outcomes", json={"id": "de", "reviewer": "lee", "rare": True})
        got = client.post(f"{url}/next", json={"reviewer": "lee"}).json()["case"]
        assert got["id"] == "de2"
        assert client.get(f"{url}/status").json()["used"] == 4
    assert problems(address) == []


def test_whoever_joins_between_two_slots_gives_the_second_to_the_same_case(
    address, clock, monkeypatch
):
    """A state that is saved while slots of one moment are written is the one after all of them."""
    settings = QueueSettings(PERIOD, 40, within=WITHIN)
    queue = new_queue(address, capacity=SLOTS, at=clock.wall, settings=settings)
    with opened(address) as store:
        first = store.queues()[0].last_seq + 3  # the first slot follows two cases
    monkeypatch.setattr(_group, "_SNAPSHOT_EVERY", first)
    hand = hand_of(address, queue, clock)
    hand.decide([("a", 3.5), ("b", 3.6)])
    clock.advance(PERIOD)
    hand.decide([("c", 0.0)])
    assert sorted(slots(hand)) == ["a", "b"]
    other = hand_of(address, queue, clock)
    [told] = other.decide([("d", 0.0)])
    assert told.reason == "waits"
    for each in (hand, other):
        each.close()
    kept_promises(address)
