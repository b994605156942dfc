r"""`CapacityAwareLinearClassifier`, and losses that look at the top of a ranking.

Each loss compares the rare items with a threshold :math:`t(s)` that the scores themselves set:
moving a score moves the threshold. With :math:`\ell` decreasing in the margin, the loss is the mean
of :math:`\ell(s_i - t(s))` over rare items, and its gradient has a part for the items that set t.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from .._core.arrays import Doubles, Mask
from .._core.validation import check_positive
from ..capacity import Capacity
from ._base import CapacityAwareBase

_MAX_ITERATIONS = 200
# Beyond this the logistic function is 0 or 1 in double precision.
_FAR = 40.0
# How sharply an item counts as flagged, for scores that start with a standard deviation of 1. A
# larger value would let the few items at the threshold decide.
_SHARPNESS = 1.5


class TopLoss(NamedTuple):
    """A loss, its gradient in the scores, and the threshold."""

    value: float
    gradient: Doubles
    threshold: float


def detection_loss(scores: Doubles, is_rare: Mask, fraction: float) -> TopLoss:
    r"""Share of rare items missed when a smooth threshold flags the `fraction` of all items.

    Both the detection and the flagged rate count an item by :math:`\sigma(1.5 (s - t))`, and t is
    where the rate equals `fraction`. The gradient is therefore that of the Lagrangian *detection
    minus price times rate*, with the price, the dual variable, solved for exactly instead of
    updated.

    Examples
    --------
    >>> scores, is_rare = np.array([1.0, -1.0, -1.0, -1.0]), np.array([True, False, False, False])
    >>> round(detection_loss(scores, is_rare, 0.25).value, 3)
    0.305
    """

    def smooth_flags(threshold: float) -> Doubles:
        return expit(_SHARPNESS * (scores - threshold))

    low, high = float(scores.min()) - _FAR, float(scores.max()) + _FAR
    threshold = float(brentq(lambda t: smooth_flags(t).mean() - fraction, low, high, xtol=1e-9))
    flagged = smooth_flags(threshold)
    slopes = _SHARPNESS * flagged * (1 - flagged)
    missed = 1 - float(flagged[is_rare].mean())
    pulls = slopes[is_rare] / np.count_nonzero(is_rare)
    # Moving an item moves the threshold, and with it all rare items.
    gradient = pulls.sum() * (slopes / slopes.sum())
    gradient[is_rare] -= pulls
    return TopLoss(missed, gradient, threshold)


class Lagrangian:
    r"""Share of rare items missed at threshold 0, plus a price for flagging more than the capacity.

    With the smooth detection D, the smooth flagged rate R and the capacity c, it is the augmented
    Lagrangian :math:`1 - D + \lambda e + \lambda_0 e^2 / 2` of the excess :math:`e = R / c - 1`.
    There may be several scores, one in each row. A call of `gradient` then raises the dual variable
    :math:`\lambda`, the price, by `step` times :math:`\lambda_0 e`, never below 0. Gradient descent
    on the parameters of a score, including its intercept, then solves the constrained problem by
    dual ascent. At the first price, :math:`\lambda_0`, the gradient of the intercept is 0.

    Examples
    --------
    Two of four items lie above 0 where one is allowed, and the price of flags rises.

    >>> loss, is_rare = Lagrangian(step=0.1), np.array([True, False, False, False])
    >>> for _ in range(2):
    ...     gradient = loss.gradient(np.array([[2.0, 2.0, -2.0, -2.0]]), is_rare, 0.25)
    ...     print(loss.prices.round(3))
    [0.275]
    [0.3]
    """

    def __init__(self, *, step: float = 0.02) -> None:
        self.step = step
        self.prices, self._units = np.empty(0), np.empty(0)

    def gradient(self, scores: Doubles, is_rare: Mask, fraction: float) -> Doubles:
        """Return the gradient in the scores at the present prices, then update these."""
        flagged = expit(_SHARPNESS * scores)
        slopes = _SHARPNESS * flagged * (1 - flagged)
        excess = flagged.mean(axis=1) / fraction - 1
        if not self.prices.size:
            self._units = slopes[:, is_rare].mean(axis=1) / slopes.mean(axis=1) * fraction
            self.prices = self._units
        pressure = np.maximum(0.0, self.prices + self._units * excess)
        gradient = pressure[:, np.newaxis] * slopes / (is_rare.size * fraction)
        gradient[:, is_rare] -= slopes[:, is_rare] / np.count_nonzero(is_rare)
        self.prices = np.maximum(0.0, self.prices + self.step * self._units * excess)
        return gradient


# --- the classifier ---


@dataclass(eq=False, repr=False)
class CapacityAwareLinearClassifier(CapacityAwareBase):
    r"""A linear, readable score with weights learned for detection at a capacity.

    Logistic regression fits all items equally; if few are rare, it mostly fits items that will
    never be flagged. This classifier starts from its weights and moves them to detect more within
    the capacity.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up; the weights are learned for it. Inside a
        :class:`~shortlist.CapacityClassifier`, `None` takes the capacity of that.
    C : float, default=0.5
        Inverse strength of the penalty :math:`\|w - w_0\|^2 / (2 C n_{\text{rare}})` on
        standardised features, where :math:`w_0` are the weights of logistic regression, divided
        by the standard deviation of its scores.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Not used: the same data give the same weights.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the original features; the score is ``X @ coef_[0]``.
    scaled_coef_ : ndarray of shape (1, n_features)
        What one standard deviation of each feature adds to the score.
    n_iter_ : int
        Iterations of the optimiser.
    offset_ : float
        The score at which the training items reach the capacity; `predict` compares with it.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_label_ : label
        The label to find.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    shortlist.CapacityClassifier : Cuts logistic regression, or any score, at the capacity.

    Notes
    -----
    What is minimised is the share of rare items missed at a smooth threshold that flags exactly the
    capacity. This is the Lagrangian relaxation of the paper's problem, with the dual variable of
    the flagged rate solved for at each step. It is not convex; the search starts from logistic
    regression.

    On credit-default data it detected more than logistic regression; on most sets of KEEL, the two
    were equal. See `docs/appendix/aware-study.md`.

    Examples
    --------
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.aware import CapacityAwareLinearClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=4_000, prevalence=0.02, random_state=0)
    >>> scorecard = CapacityAwareLinearClassifier(Capacity.multiple(2)).fit(X, y)
    >>> scorecard.coef_.shape == (1, X.shape[1])
    True

    With a threshold that keeps the capacity on new items:

    >>> model = CapacityClassifier(CapacityAwareLinearClassifier(), capacity=Capacity.multiple(2))
    >>> bool(y[model.fit(X, y).select(X)].mean() > 5 * y.mean())
    True
    """

    _loss = staticmethod(detection_loss)

    capacity: Capacity | None = None
    _: KW_ONLY
    C: float = 0.5
    rare_label: Any = None
    random_state: Any = None

    def _check_params(self) -> None:
        check_positive("C", self.C)

    def _learn(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> None:
        scaler = StandardScaler().fit(X)
        self.scaled_coef_ = self._minimise(scaler.transform(X), is_rare)[np.newaxis]
        self.coef_ = self.scaled_coef_ / scaler.scale_

    def _minimise(self, X: Doubles, is_rare: Mask) -> Doubles:
        """Minimise the loss from the weights of logistic regression, with a pull towards them."""
        fraction = self._target_fraction(len(X))
        start = LogisticRegression(max_iter=1000).fit(X, is_rare).coef_[0]
        start /= np.std(X @ start) or 1.0  # the losses expect scores of this size
        penalty = 1 / (self.C * np.count_nonzero(is_rare))

        def objective(weights: Doubles) -> tuple[float, Doubles]:
            result, moved = self._loss(X @ weights, is_rare, fraction), weights - start
            value = result.value + penalty / 2 * float(moved @ moved)
            return value, result.gradient @ X + penalty * moved

        options = {"maxiter": _MAX_ITERATIONS}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        self.n_iter_ = int(found.nit)
        return found.x

    def _sum_up(self, X: Doubles) -> Doubles:
        return X @ self.coef_[0]
