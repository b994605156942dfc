"""A clock that was wrong: it is noticed, it can be put right, and no slot is given twice."""

import time

import numpy as np
import pytest

from shortlist.service.audit import audit_store
from shortlist.service.databases import opened
from shortlist.service.settings import SteadyClock
from shortlist.service.setup import _set_clock_back
from shortlist.service.store import CAPACITY
from tests.service.helpers import FakeClock, Hand, case, new_queue, serving

BASE = "/v1/queues/default"
DAY = 86_400.0
AHEAD = 25 * DAY


def flag_many(client, name):
    """Decide about a hundred cases that deserve a flag; return how many get one, and when."""
    cases = [case(f"{name} {n}", 900.0, "US") for n in range(100)]
    answers = client.post(f"{BASE}/decisions", json=cases).json()
    return sum(answer["flag"] for answer in answers), answers[0]["at"]


def clock_alarms(client):
    """Return the alarms about the clock."""
    alarms = client.get(f"{BASE}/status").json()["alarms"]
    return [alarm["message"] for alarm in alarms if alarm["kind"] == "clock"]


def test_a_start_with_a_clock_25_days_ahead_can_be_put_right(tmp_path, model_file):
    """Time stands still and says so, until a start accepts the clock; every period keeps its 5."""
    database = tmp_path / "shortlist.db"
    early = {"clock": SteadyClock(wall=lambda: time.time() + AHEAD)}
    with serving(database, model_file) as client:
        before, _ = flag_many(client, "before")
        assert before > 0
    with serving(database, None, **early) as client:
        ahead, at = flag_many(client, "ahead")
        assert at == pytest.approx(time.time() + AHEAD, abs=60)
        assert ahead > 0
    with serving(database, None) as client:
        frozen, still = flag_many(client, "frozen")
        assert still == pytest.approx(at, abs=60)
        [message] = clock_alarms(client)
        assert "25.00 days ahead" in message
        assert "--accept-clock" in message
        count = len(client.get(f"{BASE}/status").json()["alarms"])
        assert f'shortlist_alarms{{queue="default"}} {count}.0' in client.get("/metrics").text
    with serving(database, None, made={"accept_clock": True}) as client:
        again, at = flag_many(client, "again")
        assert at == pytest.approx(time.time(), abs=60)
        status = client.get(f"{BASE}/status").json()
        assert (status["used"], status["seen"]) == (before + again, 200)
        assert clock_alarms(client) == []
    with serving(database, None, **early) as client:
        flags, at = flag_many(client, "ahead again")
        assert at == pytest.approx(time.time() + AHEAD, abs=60)
        assert ahead + frozen + flags <= 5
    with opened(str(database)) as store:
        [found] = audit_store(store)
        assert (found.problems, found.n_replayed) == ([], 500)
        rows = store.query("SELECT count(*), max(slot) FROM log WHERE slot > 0 GROUP BY period")
        assert all(count == last <= 5 for count, last in rows)
        assert store.query("SELECT count(*) FROM audit WHERE action = 'clock'") == [(1,)]


@pytest.mark.parametrize("seed", [0, 1])
def test_no_slot_is_given_twice_however_often_a_clock_is_set(address, seed):
    """Through many starts with clocks ahead and back, and capacities that change now and later."""
    rng, clock, period = np.random.default_rng(seed), FakeClock(1e8), 3 * DAY
    queue = new_queue(address, capacity=3, period=period, at=clock.wall, arrivals=20)
    largest = 3
    for step in range(25):
        clock.wall += float(rng.uniform(-5, 5)) * period
        with opened(address) as store:
            [row] = store.queues()
            if row.high_water > clock.wall + 60:
                _set_clock_back(store, row, clock.wall)
        hand = Hand(address, queue, clock=clock.make())
        hand.store._store.clock = lambda: None
        if step % 5 == 4:
            largest = max(largest, count := int(rng.integers(1, 6)))
            begins = clock.wall + float(rng.uniform(0, 4)) * period
            hand.change(CAPACITY, count=count, **{"from": begins})
        answers = hand.decide(
            [(f"{step} {n}", float(s)) for n, s in enumerate(rng.normal(3, 1, 8))],
            patience=5.0,
        )
        hand.close()
        assert hand.decider.stopped is None
        assert answers[0].at == clock.wall
    with opened(address) as store:
        [found] = audit_store(store)
        assert (found.problems, found.n_replayed) == ([], 200)
        rows = store.query("SELECT period, count(*), max(slot) FROM log WHERE slot > 0 GROUP BY 1")
        assert all(count == last <= largest for _, count, last in rows)
        ended = store.query("SELECT period, used FROM ended")
        assert dict(ended).items() <= {period: count for period, count, _ in rows}.items() | {
            (period, 0) for period, _ in ended
        }
