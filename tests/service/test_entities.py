"""Events of one entity are one case in the service, too: one slot, from the log alone."""

import httpx
import numpy as np
import pytest

from shortlist.online.decisions import ALLOWED, JOINED, MOMENT_REFUSED
from shortlist.service._api import Problem
from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.erasure import erase_cases
from shortlist.service.settings import QueueSettings
from shortlist.service.store import ALLOW
from tests.service.helpers import (
    FakeClock,
    FaultyStore,
    Hand,
    case,
    made_queues,
    new_queue,
    open_store,
    serving,
)
from tests.service.killed import KilledService

PERIOD, SLOTS, WINDOW, COOLDOWN, RISE = 100.0, 4, 30.0, 60.0, 1.0
RULE = {"entity": "customer", "window": WINDOW, "cooldown": COOLDOWN, "rise": RISE}


class Desk:
    """A queue whose events have customers, and hands that decide for it."""

    def __init__(self, address, **options):
        self.address, self.clock, self.hands = address, FakeClock(), []
        settings = QueueSettings(PERIOD, 60, **RULE, **options)
        self.id = new_queue(address, capacity=SLOTS, at=self.clock.wall, settings=settings)

    def hand(self, **options):
        """Return another worker."""
        hand = Hand(self.address, self.id, clock=self.clock.make(), **options)
        hand.store._store.clock = lambda: None
        self.hands.append(hand)
        return hand

    def log(self):
        """Return all decisions in their order."""
        store = open_store(self.address)
        store.connect()
        try:
            return store.entries_where("kind = 0 ORDER BY seq")
        finally:
            store.close()

    def problems(self):
        """Return what an audit finds."""
        with opened(self.address, only_read=True) as store:
            return [problem for found in audit_store(store) for problem in found.problems]


@pytest.fixture
def desk(address):
    """Return a desk, and close what it has opened."""
    made = Desk(address)
    yield made
    for hand in made.hands:
        hand.close()


def event(id, customer, score):
    """Return an event as a request has it."""
    return id, {"customer": customer, "score": float(score)}


def check_rule(entries, *, slots=SLOTS, window=WINDOW, cooldown=COOLDOWN, rise=RISE):
    """Check every entry against the rule in words, and return how many joined a case."""
    cases, flags = {}, {}
    for entry in entries:
        last = cases.get(entry.entity)
        if entry.code in (ALLOWED, MOMENT_REFUSED):
            assert entry.slot is None
            assert entry.joined is None
            continue
        since = np.inf if last is None else entry.at - last["at"]
        rose = last is not None and entry.score >= last["highest"] + rise
        may_be_raised = since >= window + cooldown or (since >= window and rose)
        assert (entry.code == JOINED) == (not may_be_raised)
        if entry.slot is not None:
            cases[entry.entity] = {"seq": entry.seq, "at": entry.at, "highest": entry.score}
            flags[entry.period] = flags.get(entry.period, 0) + 1
            assert entry.joined is None
        elif since < window + cooldown:
            last["highest"] = max(last["highest"], entry.score)
            assert entry.joined == last["seq"]
        else:
            assert entry.joined is None
    assert max(flags.values(), default=0) <= slots
    return sum(entry.code == JOINED for entry in entries)


@pytest.mark.parametrize("seed", range(6))
def test_two_workers_with_faults_and_restarts_keep_one_rule(desk, seed):
    """Random orders, repeats, pauses, lost connections: one slot for a case, one case for an event.

    Each worker knows the cases of the other from the log alone.
    """
    rng = np.random.default_rng(seed)
    workers, answers, sent = [desk.hand(), desk.hand()], {}, {}
    for _ in range(60):
        desk.clock.advance(float(rng.choice([0.0, 1.0, 7.0, 29.0, 31.0, 140.0])))
        worker = int(rng.integers(2))
        if rng.uniform() < 0.15:
            workers[worker] = desk.hand()  # a restart
        if rng.uniform() < 0.2:
            workers[worker].store.step = str(rng.choice(FaultyStore.STEPS))
        batch = []
        for id in rng.integers(0, 150, size=rng.integers(1, 7)).tolist():
            score = rng.choice([-1.0, 1.0, 2.5, 3.0, 4.2, 5.5])
            sent.setdefault(id, event(id, f"c{rng.integers(5)}", score))
            batch.append(sent[id])
        for (id, _), answer in zip(batch, workers[worker].decide(batch), strict=True):
            before = answers.setdefault(id, answer)
            assert (answer.flag, answer.score) == (before.flag, before.score)
    entries = desk.log()
    assert [entry.case_id for entry in entries].count("0") <= 1
    assert {int(entry.case_id): entry.slot is not None for entry in entries} == {
        id: answer.flag for id, answer in answers.items()
    }
    assert check_rule(entries) > 10
    assert desk.problems() == []


def test_two_services_that_are_killed_keep_one_rule(address, model_file):
    """Processes of their own behind HTTP: late events, repeats, SIGKILL at commits."""
    rng, wall = np.random.default_rng(5), 1.7e9
    kept = {"window": 600.0, "cooldown": 1_200.0, "rise": 0.2}
    made_queues(address, model_file, count=12, made={"entity": "customer", **kept})
    services, answers, n_killed = [KilledService(address, wall) for _ in range(2)], {}, 0
    sent = {
        id: {**case(id, float(rng.lognormal(4, 1)), "US"), "customer": f"c{rng.integers(6)}"}
        for id in map(str, range(240))
    }
    try:
        for service in services:
            service.start()
        for turn in range(60):
            wall += float(rng.choice([0.0, 5.0, 240.0, 900.0, 5_000.0]))
            service = services[int(rng.integers(2))]
            service.set_clock(wall - float(rng.choice([0.0, 40.0])))  # clocks that do not agree
            if turn % 9 == 4:
                service.kill_soon(1, is_late=rng.random() < 0.5)
            batch = [sent[id] for id in map(str, rng.integers(0, 240, rng.integers(1, 9)))]
            try:
                found = service.client.post("/v1/queues/default/decisions", json=batch)
            except httpx.TransportError:
                service.start_again()
                n_killed += 1
                found = service.client.post("/v1/queues/default/decisions", json=batch)
            assert found.status_code == 200, found.text
            for each, answer in zip(batch, found.json(), strict=True):
                before = answers.setdefault(each["id"], answer)
                assert (answer["flag"], answer["score"]) == (before["flag"], before["score"])
    finally:
        for service in services:
            service.stop()
    with opened(address, only_read=True) as store:
        entries = store.entries_where("kind = 0 ORDER BY seq")
        assert [found.problems for found in audit_store(store)] == [[]]
    told = {id: answer["flag"] for id, answer in answers.items()}
    assert {entry.case_id: entry.slot is not None for entry in entries} == told
    assert check_rule(entries, slots=12, **kept) > 10
    assert n_killed >= 4


def test_an_allowance_follows_from_the_log(desk):
    """All workers and a restart know it, and its end."""
    one, other = desk.hand(), desk.hand()
    until = desk.clock.wall + 50
    one.change(ALLOW, entity="ann", until=until)
    found = other.decide([event(1, "ann", 9), event(2, "bob", 9)])
    assert [each.reason for each in found] == ["allowed", "above threshold"]
    desk.clock.advance(50)
    assert desk.hand().decide([event(3, "ann", 9)])[0].reason == "above threshold"
    check_rule(desk.log())
    assert desk.problems() == []


def test_an_event_without_its_entity_is_refused(desk):
    """It takes no slot, and the answer says what is missing."""
    [answer] = desk.hand().decide([(1, {"score": 9.0})])
    assert isinstance(answer, Problem)
    assert answer.status == 422
    assert "needs an entity in the field 'customer'" in answer.detail
    assert desk.log() == []


def test_a_case_that_the_counts_refuse_is_no_case(desk):
    """What is not flagged in the end begins none: later events are decided again."""
    hand = desk.hand()
    flagged = hand.decide([event(i, f"c{i}", 9) for i in range(SLOTS)])
    assert all(each.flag for each in flagged)
    found = hand.decide([event(10, "new", 9), event(11, "new", 9.5), event(12, "c0", 9)])
    assert [each.reason for each in found] == ["capacity used up"] * 2 + ["joined a case"]
    check_rule(desk.log())


def test_an_entity_can_be_erased(desk):
    """Ids, columns and the entity are gone, also from the allow-list; the audit still agrees."""
    hand = desk.hand()
    hand.decide([event(1, "ann", 9), event(2, "ann", 8), event(3, "bob", 9)])
    hand.change(ALLOW, entity="ann", until=desk.clock.wall + 50)
    with opened(desk.address) as store:
        assert erase_cases(store, ["ann"]) == 3
        rows = store.query("SELECT * FROM log WHERE queue = ?", desk.id)
        assert not any("ann" in str(value) for row in rows for value in row)
    assert desk.problems() == []
    # Nobody knows the case any more: the next event begins one.
    assert desk.hand().decide([event(4, "ann", 9)])[0].flag
    assert desk.problems() == []


def test_probes_begin_cases_as_well(address):
    """A case that was drawn has one slot, and its events join it."""
    desk = Desk(address, probe=0.5, probe_key="k")
    hand, rng = desk.hand(), np.random.default_rng(0)
    for step in range(150):
        desk.clock.advance(3.0)
        hand.decide([event(step, f"c{rng.integers(8)}", rng.normal())])
    entries = desk.log()
    assert check_rule(entries) > 10
    assert desk.problems() == []
    for hand in desk.hands:
        hand.close()


def test_an_audit_finds_a_second_flag_of_a_case(desk):
    """Somebody has written an entry past the rule."""
    hand = desk.hand()
    hand.decide([event(1, "ann", 9)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shortlist.online.EntityCases.settle", lambda *values: None)
        hand.decide([event(2, "ann", 9)])
    assert ["is flagged, although its entity has a case" in each for each in desk.problems()] == [
        True
    ]


def test_over_http(tmp_path, model_file):
    """The entity is a column of the case, which the model need not know."""
    rule = {"entity": "customer", "window": 3_600.0}
    with serving(tmp_path / "shortlist.db", model_file, count=50, made=rule) as client:

        def decide(id, customer, amount=9_000.0):
            body = {**case(id, amount), "customer": customer}
            return client.post("/v1/queues/default/decisions", json=body)

        allowed = {"entity": "bob", "until": "2099-01-01T00:00:00Z"}
        assert client.post("/v1/queues/default/allowed", json=allowed).json()["seq"] > 0
        found = [decide(1, 7), decide(2, "7"), decide(3, "bob"), decide(4, None)]
        assert found[0].json()["flag"]
        reasons = [each.json().get("reason") for each in found[1:]]
        assert reasons == ["joined a case", "allowed", None]
        assert found[3].status_code == 422
        log = client.get("/v1/queues/default/log").json()["entries"]
        flagged, joined = (each for each in log if each["entity"] == "7")
        assert joined["joined"] == flagged["seq"]
        [listed] = client.get("/v1/queues/default/cases").json()["cases"]
        assert (listed["id"], listed["n_events"]) == ("1", 2)
        events = client.get("/v1/queues/default/decisions/2").json()["events"]
        assert [(each["id"], each["columns"]["customer"]) for each in events] == [
            ("1", 7),
            ("2", "7"),
        ]
    other = serving(tmp_path / "shortlist.db", model_file, count=50)
    with pytest.raises(ValueError, match="was made with entity 'customer', and not None"), other:
        pass
