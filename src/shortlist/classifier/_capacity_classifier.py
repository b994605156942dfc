"""`CapacityClassifier`: splits, fits any model, calibrates a rule on items the model has not seen.

Predictions are made in `_predicting`: the models score the items here, and the rule decides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core.arrays import Mask
from .._core.folds import (
    Fitted,
    Groups,
    WrapperMixin,
    aligned_with_rows,
    check_classes,
    check_labels,
    check_trained,
    forget,
    remember_features,
    restored_on_error,
    route,
)
from .._core.labels import count_labels, find_rare
from .._core.scoring import (
    RESPONSE_METHODS,
    Scores,
    informed,
    mean_of,
    mean_scores,
    n_rows,
    probabilities,
    response_method_of,
    score_classes,
)
from .._core.validation import check_option, check_seed
from .._core.work import Work
from ..capacity import Capacity
from ..thresholds import Terms, ThresholdRule
from ..worth import check_worth
from ._calibrating import calibrator_of, check_promise
from ._models import Schooling, check_cv
from ._predicting import CapacityDecisionMixin

__all__ = ["CapacityClassifier"]


def _model_has(method: str) -> Any:
    def check(self: CapacityClassifier) -> bool:
        model = getattr(self, "estimators_", [self.estimator])[0]
        getattr(model, method)  # raises the AttributeError that explains what is missing
        return True

    return check


class CapacityClassifier(
    CapacityDecisionMixin, WrapperMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    r"""Flag as many rare items as a follow-up capacity allows, with any classifier inside.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with `predict_proba` or `decision_function`. It gets `X` as it
        is: arrays, data frames with strings, sparse matrices. A model that learns for a capacity,
        such as those of :mod:`shortlist.aware`, alone or in a pipeline, takes this capacity and
        rare label unless it has its own.
    capacity : Capacity
        How much can be followed up: ``Capacity.multiple(b)`` in units of the prevalence,
        ``Capacity.fraction(c)``, or ``Capacity.count(k, per=n)``. May be `None` if segments have
        capacities.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`. If two are equally rare, that is an
        error; with up to 30 items (300 with numbers as labels), the last one in sorting order is
        taken, with a warning.
    prevalence : number, default=None
        Share of rare items that a multiple refers to. Pass it if the share in `y` is not the true
        one, for example because common items were sampled less often. `None` takes the share in
        `y`.
    segment_capacities : dict from segments to Capacity, default=None
        How many items of each segment (a region, a team, a product) may be flagged. A fraction
        refers to the segment's *own* items, a multiple to the prevalence in all data, and `None`
        as a value means no limit. Pass the segments of the items to `fit`, `predict`, `select`
        and the other methods. Both limits hold, that of the segment and `capacity`, and the
        guarantee covers all limits at once.
    default_segment_capacity : Capacity, default=None
        For the items of all segments that are not named, taken together. If `None`, such a segment
        is an error.
    cv : "auto", int, splitter, float, "oob" or "prefit", default="auto"
        Where the scores for the thresholds come from:

        - an int or splitter keeps the model of each fold, with a threshold from the items it has
          not seen, and a hash of a row (or its id) picks the model that decides about it. Every
          row works: with ten folds, each model learns from 90 % of them, and `select`,
          `score_samples` and `predict_proba` use the mean of all models. The guarantees "expected"
          and "confident" hold exactly. With few rare items there are fewer folds.
        - a float is the share of the data held out for one threshold, stratified; one model is
          fitted on the rest, as in the paper. Every guarantee holds.
        - ``"auto"`` means 10 folds for the guarantees "expected" and "plug-in", and 0.5 for the
          others: with a confidence, one threshold from half of the rows uses more of the capacity.
        - ``"oob"``, for forests and bagging: one fit on everything, and the threshold from
          out-of-bag scores. Each comes from about a third of the trees, so guarantees are
          *approximate*.
        - ``"prefit"``, or a :class:`~sklearn.frozen.FrozenEstimator`, takes the model as it is and
          calibrates on all the data given to `fit`, which the model must not have seen. Labels
          may then be left out, if `rare_label` is given and the capacity is not a multiple.
    guarantee : str, default="expected"
        What is promised about future flags: "plug-in", "expected", "confident", "next-batch" or
        "simultaneous"; see :func:`~shortlist.calibrate_threshold`. With
        "confident" or "simultaneous" and a multiple as capacity, the promise covers the unknown
        prevalence as well, unless `prevalence` is stated. "simultaneous" holds for every capacity
        at once: choose one freely, with :meth:`with_capacity`, after looking at the results.
    confidence : float, default=0.95
        Probability with which the last three guarantees hold.
    n_batches : int, default=1
        With "next-batch", the number of batches in none of which there may be too many flags.
    ties : {"exclude", "hash"}, default="hash"
        Items tied with the threshold are left out as a block, or some of them are flagged, chosen
        by a hash of their ids (or of their values). Coarse scores need the hash to use the whole
        capacity.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Which output of the model is the score; "auto" takes the first that it has.
    worth : number or Worth, default=None
        The least expected value per unit of effort (value * probability / effort, where what is
        not given counts as 1) for which an item is flagged, or ``Worth.precision(0.2)``: the share
        of the flags that are rare is at least this. With "confident", that is promised on unseen
        items. Below it capacity stays empty, and ``calibration_.limited_by`` is "worth".
    max_effort : float, default=None
        For ``Capacity.effort(budget, per=n)`` and efforts that differ: the largest effort that
        any item can take, in future too.
    ensemble : bool, default=True
        With folds: whether the models of all folds decide. ``False`` refits one model on
        everything, with a threshold from the pooled scores of the other models. Guarantees are then
        *approximate*; boosted trees can exceed them clearly.
    random_state : int, RandomState instance or None, default=None
        Controls the split; also the key of the hash.
    n_jobs : int, default=None
        Number of folds fitted in parallel.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model. Absent if there are several.
    estimators_ : list of classifiers
        The fitted models that decide: just `estimator_`, or one for each fold.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_label_ : label
        The label to find.
    prevalence_ : float
        Share of rare items in `fit`.
    capacity_fraction_ : float
        The capacity as a fraction of all items.
    rule_ : Rule
        The object that decides: a :class:`~shortlist.thresholds.ThresholdRule`, `FoldRule` or
        `SegmentRule`. It keeps the calibration scores.
    threshold_ : float
        Items with a score strictly above are flagged. Absent if there are several models.
    thresholds_ : ndarray of shape (n_models,)
        The threshold of each of `estimators_`; a single one after `recalibrate`.
    calibration_scores_ : ndarray
        The scores that the rule was calibrated on, of all folds together.
    reference_prevalence_ : number or None
        The prevalence that a multiple refers to.
    response_method_ : str
        Which output of the model is the score.
    calibration_ : CalibratedThreshold
        The threshold with its interval and sample size. Absent if there are several.
    calibrations_ : list of CalibratedThreshold
        One for each of `estimators_`, or one for all of them after `recalibrate`.
    promise_ : str
        What holds for the flags of single rows, and what for lists, in plain words.
    flag_rate_interval_ : Interval
        Confidence interval of the true flag rate of `predict` and `flag`.
    out_of_fold_scores_ : ndarray of shape (n_items,)
        For each row of `fit` its score by a model that has not seen it; NaN where there is none.
        With :func:`~shortlist.metrics.out_of_fold_detection` they measure the model.
    folds_ : ndarray of int, shape (n_items,)
        The number of that model among `estimators_`; -1 where there is none.
    segment_calibrations_ : dict from segments to CalibratedThreshold
        One for each segment with a capacity.
    segment_thresholds_ : dict from segments to floats
        What a score must exceed in each segment, by its own limit and the one for all items;
        `None` stands for the segments that are not named.
    likelihood_ratio_threshold_ : float
        For probability scores, the level :math:`\gamma^*` of the likelihood ratio that the
        threshold stands for.
    modified_prior_ : float
        The prior :math:`\pi_0' = 1 / (1 + \gamma^*)` under which the rule of Bayes is this rule.
    class_weight_ : dict
        With two classes, the weights under which the rule of Bayes is this rule; the common class
        weighs 1. Items tied with the threshold are left out of these equivalences.
    n_features_in_, feature_names_in_
        Those of the model, where it has them.

    See Also
    --------
    calibrate_threshold : The threshold alone, from scores.
    select : The batch mode alone, from scores.

    Notes
    -----
    `score`, which searches use by default, is the detection within the capacity, not the accuracy.

    With two classes `decision_function` is positive for ``classes_[1]``, as scikit-learn's rank
    metrics expect. `score_samples` rises with suspicion, whichever label is the rare one.

    Pass `values` (what an item is worth if it is rare) and `efforts` (how much work it takes) to
    `fit`, `predict`, `select` and the other methods, as metadata where scikit-learn routes it. The
    threshold is then one of value * probability / effort. A model without `predict_proba` is
    wrapped in :class:`~sklearn.calibration.CalibratedClassifierCV`, which cross-fits probabilities
    within its training rows; `estimators_` are then these.

    Extra arguments of `fit`, such as `sample_weight`, go to the model's `fit`; they do not weight
    the capacity.

    Scores that agree in their first ten digits count as tied (five in single precision): the last
    digits can differ from batch to batch, and no flag should depend on them.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=10_000, random_state=0)
    >>> model = CapacityClassifier(
    ...     LogisticRegression(max_iter=1000), capacity=Capacity.multiple(2), random_state=0
    ... ).fit(X, y)
    >>> bool(model.predict(X).mean() < 0.03)
    True
    >>> int(model.select(X, Capacity.count(50)).sum())
    50
    """

    def __init__(
        self,
        estimator: Any,
        *,
        capacity: Capacity | None,
        rare_label: Any = None,
        prevalence: Any = None,
        segment_capacities: dict[Any, Capacity | None] | None = None,
        default_segment_capacity: Capacity | None = None,
        cv: Any = "auto",
        guarantee: str = "expected",
        confidence: float = 0.95,
        n_batches: int = 1,
        ties: str = "hash",
        response_method: str = "auto",
        ensemble: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        worth: Any = None,
        max_effort: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.capacity = capacity
        self.rare_label = rare_label
        self.prevalence = prevalence
        self.segment_capacities = segment_capacities
        self.default_segment_capacity = default_segment_capacity
        self.cv = cv
        self.guarantee = guarantee
        self.confidence = confidence
        self.n_batches = n_batches
        self.ties = ties
        self.response_method = response_method
        self.ensemble = ensemble
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.worth = worth
        self.max_effort = max_effort

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the model and calibrate its threshold.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        y : array-like of shape (n_items,)
            Labels of any type.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.
        groups : array-like of shape (n_items,), default=None
            The group of each item, if several belong together: the rows of one customer. Whole
            groups are held out, a float `cv` is a share of the groups, and the promise is about
            an item of a new group; see :func:`~shortlist.calibrate_threshold`. A splitter gets
            the groups, too.
        values, efforts : array-like of shape (n_items,), default=None
            What each item is worth if it is rare, and how much work it takes, for the threshold;
            ``Capacity.effort(...)`` needs efforts. They are not passed on to the model.
        **params : dict
            Handed to the `fit` of the model, and sliced with the rows where they have their
            length. With metadata routing enabled, they go where they were requested.

        Returns
        -------
        self
        """
        forget(self)
        with restored_on_error(self):
            self._fit(X, y, ids, segments, groups, self._work(X, values, efforts), params)
        return self

    def _fit(
        self,
        X: Any,
        y: ArrayLike | None,
        ids: ArrayLike | None,
        segments: ArrayLike | None,
        groups: ArrayLike | None,
        work: Work,
        params: dict[str, Any],
    ) -> None:
        self._check_params()
        X, y = indexable(X, y)
        seed = check_seed(self.random_state)
        y, is_rare = self._learn_labels(y)
        calibrator = calibrator_of(
            self, X, is_rare, ids, segments, seed=seed, groups=groups, work=work
        )
        self.response_method_ = response_method_of(self.estimator, self.response_method)
        schooling = replace(self._schooling, estimator=self._informed(calibrator.terms))
        if self._needs_probabilities(work):
            schooling = schooling.with_probabilities(is_rare)
            self.response_method_ = "predict_proba"
        self.estimators_, unseen = self._fit_models(
            schooling, X, y, is_rare, params, seed, Groups(groups, calibrator.group_of)
        )
        if len(self.estimators_) == 1:
            self.estimator_ = self.estimators_[0]
        remember_features(self, self.estimators_[0])
        self.out_of_fold_scores_, self.folds_ = aligned_with_rows(unseen, n_rows(X))
        self.rule_ = calibrator.rule(
            unseen,
            out_of_bag=self._schooling.is_out_of_bag,
            refitted=self._schooling.refits,
        )

    def _check_params(self) -> None:
        check_promise(self)
        check_option("response_method", self.response_method, ("auto", *RESPONSE_METHODS))
        check_cv(self.cv)

    @property
    def _schooling(self) -> Schooling:
        return Schooling(
            self.estimator,
            self.cv,
            self.ensemble,
            self.guarantee,
            self.random_state,
            self.n_jobs,
        )

    def _informed(self, terms: Terms) -> Any:
        """Return the model; one that learns for a capacity gets this one, unless it has its own."""
        if self._schooling.is_prefit:
            return self.estimator
        known = {"rare_label": self.rare_label_}
        if self.capacity is not None and self.capacity.kind != "effort":
            known["capacity"] = Capacity.fraction(self.capacity.as_ratio(terms.reference.value))
        return informed(self.estimator, **known)

    def _needs_probabilities(self, work: Work) -> bool:
        """Whether values are to be weighed, and the scores of the model are no probabilities."""
        worth = check_worth(self.worth)
        by_value = worth is not None and worth.kind == "value"
        if not (work.is_given or by_value) or self.response_method_ == "predict_proba":
            return False
        if self.response_method != "auto":
            raise ValueError(
                "values, efforts and worth are weighed with the probability that an item is rare, "
                f"which response_method={self.response_method!r} does not give. Use "
                "response_method='auto': a model without probabilities is then calibrated."
            )
        return True

    def _learn_labels(self, y: Any) -> tuple[NDArray[Any] | None, Mask | None]:
        """Set `classes_` and `rare_label_`; return the labels and where the rare ones are."""
        if self._schooling.is_prefit:
            check_trained(self.estimator)
        if y is None:
            return self._learn_no_labels()
        y = check_labels(y)
        counted = count_labels(y)
        self.classes_ = (
            np.asarray(self.estimator.classes_) if self._schooling.is_prefit else counted[0]
        )
        check_classes(self, self.classes_)
        is_rare, self.rare_label_ = find_rare(y, self.rare_label, counted=counted, on_tie="warn")
        return y, is_rare

    def _learn_no_labels(self) -> tuple[None, None]:
        if not self._schooling.is_prefit:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if self.rare_label is None:
            raise ValueError("Without labels y, say which label is rare: rare_label=...")
        self.classes_, self.rare_label_ = np.asarray(self.estimator.classes_), self.rare_label
        return None, None

    def _fit_models(
        self,
        schooling: Schooling,
        X: Any,
        y: Any,
        is_rare: Any,
        params: dict[str, Any],
        seed: int,
        groups: Groups,
    ) -> Fitted:
        """Get the models that are to decide, and scores of items that they have not seen."""
        scoring = {"method": self.response_method_, "rare_label": self.rare_label_}
        if schooling.is_prefit:
            return schooling.calibrate_only(X, params, **scoring)
        routed = route(self, params, groups.given)
        weights = routed.estimator.fit.get("sample_weight")
        if weights is not None:
            check_classes(self, np.unique(y[np.asarray(weights) != 0]))
        return schooling.fit(
            X,
            y,
            is_rare,
            groups,
            fit_params=routed.estimator.fit,
            split_params=routed.splitter.split,
            seed=seed,
            **scoring,
        )

    # --- scores, and what a threshold on probabilities stands for -------------------------------

    def _score(self, X: Any, model: int | None = None) -> Scores:
        models = self.estimators_ if model is None else [self.estimators_[model]]
        options = {"method": self.response_method_, "rare_label": self.rare_label_}
        return mean_scores(
            [score_classes(each, X, classes=self.classes_, **options) for each in models]
        )

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the model's probabilities; the capacity does not change them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            In the order of `classes_`; the mean over all models, if there are several.
        """
        check_is_fitted(self)
        several = [probabilities(model, X, self.classes_) for model in self.estimators_]
        return several[0] if len(several) == 1 else mean_of(several)

    @property
    def likelihood_ratio_threshold_(self) -> float:
        r"""The level :math:`\gamma^*` of rare to common density that the threshold stands for."""
        odds = self._threshold_odds("likelihood_ratio_threshold_")
        return odds * (1 - self.prevalence_) / self.prevalence_

    @property
    def modified_prior_(self) -> float:
        r"""The prior :math:`\pi_0'` under which the rule of Bayes is this rule."""
        return 1 / (1 + self.likelihood_ratio_threshold_)

    @property
    def class_weight_(self) -> dict[Any, float]:
        """Class weights under which the rule of Bayes is this rule, for two classes."""
        odds = self._threshold_odds("class_weight_")
        if self.classes_.size > 2:
            raise AttributeError(
                "class_weight_ is defined for two classes: the threshold compares the rare class "
                "with all others together, weights compare it with each of them."
            )
        common, rare = self.classes_[[1 - self._rare_index, self._rare_index]].tolist()
        return {common: 1.0, rare: 1 / odds if odds > 0 else np.inf}

    def _threshold_odds(self, name: str) -> float:
        """Return t / (1 - t) for a threshold t on probabilities."""
        self._check_fitted()
        has_one = isinstance(self.rule_, ThresholdRule)
        if self.response_method_ != "predict_proba" or not has_one:
            raise AttributeError(f"{name} is defined for a single threshold on probabilities.")
        threshold = float(np.clip(self.threshold_, 0, 1))
        return threshold / (1 - threshold) if threshold < 1 else np.inf
