"""From a controller to its saved state, and back with suspicion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._state import (
    VERSION,
    check_state,
    pack,
    pack_capacity,
    read_numbers,
    unpack,
    unpack_capacity,
)
from ._time import seconds

if TYPE_CHECKING:
    from ._base import Controller

__all__ = ["load", "save"]

_KEYS = {"capacity", "options", "now", "n_items", "pending", "answers", "marks", "scale", "arrays"}


def save(controller: Controller) -> dict[str, Any]:
    """Return everything that later decisions depend on, as plain JSON."""
    marks = controller._marks
    return {
        "format": "shortlist.online",
        "version": VERSION,
        "controller": type(controller).__name__,
        "capacity": pack_capacity(controller._capacity),
        "options": pack(controller._options),
        "now": pack(controller._now),
        "n_items": controller._n_items,
        "pending": [[at, pack_capacity(change)] for at, change in controller._pending],
        "answers": pack(controller._answers.to_list()),
        "marks": None if marks is None else pack(marks.to_list()),
        "scale": controller._scale.tolist(),
        "arrays": {
            "real": pack(controller._real.tolist()),
            "whole": controller._whole.tolist(),
        },
    }


def load(kind: type[Controller], state: Any, clock: Any) -> Any:
    """Return the controller that was saved.

    A state may have been cut off, edited or mixed up on its way. What it says must fit together,
    or a number in it could flag more than the capacity.
    """
    known = {each.__name__: each for each in (kind, *_subclasses(kind))}
    check_state(state, known, _KEYS)
    try:
        made = _rebuild(known[state["controller"]], state, clock)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ValueError(f"state cannot be read: {error}") from error
    if not made._sound():
        raise ValueError(
            "state contradicts itself: its numbers do not belong to its capacity and options. "
            "Load it as state() returned it, and change a capacity with set_capacity."
        )
    return made


def _rebuild(kind: type[Controller], state: dict[str, Any], clock: Any) -> Any:
    scale = _read_scale(state["scale"])
    # The constructor checks capacity and options, and is then told what has happened since.
    made: Any = kind(
        unpack_capacity(state["capacity"]),
        calibration_scores=scale[0],
        clock=clock,
        **unpack(state["options"]),
    )
    made._scale = scale
    made._now = -math.inf if state["now"] == "-inf" else seconds(state["now"])
    made._n_items = _read_count(state["n_items"])
    made._pending = [(seconds(at), unpack_capacity(change)) for at, change in state["pending"]]
    for _, change in made._pending:
        made._check(change)
    if made._pending != sorted(made._pending, key=lambda pair: pair[0]):
        raise ValueError("its announcements are out of order.")
    made._answers.fill(unpack(state["answers"]))
    if made._marks is not None:
        made._marks.fill(unpack(state["marks"]))
    made._real = read_numbers(state["arrays"]["real"], float)
    made._whole = read_numbers(state["arrays"]["whole"], int)
    return made


def _read_count(n: Any) -> int:
    if type(n) is not int or n < 0:
        raise ValueError(f"n_items must be a whole number; got {n!r}.")
    return n


def _read_scale(packed: Any) -> NDArray[np.float64]:
    scale = read_numbers(packed, float)
    if scale.ndim != 2 or scale.shape[0] != 2 or not np.all(np.isfinite(scale)):
        raise ValueError("its scale is no table of scores and levels.")
    if np.any(np.diff(scale) <= 0):
        raise ValueError("its scale does not rise.")
    return scale


def _subclasses(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]
