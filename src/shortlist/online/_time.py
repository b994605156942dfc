"""Moments: seconds, or a datetime that is turned into them; and the periods they lie in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["check_times", "period_of", "periods_of", "seconds"]

_FARTHEST = 1e15  # thirty million years: what lies beyond is a mistake
_MOST_PERIODS = 9e15  # beyond 2**53 a float knows no neighbours


def seconds(at: Any) -> float:
    """Return a moment in seconds; a datetime without a time zone is taken as UTC."""
    if type(at) is float and -_FARTHEST <= at <= _FARTHEST:  # the common case, kept short
        return at
    if isinstance(at, (bool, np.bool_)) or not isinstance(
        at, (int, float, np.number, datetime, np.datetime64)
    ):
        raise TypeError(
            f"at must be seconds or a datetime; got {at!r} of type {type(at).__name__}."
        )
    moment = _to_float(at)
    if not -_FARTHEST <= moment <= _FARTHEST:  # NaT and NaN are neither
        raise ValueError(f"at must be a moment within {_FARTHEST:g} seconds; got {at!r}.")
    return moment


def _to_float(at: Any) -> float:
    if isinstance(at, datetime) and at == at:  # a missing time differs from itself
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if isinstance(at, np.datetime64) and not np.isnat(at):
        return float(at.astype("datetime64[us]").astype(np.int64)) / 1e6
    try:
        return float(at)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def check_times(at: Any, n: int) -> NDArray[np.float64]:
    """Return one moment in seconds per item; a single moment holds for all of them."""
    if np.ndim(at) == 0:
        return np.full(n, seconds(at[()] if isinstance(at, np.ndarray) else at))
    moments = np.asarray(at)
    if moments.shape != (n,):
        raise ValueError(f"at must hold one moment for each of {n} items; got {moments.shape}.")
    if moments.dtype.kind not in "fiu":
        return np.array([seconds(moment) for moment in moments], dtype=np.float64)
    moments = moments.astype(np.float64)
    if not np.all(np.abs(moments) <= _FARTHEST):
        raise ValueError(f"at must hold numbers of seconds within {_FARTHEST:g}, and no NaN.")
    return moments


@njit(cache=True)
def period_of(at: float, origin: float, length: float) -> int:
    """Return the number p of the period that a moment lies in: from origin + p * length on.

    A quotient may round up to the next whole number, and let an item into the budget of a period
    that has not begun. The starts of periods decide, not the quotient.
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
