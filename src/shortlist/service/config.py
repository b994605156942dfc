"""The settings of a service, and its clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .._core.extras import load_extra
from .settings import build_name

__all__ = ["ClockError", "ServiceConfig", "SteadyClock", "check_extra"]

_PACKAGES = ("msgspec", "starlette", "uvicorn", "prometheus_client", "psycopg")


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
        limit: float = 60.0,
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
        Whether every request needs a key.
    patience : float
        Seconds before a case that cannot be decided is answered with 503.
    most_bytes, most_model_bytes : int
        The largest body of a request, and of a model file.
    most_cases : int
        The largest number of cases in a request.
    accept_clock : bool
        Whether the clock may be far ahead of the last decision.
    clock : SteadyClock
        The clock.
    build : str
        This version of the program.
    """

    database: str
    keys_required: bool = False
    patience: float = 5.0
    most_bytes: int = 4 << 20
    most_model_bytes: int = 256 << 20
    most_cases: int = 1_024
    accept_clock: bool = False
    clock: SteadyClock = field(default_factory=SteadyClock)
    build: str = field(default_factory=build_name)
