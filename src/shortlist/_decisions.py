"""What a fitted model with scores and a calibrated threshold can be asked."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._calibration import CalibratedMixin, CalibrationSample, Floats, Mask
from ._core.labels import find_rare, two_labels
from ._core.ranking import TieKeys, flag_exactly
from ._core.scoring import Scores
from ._core.steady import as_calibrated, lift
from ._core.validation import check_scores
from ._wrapping.fitting import restored_on_error
from .capacity import Capacity, check_capacity
from .online import BudgetController, Controller, QuantileTracker
from .thresholds import CalibratedThreshold

__all__ = ["CapacityDecisionMixin", "Decisions", "Floats", "Mask"]

# The smallest number above 0: a flagged tie lies on the threshold, and still on its right side.
_JUST_ABOVE = np.nextafter(0.0, 1.0)


class Decisions(NamedTuple):
    """Flags, the scores and thresholds they were made with, and scores by class beyond two."""

    flagged: Mask
    scores: Floats
    threshold: Any
    by_class: Floats | None


class CapacityDecisionMixin(CalibratedMixin):
    """Flags, labels and lists under a capacity, for a classifier that can score.

    Beyond what its parent asks for, a subclass implements `_score`, and in `fit` sets `classes_`
    and `rare_label_`.
    """

    classes_: NDArray[Any]
    rare_label_: Any

    def _score(self, X: Any) -> Scores:
        """Score items for the rare label, rising with suspicion; by class, if more than two."""
        raise NotImplementedError

    def score_samples(self, X: Any) -> Floats:
        """Score items: the higher, the more suspicious.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores, to be compared with `threshold_` where that is a single number.
        """
        self._check_fitted()
        return self._score(X).rare

    def flag(self, X: Any, *, ids: ArrayLike | None = None) -> Mask:
        """Decide for each item on its own whether to follow it up.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties, if there were any in calibration; otherwise the row's
            own values are hashed.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is flagged.
        """
        self._check_fitted()
        return self._decide(X, ids).flagged

    def predict(self, X: Any, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Predict labels: the rare label where an item is flagged.

        With more than two classes, an item that is not flagged gets the likeliest other label.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            As for :meth:`flag`.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels.
        """
        self._check_fitted()
        return self._labels_of(self._decide(X, ids))

    def decision_function(self, X: Any, *, ids: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the score minus the threshold: positive where an item is flagged.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            As for :meth:`flag`.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_classes)
            With two classes one number per item, which speaks for the *rare* label wherever it
            stands in `classes_`. With more classes a column per class, of which the largest is
            predicted; the column of the rare label is the score minus the threshold.
        """
        self._check_fitted()
        return self._margins_of(self._decide(X, ids))

    def select(
        self, X: Any, capacity: Capacity | None = None, ids: ArrayLike | None = None
    ) -> Mask:
        """Flag the most suspicious items of a batch: exactly as many as the capacity allows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            The batch.
        capacity : Capacity, default=None
            How much can be followed up in this batch; `None` takes the one of the threshold.
        ids : array-like of shape (n_items,), default=None
            Identifiers that break ties; the row's own values are hashed when absent.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True for the items to follow up.
        """
        scores = lift(check_scores(self.score_samples(X)))
        capacity = self._calibrated_capacity if capacity is None else check_capacity(capacity)
        max_flags = capacity.max_flags(scores.size, self._reference_prevalence())
        return flag_exactly(scores, max_flags, self._keys(X, ids))

    def with_capacity(self, capacity: Capacity) -> Self:
        """Return a fitted copy for another capacity, from the same model and calibration scores.

        Parameters
        ----------
        capacity : Capacity
            The new capacity.

        Returns
        -------
        classifier
            Fitted, and sharing the fitted model; this one is left as it is.
        """
        self._check_fitted()
        changed = copy.copy(self)
        changed.capacity = check_capacity(capacity)
        changed._calibrate_on(self._samples)
        return changed

    def recalibrate(
        self, X: Any, y: ArrayLike | None = None, *, ids: ArrayLike | None = None
    ) -> Self:
        """Find a new threshold from other items, without refitting the model.

        The guarantee then rests on these items: they should be recent, like the ones to come, and
        not among those the model was trained on. No labels are needed. A multiple as capacity still
        refers to the prevalence of `fit`; ``guarantee="confident"`` covers the uncertainty
        of that, too, and does so at less cost when labels are given.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), default=None
            Their labels, if there are any; they replace the prevalence of `fit`.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        self
        """
        self._check_fitted()
        return self._recalibrate(X, y, ids)

    def controller(self, capacity: Capacity | None = None, **options: Any) -> Controller:
        """Return a controller that decides one item at a time and keeps the capacity over time.

        It starts from the calibration scores, and takes the scores of `score_samples`.

        Parameters
        ----------
        capacity : Capacity, default=None
            A rate makes a :class:`~shortlist.online.QuantileTracker`; a count without `per`, or
            with ``period=``, makes a :class:`~shortlist.online.BudgetController`. `None` takes the
            capacity of the threshold.
        **options : dict
            For the controller, such as ``period=86_400, expected_arrivals=5_000``.

        Returns
        -------
        Controller
        """
        self._check_one_capacity()
        capacity = self._calibrated_capacity if capacity is None else check_capacity(capacity)
        scores = np.concatenate([sample.scores for sample in self._samples])
        options = {"calibration_scores": scores, **options}
        if capacity.kind == "count" and (capacity.per is None or "period" in options):
            if capacity.per is not None:
                options = {"expected_arrivals": capacity.per, **options}
            return BudgetController(Capacity.count(int(capacity.value)), **options)
        return QuantileTracker(capacity, **{"prevalence": self._reference_prevalence(), **options})

    # --- for subclasses -----------------------------------------------------------------------

    def _check_one_capacity(self) -> None:
        """Complain when a single controller cannot keep all that is promised."""
        self._check_fitted()

    def _labels_of(self, decisions: Decisions) -> NDArray[Any]:
        if decisions.by_class is None:
            return two_labels(self.classes_, self._rare_index, decisions.flagged)
        predicted = np.argmax(self._without_rare(decisions.by_class), axis=1)
        predicted[decisions.flagged] = self._rare_index
        return self.classes_[predicted]

    def _margins_of(self, decisions: Decisions) -> NDArray[np.float64]:
        flagged, scores, threshold, by_class = decisions
        margin = _margin(scores, threshold, flagged)
        if by_class is None:
            return margin
        # The best other class stands at 0 below a flag, and at 1 above everything else.
        others = self._without_rare(by_class)
        decision = others - others.max(axis=1, keepdims=True) + ~flagged[:, np.newaxis]
        decision[:, self._rare_index] = margin
        return decision

    @property
    def _rare_index(self) -> int:
        return self.classes_.tolist().index(self.rare_label_)

    def _without_rare(self, by_class: Floats) -> NDArray[np.float64]:
        others = np.array(by_class, dtype=np.float64)
        others[:, self._rare_index] = -np.inf
        return others

    def _decide(self, X: Any, ids: ArrayLike | None) -> Decisions:
        keys = self._keys_as_calibrated(X, ids)
        return self._decide_by(self.calibrations_[0], self._score(X), keys)

    def _decide_by(
        self,
        calibration: CalibratedThreshold,
        scores: Scores,
        tie_keys: TieKeys,
        rows: NDArray[np.intp] | None = None,
    ) -> Decisions:
        rare = check_scores(scores.rare, rows=rows)
        rare = as_calibrated(rare, self._samples[0].scores.dtype)
        # A strict threshold is a point of the grid, so that it need not be lifted to.
        compared = lift(rare) if calibration.ties == "hash" else rare
        flagged = calibration.flag_with_keys(compared, tie_keys)
        return Decisions(flagged, rare, calibration.value, scores.by_class)

    def _samples_from(
        self, X: Any, ids: ArrayLike | None, is_rare: Mask | None
    ) -> list[CalibrationSample]:
        """Make calibration samples from new items, one for each threshold."""
        keys = self._keys(X, ids)
        return [self._sample(self.score_samples(X), keys, ids is not None, is_rare)]

    def _recalibrate(
        self,
        X: Any,
        y: ArrayLike | None,
        ids: ArrayLike | None,
        segments: NDArray[np.intp] | None = None,
    ) -> Self:
        is_rare = None if y is None else find_rare(y, self.rare_label_)[0]
        samples = self._samples_from(X, ids, is_rare)
        with restored_on_error(self):
            if is_rare is not None:
                self._n_rare, self._n_labelled = int(np.count_nonzero(is_rare)), is_rare.size
            self._calibrate_on([replace(sample, segments=segments) for sample in samples])
        return self


def _margin(scores: Floats, threshold: Any, flagged: Mask) -> NDArray[np.float64]:
    """Return scores minus threshold: finite, and positive exactly where `flagged`."""
    with np.errstate(invalid="ignore", over="ignore"):
        margin = np.nan_to_num(scores.astype(np.float64) - threshold, nan=0.0)
    # Ties with the threshold, and infinities that meet, have no sign of their own.
    unsettled = (margin > 0) != flagged
    margin[unsettled] = np.where(flagged[unsettled], _JUST_ABOVE, 0.0)
    return margin
