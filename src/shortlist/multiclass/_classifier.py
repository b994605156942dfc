"""`MulticlassCapacityClassifier`: several rare classes, each with its own capacity."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from .._core import folds
from .._core.arrays import Floats, Mask, Rows, TieKeys
from .._core.ids import columns_of, repeats_of, tie_keys_of
from .._core.ranking import as_calibrated
from .._core.scoring import n_rows, probabilities
from .._core.validation import UNCHANGED, check_confidence, check_option, check_seed
from .._core.work import check_values
from ..assignment.integers import FixedPoint, solve_integers
from ..capacity import Capacity
from ..thresholds.promise import TIES
from ..thresholds.samples import check_segment_capacities, segment_codes
from ._capacities import JointCapacities, check_joint_capacities
from ._rule import GUARANTEES, JointDecisions, JointRule, JointSample, Valuation


@dataclass(eq=False, repr=False)
class MulticlassCapacityClassifier(
    folds.WrapperMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    r"""Find several rare classes at once, each within its capacity, with any classifier inside.

    Maximises the sum of the rare classes' sensitivities plus the share of the majority that is
    classified correctly, subject to a capacity for each rare class, and optionally for each segment
    and in total. An item gets the class with the highest weighted posterior minus price.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with `predict_proba`. It gets `X` as it is.
    capacities : dict from labels to Capacity, or Capacity
        How many items may get each rare label; `None` as a value means no limit. The labels that
        are not named form the majority. A multiple refers to the prevalence of its label. A single
        Capacity applies to each label but the most common. A budget of work is a number of flags:
        ``Capacity.effort(480, per=1_000).as_flags(30)`` if each item of the class takes 30.
    total : Capacity, default=None
        How many items may get any rare label. A multiple refers to all rare labels together.
    segment_capacities : dict from segments to Capacity, default=None
        How many items of each segment (a region, a team, a product) may get any rare label. A
        fraction refers to the segment's *own* items; a multiple refers to all rare labels
        together in all data; `None` as a value means no limit. Pass the segments of the items to
        `fit`, `predict`, `select` and `recalibrate`.
    default_segment_capacity : Capacity, default=None
        For all segments that are not named, taken together. With `None`, a segment that is not
        named is an error.
    cv : float, int, splitter or "prefit", default=0.5
        Where the posteriors for the prices come from, as for
        :class:`~shortlist.CapacityClassifier`: a held-out share, folds followed by a refit
        (guarantees are then approximate), or a trained model and data it has not seen.
    guarantee : {"plug-in", "expected", "confident"}, default="expected"
        What is guaranteed about future items:

        - ``"plug-in"``: the calibration items themselves are within all capacities. On future
          items, some class exceeds its capacity more often than not.
        - ``"expected"``: each flag rate is at most its capacity, on average over calibrations.
        - ``"confident"``: all flag rates are within their capacities at once, except with
          probability 1 - `confidence`.

        For the last two, half of the calibration items set the prices, the other half sets how
        clear a case must be.
    confidence : float, default=0.95
        For ``guarantee="confident"``.
    class_weights : dict from labels to numbers, default=None
        Weights of the sensitivities in the objective; 1 when absent.
    majority : bool, default=True
        Whether correct classification within the majority counts in the objective.
    ties : {"exclude", "hash"}, default="hash"
        Items that tie at the prices are left alone, or decided by a hash of their ids (or of their
        own values). With the hash, coarse posteriors use up their capacity.
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
    rule_ : JointRule
        The rule that decides: prices, the capacities they stand for and the calibration items.
    prevalences_ : dict
        Share of each rare label in `fit`.
    prices_ : dict from labels to floats
        The value of one more flag: another flag in every thousand items raises the objective by
        a thousandth of the price. 0 where the capacity is not used up.
    total_price_ : float
        The same for the total.
    segment_prices_ : dict
        The same for each segment; `None` stands for the segments that are not named.

    See Also
    --------
    CapacityClassifier : One rare class.
    assign : The batch mode alone, from values.

    Notes
    -----
    With posteriors :math:`\eta_j`, prevalences :math:`\pi_j` and prices :math:`\lambda_j`, the rule
    is the argmax of :math:`\eta_0 / \pi_0` (the best member of the majority, over the prevalence of
    all of it) and :math:`w_j \eta_j / \pi_j - \lambda_j - \mu_{segment} - \nu`. The prices are the
    dual solution of the assignment problem on the calibration items. Values are compared in whole
    numbers, and an item gets a rare label only if that label leads strictly. Therefore no tie
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

    estimator: Any
    _: KW_ONLY
    capacities: Any
    total: Capacity | None = None
    segment_capacities: dict[Any, Capacity | None] | None = None
    default_segment_capacity: Capacity | None = None
    cv: Any = 0.5
    guarantee: str = "expected"
    confidence: float = 0.95
    class_weights: dict[Any, float] | None = None
    majority: bool = True
    ties: str = "hash"
    random_state: Any = None

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
        X, y, ids, **params
            As for `CapacityClassifier.fit`.
        segments : array-like of shape (n_items,), default=None
            The segment of each item; needed with `segment_capacities`.

        Returns
        -------
        self
        """
        if unknown := sorted({"values", "efforts", "groups"} & set(params)):
            raise ValueError(
                f"{' and '.join(unknown)} of items cannot be combined with joint prices. Pass "
                "values=... to select and one item of each group, or use a CapacityClassifier for "
                "each class."
            )
        folds.forget(self)
        with folds.restored_on_error(self):
            self._check_params()
            X, y = indexable(X, y)
            self._seed, self._columns = check_seed(self.random_state), columns_of(X)
            y = folds.check_labels(y)
            joint = self._learn_capacities(self._learn_classes(y))
            codes = segment_codes(segments, joint.segments, n_rows(X))
            tie_keys = self._tie_keys(X, ids)
            (self.estimator_,), ((rows, posteriors),) = self._fit_model(X, y, params)
            folds.remember_features(self, self.estimator_)
            keys = tie_keys(rows) if self.ties == "hash" else None
            sample = self._valuation.sample(
                posteriors, codes[rows], keys, keyed_by_ids=ids is not None
            )
            self.rule_ = self._calibrated(sample, joint)
        return self

    def decide(
        self, X: Any, *, segments: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> JointDecisions:
        """Decide about each item on its own, and return labels, posteriors and surplus together.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        segments : array-like of shape (n_items,), default=None
            The segment of each item; needed with `segment_capacities`.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties, if calibration had them.

        Returns
        -------
        JointDecisions
            With `labels`, `columns`, `posteriors`, `surplus` and `flagged`.
        """
        posteriors = self.predict_proba(X)
        compared = as_calibrated(posteriors, self.rule_.sample.precision)
        codes = segment_codes(segments, self.rule_.capacities.segments, len(posteriors))
        tie_keys, hashed = self._tie_keys(X, ids), self.rule_.sample.keys is not None
        keys = tie_keys(np.arange(codes.size)) if hashed else None  # whatever was set since
        sample = self._valuation.sample(compared, codes, keys, keyed_by_ids=ids is not None)
        columns, surplus = self.rule_.decide(sample)
        labels = self.classes_[self._valuation.classes_of(columns, posteriors)]
        return JointDecisions(labels, columns, posteriors, surplus)

    def predict(
        self, X: Any, *, segments: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict the label of each item on its own: a rare label if it is worth its price.

        Parameters
        ----------
        X, segments, ids
            As for :meth:`decide`.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels; an item without a rare label gets the likeliest label of the majority.
        """
        return self.decide(X, segments=segments, ids=ids).labels

    def flag(
        self, X: Any, *, segments: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> Mask:
        """Flag the items that get a rare label.

        Parameters
        ----------
        X, segments, ids
            As for :meth:`decide`.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item gets any of the rare labels.
        """
        return self.decide(X, segments=segments, ids=ids).flagged

    def predict_proba(self, X: Any) -> Floats:
        """Return the model's probabilities; the capacities do not change them.

        Parameters
        ----------
        X
            As for :meth:`decide`.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return probabilities(self.estimator_, X, self.classes_)

    def select(
        self,
        X: Any,
        capacities: Any = UNCHANGED,
        *,
        total: Any = UNCHANGED,
        segments: ArrayLike | None = None,
        values: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Label a batch: the exact optimum for this batch within its capacities.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            The batch.
        capacities, total : default="unchanged"
            Capacities for this batch, as for the class; ``Capacity.count(50)`` is a number of
            items here. They must name the labels of `fit`. By default, those of the classifier.
        segments
            As for :meth:`decide`.
        values : array-like of shape (n_items,), default=None
            The amount at stake for each item, which multiplies its values.
        ids : array-like of shape (n_items,), default=None
            Identifiers that break ties; by default, the values of the row are hashed.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels; no rare label occurs more often than its capacity allows.
        """
        posteriors = self.predict_proba(X)
        joint = self.rule_.capacities.changed(capacities, total)
        codes = segment_codes(segments, joint.segments, len(posteriors))
        sample = self._valuation.sample(posteriors, codes)
        worth = check_values(values, len(sample))
        gains = sample.gains if worth is None else sample.gains * worth[:, np.newaxis]
        columns, _ = solve_integers(
            FixedPoint.for_gains(gains).to_integers(gains),
            joint.in_batch(sample.sizes(len(joint.limits))),
            codes,
            self._tie_keys(X, ids),
        )
        return self.classes_[self._valuation.classes_of(columns, posteriors)]

    def with_capacities(self, capacities: Any = UNCHANGED, *, total: Any = UNCHANGED) -> Self:
        """Return a fitted copy for other capacities, with the same model and calibration items.

        Parameters
        ----------
        capacities, total : default="unchanged"
            The new capacities, as for the class. They must name the labels of `fit`.

        Returns
        -------
        classifier
            Fitted, and sharing the fitted model; this classifier does not change.
        """
        check_is_fitted(self)
        changed, joint = copy.copy(self), self.rule_.capacities.changed(capacities, total)
        changed.rule_ = self._calibrated(self.rule_.sample, joint)
        changed.capacities, changed.total = joint.classes, joint.total
        return changed

    def recalibrate(
        self,
        X: Any,
        *,
        segments: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Find new prices from other items, without labels and without refitting the model.

        Parameters that were set since `fit`, such as other capacities of segments, count from now
        on.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Recent items that the model has not been trained on.
        segments, ids
            As for :meth:`fit`.

        Returns
        -------
        self
        """
        posteriors = self.predict_proba(X)
        self._check_params()
        with folds.restored_on_error(self):
            joint = self._learn_capacities(self.rule_.capacities.counts)
            codes = segment_codes(segments, joint.segments, len(posteriors))
            tie_keys = self._tie_keys(X, ids)
            keys = tie_keys(np.arange(codes.size)) if self.ties == "hash" else None
            sample = self._valuation.sample(posteriors, codes, keys, keyed_by_ids=ids is not None)
            self.rule_ = self._calibrated(sample, joint)
        return self

    @property
    def prices_(self) -> dict[Any, float]:
        """The price of each rare label."""
        return dict(zip(self.rare_labels_, self.rule_.values_of_flags, strict=False))

    @property
    def total_price_(self) -> float:
        """The price of the total, on top of that of the label."""
        return self.rule_.values_of_flags[-1]

    @property
    def segment_prices_(self) -> dict[Any, float]:
        """The price of each segment; None stands for the segments that are not named."""
        segments = self.rule_.capacities.segments
        names = [] if segments is None else [name for name, _ in segments.items]
        prices = self.rule_.values_of_flags[len(self.rare_labels_) :]
        return dict(zip(names, prices, strict=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")

    # --- fitting --------------------------------------------------------------------------------

    def _check_params(self) -> None:
        check_option("guarantee", self.guarantee, GUARANTEES)
        check_option("ties", self.ties, TIES)
        check_confidence(self.confidence)
        folds.check_cv_option(self.cv)
        if not isinstance(self.majority, (bool, np.bool_)):
            raise ValueError(f"majority must be True or False; got {self.majority!r}.")
        if not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict_proba, but classes are compared "
                "by their probabilities. Wrap it in a CalibratedClassifierCV."
            )

    def _learn_classes(self, y: NDArray[Any]) -> dict[Any, int]:
        """Set `classes_`, and return how often each of them occurs."""
        self.classes_ = np.unique(y)
        if folds.is_prefit(self.estimator, self.cv):
            folds.check_trained(self.estimator)
            self.classes_ = np.asarray(self.estimator.classes_)
        folds.check_classes(self, self.classes_)
        if (unknown := np.setdiff1d(y, self.classes_)).size:
            raise ValueError(
                f"y holds labels that the trained model does not know: {unknown.tolist()[:5]}; it "
                f"knows {self.classes_.tolist()}."
            )
        counts = np.bincount(np.searchsorted(self.classes_, y), minlength=self.classes_.size)
        return dict(zip(self.classes_.tolist(), counts.tolist(), strict=True))

    def _learn_capacities(self, counts: dict[Any, int]) -> JointCapacities:
        """Check the capacities; learn the rare labels, their prevalences and their values."""
        joint = check_joint_capacities(
            self.capacities,
            self.total,
            check_segment_capacities(self.segment_capacities, self.default_segment_capacity),
            counts=counts,
        )
        self.rare_labels_ = list(joint.classes)
        self.prevalences_ = {label: float(joint.share(counts[label])) for label in joint.classes}
        joint.check_rates()  # before any model is fitted
        self._valuation = Valuation.from_counts(
            counts, self.rare_labels_, weights=self.class_weights, majority=self.majority
        )
        return joint

    def _fit_model(self, X: Any, y: NDArray[Any], params: dict[str, Any]) -> folds.TrainedModels:
        """Fit the model; return it, and posteriors of items that it has not seen."""
        score = partial(probabilities, classes=self.classes_)
        if folds.is_prefit(self.estimator, self.cv):
            return folds.take_trained(self.estimator, X, params, score)
        routed = folds.route(self, y, params)
        if isinstance(self.cv, Real):
            splits = self._random_parts(X, y)
        else:
            splits = folds.splits_of(self.cv, X, y, routed.splitter.split)
        options: dict[str, Any] = {"fit_params": routed.estimator.fit, "score": score}
        refit = not folds.holds_out(self.cv)
        return folds.fit_on_folds(self.estimator, X, y, splits, refit=refit, n_jobs=None, **options)

    def _random_parts(self, X: Any, y: NDArray[Any]) -> list[tuple[Rows, Rows]]:
        """Return the rows to learn from and those left out; every class can be learned from."""
        codes = np.searchsorted(self.classes_, y)
        rarest = np.bincount(codes).argmin()
        folds.check_enough_rare(codes == rarest, self.classes_.tolist()[rarest])
        seed = None if self.random_state is None else self._seed
        together = repeats_of(X, codes).groups  # they share a fold
        return folds.random_parts(codes, self.cv, np.random.default_rng(seed), together)

    def _calibrated(self, sample: JointSample, joint: JointCapacities) -> JointRule:
        return JointRule.calibrate(
            sample,
            joint,
            guarantee=self.guarantee,
            confidence=self.confidence,
            random_state=self._seed % 2**64,
        )

    # --- deciding -------------------------------------------------------------------------------

    def _tie_keys(self, X: Any, ids: ArrayLike | None) -> TieKeys:
        return tie_keys_of(X, ids, seed=self._seed, columns=self._columns)
