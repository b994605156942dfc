"""The adjusted detection rate M, detection-versus-capacity curves, and intervals for both."""

from ._curve import CapacityCurve, NeededCapacity, capacity_curve
from ._scorer import capacity_scorer, detection_at_capacity, out_of_fold_detection
from .detection import adjusted_detection_interval, adjusted_detection_score

__all__ = [
    "CapacityCurve",
    "NeededCapacity",
    "adjusted_detection_interval",
    "adjusted_detection_score",
    "capacity_curve",
    "capacity_scorer",
    "detection_at_capacity",
    "out_of_fold_detection",
]
