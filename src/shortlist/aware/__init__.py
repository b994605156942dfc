"""Scores learned for a capacity, rather than only being cut at it."""

from ._boosting import CapacityAwareBoostingClassifier
from ._forest import CapacityAwareForestClassifier
from ._linear import CapacityAwareLinearClassifier
from ._network import CapacityAwareNetworkClassifier
from ._svc import CapacityAwareSVC

__all__ = [
    "CapacityAwareBoostingClassifier",
    "CapacityAwareForestClassifier",
    "CapacityAwareLinearClassifier",
    "CapacityAwareNetworkClassifier",
    "CapacityAwareSVC",
]
