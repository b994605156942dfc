"""What are we missing? Probes below the cut, and what their outcomes say."""

from ._missed import MissedEstimate, MissedValue, estimate_missed

__all__ = ["MissedEstimate", "MissedValue", "estimate_missed"]
