"""The paper's families of scores, with parameters that can be chosen for the capacity."""

from ._capacity_knn import CapacityKNeighborsClassifier
from ._kde import KernelDensityClassifier
from ._kernel_knn import KernelKNeighborsClassifier
from ._log_density import DENSITY_KERNELS
from ._recipes import LEARNERS, PRESETS, make_learner
from ._surface import VoteSurface
from ._weights import KERNELS

__all__ = [
    "DENSITY_KERNELS",
    "KERNELS",
    "LEARNERS",
    "PRESETS",
    "CapacityKNeighborsClassifier",
    "KernelDensityClassifier",
    "KernelKNeighborsClassifier",
    "VoteSurface",
    "make_learner",
]
