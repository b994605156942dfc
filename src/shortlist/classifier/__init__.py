"""One rare class: any model with scores, and a rule that keeps a capacity."""

from ._deciding import CapacityDecisionMixin
from ._wrapper import CapacityClassifier

__all__ = ["CapacityClassifier", "CapacityDecisionMixin"]
