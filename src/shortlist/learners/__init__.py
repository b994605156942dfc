"""The paper's families of scores, and the ensemble behind `shortlist fit`."""

from ._ensemble import CapacityEnsembleClassifier
from ._kde import KernelDensityClassifier
from ._kernel_knn import KernelKNeighborsClassifier
from .recipes import make_learner

__all__ = [
    "CapacityEnsembleClassifier",
    "KernelDensityClassifier",
    "KernelKNeighborsClassifier",
    "make_learner",
]
