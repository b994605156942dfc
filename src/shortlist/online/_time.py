"""The time of a controller: which moment an item has, and what is due by then."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.arrays import Floats
from .._core.validation import check_moments, to_seconds
from ..capacity import Capacity
from .periods import CalendarPeriod, read_period

_AGREEING = 5  # moments in a row that move the clock far ahead
_FARTHEST_PERIODS, _FARTHEST_SECONDS = 31, 7 * 86_400.0


class Timeline:
    """The latest moment and the number of items so far, and the changes still to come.

    Moments many periods ahead are refused, until several in a row agree. One moment in
    milliseconds would otherwise move the clock for good: every later item would come from the past
    and share the budget of one period. Without a period, time is the number of items, and no
    moment is refused.
    """

    def __init__(self, period: float | str | None) -> None:
        self.is_timed = period is not None
        self.calendar = CalendarPeriod(period) if isinstance(period, str) else None
        #: How long compiled functions see a period, and how far ahead a moment may lie.
        self.length, self.farthest = 1.0, math.inf
        if period is not None:
            described = read_period(period)
            self.length = described.longest if self.calendar is None else 1.0
            self.farthest = max(_FARTHEST_PERIODS * described.longest, _FARTHEST_SECONDS)
        self.now, self.n_items = -math.inf, 0
        #: Changes of capacity that were announced for later, in order of time.
        self.changes: list[tuple[float, Capacity]] = []
        # The latest refused moment, and how many in a row agree with it.
        self._suspect: tuple[float, int] | None = None

    # --- moments -------------------------------------------------------------------------------

    def moment(self, at: Any) -> float:
        """Return a moment in seconds; without a period, the latest one will do."""
        if at is None and self.is_timed:
            raise ValueError(
                "at is required: this controller keeps a number per period, and must know when an "
                "item arrived."
            )
        moment = self.now if at is None else to_seconds(at)
        if self.calendar is not None:
            self.calendar.check(moment)
        return moment

    def moments(self, at: Any, n: int) -> Floats:
        """Return a moment in seconds for each of `n` items."""
        moments = np.full(n, self.moment(None)) if at is None else check_moments(at, n)
        if self.calendar is not None and n:
            self.calendar.check(float(moments.min()), float(moments.max()))
        return moments

    def is_refused(self, moment: float) -> bool:
        """Whether a moment is a jump to be refused; most are not, and cost one comparison."""
        if self._suspect is None and moment <= self.now + self.farthest:
            return False
        if self.now == -math.inf or moment - self.now <= self.farthest:
            self._suspect = None
            return False
        last, agreeing = self._suspect or (moment, 0)
        agreeing = agreeing + 1 if abs(moment - last) <= self.farthest else 1
        self._suspect = None if agreeing >= _AGREEING else (moment, agreeing)
        return self._suspect is not None

    def are_plain(self, moments: Floats) -> bool:
        """Whether moments are surely accepted, and all of them before the next change."""
        if self._suspect is not None or not moments.size:
            return False
        first = moments[0] if self.now == -math.inf else self.now
        latest = np.maximum.accumulate(np.append(first, moments))
        is_steady = self.farthest == math.inf or np.diff(latest).max() <= self.farthest
        return bool(is_steady and latest[-1] < self.next_change)

    # --- changes of capacity -------------------------------------------------------------------

    @property
    def next_change(self) -> float:
        """When the next change is due; infinity if there is none."""
        return self.changes[0][0] if self.changes else math.inf

    def announce(self, moment: float, capacity: Capacity) -> None:
        """Add a change; it replaces an earlier announcement for the same moment."""
        self.changes = [change for change in self.changes if change[0] != moment]
        bisect.insort(self.changes, (moment, capacity), key=lambda change: change[0])

    def due_changes(self, until: float) -> Iterator[Capacity]:
        """Yield the capacities announced until a moment, each at its own moment."""
        while self.next_change <= until:
            self.now, capacity = self.changes.pop(0)
            yield capacity

    # --- items ---------------------------------------------------------------------------------

    def count_one(self, moment: float) -> float:
        """Move on to the next item, and return its time as compiled functions see it."""
        self.n_items += 1
        return self.move_to(moment)

    def move_to(self, moment: float) -> float:
        """Move on without an item, and return the time as compiled functions see it."""
        self.now = max(self.now, moment)
        if self.calendar is not None:
            return float(self.calendar.progress(np.array([self.now]))[0])
        return self.now if self.is_timed else float(self.n_items - 1)

    def count_many(self, moments: Floats) -> Floats:
        """Do the same for at least one item."""
        first = self.n_items
        moments = np.maximum.accumulate(np.maximum(moments, self.now))
        self.n_items, self.now = first + moments.size, float(moments[-1])
        if not self.is_timed:
            return np.arange(first, first + moments.size, dtype=np.float64)
        return moments if self.calendar is None else self.calendar.progress(moments)

    # --- saved state ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the time as plain JSON; a text, because JSON has no infinity."""
        return {
            "now": str(self.now),
            "n_items": self.n_items,
            "scheduled": [[moment, capacity.to_json()] for moment, capacity in self.changes],
            "suspect": list(self._suspect or ()),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Read what :meth:`state` returned."""
        self.now, self.n_items = float(state["now"]), state["n_items"]
        self.changes = [(float(at), Capacity.from_json(each)) for at, each in state["scheduled"]]
        self._suspect = None
        if state["suspect"]:
            moment, agreeing = state["suspect"]
            self._suspect = float(moment), agreeing
