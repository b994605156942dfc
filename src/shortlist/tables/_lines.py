"""Text from an open file in blocks of whole lines.

Arrow's own streaming reader asks a Python file for blocks from threads of its own, many ahead. That
costs memory, and a program that ends early, because of an error, can be torn down while such a
thread still reads. Here nothing is read before it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError

__all__ = ["whole_lines"]

_LONGEST_LINE = 1 << 26
_QUOTE = ord('"')


def whole_lines(file: BinaryIO, size: int, *, delimiter: str, name: str) -> Iterator[bytes]:
    """Yield what is left of a file in blocks of about `size` bytes that end with a line."""
    rest = b""
    while piece := file.read(size):
        block = rest + piece
        end = _end_of_last_line(block, delimiter)
        if end:
            yield block[:end]
        rest = block[end:]
        if len(rest) > _LONGEST_LINE:
            raise TableError(
                f'{name} has a line of more than {_LONGEST_LINE >> 20} MB. Is a quote (") missing?'
            )
    if rest:
        yield rest


def _end_of_last_line(block: bytes, delimiter: str) -> int:
    """Return the place behind the last line end outside quotes, or 0."""
    quotes = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == _QUOTE)
    if not _come_in_pairs(block, quotes, delimiter):
        block, quotes = _without_values_in_quotes(block, delimiter), quotes[:0]
    end = len(block)
    while True:
        place = max(block.rfind(b"\n", 0, end), block.rfind(b"\r", 0, end))
        n_before = int(np.searchsorted(quotes, place))
        if place < 0 or n_before % 2 == 0:
            return place + 1
        end = int(quotes[n_before - 1])  # inside a value: look before it


def _come_in_pairs(block: bytes, quotes: NDArray[np.intp], delimiter: str) -> bool:
    """Tell whether every first, third, ... quote begins a value, or goes on after a doubled one.

    Then an even number of quotes stands before every place outside a value, and nowhere else.
    """
    firsts = quotes[::2]
    signs = np.frombuffer(b"\n" + block, dtype=np.uint8)[firsts]  # the sign before each
    return bool(np.isin(signs, list(f'{delimiter}\r\n"'.encode())).all())


def _without_values_in_quotes(block: bytes, delimiter: str) -> bytes:
    """Blank out values in quotes, also an unfinished one at the end; other quotes are signs.

    Slow, and needed only where a quote stands inside a value that has none around it: 12" pipe.
    """
    before = re.escape(delimiter).encode() + rb"\r\n"
    values = rb"(?:(?<=[" + before + rb'])|\A)"[^"]*(?:""[^"]*)*(?:"|\Z)'
    return re.sub(values, lambda value: b"." * len(value[0]), block)
