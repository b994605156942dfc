"""A file with a saved state and everything decided since; a crash never leaves it unusable.

Each line is a checksum and a JSON text. The first line holds a state, the others hold what was
decided after it. Only complete lines count: a last line that a crash cut off is dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._core.atomic import check_writable, write_whole
from ..exceptions import StateFileError

__all__ = ["StateFile", "locked"]

_sync_data = getattr(os, "fdatasync", os.fsync)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock next to a file. It is released when the process ends, however that happens."""
    import fcntl  # does not exist on Windows

    check_writable(path)
    beside = path.with_name(path.name + ".lock")
    with beside.open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateFileError(
                f"{path} is in use by another process. Stop it, or use another --state file."
            ) from None
        yield


class StateFile:
    """The lines of a state file; with `sync`, each write waits until it has reached the disk."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path = path.resolve()
        self._sync = sync
        self._descriptor: int | None = None
        self.n_appended = 0

    def read(self) -> list[Any]:
        """Return the contents of all complete lines, and cut off an incomplete last one."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        *complete, torn = content.split(b"\n")
        records = [_unpacked(line) for line in complete]
        if (
            records and records[-1] is None
        ):  # the end of the line reached the disk before its middle
            records.pop()
            torn = complete[-1] + b"\n" + torn
        if None in records or (content and not records):
            raise StateFileError(
                f"{self.path} is damaged, or not a state file. Nothing was decided. Restore it "
                "from a copy, or start the next period with another --state file."
            )
        if torn:
            self._cut(len(content) - len(torn))
        self.n_appended = len(content) - len(torn) - len(complete[0]) - 1 if records else 0
        return records

    def replace(self, state: Any) -> None:
        """Replace the file by a state, completely or not at all."""
        self.close()
        with write_whole(self.path) as file:
            file.write(_packed(state))
        self._sync_folder()
        self.n_appended = 0

    def append(self, record: Any) -> None:
        """Append a line, and return once it is safe."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        data = memoryview(_packed(record))
        self.n_appended += len(data)
        while data:
            data = data[os.write(self._descriptor, data) :]
        if self._sync:
            _sync_data(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _cut(self, size: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        """Make sure that the renamed file survives a power cut, too."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _packed(content: Any) -> bytes:
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _unpacked(line: bytes) -> Any:
    """Return the content of a line, or None if its checksum does not match."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    return json.loads(text)
