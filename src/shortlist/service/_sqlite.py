"""The embedded database: one file, many processes of one machine.

SQLite's own lock lets waiting programs sleep and look again, which starves some of them. Here they
wait in the kernel for a lock on a file (`flock`) before they begin a transaction. A second file is
the door to the first: who waits for the room holds the door, so that whoever leaves the room cannot
be the next to enter. The kernel gives both back when a process ends, however that happens.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from .store import ENTRY_COLUMNS, Entry, Store, StoreError

# Entries that one statement inserts. Between two statements this thread has to ask Python for its
# lock again, and would wait for others while it holds that of the database.
_TOGETHER = 64


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

    dialect, driver = "sqlite", sqlite3
    is_listed = "case_id IN (SELECT value FROM json_each(?))"
    field = "(SELECT CAST(value AS TEXT) FROM json_each(log.body) WHERE key = ?)"
    locks = "SELECT name, sql FROM sqlite_master WHERE sql <> '' AND type <> 'table'"
    now = "(julianday('now') - 2440587.5) * 86400"

    def __init__(
        self,
        path: Path,
        *,
        alone: bool = False,
        sync: bool = True,
        on_lock: Callable[[bool], None] | None = None,
    ) -> None:
        super().__init__()
        self.path, self._alone, self._sync = path, alone, sync
        self._on_lock = on_lock or (lambda held: None)
        self._door = self._room = -1
        self._inode = 0

    def connect(self, *, create: bool = False) -> None:
        """Open the file; commits wait for the disk. A new file can be read by its owner only."""
        self.close()
        self._check_file(create=create)
        try:
            if create:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            if not self._alone:
                self._door = os.open(f"{self.path}.door", os.O_RDWR | os.O_CREAT, 0o600)
                self._room = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            if create:
                self._take()
            self._link_to("mode=rw")
            self._configure()
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {error}") from error
        finally:
            self._give_back()
        self._inode = os.stat(self.path).st_ino

    def connect_to_read(self) -> None:
        """Open the file for reading; a copy that nobody writes needs no lock and no log."""
        is_copy = not Path(f"{self.path}-wal").exists()
        try:
            self._link_to("mode=ro&immutable=1" if is_copy else "mode=ro")
            self.link.execute("BEGIN")  # everything that is read is of one moment
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be opened: {error}") from error

    def _link_to(self, how: str) -> None:
        self.link = sqlite3.connect(
            f"file:{quote(str(self.path))}?{how}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=0.0 if self._alone else 5.0,
        )

    def _configure(self) -> None:
        """Set how the file is written, and refuse one that may lose what was committed."""
        for setting in (
            *(["locking_mode = EXCLUSIVE"] if self._alone else []),
            # Ids of cases come in no order: each changes another page of their index, which SQLite
            # writes as a whole. Small pages are therefore faster.
            "page_size = 1024",
            "journal_mode = WAL",
            # A short log is soon written over from its start, which is faster than growing.
            f"wal_autocheckpoint = {400 if self._alone else 4000}",
            "secure_delete = ON",  # what is erased leaves no copy in the file
            f"synchronous = {'FULL' if self._sync else 'OFF'}",
        ):
            self.link.execute(f"PRAGMA {setting}")
        names = ("journal_mode", "synchronous")
        kept = [self.link.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
        if kept != ["wal", 2 if self._sync else 0]:
            raise ValueError(
                f"{self.path} cannot keep a log that survives a crash (journal {kept[0]}, "
                f"synchronous {kept[1]}). Put it on a local disk."
            )

    def _check_file(self, *, create: bool = False) -> None:
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
        with self.thread:
            super().close()
            self._give_back()
            for descriptor in (self._door, self._room):
                if descriptor >= 0:
                    os.close(descriptor)
            self._door = self._room = -1

    def _insert_entries(self, entries: list[Entry]) -> None:
        for start in range(0, len(entries), _TOGETHER):
            part = entries[start : start + _TOGETHER]
            self.link.execute(_insert_of(len(part)), tuple(chain.from_iterable(part)))

    def _start(self, *, alone: bool) -> None:
        try:
            self._take()
            self.link.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._give_back()
            raise

    def _take(self) -> None:
        """Wait for the turn of this program."""
        if self._room >= 0:
            fcntl.flock(self._door, fcntl.LOCK_EX)
            fcntl.flock(self._room, fcntl.LOCK_EX)
            self._on_lock(True)
            fcntl.flock(self._door, fcntl.LOCK_UN)
        self._check_file()

    def _give_back(self) -> None:
        self._on_lock(False)
        if self._room >= 0:
            fcntl.flock(self._room, fcntl.LOCK_UN)


@lru_cache(maxsize=_TOGETHER)
def _insert_of(size: int) -> str:
    """Return a statement that inserts so many entries."""
    marks = f"({', '.join('?' * len(Entry._fields))})"
    return f"INSERT INTO log ({ENTRY_COLUMNS}) VALUES {', '.join([marks] * size)}"
