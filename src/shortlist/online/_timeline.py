"""The time of a controller: which moment an item has, and what is due by then."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.arrays import Floats
from .._core.timestamps import check_moments, to_seconds
from ..capacity import Capacity
from ._clock import ArrivalLog, Clock, JumpGuard, Schedule
from ._periods import CalendarPeriod, read_period

__all__ = ["Timeline"]


class Timeline:
    """The latest moment and the number of items so far, and the changes still to come.

    Parameters
    ----------
    owner : str
        The name of the controller, for errors.
    period : float, str or None
        Length of a period in seconds, or a period of a calendar. Without one, time is the number of
        items.
    clock : callable or None
        Returns the present moment for items without one.
    logs_arrivals : bool
        Whether to record when items arrived.
    """

    def __init__(self, owner: str, period: Any, clock: Clock | None, logs_arrivals: bool) -> None:
        self._owner, self.clock = owner, clock
        self.is_timed = period is not None
        self.calendar: CalendarPeriod | None = None
        longest = None
        if self.is_timed:
            described = read_period(period)
            self.calendar = described if isinstance(described, CalendarPeriod) else None
            longest = described.longest
        self.now, self.n_items = -math.inf, 0
        self.schedule, self.guard = Schedule(), JumpGuard(longest)
        self.arrivals = ArrivalLog() if logs_arrivals else None

    def copy(self) -> Timeline:
        """Return the same time, which moves on alone."""
        other = copy.copy(self)
        other.schedule, other.guard = copy.copy(self.schedule), copy.copy(self.guard)
        other.schedule.changes = list(self.schedule.changes)
        other.arrivals = copy.deepcopy(self.arrivals)
        return other

    def present(self) -> float:
        """Return the moment of the clock, and at least that of the latest item."""
        return self.now if self.clock is None else max(self.now, to_seconds(self.clock()))

    def moment(self, at: Any) -> float:
        """Return a moment in seconds: the one given, the clock's, or the latest."""
        if at is not None or self.clock is not None:
            moment = to_seconds(at if at is not None or self.clock is None else self.clock())
            if self.calendar is not None:
                self.calendar.check(moment)
            return moment
        if self.is_timed:
            raise ValueError(
                f"{self._owner} keeps a number per period and must know when an item "
                "arrived. Pass at=..., or give the controller a clock=..."
            )
        return self.now

    def moments(self, at: Any, n: int) -> Floats:
        """Return a moment in seconds for each of `n` items."""
        moments = check_moments(at, n) if at is not None else np.full(n, self.moment(None))
        if self.calendar is not None and n:
            self.calendar.check(float(moments.min()), float(moments.max()))
        return moments

    def is_refused(self, moment: float) -> bool:
        """Whether a moment is a jump to be refused; most are not, and cost one comparison."""
        guard = self.guard
        return (moment > self.now + guard.farthest or guard.suspect is not None) and guard.refuses(
            moment, self.now
        )

    def parts(self, moments: Floats) -> Iterator[tuple[slice, bool]]:
        """Yield parts without a jump, and single items that may be one."""
        start = 0
        while start < moments.size:
            safe = self.guard.count_safe(moments[start:], self.now)
            part = slice(start, start + max(safe, 1))
            yield part, safe > 0
            start = part.stop

    def due_changes(self, until: float) -> Iterator[Capacity]:
        """Yield the capacities announced until a moment, each at its own moment."""
        while self.schedule.next_moment <= until:
            self.now, capacity = self.schedule.pop()
            yield capacity

    def count_one(self, moment: float) -> float:
        """Move on to the next item, and return its time as compiled functions see it."""
        self.now = max(self.now, moment)
        number = self.n_items
        if self.arrivals is not None and number % ArrivalLog.EVERY == 0:
            self.arrivals.note((self.now,), number)
        self.n_items = number + 1
        if self.calendar is not None:
            return float(self.calendar.progress(np.array([self.now]))[0])
        return self.now if self.is_timed else float(number)

    def count_many(self, moments: Floats) -> Floats:
        """Do the same for items whose moments do not fall."""
        first = self.n_items
        if not moments.size:
            return moments
        if self.arrivals is not None:
            self.arrivals.note(moments, first)
        self.n_items, self.now = first + moments.size, float(moments[-1])
        if not self.is_timed:
            return np.arange(first, first + moments.size, dtype=np.float64)
        return moments if self.calendar is None else self.calendar.progress(moments)
