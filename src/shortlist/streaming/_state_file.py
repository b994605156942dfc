"""The file of a stream: records that are on disk before anybody relies on them.

Each record is a line: the length of its text, a checksum of the text, a checksum of these two
numbers, and the text, which is JSON. The checksum of a text continues the checksum of the record
before it. The first record holds a state; the others hold what was decided after it. The first
record is written to another file, synced and renamed. The others are appended and synced one at a
time, and a decision is returned only after its record was synced. From this follows what a reader
can tell:

- **The file ends before its last record does.** The write was cut off by a crash. Its decisions
  were not returned. The incomplete record is dropped, and the number of bytes is reported.
- **Anything else that does not match** is damage: a complete record with a wrong length or
  checksum, an incomplete first record, a record that does not follow the one before it, bytes that
  cannot be the start of a record, or an empty file. No crash of the process leaves such a file.
  Decisions that were returned may be lost, and therefore the file is refused. Every change of up to
  three bits is found, and so is every change within 32 neighbouring bits.
- **What looks like a cut-off write cannot be told from one.** This is a file that was shortened, at
  the end of a record or within one, an older copy of the file, or a file that was deleted. The
  promise needs a disk that keeps what it has synced, and nobody who replaces the file by an older
  one. A file system that leaves zeros or parts in the wrong order after a power cut is refused as
  damaged, which loses a period but no promise.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from .._core.atomic import check_writable, sync_folder, write_whole
from ..exceptions import StateFileError

__all__ = ["StateFile", "lock_beside", "old_version_message"]

_HEADER = 27  # bytes: three numbers of eight digits, each with a space after it
_START_OF_HEADER = re.compile(rb"([0-9a-f]{8} )*[0-9a-f]{0,8}")
_sync_data = getattr(os, "fdatasync", os.fsync)


class StateFile:
    """The records of a state file; with `sync`, each write waits until it has reached the disk.

    Parameters
    ----------
    path : Path
        The file. It must have no other names (hard links): it is replaced as a whole, and another
        name would keep the old state.
    sync : bool, default=True
        Wait for the disk after each record.

    Attributes
    ----------
    n_appended : int
        Bytes after the first record.
    n_dropped : int
        Bytes of an incomplete last record that :meth:`read` dropped.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path = path.resolve()
        self._sync = sync
        self._descriptor: int | None = None
        self._checksum = 0  # of the last record
        self.n_appended = self.n_dropped = 0

    def read(self) -> list[Any]:
        """Lock the file and return its records, without an incomplete last one; [] if missing."""
        try:
            self._hold()
        except FileNotFoundError:
            return []
        content = self.path.read_bytes()
        if not content:
            raise StateFileError(
                f"{self.path} is empty. A stream never leaves an empty file: what was decided is "
                "lost. Nothing was decided. If no stream has used the file, delete it; otherwise "
                "start the next period with another --state file."
            )
        records, ends = self._split(content)
        self.n_appended, self.n_dropped = ends[-1] - ends[0], len(content) - ends[-1]
        if self.n_dropped:
            self._cut(ends[-1])
        return records

    def replace(self, state: Any) -> None:
        """Replace the file by a state, completely or not at all."""
        data, checksum = _packed(state, 0)
        with write_whole(self.path) as file:
            file.write(data)
        sync_folder(self.path.parent)
        self._hold()
        self._checksum, self.n_appended = checksum, 0

    def append(self, record: Any) -> None:
        """Append a record, and return once it is safe."""
        descriptor = self._descriptor
        if descriptor is None or not os.fstat(descriptor).st_nlink:
            raise StateFileError(
                f"{self.path} was removed or replaced while a stream was using it. Nothing more is "
                "decided. Start the next period with another --state file."
            )
        packed, self._checksum = _packed(record, self._checksum)
        data = memoryview(packed)
        self.n_appended += len(data)
        while data:
            data = data[os.write(descriptor, data) :]
        if self._sync:
            _sync_data(descriptor)

    def close(self) -> None:
        """Close the file, and release it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _hold(self) -> None:
        """Open the file that has the name now and lock it, in exchange for the one held so far."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND)
        try:
            _lock(descriptor, self.path)
            n_names = os.fstat(descriptor).st_nlink
            if n_names != 1:
                raise StateFileError(
                    f"{self.path} has {n_names} names (hard links). It is replaced as a whole, and "
                    "another name would keep an old state. Nothing was decided. Remove the other "
                    "names, or make them copies."
                )
        except BaseException:
            os.close(descriptor)
            raise
        self.close()
        self._descriptor = descriptor

    def _split(self, content: bytes) -> tuple[list[Any], list[int]]:
        """Return the complete records and where each ends."""
        records: list[Any] = []
        ends: list[int] = []
        start = checksum = 0
        while start < len(content):
            length = _length_in(content[start : start + _HEADER])
            if length is None:
                self._refuse(content, start, len(records))
            end = start + _HEADER + length + 1
            if end > len(content):
                break
            text = content[start + _HEADER : end - 1]
            checksum = zlib.crc32(text, checksum)
            if content[end - 1 : end] != b"\n" or content[start + 9 : start + 17] != (
                b"%08x" % checksum
            ):
                self._refuse(content, start, len(records))
            records.append(json.loads(text))
            ends.append(end)
            self._checksum, start = checksum, end
        if not records:  # the first one takes its name only when it is complete
            self._refuse(content, 0, 0)
        return records, ends

    def _refuse(self, content: bytes, start: int, n_before: int) -> NoReturn:
        old = _version_without_lengths(content) if n_before == 0 else None
        if old is not None:
            raise StateFileError(old_version_message(self.path, *old))
        raise StateFileError(
            f"{self.path} is damaged, or not a state file: record {n_before + 1}, at byte {start}, "
            "has a wrong length or checksum, which no crash leaves behind. Nothing was decided. An "
            "older copy would give flags again that were given since. Start the next period with "
            "another --state file."
        )

    def _cut(self, size: int) -> None:
        assert self._descriptor is not None  # `read` holds the file
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)


def old_version_message(path: Path, version: Any, release: Any) -> str:
    """Return what to do with a file of another version."""
    return (
        f"{path} has version {version} and was written by shortlist {release}, and this release "
        "cannot read it. Finish the period with the release that wrote the file, and start the "
        "next period with another --state file."
    )


def _packed(content: Any, previous: int) -> tuple[bytes, int]:
    """Return a record and its checksum, which continues the previous one."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    checksum = zlib.crc32(text, previous)
    numbers = b"%08x %08x " % (len(text), checksum)
    return b"%s%08x %s\n" % (numbers, zlib.crc32(numbers), text), checksum


def _length_in(header: bytes) -> int | None:
    """Return the length of a text, 0 if the header is cut off, or None for no header at all."""
    if len(header) < _HEADER:
        return 0 if _START_OF_HEADER.fullmatch(header) else None
    numbers = header[:18]
    return int(numbers[:8], 16) if header[18:] == b"%08x " % zlib.crc32(numbers) else None


def _version_without_lengths(content: bytes) -> tuple[Any, Any] | None:
    """Return the version and the release in a file of version 1 or 2."""
    checksum, _, text = content.partition(b"\n")[0].partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    head = json.loads(text)
    return (head.get("version"), head.get("shortlist")) if isinstance(head, dict) else None


def _lock(descriptor: int, path: Path) -> None:
    """Lock an open file until it is closed or the process ends, however that happens."""
    import fcntl  # does not exist on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StateFileError(
            f"{path} is in use by another process. Stop it, or use another --state file."
        ) from None


@contextlib.contextmanager
def lock_beside(path: Path) -> Iterator[None]:
    """Hold a lock next to a file, which is there before the file and while it is replaced."""
    check_writable(path)
    with path.with_name(path.name + ".lock").open("a+b") as lock:
        _lock(lock.fileno(), path)
        yield
