"""What every classifier here can do once it is fitted: flags, labels and lists within a capacity.

Every prediction goes through `decide`, which asks the rule that calibration has made.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._core.arrays import Floats, Mask
from .._core.binomial import Interval
from .._core.folds import Unseen
from .._core.labels import find_rare
from .._core.probing import check_probe
from .._core.scoring import Scores, n_rows
from .._core.validation import UNCHANGED
from .._core.work import Work
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..metrics import detection_at_capacity
from ..online import Controller
from ..thresholds import (
    CalibratedThreshold,
    CalibrationSample,
    Decisions,
    Items,
    ReferencePrevalence,
    Rule,
)
from ..worth import check_worth
from ._answers import by_mean, labels_of, signed_margins
from ._calibrating import calibrator_of, terms_of
from ._controllers import controller_of
from ._listing import Batch

__all__ = ["CapacityDecisionMixin"]


class CapacityDecisionMixin:
    """Flags, labels and lists within a capacity, for any classifier that can score items.

    A subclass stores the parameters `capacity`, `segment_capacities`, `default_segment_capacity`,
    `prevalence`, `guarantee`, `confidence`, `n_batches`, `ties` and `random_state`, implements
    `_score`, and in `fit` sets `classes_`, `rare_label_` and, with the help of `calibrator_of`,
    `rule_`.
    """

    capacity: Any
    segment_capacities: dict[Any, Capacity | None] | None
    default_segment_capacity: Capacity | None
    prevalence: Any
    guarantee: str
    confidence: float
    n_batches: int
    ties: str
    random_state: Any
    worth: Any = None
    max_effort: float | None = None
    classes_: NDArray[Any]
    rare_label_: Any
    rule_: Rule

    def decide(
        self,
        X: Any,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> Decisions:
        """Decide about each item on its own, and return flags, scores and thresholds in one pass.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties, if calibration had them; otherwise the row's own values
            are hashed.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, if segments have capacities.
        values, efforts : array-like of shape (n_items,), default=None
            What each item is worth if it is rare, and how much work it takes, if `fit` had them.

        Returns
        -------
        Decisions
            With `flagged`, `scores`, `thresholds`, `tie_keys` and `by_class`. With values or
            efforts, `scores` are value * probability / effort, as the thresholds are.
        """
        self._check_fitted()
        codes = self.rule_.segment_codes(segments, X)
        work = self._work(X, values, efforts)
        self.rule_.check_work(work)
        return self.rule_.decide(Items(X, self._score, ids=ids, segments=codes, work=work))

    def flag(
        self,
        X: Any,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> Mask:
        """Decide for each item on its own whether to follow it up.

        Parameters
        ----------
        X, ids, segments, values, efforts
            As for :meth:`decide`.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is flagged.
        """
        return self.decide(X, ids=ids, segments=segments, values=values, efforts=efforts).flagged

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
            As for :meth:`decide`.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels.
        """
        decisions = self.decide(X, ids=ids, segments=segments, values=values, efforts=efforts)
        return labels_of(decisions, self.classes_, self._rare_index)

    def decision_function(
        self,
        X: Any,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return the distance of each score from its threshold, signed as scikit-learn expects.

        Parameters
        ----------
        X, ids, segments, values, efforts
            As for :meth:`decide`.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_classes)
            With two classes one number per item, positive where ``classes_[1]`` is predicted: the
            score minus the threshold, or the opposite if the rare label is ``classes_[0]``. With
            more classes a column per class, of which the largest is predicted; the column of the
            rare label is the score minus the threshold. For scores that rise with suspicion,
            whatever the labels are, use :meth:`score_samples`. With two classes and several models
            it is the mean of their scores minus the median of their thresholds, as lists rank.
            Where the model that decides about an item disagrees with its sign, the number is 0 or
            just above it, on the side of the prediction.
        """
        decisions = self.decide(X, ids=ids, segments=segments, values=values, efforts=efforts)
        if len(self.calibrations_) > 1 and decisions.by_class is None:
            decisions = by_mean(decisions.flagged, self._score(X).rare, self.rule_)
        return signed_margins(decisions, self._rare_index)

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
        is_rare = np.asarray(y) == self.rare_label_
        limit = check_capacity(self.rule_.capacity)
        if limit.kind != "effort":
            limit = Capacity.fraction(limit.as_ratio(terms.reference.value))
        return detection_at_capacity(
            is_rare,
            scores,
            limit,
            sample_weight=sample_weight,
            values=values,
            efforts=efforts,
            worth=None if terms.worth is None or terms.worth.kind != "value" else terms.worth,
        )

    def select(
        self,
        X: Any,
        capacity: Capacity | None = None,
        ids: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
        probe: Any = 0,
        strata: int = 1,
        return_details: bool = False,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
        worth: Any = None,
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
            Identifiers that break ties; the row's own values are hashed when absent.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, if segments have capacities.
        probe, strata, return_details
            As for :func:`~shortlist.select`: a share of the slots for items below the cut, drawn
            at random. Each segment with a capacity of its own gives a share of its own slots.
        values, efforts, worth
            As for :func:`~shortlist.select`; the scores must be probabilities. They belong to this
            batch, and need not have been given to `fit`. A segment with a budget of work spends
            no more than that, and all segments together no more than the capacity for all items.

        Returns
        -------
        ndarray of bool, shape (n_items,), or Selection
            True for the items to follow up; with `return_details`, also the reason and the
            probability of each answer.
        """
        self._check_fitted()
        batch = Batch.of(
            X,
            self._score(X).rare,
            ids,
            seed=self.rule_.terms.seed,
            segments=self.rule_.segment_codes(segments, X),
            work=self._work(X, values, efforts),
        )
        listed = batch.listed(
            self.rule_, capacity, probe=check_probe(probe), strata=strata, worth=check_worth(worth)
        )
        return listed if return_details else listed.flagged

    def with_capacity(
        self, capacity: Capacity | None = UNCHANGED, *, segment_capacities: Any = UNCHANGED
    ) -> Self:
        """Return a fitted copy for another capacity, from the same model and calibration scores.

        Parameters
        ----------
        capacity : Capacity, default="unchanged"
            The new capacity.
        segment_capacities : dict from segments to Capacity, default="unchanged"
            New capacities of the same segments.

        Returns
        -------
        classifier
            Fitted, and sharing the fitted model; this one is not changed.
        """
        self._check_fitted()
        changed = copy.copy(self)
        changed.rule_ = self.rule_.with_capacity(
            capacity,
            segment_capacities=segment_capacities,
            terms=terms_of(self, self.rule_.terms.reference, self.rule_.terms.seed),
        )
        changed.capacity = changed.rule_.capacity
        if changed.rule_.segments is not None:
            changed.segment_capacities = changed.rule_.segments.named
        return changed

    def recalibrate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> Self:
        """Find a new threshold from other items, without refitting the model.

        The guarantee then rests on these items. They should be recent, like the items to come, and
        no model must have been trained on them. If there are several models, the new threshold is
        one for their mean score, and every guarantee is possible. No labels are needed. A multiple
        as capacity still refers to the prevalence in `fit`. With ``guarantee="confident"`` the
        promise covers the uncertainty of that prevalence too, at less cost when labels are given.

        Parameters
        ----------
        X, ids, segments, values, efforts
            As for :meth:`decide`.
        y : array-like of shape (n_items,), default=None
            Labels, if there are any; their prevalence replaces that of `fit`.
        groups : array-like of shape (n_items,), default=None
            The group of each item, if some belong together, as for `fit`.

        Returns
        -------
        self
        """
        self._check_fitted()
        check_consistent_length(X, y)
        is_rare = None if y is None else find_rare(y, self.rare_label_)[0]
        old = self.rule_.terms
        labels = old.reference if is_rare is None else None
        work = self._work(X, values, efforts)
        self.rule_.check_work(work)
        calibrator = calibrator_of(
            self, X, is_rare, ids, segments, seed=old.seed, labels=labels, groups=groups, work=work
        )
        rows = np.arange(n_rows(X))
        unseen = [Unseen(rows, self._score(X).rare)]
        self.rule_ = self.rule_.recalibrated(
            calibrator.samples(unseen),
            capacity=calibrator.capacity,
            segments=calibrator.segments,
            terms=calibrator.terms,
        )
        return self

    def recalibrate_scores(
        self,
        scores: ArrayLike,
        tie_keys: ArrayLike,
        *,
        keyed_by_ids: bool,
        is_rare: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> Self:
        """Do what :meth:`recalibrate` does, from scores that were computed before, in parts.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores by :meth:`score_samples`.
        tie_keys : array-like of shape (n_items,)
            Keys of the items, made with the seed of the rule.
        keyed_by_ids : bool
            Whether the keys come from ids; else they come from the rows.
        is_rare : array-like of shape (n_items,), default=None
            Labels, if there are any.
        values, efforts : array-like of shape (n_items,), default=None
            As for :meth:`decide`.

        Returns
        -------
        self
        """
        self._check_fitted()
        work = Work.of(values, efforts, np.asarray(scores).size)
        self.rule_.check_work(work)
        self._check_no_segments()
        keys, old = np.asarray(tie_keys), self.rule_.terms
        rare = None if is_rare is None else np.asarray(is_rare, dtype=bool)
        labels = old.reference
        if rare is not None:
            labels = ReferencePrevalence.of_labels(rare, seed=old.seed)
        sample = CalibrationSample.of(
            np.asarray(scores),
            rows=np.arange(keys.size),
            tie_keys=keys.__getitem__ if self.ties == "hash" else None,
            keyed_by_ids=keyed_by_ids,
            is_rare=rare,
            work=work,
        )
        terms = terms_of(self, labels, old.seed)
        self.rule_ = self.rule_.recalibrated([sample], capacity=self.capacity, terms=terms)
        return self

    def _check_no_segments(self) -> None:
        if self.rule_.segments is not None:
            raise CapacityError("Scores alone have no segments. Use recalibrate(..., segments=).")

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
        return self.rule_.promise

    @property
    def flag_rate_interval_(self) -> Interval:
        """Confidence interval of the true flag rate; NaN where it is not known."""
        return self.rule_.flag_rate_interval

    @property
    def segment_calibrations_(self) -> dict[Any, Any]:
        """The calibrated threshold of each segment with a capacity; a list of them with folds."""
        return self.rule_.segment_calibrations

    @property
    def segment_thresholds_(self) -> dict[Any, Any]:
        """What a score must exceed in each segment; None stands for segments not named.

        With folds, a list of one number for each of them.
        """
        return self.rule_.segment_thresholds

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
        """The capacity of the rule as a fraction of all items."""
        return self.rule_.max_fraction

    # --- for subclasses --------------------------------------------------------------------------

    def _score(self, X: Any, model: int | None = None) -> Scores:
        """Score items for the rare label, rising with suspicion; by class, if more than two.

        `model` is the number of one model among several; None averages all of them.
        """
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():  # asked here because check_is_fitted is slow
            check_is_fitted(self)

    def _work(self, X: Any, values: ArrayLike | None, efforts: ArrayLike | None) -> Work:
        """Return checked values and efforts, of which most calls have none."""
        if values is None and efforts is None:
            return Work()
        return Work.of(values, efforts, n_rows(X))

    @property
    def _rare_index(self) -> int:
        return self.classes_.tolist().index(self.rare_label_)
