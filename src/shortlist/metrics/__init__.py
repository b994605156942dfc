"""The adjusted detection rate M, detection-versus-capacity curves, and intervals for both."""

from ._adjusted import (
    adjusted_detection_interval,
    adjusted_detection_of_counts,
    adjusted_detection_score,
)
from ._curve import CapacityCurve, capacity_curve, curve_of_counts
from ._out_of_fold import OutOfFoldDetection, out_of_fold_detection
from ._passes import CountedCurves, Ranking
from ._scorer import CapacityScorer, capacity_scorer, detection_at_capacity

__all__ = [
    "CapacityCurve",
    "CapacityScorer",
    "CountedCurves",
    "OutOfFoldDetection",
    "Ranking",
    "adjusted_detection_interval",
    "adjusted_detection_of_counts",
    "adjusted_detection_score",
    "capacity_curve",
    "capacity_scorer",
    "curve_of_counts",
    "detection_at_capacity",
    "out_of_fold_detection",
]
