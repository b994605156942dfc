"""`CapacityClassifier`: fits any model, calibrates a rule on rows it has not seen, and predicts.

Rows are scored first. Scores, and what else is known about the rows, then go to the rule that
calibration has made, which judges them.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils import indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._core import folds, scoring
from .._core.arrays import Floats, Mask, Rows, TieKeys
from .._core.formatting import number
from .._core.ids import Columns, check_ids, columns_of, number_groups, repeats_of
from .._core.labels import ReferencePrevalence, count_labels, find_rare
from .._core.probing import check_probe
from .._core.validation import check_confidence, check_option, check_seed
from .._core.work import check_efforts, check_values
from ..capacity import (
    Capacity,
    capacity_in_words,
    check_capacity,
    check_efforts_suit,
    largest_effort,
)
from ..exceptions import CapacityError
from ..metrics import detection_at_capacity
from ..thresholds import CalibratedThreshold, promise
from ..thresholds.rules import Decisions, Rule, keys_of
from ..thresholds.samples import (
    CalibrationSample,
    RowFacts,
    SegmentCapacities,
    check_segment_capacities,
    segment_codes,
)
from ..thresholds.terms import Terms
from ..worth import check_worth
from ._controllers import controller_of

if TYPE_CHECKING:
    from ..online import Controller

_FOLDS, _HELD_OUT = 10, 0.5  # with cv="auto"
_CALIBRATION_FOLDS = 5
# The smallest number above 0: a flagged tie lies on the threshold, and still on its right side.
_JUST_ABOVE = np.nextafter(0.0, 1.0)


def _model_has(method: str) -> Any:
    def check(self: CapacityClassifier) -> bool:
        unfitted = self.estimator if self.list_estimator is None else self.list_estimator
        model = getattr(self, "list_estimators_", [unfitted])[0]
        getattr(model, method)  # raises the AttributeError that explains what is missing
        return True

    return check


@dataclass(eq=False, repr=False)
class CapacityClassifier(folds.WrapperMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
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
        as a value means no limit. Both limits hold, that of the segment and `capacity`, and the
        guarantee covers all limits at once.
    default_segment_capacity : Capacity, default=None
        For the items of all segments that are not named, taken together. If `None`, such a segment
        is an error.
    cv : "auto", int, splitter, float, "oob" or "prefit", default="auto"
        Where the scores for the thresholds come from:

        - an int or splitter keeps the model of each fold, with a threshold from the items it has
          not seen, and a hash of a row picks the model that decides about it: of its id, or of
          the row itself if rows of the fit belong together. Every row works: with ten folds, each
          model learns from 90 % of them, and `select`, `score_samples` and `predict_proba` use the
          mean of all models, or `list_estimator`. The guarantees "expected" and "confident" hold
          exactly with random folds, as an int draws them; not with stratified ones.
        - a float is the share of the data held out for one threshold; one model is
          fitted on the rest, as in the paper. Every guarantee holds.
        - ``"auto"`` means 10 folds for the guarantees "expected" and "plug-in", and 0.5 for the
          others: with a confidence, one threshold from half of the rows uses more of the capacity.
        - ``"oob"``, for forests and bagging: one fit on everything, and the threshold from
          out-of-bag scores. Each comes from about a third of the trees, so guarantees are
          *approximate*.
        - ``"prefit"``, or a :class:`~sklearn.frozen.FrozenEstimator`, takes the model as it is and
          calibrates on all the data given to `fit`, which the model must not have seen. Labels
          may then be left out, if `rare_label` is given and the capacity is not a multiple.
    list_estimator : classifier, default=None
        With folds, the model that ranks lists, fitted on all items: `select`, `score_samples`,
        `predict_proba` and `score` use it, and `recalibrate` finds a threshold for it. A list
        promises its length, which needs no unseen items, so the models of the folds, which decide
        about single items until then, can be few and small. `None` ranks by the mean of the folds.
    guarantee : str, default="expected"
        What is promised about future flags: "plug-in", "expected", "confident", "next-batch",
        "simultaneous" or "anytime"; see :func:`~shortlist.calibrate_threshold`. With
        "confident" or "simultaneous" and a multiple as capacity, the promise covers the unknown
        prevalence as well, unless `prevalence` is stated. "simultaneous" holds for every capacity
        at once: choose one freely, with :meth:`with_capacity`, after looking at the results.
        "anytime" holds for all calls of :meth:`recalibrate` together, each with all items so far.
    confidence : float, default=0.95
        Probability with which all guarantees but the first two hold.
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
    list_estimator_ : classifier
        The model of all items that ranks lists, and decides after `recalibrate`. Absent without
        `list_estimator`.
    list_estimators_ : list of classifiers
        The models whose mean ranks lists: just `list_estimator_`, or else `estimators_`.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_label_ : label
        The label to find.
    prevalence_ : float
        Share of rare items in `fit`.
    capacity_fraction_ : float
        The capacity as a fraction of all items.
    rule_ : Rule
        The object that decides: one threshold, one for each fold, and one for each segment that
        has a capacity (`segment_calibrations`). It keeps the calibration
        scores, and knows the `flag_rate_interval` of `predict` and `flag`.
    threshold_ : float
        Items with a score strictly above are flagged. Absent if there are several models.
    thresholds_ : ndarray of shape (n_models,)
        The threshold of each of `estimators_`; after `recalibrate` a single one, for the scores of
        lists.
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
    out_of_fold_scores_ : ndarray of shape (n_items,)
        For each row of `fit` its score by a model that has not seen it; NaN where there is none.
        With :func:`~shortlist.metrics.out_of_fold_detection` they measure the model.
    folds_ : ndarray of int, shape (n_items,)
        The number of that model among `estimators_`; -1 where there is none.
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

    Rows can come with what else is known about them, as arguments of `fit`, `predict`, `select`
    and the other methods, or as metadata where scikit-learn routes it. Pass the same in
    calibration (`fit` or `recalibrate`) and later on, or leave it out in both.

    - `ids` name the items. Ties are broken by a hash of the id; without ids, of the row's values.
    - `segments` say which segment each item belongs to, where segments have capacities.
    - `groups`, in calibration only, say which items belong together, such as the rows of one
      customer. Whole groups are held out, a float `cv` is a share of the groups, a splitter gets
      them, and the promise is about an item of a new group; see
      :func:`~shortlist.calibrate_threshold`. Without them, rows that are equal in all columns and
      in their label are a group, and share a fold; unless equal rows often differ in their label,
      which is a sign of different cases with few values. To keep rows apart, number them:
      ``groups=range(n_items)``.
    - `values` are what items are worth if they are rare, and `efforts` how much work they take;
      ``Capacity.effort(...)`` needs efforts. The threshold is then one of value * probability /
      effort. A model without `predict_proba` is wrapped in
      :class:`~sklearn.calibration.CalibratedClassifierCV`, which cross-fits probabilities within
      its training rows; `estimators_` are then these.

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

    estimator: Any
    _: KW_ONLY
    capacity: Any
    rare_label: Any = None
    prevalence: Any = None
    segment_capacities: dict[Any, Capacity | None] | None = None
    default_segment_capacity: Capacity | None = None
    cv: Any = "auto"
    list_estimator: Any = None
    guarantee: str = "expected"
    confidence: float = 0.95
    n_batches: int = 1
    ties: str = "hash"
    response_method: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    worth: Any = None
    max_effort: float | None = None
    classes_: NDArray[Any] = field(init=False)
    rare_label_: Any = field(init=False)
    rule_: Rule = field(init=False)
    _columns: Columns = field(init=False, default=None)

    @classmethod
    def as_in_paper(cls, estimator: Any, *, b: float, prevalence: float, **params: Any) -> Self:
        """Return the paper's classifier g_b: half of the data to learn from, half to calibrate on.

        The threshold is the plug-in one, which promises nothing beyond the calibration half, and no
        part of a tied block is flagged.

        Parameters
        ----------
        estimator : classifier
            Any scikit-learn classifier with scores.
        b, prevalence : float
            The capacity is b times the prevalence.
        **params
            Other parameters of the class, or others than the paper's.
        """
        own = {"cv": 0.5, "guarantee": "plug-in", "ties": "exclude"}
        capacity = Capacity.multiple(b)
        return cls(estimator, capacity=capacity, prevalence=prevalence, **{**own, **params})

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
        ids, segments, groups, values, efforts : array-like of shape (n_items,), default=None
            See the notes of the class. They are not passed on to the model.
        **params : dict
            Handed to the `fit` of the model, and sliced with the rows where they have their
            length. With metadata routing enabled, they go where they were requested.

        Returns
        -------
        self
        """
        folds.forget(self)
        with folds.restored_on_error(self):
            known = {"ids": ids, "segments": segments, "groups": groups}
            self._fit(X, y, params, known | {"values": values, "efforts": efforts})
        return self

    def _fit(self, X: Any, y: Any, params: dict[str, Any], known: dict[str, Any]) -> None:
        segments = self._check_params()
        X, y = indexable(X, y)
        seed = check_seed(self.random_state)
        y, is_rare = self._learn_labels(y)
        self._columns = columns_of(X)
        facts = _facts_of(X, segments, **known)
        groups = folds.Groups(known["groups"], facts.groups)
        own_folds = isinstance(self._cv, Real) and not self._is_prefit
        if known["groups"] is None and own_folds and is_rare is not None:
            repeats = repeats_of(X, is_rare)
            groups = folds.Groups(None, repeats.groups)
            if repeats.groups is not None:
                first = np.unique(repeats.groups, return_index=True)[1]
                groups = groups._replace(hashed=keys_of(RowFacts(X), seed + 1)(first))
            promised, limits = self._terms(ReferencePrevalence(), seed), self._limits(segments)
            refused = any(promised.refuses_groups(limit, labelled=True) for limit in limits)
            if repeats.matter and not refused:
                facts = replace(facts, groups=repeats.groups)
        terms = self._terms(ReferencePrevalence.of_labels(is_rare, facts.groups, seed=seed), seed)
        self._check_possible(segments, facts, terms, is_rare)
        keys = self._tie_keys(facts, seed)
        models = self._models(is_rare, facts, terms)
        self.estimators_, unseen = self._fit_models(models, X, y, is_rare, params, seed, groups)
        folds.remember_features(self, self.estimators_[0])
        self.out_of_fold_scores_, self.folds_ = folds.aligned_with_rows(unseen, scoring.n_rows(X))
        options: Any = {"is_rare": is_rare, "out_of_bag": self._is_out_of_bag}
        samples = [
            CalibrationSample.of(scores, rows, facts, tie_keys=keys, **options)
            for rows, scores in unseen
        ]
        self.rule_ = Rule(samples, self.capacity, terms, segments)

    # --- what is promised ------------------------------------------------------------------------

    def _check_params(self) -> SegmentCapacities | None:
        """Check all parameters, and return the capacities of segments."""
        segments = self._segment_capacities
        if self.capacity is None and segments is None:
            raise CapacityError(
                "No capacity was given. Pass capacity=Capacity.fraction(0.02), say, or "
                "segment_capacities."
            )
        check_confidence(self.confidence)
        check_option("response_method", self.response_method, ("auto", *scoring.RESPONSE_METHODS))
        folds.check_cv_option(self.cv, words=("auto", "oob", "prefit"))
        if self._is_prefit or self._is_out_of_bag or folds.holds_out(self._cv):
            self._check_no_list_estimator()
        return segments

    def _check_no_list_estimator(self) -> None:
        """Raise an error where a single model decides, whose threshold is not one of lists."""
        if self.list_estimator is not None:
            raise ValueError(
                f"list_estimator=... ranks lists where folds decide about single items, and cv="
                f"{self.cv!r} with guarantee={self.guarantee!r} makes one model, which does both. "
                "Use cv=10 with guarantee='expected' or 'confident', or leave list_estimator out."
            )

    @property
    def _segment_capacities(self) -> SegmentCapacities | None:
        return check_segment_capacities(self.segment_capacities, self.default_segment_capacity)

    def _limits(self, segments: SegmentCapacities | None) -> list[Capacity]:
        limits = [self.capacity, *(segments.limits if segments else [])]
        return [check_capacity(limit) for limit in limits if limit is not None]

    def _terms(self, labels: ReferencePrevalence, seed: int) -> Terms:
        """Return what is promised, about the prevalence in labels or the one that was stated."""
        return Terms(
            self.guarantee,
            self.confidence,
            labels._replace(stated=self.prevalence),
            seed,
            self.n_batches,
            self.max_effort,
            None if self.worth is None else check_worth(self.worth),
        )

    def _check_possible(
        self,
        segments: SegmentCapacities | None,
        facts: RowFacts,
        terms: Terms,
        is_rare: Mask | None,
    ) -> None:
        """Raise an error for a capacity that cannot be kept, before any model is fitted."""
        limits = self._limits(segments)
        for limit in limits:
            labelled = is_rare is not None and limit is self.capacity
            terms.check(limit, labelled=labelled, grouped=facts.groups is not None)
            if limit.kind == "effort":
                largest_effort(limit, facts.efforts, self.max_effort)
            else:
                limit.as_ratio(terms.reference.value)
        if all(limit.kind != "effort" for limit in limits):
            check_efforts_suit(self.capacity or Capacity.fraction(1), facts.efforts)

    def _tie_keys(self, facts: RowFacts, seed: int) -> TieKeys | None:
        """Return keys, which are prepared only if there are ties; None if ties are left out."""
        excluded = check_option("ties", self.ties, promise.TIES) == "exclude"
        return None if excluded else lambda tied: keys_of(facts, seed)(tied)

    # --- which rows a model learns from, and which it scores unseen ------------------------------

    @property
    def _is_prefit(self) -> bool:
        return folds.is_prefit(self.estimator, self.cv)

    @property
    def _is_out_of_bag(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "oob"

    @property
    def _cv(self) -> Any:
        """What `cv` stands for."""
        if isinstance(self.cv, str) and self.cv == "auto":
            guarantee = promise.guarantee_of(self.guarantee)
            return _FOLDS if guarantee.fold_place and not guarantee.surely else _HELD_OUT
        return self.cv

    # --- labels ----------------------------------------------------------------------------------

    def _learn_labels(self, y: Any) -> tuple[NDArray[Any] | None, Mask | None]:
        """Set `classes_` and `rare_label_`; return the labels and where the rare ones are."""
        if self._is_prefit:
            folds.check_trained(self.estimator)
            self.classes_ = np.asarray(self.estimator.classes_)
            if y is None:
                if self.rare_label is None:
                    raise ValueError("Without labels y, say which label is rare: rare_label=...")
                self.rare_label_ = self.rare_label
                return None, None
        y = folds.check_labels(y)
        counted = count_labels(y)
        if not self._is_prefit:
            self.classes_ = counted[0]
        folds.check_classes(self, self.classes_)
        is_rare, self.rare_label_ = find_rare(y, self.rare_label, counted=counted, on_tie="warn")
        return y, is_rare

    # --- models ----------------------------------------------------------------------------------

    def _models(self, is_rare: Mask | None, facts: RowFacts, terms: Terms) -> list[Any]:
        """Return the model to fit, and perhaps that of lists, and set `response_method_`.

        A model that learns for a capacity gets this one, unless it has its own. Values, efforts
        and worth need probabilities: a model without them is calibrated.
        """
        models = [each for each in (self.estimator, self.list_estimator) if each is not None]
        self.response_method_ = scoring.response_method_of(self.response_method, *models)
        by_value = terms.worth is not None and not terms.promises_precision
        weighs = facts.values is not None or facts.efforts is not None or by_value
        needs_probabilities = weighs and self.response_method_ != "predict_proba"
        is_trained = self._is_prefit or is_rare is None
        if needs_probabilities and (is_trained or self.response_method != "auto"):
            raise ValueError(
                "values, efforts and worth are weighed with the probability that an item is rare, "
                f"which {self.response_method_!r} of {type(models[-1]).__name__} does not "
                "give. Use response_method='auto': a model that is fitted here is then calibrated. "
                "Wrap a trained one in CalibratedClassifierCV(FrozenEstimator(model)) of "
                "scikit-learn, and fit that on other items than these."
            )
        if self._is_prefit or is_rare is None:
            return models
        known = {"rare_label": self.rare_label_}
        if self.capacity is not None and self.capacity.kind != "effort":
            known["capacity"] = Capacity.fraction(self.capacity.as_ratio(terms.reference.value))
        models = [scoring.informed(model, **known) for model in models]
        if not needs_probabilities:
            return models
        self.response_method_ = "predict_proba"
        n_folds = max(2, min(_CALIBRATION_FOLDS, int(is_rare.sum()) // 4))
        return [CalibratedClassifierCV(model, cv=n_folds) for model in models]

    def _fit_models(
        self,
        models: list[Any],
        X: Any,
        y: Any,
        is_rare: Any,
        params: dict[str, Any],
        seed: int,
        groups: folds.Groups,
    ) -> folds.TrainedModels:
        """Get the models that are to decide, and scores of rows that they have not seen."""
        estimator, *of_lists = models
        score = partial(
            scoring.rare_scores, rare_label=self.rare_label_, response_method=self.response_method_
        )
        if self._is_prefit:
            return folds.take_trained(estimator, X, params, score)
        routed = folds.route(self, y, params, groups.given)
        fit_params = routed.estimator.fit
        if self._is_out_of_bag:
            if self.response_method_ != "predict_proba" and hasattr(estimator, "predict_proba"):
                raise ValueError("Out-of-bag scores are probabilities: use response_method='auto'.")
            options = {"fit_params": fit_params, "rare_label": self.rare_label_}
            return folds.fit_out_of_bag(estimator, X, y, groups=groups.numbers, **options)
        splits = self._make_folds(X, y, is_rare, routed.splitter.split, seed, groups)
        for model in of_lists:
            self.list_estimator_ = clone(model).fit(X, y, **routed.list_estimator.fit)
        options = {"fit_params": fit_params, "score": score}
        return folds.fit_on_folds(
            estimator, X, y, splits, refit=False, n_jobs=self.n_jobs, **options
        )

    def _make_folds(
        self,
        X: Any,
        y: Any,
        is_rare: Mask,
        split_params: dict[str, Any],
        seed: int,
        groups: folds.Groups,
    ) -> list[tuple[Any, Any]]:
        """Return the rows that each model learns from, and those that it scores unseen."""
        rng = np.random.default_rng(None if self.random_state is None else seed)
        if isinstance(self._cv, Real):
            folds.check_enough_rare(is_rare, self.rare_label_)
            splits = folds.random_parts(is_rare, self._cv, rng, groups.numbers, groups.hashed)
        else:
            splits = folds.splits_of(self._cv, X, y, split_params, groups=groups.numbers)
        if len(splits) == 1:
            self._check_no_list_estimator()
        promise.check_folds(self.guarantee, [len(unseen) for _, unseen in splits])
        return splits

    # --- predicting ------------------------------------------------------------------------------

    def _score(self, X: Any, model: int | None = None) -> scoring.Scores:
        """Score rows as lists rank them, or by one of the models that decide."""
        models = self.list_estimators_ if model is None else [self.estimators_[model]]
        options = {"method": self.response_method_, "rare_label": self.rare_label_}
        return scoring.mean_scores(
            [scoring.score_classes(each, X, classes=self.classes_, **options) for each in models]
        )

    def _score_by_folds(self, X: Any, fold_of: Rows) -> scoring.Scores:
        """Score each row by the model of its fold."""
        numbers = np.unique(fold_of).tolist() or [0]
        if len(numbers) == 1:
            return self._score(X, numbers[0])
        (X,) = indexable(X)
        rows = [np.flatnonzero(fold_of == fold) for fold in numbers]
        pairs = zip(rows, numbers, strict=True)
        parts = [self._score(scoring.take_rows(X, own), fold) for own, fold in pairs]
        back = np.argsort(np.concatenate(rows))
        rare = np.concatenate([part.rare for part in parts])[back]
        by_class = [part.by_class for part in parts if part.by_class is not None]
        return scoring.Scores(rare, np.concatenate(by_class)[back] if by_class else None)

    def decide(self, X: Any, *, act: float | None = None, **known: ArrayLike | None) -> Decisions:
        """Decide about each item on its own, and return flags, scores and thresholds in one pass.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        **known : array-likes of shape (n_items,)
            The `ids`, `segments`, `values` and `efforts` of the items; see the notes of the class.
        act : float, default=None
            Divide the items into three `tiers`: items to "act" on at once, of which at least this
            share is rare, such as 0.9, with the probability `confidence`; flagged items to
            "review", which keep the capacity; and items to "pass". It takes labels in calibration.

        Returns
        -------
        Decisions
            With `flagged`, `scores`, `thresholds`, `tie_keys`, `by_class`, `acted` and `tiers`.
            With values or efforts, `scores` are value * probability / effort, as the thresholds
            are.
        """
        self._check_fitted()
        facts = _facts_of(X, self.rule_.segments, self._columns, **known)
        self.rule_.check_work(facts)
        fold_of = self.rule_.fold_of(facts)
        scores = self._score(X) if fold_of is None else self._score_by_folds(X, fold_of)
        return self.rule_.decide(scores, facts, fold_of, act)

    def flag(self, X: Any, **known: Any) -> Mask:
        """Decide for each item on its own whether to follow it up.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        **known : array-likes of shape (n_items,)
            The `ids`, `segments`, `values` and `efforts` of the items; see :meth:`decide`.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is flagged.
        """
        return self.decide(X, **known).flagged

    def predict(
        self,
        X: Any,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Predict labels: the rare label where an item is flagged.

        With more than two classes, an item that is not flagged gets the likeliest other label.

        Parameters
        ----------
        X, ids, segments, values, efforts
            See :meth:`decide`.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels.
        """
        decisions = self.decide(X, ids=ids, segments=segments, values=values, efforts=efforts)
        return _labels_of(decisions, self.classes_, self._rare_index)

    def decision_function(self, X: Any, **known: Any) -> NDArray[np.float64]:
        """Return the distance of each score from its threshold, signed as scikit-learn expects.

        Parameters
        ----------
        X, **known
            See :meth:`flag`.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_classes)
            With two classes one number per item, positive where ``classes_[1]`` is predicted: the
            score minus the threshold, or the opposite if the rare label is ``classes_[0]``. With
            more classes a column per class, of which the largest is predicted; the column of the
            rare label is the score minus the threshold. For scores that rise with suspicion,
            whatever the labels are, use :meth:`score_samples`. With two classes and several models
            it is the score of lists minus the median of the thresholds, as lists rank.
            Where the model that decides about an item disagrees with its sign, the number is 0 or
            just above it, on the side of the prediction.
        """
        decisions = self.decide(X, **known)
        if len(self.calibrations_) > 1 and decisions.by_class is None:
            decisions = _by_mean(decisions.flagged, self._score(X).rare, self.rule_)
        return _signed_margins(decisions, self._rare_index)

    def score_samples(self, X: Any) -> Floats:
        """Score items: the higher, the more suspicious.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores, to be compared with `threshold_` where there is one.
        """
        self._check_fitted()
        return self._score(X).rare

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
            In the order of `classes_`; of the model of lists, or the mean over all models.
        """
        self._check_fitted()
        models = self.list_estimators_
        return scoring.mean_of([scoring.probabilities(each, X, self.classes_) for each in models])

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> float:
        """Return the share of the rare items that the capacity finds: detection, not accuracy.

        The most suspicious items are followed up, as many as the capacity of the rule allows. For
        another capacity, use :func:`~shortlist.capacity_scorer`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,)
            Labels.
        sample_weight : array-like of shape (n_items,), default=None
            Weights of the items.
        values, efforts : array-like of shape (n_items,), default=None
            As for :meth:`decide`; with values, the share of the rare items' value.

        Returns
        -------
        float
            Between 0 and 1.
        """
        scores, terms = self.score_samples(X), self.rule_.terms
        limit = check_capacity(self.rule_.capacity)
        if limit.kind != "effort":
            limit = Capacity.fraction(limit.as_ratio(terms.reference.value))
        worth = None if terms.promises_precision else terms.worth
        known: Any = {"sample_weight": sample_weight, "values": values, "efforts": efforts}
        is_rare = np.asarray(y) == self.rare_label_
        return detection_at_capacity(is_rare, scores, limit, worth=worth, **known)

    def select(
        self,
        X: Any,
        capacity: Capacity | None = None,
        ids: ArrayLike | None = None,
        *,
        probe: Any = 0,
        worth: Any = None,
        act: float | None = None,
        return_details: bool = False,
        **known: ArrayLike | None,
    ) -> Any:
        """Flag the most suspicious items of a batch: exactly as many as the capacity allows.

        If segments have capacities, no segment gets more than its own: the result is the best list
        within all of them, and may be shorter than the capacity for all items.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            The batch.
        capacity : Capacity, default=None
            How much can be followed up in this batch; `None` takes the capacity of the rule.
        ids : array-like of shape (n_items,), default=None
            See the notes of the class.
        probe, worth, act, return_details
            As for :func:`~shortlist.select`; items known to be common are those of calibration, if
            they were held out, or came with labels in :meth:`recalibrate`. Each segment with a
            capacity of its own gives a share of its own slots to probes.
        **known : array-likes of shape (n_items,)
            The `segments`, `values` and `efforts` of the items. Values and efforts belong to this
            batch, and need not have been given to `fit`. A segment with a budget of work spends no
            more than that, and all segments together no more than the capacity for all items.

        Returns
        -------
        ndarray of bool, shape (n_items,), or Selection
            True for the items to follow up; with `return_details`, also the reason and the
            probability of each answer.
        """
        self._check_fitted()
        facts = _facts_of(X, self.rule_.segments, self._columns, ids=ids, **known)
        options: Any = {"worth": check_worth(worth), "probe": check_probe(probe), "act": act}
        chosen = self.rule_.choose(self._score(X).rare, facts, capacity, **options)
        if act is not None and not return_details:
            return chosen.tiers
        return chosen if return_details else chosen.flagged

    def with_capacity(self, capacity: Capacity) -> Self:
        """Return a fitted copy for another capacity, from the same model and calibration scores.

        Parameters
        ----------
        capacity : Capacity
            The new capacity for all items; segments keep theirs.

        Returns
        -------
        classifier
            Fitted, and sharing the fitted model; this one is not changed.
        """
        self._check_fitted()
        changed, rule = copy.copy(self), self.rule_
        changed.capacity = capacity
        terms = self._terms(rule.terms.reference, rule.terms.seed)
        changed.rule_ = Rule(rule.samples, capacity, terms, rule.segments)
        return changed

    def recalibrate(self, X: Any, y: ArrayLike | None = None, **known: ArrayLike | None) -> Self:
        """Find a new threshold from other items, without refitting the model.

        The guarantee then rests on these items. They should be recent, like the items to come, and
        no model must have been trained on them. If there are several models, the new threshold is
        one for the scores of lists (of `list_estimator_`, or the mean of all models), which then
        decide about single items, too; and every guarantee is possible. No labels are needed. A
        multiple as capacity still refers to the prevalence in `fit`. With ``guarantee="confident"``
        the promise covers the uncertainty of that prevalence too, at less cost when labels are
        given.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        y : array-like of shape (n_items,), default=None
            Labels, if there are any; their prevalence replaces that of `fit`.
        **known : array-likes of shape (n_items,)
            The `ids`, `segments`, `groups`, `values` and `efforts` of the items, as for
            :meth:`fit`.

        Returns
        -------
        self
        """
        self._check_fitted()
        check_consistent_length(X, y)
        facts = _facts_of(X, self._segment_capacities, self._columns, **known)
        is_rare = None if y is None else find_rare(y, self.rare_label_)[0]
        keys = self._tie_keys(facts, self.rule_.terms.seed)
        return self.recalibrate_scores(self._score(X).rare, facts, keys, is_rare)

    def recalibrate_scores(
        self, scores: Floats, facts: RowFacts, tie_keys: TieKeys | None, is_rare: Mask | None = None
    ) -> Self:
        """Do what `recalibrate` does, from scores that were computed before."""
        labels, seed = self.rule_.terms.reference, self.rule_.terms.seed
        if is_rare is not None:
            labels = ReferencePrevalence.of_labels(is_rare, facts.groups, seed=seed)
        terms, capacities = self._terms(labels, seed), self._segment_capacities
        if (capacities is None) != (self.rule_.segments is None):
            raise CapacityError("Segments cannot come or go in recalibration. Fit again.")
        self.rule_.check_work(facts)
        self._check_possible(capacities, facts, terms, is_rare)
        rows = np.arange(scores.size)
        sample = CalibrationSample.of(scores, rows, facts, tie_keys=tie_keys, is_rare=is_rare)
        self.rule_ = Rule([sample], self.capacity, terms, capacities)
        return self

    def controller(self, capacity: Capacity | None = None, **options: Any) -> Controller:
        """Return a controller that decides one item at a time and keeps the capacity over time.

        It starts from the calibration scores, and takes the scores of `score_samples`.

        Parameters
        ----------
        capacity : Capacity, default=None
            A rate makes a :class:`~shortlist.online.QuantileTracker`; a count without `per`, or
            with ``period=``, makes a :class:`~shortlist.online.BudgetController`. `None` takes the
            capacity of the rule.
        **options : dict
            For the controller, such as ``period=86_400, expected_arrivals=5_000``.

        Returns
        -------
        Controller
        """
        self._check_fitted()
        return controller_of(self.rule_, capacity, options)

    # --- what calibration has learned ------------------------------------------------------------

    @property
    def list_estimators_(self) -> list[Any]:
        """The models whose mean ranks lists: that of all items, or those that decide."""
        own = getattr(self, "list_estimator_", None)
        return self.estimators_ if own is None else [own]

    @property
    def calibrations_(self) -> list[CalibratedThreshold]:
        """The calibrated thresholds for all items, one for each model that decides."""
        return self.rule_.calibrations

    @property
    def calibration_(self) -> CalibratedThreshold:
        """The calibrated threshold, with all that is known about it."""
        if len(self.calibrations_) > 1:
            raise AttributeError(
                "There are several calibrated thresholds, one for each fold: see calibrations_ and "
                "thresholds_."
            )
        return self.calibrations_[0]

    @property
    def estimator_(self) -> Any:
        """The fitted model; absent if there are several."""
        models = vars(self).get("estimators_", ())
        if len(models) != 1:
            remedy = f" There are {len(models)} models: see estimators_." if models else ""
            raise AttributeError(f"{type(self).__name__} has no estimator_.{remedy}")
        return models[0]

    @property
    def threshold_(self) -> float:
        """An item is flagged when its score is strictly above; absent if there are several."""
        return self.calibration_.value

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """The threshold of each model that decides: one number, or one for each fold."""
        return np.array([calibration.value for calibration in self.calibrations_])

    @property
    def promise_(self) -> str:
        """What holds for the flags of single items, and what for lists, in plain words."""
        return promise.promise_in_words(self.rule_)

    @property
    def calibration_scores_(self) -> Floats:
        """The scores that the rule was calibrated on, of all folds together."""
        return self.rule_.calibration_scores

    @property
    def prevalence_(self) -> float:
        """Share of rare items in the labels given to `fit`; NaN when there were none."""
        share = self.rule_.terms.reference.share
        return np.nan if share is None else float(share)

    @property
    def reference_prevalence_(self) -> Any:
        """The prevalence that a multiple refers to, as stated or as in `fit`; None if unknown."""
        return self.rule_.terms.reference.value

    @property
    def capacity_fraction_(self) -> float:
        """The capacity of the rule as a fraction of all items.

        It is 1 where only segments have capacities. With a budget of work, it is the share of items
        that may be flagged if each takes the most.
        """
        if self.rule_.capacity is None:
            return 1.0
        if self.rule_.capacity.kind == "effort":
            return self.calibrations_[0].capacity_fraction
        return self.rule_.capacity.as_fraction(self.reference_prevalence_)

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
            raise AttributeError("class_weight_ is defined for two classes: it weighs one other.")
        common, rare = self.classes_[[1 - self._rare_index, self._rare_index]].tolist()
        return {common: 1.0, rare: 1 / odds if odds > 0 else np.inf}

    def _threshold_odds(self, name: str) -> float:
        """Return t / (1 - t) for a threshold t on probabilities."""
        self._check_fitted()
        has_one = self.rule_.segments is None and len(self.calibrations_) == 1
        if self.response_method_ != "predict_proba" or not has_one:
            raise AttributeError(f"{name} needs one threshold on probabilities, as with cv=0.5.")
        threshold = float(np.clip(self.threshold_, 0, 1))
        return threshold / (1 - threshold) if threshold < 1 else np.inf

    # --- scikit-learn ----------------------------------------------------------------------------

    def _html_repr(self) -> str:
        """Return the diagram of scikit-learn below capacity, threshold and promise."""
        capacity = self.capacity
        words = capacity_in_words(capacity) if isinstance(capacity, Capacity) else repr(capacity)
        facts = {"Capacity": words}
        if self.__sklearn_is_fitted__():
            facts |= {
                "Threshold": ", ".join(number(each, 4) for each in self.thresholds_),
                "Promise": self.promise_,
            }
        lines = (f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
        return f"<dl>{''.join(lines)}</dl>{super()._html_repr()}"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():  # asked here because check_is_fitted is slow
            check_is_fitted(self)

    @property
    def _rare_index(self) -> int:
        return self.classes_.tolist().index(self.rare_label_)


def _facts_of(
    X: Any,
    capacities: SegmentCapacities | None,
    columns: Columns = None,
    *,
    ids: ArrayLike | None = None,
    segments: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
) -> RowFacts:
    """Check what was passed with rows, and number their segments and groups."""
    if all(each is None for each in (ids, segments, groups, values, efforts, capacities)):
        return RowFacts(X, columns=columns)
    n_items = scoring.n_rows(X)
    divided = segments is not None or capacities is not None
    return RowFacts(
        X,
        check_ids(ids, n_items),
        segment_codes(segments, capacities, n_items) if divided else None,
        number_groups(groups, n_items),
        check_values(values, n_items),
        check_efforts(efforts, n_items),
        columns,
    )


def _labels_of(decisions: Decisions, classes: NDArray[Any], rare: int) -> NDArray[Any]:
    """Return the rare label where an item is flagged, and the likeliest other one elsewhere."""
    if decisions.by_class is None:
        return _two_labels(classes, rare, decisions.flagged)
    predicted = np.argmax(_without(rare, decisions.by_class), axis=1)
    predicted[decisions.flagged] = rare
    return classes[predicted]


def _two_labels(classes: NDArray[Any], rare: int, flagged: Mask) -> NDArray[Any]:
    if rare == 1 and classes.dtype.kind in "iu" and classes.tolist() == [0, 1]:
        return flagged.astype(classes.dtype)  # several times as quick as looking labels up
    labels = np.full(flagged.size, classes[1 - rare], dtype=classes.dtype)
    labels[flagged] = classes[rare]
    return labels


def _signed_margins(decisions: Decisions, rare: int) -> NDArray[np.float64]:
    """Return score minus threshold, signed as the predicted labels; one column for each of many."""
    if decisions.by_class is None and rare == 0:
        return _margin(decisions.thresholds, decisions.scores, ~decisions.flagged)
    margin = _margin(decisions.scores, decisions.thresholds, decisions.flagged)
    if decisions.by_class is None:
        return margin
    # The best other class stands at 0 below a flag, and at 1 above everything else.
    others = _without(rare, decisions.by_class)
    columns = others - others.max(axis=1, keepdims=True) + ~decisions.flagged[:, np.newaxis]
    columns[:, rare] = margin
    return columns


def _by_mean(flagged: Mask, scores: Floats, rule: Rule) -> Decisions:
    """Describe decisions of several models by the score of lists and their median threshold."""
    values = np.array([each.value for each in rule.calibrations])
    finite = values[np.isfinite(values)]
    threshold = np.median(finite) if finite.size else rule.calibration_scores.max()
    return Decisions(flagged, scores, np.broadcast_to(np.float64(threshold), scores.shape))


def _margin(upper: Floats, lower: Floats, is_positive: Mask) -> NDArray[np.float64]:
    """Return the difference of two arrays: finite, and positive exactly where it should be."""
    with np.errstate(invalid="ignore", over="ignore"):
        margin = np.nan_to_num(upper.astype(np.float64) - lower, nan=0.0)
    # Ties with the threshold, and infinities that meet, have no sign of their own.
    unsettled = (margin > 0) != is_positive
    margin[unsettled] = np.where(is_positive[unsettled], _JUST_ABOVE, 0.0)
    return margin


def _without(rare: int, by_class: Floats) -> NDArray[np.float64]:
    others = np.array(by_class, dtype=np.float64)
    others[:, rare] = -np.inf
    return others
