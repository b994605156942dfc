"""Classification under capacity constraints.

Someone can follow up only so many cases. shortlist finds as many rare cases as the capacity allows,
keeps the number of flags within it, and says what more capacity would find.
"""

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

__version__ = "0.1.0"

__all__ = [
    "CalibratedThreshold",
    "Capacity",
    "CapacityClassifier",
    "CapacityCurve",
    "CapacityCurveDisplay",
    "MulticlassCapacityClassifier",
    "adjusted_detection_interval",
    "adjusted_detection_score",
    "assign",
    "calibrate_threshold",
    "capacity_curve",
    "capacity_scorer",
    "select",
]
