"""What a fitted model with scores and a calibrated threshold can be asked."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from ._hashing import hash_ids, hash_rows
from ._ranking import TieKeys, flag_exactly, tied_positions
from ._sklearn import class_column, n_rows, take_rows
from ._validation import check_same_length, check_scores
from .capacity import Capacity, check_capacity
from .thresholds import CalibratedThreshold
from .thresholds._calibrate import calibrate_scores

__all__ = ["CalibrationSample", "CapacityDecisionMixin", "Decisions"]

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]
# The smallest number above 0: a flagged tie lies on the threshold, and still on its right side.
_JUST_ABOVE = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class CalibrationSample:
    """Scores of items the model has not seen, kept so that the capacity can change later."""

    scores: Floats
    tie_keys: NDArray[np.float64] | None = None
    is_rare: Mask | None = None


class Decisions(NamedTuple):
    """Flags, the thresholds they were made with, and the model's output behind them."""

    flagged: Mask
    threshold: Any
    output: Floats


class CapacityDecisionMixin:
    """Flags, labels and lists under a capacity, for a classifier that can score.

    A subclass stores the parameters `capacity`, `guarantee`, `confidence` and `ties`, and in `fit`
    sets `classes_`, `rare_label_`, `_seed` and `_prevalence` (an exact fraction, or None),
    implements `_output`, and hands calibration scores to `_calibrate_on`.
    """

    capacity: Capacity
    guarantee: str
    confidence: float
    ties: str
    classes_: NDArray[Any]
    rare_label_: Any
    _seed: int
    _prevalence: Fraction | None
    _samples: list[CalibrationSample]
    _calibrations: list[CalibratedThreshold]

    def _output(self, X: Any) -> Floats:
        """Return the model's output: rare scores alone, or one column per class."""
        raise NotImplementedError

    @property
    def calibration_(self) -> Any:
        """The calibrated threshold with all that is known about it; a list if there are several."""
        return self._calibrations[0] if len(self._calibrations) == 1 else self._calibrations

    @property
    def threshold_(self) -> Any:
        """An item is flagged when its score is strictly above; an array if there are several."""
        values = [calibration.value for calibration in self._calibrations]
        return values[0] if len(values) == 1 else np.array(values)

    @property
    def prevalence_(self) -> float:
        """Share of rare items in the data given to `fit`; NaN when no labels were given."""
        return np.nan if self._prevalence is None else float(self._prevalence)

    @property
    def capacity_fraction_(self) -> float:
        """The capacity as a fraction of all items."""
        return self.capacity.as_fraction(self._prevalence)

    def score_samples(self, X: Any) -> Floats:
        """Score items: the higher, the more suspicious.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores on the scale of `threshold_`.
        """
        check_is_fitted(self)
        return self._rare_column(self._output(X))

    def flag(self, X: Any, *, ids: ArrayLike | None = None) -> Mask:
        """Decide for each item on its own whether to follow it up.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is flagged.
        """
        check_is_fitted(self)
        return self._decide(X, ids).flagged

    def predict(self, X: Any, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Predict labels: the rare label where an item is flagged.

        With more than two classes, an item that is not flagged gets the likeliest other label.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels.
        """
        check_is_fitted(self)
        flagged, _, output = self._decide(X, ids)
        if self.classes_.size == 2:
            other = self.classes_[1 - self._rare_index]
            return np.where(flagged, self.classes_[self._rare_index], other)
        predicted = np.argmax(self._without_rare(output), axis=1)
        predicted[flagged] = self._rare_index
        return self.classes_[predicted]

    def decision_function(self, X: Any, *, ids: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the score minus the threshold: positive where an item is flagged.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_classes)
            With two classes one number per item, which speaks for the *rare* label wherever it
            stands in `classes_`. With more classes a column per class, of which the largest is
            predicted; the column of the rare label is the score minus the threshold.
        """
        check_is_fitted(self)
        flagged, threshold, output = self._decide(X, ids)
        margin = _margin(self._rare_column(output), threshold, flagged)
        if self.classes_.size == 2:
            return margin
        # The best other class stands at 0 below a flag, and at 1 above everything else.
        others = self._without_rare(output)
        decision = others - others.max(axis=1, keepdims=True) + ~flagged[:, np.newaxis]
        decision[:, self._rare_index] = margin
        return decision

    def select(
        self, X: Any, capacity: Capacity | None = None, *, ids: ArrayLike | None = None
    ) -> Mask:
        """Flag the most suspicious items of a batch: exactly as many as the capacity allows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            The batch.
        capacity : Capacity, default=None
            How much can be followed up in this batch; `None` takes the classifier's own.
        ids : array-like of shape (n_items,), default=None
            Identifiers that break ties; the row's own values are hashed when absent.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True for the items to follow up.
        """
        scores = check_scores(self.score_samples(X))
        capacity = self.capacity if capacity is None else check_capacity(capacity)
        max_flags = capacity.max_flags(scores.size, self._prevalence)
        return flag_exactly(scores, max_flags, self._tie_keys(X, ids))

    def with_capacity(self, capacity: Capacity) -> Self:
        """Return a fitted copy for another capacity, from the same model and calibration scores.

        Parameters
        ----------
        capacity : Capacity
            The new capacity.

        Returns
        -------
        classifier
            Fitted; this one is left as it is.
        """
        check_is_fitted(self)
        changed = copy.copy(self)
        changed.capacity = check_capacity(capacity)
        changed._calibrate_on(self._samples)
        return changed

    def recalibrate(self, X: Any, *, ids: ArrayLike | None = None) -> Self:
        """Find a new threshold from unlabelled items, without refitting the model.

        The guarantee then rests on these items alone: they should be recent, like the ones to
        come, and not among those the model was trained on. The prevalence stays that of `fit`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Unlabelled items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._calibrate_on([self._sample_of(self.score_samples(X), self._tie_keys(X, ids))])
        return self

    # --- for subclasses -----------------------------------------------------------------------

    @property
    def _rare_index(self) -> int:
        return int(np.flatnonzero(self.classes_ == self.rare_label_)[0])

    def _rare_column(self, output: Floats) -> Floats:
        return class_column(output, self._rare_index)

    def _without_rare(self, output: Floats) -> NDArray[np.float64]:
        others = np.array(output, dtype=np.float64)
        others[:, self._rare_index] = -np.inf
        return others

    def _decide(self, X: Any, ids: ArrayLike | None) -> Decisions:
        return self._decide_by(self._calibrations[0], self._output(X), self._tie_keys(X, ids))

    def _decide_by(
        self, calibration: CalibratedThreshold, output: Floats, tie_keys: TieKeys
    ) -> Decisions:
        scores = check_scores(self._rare_column(output))
        flagged = calibration.flag_with_keys(scores, tie_keys)
        return Decisions(flagged, calibration.value, output)

    def _tie_keys(self, X: Any, ids: ArrayLike | None, *, seed: int | None = None) -> TieKeys:
        seed = self._seed if seed is None else seed
        if ids is None:
            return lambda tied: hash_rows(take_rows(indexable(X)[0], tied), seed=seed)
        ids = np.asarray(ids)
        check_same_length(X=range(n_rows(X)), ids=ids)
        return lambda tied: hash_ids(ids[tied], seed=seed)

    def _sample_of(
        self, scores: Floats, tie_keys: TieKeys, is_rare: Mask | None = None
    ) -> CalibrationSample:
        """Keep scores with what later capacities need: the keys of tied items, and the labels."""
        scores = check_scores(scores)
        if self.ties != "hash":
            return CalibrationSample(scores, None, is_rare)
        # An item that ties with nobody stands alone in its block, and needs no key.
        keys, tied = np.zeros(scores.size), tied_positions(scores)
        if tied.size:
            keys[tied] = tie_keys(tied)
        return CalibrationSample(scores, keys, is_rare)

    def _calibrate_on(self, samples: list[CalibrationSample]) -> None:
        """Set the threshold of each model from the scores of items it has not seen."""
        calibrations = [self._threshold_for(sample) for sample in samples]
        self._samples, self._calibrations = samples, calibrations

    def _threshold_for(self, sample: CalibrationSample) -> CalibratedThreshold:
        keys = sample.tie_keys
        # Labels add something only where the prevalence itself is uncertain and must be covered.
        needs_labels = self.capacity.kind == "multiple" and self.guarantee == "confident"
        walks = needs_labels and sample.is_rare is not None
        return calibrate_scores(
            sample.scores,
            self.capacity,
            prevalence=None if walks else self._prevalence,
            guarantee=self.guarantee,
            confidence=self.confidence,
            tie_keys=None if keys is None else (lambda tied: keys[tied]),
            is_rare=sample.is_rare if walks else None,
            seed=self._seed,
        )


def _margin(scores: Floats, threshold: Any, flagged: Mask) -> NDArray[np.float64]:
    """Return scores minus threshold, positive exactly where `flagged`."""
    with np.errstate(invalid="ignore"):
        margin = scores.astype(np.float64) - threshold
    # Ties with the threshold, and infinities that meet, have no sign of their own.
    unsettled = (margin > 0) != flagged
    unsettled |= np.isnan(margin)
    margin[unsettled] = np.where(flagged[unsettled], _JUST_ABOVE, 0.0)
    return margin
