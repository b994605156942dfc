"""Periods, fixed or of a calendar, and the time of a controller: moments, and what is due by then.

A controller counts time in periods of one length. A day of a calendar has 23, 24 or 25 hours, and a
month 28 to 31 days. Therefore moments are translated: period number `p` is the stretch from p to
p + 1, whatever its length in seconds, and the controller keeps periods of length 1.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numba import njit

from .._core.arrays import Floats
from .._core.validation import check_positive
from ..capacity import Capacity
from .decisions import check_moments, to_seconds

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MOST_PERIODS = 9e15  # beyond 2**53 a float cannot tell neighbouring whole numbers apart
_FIRST, _LAST = -62e9, 253e9  # moments, a year or so from what a datetime can hold
_MONDAY = date(1970, 1, 5).toordinal()
_NAME = rf"({'|'.join(_WEEKDAYS)})\w*"
_HOURS = re.compile(rf"{_NAME}-{_NAME} (\d\d):(\d\d)-(\d\d):(\d\d)", re.IGNORECASE)
_DAY = 86_400.0
_FORMS = (
    '"day", "week" or "month" and a time zone, such as "day Europe/Berlin", or working days such '
    'as "Mon-Fri 09:00-17:00 Europe/Berlin"'
)


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


class _Stretch(NamedTuple):
    """A period: its number, its start and end, and in between the opening of a working day."""

    number: int
    start: float
    opens: float
    end: float


@dataclass(frozen=True)
class FixedPeriod:
    """Periods of a fixed length.

    Attributes
    ----------
    length : float
        In seconds.
    origin : float
        A moment at which a period starts.
    """

    length: float
    origin: float = 0.0

    @property
    def longest(self) -> float:
        """The length of a period in seconds."""
        return self.length

    def number(self, at: Any) -> int:
        """Return the number of the period that contains a moment."""
        return int(period_of(to_seconds(at), self.origin, self.length))

    def bounds(self, number: int) -> tuple[float, float]:
        """Return when a period starts and ends, in seconds."""
        return self.origin + number * self.length, self.origin + (number + 1) * self.length


@dataclass(frozen=True)
class CalendarPeriod:
    """Periods of a calendar in a named time zone, with summer time.

    A day begins at local midnight and has 23, 24 or 25 hours. A week begins on Monday and a month
    on its first day. A *working day* lasts from one closing time to the next: what arrives at
    night or at the weekend is work for the next working day. One half of its progress, by which
    flags are paced, is the time before it opens, and the other half are its working hours.

    Parameters
    ----------
    text : str
        ``"day Europe/Berlin"``, ``"week America/New_York"``, ``"month UTC"``, or working days:
        ``"Mon-Fri 09:00-17:00 Europe/Berlin"``.

    Examples
    --------
    The last Sunday of March has 23 hours in Berlin.

    >>> from shortlist.online import CalendarPeriod
    >>> day = CalendarPeriod("day Europe/Berlin")
    >>> start, end = day.bounds(day.number(1_774_780_000))
    >>> (end - start) / 3_600
    23.0
    """

    text: str
    zone: ZoneInfo = field(init=False, repr=False)
    _days: _Days = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind, _, name = str(self.text).strip().rpartition(" ")
        object.__setattr__(self, "text", f"{kind} {name}")
        object.__setattr__(self, "zone", _zone(name, self.text))
        object.__setattr__(self, "_days", _KINDS.get(kind) or _working_days(kind, self.text))

    @property
    def longest(self) -> float:
        """About how many seconds the longest period has."""
        return self._days.longest

    def check(self, *moments: float) -> None:
        """Raise an error for a moment that no calendar has."""
        if not all(_FIRST <= moment <= _LAST for moment in moments):
            raise ValueError(
                f"at must lie between the years 1 and 9999 for a calendar; got {moments}."
            )

    def number(self, at: Any) -> int:
        """Return the number of the period that contains a moment; numbers rise by one."""
        return self._stretch(to_seconds(at)).number

    def bounds(self, number: int) -> tuple[float, float]:
        """Return when a period starts and ends, in seconds since 1970."""
        return _start(self, number), _start(self, number + 1)

    def progress(self, moments: Floats) -> Floats:
        """Return for moments in rising order the number of the period, plus the share passed."""
        found = np.empty(moments.size)
        first = 0
        while first < moments.size:
            stretch = self._stretch(float(moments[first]))
            stop = bisect.bisect_left(moments, stretch.end, lo=first)
            found[first:stop] = stretch.number + _share(moments[first:stop], stretch)
            # Adding to the number must not round up to the next period.
            last = np.nextafter(stretch.number + 1.0, -np.inf)
            np.minimum(found[first:stop], last, out=found[first:stop])
            first = stop
        return found

    def _stretch(self, at: float) -> _Stretch:
        day, days = datetime.fromtimestamp(at, self.zone).date(), self._days.weekdays
        if days:
            weeks, weekday = divmod(day.toordinal() - _MONDAY, 7)
            number = weeks * len(days) + bisect.bisect_left(days, weekday)
        else:
            number = (day.year - 1970) * 12 + day.month - 1
        # The starts of the periods decide, whatever the local date says.
        while at < _start(self, number):
            number -= 1
        while at >= _start(self, number + 1):
            number += 1
        start, end = self.bounds(number)
        opens = start if self._days.closes is None else self._moment(number, self._days.opens)
        return _Stretch(number, start, opens, end)

    def _moment(self, number: int, at: time) -> float:
        """Return the moment of a time on the day of a period: the first one, or the working day."""
        days = self._days.weekdays
        if days:
            weeks, place = divmod(number, len(days))
            day = date.fromordinal(_MONDAY + 7 * weeks + days[place])
        else:
            year, month = divmod(number, 12)
            day = date(1970 + year, month + 1, 1)
        return datetime.combine(day, at, tzinfo=self.zone).timestamp()


@lru_cache(maxsize=4_096)
def _start(period: CalendarPeriod, number: int) -> float:
    """Return when a period starts; a working day starts when the one before it closes."""
    opens, closes = period._days.opens, period._days.closes
    return period._moment(number, opens) if closes is None else period._moment(number - 1, closes)


def _share(moments: Floats, stretch: _Stretch) -> Floats:
    if stretch.opens == stretch.start:
        return (moments - stretch.start) / (stretch.end - stretch.start)
    closed = (moments - stretch.start) / (stretch.opens - stretch.start)
    opened = (moments - stretch.opens) / (stretch.end - stretch.opens)
    return np.where(moments < stretch.opens, closed, 1 + opened) / 2


class _Days(NamedTuple):
    """Days of the week on which a period begins, none for months, or on which people work."""

    weekdays: tuple[int, ...]
    longest: float
    opens: time = time()
    closes: time | None = None


#: What a text such as "day Europe/Berlin" may begin with; else working days: "Mon-Fri 09:00-17:00".
_KINDS = {
    "day": _Days(tuple(range(7)), _DAY),
    "week": _Days((0,), 7 * _DAY),
    "month": _Days((), 31 * _DAY),
}


def _working_days(hours: str, text: str) -> _Days:
    match = _HOURS.fullmatch(hours)
    if match is None:
        raise ValueError(f"A period of a calendar is {_FORMS}; got {text!r}.")
    first, last = (_WEEKDAYS.index(name.lower()) for name in match.groups()[:2])
    try:
        opens, closes = time(int(match[3]), int(match[4])), time(int(match[5]), int(match[6]))
    except ValueError:
        raise ValueError(f"The hours of {text!r} are not times of a day, such as 09:00.") from None
    if first > last or opens >= closes:
        raise ValueError(f"{text!r} must name days and hours in their order, such as Mon-Fri.")
    return _Days(tuple(range(first, last + 1)), 7 * _DAY, opens, closes)


def _zone(name: str, text: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"The time zone {name!r} of the period {text!r} is not known here. Use a name such as "
            "Europe/Berlin or UTC. If the machine has no time zones, install tzdata."
        ) from None


def check_period(period: Any) -> float | str | None:
    """Return a period in seconds, or the text of one of a calendar; None stays None."""
    if period is None:
        return None
    if isinstance(period, str):
        return CalendarPeriod(period).text
    length = check_positive("period", period)
    if not 1e-6 <= length <= 1e12:
        raise ValueError(f"period must be a number of seconds from 1e-6 to 1e12; got {period!r}.")
    return length


def read_period(period: Any, *, starts_at: float = 0.0) -> FixedPeriod | CalendarPeriod:
    """Return the periods of a number of seconds, or of a text that CalendarPeriod accepts."""
    if isinstance(period, str):
        return CalendarPeriod(period)
    return FixedPeriod(float(period), float(starts_at))


# --- the time of a controller ---

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
