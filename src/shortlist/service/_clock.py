"""The clock of a service, and when not to believe it."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["ClockError", "SteadyClock"]


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
