"""What are we missing? Probes below the cut, and what their outcomes say."""

from ._missed import MissedEstimate, estimate_missed
from ._plan import ProbePlan, plan_probes

__all__ = ["MissedEstimate", "ProbePlan", "estimate_missed", "plan_probes"]
