"""`KernelDensityClassifier`: the ratio of two estimated densities.

scikit-learn's `KernelDensity` is not precise far from the data: 100 bandwidths away, or with 23
features, its logarithms are far off. The kernels are therefore added up here.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Doubles
from .._core.documented import DocumentedMixin
from .._core.validation import check_positive

_MOST_NUMBERS = 1 << 20  # held in memory at once


@dataclass(eq=False, repr=False)
class KernelDensityClassifier(DocumentedMixin, ClassifierMixin, BaseEstimator):
    r"""Classify by Gaussian kernel density estimates of each class.

    With two classes, `decision_function` is :math:`\log \hat f_1 - \log \hat f_0` plus the log
    ratio of the priors, which does not change a ranking. It is computed in logarithms throughout:
    points far from all data are still ranked.

    Parameters
    ----------
    bandwidth : "scott" or float, default="scott"
        Width of the kernel: Scott's rule of thumb, applied to each class and feature with its
        standard deviation and the number of items; or a number, in the units of the features.
    factor : float, default=1.0
        Multiplies the bandwidth. Tune it with :func:`~shortlist.capacity_scorer`.

    Attributes
    ----------
    classes_ : ndarray
        Labels seen in `fit`.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Bandwidths in use.
    priors_ : ndarray of shape (n_classes,)
        Shares of the classes in `fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    There is no `predict_proba`: probabilities round to 0 and 1 far from the data, where
    `decision_function` still tells items apart.

    Where a feature is constant within a class, the rule of thumb takes the standard deviation of
    all items.

    Examples
    --------
    Ten thousand bandwidths away, the nearer class still leads:

    >>> import numpy as np
    >>> from shortlist.learners import KernelDensityClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [6.0]], ["a", "a", "b", "b"]
    >>> model = KernelDensityClassifier(bandwidth=1.0).fit(X, y)
    >>> model.predict([[-1e4], [1e4]]).tolist()
    ['a', 'b']
    >>> bool(np.isfinite(model.decision_function([[1e4]])).all())
    True
    """

    bandwidth: Any = "scott"
    _: KW_ONLY
    factor: float = 1.0

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the density of each class.

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
        check_positive("factor", self.factor)
        if not isinstance(self.bandwidth, str):
            check_positive("bandwidth", self.bandwidth)
        elif self.bandwidth != "scott":
            raise ValueError(
                f"bandwidth must be 'scott' or a positive number; got {self.bandwidth!r}."
            )
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} compares the densities of two classes or more; got only "
                f"one class, {self.classes_.tolist()}. In cross-validation, use stratified folds."
            )
        groups = [X[codes == code] for code in range(self.classes_.size)]
        self.priors_ = np.bincount(codes) / len(X)
        widths = [self._bandwidth(each, X) for each in groups]
        self.bandwidths_ = self.factor * np.array(widths)
        self._densities = [
            LogDensity(group, bandwidth)
            for group, bandwidth in zip(groups, self.bandwidths_, strict=True)
        ]
        return self

    def decision_function(self, X: Any) -> Doubles:
        """Return the logarithm of the odds of each class against all others.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_classes)
            For two classes, the log odds of ``classes_[1]``.
        """
        joint = self._joint_log_likelihood(X)
        if self.classes_.size == 2:
            return joint[:, 1] - joint[:, 0]
        others = [logsumexp(np.delete(joint, c, axis=1), axis=1) for c in range(joint.shape[1])]
        return joint - np.column_stack(others)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the most likely class of each item.

        Takes `X` as :meth:`decision_function` does.
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return self.classes_[(decision > 0).astype(np.intp)]
        return self.classes_[np.argmax(decision, axis=1)]

    def _joint_log_likelihood(self, X: Any) -> Doubles:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        logs = np.column_stack([density(X) for density in self._densities])
        return logs + np.log(self.priors_)

    def _bandwidth(self, group: Doubles, X: Doubles) -> Doubles:
        """Return one bandwidth for each feature, by Scott's rule unless a number is given."""
        n, n_features = group.shape
        if not isinstance(self.bandwidth, str):
            return np.full(n_features, float(self.bandwidth))
        overall = X.std(axis=0, ddof=1)
        constant = np.flatnonzero(overall <= 1e-12 * np.abs(X).max(axis=0))
        if constant.size:
            raise ValueError(
                f"Features {constant.tolist()} are constant, and their bandwidth would be zero "
                f"(n_samples = {len(X)}). Drop them, or pass a number as bandwidth."
            )
        spread = group.std(axis=0, ddof=1) if n > 1 else overall
        spread = np.where(spread > 1e-12 * overall, spread, overall)
        return spread * n ** (-1 / (n_features + 4))


class LogDensity(NamedTuple):
    """Kernel density estimate with the Gaussian kernel and a bandwidth for each feature."""

    X: Doubles
    bandwidth: Doubles

    def __call__(self, X: Doubles) -> Doubles:
        """Return the logarithm of the density at each row; always finite."""
        queries, points = X / self.bandwidth, self.X / self.bandwidth
        batches = gen_batches(len(X), max(1, _MOST_NUMBERS // len(points)))
        sums = [
            logsumexp(-cdist(queries[rows], points, "sqeuclidean") / 2, axis=1) for rows in batches
        ]
        volume = np.log(self.bandwidth).sum() + math.log(len(self.X))
        return np.concatenate(sums) - volume - X.shape[1] * 0.5 * math.log(2 * math.pi)
