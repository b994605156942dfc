"""Saved state: plain JSON with a version and a digest, by which a damaged state is refused."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity
from ._scale import TailScale

if TYPE_CHECKING:
    from .controller import Controller

#: The format and its version.
FORMAT = ("shortlist.online", 7)


def save_controller(controller: Controller) -> dict[str, Any]:
    """Return everything that later decisions depend on, as plain JSON."""
    parts = {
        "format": FORMAT[0],
        "version": FORMAT[1],
        "controller": type(controller).__name__,
        "capacity": controller.capacity.to_json(),
        "options": controller.options,
        **controller._time.state(),
        "answers": controller._answers.to_list(),
        "scale": _to_text(controller.scale.knots),
        "floats": _to_text(controller.state_floats),
        "ints": _to_text(controller.state_ints),
    }
    digest = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
    return {**parts, "digest": digest.hexdigest()}


def _to_text(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _from_text(text: str, kind: type[np.generic]) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), kind).copy()


def load_controller(kind: type[Controller], state: Any) -> Any:
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
        controller = _rebuild(known[state["controller"]], state)
        digest = save_controller(controller)["digest"]
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError) as error:
        raise ValueError(f"state cannot be read: {type(error).__name__}: {error}") from error
    if digest != state.get("digest"):
        raise ValueError(
            "state contradicts itself: it is not what state() returned. Load it unchanged, and "
            "change a capacity with set_capacity."
        )
    # Compiled functions check no index, and whoever edits a state can compute its digest again.
    if np.isnan(controller.state_floats).any() or not controller.is_sound():
        raise ValueError("state has lengths or places that no controller has; it was not returned.")
    return controller


def _rebuild(kind: type[Controller], state: dict[str, Any]) -> Controller:
    knots = _from_text(state["scale"], np.float64).reshape(2, -1)
    # The constructor checks the capacity and the options; then everything learned is put in.
    capacity = Capacity.from_json(state["capacity"])
    made = kind(capacity, calibration_scores=knots[0], **state["options"])
    made.scale = TailScale(knots)
    made._time.load(state)
    made._answers.load(state["answers"])
    made.state_floats = _from_text(state["floats"], np.float64)
    made.state_ints = _from_text(state["ints"], np.int64)
    return made


def _subclasses(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]
