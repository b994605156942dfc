"""Saved state: plain JSON with a version, checked thoroughly when it is loaded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity
from ._scale import TailScale

if TYPE_CHECKING:
    from .controller import Controller

FORMAT = "shortlist.online"
VERSION = 5
_KEYS = {
    *("capacity", "options", "answers", "scale", "floats", "ints"),
    *("now", "n_items", "scheduled", "suspect", "arrivals"),
}


def to_plain(value: Any) -> Any:
    """Replace infinities by strings, because JSON has no number for them."""
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    return value


def from_plain(value: Any) -> Any:
    """Read what :func:`to_plain` returned."""
    if isinstance(value, dict):
        return {key: from_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [from_plain(each) for each in value]
    return float(value) if value in ("inf", "-inf") else value


def read_numbers(plain: Any, kind: type) -> NDArray[Any]:
    """Read a list of floats, or a list of ints, and nothing else."""
    values = np.array(from_plain(plain), dtype=np.float64 if kind is float else None)
    if values.size == 0:
        return values.astype(np.int64 if kind is int else np.float64)
    if kind is int and values.dtype.kind != "i":
        raise ValueError(f"whole numbers were expected; got {values.dtype}.")
    if np.isnan(values).any():
        raise ValueError("numbers were expected; got NaN.")
    return values.astype(np.int64 if kind is int else np.float64)


def check_state(state: Any, known: Iterable[str], keys: set[str]) -> None:
    """Raise an error unless this is a complete state of one of the known controllers."""
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            "state must be what a controller's state() returned: a dict with the format "
            f"{FORMAT!r}."
        )
    if state.get("version") != VERSION:
        raise ValueError(
            f"state has version {state.get('version')!r}, but this release reads version "
            f"{VERSION}. Load it with the release that wrote it, or start a new controller at the "
            "beginning of the next period."
        )
    if state.get("controller") not in set(known):
        raise ValueError(
            f"state belongs to a {state.get('controller')!r}; this class loads {sorted(known)}. "
            "Controller.from_state loads every kind."
        )
    if missing := keys - state.keys():
        raise ValueError(f"state is incomplete: {sorted(missing)} are missing.")


def save_controller(controller: Controller) -> dict[str, Any]:
    """Return everything that later decisions depend on, as plain JSON."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "controller": type(controller).__name__,
        "capacity": controller.capacity.to_json(),
        "options": to_plain(controller.options),
        **controller._time.state(),
        "answers": to_plain(controller._answers.to_list()),
        "scale": controller.scale.knots.tolist(),
        "floats": to_plain(controller.state_floats.tolist()),
        "ints": controller.state_ints.tolist(),
    }


def load_controller(kind: type[Controller], state: Any, clock: Any) -> Any:
    """Return the controller that was saved.

    A state may have been truncated, edited or mixed up. Its parts must fit together; otherwise a
    wrong number could flag more than the capacity.
    """
    known = {each.__name__: each for each in (kind, *_subclasses(kind))}
    check_state(state, known, _KEYS)
    try:
        controller = _rebuild(known[state["controller"]], state, clock)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ValueError(f"state cannot be read: {error}") from error
    if not controller.is_consistent():
        raise ValueError(
            "state contradicts itself: its numbers do not match its capacity and options. Load it "
            "exactly as state() returned it, and change a capacity with set_capacity."
        )
    return controller


def _rebuild(kind: type[Controller], state: dict[str, Any], clock: Any) -> Controller:
    scale = _read_scale(state["scale"])
    # The constructor checks the capacity and the options; then everything learned is put in.
    make: Any = kind
    made: Controller = make(
        Capacity.from_json(state["capacity"]),
        calibration_scores=scale.knots[0],
        clock=clock,
        **from_plain(state["options"]),
    )
    made.scale = scale
    made._time.load(state)
    for _, capacity in made._time.changes:
        made.check_capacity(capacity)
    made._answers.load(from_plain(state["answers"]))
    made.state_floats = read_numbers(state["floats"], float)
    made.state_ints = read_numbers(state["ints"], int)
    return made


def _read_scale(plain: Any) -> TailScale:
    knots = read_numbers(plain, float)
    if knots.ndim != 2 or knots.shape[0] != 2 or not np.all(np.isfinite(knots)):
        raise ValueError("its scale is not a table of scores and levels.")
    if np.any(np.diff(knots) <= 0):
        raise ValueError("its scale does not rise.")
    return TailScale(knots)


def _subclasses(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]
