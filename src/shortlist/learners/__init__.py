"""The paper's families of scores, with parameters that can be chosen for the capacity."""

from ._kernel_knn import KernelKNeighborsClassifier
from ._weights import KERNELS

__all__ = ["KERNELS", "KernelKNeighborsClassifier"]
