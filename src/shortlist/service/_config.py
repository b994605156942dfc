"""The settings of a service."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._clock import SteadyClock
from ._follower import kernel_name

__all__ = ["ServiceConfig"]


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
        Seconds after which a case that cannot be decided is told so.
    most_bytes, most_model_bytes : int
        The largest body of a request, and of a model file.
    most_cases : int
        The largest number of cases in a request.
    rate : float
        Requests per second that one key, or one address without keys, may send to one worker.
    accept_clock : bool
        Whether the clock may be far ahead of the last decision.
    clock : SteadyClock
        The clock.
    kernel : str
        This version of the program.
    """

    database: str
    keys_required: bool = False
    patience: float = 5.0
    most_bytes: int = 4 << 20
    most_model_bytes: int = 256 << 20
    most_cases: int = 1_024
    rate: float = 10_000.0
    accept_clock: bool = False
    clock: SteadyClock = field(default_factory=SteadyClock)
    kernel: str = field(default_factory=kernel_name)
