"""Lines from a file descriptor, as many together as have come."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

__all__ = ["LONGEST_LINE", "TOO_LONG", "read_batches"]

LONGEST_LINE = 1 << 20
#: Stands for a line that was longer than that, and was skipped.
TOO_LONG = b"\0too long"
_CHUNK = 1 << 16


def read_batches(descriptor: int, *, most: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `most` lines.

    A list is yielded as soon as nothing more is waiting, so that a slow stream is answered line by
    line and a fast one in bundles.
    """
    lines: list[bytes] = []
    rest, skipping, ended = b"", False, False
    while not ended:
        chunk = os.read(descriptor, _CHUNK)
        ended = not chunk
        *whole, rest = (rest + chunk + (b"\n" if ended and rest else b"")).split(b"\n")
        for line in whole:
            lines.append(TOO_LONG if skipping else line)
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = b"", True
        while len(lines) >= most or (lines and (ended or not _waiting(descriptor))):
            yield lines[:most]
            del lines[:most]
    if skipping:
        yield [TOO_LONG]


def _waiting(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])
