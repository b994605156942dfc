"""`KernelKNeighborsClassifier`: nearest neighbours that count by distance, as in R's kknn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._neighbors import check_enough_rows, check_n_neighbors
from ._votes import NeighborVotesMixin

__all__ = ["KernelKNeighborsClassifier"]


class KernelKNeighborsClassifier(NeighborVotesMixin, ClassifierMixin, BaseEstimator):
    r"""Classify by the weighted votes of nearest neighbours, with the weights of R's kknn.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours k that vote. One more is needed, to scale the distances.
    kernel : str, default="gaussian"
        How a vote falls with the distance, one of `KERNELS`: "rectangular" counts all alike,
        "optimal" weighs by rank; "triangular", "epanechnikov", "gaussian" and "inv" lie between.
    scale : bool, default=True
        Divide each feature by its standard deviation in the training data. A feature that is
        constant there is left out.
    algorithm : {"auto", "brute", "tree", "approximate"}, default="auto"
        How neighbours are found. "auto" takes a tree for up to eight dense features, and compares
        with every row otherwise; both are exact. "approximate" is for millions of rows, and
        needs the extra `neighbors`.

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
    Two neighbours vote; the nearer one has more to say:

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
        k = check_n_neighbors("n_neighbors", self.n_neighbors)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        check_enough_rows(k, X.shape[0])
        self.classes_ = np.unique(y)
        self._remember(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with most votes; of equal ones, the first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    @property
    def _n_voters(self) -> int:
        return self.n_neighbors
