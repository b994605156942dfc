"""PostgreSQL, for many machines: a queue's row is the lock, and each step is one round trip.

A commit that waits for the disk would keep the lock meanwhile, and queues would be as slow as one
disk sync after the other. Therefore a group is committed without waiting, which gives the lock to
the next one, and *then* its writer waits until the disk has it: the commit of a second, empty
transaction puts everything that was committed before it on the disk, on standbys too if they are
synchronous. Nothing is answered before that. A crash in between loses groups that nobody was told
of, always the latest ones.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from .._core.extras import load_extra
from .store import ENTRY_COLUMNS, READ_ROW, READ_TOTAL, Entry, Group, PromiseError, Store

# One text with all entries is faster than a parameter for each value.
_INSERT = (
    f"INSERT INTO log ({ENTRY_COLUMNS}) SELECT {ENTRY_COLUMNS} "
    "FROM json_populate_recordset(NULL::log, ?::json)"
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
    for name in ("digest", "seal", "hash"):
        if (value := getattr(entry, name)) is not None:
            setattr(plain, name, "\\x" + value.hex())
    if entry.threshold is not None and math.isinf(entry.threshold):
        plain.threshold = "Infinity" if entry.threshold > 0 else "-Infinity"
    return plain


class PostgresStore(Store):
    """A connection to PostgreSQL.

    Parameters
    ----------
    address : str
        ``postgresql://user:password@host/database``.
    """

    dialect = "postgresql"
    is_listed = "case_id = ANY (ARRAY (SELECT json_array_elements_text(?::json)))"
    field = "(log.body::json ->> ?::text)"
    locks = (
        "SELECT tgname::text, prosrc FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid "
        "WHERE tgenabled IN ('O', 'A') UNION SELECT indexname::text, '' FROM pg_indexes"
    )
    now = "extract(epoch FROM clock_timestamp())"

    def __init__(self, address: str) -> None:
        super().__init__()
        self.driver = load_extra("psycopg", needed_for="A PostgreSQL database")
        self.read_row, self.read_total = _LOCK, f"{READ_TOTAL} FOR UPDATE"
        self._address = address

    def connect(self, *, create: bool = False) -> None:
        """Connect, and refuse a database that may lose commits."""
        self.close()
        self._connect(_SESSION)
        for name in ("synchronous_commit", "fsync"):
            if self.query(f"SHOW {name}") == [("off",)]:
                self.close()
                raise ValueError(
                    f"This database may lose decisions that were answered: {name} is off. "
                    "Turn it on for the database and the user, and start again."
                )

    def connect_to_read(self) -> None:
        """Connect to a database, or to a copy of one; the server refuses every change."""
        self._connect("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _connect(self, session: str) -> None:
        with self._translated():
            self.link = self.driver.connect(
                self._address,
                autocommit=True,
                connect_timeout=3,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=2,
            )
            self.link.execute(session)

    def _send(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        text = statement.replace("%", "%%").replace("?", "%s") if values else statement
        # A plan that was made while the log was short would read all of it later on.
        kept = False if statement is self._known else None
        return self._open_link().execute(text, values or None, prepare=kept)

    def _pipeline(self) -> Any:
        return self._open_link().pipeline()

    def _start(self, *, alone: bool) -> None:
        self._send(_BEGIN)
        if alone:
            self._send(f"SELECT pg_advisory_xact_lock({_OTHER_WRITERS})")

    def _insert_entries(self, entries: list[Entry]) -> None:
        self._send(_INSERT, (msgspec.json.encode(list(map(_plain, entries))).decode(),))

    def commit(self, group: Group) -> None:
        """Write a group, commit, and wait for the disk, in one round trip."""
        try:
            with self._translated(), self._pipeline():
                self.insert(group)
                done = [self._send("COMMIT"), self._mark()]
        except PromiseError:
            self.connect()  # a pipeline that was cut short has lost its prepared statements
            raise
        for each in done:
            self._check_commit(each)

    def settle(self) -> None:
        """Wait until everything that has been read is on the disk."""
        with self.thread, self._translated():
            with self._pipeline():
                done = self._mark()
            self._check_commit(done)

    def _mark(self) -> Any:
        self._send(_BEGIN)
        self._send(_MARK)
        return self._send("COMMIT")
