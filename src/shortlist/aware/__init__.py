"""Models that learn for the capacity, rather than only being cut at it."""

from ._boosting import CapacityAwareBoostingClassifier
from ._forest import CapacityAwareForestClassifier
from ._linear import CapacityAwareLinearClassifier
from ._network import CapacityAwareNetworkClassifier
from ._svc import CapacityAwareSVC
from ._valued import ValueFound

__all__ = [
    "CapacityAwareBoostingClassifier",
    "CapacityAwareForestClassifier",
    "CapacityAwareLinearClassifier",
    "CapacityAwareNetworkClassifier",
    "CapacityAwareSVC",
    "ValueFound",
]
