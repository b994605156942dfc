"""PostgreSQL, for many machines: a queue's row is the lock, and each step is one round trip.

A commit that waits for the disk would keep the lock meanwhile, and queues would be as slow as one
disk sync after the other. Therefore a group is committed without waiting, which gives the lock to
the next one, and *then* its writer waits until the disk has it: the commit of a second, empty
transaction puts everything that was committed before it on the disk, on standbys too if they are
synchronous. Nothing is answered before that. A crash in between loses groups that nobody was told
of, always the latest ones.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Any

import msgspec

from .._core.extras import load_extra
from .store import (
    ENTRY_COLUMNS,
    FOLLOWED_COLUMNS,
    ROW_COLUMNS,
    Entry,
    Group,
    PromiseError,
    QueueRow,
    Store,
    StoreError,
    group_statements,
)

__all__ = ["PostgresStore"]

_TYPES = {
    "queue": "int",
    "kind": "smallint",
    "build": "int",
    "seq": "bigint",
    "period": "bigint",
    "at": "float8",
    "digest": "bytea",
    "score": "float8",
    "threshold": "float8",
    "code": "smallint",
    "slot": "bigint",
    "model": "int",
    "effort": "float8",
    "work": "bigint",
    "spent": "bigint",
    "inclusion": "float8",
}
_RECORD = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in Entry._fields)
_INSERT = (
    f"INSERT INTO log ({ENTRY_COLUMNS}) SELECT {ENTRY_COLUMNS} FROM json_to_recordset(%s::json) "
    f"AS entry ({_RECORD})"
)
_Plain = msgspec.defstruct("_Plain", Entry._fields)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_MARK = "SELECT pg_logical_emit_message(true, 'shortlist', '')"  # a commit of nothing never waits
_LOCK = (
    f"SELECT {ROW_COLUMNS}, extract(epoch FROM clock_timestamp())::float8, "
    "set_config('synchronous_commit', 'off', true) FROM queue WHERE id = %s FOR UPDATE"
)
_FOLLOW = f"SELECT {FOLLOWED_COLUMNS} FROM log WHERE queue = %s AND seq > %s ORDER BY seq"
_TOTAL = "SELECT capacity, period, used FROM total WHERE name = %s FOR UPDATE"
_KNOWN = f"SELECT {ENTRY_COLUMNS} FROM log WHERE queue = %s AND case_id = ANY(%s)"
_OTHER_WRITERS = 0x53686F72  # the number of an advisory lock
# A program that stands still while it holds the lock loses its session, and others go on.
_SESSION = (
    "SET idle_in_transaction_session_timeout = 1000; SET lock_timeout = 4000; "
    "SET statement_timeout = 5000; SET default_transaction_isolation = 'read committed'"
)


def _as_json(entries: list[Entry]) -> str:
    """Return entries as one text, which is faster than a parameter for each value."""
    return msgspec.json.encode([_plain(entry) for entry in entries]).decode()


def _plain(entry: Entry) -> Any:
    plain: Any = _Plain(*entry)
    if entry.digest is not None:
        plain.digest = "\\x" + entry.digest.hex()
    if entry.threshold is not None and math.isinf(entry.threshold):
        plain.threshold = "Infinity" if entry.threshold > 0 else "-Infinity"
    return plain


def _check_commits(done: list[Any]) -> None:
    for each in done:
        if each.statusmessage != "COMMIT":
            raise StoreError(f"The database answered {each.statusmessage} to a commit.")


class PostgresStore(Store):
    """A connection to PostgreSQL.

    Parameters
    ----------
    address : str
        ``postgresql://user:password@host/database``.
    """

    dialect = "postgresql"
    settles_at_once = False

    def __init__(self, address: str) -> None:
        self._psycopg = load_extra("psycopg", needed_for="A PostgreSQL database")
        self._address = address
        self._link: Any = None
        self._depth = 0
        self._is_cut = False
        self._now: float | None = None
        self._thread = threading.RLock()

    def connect(self, *, create: bool = False) -> None:
        """Connect, and refuse a database that may lose commits."""
        self.close()
        with self._translated():
            self._link = self._psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=3,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=2,
            )
            self._link.execute(_SESSION)
            for name in ("synchronous_commit", "fsync"):
                if self._link.execute(f"SHOW {name}").fetchone()[0] == "off":
                    self.close()
                    raise ValueError(
                        f"This database may lose decisions that were answered: {name} is off. "
                        "Turn it on for the database and the user, and start again."
                    )

    def close(self) -> None:
        """Close the connection; the server undoes what was not committed."""
        if self._link is not None:
            with contextlib.suppress(Exception):
                self._link.close()
        self._link, self._depth, self._is_cut = None, 0, False

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return rows."""
        with self._thread, self._translated():
            text = statement.replace("%", "%%").replace("?", "%s") if values else statement
            cursor = self._connection().execute(text, values or None)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock of all changes other than decisions, and commit at the end."""
        with self._thread:
            self._depth += 1
            try:
                if self._depth == 1:
                    self.query(_BEGIN)
                    self.query(f"SELECT pg_advisory_xact_lock({_OTHER_WRITERS})")
                yield
                if self._depth == 1:
                    self._commit()
            except BaseException:
                if self._depth == 1:
                    self.rollback()
                raise
            finally:
                self._depth = max(self._depth - 1, 0)

    def begin(self, queue: int, after: int) -> tuple[QueueRow, list[Entry], Any]:
        """Lock the queue's row; what follows is read by statements that begin after that."""
        link = self._connection()
        with self._translated():
            with link.pipeline():
                link.execute(_BEGIN)
                row = link.execute(_LOCK, (queue,))
                entries = link.execute(_FOLLOW, (queue, after))
            *found, self._now, _ = row.fetchone()
            locked = QueueRow(*found)
            total = None
            if locked.total is not None:
                total = link.execute(_TOTAL, (locked.total,)).fetchone()
            return locked, list(map(Entry._make, entries.fetchall())), total

    def clock(self) -> float | None:
        """Return when the server gave the lock."""
        return self._now

    def find_cases(self, queue: int, cases: list[str]) -> list[Entry]:
        """Return the decisions about cases that are known."""
        with self._translated():
            rows = self._connection().execute(_KNOWN, (queue, cases)).fetchall()
        return list(map(Entry._make, rows))

    def commit(self, group: Group) -> None:
        """Write a group, commit, and wait for the disk, in one round trip."""
        link = self._connection()
        with self._translated():
            with link.pipeline():
                for statement, values in group_statements(group):
                    link.execute(statement.replace("?", "%s"), values)
                link.execute(_INSERT, (_as_json(group.entries),))
                self._is_cut = True
                done = [link.execute("COMMIT"), self._mark()]
            self._is_cut = False
            _check_commits(done)

    def settle(self) -> None:
        """Wait until everything that has been read is on the disk."""
        with self._thread, self._translated():
            with self._connection().pipeline():
                done = self._mark()
            _check_commits([done])

    def _mark(self) -> Any:
        link = self._connection()
        link.execute(_BEGIN)
        link.execute(_MARK)
        return link.execute("COMMIT")

    def rollback(self) -> None:
        """Undo; a connection that cannot do that is closed."""
        try:
            if self._is_cut:
                self.connect()  # a pipeline that was cut short has lost its prepared statements
            else:
                self._connection().execute("ROLLBACK")
        except Exception:
            self.close()

    def _commit(self) -> None:
        _check_commits([self._connection().execute("COMMIT")])

    def _connection(self) -> Any:
        if self._link is None:
            raise StoreError("The database is not connected.")
        return self._link

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the errors of the database into ours."""
        try:
            yield
        except self._psycopg.IntegrityError as error:
            raise PromiseError(str(error)) from error
        except self._psycopg.Error as error:
            raise StoreError(str(error).strip() or type(error).__name__) from error
