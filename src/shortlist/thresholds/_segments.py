"""Thresholds of segments: one for each, and one for all items, kept at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.arrays import Floats, Mask, Rows
from .._core.ranking import TieKeys, flag_exactly, keys_within, lift
from .._core.scoring import Scores
from .._core.validation import UNCHANGED, check_scores, is_unchanged, warn_user
from .._core.work import Work
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, InsufficientCalibrationWarning
from ..worth import Worth
from ._calibrate_scores import calibrate_scores
from ._choosing import Selection, choose
from ._decisions import CalibratedThreshold, Decisions
from ._rules import EVERYTHING, Rule
from ._terms import CalibrationSample, Terms
from .segments import SegmentCapacities, check_segment_capacities

__all__ = ["SegmentRule"]


class SegmentRule(Rule):
    """A threshold for each segment, and one for all items: an item must exceed both."""

    segments: SegmentCapacities

    def __init__(
        self,
        samples: Sequence[CalibrationSample],
        capacity: Capacity | None,
        terms: Terms,
        segments: SegmentCapacities,
    ) -> None:
        super().__init__(samples, capacity, terms)
        self.segments = segments
        confidence = self._shared_confidence()
        self._by_name = {
            name: self._segment_thresholds(name, code, limit, confidence)
            for code, (name, limit) in enumerate(zip(segments.names, segments.limits, strict=True))
            if limit is not None
        }
        self.segment_calibrations = {
            name: found if len(found) > 1 else found[0] for name, found in self._by_name.items()
        }
        self.calibrations = self._overall_thresholds(confidence)

    def _judge(
        self,
        fold: int,
        scores: Scores,
        keys: TieKeys | None,
        segments: Rows | None,
        rows: Rows | None = None,
    ) -> Decisions:
        """Compare scores with the threshold for all items, and then within each segment."""
        overall = super()._judge(fold, scores, keys, segments, rows)
        flagged, thresholds = overall.flagged, overall.thresholds.copy()
        compared = overall.scores if keys is None else lift(overall.scores)
        for own, calibration in self._by_segment(segments, fold):
            within = None if keys is None else keys_within(keys, own)
            flagged[own] &= calibration.flag_with_keys(compared[own], within)
            thresholds[own] = np.maximum(thresholds[own], calibration.value)
        return replace(overall, flagged=flagged, thresholds=thresholds)

    def select(
        self,
        scores: Floats,
        keys: TieKeys,
        capacity: Capacity | None = None,
        segments: Rows | None = None,
    ) -> Mask:
        """Flag the best list within the capacities of all segments and of the batch."""
        lifted, prevalence = lift(check_scores(scores)), self.terms.reference.value
        flagged = np.ones(scores.size, dtype=bool)
        for code, limit in enumerate(self.segments.limits):
            if limit is not None:
                own = np.flatnonzero(segments == code)
                k = limit.max_flags(own.size, prevalence)
                flagged[own] = flag_exactly(lifted[own], k, keys_within(keys, own))
        # The best of what the segments allow: no other list within all limits is better.
        allowed = np.flatnonzero(flagged)
        limit = capacity or self.capacity or EVERYTHING
        k = limit.max_flags(scores.size, prevalence)
        flagged[allowed] = flag_exactly(lifted[allowed], k, keys_within(keys, allowed))
        return flagged

    def choose(
        self,
        probabilities: Floats,
        keys: TieKeys,
        work: Work,
        capacity: Capacity | None = None,
        segments: Rows | None = None,
        *,
        worth: Worth | None = None,
    ) -> Selection:
        """Choose within each segment, and then among what the segments allow.

        Every budget is kept. With efforts the list is the best one within each segment, and may be
        below the best one where the capacity for all items cuts it short.
        """
        lifted, prevalence = lift(check_scores(probabilities)), self.terms.reference.value
        allowed = np.ones(lifted.size, dtype=bool)
        for code, limit in enumerate(self.segments.limits):
            own = np.flatnonzero(segments == code)
            if limit is not None:
                part, efforts = work.within(own), work.within(own).efforts
                efforts = efforts if limit.kind == "effort" else None
                found = choose(
                    lifted[own],
                    limit,
                    keys_within(keys, own),
                    part.values,
                    efforts,
                    worth,
                    prevalence=prevalence,
                )
                allowed[own] = found.flagged
        rows, limit = np.flatnonzero(allowed), capacity or self.capacity
        if limit is None:
            limit = EVERYTHING
        elif limit.kind == "effort":
            limit = Capacity.effort(limit.max_effort(lifted.size))
        else:
            limit = Capacity.count(min(limit.max_flags(lifted.size, prevalence), rows.size))
        part = work.within(rows)
        efforts = part.efforts if limit.kind == "effort" else None
        found = choose(lifted[rows], limit, keys_within(keys, rows), part.values, efforts, worth)
        flagged = np.zeros(lifted.size, dtype=bool)
        flagged[rows[found.flagged]] = True
        return replace(found, flagged=flagged)

    def with_capacity(
        self,
        capacity: Any = UNCHANGED,
        *,
        segment_capacities: Any = UNCHANGED,
        terms: Terms | None = None,
    ) -> SegmentRule:
        """Return a rule for other capacities of the same segments, from the same samples."""
        segments = self.segments
        if not is_unchanged(segment_capacities):
            new = check_segment_capacities(segment_capacities, segments.others)
            segments = segments.changed_to(new)
        return self.recalibrated(self.samples, capacity=capacity, segments=segments, terms=terms)

    def recalibrated(
        self,
        samples: Sequence[CalibrationSample],
        *,
        capacity: Any = UNCHANGED,
        segments: Any = UNCHANGED,
        terms: Terms | None = None,
    ) -> SegmentRule:
        """Return a rule with segments from other calibration samples."""
        if segments is None:
            raise CapacityError("This rule has segments. To drop them, fit again.")
        if is_unchanged(capacity):
            capacity = self.capacity
        elif capacity is not None:
            capacity = check_capacity(capacity)
        segments = self.segments if is_unchanged(segments) else segments
        return SegmentRule(samples, capacity, terms or self.terms, segments)

    @property
    def segment_thresholds(self) -> dict[Any, Any]:
        """What a score must exceed in each segment; None stands for segments not named.

        With folds, a list of one number for each of them.
        """
        found = {name: self._thresholds_of(name) for name in self.segments.names}
        return {name: each if len(each) > 1 else each[0] for name, each in found.items()}

    def _thresholds_of(self, name: Any) -> list[float]:
        own = self._by_name.get(name, self.calibrations)
        pairs = zip(self.calibrations, own, strict=True)
        return [max(overall.value, each.value) for overall, each in pairs]

    def _by_segment(
        self, segments: Rows | None, fold: int
    ) -> list[tuple[Rows, CalibratedThreshold]]:
        """Return the items of each segment that has a threshold, with that threshold."""
        return [
            (np.flatnonzero(segments == code), self._by_name[name][fold])
            for code, name in enumerate(self.segments.names)
            if name in self._by_name
        ]

    def _shared_confidence(self) -> float:
        """Return the confidence for each limit under which all hold at once (Bonferroni)."""
        limits = [self.capacity, *self.segments.limits]
        ratios = [
            Fraction(int(limit.value > 0), 2)  # a budget of work counts, unless it is empty
            if limit.kind == "effort"
            else limit.as_ratio(self.terms.reference.value)
            for limit in limits
            if limit is not None
        ]
        n_limits = sum(0 < ratio < 1 for ratio in ratios)
        return 1 - (1 - self.terms.confidence) / max(n_limits, 1)

    def _overall_thresholds(self, confidence: float) -> list[CalibratedThreshold]:
        samples = self.samples
        if self.capacity is None:
            return [calibrate_scores(sample.scores, EVERYTHING) for sample in samples]
        if self.terms.guarantee == "plug-in" and len(samples) == 1:
            # The other guarantees rest on a sample in which nothing has been chosen yet.
            samples = [replace(samples[0], scores=self._let_through(samples[0]))]
        return self.terms.thresholds(samples, self.capacity, confidence)

    def _let_through(self, sample: CalibrationSample) -> Floats:
        """Return the scores, with those that their segment does not flag below all others."""
        scores = sample.scores.copy()
        for own, calibration in self._by_segment(sample.segments, 0):
            keys = None if sample.tie_keys is None else keys_within(sample.keys_of, own)
            scores[own[~calibration.flag_with_keys(scores[own], keys)]] = -np.inf
        return scores

    def _segment_thresholds(
        self, name: Any, code: int, limit: Capacity, confidence: float
    ) -> list[CalibratedThreshold]:
        within, terms = [sample.within(code) for sample in self.samples], self.terms
        if any(sample.scores.size for sample in within):
            return terms.thresholds(within, limit, confidence)
        if terms.guarantee == "plug-in":  # promises nothing, so all items can stand in
            everyone = [replace(sample, is_rare=None) for sample in self.samples]
            return terms.thresholds(everyone, limit, confidence)
        warn_user(
            f"No calibration item belongs to {'other segments' if name is None else repr(name)}, "
            f"and guarantee={terms.guarantee!r} cannot hold without any. Nothing is flagged there; "
            "fit or recalibrate with items of it.",
            InsufficientCalibrationWarning,
        )
        nothing = calibrate_scores(self.samples[0].scores, Capacity.fraction(0))
        nothing = replace(
            nothing, n_calibration=0, guarantee=terms.guarantee, confidence=confidence
        )
        return [nothing] * len(within)
