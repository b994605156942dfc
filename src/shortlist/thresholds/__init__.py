"""From scores to decisions: exact selection in a batch, and thresholds with a guarantee."""

from ._calibrate import GUARANTEES, TIES, calibrate_threshold
from ._calibrated import CalibratedThreshold
from ._select import select

__all__ = [
    "GUARANTEES",
    "TIES",
    "CalibratedThreshold",
    "calibrate_threshold",
    "select",
]
