"""A file with a whole state and what happened since: it grows by appending, and is never half.

Each line is a checksum and a JSON text. The first holds a state, the others what was decided after
it. A line counts once all of it is there: the rest of a line that a crash cut off is dropped.
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
    """Hold a lock beside a file, which ends with the process however that ends."""
    import fcntl  # not on Windows

    check_writable(path)
    beside = path.with_name(path.name + ".lock")
    with beside.open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateFileError(
                f"{path} is in use by another process. Stop that one, or use another --state file."
            ) from None
        yield


class StateFile:
    """The lines of a state file; `sync` waits until they are on the disk itself."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path = path.resolve()
        self._sync = sync
        self._descriptor: int | None = None
        self.n_appended = 0

    def read(self) -> list[Any]:
        """Return what all whole lines say, and cut off a last one that is not whole."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        *whole, torn = content.split(b"\n")
        said = [_unpacked(line) for line in whole]
        if said and said[-1] is None:  # the disk had the end of the line before its middle
            said.pop()
            torn = whole[-1] + b"\n" + torn
        if None in said or (content and not said):
            raise StateFileError(
                f"{self.path} is damaged, or not a state file. Nothing was decided: restore it "
                "from a copy, or start the next period with another --state file."
            )
        if torn:
            self._cut(len(content) - len(torn))
        self.n_appended = len(content) - len(torn) - len(whole[0]) - 1 if said else 0
        return said

    def replace(self, state: Any) -> None:
        """Write a whole state in place of everything, at once or not at all."""
        self.close()
        with write_whole(self.path) as file:
            file.write(_packed(state))
        self._sync_folder()
        self.n_appended = 0

    def append(self, record: Any) -> None:
        """Write a line at the end, and return once it is safe."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        data = memoryview(_packed(record))
        self.n_appended += len(data)
        while data:
            data = data[os.write(self._descriptor, data) :]
        if self._sync:
            _sync_data(self._descriptor)

    def close(self) -> None:
        """Close the file; what was appended stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _cut(self, size: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        """Make the new name of a file as safe as its content."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _packed(content: Any) -> bytes:
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _unpacked(line: bytes) -> Any:
    """Return what a line says, or None if it is not what was written."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    return json.loads(text)
