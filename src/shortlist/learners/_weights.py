"""Weights of nearest neighbours as in R's package kknn, and the votes they make.

Distances are divided by the distance of neighbour k + 1, so that the weights change with k; the
quotients are kept within [1e-6, 1 - 1e-6] and passed through a kernel (Hechenbichler and Schliep,
2004). The kernel "optimal" weighs ranks instead (Samworth, 2012).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["KERNELS", "rare_shares", "votes"]

#: Names of the kernels of :class:`KernelKNeighborsClassifier`.
KERNELS = ("rectangular", "triangular", "epanechnikov", "gaussian", "inv", "optimal")
_RECTANGULAR, _TRIANGULAR, _EPANECHNIKOV, _GAUSSIAN, _INV, _OPTIMAL = range(len(KERNELS))
_MARGIN = 1e-6

Floats = NDArray[np.float64]


def votes(
    distances: Floats,
    neighbors: NDArray[np.intp],
    *,
    n_classes: int,
    kernel: str,
    n_features: int,
) -> Floats:
    """Return the share of each class in the weights of the neighbours.

    Parameters
    ----------
    distances : ndarray of shape (n_items, k + 1)
        Distances in rising order; the last is the yardstick of the others.
    neighbors : ndarray of shape (n_items, k)
        Classes of the neighbours, as numbers from 0.
    n_classes : int
        Number of classes.
    kernel : str
        One of `KERNELS`.
    n_features : int
        Dimension of the space, for the kernel "optimal".
    """
    k = neighbors.shape[1]
    quantile, ranks = _quantile(k), _rank_weights(k, n_features)
    return _votes(distances, neighbors, n_classes, KERNELS.index(kernel), quantile, ranks)


def rare_shares(
    distances: Floats,
    is_rare: NDArray[np.bool_],
    *,
    n_neighbors: NDArray[np.intp],
    kernel: str,
    n_features: int,
) -> Floats:
    """Return the weighted share of rare neighbours for every k of `n_neighbors` at once.

    The arguments are those of the largest k, K: `distances` has K + 1 columns, `is_rare` K. Column
    j of the answer belongs to ``n_neighbors[j]``.
    """
    quantiles = np.array([_quantile(int(k)) for k in n_neighbors])
    ranks = np.zeros((len(n_neighbors), is_rare.shape[1]))
    if kernel == "optimal":
        for row, k in zip(ranks, n_neighbors, strict=True):
            row[:k] = _rank_weights(int(k), n_features)
    return _rare_shares(distances, is_rare, n_neighbors, KERNELS.index(kernel), quantiles, ranks)


def _quantile(k: int) -> float:
    """Return the yardstick in standard deviations: the farther, the more neighbours there are."""
    return float(abs(ndtri(1 / (2 * (k + 1)))))


def _rank_weights(k: int, n_features: int) -> Floats:
    """Return Samworth's optimal weights of the ranks 1 ... k in `n_features` dimensions."""
    power = 1 + 2 / n_features
    steps = np.diff(np.arange(k + 1.0) ** power)
    return (1 + n_features / 2 - n_features / (2 * k ** (2 / n_features)) * steps) / k


@njit(cache=True, nogil=True)
def _weight(kernel, quotient, quantile, rank_weight):
    if kernel == _OPTIMAL:
        return rank_weight
    u = min(max(quotient, _MARGIN), 1 - _MARGIN)
    if kernel == _TRIANGULAR:
        return 1 - u
    if kernel == _EPANECHNIKOV:
        return 0.75 * (1 - u * u)
    if kernel == _GAUSSIAN:
        return np.exp(-0.5 * (quantile * u) ** 2)  # constants cancel in the shares
    if kernel == _INV:
        return 1 / u
    return 1.0  # rectangular


@njit(cache=True, nogil=True)
def _votes(distances, neighbors, n_classes, kernel, quantile, ranks):
    n_items, k = neighbors.shape
    shares = np.zeros((n_items, n_classes))
    for i in range(n_items):
        yardstick = max(distances[i, k], _MARGIN)
        total = 0.0
        for j in range(k):
            weight = _weight(kernel, distances[i, j] / yardstick, quantile, ranks[j])
            shares[i, neighbors[i, j]] += weight
            total += weight
        shares[i] /= total
    return shares


@njit(cache=True, nogil=True)
def _rare_shares(distances, is_rare, n_neighbors, kernel, quantiles, ranks):
    n_items, largest = is_rare.shape
    shares = np.zeros((n_items, n_neighbors.size))
    for i in range(n_items):
        first = 0
        while first < largest and not is_rare[i, first]:
            first += 1
        for column in range(n_neighbors.size):
            k = n_neighbors[column]
            if k <= first:
                continue  # no rare neighbour among the first k
            yardstick = max(distances[i, k], _MARGIN)
            total = rare = 0.0
            for j in range(k):
                quotient = distances[i, j] / yardstick
                weight = _weight(kernel, quotient, quantiles[column], ranks[column, j])
                total += weight
                rare += weight * is_rare[i, j]
            shares[i, column] = rare / total
    return shares
