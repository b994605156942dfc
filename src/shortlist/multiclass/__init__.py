"""Several rare classes, segments and a total: each with its own capacity, held together."""

from ._classifier import MulticlassCapacityClassifier

__all__ = ["MulticlassCapacityClassifier"]
