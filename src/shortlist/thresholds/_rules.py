"""Rules that decide about items: one threshold, one per fold, or one per segment.

A rule is what calibration learns. It keeps its calibration samples, from which it can be made for
another capacity. A rule never changes: each change returns another rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Mask, Rows
from .._core.hashing import check_keyed_alike
from .._core.ranking import TieKeys, flag_exactly, keys_within, lift
from .._core.scoring import n_rows
from .._core.validation import UNCHANGED, check_scores, is_unchanged, warn_user
from .._wrapping.fitting import Unseen
from .._wrapping.segments import SegmentCapacities, check_segment_capacities, segment_codes
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, InsufficientCalibrationWarning
from ._calibrate import calibrate_scores
from ._calibrated import CalibratedThreshold, Decisions, Items, judge
from ._terms import CalibrationSample, Terms

__all__ = [
    "Calibrator",
    "FoldRule",
    "Rule",
    "SegmentRule",
    "ThresholdRule",
    "make_rule",
]

# Without a capacity for all items, as many may be flagged as the segments allow.
_EVERYTHING = Capacity.fraction(1)


class Rule:
    """What all rules have: a capacity, terms, and the samples that they were calibrated on.

    Attributes
    ----------
    capacity : Capacity or None
        For all items together; None where only segments have capacities.
    terms : Terms
        Guarantee, confidence and reference prevalence.
    samples : list of CalibrationSample
        One for each model that decides.
    calibrations : list of CalibratedThreshold
        One for each sample.
    segments : SegmentCapacities or None
        Capacities of segments.
    segment_calibrations : dict from segments to CalibratedThreshold
        One for each segment with a capacity.
    """

    def __init__(
        self, samples: Sequence[CalibrationSample], capacity: Capacity | None, terms: Terms
    ) -> None:
        self.samples, self.capacity, self.terms = list(samples), capacity, terms
        self.segments: SegmentCapacities | None = None
        self.calibrations: list[CalibratedThreshold] = []
        self.segment_calibrations: dict[Any, CalibratedThreshold] = {}

    def decide(self, items: Items) -> Decisions:
        """Decide about each item on its own."""
        raise NotImplementedError

    def select(
        self,
        scores: Floats,
        keys: TieKeys,
        capacity: Capacity | None = None,
        segments: Rows | None = None,
    ) -> Mask:
        """Flag the highest scores of a batch: exactly as many as the capacity allows.

        Without a capacity for this batch, that of the rule holds.
        """
        scores = lift(check_scores(scores))
        limit = capacity or self.capacity or _EVERYTHING
        k = limit.max_flags(scores.size, self.terms.reference.value)
        return flag_exactly(scores, k, keys)

    def with_capacity(
        self,
        capacity: Any = UNCHANGED,
        *,
        segment_capacities: Any = UNCHANGED,
        terms: Terms | None = None,
    ) -> Rule:
        """Return a rule for another capacity, from the same calibration samples."""
        segments = self.segments
        if not is_unchanged(segment_capacities):
            if segments is None:
                raise CapacityError(
                    "segment_capacities were not given to fit, and the segments of the calibration "
                    "items are not known. Fit with segments."
                )
            new = check_segment_capacities(segment_capacities, segments.others)
            segments = segments.changed_to(new)
        if is_unchanged(capacity):
            capacity = self.capacity
        elif not (capacity is None and segments is not None):
            capacity = check_capacity(capacity)
        return make_rule(self.samples, capacity, terms or self.terms, segments=segments)

    def recalibrated(
        self,
        samples: Sequence[CalibrationSample],
        *,
        capacity: Any = UNCHANGED,
        segments: Any = UNCHANGED,
        terms: Terms | None = None,
    ) -> Rule:
        """Return a rule from other calibration samples; what is not given stays as it is."""
        capacity = self.capacity if is_unchanged(capacity) else capacity
        segments = self.segments if is_unchanged(segments) else segments
        return make_rule(samples, capacity, terms or self.terms, segments=segments)

    def describe(self) -> dict[str, Any]:
        """Return the capacity, the promise and the thresholds as plain values."""
        terms, prevalence = self.terms, self.terms.reference.value
        return {
            "capacity": None if self.capacity is None else self.capacity.to_json(),
            "guarantee": terms.guarantee,
            "confidence": terms.confidence,
            "reference_prevalence": None if prevalence is None else float(prevalence),
            "n_calibration": [calibration.n_calibration for calibration in self.calibrations],
            "thresholds": [calibration.value for calibration in self.calibrations],
            "segment_thresholds": self.segment_thresholds,
        }

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.describe().items() if value)
        return f"{type(self).__name__}({given})"

    @property
    def max_fraction(self) -> float:
        """The capacity as a fraction of all items; 1 where only segments have capacities."""
        return (self.capacity or _EVERYTHING).as_fraction(self.terms.reference.value)

    @property
    def precision(self) -> np.dtype[Any]:
        """The type of the calibration scores."""
        return self.samples[0].scores.dtype

    @property
    def calibration_scores(self) -> Floats:
        """The scores of all calibration items."""
        return np.concatenate([sample.scores for sample in self.samples])

    @property
    def segment_thresholds(self) -> dict[Any, float]:
        """What a score must exceed in each segment; None stands for segments not named."""
        return {}

    def segment_codes(self, segments: ArrayLike | None, X: Any) -> Rows | None:
        """Return the number of each item's segment, or None where there are no segments."""
        if segments is None and self.segments is None:
            return None
        return segment_codes(segments, self.segments, n_rows(X))

    def _keys_as_calibrated(self, items: Items) -> TieKeys | None:
        """Return tie keys, made from what they were made from in calibration; None without."""
        sample = self.samples[0]
        if sample.tie_keys is None:
            return None
        check_keyed_alike(items.ids is not None, sample.keyed_by_ids)
        return items.keys(self.terms.seed)


class ThresholdRule(Rule):
    """One threshold: an item is flagged when its score lies strictly above."""

    def __init__(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, terms: Terms
    ) -> None:
        super().__init__(samples, capacity, terms)
        (sample,) = self.samples
        self.calibrations = [terms.threshold(sample, capacity, terms.confidence)]

    def decide(self, items: Items) -> Decisions:
        """Compare all scores with the threshold."""
        keys = self._keys_as_calibrated(items)
        return judge(self.calibrations[0], self.precision, items.scores(), keys)


class FoldRule(Rule):
    """One threshold for the model of each fold; a hash picks the fold that decides on an item."""

    def __init__(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, terms: Terms
    ) -> None:
        super().__init__(samples, capacity, terms)
        self.calibrations = [
            terms.threshold(sample, capacity, terms.confidence) for sample in self.samples
        ]

    def decide(self, items: Items) -> Decisions:
        """Let each item be judged by its fold, which depends on nothing but the item."""
        keys, n_folds = self._keys_as_calibrated(items), len(self.samples)
        picks = items.keys(self.terms.seed + 1)(np.arange(len(items)))
        fold_of = (picks * n_folds).astype(np.intp)
        # Without items, one fold is asked for scores, to get arrays of the right types.
        folds = np.unique(fold_of).tolist() or [0]
        rows = [np.flatnonzero(fold_of == fold) for fold in folds]
        parts = [
            judge(
                self.calibrations[fold],
                self.precision,
                items.scores(fold, own),
                None if keys is None else keys_within(keys, own),
                own,
            )
            for fold, own in zip(folds, rows, strict=True)
        ]
        return _joined(parts, rows, keys)


class SegmentRule(Rule):
    """A threshold for each segment, and one for all items: an item must exceed both."""

    def __init__(
        self,
        samples: Sequence[CalibrationSample],
        capacity: Capacity | None,
        terms: Terms,
        segments: SegmentCapacities,
    ) -> None:
        super().__init__(samples, capacity, terms)
        (sample,) = self.samples
        self.segments = segments
        confidence = self._shared_confidence()
        self.segment_calibrations = {
            name: self._segment_threshold(sample, name, code, limit, confidence)
            for code, (name, limit) in enumerate(zip(segments.names, segments.limits, strict=True))
            if limit is not None
        }
        self.calibrations = [self._overall_threshold(sample, confidence)]

    def decide(self, items: Items) -> Decisions:
        """Compare scores with the threshold for all items, and then within each segment."""
        keys = self._keys_as_calibrated(items)
        overall = judge(self.calibrations[0], self.precision, items.scores(), keys)
        flagged, thresholds = overall.flagged, overall.thresholds.copy()
        compared = overall.scores if keys is None else lift(overall.scores)
        for own, calibration in self._by_segment(items.segments):
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
        assert self.segments is not None
        lifted, prevalence = lift(check_scores(scores)), self.terms.reference.value
        flagged = np.ones(scores.size, dtype=bool)
        for code, limit in enumerate(self.segments.limits):
            if limit is not None:
                own = np.flatnonzero(segments == code)
                k = limit.max_flags(own.size, prevalence)
                flagged[own] = flag_exactly(lifted[own], k, keys_within(keys, own))
        # The best of what the segments allow: no other list within all limits is better.
        allowed = np.flatnonzero(flagged)
        limit = capacity or self.capacity or _EVERYTHING
        k = limit.max_flags(scores.size, prevalence)
        flagged[allowed] = flag_exactly(lifted[allowed], k, keys_within(keys, allowed))
        return flagged

    @property
    def segment_thresholds(self) -> dict[Any, float]:
        """What a score must exceed in each segment; None stands for segments not named."""
        own = {name: found.value for name, found in self.segment_calibrations.items()}
        overall = self.calibrations[0].value
        names = [] if self.segments is None else self.segments.names
        return {name: max(overall, own.get(name, overall)) for name in names}

    def _by_segment(self, segments: Rows | None) -> list[tuple[Rows, CalibratedThreshold]]:
        """Return the items of each segment that has a threshold, with that threshold."""
        names = [] if self.segments is None else self.segments.names
        return [
            (np.flatnonzero(segments == code), self.segment_calibrations[name])
            for code, name in enumerate(names)
            if name in self.segment_calibrations
        ]

    def _shared_confidence(self) -> float:
        """Return the confidence for each limit under which all hold at once (Bonferroni)."""
        limits = [self.capacity, *(self.segments.limits if self.segments else [])]
        ratios = [
            limit.as_ratio(self.terms.reference.value) for limit in limits if limit is not None
        ]
        n_limits = sum(0 < ratio < 1 for ratio in ratios)
        return 1 - (1 - self.terms.confidence) / max(n_limits, 1)

    def _overall_threshold(
        self, sample: CalibrationSample, confidence: float
    ) -> CalibratedThreshold:
        if self.capacity is None:
            return calibrate_scores(sample.scores, _EVERYTHING)
        if self.terms.guarantee == "plug-in":
            # The other guarantees rest on a sample in which nothing has been chosen yet.
            sample = replace(sample, scores=self._let_through(sample))
        return self.terms.threshold(sample, self.capacity, confidence)

    def _let_through(self, sample: CalibrationSample) -> Floats:
        """Return the scores, with those that their segment does not flag below all others."""
        scores = sample.scores.copy()
        for own, calibration in self._by_segment(sample.segments):
            keys = None if sample.tie_keys is None else keys_within(sample.keys_of, own)
            scores[own[~calibration.flag_with_keys(scores[own], keys)]] = -np.inf
        return scores

    def _segment_threshold(
        self, sample: CalibrationSample, name: Any, code: int, limit: Capacity, confidence: float
    ) -> CalibratedThreshold:
        within, terms = sample.within(code), self.terms
        if within.scores.size:
            return terms.threshold(within, limit, confidence)
        if terms.guarantee == "plug-in":  # promises nothing, so all items can stand in
            return terms.threshold(replace(sample, is_rare=None), limit, confidence)
        warn_user(
            f"No calibration item belongs to {'other segments' if name is None else repr(name)}, "
            f"and guarantee={terms.guarantee!r} cannot hold without any. Nothing is flagged there; "
            "fit or recalibrate with items of it.",
            InsufficientCalibrationWarning,
        )
        nothing = calibrate_scores(sample.scores, Capacity.fraction(0))
        return replace(nothing, n_calibration=0, guarantee=terms.guarantee, confidence=confidence)


@dataclass(frozen=True)
class Calibrator:
    """Turns scores of unseen items into a rule.

    It is made before any model is fitted, and an impossible capacity fails then.

    Attributes
    ----------
    capacity, segments, terms
        As for :class:`Rule`.
    tie_keys : function of rows, or None
        Tie keys of all items given to `fit`, if ties are hashed.
    keyed_by_ids : bool
        Whether they come from ids.
    is_rare, segment_of : ndarray or None
        Labels of all items, and the numbers of their segments.
    """

    capacity: Capacity | None
    segments: SegmentCapacities | None
    terms: Terms
    tie_keys: TieKeys | None = None
    keyed_by_ids: bool = False
    is_rare: Mask | None = None
    segment_of: Rows | None = None

    def __post_init__(self) -> None:
        limits = [self.capacity, *(self.segments.limits if self.segments else [])]
        for limit in limits:
            if limit is not None:
                limit.as_ratio(self.terms.reference.value)

    def rule(self, unseen: Sequence[Unseen], *, out_of_bag: bool = False) -> Rule:
        """Calibrate on scores of rows that the models have not seen, one part for each model."""
        samples = self.samples(unseen, out_of_bag=out_of_bag)
        return make_rule(samples, self.capacity, self.terms, segments=self.segments)

    def samples(
        self, unseen: Sequence[Unseen], *, out_of_bag: bool = False
    ) -> list[CalibrationSample]:
        """Keep such scores with what is known about their rows."""
        return [
            CalibrationSample.of(
                scores,
                rows=rows,
                tie_keys=self.tie_keys,
                keyed_by_ids=self.keyed_by_ids,
                is_rare=self.is_rare,
                segments=self.segment_of,
                out_of_bag=out_of_bag,
            )
            for rows, scores in unseen
        ]


def make_rule(
    samples: Sequence[CalibrationSample],
    capacity: Capacity | None,
    terms: Terms,
    *,
    segments: SegmentCapacities | None = None,
) -> Rule:
    """Calibrate a rule: by segments, if these have capacities, else by folds or by one threshold.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.thresholds import CalibrationSample, Terms, make_rule
    >>> sample = CalibrationSample(np.arange(100.0))
    >>> rule = make_rule([sample], Capacity.fraction(0.1), Terms())
    >>> rule.describe()["thresholds"]
    [89.0]
    >>> rule.with_capacity(Capacity.fraction(0.2)).describe()["thresholds"]
    [79.0]
    """
    if segments is not None:
        return SegmentRule(samples, capacity, terms, segments)
    return (ThresholdRule if len(samples) == 1 else FoldRule)(
        samples, check_capacity(capacity), terms
    )


def _joined(parts: list[Decisions], rows: list[Rows], keys: TieKeys | None) -> Decisions:
    """Put decisions about some of the rows each back into the order of the rows."""
    back = np.argsort(np.concatenate(rows))

    def joined(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if columns[0] is None else np.concatenate(columns)[back]

    flagged, scores, thresholds = (joined(name) for name in ("flagged", "scores", "thresholds"))
    return Decisions(flagged, scores, thresholds, joined("by_class"), keys)
