"""When items came, roughly: for announcements of a capacity that come late."""

from __future__ import annotations

import bisect
import math
from typing import Any

__all__ = ["EVERY", "Marks"]

EVERY = 16  # items from one mark to the next
_MOST = 4_096


class Marks:
    """The moments of every sixteenth item, as far back as there is room, and of the last change."""

    __slots__ = ("changed", "known")

    def __init__(self) -> None:
        self.known: list[list[Any]] = []
        self.changed = -math.inf

    def note(self, times: Any, first: int) -> None:
        """Note when items came, the first of which has this number."""
        if times[-1] == -math.inf:  # nobody has said when items come
            return
        marked = range(-first % EVERY, len(times), EVERY)
        self.known.extend([float(times[i]), first + i] for i in marked[-_MOST:])
        del self.known[:-_MOST]

    def items_since(self, moment: float, n_items: int) -> int:
        """Return about how many of so many items came since a moment, or since the last change."""
        since = max(moment, self.changed)
        place = bisect.bisect_left(self.known, since, key=lambda mark: mark[0])
        return n_items - self.known[place][1] if place < len(self.known) else 0

    def to_list(self) -> list[Any]:
        """Return everything as a list."""
        return [self.changed, [list(mark) for mark in self.known]]

    def fill(self, saved: list[Any]) -> None:
        """Read what `to_list` has written."""
        self.changed = float(saved[0])
        self.known = [[float(moment), int(number)] for moment, number in saved[1][-_MOST:]]
