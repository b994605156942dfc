"""Time as controllers see it: periods, arrivals, and changes of capacity still to come."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .._core.timestamps import to_seconds
from ..capacity import Capacity

__all__ = ["ArrivalLog", "Clock", "JumpGuard", "Schedule", "period_of", "periods_of"]

#: Returns the present moment, as seconds or a datetime.
Clock = Callable[[], Any]

_MOST_PERIODS = 9e15  # beyond 2**53 a float cannot tell neighbouring whole numbers apart


@njit(cache=True)
def period_of(at: float, origin: float, length: float) -> int:
    """Return the number p of the period that contains a moment; it starts at origin + p * length.

    The quotient alone could round up to the next whole number, which would count an item in a
    period that has not begun. Therefore the starts of the periods decide.
    """
    quotient = np.floor((at - origin) / length)
    if not -_MOST_PERIODS < quotient < _MOST_PERIODS:
        return int(min(max(quotient, -_MOST_PERIODS), _MOST_PERIODS))
    if origin + quotient * length > at:
        return int(quotient) - 1
    if origin + (quotient + 1) * length <= at:
        return int(quotient) + 1
    return int(quotient)


@njit(cache=True)
def periods_of(times: Any, origin: float, length: float) -> Any:
    """Return the number of the period for each of many moments."""
    numbers = np.empty(times.size, np.int64)
    for i in range(times.size):
        numbers[i] = period_of(times[i], origin, length)
    return numbers


class Schedule:
    """Changes of capacity that were announced for later, in order of time."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes: list[tuple[float, Capacity]] = []

    @property
    def next_moment(self) -> float:
        """When the next change is due; infinity if there is none."""
        return self.changes[0][0] if self.changes else math.inf

    def add(self, moment: float, capacity: Capacity) -> None:
        """Add a change; it replaces an earlier announcement for the same moment."""
        self.changes = [change for change in self.changes if change[0] != moment]
        bisect.insort(self.changes, (moment, capacity), key=lambda change: change[0])

    def pop(self) -> tuple[float, Capacity]:
        """Remove the next change and return it."""
        return self.changes.pop(0)

    def to_list(self) -> list[Any]:
        """Return the changes as plain JSON."""
        return [[moment, capacity.to_json()] for moment, capacity in self.changes]

    def load(self, saved: list[Any]) -> None:
        """Read what :meth:`to_list` returned."""
        self.changes = [
            (to_seconds(moment), Capacity.from_json(capacity)) for moment, capacity in saved
        ]
        if self.changes != sorted(self.changes, key=lambda change: change[0]):
            raise ValueError("the scheduled changes are out of order.")


class JumpGuard:
    """Refuses moments many periods ahead, until several in a row agree.

    One moment in milliseconds would otherwise move the clock for good: every later item would come
    from the past and share the budget of one period.

    Parameters
    ----------
    period : float or None
        Length of a period in seconds; None refuses nothing.
    """

    __slots__ = ("farthest", "suspect")

    AGREEING = 5  # moments in a row that move the clock
    _PERIODS = 31
    _LEAST_SECONDS = 7 * 86_400.0
    _LONGEST_SCAN = 1 << 16

    def __init__(self, period: float | None) -> None:
        self.farthest = (
            math.inf if period is None else max(self._PERIODS * period, self._LEAST_SECONDS)
        )
        #: The latest refused moment, and how many in a row agree with it.
        self.suspect: tuple[float, int] | None = None

    def refuses(self, moment: float, now: float) -> bool:
        """Whether to refuse a moment, given the latest one that was accepted."""
        if now == -math.inf or moment - now <= self.farthest:
            self.suspect = None
            return False
        last, agreeing = self.suspect or (moment, 0)
        agreeing = agreeing + 1 if abs(moment - last) <= self.farthest else 1
        self.suspect = None if agreeing >= self.AGREEING else (moment, agreeing)
        return self.suspect is not None

    def count_safe(self, moments: Any, now: float) -> int:
        """Return how many of the first moments are surely accepted, whichever of them count."""
        if self.suspect is not None or not len(moments):
            return 0
        if self.farthest == math.inf:
            return len(moments)
        scanned = moments[: self._LONGEST_SCAN]
        start = scanned[0] if now == -math.inf else now
        beyond = scanned - start > self.farthest
        return int(np.argmax(beyond)) if beyond.any() else len(scanned)

    def to_list(self) -> list[Any]:
        """Return what is suspected as a list."""
        return list(self.suspect or ())

    def load(self, saved: list[Any]) -> None:
        """Read what :meth:`to_list` returned."""
        self.suspect = None
        if saved:
            moment, agreeing = saved
            if type(agreeing) is not int or not 0 < agreeing < self.AGREEING:
                raise ValueError("the refused moments cannot be counted.")
            self.suspect = to_seconds(moment), agreeing


class ArrivalLog:
    """The moments of every sixteenth item, and of the latest change of capacity.

    A controller counts in it how many items an announcement that comes late has missed.
    """

    __slots__ = ("last_change", "marks")

    EVERY = 16
    _MOST_MARKS = 4_096

    def __init__(self) -> None:
        self.marks: list[list[Any]] = []
        self.last_change = -math.inf

    def note(self, times: Any, first: int) -> None:
        """Note when items arrived; `first` is the number of the first of them."""
        if times[-1] == -math.inf:  # the items came without moments
            return
        marked = range(-first % self.EVERY, len(times), self.EVERY)
        self.marks.extend([float(times[i]), first + i] for i in marked[-self._MOST_MARKS :])
        del self.marks[: -self._MOST_MARKS]

    def items_since(self, moment: float, n_items: int) -> int:
        """Return about how many of `n_items` arrived since a moment, or since the last change."""
        since = max(moment, self.last_change)
        place = bisect.bisect_left(self.marks, since, key=lambda mark: mark[0])
        return n_items - self.marks[place][1] if place < len(self.marks) else 0

    def to_list(self) -> list[Any]:
        """Return the log as a list."""
        return [self.last_change, [list(mark) for mark in self.marks]]

    def load(self, saved: list[Any]) -> None:
        """Read what :meth:`to_list` returned."""
        self.last_change = float(saved[0])
        self.marks = [
            [float(moment), int(number)] for moment, number in saved[1][-self._MOST_MARKS :]
        ]
