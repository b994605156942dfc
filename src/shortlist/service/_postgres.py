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
from collections.abc import Iterator
from typing import Any

import msgspec

from .._core.extras import load_extra
from .store import (
    ENTRY_COLUMNS,
    FOLLOW,
    READ_ROW,
    READ_TOTAL,
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
    **dict.fromkeys(("queue", "build", "model"), "int"),
    **dict.fromkeys(("kind", "code"), "smallint"),
    **dict.fromkeys(("seq", "period", "slot", "work", "spent"), "bigint"),
    **dict.fromkeys(("at", "score", "threshold", "effort", "inclusion"), "float8"),
    "digest": "bytea",
}
_RECORD = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in Entry._fields)
# One text with all entries is faster than a parameter for each value.
_INSERT = (
    f"INSERT INTO log ({ENTRY_COLUMNS}) SELECT {ENTRY_COLUMNS} FROM json_to_recordset(?::json) "
    f"AS entry ({_RECORD})"
)
_Plain = msgspec.defstruct("_Plain", Entry._fields)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_MARK = "SELECT pg_logical_emit_message(true, 'shortlist', '')"  # a commit of nothing never waits
_LOCK = READ_ROW.replace(
    " FROM queue",
    ", extract(epoch FROM clock_timestamp())::float8, "
    "set_config('synchronous_commit', 'off', true) FROM queue",
)
_LOCK += " FOR UPDATE"
_OTHER_WRITERS = 0x53686F72  # the number of an advisory lock
# A program that stands still while it holds the lock loses its session, and others go on.
_SESSION = (
    "SET idle_in_transaction_session_timeout = 1000; SET lock_timeout = 4000; "
    "SET statement_timeout = 5000; SET default_transaction_isolation = 'read committed'"
)


def _plain(entry: Entry) -> Any:
    plain: Any = _Plain(*entry)
    if entry.digest is not None:
        plain.digest = "\\x" + entry.digest.hex()
    if entry.threshold is not None and math.isinf(entry.threshold):
        plain.threshold = "Infinity" if entry.threshold > 0 else "-Infinity"
    return plain


def _check_commits(*done: Any) -> None:
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
    is_listed = "case_id = ANY (ARRAY (SELECT json_array_elements_text(?::json)))"
    now = "extract(epoch FROM clock_timestamp())"

    def __init__(self, address: str) -> None:
        super().__init__()
        self._psycopg = load_extra("psycopg", needed_for="A PostgreSQL database")
        self._address = address
        self._is_cut = False
        self._now: float | None = None

    def connect(self, *, create: bool = False) -> None:
        """Connect, and refuse a database that may lose commits."""
        self.close()
        with self._translated():
            self._link_to(_SESSION)
            for name in ("synchronous_commit", "fsync"):
                if self.link.execute(f"SHOW {name}").fetchone()[0] == "off":
                    self.close()
                    raise ValueError(
                        f"This database may lose decisions that were answered: {name} is off. "
                        "Turn it on for the database and the user, and start again."
                    )

    def connect_to_read(self) -> None:
        """Connect to a database, or to a copy of one; the server refuses every change."""
        with self._translated():
            self._link_to("SET default_transaction_read_only = on")

    def _link_to(self, session: str) -> None:
        self.link = self._psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=3,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=2,
        )
        self.link.execute(session)

    def close(self) -> None:
        """Close the connection; the server undoes what was not committed."""
        with self.thread:
            if self.link is not None:
                with contextlib.suppress(Exception):
                    self.link.close()
            self.link, self._writing, self._is_cut = None, False, False

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return rows."""
        with self.thread, self._translated():
            cursor = self._send(statement, values)
            rows: list[Any] = cursor.fetchall() if cursor.description else []
            return rows

    def _send(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if self.link is None:
            raise StoreError("The database is not connected.")
        text = statement.replace("%", "%%").replace("?", "%s") if values else statement
        return self.link.execute(text, values or None)

    def lock(self) -> None:
        """Begin a transaction for changes other than decisions, one at a time."""
        self.query(_BEGIN)
        self.query(f"SELECT pg_advisory_xact_lock({_OTHER_WRITERS})")

    def begin(self, queue: int, after: int) -> tuple[QueueRow, list[Entry], Any]:
        """Lock the queue's row; what follows is read by statements that begin after that."""
        with self._translated():
            with self._pipeline():
                self._send(_BEGIN)
                row = self._send(_LOCK, (queue,))
                entries = self._send(FOLLOW, (queue, after))
            *found, self._now, _ = row.fetchone()
            locked = QueueRow(*found)
            total = None
            if locked.total is not None:
                [total] = self.query(f"{READ_TOTAL} FOR UPDATE", locked.total)
            return locked, list(map(Entry._make, entries.fetchall())), total

    def clock(self) -> float | None:
        """Return when the server gave the lock."""
        return self._now

    def insert(self, group: Group) -> None:
        """Write a group."""
        for statement, values in group_statements(group):
            self._send(statement, values)
        entries = [_plain(entry) for entry in group.entries]
        self._send(_INSERT, (msgspec.json.encode(entries).decode(),))

    def commit(self, group: Group) -> None:
        """Write a group, commit, and wait for the disk, in one round trip."""
        with self._translated():
            with self._pipeline():
                self.insert(group)
                self._is_cut = True
                done = [self._send("COMMIT"), self._mark()]
            self._is_cut = False
            _check_commits(*done)

    def settle(self) -> None:
        """Wait until everything that has been read is on the disk."""
        with self.thread, self._translated():
            with self._pipeline():
                done = self._mark()
            _check_commits(done)

    def _mark(self) -> Any:
        self._send(_BEGIN)
        self._send(_MARK)
        return self._send("COMMIT")

    def _pipeline(self) -> Any:
        if self.link is None:
            raise StoreError("The database is not connected.")
        return self.link.pipeline()

    def finish(self) -> None:
        """Commit."""
        with self._translated():
            _check_commits(self._send("COMMIT"))

    def rollback(self) -> None:
        """Undo; a connection that cannot do that is closed."""
        try:
            if self._is_cut:
                self.connect()  # a pipeline that was cut short has lost its prepared statements
            else:
                self._send("ROLLBACK")
        except Exception:
            self.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the errors of the database into ours."""
        try:
            yield
        except self._psycopg.IntegrityError as error:
            raise PromiseError(str(error)) from error
        except self._psycopg.Error as error:
            raise StoreError(str(error).strip() or type(error).__name__) from error
