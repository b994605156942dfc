"""Several rare classes, segments and a total: each with its own capacity, kept together."""

from ._classifier import MulticlassCapacityClassifier

__all__ = ["MulticlassCapacityClassifier"]
