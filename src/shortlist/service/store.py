"""What both databases have in common: the rows, the statements, and what can go wrong.

A store has one connection and belongs to one thread. Every statement is written once, with question
marks for its parameters; a database translates what differs.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import starmap
from typing import Any, NamedTuple

from ..online.decisions import WAITS
from ._chain import hash_row, link, new_salt

#: The kinds of entries in the log.
DECISION, CAPACITY, MODEL, BUILD, OBSERVATION, CLOCK, SHADOW, ALLOW, PULLED = range(9)
#: Who has made a change on the command line.
COMMAND = "command"
#: What a note says of a shared total that was set, and of a new alarm.
TOTAL_SET, ALARM = "total", "alarm"
_VERSION = 8


class StoreError(Exception):
    """The database is unreachable, or the outcome of a commit is unknown: rewind and repeat."""


class PromiseError(Exception):
    """The database has refused what would have broken a promise; nothing was written."""


class Entry(NamedTuple):
    """One entry of the log; events leave the fields of a decision out."""

    queue: int
    seq: int
    kind: int
    build: int
    at: float
    period: int
    case_id: str | None = None
    digest: bytes | None = None
    score: float | None = None
    threshold: float | None = None
    code: int | None = None
    slot: int | None = None
    model: int | None = None
    key_id: str | None = None
    body: str | None = None
    effort: float | None = None
    work: int | None = None
    spent: int | None = None
    inclusion: float | None = None
    total_slot: int | None = None
    shadow: float | None = None  # the score by a model that decides nothing
    entity: str | None = None
    joined: int | None = None  # the flagged entry whose case it joined, or where it began to wait
    seal: bytes | None = None
    hash: bytes = b""


class QueueRow(NamedTuple):
    """The row of a queue, which is locked while a group is decided."""

    id: int
    name: str
    settings: str
    total: str | None
    capacity: int
    last_seq: int
    high_water: float
    period: int | None = None
    used: int = 0
    seen: int = 0
    spent: int = 0
    head: bytes = b""

    def first_head(self) -> bytes:
        """Return the hash with which the chain of the queue begins: what cannot change."""
        return link(b"", dict(zip(self._fields, self[:4], strict=False)))


class Group(NamedTuple):
    """What one transaction writes: the queue's new row, entries, and what is kept for speed."""

    row: QueueRow
    entries: list[Entry]
    snapshot: tuple[int, str] | None = None
    ended: dict[int, tuple[int, int, int, int]] = {}  # noqa: RUF012 (numbers; never changed)


#: The columns of the log, for statements.
ENTRY_COLUMNS = ", ".join(Entry._fields)
_ROW_COLUMNS = ", ".join(QueueRow._fields)
# Whoever follows the log needs no digests, and not the columns of flagged cases.
_FOLLOWED = ENTRY_COLUMNS.replace("digest", "NULL").replace(
    "body", "CASE WHEN slot IS NULL AND joined IS NULL THEN body END"
)
#: The tables that notes vouch for: their key, and everything that a hash of a row covers.
VOUCHED = {
    "build": (1, "id, name"),
    "model": (1, "id, sha256, scorer, added, calibration"),
    "total": (1, "name, capacity"),
    "api_key": (1, "id, hash, role, queues, made, ends, revoked, person"),
    "reviewer": (1, "name, minutes, segments, queues, absent_until"),
    "claim": (2, "queue, seq, reviewer, expires, assigned"),
    "declined": (3, "queue, seq, reviewer"),
    "outcome": (2, "queue, number, rare, reviewer, at, case_id, note, idempotency, seal"),
    "log": (2, "queue, seq, case_id, entity, digest, body, seal"),  # what is left of erased cases
}
#: What is read when a queue has been locked: its row, what is new in its log, and its total.
READ_ROW = f"SELECT {_ROW_COLUMNS} FROM queue WHERE id = ?"
_COUNTED = ("capacity", "last_seq", "high_water", "period", "used", "seen", "spent", "head")
_UPDATE_ROW = f"UPDATE queue SET {', '.join(f'{name} = ?' for name in _COUNTED)} WHERE id = ?"
_FOLLOW = f"SELECT {_FOLLOWED} FROM log WHERE queue = ? AND seq > ? ORDER BY seq"
READ_TOTAL = "SELECT capacity FROM total WHERE name = (SELECT total FROM queue WHERE id = ?)"


class Store:
    """A connection to a database; the subclasses say what differs."""

    dialect: str
    #: The module that connects to the database, with its errors.
    driver: Any
    #: SQL: whether the id of a case is in a list, given as JSON.
    is_listed: str
    #: SQL: the text of a column of a flagged case.
    field: str
    #: SQL: the present moment by one clock for all machines.
    now: str
    #: SQL: the names of all triggers and indexes, and the text of what each does.
    locks: str
    read_row, read_total = READ_ROW, READ_TOTAL

    def __init__(self) -> None:
        self.link: Any = None
        self._writing = False
        self._moment: float | None = None
        # In order, SQLite would read the whole log.
        self._known = f"SELECT {ENTRY_COLUMNS} FROM log WHERE queue = ? AND {self.is_listed}"
        self._looked_up: tuple[set[str], list[Entry]] = set(), []  # while a queue is locked
        self.thread = threading.RLock()  # readers of one process share a connection

    # --- what a database provides --------------------------------------------------------------

    def connect(self, *, create: bool = False) -> None:
        """Open the connection, and refuse a database that may lose what it has committed.

        Only with `create` may a file be made: a service whose file is gone must not start anew.
        """
        raise NotImplementedError

    def connect_to_read(self) -> None:
        """Open a connection that can change nothing, also to a copy that is read-only."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection; what was not committed is undone."""
        with self.thread:
            if self.link is not None:
                with contextlib.suppress(self.driver.Error):
                    self.link.close()
            self.link, self._writing = None, False

    def _insert_entries(self, entries: list[Entry]) -> None:
        raise NotImplementedError

    def _start(self, *, alone: bool) -> None:
        """Begin a transaction; alone, unless the row of a queue will be the lock."""
        raise NotImplementedError

    def _give_back(self) -> None:
        """Let another program have its turn, where the database itself does not see to that."""

    def _pipeline(self) -> contextlib.AbstractContextManager[Any]:
        """Let statements go out together, if the database can do that."""
        return contextlib.nullcontext()

    def settle(self) -> None:
        """Wait until everything that has been read would survive a crash."""

    # --- what follows from that ----------------------------------------------------------------

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return rows, outside of a transaction or within the one that is open."""
        with self.thread, self._translated():
            cursor = self._send(statement, values)
            rows: list[Any] = cursor.fetchall() if cursor.description else []
            return rows

    def _send(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        return self._open_link().execute(statement, values)

    def _open_link(self) -> Any:
        if self.link is None:
            raise StoreError("The database is not connected.")
        return self.link

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the errors of the database into ours."""
        try:
            yield
        except self.driver.IntegrityError as error:
            raise PromiseError(str(error)) from error
        except self.driver.Error as error:
            raise StoreError(str(error).strip() or type(error).__name__) from error

    def begin(
        self, queue: int, after: int, cases: Sequence[str] = ()
    ) -> tuple[QueueRow, list[Entry], int | None]:
        """Lock a queue; return its row, the log after an entry, and the shared total if any.

        Cases that will be looked up are best named at once: that saves a round trip.
        """
        with self._translated():
            with self._pipeline():
                self._start(alone=False)
                row = self._send(self.read_row, (queue,))
                entries = self._send(_FOLLOW, (queue, after))
                total = self._send(self.read_total, (queue,))
                known = self._send(self._known, (queue, json.dumps(cases))) if cases else ()
            self._looked_up = set(cases), sorted(starmap(Entry, known))
            found, shared, width = row.fetchone(), total.fetchone(), len(QueueRow._fields)
            self._moment = found[width] if len(found) > width else None
            log = list(starmap(Entry, entries.fetchall()))
            return QueueRow(*found[:width]), log, None if shared is None else int(shared[0])

    def follow(self, queue: int, after: int) -> list[Entry]:
        """Return the log after an entry, as whoever follows it needs it; without a lock."""
        return list(starmap(Entry, self.query(_FOLLOW, queue, after)))

    def clock(self) -> float | None:
        """Return the moment by the database's own clock when the lock was given, if it has one."""
        return self._moment

    def insert(self, group: Group) -> None:
        """Write a group within the transaction that is open."""
        with self._translated():
            row = group.row
            self._send(_UPDATE_ROW, (*(getattr(row, name) for name in _COUNTED), row.id))
            for period, (capacity, used, seen, spent) in group.ended.items():
                numbers = {"capacity": capacity, "used": used, "seen": seen, "spent": spent}
                key = {"queue": row.id, "period": period}
                self.put("ended", {**key, **numbers}, tuple(key))
            if group.snapshot is not None:
                build, state = group.snapshot
                saved = {"queue": row.id, "build": build, "seq": row.last_seq, "state": state}
                self.put("snapshot", saved, ("queue",))
            self._insert_entries(group.entries)

    def commit(self, group: Group) -> None:
        """Write a group and commit; an error leaves open whether that has happened."""
        self.insert(group)
        self.finish()

    def _check_commit(self, cursor: Any) -> None:
        """Raise an error if a server has answered a commit by a rollback."""
        answer = getattr(cursor, "statusmessage", "COMMIT")
        if answer != "COMMIT":
            raise StoreError(f"The database answered {answer} to a commit.")

    def finish(self) -> None:
        """Commit the transaction that is open, and give the lock back."""
        try:
            with self._translated():
                self._check_commit(self._send("COMMIT"))
        finally:
            self._give_back()

    def rollback(self) -> None:
        """Undo what was not committed, and give the lock back."""
        with contextlib.suppress(StoreError):
            self.query("ROLLBACK")
        self._give_back()

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock for changes other than decisions; commit at the end."""
        with self.thread:
            if self._writing:  # as part of a larger change
                yield
                return
            with self._translated():
                self._start(alone=True)
            self._writing = True
            try:
                yield
                self.finish()
            except BaseException:
                self.rollback()
                raise
            finally:
                self._writing = False

    def make_tables(self) -> None:
        """Make the tables, unless they exist; one program at a time."""
        with self.write():
            self.query("CREATE TABLE IF NOT EXISTS version (number BIGINT PRIMARY KEY)")
            if is_new := not self.query("SELECT number FROM version"):
                self.query("INSERT INTO version VALUES (?)", _VERSION)
            self.check_tables()
            for statement in _schema(self.dialect):
                if is_new or "CREATE INDEX IF" in statement:  # one may be newer than the tables
                    self.query(statement)

    def check_tables(self) -> None:
        """Raise an error unless this release made the tables."""
        try:
            found = self.query("SELECT number FROM version")
        except StoreError as error:
            raise StoreError(f"no service or stream has made its tables ({error}).") from error
        if found != [(_VERSION,)]:
            had = found[0][0] if found else "no number"
            raise ValueError(
                f"The database has version {had}, but this release of shortlist knows version "
                f"{_VERSION}. Use the release that made it, or another database."
            )

    def missing_locks(self) -> list[str]:
        """Return what the database lacks, or has changed, that keeps it from breaking a promise."""
        made = "\n".join(_schema(self.dialect)).replace("''", "'")
        locks = re.findall(r"^CREATE (?:UNIQUE INDEX|TRIGGER) (\w+)", made, re.MULTILINE)
        return sorted(set(locks) - {name for name, text in self.query(self.locks) if text in made})

    def queues(self) -> list[QueueRow]:
        """Return all queues in the order in which they were made."""
        return [
            QueueRow(*row) for row in self.query(f"SELECT {_ROW_COLUMNS} FROM queue ORDER BY id")
        ]

    def entries(self, queue: int, after: int, *, most: int) -> list[Entry]:
        """Return entries of the log in order."""
        return self.entries_where("queue = ? AND seq > ? ORDER BY seq LIMIT ?", queue, after, most)

    def find_cases(self, queue: int, cases: list[str]) -> list[Entry]:
        """Return the decisions about cases of a locked queue, the latest of each one last."""
        asked, known = self._looked_up
        if asked.issuperset(cases):
            return known
        return sorted(starmap(Entry, self.query(self._known, queue, json.dumps(cases))))

    def known_entities(self, queue: int, entities: str, at: float, oldest: float) -> list[Any]:
        """Return what there is about entities, in its order: allowances, slots, cases that waited.

        The entity, the entry with which its case began, the moment and the slot; then a score, or
        what an allowance says. Slots after a moment were given by a wrong clock, and do not count.
        """
        found = (
            f"SELECT seq, entity, coalesce(joined, seq), at, slot, score, CASE WHEN kind = {ALLOW} "
            f"THEN body END FROM log WHERE queue = ? AND (slot > 0 OR kind = {ALLOW} OR code = "
            f"{WAITS}) AND {self.is_listed.replace('case_id', 'entity')} AND"
        )
        rows = self.query(
            f"{found} kind = {ALLOW} AND at <= ? UNION ALL {found} kind IN ({DECISION}, {PULLED}) "
            "AND at > ? AND (slot IS NULL OR at <= ?)",
            *(queue, entities, at, queue, entities, oldest, at),
        )
        return [row[1:] for row in sorted(rows)]  # in order, SQLite would read the whole log

    def entries_where(self, where: str, *values: Any) -> list[Entry]:
        """Return the entries of the log for which a condition holds."""
        rows = self.query(f"SELECT {ENTRY_COLUMNS} FROM log WHERE {where}", *values)
        return list(starmap(Entry, rows))

    def find_build(self, name: str) -> int:
        """Return the number of a version of the program, which it gets when it is first seen."""
        return self.insert_next("build", "id", {"name": name}, unless=("name",))

    def insert_next(
        self,
        table: str,
        number: str,
        row: dict[str, Any],
        *,
        unless: tuple[str, ...] = (),
        scope: tuple[str, ...] = (),
    ) -> int:
        """Insert a row under the next free number, unless it exists; return the number."""
        with self.write():
            there = unless and self._largest(table, number, row, unless)
            if there:
                return there
            new = self._largest(table, number, row, scope) + 1
            salt = {"seal": new_salt()} if table == "outcome" else {}
            self.put(table, {number: new, **row, **salt})
            if table in VOUCHED and not scope:
                self.note(time.time(), COMMAND, f"{table} added", None, {}, vouch=[(table, new)])
            return new

    def _largest(self, table: str, number: str, row: dict[str, Any], names: tuple[str, ...]) -> int:
        """Return the largest number of the rows that share some values with a row, or 0."""
        where = " AND ".join([f"{name} = ?" for name in names] or ["TRUE"])
        [(largest,)] = self.query(
            f"SELECT coalesce(max({number}), 0) FROM {table} WHERE {where}",
            *(row[name] for name in names),
        )
        return int(largest)

    def put(self, table: str, row: dict[str, Any], key: tuple[str, ...] = ()) -> None:
        """Insert a row, in the place of the one with the same key if one is given."""
        text = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        if key:
            new = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
            text += f" ON CONFLICT ({', '.join(key)}) DO "
            text += f"UPDATE SET {new}" if new else "NOTHING"
        with self._translated():
            self._send(text, tuple(row.values()))

    def note(
        self,
        at: float,
        key_id: str,
        action: str,
        queue: str | None,
        detail: dict[str, Any],
        *,
        vouch: Sequence[tuple[Any, ...]] = (),
    ) -> None:
        """Record a change that is not in the log, with the hashes of rows; null for one gone."""
        row: dict[str, Any] = {"at": at, "key_id": key_id, "action": action, "queue": queue}
        with self.write():
            rows: dict[str, dict[str, str | None]] = {}
            for table, *key in vouch:
                gone = {"/".join(map(str, key)): None}
                rows.setdefault(table, {}).update(self.hashes(table, *key) or gone)
            last = self.query("SELECT hash FROM note ORDER BY number DESC LIMIT 1")
            row["detail"] = json.dumps({**detail, **rows})
            row["hash"] = link(bytes(last[0][0]) if last else b"", row)
            self.insert_next("note", "number", row)

    def hashes(self, table: str, *key: Any) -> dict[str, str]:
        """Return the hash of each row of a table that notes vouch for, or of one row."""
        width, names = VOUCHED[table]
        columns = names.split(", ")
        where = [f"{name} = ?" for name in columns[: len(key)]]
        where.append("length(seal) = 32" if table == "log" else "TRUE")
        rows = self.query(f"SELECT {names} FROM {table} WHERE {' AND '.join(where)}", *key)
        return {
            "/".join(map(str, row[:width])): hash_row(dict(zip(columns, row, strict=True))).hex()
            for row in rows
        }

    def raise_alarm(self, queue: str, kind: str, message: str, at: float) -> None:
        """Show an alarm until it is cleared; a note says that it was raised, without any ids."""
        row = {"queue": queue, "kind": kind, "message": message, "at": at}
        known = "SELECT kind FROM alarm WHERE queue = ? AND kind = ?"
        with self.write():
            if not self.query(known, queue, kind):
                said = {"kind": kind, "message": "See the alarms of the queue."}
                self.note(at, "", ALARM, queue, said)
            self.put("alarm", row, ("queue", "kind"))

    def clear_alarm(self, queue: str, kind: str) -> None:
        """Take an alarm back whose cause is gone."""
        with self.write():
            self.query("DELETE FROM alarm WHERE queue = ? AND kind = ?", queue, kind)


def _schema(dialect: str) -> list[str]:
    """Return the statements that make the tables of a database."""
    text = resources.files("shortlist.service").joinpath("schema.sql").read_text()
    blob = "BYTEA" if dialect == "postgresql" else "BLOB"
    return text.replace(f"-- {dialect}: ", "").replace(" BLOB", f" {blob}").split(";\n")
