"""Classification under capacity constraints.

You can follow up only so many cases. shortlist finds as many rare cases as your capacity allows,
keeps the number of flags within it, and shows what more capacity would find.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assignment import assign
    from .capacity import Capacity
    from .classifier import CapacityClassifier
    from .metrics import (
        CapacityCurve,
        adjusted_detection_interval,
        adjusted_detection_score,
        capacity_curve,
        capacity_scorer,
    )
    from .multiclass import MulticlassCapacityClassifier
    from .plots import CapacityCurveDisplay
    from .thresholds import CalibratedThreshold, calibrate_threshold, select
    from .worth import Worth

__version__ = "0.1.0"

__all__ = [
    "CalibratedThreshold",
    "Capacity",
    "CapacityClassifier",
    "CapacityCurve",
    "CapacityCurveDisplay",
    "MulticlassCapacityClassifier",
    "Worth",
    "adjusted_detection_interval",
    "adjusted_detection_score",
    "assign",
    "calibrate_threshold",
    "capacity_curve",
    "capacity_scorer",
    "select",
]

_ROOMS = {
    "assignment": "assign",
    "capacity": "Capacity",
    "classifier": "CapacityClassifier",
    "metrics": "CapacityCurve adjusted_detection_interval adjusted_detection_score capacity_curve "
    "capacity_scorer",
    "multiclass": "MulticlassCapacityClassifier",
    "plots": "CapacityCurveDisplay",
    "thresholds": "CalibratedThreshold calibrate_threshold select",
    "worth": "Worth",
}
_DEFINED_IN = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import public names and modules when they are first used, to keep `import shortlist` fast."""
    if name in _DEFINED_IN:
        globals()[name] = value = getattr(import_module(f".{_DEFINED_IN[name]}", __name__), name)
        return value
    if name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


@cache
def _modules() -> set[str]:
    return {each.name for each in iter_modules(__path__) if not each.name.startswith("_")}


def __dir__() -> list[str]:
    return sorted({*globals(), *_DEFINED_IN, *_modules()})
