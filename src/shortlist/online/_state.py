"""Saved state: plain JSON with a version and a digest, by which a damaged state is refused."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity
from ._scale import TailScale

if TYPE_CHECKING:
    from .controller import Controller

#: The format and its version.
FORMAT = ("shortlist.online", 6)


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


def save_controller(controller: Controller) -> dict[str, Any]:
    """Return everything that later decisions depend on, as plain JSON."""
    parts, arrays = _parts(controller)
    plain = {name: to_plain(array.tolist()) for name, array in arrays.items()}
    return {**parts, **plain, "digest": _digest(parts, arrays)}


def _parts(controller: Controller) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return plain parts and arrays."""
    parts = {
        "format": FORMAT[0],
        "version": FORMAT[1],
        "controller": type(controller).__name__,
        "capacity": controller.capacity.to_json(),
        "options": to_plain(controller.options),
        **controller._time.state(),
        "answers": to_plain(controller._answers.to_list()),
    }
    floats, ints = controller.state_floats, controller.state_ints
    return parts, {"scale": controller.scale.knots, "floats": floats, "ints": ints}


def _digest(parts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
    for array in arrays.values():
        digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()


def load_controller(kind: type[Controller], state: Any, clock: Any) -> Any:
    """Return the controller that was saved.

    A state may have been truncated, edited or mixed up, and a wrong number could flag more than the
    capacity. Therefore saving the loaded controller must lead to the same digest.
    """
    if not isinstance(state, dict) or (state.get("format"), state.get("version")) != FORMAT:
        raise ValueError(
            "state must be what state() of a controller returned, in the format and version "
            f"{FORMAT} that this release reads. Load an older one with the release that wrote it, "
            "or start a new controller at the beginning of the next period."
        )
    known = {each.__name__: each for each in (kind, *_subclasses(kind))}
    if state.get("controller") not in known:
        raise ValueError(
            f"state belongs to a {state.get('controller')!r}; this class loads {sorted(known)}. "
            "Controller.from_state loads every kind."
        )
    try:
        controller = _rebuild(known[state["controller"]], state, clock)
        digest = _digest(*_parts(controller))
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError) as error:
        raise ValueError(f"state cannot be read: {type(error).__name__}: {error}") from error
    if digest != state.get("digest"):
        raise ValueError(
            "state contradicts itself: it is not what state() returned. Load it unchanged, and "
            "change a capacity with set_capacity."
        )
    # Compiled functions check no index, and whoever edits a state can compute its digest again.
    knots, floats, ints = controller.scale.knots, controller.state_floats, controller.state_ints
    are_plain = knots.ndim == 2 and len(knots) == 2 and floats.ndim == ints.ndim == 1
    if not are_plain or np.isnan(floats).any() or not controller.is_sound():
        raise ValueError("state has lengths or places that no controller has; it was not returned.")
    return controller


def _rebuild(kind: type[Controller], state: dict[str, Any], clock: Any) -> Controller:
    knots = np.array(state["scale"], dtype=np.float64)
    # The constructor checks the capacity and the options; then everything learned is put in.
    make: Any = kind
    made: Controller = make(
        Capacity.from_json(state["capacity"]),
        calibration_scores=knots[0],
        clock=clock,
        **from_plain(state["options"]),
    )
    made.scale = TailScale(knots)
    made._time.load(state)
    made._answers.load(from_plain(state["answers"]))
    made.state_floats = np.array(from_plain(state["floats"]), dtype=np.float64)
    made.state_ints = np.array(state["ints"], dtype=np.int64)
    return made


def _subclasses(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]
