"""Moments in time, as seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FARTHEST = 1e15  # thirty million years; anything beyond is a mistake


def to_seconds(at: Any) -> float:
    """Return a moment in seconds; a datetime without a time zone is read as UTC."""
    if type(at) is float and -_FARTHEST <= at <= _FARTHEST:  # the common case comes first
        return at
    if isinstance(at, (bool, np.bool_)) or not isinstance(
        at, (int, float, np.number, datetime, np.datetime64)
    ):
        raise TypeError(
            f"at must be seconds or a datetime; got {at!r} of type {type(at).__name__}."
        )
    moment = _to_float(at)
    if not -_FARTHEST <= moment <= _FARTHEST:  # false for NaT and NaN, too
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


def parse_moment(text: str) -> float:
    """Return the seconds of a moment in ISO 8601, such as 2026-05-31T10:00:00Z."""
    try:
        return to_seconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r:.80} is not a moment. Use seconds, or a text such as 2026-05-31T10:00:00Z."
        ) from None


def check_moments(at: Any, n: int) -> NDArray[np.float64]:
    """Return one moment in seconds per item; a single moment applies to all items."""
    if np.ndim(at) == 0:
        return np.full(n, to_seconds(at[()] if isinstance(at, np.ndarray) else at))
    moments = np.asarray(at)
    if moments.shape != (n,):
        raise ValueError(f"at must hold one moment for each of {n} items; got {moments.shape}.")
    if moments.dtype.kind not in "fiu":
        return np.array([to_seconds(moment) for moment in moments], dtype=np.float64)
    moments = moments.astype(np.float64)
    if not np.all(np.abs(moments) <= _FARTHEST):
        raise ValueError(f"at must hold numbers of seconds within {_FARTHEST:g}, and no NaN.")
    return moments
