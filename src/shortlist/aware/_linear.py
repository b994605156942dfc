"""`CapacityAwareLinearClassifier`: a scorecard with weights learned for the capacity."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from .._core.arrays import Doubles, Mask
from .._core.validation import check_option, check_positive
from ..capacity import Capacity
from ._base import CapacityAwareBase
from ._top_losses import TOP_LOSSES

__all__ = ["CapacityAwareLinearClassifier"]

_MAX_ITERATIONS = 200


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
    loss : {"detection", "pat-mat", "top-push"}, default="detection"
        What is minimised:

        - "detection": the share of rare items missed at a smooth threshold that flags exactly the
          capacity. This is the Lagrangian relaxation of the paper's problem, with the dual
          variable of the flagged rate solved for at each step.
        - "pat-mat": a convex loss relative to a convex bound of the quantile.
        - "top-push": a convex loss relative to the highest common item, whatever the capacity.

        On credit-default data the first detected more than logistic regression in all of twelve
        settings, clearly so in ten. On 19 imbalanced sets of KEEL it won on one, tied on 16 and
        lost on two; see `docs/appendix/aware-study.md`.
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
    "detection" is not convex; it is minimised starting from logistic regression.

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

    _takes_values = True

    def __init__(
        self,
        capacity: Capacity | None = None,
        *,
        loss: str = "detection",
        C: float = 0.5,
        rare_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.capacity = capacity
        self.loss = loss
        self.C = C
        self.rare_label = rare_label
        self.random_state = random_state

    def _check_params(self) -> None:
        check_option("loss", self.loss, tuple(TOP_LOSSES))
        check_positive("C", self.C)

    def _n_steps(self) -> int:
        return _MAX_ITERATIONS

    def _learn(
        self,
        X: Doubles,
        is_rare: Mask,
        rng: np.random.Generator,
        worth: Doubles | None = None,
    ) -> None:
        scaler = StandardScaler().fit(X)
        self.scaled_coef_ = self._minimise(scaler.transform(X), is_rare, worth)[np.newaxis]
        self.coef_ = self.scaled_coef_ / scaler.scale_

    def _minimise(self, X: Doubles, is_rare: Mask, worth: Doubles | None) -> Doubles:
        """Minimise the loss from the weights of logistic regression, with a pull towards them."""
        loss, fraction = TOP_LOSSES[self.loss], self._target_fraction(len(X))
        start = LogisticRegression(max_iter=1000).fit(X, is_rare, sample_weight=worth).coef_[0]
        start /= np.std(X @ start) or 1.0  # the losses expect scores of this size
        penalty = 1 / (self.C * np.count_nonzero(is_rare))

        def objective(weights: Doubles) -> tuple[float, Doubles]:
            result, moved = loss(X @ weights, is_rare, fraction, worth), weights - start
            value = result.value + penalty / 2 * float(moved @ moved)
            return value, result.gradient @ X + penalty * moved

        steps = self._steps(_MAX_ITERATIONS)
        next(steps)

        def go_on(weights: Doubles) -> None:
            next(steps)  # after the last one, StopIteration ends the search

        found = minimize(objective, start, jac=True, method="L-BFGS-B", callback=go_on)
        self.n_iter_ = int(found.nit)
        return found.x

    def _sum_up(self, X: Doubles) -> Doubles:
        return X @ self.coef_[0]
