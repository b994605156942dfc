"""`MulticlassCapacityClassifier`: several rare classes, each with its own capacity."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import indexable

from .._core.scoring import n_rows, probabilities
from .._core.validation import check_confidence, check_ids, check_number, check_option, check_seed
from .._wrapping.fitting import (
    WrapperMixin,
    check_classes,
    check_cv_option,
    check_labels,
    check_trained,
    fit_and_score,
    forget,
    hold_out,
    holds_out,
    is_prefit,
    remember_features,
    restored_on_error,
    route,
    unseen_once,
)
from .._wrapping.segments import segment_codes
from ..capacity import Capacity
from ..exceptions import CapacityError
from ..thresholds import TIES
from ._calibrate import JointSample
from ._decisions import JointDecisionMixin
from ._values import Valuation

__all__ = ["MulticlassCapacityClassifier"]

_GUARANTEES = ("plug-in", "confident")


class MulticlassCapacityClassifier(
    JointDecisionMixin, WrapperMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    r"""Find several rare classes at once, each within its capacity, with any classifier inside.

    Maximises the sum of the rare classes' sensitivities plus the share of the majority that is
    classified correctly, subject to a capacity for each rare class, and if wanted for each segment
    and in total. An item gets the class with the highest weighted posterior minus price.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with `predict_proba`. It gets `X` as it is.
    capacities : dict from labels to Capacity, or Capacity
        How many items may get each rare label; `None` as a value is no limit of its own. The
        labels that are not named form the majority. A multiple refers to the prevalence of its
        label. One Capacity alone holds for each label but the most common.
    total : Capacity, default=None
        How many items may get any rare label. A multiple refers to all rare labels together.
    segment_capacities : dict from segments to Capacity, default=None
        How many items of each segment (a region, a team, a product) may get any rare label. A
        fraction is one of the segment's *own* items; a multiple refers to all rare labels
        together in all data; `None` as a value is no limit. The segments of the items are passed
        to `fit`, `predict`, `select` and `recalibrate`.
    default_segment_capacity : Capacity, default=None
        For the items of all segments that are not named, taken together. `None` makes such
        a segment an error.
    cv : float, int, splitter or "prefit", default=0.5
        Where the posteriors for the prices come from, as for
        :class:`~shortlist.CapacityClassifier`: a held-out share, out-of-fold with a refit
        (guarantees are then approximate), or a trained model and data it has not seen.
    guarantee : {"plug-in", "confident"}, default="plug-in"
        What is promised about future items:

        - ``"plug-in"``: the calibration items themselves are within all capacities. On future
          items, some class exceeds its capacity more often than not.
        - ``"confident"``: all flag rates are at once within their capacities, except with
          probability 1 - `confidence`. Half of the calibration items set the prices, the other
          half how clear a case must be. Compare `objective_` with `plug_in_objective_` for
          what this costs.
    confidence : float, default=0.95
        For ``guarantee="confident"``.
    class_weights : dict from labels to numbers, default=None
        Weights of the sensitivities in the objective; 1 when absent.
    majority : bool, default=True
        Whether correct classification within the majority counts in the objective.
    ties : {"exclude", "hash"}, default="exclude"
        Items tied at the prices are left alone, or decided by a hash of their ids (or of their own
        values), so that coarse posteriors use their capacity.
    random_state : int, RandomState instance or None, default=None
        Controls the split, and is the key of the hash.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_labels_ : list
        The labels with a capacity, in the order given.
    prevalences_ : dict
        Share of each rare label in `fit`.
    prices_ : dict from labels to floats
        What one more flag is worth: another flag in every thousand items raises the objective by
        a thousandth of the price. 0 where the capacity is not used up.
    total_price_ : float
        The same for the total.
    segment_prices_ : dict
        The same for each segment; `None` stands for the segments that are not named.
    objective_ : float
        The objective on the calibration items, as the posteriors estimate it.
    plug_in_objective_ : float
        What it would be without the cost of the guarantee.

    See Also
    --------
    CapacityClassifier : One rare class.
    assign : The batch mode alone, from values.

    Notes
    -----
    With posteriors :math:`\eta_j`, prevalences :math:`\pi_j` and prices :math:`\lambda_j`, the rule
    is the argmax of :math:`\eta_0 / \pi_0` (the best member of the majority, over the prevalence of
    all of it) and :math:`w_j \eta_j / \pi_j - \lambda_j - \mu_{segment} - \nu`. The prices are the
    dual solution of the assignment problem on the calibration items; comparisons are made in
    whole numbers, and an item that does not lead strictly is left to the majority, so that no tie
    exceeds a capacity.

    With ``guarantee="confident"`` and a multiple among the capacities, half of the error pays for
    lower bounds of the prevalences.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from shortlist import Capacity, MulticlassCapacityClassifier
    >>> X, y = make_classification(
    ...     4_000, n_classes=3, n_informative=4, weights=[0.9, 0.06, 0.04], random_state=0
    ... )
    >>> model = MulticlassCapacityClassifier(
    ...     LogisticRegression(),
    ...     capacities={1: Capacity.fraction(0.05), 2: Capacity.fraction(0.02)},
    ...     random_state=0,
    ... ).fit(X, y)
    >>> sorted(model.prices_)
    [1, 2]
    >>> todays_list = model.select(X[:1_000])
    >>> int((todays_list == 1).sum()), int((todays_list == 2).sum())
    (50, 20)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        capacities: Any,
        total: Capacity | None = None,
        segment_capacities: dict[Any, Capacity | None] | None = None,
        default_segment_capacity: Capacity | None = None,
        cv: Any = 0.5,
        guarantee: str = "plug-in",
        confidence: float = 0.95,
        class_weights: dict[Any, float] | None = None,
        majority: bool = True,
        ties: str = "exclude",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.capacities = capacities
        self.total = total
        self.segment_capacities = segment_capacities
        self.default_segment_capacity = default_segment_capacity
        self.cv = cv
        self.guarantee = guarantee
        self.confidence = confidence
        self.class_weights = class_weights
        self.majority = majority
        self.ties = ties
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        segments: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the model, and find the prices of the capacities.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        y : array-like of shape (n_items,)
            Labels of any type.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.
        **params : dict
            Handed to the `fit` of the model, and sliced with the rows where they have their
            length. With metadata routing enabled, they go where they were requested.

        Returns
        -------
        self
        """
        forget(self)
        with restored_on_error(self):
            self._fit(X, y, segments, ids, params)
        return self

    # --- fitting --------------------------------------------------------------------------------

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        segments: ArrayLike | None,
        ids: ArrayLike | None,
        params: dict[str, Any],
    ) -> None:
        self._check_params()
        X, y = indexable(X, y)
        ids = check_ids(ids, n_rows(X))
        self._seed = check_seed(self.random_state)
        labels, codes = self._learn_labels(y)
        self._learn_capacities()
        segment_of = segment_codes(segments, self._joint.segments, n_rows(X))
        keys = self._keys(X, ids)
        posteriors, rows = self._fit_model(X, labels, codes, params)
        remember_features(self, self.estimator_)
        values = self._valuation(posteriors)
        self._calibrate_on(
            JointSample(
                values.gains,
                values.left_alone,
                segment_of[rows],
                None if keys is None else keys[rows],
                ids is not None,
                posteriors.dtype,
            )
        )

    def _check_params(self) -> None:
        check_option("guarantee", self.guarantee, _GUARANTEES)
        check_option("ties", self.ties, TIES)
        check_confidence(self.confidence)
        check_cv_option(self.cv)
        if not isinstance(self.majority, (bool, np.bool_)):
            raise ValueError(f"majority must be True or False; got {self.majority!r}.")
        if not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict_proba, and classes are weighed "
                "against each other by their probabilities. Wrap it in a CalibratedClassifierCV."
            )

    def _learn_labels(self, y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Set `classes_` and count them; return the labels, and the number of each one's class."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = check_labels(y)
        if is_prefit(self.estimator, self.cv):
            check_trained(self.estimator)
            self.classes_ = np.asarray(self.estimator.classes_)
        else:
            self.classes_ = np.unique(y)
        check_classes(self, self.classes_)
        codes = np.searchsorted(self.classes_, y).clip(0, self.classes_.size - 1)
        if np.any(self.classes_[codes] != y):
            strange = np.setdiff1d(y, self.classes_).tolist()
            raise ValueError(
                f"y holds labels that the trained model does not know: {strange[:5]}; it knows "
                f"{self.classes_.tolist()}."
            )
        self._counts = np.bincount(codes, minlength=self.classes_.size)
        return y, codes

    def _learn_capacities(self) -> None:
        self._joint = self._check_capacities(self.capacities, self.total, self.segment_capacities)
        self.rare_labels_ = list(self._joint.classes)
        absent = [label for label in self.rare_labels_ if not self._prevalence(label)]
        if absent:
            raise CapacityError(
                f"The rare labels {absent} do not occur in y, so that their sensitivity has no "
                "meaning. Leave them out of capacities, or add items."
            )
        # An impossible capacity fails before any model is fitted.
        self._joint.ratios(self._prevalence)
        self.prevalences_ = {label: float(self._prevalence(label)) for label in self.rare_labels_}
        self._valuation = self._value_classes()

    def _value_classes(self) -> Valuation:
        weights = dict.fromkeys(self.rare_labels_, 1.0)
        for label, weight in (self.class_weights or {}).items():
            if label not in weights:
                raise ValueError(
                    f"class_weights names {label!r}, which has no capacity; the labels with one "
                    f"are {self.rare_labels_}. The majority weighs 1, or 0 with majority=False."
                )
            weights[label] = float(check_number(f"class_weights[{label!r}]", weight))
            if weights[label] < 0:
                raise ValueError(f"class_weights[{label!r}] must not be negative; got {weight!r}.")
        known = self.classes_.tolist()
        rare = np.array([known.index(label) for label in self.rare_labels_])
        common = np.setdiff1d(np.arange(len(known)), rare)
        shares = self._counts / self._counts.sum()
        weight = 1 / shares[common].sum() if self.majority and shares[common].any() else 0.0
        return Valuation(rare, common, np.array(list(weights.values())) / shares[rare], weight)

    def _fit_model(
        self, X: Any, y: NDArray[Any], codes: NDArray[np.intp], params: dict[str, Any]
    ) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
        """Fit the model; return posteriors of items it has not seen, and which ones."""
        everyone = np.arange(len(y))
        if is_prefit(self.estimator, self.cv):
            if params:
                raise ValueError(
                    f"A trained model is not fitted again, so that {sorted(params)} would go "
                    "unused."
                )
            self.estimator_ = self.estimator
            return probabilities(self.estimator_, X, self.classes_), everyone
        routed = route(self, params)
        weights = routed.estimator.fit.get("sample_weight")
        if weights is not None:
            check_classes(self, np.unique(y[np.asarray(weights) != 0]))
        folds = self._folds(X, y, codes, routed.splitter.split)
        fitted = [
            fit_and_score(
                clone(self.estimator),
                X,
                y,
                train,
                unseen,
                fit_params=routed.estimator.fit,
                score=partial(probabilities, classes=self.classes_),
            )
            for train, unseen in folds
        ]
        if holds_out(self.cv):
            self.estimator_ = fitted[0][0]
        else:
            self.estimator_ = clone(self.estimator).fit(X, y, **routed.estimator.fit)
        rows = np.concatenate([unseen for _, unseen in folds])
        return np.concatenate([posteriors for _, posteriors in fitted]), rows

    def _folds(
        self, X: Any, y: NDArray[Any], codes: NDArray[np.intp], split_params: dict[str, Any]
    ) -> list[tuple[Any, Any]]:
        if not holds_out(self.cv):
            return unseen_once(self.cv, X, y, split_params)
        if self._counts.min() < 2:
            lonely = self.classes_[self._counts.argmin()].item()
            raise ValueError(
                f"The class {lonely!r} has {self._counts.min()} item; fitting on one part of the "
                "data and calibrating on the other takes two. Use cv='prefit', or find more items."
            )
        rng = np.random.default_rng(None if self.random_state is None else self._seed)
        return [hold_out(codes, self.cv, rng)]
