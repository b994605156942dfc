"""What are we missing? Probes below the cut, and what their outcomes say."""

from ._missed import ENOUGH_HITS, ChallengerResult, MissedEstimate, estimate_missed
from ._plan import ProbePlan, plan_probes

__all__ = [
    "ENOUGH_HITS",
    "ChallengerResult",
    "MissedEstimate",
    "ProbePlan",
    "estimate_missed",
    "plan_probes",
]
