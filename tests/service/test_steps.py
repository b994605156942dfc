"""What the database does for one question, counted: it grows with what is asked for, no faster."""

import json

from shortlist.service._service import Call
from shortlist.service._staff import Next, NextBody, _claim_next
from shortlist.service._status import QueueView
from shortlist.service.keys import NO_KEY
from shortlist.service.settings import QueueSettings
from shortlist.service.store import Entry
from tests.service.helpers import case, new_queue, open_store, serving

PERIOD = 86_400.0
_COLUMNS = ", ".join(Entry._fields)


def add_flags(store, n, *, entity=None, at=0.0, is_open=False):
    """Write flags of all sorts into the log, each with an outcome unless they are open."""
    [(last, high, period)] = store.query("SELECT last_seq, high_water, period FROM queue")
    period = period or 0
    [(slot,)] = store.query("SELECT coalesce(max(slot), 0) FROM log WHERE period = ?", period)
    rows = [
        Entry(
            1, last + k, 0, 1, at or high, period, f"c{last + k}", b"", 1.0 - k / n, 0.0, 1,
            slot + k, 1, None, "{}", entity=entity, seal=b"0" * 16,
        )
        for k in range(1, n + 1)
    ]  # fmt: skip
    marks = ", ".join("?" * len(Entry._fields))
    store.query("BEGIN")
    store.query("UPDATE queue SET capacity = 1000000000")
    store.link.executemany(f"INSERT INTO log ({_COLUMNS}) VALUES ({marks})", rows)
    store.link.executemany(
        "INSERT INTO outcome (queue, number, case_id, rare, reviewer, at, seal) "
        "VALUES (1, ?, ?, 1, 'kim', 0, x'00')",
        [(row.seq, row.case_id) for row in rows if not is_open],
    )
    store.query("UPDATE queue SET last_seq = ?, used = ?", last + n, slot + n)
    store.query("COMMIT")


def steps_of(store, work):
    """Return how many thousand steps SQLite takes for something."""
    steps = 0

    def count():
        nonlocal steps
        steps += 1

    store.link.set_progress_handler(count, 1_000)
    try:
        work()
    finally:
        store.link.set_progress_handler(None, 0)
    return steps


def test_known_cases_are_found_by_an_index(tmp_path):
    """As fast among 50,000 as among 1,000."""
    new_queue(str(tmp_path / "shortlist.db"), period=PERIOD)
    store = open_store(str(tmp_path / "shortlist.db"))
    store.connect()
    found, asked = [], [f"c{k}" for k in range(1, 1_001)]
    for n in (1_000, 49_000):
        add_flags(store, n)
        found.append(steps_of(store, lambda: store.find_cases(1, asked)))
    store.close()
    assert found[1] <= found[0] + 20


def test_status_and_lists_grow_with_the_outcomes(tmp_path, model_file):
    """Twice the outcomes take about twice the steps, and few for each: 50,000 in all."""
    with serving(tmp_path / "shortlist.db", model_file, count=100) as client:
        client.post("/v1/queues/default/decisions", json=case("a"))
        store, counted = client.service.store, []
        for _ in range(2):

            def ask():
                call = Call(client.service, "default", "", NO_KEY, {})
                assert QueueView(call, call.row).status()["precision"]["reviewed"] >= 25_000

            with store.thread:  # the service uses this connection, too
                add_flags(store, 25_000)
                counted.append(steps_of(store, ask))
    assert counted[1] <= 3 * counted[0]  # they are sorted; four times would be quadratic
    assert counted[1] <= 50 * 100  # steps for each outcome


def test_whoever_fits_no_case_is_told_so_soon(tmp_path, model_file):
    """However many cases are open, and were closed before: each is looked at a few times."""
    new_reviewer = {"minutes": 60, "segments": ["DE"]}
    with serving(tmp_path / "shortlist.db", model_file, made={"segment": "country"}) as client:
        client.put("/v1/reviewers/kim", json=new_reviewer)
        store, counted = client.service.store, []

        def ask():
            call = Call(client.service, "default", "", NO_KEY, {})
            assert _claim_next(call, NextBody("kim")) == (Next(None), None)

        with store.thread:
            add_flags(store, 6_000)
            for _ in range(2):
                add_flags(store, 2_000, is_open=True)
                counted.append(steps_of(store, ask))
    assert counted[1] <= 2 * counted[0]
    assert counted[1] <= 10 * 200  # thousands of steps: two hundred for each flag


def test_old_cases_of_an_entity_are_not_read(tmp_path):
    """However often it was flagged long ago."""
    settings = QueueSettings(PERIOD, 10, entity="customer", window=60.0, cooldown=60.0)
    new_queue(str(tmp_path / "shortlist.db"), settings=settings, at=1e6)
    store = open_store(str(tmp_path / "shortlist.db"))
    store.connect()
    found, new = [], json.dumps(["ann"])
    for n in (100, 20_000):
        add_flags(store, n, entity="ann", at=1.0)
        found.append(steps_of(store, lambda: store.known_entities(1, new, 1e6, 1e6 - 121.0)))
    assert store.known_entities(1, new, 1e6, 0.0)
    store.close()
    assert found[1] <= found[0] + 1
