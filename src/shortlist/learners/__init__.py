"""The paper's families of scores, with parameters that can be chosen for the capacity."""

from ._capacity_knn import CapacityKNeighborsClassifier
from ._choice import VoteSurface
from ._ensemble import CapacityEnsembleClassifier
from ._ensemble_fitting import watching_members
from ._ensemble_members import MEMBERS, SIZES
from ._kde import DENSITY_KERNELS, KernelDensityClassifier
from ._kernel_knn import KERNELS, KernelKNeighborsClassifier
from ._recipes import FAMILIES, PRESETS, make_learner
from ._trained import TrainedModel

__all__ = [
    "DENSITY_KERNELS",
    "FAMILIES",
    "KERNELS",
    "MEMBERS",
    "PRESETS",
    "SIZES",
    "CapacityEnsembleClassifier",
    "CapacityKNeighborsClassifier",
    "KernelDensityClassifier",
    "KernelKNeighborsClassifier",
    "TrainedModel",
    "VoteSurface",
    "make_learner",
    "watching_members",
]
