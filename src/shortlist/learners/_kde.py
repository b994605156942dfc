"""`KernelDensityClassifier`: the ratio of two estimated densities.

Logarithms of densities neither underflow nor visit every point. Training points are sorted into
small boxes. For each query, boxes are visited until all the others together could not change the
sum by one part in 10^12; the nearest box comes first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.arrays import Doubles, Rows
from .._core.validation import check_number, check_option

__all__ = ["DENSITY_KERNELS", "KernelDensityClassifier", "LogDensity"]

BANDWIDTH_RULES = ("scott", "silverman")
#: Names of the product kernels of :class:`KernelDensityClassifier`.
DENSITY_KERNELS = ("gaussian", "laplace", "epanechnikov")
_GAUSSIAN, _LAPLACE, _EPANECHNIKOV = range(len(DENSITY_KERNELS))
_LOG_NORMALISER = {
    "gaussian": -0.5 * math.log(2 * math.pi),
    "laplace": -math.log(2),
    "epanechnikov": math.log(0.75),
}
_BOX = 32  # points
_LOG_PRECISION = 28.0  # exp(-28) is below 1e-12
_OUTSIDE = -1e4  # below the logarithm of any density inside the support of a compact kernel


class KernelDensityClassifier(ClassifierMixin, BaseEstimator):
    r"""Classify by kernel density estimates of each class.

    With two classes, `decision_function` is :math:`\log \hat f_1 - \log \hat f_0` plus the log
    ratio of the priors, which does not change a ranking. It is computed in logarithms throughout:
    points far from all data are still ranked.

    Parameters
    ----------
    bandwidth : {"scott", "silverman"}, float, array-like or dict, default="scott"
        Width of the kernel:

        - a rule of thumb, applied to each class and feature with its standard deviation and the
          number of items;
        - a number, or one for each feature, in the units of the features;
        - a dict with any of these for each label.
    factor : float, default=1.0
        Multiplies the bandwidth. Tune it with :func:`~shortlist.capacity_scorer`.
    kernel : {"gaussian", "laplace", "epanechnikov"}, default="gaussian"
        The density in each feature; the kernel is the product over the features.
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes in sorted order; `None` takes their shares in `fit`.

    Attributes
    ----------
    classes_ : ndarray
        Labels seen in `fit`.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Bandwidths in use.
    priors_ : ndarray of shape (n_classes,)
        Priors in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    There is no `predict_proba`: probabilities round to 0 and 1 far from the data, where
    `decision_function` and `predict_log_proba` still tell items apart. Densities are exact to a
    relative error of :math:`10^{-12}`. The Laplace and Epanechnikov kernels take their bandwidth
    as scale and half-width.

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

    def __init__(
        self,
        bandwidth: Any = "scott",
        *,
        factor: float = 1.0,
        kernel: str = "gaussian",
        priors: ArrayLike | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.factor = factor
        self.kernel = kernel
        self.priors = priors

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
        check_option("kernel", self.kernel, DENSITY_KERNELS)
        factor = float(check_number("factor", self.factor))
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} compares the densities of two classes or more; got only "
                f"one class, {self.classes_.tolist()}. In cross-validation, use stratified folds."
            )
        groups = [X[codes == code] for code in range(self.classes_.size)]
        self.priors_ = self._priors(np.bincount(codes))
        self.bandwidths_ = factor * np.array(
            [
                _bandwidth(self._wanted(label), group, X)
                for label, group in zip(self.classes_.tolist(), groups, strict=True)
            ]
        )
        self._check_bandwidths()
        self._densities = [
            LogDensity(group, bandwidth, kernel=self.kernel)
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

    def predict_log_proba(self, X: Any) -> Doubles:
        """Return the log probabilities, of shape (n_items, n_classes), in the order of `classes_`.

        Takes `X` as :meth:`decision_function` does.
        """
        joint = self._joint_log_likelihood(X)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def _joint_log_likelihood(self, X: Any) -> Doubles:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        logs = np.column_stack([density(X) for density in self._densities])
        return logs + np.log(self.priors_)

    def _wanted(self, label: Any) -> Any:
        if not isinstance(self.bandwidth, Mapping):
            return self.bandwidth
        if label not in self.bandwidth:
            raise ValueError(
                f"bandwidth has no entry for the class {label!r}; it names "
                f"{list(self.bandwidth)}. Give one for each label."
            )
        return self.bandwidth[label]

    def _priors(self, counts: Rows) -> Doubles:
        if self.priors is None:
            return counts / counts.sum()
        priors = np.asarray(self.priors, dtype=np.float64)
        if priors.shape != counts.shape or not np.all(priors > 0):
            raise ValueError(
                f"priors must be {counts.size} positive numbers, one for each class; "
                f"got {self.priors!r}."
            )
        return priors / priors.sum()

    def _check_bandwidths(self) -> None:
        bad = ~(np.isfinite(self.bandwidths_) & (self.bandwidths_ > 0))
        if bad.any():
            label, feature = (int(place[0]) for place in np.nonzero(bad))
            raise ValueError(
                f"Bandwidths must be positive; that of feature {feature} for the class "
                f"{self.classes_[label].item()!r} is {self.bandwidths_[label, feature]:g}."
            )


def _bandwidth(wanted: Any, group: Doubles, X: Doubles) -> Doubles:
    """Return one bandwidth for each feature."""
    n_features = X.shape[1]
    if isinstance(wanted, str):
        check_option("bandwidth", wanted, BANDWIDTH_RULES)
        return _rule_of_thumb(wanted, group, X)
    widths = np.asarray(wanted, dtype=np.float64)
    if widths.shape not in ((), (n_features,)):
        raise ValueError(
            f"bandwidth must be a number or {n_features} of them, one for each feature; "
            f"got shape {widths.shape}."
        )
    return np.broadcast_to(widths, (n_features,))


def _rule_of_thumb(rule: str, group: Doubles, X: Doubles) -> Doubles:
    n, n_features = group.shape
    overall = X.std(axis=0, ddof=1)
    constant = np.flatnonzero(overall <= 1e-12 * np.abs(X).max(axis=0))
    if constant.size:
        raise ValueError(
            f"Features {constant.tolist()} are constant, and bandwidth={rule!r} would be zero "
            f"(n_samples = {len(X)}). Drop them, or pass a number as bandwidth."
        )
    spread = group.std(axis=0, ddof=1) if n > 1 else overall
    spread = np.where(spread > 1e-12 * overall, spread, overall)
    count = n if rule == "scott" else n * (n_features + 2) / 4
    return spread * count ** (-1 / (n_features + 4))


class LogDensity:
    """Kernel density estimate with a product kernel and a bandwidth for each feature.

    Outside the support of a compact kernel the density is zero. There the Gaussian kernel is used
    instead, shifted far down: points outside all supports are still ranked.
    """

    def __init__(self, X: Doubles, bandwidth: Doubles, *, kernel: str) -> None:
        self.kernel, self.bandwidth = kernel, bandwidth
        points = X / bandwidth
        points = points[_box_order(points)]
        starts = np.arange(0, len(points), _BOX)
        self._low = np.minimum.reduceat(points, starts, axis=0)
        self._high = np.maximum.reduceat(points, starts, axis=0)
        # The last box is filled up with points that are infinitely far away.
        padded = np.full((starts.size * _BOX, X.shape[1]), np.inf)
        padded[: len(points)] = points
        self._boxes = np.ascontiguousarray(padded.reshape(-1, _BOX, X.shape[1]).swapaxes(1, 2))
        self._log_n = math.log(len(points))
        self._log_volume = float(np.log(bandwidth).sum()) + self._log_n

    def __call__(self, X: Doubles) -> Doubles:
        """Return the logarithm of the density at each row; always finite."""
        queries = np.ascontiguousarray(X / self.bandwidth)
        logs = self._sum(queries, self.kernel)
        empty = np.flatnonzero(np.isneginf(logs))
        if empty.size:
            logs[empty] = self._sum(queries[empty], "gaussian") + _OUTSIDE
        return logs

    def _sum(self, queries: Doubles, kernel: str) -> Doubles:
        code, n_features = DENSITY_KERNELS.index(kernel), queries.shape[1]
        logs = np.empty(len(queries))
        _log_sums(queries, self._boxes, self._low, self._high, code, self._log_n, logs)
        return logs + n_features * _LOG_NORMALISER[kernel] - self._log_volume


def _box_order(points: Doubles) -> Rows:
    """Order points by halving the widest side: runs of `_BOX` points then lie close together."""
    order = np.arange(len(points))
    pending = [(0, len(points))]
    while pending:
        start, stop = pending.pop()
        if stop - start <= _BOX:
            continue
        rows = order[start:stop]
        widest = int(np.argmax(np.ptp(points[rows], axis=0)))
        # With whole boxes on the left, the runs of the final order are the leaves.
        middle = _BOX * max(1, round((stop - start) / 2 / _BOX))
        order[start:stop] = rows[np.argpartition(points[rows, widest], middle - 1)]
        pending += [(start, start + middle), (start + middle, stop)]
    return order


@njit(cache=True, nogil=True)
def _exp(x):
    """Return exp(x) for x in [-700, 0], in steps that the compiler can vectorise."""
    # The nearest whole k to x / log 2 appears in the last bits of a number with a large exponent.
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    series = 1.0 / 479001600.0
    for factorial in (39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0):
        series = series * r + 1.0 / factorial
    series = ((series * r + 0.5) * r + 1.0) * r + 1.0
    bits = (np.float64(shifted).view(np.int64) + 1023) << 52
    return series * np.int64(bits).view(np.float64)


@njit(cache=True, nogil=True)
def _bound(kernel, query, low, high):
    """Return an upper bound of the log kernel over a box: its value at the nearest place."""
    total, product = 0.0, 1.0
    for j in range(query.size):
        gap = max(low[j] - query[j], query[j] - high[j], 0.0)
        if kernel == _GAUSSIAN:
            total -= 0.5 * gap * gap
        elif kernel == _LAPLACE:
            total -= gap
        else:
            product *= max(1.0 - gap * gap, 0.0)
    if kernel == _EPANECHNIKOV:
        return np.log(product) if product > 0 else -np.inf
    return total


@njit(cache=True, nogil=True)
def _terms(kernel, query, box, terms):
    """Fill in the log kernel at each point of a box, up to its constant."""
    terms[:] = 0.0
    for j in range(query.size):
        for lane in range(_BOX):
            gap = abs(query[j] - box[j, lane])
            terms[lane] -= 0.5 * gap * gap if kernel == _GAUSSIAN else gap


@njit(cache=True, nogil=True)
def _products(query, box, products):
    """Fill in the compact kernel itself at each point of a box."""
    products[:] = 1.0
    for j in range(query.size):
        for lane in range(_BOX):
            gap = query[j] - box[j, lane]
            products[lane] *= max(1.0 - gap * gap, 0.0)


@njit(cache=True, nogil=True)
def _log_sums(queries, boxes, low, high, kernel, log_n, logs):
    n_boxes = len(boxes)
    bounds, terms = np.empty(n_boxes), np.empty(_BOX)
    for i in range(len(queries)):
        query, best = queries[i], 0
        for box in range(n_boxes):
            bounds[box] = _bound(kernel, query, low[box], high[box])
            if bounds[box] > bounds[best]:
                best = box
        # The nearest box comes first: its largest term decides what is negligible.
        largest, total = -np.inf, 0.0
        for step in range(n_boxes + 1):
            box = best if step == 0 else step - 1
            seen = step > 0 and box == best
            if seen or bounds[box] == -np.inf or bounds[box] < largest - log_n - _LOG_PRECISION:
                continue
            if kernel == _EPANECHNIKOV:
                _products(query, boxes[box], terms)
                total += terms.sum()
                continue
            _terms(kernel, query, boxes[box], terms)
            if terms.max() > largest:
                total *= np.exp(largest - terms.max())
                largest = terms.max()
            for lane in range(_BOX):
                terms[lane] = _exp(max(terms[lane] - largest, -700.0))
            total += terms.sum()
        start = 0.0 if kernel == _EPANECHNIKOV else largest
        logs[i] = start + np.log(total) if total > 0 else -np.inf
