"""Models that know the capacity while they learn, instead of only being cut at it."""

from ._linear import CapacityAwareLinearClassifier
from ._network import CapacityAwareNetworkClassifier
from ._svc import CapacityAwareSVC

__all__ = [
    "CapacityAwareLinearClassifier",
    "CapacityAwareNetworkClassifier",
    "CapacityAwareSVC",
]
