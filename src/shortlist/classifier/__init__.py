"""One rare class: any model with scores, and a rule that keeps a capacity."""

from ._classifier import CapacityClassifier

__all__ = ["CapacityClassifier"]
