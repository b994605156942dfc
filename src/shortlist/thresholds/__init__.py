"""From scores to decisions: exact selection in a batch, and thresholds with a guarantee."""

from .._core.turnout import count_invitations
from .calibrate import calibrate_threshold
from .lists import Selection, select
from .promise import GUARANTEES
from .rules import Decisions
from .threshold import CalibratedThreshold

__all__ = [
    "GUARANTEES",
    "CalibratedThreshold",
    "Decisions",
    "Selection",
    "calibrate_threshold",
    "count_invitations",
    "select",
]
