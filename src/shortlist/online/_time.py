"""Moments: seconds, or a datetime that is turned into them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_times", "seconds"]

_FARTHEST = 1e15  # thirty million years: what lies beyond is a mistake


def seconds(at: Any) -> float:
    """Return a moment in seconds; a datetime without a time zone is taken as UTC."""
    if type(at) is float and -_FARTHEST <= at <= _FARTHEST:  # the common case, kept short
        return at
    if isinstance(at, datetime):
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if isinstance(at, np.datetime64):
        if np.isnat(at):
            raise ValueError("at must be a moment; got NaT. Leave out items without a time.")
        return float(at.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(at, (bool, np.bool_)) or not isinstance(at, (int, float, np.number)):
        raise TypeError(
            f"at must be seconds or a datetime; got {at!r} of type {type(at).__name__}."
        )
    moment = float(at)
    if not -_FARTHEST <= moment <= _FARTHEST:
        raise ValueError(f"at must be a number of seconds within {_FARTHEST:g}; got {at!r}.")
    return moment


def check_times(at: Any, n: int) -> NDArray[np.float64]:
    """Return one moment in seconds per item; a single moment holds for all of them."""
    if np.ndim(at) == 0:
        return np.full(n, seconds(at[()] if isinstance(at, np.ndarray) else at))
    moments = np.asarray(at)
    if moments.shape != (n,):
        raise ValueError(f"at must hold one moment for each of {n} items; got {moments.shape}.")
    if moments.dtype.kind not in "fiu":
        return np.array([seconds(moment) for moment in moments])
    moments = moments.astype(np.float64)
    if not np.all(np.abs(moments) <= _FARTHEST):
        raise ValueError(f"at must hold numbers of seconds within {_FARTHEST:g}, and no NaN.")
    return moments
