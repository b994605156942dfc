"""Decisions under a capacity for each segment, alone or together with one for all items."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._calibration import CalibrationSample
from ._core.ranking import flag_exactly, keys_within
from ._core.scoring import n_rows
from ._core.steady import lift
from ._core.validation import check_scores, warn_user
from ._decisions import CapacityDecisionMixin, Decisions, Mask
from ._wrapping.segments import SegmentCapacities, check_segment_capacities, segment_codes
from .capacity import Capacity, check_capacity
from .exceptions import CapacityError, InsufficientCalibrationWarning
from .thresholds import CalibratedThreshold
from .thresholds._calibrate import calibrate_scores

__all__ = ["SegmentedDecisionMixin"]

_UNCHANGED: Any = "unchanged"
# Without a capacity for all items, as many may be flagged as the segments allow.
_EVERYTHING = Capacity.fraction(1)


class SegmentedDecisionMixin(CapacityDecisionMixin):
    """Flags, labels and lists under capacities of segments, for a classifier that can score.

    An item is flagged when it lies above the threshold of its segment, and above the one for
    all items. `fit` sets `_segments`, and gives the calibration samples numbers of segments.
    """

    segment_capacities: dict[Any, Capacity | None] | None
    default_segment_capacity: Capacity | None
    segment_calibrations_: dict[Any, CalibratedThreshold]
    _segments: SegmentCapacities | None

    @property
    def segment_thresholds_(self) -> dict[Any, float]:
        """What a score must exceed in each segment; None stands for segments not named."""
        if self._segments is None:
            return {}
        own = {name: found.value for name, found in self.segment_calibrations_.items()}
        overall = self.calibration_.value
        return {name: max(overall, own.get(name, overall)) for name in self._segments.names}

    def flag(
        self, X: Any, *, ids: ArrayLike | None = None, segments: ArrayLike | None = None
    ) -> Mask:
        """Decide for each item on its own whether to follow it up.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties, if there were any in calibration; otherwise the row's
            own values are hashed.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is flagged.
        """
        self._check_fitted()
        return self._decide_within(X, ids, segments).flagged

    def predict(
        self, X: Any, *, ids: ArrayLike | None = None, segments: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict labels: the rare label where an item is flagged.

        With more than two classes, an item that is not flagged gets the likeliest other label.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids, segments : array-like of shape (n_items,), default=None
            As for :meth:`flag`.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels.
        """
        self._check_fitted()
        return self._labels_of(self._decide_within(X, ids, segments))

    def decision_function(
        self, X: Any, *, ids: ArrayLike | None = None, segments: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the score minus the threshold: positive where an item is flagged.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        ids, segments : array-like of shape (n_items,), default=None
            As for :meth:`flag`.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_classes)
            With two classes one number per item, which speaks for the *rare* label wherever it
            stands in `classes_`. With more classes a column per class, of which the largest is
            predicted; the column of the rare label is the score minus the threshold.
        """
        self._check_fitted()
        return self._margins_of(self._decide_within(X, ids, segments))

    def select(
        self,
        X: Any,
        capacity: Capacity | None = None,
        ids: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
    ) -> Mask:
        """Flag the most suspicious items of a batch: exactly as many as the capacity allows.

        Where segments have capacities, no more of each than its own: the best list within all of
        them, which may then be shorter than the capacity for all items.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            The batch.
        capacity : Capacity, default=None
            How much can be followed up in this batch; `None` takes the one of the threshold.
        ids : array-like of shape (n_items,), default=None
            Identifiers that break ties; the row's own values are hashed when absent.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True for the items to follow up.
        """
        self._check_fitted()
        codes = self._codes(segments, X)
        if codes is None or self._segments is None:
            return super().select(X, capacity, ids)
        scores, keys = lift(check_scores(self.score_samples(X))), self._keys(X, ids)
        prevalence = self._reference_prevalence()
        flagged = np.ones(scores.size, dtype=bool)
        for code, limit in enumerate(self._segments.limits):
            if limit is not None:
                own = np.flatnonzero(codes == code)
                k = limit.max_flags(own.size, prevalence)
                flagged[own] = flag_exactly(scores[own], k, keys_within(keys, own))
        # The best of those that their segments allow: no other list within all limits is better.
        capacity = self._calibrated_capacity if capacity is None else check_capacity(capacity)
        k, allowed = capacity.max_flags(scores.size, prevalence), np.flatnonzero(flagged)
        flagged[allowed] = flag_exactly(scores[allowed], k, keys_within(keys, allowed))
        return flagged

    def with_capacity(
        self, capacity: Capacity | None = _UNCHANGED, *, segment_capacities: Any = _UNCHANGED
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
            Fitted, and sharing the fitted model; this one is left as it is.
        """
        self._check_fitted()
        changed = copy.copy(self)
        if not _is_unchanged(capacity):
            may_be_none = capacity is None and self._segments is not None
            changed.capacity = None if may_be_none else check_capacity(capacity)
        if not _is_unchanged(segment_capacities):
            if self._segments is None:
                raise CapacityError(
                    "segment_capacities were not given to fit, so that the segments of the "
                    "calibration items are not known. Fit with segments."
                )
            new = check_segment_capacities(segment_capacities, self._segments.others)
            changed._segments = self._segments.changed_to(new)
            changed.segment_capacities = changed._segments.named
        changed._calibrate_on(self._samples)
        return changed

    def recalibrate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        segments: ArrayLike | None = None,
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
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.

        Returns
        -------
        self
        """
        self._check_fitted()
        return self._recalibrate(X, y, ids, self._codes(segments, X))

    # --- for subclasses -----------------------------------------------------------------------

    def _check_one_capacity(self) -> None:
        super()._check_one_capacity()
        if self._segments is not None:
            raise CapacityError(
                "A controller keeps one capacity, and this classifier has one for each segment. "
                "Make a BudgetController or QuantileTracker for each of them, and hand it the "
                "scores of its segment."
            )

    def _check_segments(self) -> None:
        """Check the capacities; without segments, there must be one for all items."""
        self._segments = check_segment_capacities(
            self.segment_capacities, self.default_segment_capacity
        )
        if self.capacity is None and self._segments is None:
            raise CapacityError(
                "No capacity was given. Pass capacity=Capacity.fraction(0.02), say, or "
                "segment_capacities."
            )

    def _codes(self, segments: ArrayLike | None, X: Any) -> NDArray[np.intp] | None:
        """Return the number of each item's segment, or None where there are no segments."""
        if segments is None and self._segments is None:
            return None
        return segment_codes(segments, self._segments, n_rows(X))

    def _all_capacities(self) -> list[Capacity]:
        limits = [] if self._segments is None else self._segments.limits
        return [limit for limit in (self.capacity, *limits) if limit is not None]

    def _decide_within(
        self, X: Any, ids: ArrayLike | None, segments: ArrayLike | None
    ) -> Decisions:
        """Decide for all items alike, and then within each segment."""
        codes = self._codes(segments, X)
        decisions = self._decide(X, ids)
        if codes is None or self._segments is None:
            return decisions
        flagged, scores, threshold, _ = decisions
        threshold = np.full(scores.size, threshold)
        compared = lift(scores) if self._samples[0].tie_keys is not None else scores
        keys = self._keys_as_calibrated(X, ids)
        for code, name in enumerate(self._segments.names):
            calibration = self.segment_calibrations_.get(name)
            if calibration is not None:
                own = np.flatnonzero(codes == code)
                flagged[own] &= calibration.flag_with_keys(compared[own], keys_within(keys, own))
                threshold[own] = np.maximum(threshold[own], calibration.value)
        return decisions._replace(threshold=threshold)

    def _calibrate_on(self, samples: list[CalibrationSample]) -> None:
        """Set the thresholds of the segments, and the one for what they let through."""
        if self._segments is None:
            super()._calibrate_on(samples)
            return
        (sample,) = samples
        confidence = self._shared_confidence()
        self.segment_calibrations_ = {
            name: self._segment_threshold(sample, code, limit, confidence)
            for code, (name, limit) in enumerate(
                zip(self._segments.names, self._segments.limits, strict=True)
            )
            if limit is not None
        }
        self.calibrations_ = [self._overall_threshold(sample, confidence)]
        self._samples, self._calibrated_capacity = samples, self.capacity or _EVERYTHING

    def _overall_threshold(
        self, sample: CalibrationSample, confidence: float
    ) -> CalibratedThreshold:
        if self.capacity is None:
            return calibrate_scores(sample.scores, _EVERYTHING)
        if self.guarantee == "plug-in":
            # The other guarantees rest on a sample in which nothing has been chosen yet.
            sample = replace(sample, scores=self._let_through(sample))
        return self._threshold_for(sample, self.capacity, confidence)

    def _let_through(self, sample: CalibrationSample) -> NDArray[np.floating]:
        """Return the scores, with those that their segment does not flag below all others."""
        scores = sample.scores.copy()
        for code, name in enumerate(self._segments.names if self._segments else []):
            calibration = self.segment_calibrations_.get(name)
            if calibration is not None:
                own = np.flatnonzero(sample.segments == code)
                keys = None if sample.tie_keys is None else sample.tie_keys[own]
                flagged = calibration.flag_with_keys(
                    scores[own], None if keys is None else keys.__getitem__
                )
                scores[own[~flagged]] = -np.inf
        return scores

    def _segment_threshold(
        self, sample: CalibrationSample, code: int, limit: Capacity, confidence: float
    ) -> CalibratedThreshold:
        """Calibrate on the items of a segment, without labels: a multiple refers to all items."""
        own = np.flatnonzero(sample.segments == code)
        if not own.size:
            return self._threshold_without_items(sample, code, limit, confidence)
        keys = None if sample.tie_keys is None else sample.tie_keys[own]
        within = replace(sample, scores=sample.scores[own], tie_keys=keys, is_rare=None)
        return self._threshold_for(within, limit, confidence)

    def _threshold_without_items(
        self, sample: CalibrationSample, code: int, limit: Capacity, confidence: float
    ) -> CalibratedThreshold:
        """Let all items stand in under "plug-in", which promises nothing; else flag nothing."""
        if self.guarantee == "plug-in":
            return self._threshold_for(replace(sample, is_rare=None), limit, confidence)
        name = self._segments.names[code] if self._segments else None
        warn_user(
            f"No calibration item belongs to {'other segments' if name is None else repr(name)}, "
            f"so that guarantee={self.guarantee!r} has nothing to rest on. Nothing is flagged "
            "there; fit or recalibrate with items of it.",
            InsufficientCalibrationWarning,
        )
        nothing = calibrate_scores(sample.scores, Capacity.fraction(0))
        return replace(nothing, n_calibration=0, guarantee=self.guarantee, confidence=confidence)

    def _shared_confidence(self) -> float:
        """Return the confidence at which each limit is kept, so that all are at once."""
        prevalence = self._reference_prevalence()
        n_limits = sum(0 < limit.as_ratio(prevalence) < 1 for limit in self._all_capacities())
        return 1 - (1 - self.confidence) / max(n_limits, 1)


def _is_unchanged(value: Any) -> bool:
    return isinstance(value, str) and value == _UNCHANGED
