"""How a queue decides and reads its cases, how a service runs, and its clock."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from .. import __version__
from .._core.arrays import Floats
from .._core.extras import load_extra
from ..capacity import Capacity, exact
from ..online import BudgetController, CalendarPeriod, EntityCases, PullController
from ..online.periods import FixedPeriod, read_period
from ._api import Problem

#: Work is counted in whole millionths, so that the database can add it up exactly.
WORK_UNITS = 10**6
#: Seconds that clocks may differ; more is refused or raises an alarm.
FAR_AHEAD = 60.0
_NO_LIMIT = 1 << 62
_FOREVER = 1e15  # seconds


class QueueSettings(NamedTuple):
    """How a queue decides; fixed when it is made, except for the capacity and the model.

    Attributes
    ----------
    period : float, str or None
        As for :class:`~shortlist.online.BudgetController`, like the next two. None means that
        the capacity is a share of all cases.
    expected_arrivals, starts_at
        A first estimate of the cases in a period, and a moment at which one starts.
    worth : float or None
        The least score for which a slot is used.
    usual_effort : float or None
        If given, the capacity is an amount of work, and this is how much a flagged case takes.
    probe, probe_key : float, str or None
        The share of the flags that is drawn below the threshold, and the key of the draw.
    is_capped : bool
        Whether the database itself limits the flags of each period.
    is_guarded : bool
        Whether moments come with the cases, so that the controller refuses those far ahead.
    id_fields : tuple of str
        The fields of a case that may hold its id, the first one first; whatever the model is.
    segment : str or None
        The column that names the segment of a case, which says who is able to review it.
    entity : str or None
        The field with the entity of an event; the events of one entity are one case.
    window, cooldown, rise
        As for :class:`~shortlist.online.EntityCases`.
    within : float or None
        If given, cases wait for so many seconds until somebody asks for them.
    """

    period: float | str | None
    expected_arrivals: float
    starts_at: float = 0.0
    worth: float | None = None
    usual_effort: float | None = None
    probe: float = 0.0
    probe_key: str | None = None
    is_capped: bool = True
    is_guarded: bool = False
    id_fields: tuple[str, ...] = ("id",)
    segment: str | None = None
    entity: str | None = None
    window: float = 86_400.0
    cooldown: float = 0.0
    rise: float | None = None
    within: float | None = None

    @staticmethod
    @lru_cache(maxsize=64)
    def from_json(text: str) -> QueueSettings:
        """Read what :meth:`to_json` wrote."""
        read = json.loads(text)
        return QueueSettings(**{**read, "id_fields": tuple(read["id_fields"])})

    def to_json(self) -> str:
        """Return the settings as text."""
        return json.dumps(self._asdict())

    @property
    def periods(self) -> FixedPeriod | CalendarPeriod:
        """The periods of the queue; without a period, one that never ends."""
        return _periods(self.period, self.starts_at)

    def entity_cases(self) -> EntityCases:
        """Return the rule for the events of an entity, with no case so far."""
        return EntityCases(window=self.window, cooldown=self.cooldown, rise=self.rise)

    @property
    def of_work(self) -> bool:
        """Whether the capacity is an amount of work rather than a number of flags."""
        return self.usual_effort is not None

    @property
    def unit(self) -> str:
        """The name of the capacity in requests: how many flags, or how much effort."""
        return "effort" if self.of_work else "count"

    def segment_of(self, columns: str | None) -> str | None:
        """Return the segment of a case, as text; its columns are JSON, or gone."""
        value = json.loads(columns or "{}").get(self.segment)
        return None if value is None else str(value)

    def amount(self, flags: int, work: int) -> float:
        """Return what counts of flags and of work, as the database counts them."""
        return work / WORK_UNITS if self.of_work else flags

    def capacity(self, body: dict[str, Any]) -> Capacity:
        """Return the capacity that an event of the log sets."""
        amount = body[self.unit]
        return Capacity.effort(amount) if self.of_work else Capacity.count(amount)

    def allowed_by(self, capacity: Capacity) -> int:
        """Return a capacity as the database counts it: flags, or millionths of work."""
        return _units_in(capacity.value, self.of_work) if self.is_capped else _NO_LIMIT


def build_name() -> str:
    """Return what decisions of this program depend on: versions, and the kind of machine."""
    import numba

    versions = f"NumPy {np.__version__}, numba {numba.__version__}"
    return f"shortlist {__version__}, {versions}, {platform.machine()}"


@lru_cache(maxsize=64)
def _units_in(amount: Any, of_work: bool) -> int:
    return int(exact(amount) * (WORK_UNITS if of_work else 1))


@lru_cache(maxsize=64)
def _periods(period: float | str | None, starts_at: float) -> FixedPeriod | CalendarPeriod:
    return read_period(_FOREVER if period is None else period, starts_at=starts_at)


def units_of(effort: float) -> int:
    """Return an effort in millionths, rounded up; decimals of up to six digits exactly."""
    whole = round(effort * WORK_UNITS)
    if whole / WORK_UNITS == effort:
        return whole
    return math.ceil(effort * WORK_UNITS * (1 + 1e-15))


def first_controller(
    settings: QueueSettings, capacity: float, calibration: Floats
) -> BudgetController:
    """Return the controller with which a queue begins."""
    kind = BudgetController if settings.within is None else PullController
    return kind(
        settings.capacity({settings.unit: capacity}),
        calibration_scores=calibration,
        period=settings.period,
        expected_arrivals=max(1, round(settings.expected_arrivals)),
        starts_at=settings.starts_at,
        probe=settings.probe,
        probe_key=settings.probe_key,
        expected_effort=settings.usual_effort,
        remember=1,
        **({} if settings.within is None else {"patience": settings.within}),
    )


# --- how a service runs ---------------------------------------------------------------------------

_PACKAGES = ("msgspec", "uvicorn", "psycopg")


def check_extra() -> None:
    """Raise an error that names the extra, unless everything that a service needs is installed."""
    for package in _PACKAGES:
        load_extra(package, needed_for="The decision service")


class ClockError(Exception):
    """The clock has jumped ahead; nothing is decided until it is right or somebody accepts it."""


def _since_boot() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # also runs while suspended
    return time.clock_gettime(clock)


class SteadyClock:
    """The wall clock, compared with a clock that nobody can set.

    A step ahead of more than `limit` seconds since this object was made is refused. A step back is
    harmless, because time never runs backwards in the log of a queue.

    Parameters
    ----------
    limit : float, default=60
        Seconds.
    wall, steady : callable
        The two clocks.
    """

    def __init__(
        self,
        limit: float = FAR_AHEAD,
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _since_boot,
    ) -> None:
        self.limit, self._wall, self._steady = limit, wall, steady
        self._offset = wall() - steady()

    def read(self, *, witness: float | None = None) -> float:
        """Return the present moment; `witness` is the same moment by the database's clock."""
        now = self._wall()
        expected = self._offset + self._steady() if witness is None else witness
        if now - expected > self.limit:
            raise ClockError(
                f"The clock is {now - expected:,.0f} seconds ahead of "
                f"{'where it was set' if witness is None else 'the database'}. Nothing is decided "
                "until it is right. If it was wrong before, start the service again."
            )
        return now


@dataclass(frozen=True)
class ServiceConfig:
    """How a service runs.

    Attributes
    ----------
    database : str
        A file for SQLite, or the address of a PostgreSQL database.
    keys_required : bool
        Whether every request needs a key, also before there is one.
    proxy_secret : bytes or None
        What a proxy sends that vouches for the names of persons; then every request needs a key or
        such a name.
    patience : float
        Seconds before a case that cannot be decided is answered with 503.
    accept_clock : bool
        Whether the clock may be far ahead of the last decision.
    clock : SteadyClock
        The clock.
    build : str
        This version of the program.
    webhook : tuple of str or None
        The address to which flags, assignments and alarms are sent, and the secret that signs them.
    """

    database: str
    keys_required: bool = False
    proxy_secret: bytes | None = field(default=None, repr=False)
    patience: float = 5.0
    accept_clock: bool = False
    clock: SteadyClock = field(default_factory=SteadyClock)
    build: str = field(default_factory=build_name)
    webhook: tuple[str, str] | None = field(default=None, repr=False)


# --- what a case says about itself ---------------------------------------------------------------

_SORTED = msgspec.json.Encoder(order="deterministic")
LONGEST_ID = 200


def entity_of(fields: Any, name: str | None) -> str | None:
    """Return the entity of an event, or raise a problem; None if the queue has none."""
    return None if name is None else id_of(fields, (name,), "an entity")


def id_of(fields: Any, names: tuple[str, ...], what: str = "an id") -> str:
    """Return the id of a case, or raise a problem."""
    if not isinstance(fields, dict):
        detail = f"A case must be an object with its columns; got {fields!r:.80}."
        raise Problem(400, "invalid-json", detail)
    given = next((fields[name] for name in names if name in fields), None)
    plain = _plain(given)
    case = str(plain) if type(plain) is int else plain
    if not isinstance(case, str) or not 0 < len(case) <= LONGEST_ID or not case.isprintable():
        raise Problem(
            422,
            "invalid-case",
            f"A case needs {what} in the field {names[0] if names else 'id'!r}: a text of up to "
            f"{LONGEST_ID} printable characters, or a whole number; got {given!r:.80}.",
        )
    return case


def digest_of(fields: dict[str, Any]) -> bytes:
    """Return what tells a case from one with other columns."""
    try:
        return hashlib.blake2b(_SORTED.encode(_plain(fields)), digest_size=16).digest()
    except RecursionError:
        raise Problem(422, "invalid-case", "The columns of a case are nested too deeply.") from None


def _plain(value: Any) -> Any:
    """Return a value with 1.0 as 1, also within: programs differ in how they write numbers."""
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
    if type(value) is dict:
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if type(value) is list else value
