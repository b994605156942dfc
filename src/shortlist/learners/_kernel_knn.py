"""`KernelKNeighborsClassifier`: nearest neighbours whose votes count by distance, as in R's kknn.

Distances are divided by the distance of neighbour k + 1, which makes the weights depend on k. The
quotients are kept within [1e-6, 1 - 1e-6] and passed through a kernel (Hechenbichler and Schliep,
2004). The kernel "optimal" weighs ranks instead (Samworth, 2012).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Doubles, Mask, Rows
from .._core.validation import check_count, check_option
from ._neighbors import ALGORITHMS, NeighborSearch, check_enough_rows

__all__ = ["KERNELS", "KernelKNeighborsClassifier", "NeighborVotesMixin", "rare_shares", "votes"]

#: Names of the kernels of :class:`KernelKNeighborsClassifier`.
KERNELS = ("rectangular", "triangular", "epanechnikov", "gaussian", "inv", "optimal")
_RECTANGULAR, _TRIANGULAR, _EPANECHNIKOV, _GAUSSIAN, _INV, _OPTIMAL = range(len(KERNELS))
_MARGIN = 1e-6  # least distance of a quotient from 0 and from 1
_MOST_NEIGHBORS = 1 << 22  # held in memory at once


class NeighborVotesMixin:
    """Votes of neighbours, for a classifier with the parameters `kernel`, `scale`, `algorithm`.

    A subclass sets `classes_`, passes training rows to `_remember`, and returns the number of
    neighbours that vote as `_n_voters`.
    """

    kernel: str
    scale: bool
    algorithm: str
    classes_: NDArray[Any]
    _neighbors: NeighborSearch
    _codes: Rows

    def predict_proba(self, X: Any) -> Doubles:
        """Return each class's share of the votes; a capacity does not change them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        k, shares = self._n_voters, np.empty((X.shape[0], self.classes_.size))
        # A batch of items at a time: memory stays small for any number of items.
        for items in gen_batches(X.shape[0], max(1, _MOST_NEIGHBORS // (k + 1))):
            distances, nearest = self._neighbors.query(X[items], k + 1)
            shares[items] = votes(
                distances,
                self._codes[nearest[:, :-1]],
                n_classes=self.classes_.size,
                kernel=self.kernel,
                n_features=X.shape[1],
            )
        return shares

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = self.algorithm != "approximate"
        return tags

    @property
    def _n_voters(self) -> int:
        raise NotImplementedError

    def _check_votes(self) -> None:
        check_option("kernel", self.kernel, KERNELS)
        check_option("algorithm", self.algorithm, ALGORITHMS)

    def _remember(self, X: Any, y: NDArray[Any]) -> None:
        """Store training rows in a form that is quick to search, and their classes."""
        self._codes = np.searchsorted(self.classes_, y)
        self._neighbors = NeighborSearch(X, scale=self.scale, algorithm=self.algorithm)


class KernelKNeighborsClassifier(NeighborVotesMixin, ClassifierMixin, BaseEstimator):
    r"""Classify by the weighted votes of nearest neighbours, with the weights of R's kknn.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours k that vote. One more is needed to scale the distances.
    kernel : str, default="gaussian"
        How the weight of a vote falls with the distance, one of `KERNELS`. "rectangular" gives all
        votes the same weight; "optimal" weighs them by rank; "triangular", "epanechnikov",
        "gaussian" and "inv" weigh them by distance.
    scale : bool, default=True
        Divide each feature by its standard deviation in the training data. Features that are
        constant there are left out.
    algorithm : {"auto", "brute", "tree", "approximate"}, default="auto"
        How neighbours are found. "auto" uses a tree for up to eight dense features, and otherwise
        compares items with every training row ("brute"). Both are exact. "approximate" is for
        millions of rows and needs the extra `neighbors`.

    Attributes
    ----------
    classes_ : ndarray
        Labels seen in `fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    CapacityKNeighborsClassifier : Chooses the number of neighbours for a capacity.

    Notes
    -----
    With distances :math:`d_1 \le \dots \le d_{k+1}`, the quotients :math:`u_i = d_i / d_{k+1}` are
    kept within :math:`[10^{-6}, 1 - 10^{-6}]`. The Gaussian kernel weighs by
    :math:`\varphi(u_i q)` with :math:`q = |\Phi^{-1}(1 / (2(k + 1)))|`.

    Examples
    --------
    Two neighbours vote; the nearer one has the larger weight:

    >>> from shortlist.learners import KernelKNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "b"]
    >>> model = KernelKNeighborsClassifier(2, kernel="triangular").fit(X, y)
    >>> model.predict_proba([[0.25]]).round(3).tolist()
    [[0.6, 0.4]]
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: str = "gaussian",
        scale: bool = True,
        algorithm: str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.scale = scale
        self.algorithm = algorithm

    def fit(self, X: Any, y: Any) -> Self:
        """Store the training data in a form that is quick to search.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,)
            Labels.

        Returns
        -------
        self
        """
        self._check_votes()
        k = check_count("n_neighbors", self.n_neighbors)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        check_enough_rows(k, X.shape[0])
        self.classes_ = np.unique(y)
        self._remember(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the most votes for each item; the first label wins ties.

        Takes `X` as :meth:`predict_proba` does.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    @property
    def _n_voters(self) -> int:
        return self.n_neighbors


def votes(
    distances: Doubles,
    neighbors: Rows,
    *,
    n_classes: int,
    kernel: str,
    n_features: int,
) -> Doubles:
    """Return the share of each class in the weights of the neighbours.

    Parameters
    ----------
    distances : ndarray of shape (n_items, k + 1)
        Distances in rising order; the last one scales the others.
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
    distances: Doubles,
    is_rare: Mask,
    *,
    n_neighbors: Rows,
    kernel: str,
    n_features: int,
) -> Doubles:
    """Return the weighted share of rare neighbours for every k of `n_neighbors` at once.

    The arguments are those for the largest k, K: `distances` has K + 1 columns, `is_rare` has K.
    Column j of the result belongs to ``n_neighbors[j]``.
    """
    quantiles = np.array([_quantile(int(k)) for k in n_neighbors])
    ranks = np.zeros((len(n_neighbors), is_rare.shape[1]))
    if kernel == "optimal":
        for row, k in zip(ranks, n_neighbors, strict=True):
            row[:k] = _rank_weights(int(k), n_features)
    return _rare_shares(distances, is_rare, n_neighbors, KERNELS.index(kernel), quantiles, ranks)


def _quantile(k: int) -> float:
    """Return how many standard deviations neighbour k + 1 counts as; it rises with k."""
    return float(abs(ndtri(1 / (2 * (k + 1)))))


def _rank_weights(k: int, n_features: int) -> Doubles:
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
        scale_distance = max(distances[i, k], _MARGIN)
        total = 0.0
        for j in range(k):
            weight = _weight(kernel, distances[i, j] / scale_distance, quantile, ranks[j])
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
            scale_distance = max(distances[i, k], _MARGIN)
            total = rare = 0.0
            for j in range(k):
                quotient = distances[i, j] / scale_distance
                weight = _weight(kernel, quotient, quantiles[column], ranks[column, j])
                total += weight
                rare += weight * is_rare[i, j]
            shares[i, column] = rare / total
    return shares
