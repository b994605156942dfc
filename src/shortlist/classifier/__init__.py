"""One rare class: any model with scores, and a rule that keeps a capacity."""

from ._calibrating import calibrator_of, check_promise
from ._capacity_classifier import CapacityClassifier
from ._predicting import CapacityDecisionMixin

__all__ = ["CapacityClassifier", "CapacityDecisionMixin", "calibrator_of", "check_promise"]
