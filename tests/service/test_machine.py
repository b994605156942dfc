"""Any order of decisions, retries, changes, crashes and clocks: both stores act like a model."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shortlist import Capacity
from shortlist.service.settings import first_controller
from shortlist.service.store import CAPACITY, MODEL
from tests.service.helpers import (
    Crash,
    FakeClock,
    FaultyStore,
    Hand,
    QueueSettings,
    calibration,
    new_queue,
)

PERIOD, START = 100.0, 1_000_000.0


class Memory:
    """The same queue without a database: a controller, and a dict of answers."""

    def __init__(self, capacity):
        self.controller = first_controller(QueueSettings(PERIOD, 50), capacity, calibration())
        self.model, self.high_water = 1, START
        self.answers, self.flags = {}, {}

    def decide(self, cases, now):
        """Return (flag, threshold, repeated) for each case, or "conflict"."""
        first = dict(reversed(cases))
        new = [(id, first[id]) for id in dict(cases) if id not in self.answers]
        known = set(self.answers)
        if new:
            self.high_water = max(self.high_water, now)
            scores = [score * self.model for _, score in new]
            decided = self.controller.decide_many(scores, at=self.high_water)
            for (id, score), flag, threshold in zip(
                new, decided.flagged.tolist(), decided.thresholds.tolist(), strict=True
            ):
                self.answers[id] = score, flag, threshold
                period = int(self.high_water // PERIOD)
                self.flags[period] = self.flags.get(period, 0) + flag
        answers = []
        for id, score in cases:
            first, flag, threshold = self.answers[id]
            answers.append((flag, threshold, id in known) if first == score else "conflict")
            known.add(id)
        return answers


def machine_for(make_address):
    """Return a machine for one kind of database."""

    class Machine(RuleBasedStateMachine):
        hands: list

        @initialize(capacity=st.integers(0, 4))
        def begin(self, capacity):
            """Make a queue, and two processes for it."""
            self.clock, self.address = FakeClock(START), make_address()
            self.queue = new_queue(
                self.address, capacity=capacity, period=PERIOD, at=START, arrivals=50
            )
            self.memory, self.highest, self.next = Memory(capacity), capacity, 0
            self.steady = self.clock.make()
            self.hands = [self.new_hand(), self.new_hand()]

        def new_hand(self, error=None):
            """Return a process."""
            options = {} if error is None else {"error": error}
            hand = Hand(self.address, self.queue, clock=self.steady, **options)
            hand.store._store.clock = lambda: None
            return hand

        def compare(self, hand, cases):
            """Decide, and compare with the memory."""
            expected = self.memory.decide(cases, self.clock.wall)
            for answer, wanted in zip(hand.decide(cases), expected, strict=True):
                if wanted == "conflict":
                    assert (answer.status, answer.kind) == (422, "conflict")
                else:
                    flag, threshold, _ = wanted
                    finite = threshold if np.isfinite(threshold) else None
                    assert (answer.flag, answer.threshold) == (flag, finite)
            return expected

        @rule(who=st.integers(0, 1), scores=st.lists(st.integers(-3, 4), min_size=1, max_size=5))
        def decide(self, who, scores):
            """New cases arrive."""
            cases = [(f"case {self.next + place}", float(s)) for place, s in enumerate(scores)]
            self.next += len(scores)
            self.compare(self.hands[who], cases)

        @rule(who=st.integers(0, 1), back=st.integers(1, 6), change=st.integers(0, 1))
        def retry(self, who, back, change):
            """A case arrives again, perhaps with other columns, together with a new one."""
            if self.next - back < 0:
                return
            id = f"case {self.next - back}"
            score = self.memory.answers[id][0] + change
            self.next += 1
            self.compare(self.hands[who], [(id, score), (f"case {self.next - 1}", 1.0)])

        @rule(who=st.integers(0, 1), count=st.integers(0, 4), later=st.sampled_from([0, 50, 150]))
        def change_capacity(self, who, count, later):
            """The capacity changes now, or later."""
            at = max(self.clock.wall, self.memory.high_water)
            begins = at + later
            self.hands[who].change(CAPACITY, count=count, **{"from": begins})
            self.memory.high_water = at
            self.memory.controller.set_capacity(Capacity.count(count), at=begins)
            self.highest = max(self.highest, count)

        @rule(who=st.integers(0, 1), scores=st.lists(st.integers(-3, 4), min_size=1, max_size=3))
        def observe(self, who, scores):
            """Cases are decided elsewhere, and all learn from them."""
            told = self.hands[who].observe(scores)
            self.memory.high_water = told["at"]
            scored = [float(score) * self.memory.model for score in scores]
            self.memory.controller.observe(scored, at=told["at"])

        @rule(who=st.integers(0, 1), step=st.sampled_from(FaultyStore.STEPS))
        def lose_connection_at_a_change(self, who, step):
            """A change of the model may be made twice, which changes nothing."""
            self.hands[who].store.step = step
            self.swap(who, 3 - self.memory.model)
            self.hands[who].store.step = None

        @rule(who=st.integers(0, 1), model=st.sampled_from([1, 2]))
        def swap(self, who, model):
            """The model changes."""
            self.hands[who].change(MODEL, model=model)
            self.memory.high_water = max(self.clock.wall, self.memory.high_water)
            self.memory.model = model
            self.memory.controller.swap_model(calibration() * model)

        @rule(
            who=st.integers(0, 1), step=st.sampled_from(FaultyStore.STEPS),
            scores=st.lists(st.integers(-3, 4), min_size=1, max_size=4),
        )  # fmt: skip
        def lose_connection(self, who, step, scores):
            """The connection is lost at some step, and the process goes on."""
            self.hands[who].store.step = step
            self.decide(who, scores)
            self.hands[who].store.step = None

        @rule(
            who=st.integers(0, 1), step=st.sampled_from(FaultyStore.STEPS),
            scores=st.lists(st.integers(-3, 4), min_size=1, max_size=4),
        )  # fmt: skip
        def crash(self, who, step, scores):
            """A process is gone at some step; another one takes its place, and the client asks
            again."""
            victim = self.new_hand(error=Crash)
            victim.store.step = step
            cases = [(f"case {self.next + place}", float(s)) for place, s in enumerate(scores)]
            self.next += len(scores)
            try:
                victim.decide(cases)
            except Crash:
                pass
            finally:
                victim.close()
            self.hands[who].close()
            self.hands[who] = self.new_hand()
            self.compare(self.hands[who], cases)

        @rule(seconds=st.sampled_from([1.0, 30.0, 90.0, 250.0]))
        def advance(self, seconds):
            """Time passes."""
            self.clock.advance(seconds)

        @rule(seconds=st.sampled_from([-500.0, -30.0, 40.0]))
        def step_clock(self, seconds):
            """Somebody sets the clock, within the limit or back."""
            if self.clock.wall + seconds - self.clock.steady <= 60:
                self.clock.wall += seconds

        @rule(who=st.integers(0, 1))
        def jump_ahead(self, who):
            """A step of an hour is refused, and changes nothing."""
            self.clock.wall += 3_600
            self.next += 1
            [answer] = self.hands[who].decide([(f"early {self.next}", 4.0)])
            assert (answer.status, answer.kind) == (503, "clock")
            self.clock.wall -= 3_600
            self.compare(self.hands[who], [(f"case {self.next - 1}", 0.0)])

        @invariant()
        def keeps_the_promise(self):
            """No period has more flags than allowed, and the log has no gaps."""
            if not hasattr(self, "hands"):
                return
            store = self.hands[0].store._store
            if store.link is None:
                store.connect()
            rows = store.query(
                "SELECT period, count(*), max(slot) FROM log WHERE slot > 0 GROUP BY period"
            )
            assert {period: n for period, n, _ in rows} == {
                period: n for period, n in self.memory.flags.items() if n
            }
            assert all(n == last <= self.highest for _, n, last in rows)
            [(n, last)] = store.query("SELECT count(*), max(seq) FROM log")
            assert n == last

        def teardown(self):
            """Close what is open."""
            for hand in getattr(self, "hands", ()):
                hand.close()

    return Machine


SETTINGS = settings(
    max_examples=12,
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_sqlite_acts_like_the_model(tmp_path):
    """SQLite gives the answers of a controller in memory, whatever happens."""

    def make_address():
        return str(Path(tempfile.mkdtemp(dir=tmp_path)) / "shortlist.db")

    case = machine_for(make_address).TestCase
    case.settings = SETTINGS
    case().runTest()


def test_postgresql_acts_like_the_model(postgres):
    """PostgreSQL does, too."""
    import psycopg

    address = postgres.new_database("machine")

    def make_address():
        with psycopg.connect(address, autocommit=True) as link:
            link.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return address

    case = machine_for(make_address).TestCase
    case.settings = SETTINGS
    case().runTest()
