"""Several rare classes, segments and a total: each with its own capacity, kept together."""

from ._capacities import JointCapacities
from ._classifier import MulticlassCapacityClassifier
from ._rule import JointDecisions, JointRule
from ._values import JointSample

__all__ = [
    "JointCapacities",
    "JointDecisions",
    "JointRule",
    "JointSample",
    "MulticlassCapacityClassifier",
]
