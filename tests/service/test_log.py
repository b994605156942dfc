"""A log that convinces an outsider: whatever is changed afterwards, a kept head shows it."""

import contextlib
import hashlib
import itertools
import json
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app
from shortlist.service._chain import link, seal_of
from shortlist.service._reviews import OutcomeBody, add_outcome
from shortlist.service.audit import audit_store, read_head
from shortlist.service.databases import opened
from shortlist.service.keys import NO_KEY, KeyRing, list_keys, make_key, revoke_key
from shortlist.service.settings import QueueSettings
from shortlist.service.store import (
    CAPACITY,
    DECISION,
    VOUCHED,
    Entry,
    PromiseError,
    _schema,
)
from tests.service import helpers
from tests.service.helpers import FakeClock, Hand, case, made_queues, new_queue, serving

PERIOD, KEY = 100.0, b"a secret"
_numbers = itertools.count()


def fill(address):
    """Let two queues with a total decide through three periods; add outcomes, notes and keys."""
    clock = FakeClock(time.time() // PERIOD * PERIOD)
    with opened(address, create=True) as store:
        store.put("total", {"name": "all", "capacity": 5})
        store.note(0.0, "command", "total", None, {"capacity": 5}, vouch=[("total", "all")])
    settings = QueueSettings(PERIOD, 200)
    ids = [
        new_queue(address, name=name, capacity=3, at=clock.wall, total="all", settings=settings)
        for name in ("north", "south")
    ]
    hands = [Hand(address, id, clock=clock.make()) for id in ids]
    for hand in hands:
        hand.store._store.clock = lambda: None
    for period in range(3):
        for hand in hands:
            hand.decide([(f"{period}-{n}", 3.0 + n / 7) for n in range(12)])
        hands[0].change(CAPACITY, count=3 - period % 2)
        clock.advance(PERIOD)
    hands[0].decide([(f"last-{n}", 0.5 + n) for n in range(6)])
    for hand in hands:
        hand.close()
    with opened(address) as store:
        for queue, (id, n) in zip(store.queues(), ((ids[0], 3), (ids[1], 2)), strict=True):
            cases = store.query(
                "SELECT case_id FROM log WHERE queue = ? AND slot > 0 ORDER BY seq LIMIT ?", id, n
            )
            for place, (case,) in enumerate(cases):
                review(store, queue, case, place == 1)
        for role in ("decide", "review", "manage"):
            make_key(store, role)
        revoke_key(store, list_keys(store)[1]["id"])
        return read_head(store, key=KEY)


def review(store, row, case, rare):
    """Append an outcome as the service does."""

    def note(action, detail, *, vouch=()):
        store.note(time.time(), "k1", action, row.name, detail, vouch=vouch)

    call = SimpleNamespace(
        store=store, row=row, headers={}, note=note, key=NO_KEY, reviewer=lambda name: name
    )
    return add_outcome(call, OutcomeBody(id=case, rare=rare, reviewer="kim", note="a person"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def kept(request, tmp_path_factory):
    """Return a function that copies a filled database, and the head that was kept."""
    if request.param == "sqlite":
        first = tmp_path_factory.mktemp("log") / "first.db"
        head = fill(str(first))

        def copy():
            path = tmp_path_factory.mktemp("copy") / "shortlist.db"
            shutil.copy(first, path)
            return str(path)
    else:
        server = request.getfixturevalue("postgres")
        name = f"log{next(_numbers)}"
        head = fill(server.new_database(name))

        def copy():
            import psycopg

            copied = f"{name}copy{next(_numbers)}"
            with psycopg.connect(server.address("postgres"), autocommit=True) as link:
                link.execute(f"CREATE DATABASE {copied} TEMPLATE {name}")
            return server.address(copied)

    return copy, head


@contextlib.contextmanager
def by_hand(address):
    """Yield a store whose database refuses nothing meanwhile, and gets its locks back."""
    with opened(address) as store:
        if store.dialect == "sqlite":
            for kind, name in store.query("SELECT type, name FROM sqlite_master"):
                if kind == "trigger":
                    store.query(f"DROP TRIGGER {name}")
        else:
            store.query("SET session_replication_role = replica")
        for name in ("log_case", "log_slot", "log_total"):
            store.query(f"DROP INDEX {name}")
        yield store
        names = "|".join(store.missing_locks())
        for statement in _schema(store.dialect):
            if re.search(rf"^CREATE (UNIQUE INDEX|TRIGGER) ({names}) ", statement, re.MULTILINE):
                with contextlib.suppress(PromiseError):  # an edit may have broken what it keeps
                    store.query(statement)


def problems(address, head, *, key=KEY):
    """Return what an audit with a kept head finds."""
    with opened(address, only_read=True) as store:
        heads = [] if head is None else [head]
        return [
            each for found in audit_store(store, heads=heads, key=key) for each in found.problems
        ]


def chain_again(store):
    """Compute all hashes again, as an attacker would who knows how."""
    for row in store.queues():
        head = row.first_head()
        for entry in store.entries(row.id, 0, most=10_000):
            head = link(head, entry._asdict())
            where = "queue = ? AND seq = ?"
            store.query(f"UPDATE log SET hash = ? WHERE {where}", head, row.id, entry.seq)
        store.query("UPDATE queue SET head = ? WHERE id = ?", head, row.id)
    head, names = b"", ("number", "at", "key_id", "action", "queue", "detail")
    for values in store.query(f"SELECT {', '.join(names)} FROM note ORDER BY number"):
        note = dict(zip(names, values, strict=True))
        number, detail = note.pop("number"), json.loads(note["detail"])
        for table in VOUCHED.keys() & detail.keys():
            detail[table] = {key: store.hashes(table).get(key) for key in detail[table]}
        note["detail"] = json.dumps(detail)
        head = link(head, note)
        store.query(
            "UPDATE note SET detail = ?, hash = ? WHERE number = ?", note["detail"], head, number
        )


def cut_tail(store):
    """Remove the last decisions, and put the row of the queue right."""
    row = store.queues()[1]
    *_, last = [entry for entry in store.entries(row.id, 0, most=10_000) if entry.kind == 0][:-3]
    store.query("DELETE FROM log WHERE queue = ? AND seq > ?", row.id, last.seq)
    of_period = "FROM log WHERE queue = ? AND period = ? AND kind = 0"
    [counts] = store.query(f"SELECT count(slot), count(*) {of_period}", row.id, last.period)
    store.query(
        "UPDATE queue SET last_seq = ?, head = ?, high_water = ?, used = ?, seen = ? WHERE id = ?",
        last.seq, last.hash, last.at, *counts, row.id,
    )  # fmt: skip


def append(store):
    """Add a decision at the end, without a right hash."""
    row = store.queues()[0]
    [last] = store.entries(row.id, row.last_seq - 1, most=1)
    new = last._replace(seq=last.seq + 1, case_id="new", slot=None, total_slot=None)
    store.put("log", dict(zip(Entry._fields, new, strict=True)))
    store.query("UPDATE queue SET last_seq = last_seq + 1, seen = seen + 1 WHERE id = ?", row.id)


def rewrite(store):
    """Change a score and an outcome, and compute everything again that follows from them."""
    store.query("UPDATE log SET score = score - 0.01 WHERE queue = 1 AND seq = 9")
    store.query("UPDATE outcome SET rare = NOT rare WHERE queue = 1 AND number = 1")
    chain_again(store)


def rename_queue(store):
    """Give a queue another name, and compute everything again."""
    store.query("UPDATE queue SET name = 'west' WHERE id = 2")
    chain_again(store)


def erase_quietly(store):
    """Erase a case as it should be, but leave no note."""
    entry = next(each for each in store.entries(1, 0, most=99) if each.slot == 1)
    store.query(
        "UPDATE log SET case_id = 'x', digest = NULL, body = NULL, seal = ? WHERE queue = 1 AND "
        "seq = ?",
        seal_of(entry._asdict()),
        entry.seq,
    )


def move_outcome(store):
    """Erase the words of an outcome as it should be, but let it be about another case."""
    private = "case_id", "note", "idempotency", "seal"
    where = "queue = 1 AND number = 2"
    [row] = store.query(f"SELECT {', '.join(private)} FROM outcome WHERE {where}")
    store.query(
        f"UPDATE outcome SET case_id = '0-0', note = NULL, seal = ? WHERE {where}",
        seal_of(dict(zip(private, row, strict=True))),
    )


def exchange(store):
    """Let two entries take each other's place."""
    first, second = store.entries(1, 9, most=2)
    store.query("DELETE FROM log WHERE queue = 1 AND seq IN (10, 11)")
    for entry in (first._replace(seq=11), second._replace(seq=10)):
        store.put("log", dict(zip(Entry._fields, entry, strict=True)))


def put_in(store):
    """Add a decision among the first ones, and compute all hashes again."""
    entries = store.entries(2, 0, most=10_000)
    place = next(place for place, entry in enumerate(entries) if entry.kind == DECISION)
    entries.insert(place, entries[place]._replace(case_id="new", slot=None, total_slot=None))
    store.query("DELETE FROM log WHERE queue = 2")
    for seq, entry in enumerate(entries, 1):
        store.put("log", dict(zip(Entry._fields, entry._replace(seq=seq), strict=True)))
    store.query("UPDATE queue SET last_seq = last_seq + 1, seen = seen + 1 WHERE id = 2")
    chain_again(store)


def exchange_model(store):
    """Let other bytes be the file of a model, under their own digest."""
    digest = hashlib.sha256(b"other").hexdigest()
    store.query("UPDATE model SET file = ?, sha256 = ? WHERE id = 1", b"other", digest)


FLAGGED = "queue = 1 AND slot > 0 AND seq < 20"
EDITS = {
    # --- those of the review ---
    "ids of two cases swapped": "UPDATE log SET case_id = CASE case_id WHEN '0-0' THEN '0-1' ELSE "
    "'0-0' END WHERE queue = 1 AND case_id IN ('0-0', '0-1')",
    "an outcome flipped": "UPDATE outcome SET rare = NOT rare WHERE queue = 1 AND number = 1",
    "an outcome removed": "DELETE FROM outcome WHERE queue = 2 AND number = 2",
    "an outcome added": "INSERT INTO outcome SELECT queue, 9, case_id, rare, 'lee', note, at, "
    "NULL, seal FROM outcome WHERE queue = 1 AND number = 1",
    "the reviewer changed": "UPDATE outcome SET reviewer = 'lee' WHERE queue = 1 AND number = 1",
    "the tail cut": "DELETE FROM log WHERE queue = 1 AND seq > 45",
    "digests zeroed": "UPDATE log SET digest = NULL",
    "a key added": "INSERT INTO api_key SELECT 'abcd', hash, 'manage', NULL, made, NULL, "
    "NULL, NULL FROM api_key WHERE role = 'decide'",
    "a key raised": "UPDATE api_key SET role = 'manage' WHERE role = 'decide'",
    "a revoked key revived": "UPDATE api_key SET revoked = NULL",
    "a score changed": "UPDATE log SET score = score + 1e-9 WHERE queue = 1 AND seq = 9",
    "a threshold changed": "UPDATE log SET threshold = 0.5 WHERE queue = 1 AND seq = 9",
    "a moment changed": "UPDATE log SET at = at + 1e-3 WHERE queue = 2 AND seq = 30",
    "a reason changed": "UPDATE log SET code = code + 1 WHERE queue = 1 AND seq = 9",
    "columns changed": f"UPDATE log SET body = replace(body, '3', '4') WHERE {FLAGGED}",
    "a flag taken back": "UPDATE log SET slot = NULL, total_slot = NULL WHERE queue = 2 AND seq = "
    "(SELECT max(seq) FROM log WHERE queue = 2 AND slot > 0)",
    "a capacity raised in the log": "UPDATE log SET body = replace(body, '3', '9') WHERE kind = 1",
    "settings changed": "UPDATE queue SET settings = replace(settings, '200', '900')",
    "used lowered": "UPDATE queue SET used = used - 1 WHERE id = 1",
    "the clock of a queue put back": "UPDATE queue SET high_water = high_water - 50 WHERE id = 1",
    "a past period changed": "UPDATE ended SET used = used - 1 WHERE used > 1",
    "the total raised": "UPDATE total SET capacity = 50",
    "a note removed": "DELETE FROM note WHERE number = (SELECT max(number) FROM note)",
    # --- ten more ---
    "a decision added": append,
    "who asked changed": "UPDATE log SET key_id = 'somebody' WHERE queue = 1 AND seq = 9",
    "a note changed": "UPDATE note SET at = at - 60 WHERE action = 'key revoked'",
    "the tail cut, with its counts": cut_tail,
    "rewritten, with all hashes": rewrite,
    "a queue renamed, with all hashes": rename_queue,
    "a queue removed": "DELETE FROM queue WHERE name = 'south'",
    "a case erased without a note": erase_quietly,
    "an outcome moved to another case": move_outcome,
    "the capacity of a past period changed": "UPDATE ended SET capacity = 99",
    "a model changed": "UPDATE model SET calibration = file WHERE id = 1",
    "the capacity of the triggers raised": "UPDATE queue SET capacity = 99 WHERE id = 1",
    "versions changed": "UPDATE build SET name = 'shortlist 0.0'",
    # --- and thirteen by somebody who read the audit ---
    "a key removed": "DELETE FROM api_key WHERE role = 'review'",
    "a key given to a person": "UPDATE api_key SET person = 'eve' WHERE role = 'manage'",
    "two entries exchanged": exchange,
    "a decision put in before others, with all hashes": put_in,
    "a queue without its total": "UPDATE queue SET total = NULL WHERE id = 2",
    "a file of a model exchanged, with its digest": exchange_model,
    "the saved state changed": "UPDATE snapshot SET state = replace(state, '\"value\": 3', "
    "'\"value\": 30') WHERE queue = 1",
    "a new salt": "UPDATE log SET seal = (SELECT seal FROM log WHERE queue = 1 AND seq = 10) WHERE "
    "queue = 1 AND seq = 9",
    "past periods removed": "DELETE FROM ended",
    "a reviewer added": "INSERT INTO reviewer VALUES ('eve', 480, 'null', 'null', NULL)",
    "a claim added": "INSERT INTO claim VALUES (1, 9, 'eve', NULL, 0)",
    "notes renumbered": "UPDATE note SET number = number + 1000",
    "the first entry removed": "DELETE FROM log WHERE queue = 1 AND seq = 1",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_audit_with_a_kept_head_notices_every_edit(kept, edit):
    """Whoever changes the database by hand, past all of its locks, is found out."""
    copy, head = kept
    address = copy()
    with by_hand(address) as store:
        if callable(EDITS[edit]):
            EDITS[edit](store)
        else:
            store.query(EDITS[edit])
    assert problems(address, head) != []


def test_nothing_is_wrong_without_edits(kept):
    """Neither with a head nor without, and not with one of a moment long ago."""
    copy, head = kept
    address = copy()
    assert problems(address, head) == []
    assert problems(address, None) == []
    with opened(address) as store:
        review(store, store.queues()[0], "1-1", True)
        later = read_head(store, key=KEY)
    assert problems(address, head) == []
    assert problems(address, later) == []


def test_what_nobody_can_see_without_a_head(kept):
    """Whoever computes all hashes again leaves no trace in the database itself: keep heads."""
    copy, head = kept
    address = copy()
    with by_hand(address) as store:
        store.query("UPDATE outcome SET rare = NOT rare WHERE queue = 1 AND number = 1")
        chain_again(store)
    assert problems(address, None) == []
    assert any("note" in each for each in problems(address, head))


def test_a_database_without_its_locks_is_told(kept):
    """Whoever removes what keeps a promise may have plans for it."""
    copy, _ = kept
    address = copy()
    with opened(address) as store:
        store.query("DROP INDEX log_slot")
        on = "" if store.dialect == "sqlite" else " ON note"
        store.query(f"DROP TRIGGER note_unchanged{on}")
    [told] = problems(address, None)
    assert "lacks its locks ['log_slot', 'note_unchanged']" in told


def test_a_lock_that_keeps_nothing_is_told(kept):
    """It has the name of one that does."""
    copy, _ = kept
    address = copy()
    with opened(address) as store:
        store.query("DROP TRIGGER log_kept" if store.dialect == "sqlite" else "SELECT 1")
        store.query(
            "CREATE TRIGGER log_kept BEFORE DELETE ON log BEGIN SELECT 1; END"
            if store.dialect == "sqlite"
            else "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql "
            "AS 'BEGIN RETURN NEW; END'"
        )
    [told] = problems(address, None)
    assert "log_kept" in told or "note_unchanged" in told


def test_a_head_must_be_signed_by_the_key(kept):
    """Another key, another head and no signature are all told."""
    copy, head = kept
    address = copy()
    unsigned = {name: value for name, value in head.items() if name != "signature"}
    for wrong, key in ((head, b"other"), ({**head, "at": 0.0}, KEY), (unsigned, KEY)):
        assert any("not signed by this key" in each for each in problems(address, wrong, key=key))
    assert problems(address, unsigned, key=None) == []


def test_a_file_that_is_not_what_it_was_is_told_and_not_raised(kept):
    """An audit ends with what is wrong, whatever it finds."""
    copy, head = kept
    for statement in (
        "UPDATE log SET body = 'x' WHERE kind = 1",
        "UPDATE note SET detail = '[]'",
        "UPDATE queue SET settings = '{}'",
        "UPDATE log SET at = 1e300 WHERE seq = 9",
    ):
        address = copy()
        with by_hand(address) as store:
            store.query(statement)
        assert problems(address, head) != []


# --- erasure -------------------------------------------------------------------------------------


def test_erased_cases_leave_a_chain_that_can_be_checked(kept):
    """Ids, columns and the words of reviewers are gone; decisions, outcomes and heads are not."""
    from shortlist.service.erasure import erase_cases

    copy, head = kept
    address = copy()
    with opened(address) as store:
        [(case,)] = store.query("SELECT case_id FROM outcome WHERE queue = 1 AND number = 1")
        before = store.query("SELECT count(*), count(slot) FROM log WHERE kind = 0")
        assert erase_cases(store, [case]) == 2  # in both queues
        assert erase_cases(store, [case]) == 0
        assert store.query("SELECT count(*), count(slot) FROM log WHERE kind = 0") == before
        for table in ("log", "outcome"):
            assert store.query(f"SELECT 1 FROM {table} WHERE case_id = ?", case) == []
        joined = store.query(
            "SELECT outcome.rare FROM outcome JOIN log ON log.queue = outcome.queue AND "
            "log.case_id = outcome.case_id WHERE outcome.queue = 1"
        )
        assert len(joined) == 3
        found = audit_store(store, heads=[head, read_head(store)])
        assert [(each.problems, each.n_erased) for each in found] == [([], 1), ([], 1)]
        assert sum(each.n_replayed for each in found) > 70
        n = erase_cases(store, [], before=time.time() + 1e6)
        assert n == before[0][0] - 2
        assert [each.problems for each in audit_store(store, heads=[head])] == [[], []]
        with pytest.raises(Exception, match="append-only"):
            store.query("UPDATE log SET case_id = 'other', seal = hash, score = 1 WHERE seq = 9")


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE log SET case_id = 'somebody else' WHERE queue = 1 AND slot = 1",
        "UPDATE log SET digest = hash WHERE queue = 1 AND slot = 1",
        "UPDATE log SET body = '{}' WHERE queue = 1 AND slot = 1",
        "UPDATE outcome SET note = 'new words' WHERE number = 1",
        "UPDATE outcome SET case_id = (SELECT max(case_id) FROM outcome) WHERE number = 1",
    ],
)
def test_nothing_is_written_where_a_person_was_forgotten(kept, edit):
    """The seal does not say what was erased, so that the audit must see that nothing is there."""
    from shortlist.service.erasure import erase_cases

    copy, head = kept
    address = copy()
    with opened(address) as store:
        erase_cases(store, [], before=time.time() + 1e6)
    assert problems(address, head) == []
    with by_hand(address) as store:
        store.query(edit)
    assert problems(address, head) != []


def test_an_erased_person_is_nowhere_in_the_file(kept):
    """The bytes of a file have neither the id nor the words about it any more."""
    from shortlist.service.erasure import erase_cases

    copy, _ = kept
    address = copy()
    if address.startswith("postgresql"):
        pytest.skip("PostgreSQL forgets what was erased when it vacuums.")
    with opened(address) as store:
        review(store, store.queues()[0], "1-1", True)
        assert erase_cases(store, [f"{p}-{n}" for p in range(3) for n in range(12)]) > 50
    with contextlib.closing(sqlite3.connect(address)) as link_:
        link_.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = Path(address).read_bytes()
    assert b"a person" not in content
    assert b'"id":"1-' not in content


def test_probing_queues_go_on_after_an_erasure(address):
    """A case is drawn by its id; without it, processes go on from the state that was written."""
    from shortlist.service.erasure import erase_cases

    clock = FakeClock()
    settings = QueueSettings(PERIOD, 200, probe=0.3, probe_key="k")
    id = new_queue(address, capacity=10, at=clock.wall, settings=settings)
    one, other = (Hand(address, id, clock=clock.make()) for _ in range(2))
    for hand in (one, other):
        hand.store._store.clock = lambda: None
    one.decide([(f"a{n}", n / 9) for n in range(30)])
    with opened(address) as store:
        assert erase_cases(store, [f"a{n}" for n in range(30)]) == 30
    answers = other.decide([(f"b{n}", n / 9) for n in range(30)])  # it had not yet followed
    one.decide([(f"c{n}", n / 9) for n in range(30)])
    assert all(hasattr(each, "flag") for each in answers)
    with opened(address) as store:
        [(most,)] = store.query("SELECT max(slot) FROM log")
        [found] = audit_store(store)
    assert most <= 10
    assert (found.problems, found.n_erased) == ([], 30)
    assert found.n_replayed == 60  # nobody can draw the others again
    for hand in (one, other):
        hand.close()


def test_a_case_that_comes_while_others_are_erased_stays(address, monkeypatch):
    """It is after the state from which all processes go on, and they draw it by its id."""
    from shortlist.service import erasure

    clock = FakeClock()
    settings = QueueSettings(PERIOD, 200, probe=0.9, probe_key="k")
    id = new_queue(address, capacity=50, at=clock.wall, settings=settings)
    one, other = (Hand(address, id, clock=clock.make()) for _ in range(2))
    for hand in (one, other):
        hand.store._store.clock = lambda: None
    cases = [(f"a{n}", n / 90) for n in range(60)]
    write_state = erasure.change_queue

    def meanwhile(store, queue, changes):
        place = write_state(store, queue, changes)
        one.decide(cases)
        return place

    monkeypatch.setattr(erasure, "change_queue", meanwhile)
    with opened(address) as store:
        assert erasure.erase_cases(store, [name for name, _ in cases]) == 0
    for step, hand in enumerate((other, one, other)):
        hand.decide([(f"{step}-{n}", n / 90) for n in range(30)])
        assert hand.decider.replica.is_own  # its draws are those of the others
    one.close()
    other.close()
    monkeypatch.undo()
    with opened(address) as store:
        assert erasure.erase_cases(store, [name for name, _ in cases]) == 60
        assert audit_store(store)[0].problems == []


def test_a_seal_cannot_be_guessed():
    """The same person has another seal in every row, and a row is checked without its salt."""
    rows = [{"case_id": "a", "at": 1.0, "seal": bytes([salt]) * 16} for salt in (1, 2)]
    assert len({seal_of(row) for row in rows}) == 2
    erased = {"case_id": "other", "at": 1, "seal": seal_of(rows[0])}
    assert link(b"", erased) == link(b"", rows[0])


# --- keys with an end ----------------------------------------------------------------------------


def test_a_key_with_an_end_stops_working(address, monkeypatch):
    """Without anybody revoking it, and without a restart."""
    from shortlist.service import keys

    new_queue(address)
    with opened(address) as store:
        lasting, ending = make_key(store, "read"), make_key(store, "read", days=2)
        ring = KeyRing(store, required=True)
        ring.refresh()
        for key in (lasting, ending):
            assert ring.find(key).role == "read"
        later = time.time() + 2 * 86_400 + 1
        monkeypatch.setattr(keys.time, "time", lambda: later)
        assert ring.find(lasting).role == "read"
        assert ring.find(ending) is None


# --- backups, and the commands -------------------------------------------------------------------


def back_up(address, place, server):
    """Copy a database while a service uses it, and return where the copy was restored."""
    if server is None:
        links = (contextlib.closing(sqlite3.connect(each)) for each in (address, place))
        with next(links) as source, next(links) as target:
            source.backup(target)
        return str(place)
    restored = server.new_database(f"restored{next(_numbers)}")
    subprocess.run([server.bin / "pg_dump", "-Fc", "-f", place, address], check=True)
    subprocess.run([server.bin / "pg_restore", "-d", restored, place], check=True)
    return restored


def test_a_restored_backup_gives_no_flag_twice(address, model_file, request, tmp_path):
    """Nobody knows the flags that came after the backup: none are given until the next period."""
    is_file = not address.startswith("postgresql")
    server = None if is_file else request.getfixturevalue("postgres")
    url = "/v1/queues/default/decisions"
    with serving(address, model_file) as client:
        client.post(url, json=[case(n, 10.0 * n) for n in range(30)])
        with opened(address, only_read=True) as store:
            early = read_head(store)
        restored = back_up(address, tmp_path / "backup", server)
        client.post(url, json=[case(f"b{n}", 900.0 + n) for n in range(30)])
        with opened(address, only_read=True) as store:
            late = read_head(store)
            [(given,)] = store.query("SELECT count(slot) FROM log")
    helpers._STARTS[restored] = helpers._STARTS[address]
    with serving(restored, model_file, made={"restored": True}) as client:
        told = client.post(url, json=[case(f"c{n}", 950.0 + n) for n in range(30)]).json()
        status = client.get("/v1/queues/default/status").json()
    assert given == 5
    assert not any(each["flag"] for each in told)
    assert [(each["from"], each["count"]) for each in status["scheduled"]] == [(status["ends"], 5)]
    with opened(restored, only_read=True) as store:
        assert audit_store(store, heads=[early])[0].problems == []
        assert audit_store(store, heads=[late])[0].problems != []


def test_a_restored_period_stays_closed_for_what_was_announced(address, model_file):
    """A capacity that was to begin later in the period gives no flags in it."""
    queue = "/v1/queues/default"
    with serving(address, model_file) as client:
        begins = client.get(f"{queue}/status").json()["now"] + 1e4
        client.put(f"{queue}/capacity", json={"count": 8, "from": begins})
    with serving(address, model_file, made={"restored": True}) as client:
        status = client.get(f"{queue}/status").json()
    scheduled = [(each["from"], each["count"]) for each in status["scheduled"]]
    assert scheduled == [(begins, 0), (status["ends"], 8)]


def test_heads_audits_and_erasure_by_command(address, model_file, tmp_path):
    """What an operator types, on both databases."""
    with serving(address, model_file) as client:
        client.post("/v1/queues/default/decisions", json=[case(n, 30.0 * n) for n in range(30)])

    def run(*words):
        return CliRunner().invoke(app, ["serve", *map(str, words)])

    secret, heads = tmp_path / "key", tmp_path / "heads"
    secret.write_bytes(KEY)
    heads.write_text(run("head", address, "--key", secret).stdout)
    kept = ("audit", address, heads, "--key", secret)
    assert run(*kept).exit_code == 0
    assert "Erased cases: 1." in run("erase", address, 29).stderr
    assert run("erase", address).exit_code == 2
    run("keys", "read", "--days", 9, "--database", address)
    [made] = json.loads(run("keys", "--database", address, "--json").stdout)["keys"]
    assert (made["role"], made["state"]) == ("read", "valid")
    assert "erased cases: 1." in run(*kept).stdout
    for content in (
        "", "\n", "5\n", "{}\n", "no JSON", heads.read_text() + "{}", "[" * 100_000,
        '{"queues": [], "notes": [0, ""]}', '{"queues": {"default": 5}, "notes": [0, ""]}',
        '{"queues": {"default": ["5", ""]}, "notes": [0, ""]}', '{"queues": {}, "notes": [0]}',
    ):  # fmt: skip
        (tmp_path / "odd").write_text(content)  # with nothing to compare, nothing is proven
        odd = run("audit", address, tmp_path / "odd")
        assert (odd.exit_code, odd.stdout) == (2, "")
        assert "lines that shortlist serve head has printed" in odd.stderr
    assert "is for HEADS" in " ".join(run("audit", address, "--key", secret).output.split())
    (tmp_path / "empty").touch()
    assert "is empty" in run("head", address, "--key", tmp_path / "empty").stderr
    with by_hand(address) as store:
        store.query("UPDATE api_key SET ends = NULL")
    assert run(*kept).exit_code == 2


def test_old_cases_are_erased_by_command(address, model_file, tmp_path, monkeypatch):
    """Those that were decided so many days ago, flagged or not; later ones stay."""
    with serving(address, model_file) as client:
        client.post(
            "/v1/queues/default/decisions", json=[case(f"old {n}", 30.0 * n) for n in range(20)]
        )
        [middle] = {
            each["at"] for each in client.get("/v1/queues/default/log").json()["entries"][3:]
        }
        client.post(
            "/v1/queues/default/decisions", json=[case(f"new {n}", 30.0 * n) for n in range(20)]
        )

    def run(*words):
        return CliRunner().invoke(app, ["serve", *map(str, words)])

    (tmp_path / "heads").write_text(run("head", address).stdout)
    later = middle + 0.0001 + 9 * 86_400
    monkeypatch.setattr("shortlist.cli._serve.time", SimpleNamespace(time=lambda: later))
    assert "Erased cases: 0." in run("erase", address, "--days", 10).stderr
    assert "Erased cases: 20." in run("erase", address, "--days", 9).stderr
    assert "Erased cases: 0." in run("erase", address, "--days", 9).stderr
    with opened(address, only_read=True) as store:
        entries = [each for each in store.entries(1, 0, most=100) if each.kind == DECISION]
    assert [each.case_id.partition(" ")[0] for each in entries] == ["erased"] * 20 + ["new"] * 20
    assert all(each.body is None and each.digest is None for each in entries[:20])
    assert sum(each.slot is not None for each in entries[:20]) > 0
    audited = run("audit", address, tmp_path / "heads")
    assert (audited.exit_code, "erased cases: 20." in audited.stdout) == (0, True)


def test_a_database_from_before_an_index_gets_it(address, model_file):
    """With the next start, without which what is known of an entity would be searched for."""
    made_queues(address, model_file)
    for _ in range(2):
        with opened(address) as store:
            store.query("DROP INDEX log_entity_case")  # which fails if it is not there


def test_a_running_service_can_be_audited(address, model_file):
    """The audit sees one moment of the database, while others go on deciding."""
    with serving(address, model_file) as client:
        client.post("/v1/queues/default/decisions", json=case("first"))
        with opened(address, only_read=True) as store:
            rows = store.queues()
            client.post("/v1/queues/default/decisions", json=[case(f"b{n}") for n in range(20)])
            assert store.queues() == rows
            assert audit_store(store)[0].problems == []
        with opened(address, only_read=True) as store:
            assert audit_store(store)[0].n_decisions == 21
