"""The promise of the service: never over capacity, one decision for each case, nothing lost."""

import time

import numpy as np
import pytest

from shortlist.online.decisions import REASONS
from shortlist.service._decider import Request
from shortlist.service.store import CAPACITY, MODEL, Group, PromiseError
from tests.service.helpers import FakeClock, FaultyStore, Hand, ask, new_queue, open_store

PERIOD = 100.0


class Queue:
    """A database with one queue, and hands that decide for it."""

    def __init__(self, address, capacity=3):
        self.address, self.clock, self.hands = address, FakeClock(), []
        self.id = new_queue(address, capacity=capacity, period=PERIOD, at=self.clock.wall)

    def hand(self, **options):
        """Return another decider."""
        # PostgreSQL's own clock is no witness of a clock that we made up.
        hand = Hand(self.address, self.id, clock=self.clock.make(), **options)
        hand.store._store.clock = lambda: None
        self.hands.append(hand)
        return hand

    def query(self, statement, *values):
        """Return rows of the database."""
        store = open_store(self.address)
        store.connect()
        try:
            return store.query(statement, *values)
        finally:
            store.close()

    def flags(self):
        """Return the number of flags in each period."""
        rows = self.query("SELECT period, count(*) FROM log WHERE slot > 0 GROUP BY period")
        return dict(rows)


@pytest.fixture
def queue(address):
    """Return a queue, and close what it has opened."""
    made = Queue(address)
    yield made
    for hand in made.hands:
        hand.close()


def cases(first, scores):
    """Return cases with numbers as ids."""
    return [(first + place, float(score)) for place, score in enumerate(scores)]


def test_no_period_gets_more_flags_than_its_capacity(queue):
    """Two processes share the number of each period, and use it."""
    hands, rng = [queue.hand(), queue.hand()], np.random.default_rng(0)
    for step in range(40):
        hands[step % 2].decide(cases(100 * step, rng.normal(size=10) + 1))
        queue.clock.advance(20)
    flags = queue.flags()
    assert max(flags.values()) == 3
    assert sum(flags.values()) >= 3 * (len(flags) - 1)


def test_a_repeated_case_gets_its_first_answer(queue):
    """From any process, also within one group, and marked as repeated."""
    first = queue.hand().decide([("a", 9.0), ("a", 9.0)])
    again = queue.hand().decide([("a", 9.0)])
    assert [answer.repeated for answer in (*first, *again)] == [False, True, True]
    assert {(a.flag, a.threshold, a.reason, a.at) for a in (*first, *again)} == {
        (first[0].flag, first[0].threshold, first[0].reason, first[0].at)
    }


@pytest.mark.parametrize(("usual", "together"), [(64, 4), (1, 1)])
def test_a_small_group_waits_for_a_few_more_under_load(queue, monkeypatch, usual, together):
    """A transaction for one case costs as much as for many; who asks alone never waits."""
    decider, delivered = queue.hand().decider, []

    def arrive(seconds):
        for id in range(1, 4):
            ask(decider, [(id, 1.0)])

    def deliver(requests):
        delivered.append(requests)
        decider._closing = True

    monkeypatch.setattr("shortlist.service._decider.time.sleep", arrive)
    monkeypatch.setattr(decider, "_deliver", deliver)
    monkeypatch.setattr(decider, "_usual", usual)
    ask(decider, [(0, 1.0)])
    decider._loop()
    assert len(delivered[0]) == together


def test_a_case_from_long_ago_gets_its_first_answer(queue):
    """A process that joined after a case was decided finds it in the log."""
    first = queue.hand().decide([("a", 9.0), ("b", 0.5)])
    other = queue.hand()
    other.decide([("c", 0.0)])
    again = other.decide([("a", 9.0), ("d", 0.0), ("b", 1.0)])
    assert (again[0].repeated, again[0].flag) == (True, first[0].flag)
    assert (again[1].repeated, again[2].status) == (False, 422)
    assert queue.query("SELECT count(*) FROM alarm") == [(0,)]
    assert other.decide([("e", 0.0)])[0].reason in REASONS


def test_a_known_case_with_other_columns_is_a_conflict(queue):
    """It is not decided again, and the first decision stays."""
    hand = queue.hand()
    hand.decide([("a", 9.0)])
    [alone] = hand.decide([("a", 1.0)])
    _, together = hand.decide([("b", 1.0), ("b", 2.0)])
    assert (alone.status, together.status) == (422, 422)
    assert queue.query("SELECT count(*) FROM log WHERE kind = 0") == [(2,)]


@pytest.mark.parametrize("step", FaultyStore.STEPS)
def test_a_lost_connection_changes_no_answer(queue, step):
    """Whether the commit arrived or not: the group is decided once, and counted once."""
    hand, other = queue.hand(), queue.hand()
    hand.decide(cases(0, [0.1, 0.2]))
    other.decide(cases(10, [0.1, 5.0]))
    hand.store.step = step
    answers = hand.decide(cases(20, [5.0, 0.0, 5.0, 5.0]))
    hand.store.step = None
    assert [answer.flag for answer in other.decide(cases(20, [5.0, 0.0, 5.0, 5.0]))] == [
        answer.flag for answer in answers
    ]
    rows = queue.query("SELECT seq FROM log ORDER BY seq")
    assert [seq for (seq,) in rows] == list(range(1, len(rows) + 1))
    assert max(queue.flags().values()) <= 3
    assert hand.decider.stopped is None


def test_without_a_database_nothing_is_flagged(queue):
    """When its time is up, a case is told that there is no answer."""
    hand = queue.hand()
    hand.decide([("a", 1.0)])
    hand.store._store.connect = lambda **options: (_ for _ in ()).throw(
        type(hand.store._error("away"))("away")
    )
    hand.store.step = "begin"
    [answer] = hand.decide([("b", 9.0)], patience=0.2)
    assert (answer.status, answer.kind) == (503, "unavailable")
    assert queue.query("SELECT count(*) FROM log WHERE case_id = 'b'") == [(0,)]


def test_a_lower_capacity_takes_effect_for_all_at_once(queue):
    """What is used stays used; nothing more is flagged in this period."""
    one, other = queue.hand(), queue.hand()
    one.decide(cases(0, [9.0, 9.0]))
    one.change(CAPACITY, count=2)
    assert not any(a.flag for a in other.decide(cases(10, [9.0] * 5)))
    queue.clock.advance(PERIOD)
    assert sum(a.flag for a in other.decide(cases(20, [9.0] * 5))) <= 2


def test_a_capacity_may_begin_later(queue):
    """From its moment on, for every process, whoever announced it."""
    one, other = queue.hand(), queue.hand()
    one.change(CAPACITY, count=0, **{"from": queue.clock.wall + PERIOD})
    assert any(a.flag for a in other.decide(cases(0, [9.0] * 3)))
    queue.clock.advance(PERIOD)
    assert not any(a.flag for a in other.decide(cases(10, [9.0] * 5)))


def test_a_change_made_now_is_not_undone_by_one_that_was_due_before(queue):
    """The latest word counts, even if nothing arrived between the two moments."""
    hand = queue.hand()
    hand.decide(cases(0, [0.0]))
    hand.change(CAPACITY, count=0, **{"from": queue.clock.wall + 10})
    queue.clock.advance(20)
    hand.change(CAPACITY, count=3)
    queue.clock.advance(PERIOD)
    assert any(a.flag for a in hand.decide(cases(10, [9.0] * 3)))


def test_a_model_swap_takes_effect_at_the_same_case_for_all(queue):
    """Cases that were scored before are scored again."""
    one, other = queue.hand(), queue.hand()
    other.decide([("a", 1.0)])
    one.change(MODEL, model=2)
    [answer] = other.decide([("b", 1.0)])
    assert (answer.model, answer.score) == (2, 2.0)


def test_a_clock_that_jumps_ahead_is_refused(queue):
    """Nothing is decided, an alarm is raised, and the right clock goes on."""
    hand = queue.hand()
    hand.decide([("a", 1.0)])
    queue.clock.wall += 3_600
    [answer] = hand.decide([("b", 9.0)])
    assert (answer.status, answer.kind) == (503, "clock")
    assert [kind for (kind,) in queue.query("SELECT kind FROM alarm")] == ["clock"]
    queue.clock.wall -= 3_600
    [answer] = hand.decide([("b", 9.0)])
    assert answer.reason in REASONS


def test_a_change_that_a_wrong_clock_refused_is_not_made_later(queue):
    """Who asked was told so, and may have asked for something else since."""
    hand = queue.hand()
    hand.decide([("a", 1.0)])
    queue.clock.wall += 3_600
    hand.decide([("b", 9.0)])
    request = Request(kind=CAPACITY, change={"count": 9}, deadline=time.monotonic() + 60)
    hand.decider.submit(request)
    hand.decider._round()
    assert [answer.kind for answer in request.answers] == ["clock"]
    queue.clock.wall -= 3_600
    hand.decide([("b", 9.0)])
    assert queue.query("SELECT capacity FROM queue") == [(3,)]


def test_the_alarm_of_a_clock_ends_with_a_new_start(queue):
    """As its message advises; another process has raised it."""
    hand = queue.hand()
    hand.decide([("a", 1.0)])
    queue.clock.wall += 3_600
    hand.decide([("b", 9.0)])
    hand.close()
    queue.clock.wall -= 3_600
    assert queue.query("SELECT kind FROM alarm") == [("clock",)]
    queue.hand().decide([("c", 1.0)])
    assert queue.query("SELECT kind FROM alarm") == []


def test_a_clock_that_runs_back_opens_no_period_twice(queue):
    """Cases count as of the latest moment."""
    hand = queue.hand()
    hand.decide(cases(0, range(9, 14)))
    before = queue.clock.wall
    queue.clock.wall -= 5 * PERIOD
    answers = hand.decide(cases(10, [9.0] * 5))
    assert {answer.at for answer in answers} == {before}
    assert queue.flags() == {int(before // PERIOD): 3}


def test_a_long_pause_must_be_accepted(queue):
    """A clock a month ahead of the last decision may be wrong; the one who starts it knows."""
    queue.hand().decide([("a", 1.0)])
    queue.clock.advance(40 * 86_400)
    [refused] = queue.hand().decide([("b", 1.0)])
    [decided] = queue.hand(accept_clock=True).decide([("b", 1.0)])
    assert refused.kind == "clock"
    assert decided.at == queue.clock.wall
    assert queue.hand(accept_clock=True).decide([("c", 1.0)])[0].reason in REASONS


def test_two_versions_share_a_queue(queue):
    """A version whose arithmetic differs follows the other's decisions and counts its flags."""
    old, new = queue.hand(build="old"), queue.hand(build="new")
    rng = np.random.default_rng(3)
    for step in range(60):
        hand = (old, new)[step % 2]
        hand.decide(cases(100 * step, rng.normal(size=6) + 1))
        # The new version paces otherwise: its thresholds differ from the old one's.
        new.decider.replica and new.decider.replica.controller.state_floats.__setitem__(2, 90.0)
        queue.clock.advance(15)
    assert max(queue.flags().values()) == 3
    assert old.decider.stopped is None
    assert queue.hand(build="old").decide([("end", 0.0)])[0].reason in REASONS


def test_a_log_that_differs_stops_the_process(queue):
    """Whoever cannot repeat what the log says decides nothing more, and says so."""
    hand, other = queue.hand(), queue.hand()
    hand.decide(cases(0, [0.0]))
    other.decide(cases(10, [0.0]))
    # `other` decides with a state that it made up.
    other.decider.replica.controller.state_floats[2] = 9.0
    other.decide(cases(20, [0.5] * 10))
    [answer] = hand.decide([("a", 9.0)])
    assert answer.status == 503
    assert "differ" in hand.decider.stopped
    assert ("replay",) in queue.query("SELECT kind FROM alarm")


def test_alarms_end_when_cases_can_be_decided_again(queue):
    """A new process ends those of others; one that still cannot decide raises its own again."""
    hand = queue.hand()
    hand.decide([("a", 1.0)])
    kinds = lambda: {kind for (kind,) in queue.query("SELECT kind FROM alarm")}  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shortlist.service._decider._ALARM_EVERY", 0.0)
        for error, kind in ((KeyError("x"), "error"), (PromiseError("x"), "promise")):
            patch.setattr(
                hand.decider, "_decide", lambda *args, error=error: (_ for _ in ()).throw(error)
            )
            assert hand.decide([("b", 1.0)], patience=0.05)[0].status == 503
            assert kind in kinds()
        patch.undo()
        assert hand.decide([("b", 1.0)])[0].reason in REASONS
        assert kinds() == set()
        patch.setattr("shortlist.service._decider._ALARM_EVERY", 0.0)
        queue.hand().decide([("c", 0.0)])
        hand.decider.replica.controller.state_floats[2] = 9.0
        assert hand.decide([("d", 1.0)])[0].status == 503
        assert kinds() == {"replay"}
        queue.hand().decide([("e", 0.0)])
        assert kinds() == set()
        assert hand.decide([("f", 1.0)])[0].status == 503
        assert kinds() == {"replay"}
        assert hand.decider.stopped.count("stopped deciding") == 1


def test_the_database_itself_refuses_a_flag_too_many(queue):
    """A wrong program cannot write the fourth flag of three, a slot twice, or change the log."""
    hand = queue.hand()
    hand.decide(cases(0, [9.0, 9.0]))
    store = open_store(queue.address)
    store.connect()
    row, entries, _ = store.begin(queue.id, 0)
    flagged = next(entry for entry in entries if entry.slot == 1)
    store.rollback()
    for slot in (4, 1):
        row, _, _ = store.begin(queue.id, row.last_seq)
        wrong = flagged._replace(seq=row.last_seq + 1, case_id="x", slot=slot)
        with pytest.raises(PromiseError):
            store.commit(Group(row._replace(last_seq=row.last_seq + 1), [wrong]))
        store.rollback()
    store.note(0.0, "", "test", None, {})
    for statement in ("UPDATE log SET slot = NULL", "DELETE FROM log", "DELETE FROM note"):
        with pytest.raises(Exception, match="append-only"):
            store.query(statement)
    store.close()
    assert queue.query("SELECT last_seq FROM queue") == queue.query("SELECT max(seq) FROM log")


def test_a_shared_total_bounds_several_queues(address):
    """Two teams with three flags each and four together."""
    clock = FakeClock()
    store = open_store(address)
    store.connect(create=True)
    store.make_tables()
    store.query("INSERT INTO total (name, capacity) VALUES ('all', 4)")
    store.close()
    ids = [
        new_queue(address, name=name, capacity=3, period=PERIOD, at=clock.wall, total="all")
        for name in ("north", "south")
    ]
    hands = [Hand(address, id, clock=clock.make()) for id in ids]
    for hand in hands:
        hand.store._store.clock = lambda: None
    for period in range(3):
        flags = [
            sum(a.flag for a in hand.decide(cases(100 * period, range(9, 19)))) for hand in hands
        ]
        assert flags == [3, 1]
        clock.advance(PERIOD)
    again = Hand(address, ids[1], clock=clock.make())
    again.store._store.clock = lambda: None
    assert again.decide([("z", 0.0)])[0].reason in REASONS
    for hand in (*hands, again):
        hand.close()


def test_a_database_that_may_lose_commits_is_refused(postgres):
    """Asynchronous commits would lose decisions that were answered."""
    import psycopg

    address = postgres.new_database("asynchronous")
    with psycopg.connect(address, autocommit=True) as link:
        link.execute("ALTER DATABASE asynchronous SET synchronous_commit = off")
    with pytest.raises(ValueError, match="synchronous_commit is off"):
        open_store(address).connect()


def test_an_answer_is_on_the_disk_before_it_is_given(postgres, monkeypatch):
    """Groups are committed without waiting, but nothing is answered before a flush."""
    address = postgres.new_database("flushed")
    queue = Queue(address)
    hand = queue.hand()

    def unflushed(n):
        hand.decide(cases(100 * n, [0.0] * 5))
        return queue.query(
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn())"
        )[0][0]

    assert sorted(unflushed(n) for n in range(9))[4] == 0
    monkeypatch.setattr("shortlist.service._postgres._MARK", "SELECT 1")
    assert sorted(unflushed(n) for n in range(10, 19))[4] > 0
    hand.close()


def test_cases_are_not_looked_up_by_the_plan_of_a_short_log(postgres):
    """PostgreSQL keeps the plan of a prepared statement, which would read all of a longer log."""
    address = postgres.new_database("plans")
    hand = Hand(address, new_queue(address))
    for n in range(9):
        hand.decide([(f"a{n}", 0.5)])
    kept = hand.store._store.query("SELECT statement FROM pg_prepared_statements")
    assert any("FOR UPDATE" in text for (text,) in kept)
    assert not any("case_id = ANY" in text for (text,) in kept)
    hand.close()


def test_a_file_that_was_replaced_is_not_used(tmp_path):
    """Another file under the same name has other decisions."""
    address = str(tmp_path / "a.db")
    queue = Queue(address)
    hand = queue.hand()
    hand.decide([("a", 1.0)])
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    [answer] = hand.decide([("b", 1.0)], patience=0.1)
    assert answer.status == 503


def test_the_drift_alarm_sees_every_score_once(queue):
    """Scores of small groups at once, those of large ones together, its own and others'."""
    one, two = queue.hand(), queue.hand()
    for group in range(4):
        one.decide(cases(1_000 * group, np.zeros(100)))
    two.decide(cases(9_000, np.zeros(5)))
    one.decide(cases(9_100, np.zeros(5)))
    seen = [hand.decider.replica.drift.n_seen for hand in (one, two)]
    assert seen == [410, 405]


def test_queues_of_a_total_may_be_in_two_periods(address):
    """A clock that is behind at the turn of a period does not let the total begin again."""
    clock, ids, hands = FakeClock(), [], []
    store = open_store(address)
    store.connect(create=True)
    store.make_tables()
    store.query("INSERT INTO total (name, capacity) VALUES ('all', 4)")
    for name in ("north", "south"):
        ids.append(
            new_queue(address, name=name, capacity=3, period=PERIOD, at=clock.wall, total="all")
        )
        hands.append(Hand(address, ids[-1], clock=clock.make()))
        hands[-1].store._store.clock = lambda: None
    north, south = hands
    south.decide(cases(0, range(9, 11)))
    clock.advance(PERIOD)
    assert sum(answer.flag for answer in north.decide(cases(0, range(9, 19)))) == 3
    clock.wall -= PERIOD
    late = south.decide(cases(100, range(19, 29)))  # of the period before
    clock.wall += PERIOD
    assert {answer.flag for answer in late} == {True, False}
    answers = south.decide(cases(200, range(29, 39)))
    assert sum(answer.flag for answer in answers) == 1
    rows = store.query("SELECT period, count(*) FROM log WHERE slot > 0 GROUP BY period")
    assert {n for _, n in rows} <= {3, 4}
    for each in (store, *hands):
        each.close()


def test_a_new_version_does_not_move_the_clock(queue):
    """A machine whose clock is a year ahead writes its state without letting time pass."""
    queue.hand().decide([("a", 1.0)])
    before = queue.clock.wall
    queue.clock.advance(365 * 86_400)
    [refused] = queue.hand(build="new").decide([("b", 9.0)])
    queue.clock.wall = before + 1
    [decided] = queue.hand(build="new").decide([("b", 9.0)])
    assert refused.kind == "clock"
    assert decided.at == before + 1


def test_a_worker_that_nobody_asks_follows_the_others(address):
    """Otherwise the first case after a night lets it read all of the night, and holds the lock."""
    queue = new_queue(address)
    busy, idle = Hand(address, queue), Hand(address, queue)
    idle.decider._round()
    busy.decide([(f"case {n}", 0.0) for n in range(30)])
    idle.decider._round()
    assert idle.decider.replica.seq == busy.decider.replica.seq
    busy.close()
    idle.close()
