"""What are we missing? Probes below the cut, and what their outcomes say."""

from ._missed import MissedEstimate, estimate_missed
from ._reviews import MissedValue

__all__ = ["MissedEstimate", "MissedValue", "estimate_missed"]
