"""Text from an open file in blocks of whole lines.

Arrow's own streaming reader asks a Python file for blocks from threads of its own, many ahead. That
costs memory, and a program that ends early, because of an error, can be torn down while such a
thread still reads. Here nothing is read before it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from ..exceptions import TableError

__all__ = ["whole_lines"]

_LONGEST_LINE = 1 << 26


def whole_lines(file: BinaryIO, size: int, *, delimiter: str, name: str) -> Iterator[bytes]:
    """Yield what is left of a file in blocks of about `size` bytes that end with a line."""
    quoted = _quoted_values(delimiter)
    rest = b""
    while piece := file.read(size):
        block = rest + piece
        end = _end_of_last_line(block, quoted)
        if end:
            yield block[:end]
        rest = block[end:]
        if len(rest) > _LONGEST_LINE:
            raise TableError(
                f'{name} has a line of more than {_LONGEST_LINE >> 20} MB. Is a quote (") missing?'
            )
    if rest:
        yield rest


def _quoted_values(delimiter: str) -> re.Pattern[bytes]:
    """Match values in quotes, also an unfinished one at the end; other quotes are plain signs."""
    before = re.escape(delimiter).encode() + rb"\r\n"
    return re.compile(rb"(?:(?<=[" + before + rb'])|\A)"[^"]*(?:""[^"]*)*(?:"|\Z)')


def _end_of_last_line(block: bytes, quoted: re.Pattern[bytes]) -> int:
    """Return the place behind the last line end outside quotes, or 0."""
    if b'"' in block:
        block = quoted.sub(lambda value: b"." * len(value[0]), block)
    return max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
