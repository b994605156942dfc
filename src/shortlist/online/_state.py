"""State as plain JSON: no infinities, no arrays, and a version."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity

__all__ = [
    "VERSION",
    "check_state",
    "pack",
    "pack_capacity",
    "read_numbers",
    "unpack",
    "unpack_capacity",
]

VERSION = 2


def pack(value: Any) -> Any:
    """Write infinities as texts, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {key: pack(each) for key, each in value.items()}
    if isinstance(value, list):
        return [pack(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    return value


def unpack(value: Any) -> Any:
    """Read what `pack` has written."""
    if isinstance(value, dict):
        return {key: unpack(each) for key, each in value.items()}
    if isinstance(value, list):
        return [unpack(each) for each in value]
    return float(value) if value in ("inf", "-inf") else value


def pack_capacity(capacity: Capacity) -> list[Any]:
    """Write a capacity as its unit, number and reference."""
    value = capacity.value
    return [capacity.kind, str(value) if isinstance(value, Fraction) else value, capacity.per]


def unpack_capacity(packed: list[Any]) -> Capacity:
    """Read what `pack_capacity` has written."""
    kind, value, per = packed
    return Capacity(kind, Fraction(value) if isinstance(value, str) else value, per)


def read_numbers(packed: Any, kind: type) -> NDArray[Any]:
    """Read a list of floats or of whole numbers, and nothing else."""
    values = np.array(unpack(packed), dtype=np.float64 if kind is float else None)
    if values.size == 0:
        return values.astype(np.int64 if kind is int else np.float64)
    if kind is int and values.dtype.kind != "i":
        raise ValueError(f"whole numbers were expected; got {values.dtype}.")
    if np.isnan(values).any():
        raise ValueError("numbers were expected; got NaN.")
    return values.astype(np.int64 if kind is int else np.float64)


def check_state(state: Any, known: Iterable[str], keys: set[str]) -> None:
    """Complain about anything that is not the state of one of the known controllers."""
    if not isinstance(state, dict) or state.get("format") != "shortlist.online":
        raise ValueError(
            "state must be what a controller's state() returned: a dict with the format "
            "'shortlist.online'."
        )
    if state.get("version") != VERSION:
        raise ValueError(
            f"state has version {state.get('version')!r}, and this release reads version "
            f"{VERSION}. Load it with the release that wrote it."
        )
    if state.get("controller") not in set(known):
        raise ValueError(
            f"state belongs to a {state.get('controller')!r}; here {sorted(known)} can be read. "
            "Controller.from_state reads all of them."
        )
    if missing := keys - state.keys():
        raise ValueError(f"state is incomplete: {sorted(missing)} are missing.")
