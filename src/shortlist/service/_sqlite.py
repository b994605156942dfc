"""The embedded database: one file, many processes of one machine.

SQLite's own lock lets waiting programs sleep and look again, which starves some of them. Here they
wait in the kernel for a lock on a file (`flock`) before they begin a transaction. A second file is
the door to the first: who waits for the room holds the door, so that whoever leaves the room cannot
be the next to enter. The kernel gives both back when a process ends, however that happens.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

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

__all__ = ["SQLiteStore"]

# Ids of cases come in no order: each changes another page of their index, which SQLite writes as a
# whole. Small pages are therefore faster.
_SETTINGS = (
    "page_size = 1024",
    "journal_mode = WAL",
)
_MARKS = f"({', '.join('?' * len(Entry._fields))})"
# Statements that insert so many entries at once. Between two statements this thread has to ask
# Python for its lock again, and would wait for others while it holds that of the database.
_INSERTS = {
    n: f"INSERT INTO log ({ENTRY_COLUMNS}) VALUES {', '.join([_MARKS] * n)}"
    for n in (64, 32, 16, 8, 4, 2, 1)
}


class SQLiteStore(Store):
    """A connection to a SQLite file, with a log that is on disk before a commit returns.

    Parameters
    ----------
    path : Path
        The file; made if it does not exist.
    alone : bool, default=False
        Let no other process open the file; whoever tries gets an error.
    sync : bool, default=True
        Wait for the disk. Otherwise a power cut may lose what was committed.
    on_lock : callable, default=None
        Called with True when the lock was taken and with False when it is given back; a watchdog
        ends a process that holds it for too long.
    """

    dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        alone: bool = False,
        sync: bool = True,
        on_lock: Callable[[bool], None] | None = None,
    ) -> None:
        self.path, self._alone, self._sync = path, alone, sync
        self._on_lock = on_lock or (lambda held: None)
        self._link: sqlite3.Connection | None = None
        self._door = self._room = -1
        self._inode = 0
        self._depth = 0
        self._thread = threading.RLock()  # readers of one process share a connection

    def connect(self, *, create: bool = False) -> None:
        """Open the file; commits wait for the disk."""
        self.close()
        self._check_file(create)
        try:
            if not self._alone:
                self._door = os.open(f"{self.path}.door", os.O_RDWR | os.O_CREAT, 0o600)
                self._room = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            with self._locked():
                link = sqlite3.connect(
                    f"file:{quote(str(self.path))}?mode={'rwc' if create else 'rw'}",
                    uri=True,
                    isolation_level=None,
                    check_same_thread=False,
                    timeout=0.0 if self._alone else 5.0,
                )
                mode, sync = self._set(link)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {error}") from error
        if mode != "wal" or sync != (2 if self._sync else 0):
            raise ValueError(
                f"{self.path} cannot keep a log that survives a crash (journal {mode}, "
                f"synchronous {sync}). Put it on a local disk."
            )
        self._link, self._inode = link, os.stat(self.path).st_ino

    def _set(self, link: sqlite3.Connection) -> tuple[str, int]:
        """Set how the file is written; return what the database has made of it."""
        alone = ["locking_mode = EXCLUSIVE"] if self._alone else []
        # A short log is soon written over from its start, which is faster than making it longer.
        log = f"wal_autocheckpoint = {400 if self._alone else 4000}"
        sync = f"synchronous = {'FULL' if self._sync else 'OFF'}"
        for setting in (*alone, *_SETTINGS, log, sync):
            link.execute(f"PRAGMA {setting}")
        [(mode,)] = link.execute("PRAGMA journal_mode").fetchall()
        [(waits,)] = link.execute("PRAGMA synchronous").fetchall()
        return mode, waits

    def _check_file(self, create: bool) -> None:
        try:
            found = os.stat(self.path).st_ino
        except OSError as error:
            if not create:
                raise StoreError(f"{self.path} is gone: {error}") from error
            found = 0
        if self._inode not in (0, found):
            raise StoreError(f"{self.path} was replaced by another file.")

    def close(self) -> None:
        """Close the file, and give all locks back."""
        if self._link is not None:
            with contextlib.suppress(sqlite3.Error):
                self._link.close()
        for descriptor in (self._door, self._room):
            if descriptor >= 0:
                os.close(descriptor)
        self._link, self._door, self._room, self._depth = None, -1, -1, 0

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return rows."""
        with self._thread, _translated():
            return self._connection().execute(statement, values).fetchall()

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock, and commit at the end."""
        with self._thread:
            self._depth += 1
            try:
                if self._depth == 1:
                    self._begin()
                yield
                if self._depth == 1:
                    self._end("COMMIT")
            except BaseException:
                if self._depth == 1:
                    self.rollback()
                raise
            finally:
                self._depth = max(self._depth - 1, 0)

    def begin(self, queue: int, after: int) -> tuple[QueueRow, list[Entry], Any]:
        """Take the lock, then read what has been committed."""
        self._begin()
        row = self.query(f"SELECT {ROW_COLUMNS} FROM queue WHERE id = ?", queue)
        entries = self.query(
            f"SELECT {FOLLOWED_COLUMNS} FROM log WHERE queue = ? AND seq > ? ORDER BY seq",
            queue,
            after,
        )
        found = QueueRow(*row[0])
        total = None
        if found.total is not None:
            [total] = self.query(
                "SELECT capacity, period, used FROM total WHERE name = ?", found.total
            )
        return found, list(map(Entry._make, entries)), total

    def lock(self) -> None:
        """Begin a transaction without reading anything: who is alone knows what there is."""
        self._begin()

    def find_cases(self, queue: int, cases: list[str]) -> list[Entry]:
        """Return the decisions about cases that are known."""
        rows = self.query(
            f"SELECT {ENTRY_COLUMNS} FROM log WHERE queue = ? AND case_id IN "
            "(SELECT value FROM json_each(?))",
            queue,
            json.dumps(cases),
        )
        return list(map(Entry._make, rows))

    def commit(self, group: Group) -> None:
        """Write a group; the disk has it when this returns."""
        with _translated():
            for statement, values in chain(group_statements(group), _inserts(group.entries)):
                self._connection().execute(statement, values)
        self._end("COMMIT")

    def rollback(self) -> None:
        """Undo, and give the lock back."""
        with contextlib.suppress(StoreError):
            self._end("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        if self._link is None:
            raise StoreError(f"{self.path} is not open.")
        return self._link

    def _begin(self) -> None:
        self._connection()
        self._take()
        try:
            self._check_file(create=False)
            with _translated():
                self._connection().execute("BEGIN IMMEDIATE")
        except BaseException:
            self._give_back()
            raise

    def _end(self, how: str) -> None:
        try:
            with _translated():
                link = self._connection()
                if link.in_transaction:
                    link.execute(how)
        finally:
            self._give_back()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._take()
        try:
            yield
        finally:
            self._give_back()

    def _take(self) -> None:
        if self._alone:
            return
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX)
        self._on_lock(True)
        fcntl.flock(self._door, fcntl.LOCK_UN)

    def _give_back(self) -> None:
        self._on_lock(False)
        if self._room >= 0:
            fcntl.flock(self._room, fcntl.LOCK_UN)


def _inserts(entries: list[Entry]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Return statements that insert entries, and their values."""
    start = 0
    for size, statement in _INSERTS.items():
        while len(entries) - start >= size:
            yield statement, tuple(chain.from_iterable(entries[start : start + size]))
            start += size


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turn the errors of the database into ours."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise PromiseError(str(error)) from error
    except sqlite3.Error as error:
        raise StoreError(str(error)) from error
