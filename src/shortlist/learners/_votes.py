"""`NeighborVotesMixin`: what both nearest-neighbour classifiers do with the votes of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.validation import check_option
from ._neighbors import ScaledNeighbors
from ._search import ALGORITHMS
from ._weights import KERNELS

__all__ = ["NeighborVotesMixin"]


class NeighborVotesMixin:
    """Votes of neighbours, for a classifier with the parameters `kernel`, `scale`, `algorithm`.

    A subclass sets `classes_`, hands training rows to `_remember`, and says in `_n_voters` how many
    neighbours vote.
    """

    kernel: str
    scale: bool
    algorithm: str
    classes_: NDArray[Any]
    _neighbors: ScaledNeighbors
    _codes: NDArray[np.intp]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
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
        return self._neighbors.votes(
            X, self._codes, k=self._n_voters, n_classes=self.classes_.size, kernel=self.kernel
        )

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
        self._neighbors = ScaledNeighbors(X, scale=self.scale, algorithm=self.algorithm)
