"""`KernelKNeighborsClassifier`: nearest neighbours whose votes count by distance, as in R's kknn.

Distances are divided by the distance of neighbour k + 1, which makes the weights depend on k. The
quotients are kept within [1e-6, 1 - 1e-6] and passed through a kernel (Hechenbichler and Schliep,
2004).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Doubles, Mask, Rows
from .._core.documented import DocumentedMixin
from .._core.labels import find_rare, rare_share
from .._core.validation import check_count, check_option
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..metrics import detection_at_capacity

TIE_BREAKS = ("smallest", "largest")

_MARGIN = 1e-6  # least distance of a quotient from 0 and from 1
_SPARE = 4  # candidates beyond those requested, among which near ties are settled exactly
_MOST_NUMBERS = 1 << 22  # held in memory at once


@dataclass(eq=False, repr=False)
class KernelKNeighborsClassifier(DocumentedMixin, ClassifierMixin, BaseEstimator):
    r"""Classify by the weighted votes of nearest neighbours, with the weights of R's kknn.

    Parameters
    ----------
    n_neighbors : int or sequence of int, default=5
        Number of neighbours k that vote; one more is needed to scale the distances. Of several
        numbers, the one is used that detects the most rare items of the training data within the
        capacity, each scored by its neighbours among the others.
    capacity : Capacity, default=None
        How many items can be followed up, to choose among several numbers of neighbours. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    tie_break : {"smallest", "largest"}, default="largest"
        Which k to take when several detect equally many rare items. The largest gives the smoothest
        scores, and the fewest ties at a threshold.
    rare_label : label, default=None
        The label to find, to choose among several numbers; `None` takes the rarest in `y`.

    Attributes
    ----------
    n_neighbors_ : int
        The number of neighbours in use.
    detections_ : ndarray
        If there were several numbers: the share of rare items that each of them detects.
    classes_ : ndarray
        Labels seen in `fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Each feature is divided by its standard deviation in the training data; features that are
    constant there are left out. With distances :math:`d_1 \le \dots \le d_{k+1}`, the quotients
    :math:`u_i = d_i / d_{k+1}` are kept within :math:`[10^{-6}, 1 - 10^{-6}]`. The Gaussian kernel
    weighs by :math:`\varphi(u_i q)` with :math:`q = |\Phi^{-1}(1 / (2(k + 1)))|`.

    The paper weighs a rare vote by :math:`a_0` and a common one by :math:`1 - a_0`. An item is then
    flagged when the share of rare votes exceeds :math:`1 - a_0`, which is the threshold that
    :class:`~shortlist.CapacityClassifier` finds.

    Examples
    --------
    Two neighbours vote; the nearer one has the larger weight:

    >>> from shortlist.learners import KernelKNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "b"]
    >>> model = KernelKNeighborsClassifier(2).fit(X, y)
    >>> model.predict_proba([[0.25]]).round(3).tolist()
    [[0.519, 0.481]]

    The number of neighbours, chosen for a capacity:

    >>> from shortlist import Capacity
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(4_000, prevalence=0.02)
    >>> model = KernelKNeighborsClassifier(range(1, 51), capacity=Capacity.multiple(2)).fit(X, y)
    >>> bool(model.detections_[model.n_neighbors_ - 1] == model.detections_.max())
    True
    """

    n_neighbors: Any = 5
    _: KW_ONLY
    capacity: Capacity | None = None
    tie_break: str = "largest"
    rare_label: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Store the training data, and choose the number of neighbours if there are several.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,)
            Labels.

        Returns
        -------
        self
        """
        check_option("tie_break", self.tie_break, TIE_BREAKS)
        candidates = candidate_numbers(self.n_neighbors)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        is_chosen = candidates.size > 1
        check_enough_rows(int(candidates[-1]), X.shape[0], is_chosen=is_chosen)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self._factors = scale_factors(X)
        # Moving all points changes no distance, and near the origin less is lost by rounding.
        self._center = X.mean(axis=0)
        self._train = self._scaled(X)
        self._search = NearestNeighbors(algorithm="brute").fit(self._train)
        self.n_neighbors_ = self._choose(candidates, y) if is_chosen else int(candidates[0])
        return self

    def _choose(self, candidates: Rows, y: NDArray[Any]) -> int:
        """Return the number of neighbours that detects the most among the training items."""
        if self.capacity is None:
            raise CapacityError(
                "Of several n_neighbors, one is chosen for a capacity, and there is none. Pass "
                "capacity=Capacity.fraction(0.02), say, or fit this inside CapacityClassifier(..., "
                "capacity=...), which hands its own capacity on."
            )
        is_rare, _ = find_rare(y, self.rare_label, on_tie="warn")
        limit = Capacity.fraction(check_capacity(self.capacity).as_ratio(rare_share(is_rare)))
        found = self._nearest(None, int(candidates[-1]) + 1)
        shares = shares_by_k(*found, is_rare, candidates)
        self.detections_ = np.array(
            [detection_at_capacity(is_rare, column, limit) for column in shares.T]
        )
        best = candidates[self.detections_ == self.detections_.max()]
        return int(best[0] if self.tie_break == "smallest" else best[-1])

    def predict_proba(self, X: Any) -> Doubles:
        """Return each class's share of the votes.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        distances, rows = self._nearest(self._scaled(X), self.n_neighbors_ + 1)
        weights = vote_weights(distances)
        votes = self._codes[rows[:, :-1]]
        sums = [(weights * (votes == code)).sum(axis=1) for code in range(self.classes_.size)]
        return np.column_stack(sums) / weights.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the most votes for each item; the first label wins ties.

        Takes `X` as :meth:`predict_proba` does.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def _scaled(self, X: Doubles) -> Doubles:
        return (X - self._center) * self._factors

    def _nearest(self, X: Any, k: int) -> tuple[Doubles, Rows]:
        """Return distances and rows of the `k` nearest training rows, the nearest first.

        `None` asks for the neighbours of each training row among the others. scikit-learn compares
        rows by a product of matrices, whose rounding depends on the batch. The distances of its
        candidates are therefore computed again; equal ones go by row number.
        """
        n_rows, n_features = self._train.shape
        wanted = min(k + _SPARE, n_rows - (X is None))
        distances, rows = self._search.kneighbors(X, wanted)
        X = self._train if X is None else X
        for items in gen_batches(len(X), max(1, _MOST_NUMBERS // (wanted * n_features))):
            gaps = X[items, np.newaxis] - self._train[rows[items]]
            distances[items] = np.sqrt((gaps**2).sum(axis=2))
        order = np.lexsort((rows, distances))[:, :k]
        return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def candidate_numbers(n_neighbors: Any) -> Rows:
    """Return the numbers of neighbours to choose from, in rising order."""
    if not isinstance(n_neighbors, Iterable) or isinstance(n_neighbors, str):
        return np.array([check_count("n_neighbors", n_neighbors)], dtype=np.intp)
    listed = [check_count("Each of n_neighbors", k) for k in n_neighbors]
    if not listed:
        raise ValueError("n_neighbors must list at least one number of neighbours; got none.")
    return np.unique(np.array(listed, dtype=np.intp))


def check_enough_rows(k: int, n_rows: int, *, is_chosen: bool) -> None:
    """Raise an error when there is no neighbour k + 1, whose distance scales the others."""
    needed = k + 1 + is_chosen  # to choose, a training row has its neighbours among the others
    if n_rows < needed:
        raise ValueError(
            f"n_neighbors={k} needs at least {needed} training rows, because the distance of "
            f"neighbour k + 1 scales weights; got n_samples = {n_rows}. Use a smaller n_neighbors."
        )


def scale_factors(X: Doubles) -> Doubles:
    """Return 1 / standard deviation (n - 1 in its denominator), and 0 for a constant feature."""
    deviations = X.std(axis=0) * np.sqrt(len(X) / max(len(X) - 1, 1))
    # Rounding leaves a constant feature with a tiny deviation, which must not become a huge factor.
    constant = deviations <= 1e-12 * np.abs(X).max(axis=0)
    return np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviations))


def vote_weights(distances: Doubles) -> Doubles:
    """Return the weights of the votes of all neighbours but the last, which scales the others."""
    k = distances.shape[1] - 1
    quotients = distances[:, :-1] / np.maximum(distances[:, -1:], _MARGIN)
    scaled = ndtri(1 / (2 * (k + 1))) * np.clip(quotients, _MARGIN, 1 - _MARGIN)
    return np.exp(-0.5 * scaled**2)


def shares_by_k(distances: Doubles, rows: Rows, is_rare: Mask, numbers: Rows) -> Doubles:
    """Return the weighted share of rare neighbours, with a column for each of the numbers."""
    shares = np.empty((len(rows), numbers.size))
    for column, k in enumerate(numbers):
        weights = vote_weights(distances[:, : k + 1])
        shares[:, column] = (weights * is_rare[rows[:, :k]]).sum(axis=1) / weights.sum(axis=1)
    return shares
