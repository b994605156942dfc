"""Rules that decide about items: one threshold, or one for each fold. Segments: see `_segments`.

A rule is what calibration learns. It keeps its calibration samples, from which it can be made for
another capacity. A rule never changes: each change returns another rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Mask, Rows
from .._core.binomial import Interval
from .._core.hashing import check_keyed_alike
from .._core.ranking import TieKeys, flag_exactly, keys_within, lift
from .._core.scoring import Scores, n_rows
from .._core.validation import UNCHANGED, check_scores, is_unchanged
from .._core.work import Work, check_max_effort
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..worth import Worth
from ._choosing import Selection, check_capacity_for, choose
from ._decisions import CalibratedThreshold, Decisions, Items, judge
from ._folds import mixed_interval
from ._terms import CalibrationSample, Terms
from .segments import SegmentCapacities, segment_codes
from .words import promise_in_words

__all__ = [
    "EVERYTHING",
    "FoldRule",
    "Rule",
    "ThresholdRule",
]

#: Without a capacity for all items, as many may be flagged as the segments allow.
EVERYTHING = Capacity.fraction(1)


class Rule:
    """What all rules have: a capacity, terms, and the samples that they were calibrated on.

    Attributes
    ----------
    capacity : Capacity or None
        For all items together; None where only segments have capacities.
    terms : Terms
        Guarantee, confidence and reference prevalence.
    samples : list of CalibrationSample
        One for each model that decides; one alone is for the mean score of all models.
    calibrations : list of CalibratedThreshold
        One for each sample.
    segments : SegmentCapacities or None
        Capacities of segments.
    segment_calibrations : dict from segments to CalibratedThreshold
        One for each segment with a capacity; with folds, a list of one for each fold.
    """

    def __init__(
        self, samples: Sequence[CalibrationSample], capacity: Capacity | None, terms: Terms
    ) -> None:
        self.samples, self.capacity, self.terms = list(samples), capacity, terms
        self.segments: SegmentCapacities | None = None
        self.calibrations: list[CalibratedThreshold] = []
        self.segment_calibrations: dict[Any, Any] = {}

    def decide(self, items: Items) -> Decisions:
        """Decide about each item on its own.

        With several models, each item is judged by one of them, which a hash of the item picks.
        """
        keys, n_folds = self._keys_as_calibrated(items), len(self.samples)
        if n_folds == 1:
            return self._judge(0, items.scores(), keys, items.segments)
        picks = items.keys(self.terms.seed + 1)(np.arange(len(items)))
        fold_of = (picks * n_folds).astype(np.intp)
        # Without items, one fold is asked for scores, to get arrays of the right types.
        folds = np.unique(fold_of).tolist() or [0]
        rows = [np.flatnonzero(fold_of == fold) for fold in folds]
        parts = [
            self._judge(
                fold,
                items.scores(fold, own),
                None if keys is None else keys_within(keys, own),
                None if items.segments is None else items.segments[own],
                own,
            )
            for fold, own in zip(folds, rows, strict=True)
        ]
        return _joined(parts, rows, keys)

    def _judge(
        self,
        fold: int,
        scores: Scores,
        keys: TieKeys | None,
        segments: Rows | None,
        rows: Rows | None = None,
    ) -> Decisions:
        """Compare scores by the model of a fold with its threshold; `rows` are for errors."""
        return judge(self.calibrations[fold], self.precision, scores, keys, rows)

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
        limit = capacity or self.capacity or EVERYTHING
        k = limit.max_flags(scores.size, self.terms.reference.value)
        return flag_exactly(scores, k, keys)

    def check_work(self, work: Work) -> None:
        """Raise an error if items come with other values and efforts than in calibration."""
        sample = self.samples[0]
        for name, given, needed in (
            ("values", work.values, sample.has_values),
            ("efforts", work.efforts, sample.efforts is not None),
        ):
            if (given is not None) != needed:
                raise ValueError(
                    f"The classifier was calibrated {'with' if needed else 'without'} {name}, and "
                    f"these items come {'without' if needed else 'with'} them. Pass {name}=... to "
                    "fit and here, or nowhere."
                )
        if work.efforts is not None and self.terms.max_effort is not None:
            check_max_effort(self.terms.max_effort, work.efforts)

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
        """Choose the list of most expected value, within the capacity for this batch.

        Without a capacity for this batch, that of the rule holds.
        """
        limit = capacity or self.capacity or EVERYTHING
        check_capacity_for(limit, work.efforts)
        lifted, prevalence = lift(check_scores(probabilities)), self.terms.reference.value
        return choose(lifted, limit, keys, *work, worth, prevalence=prevalence)

    def with_capacity(
        self,
        capacity: Any = UNCHANGED,
        *,
        segment_capacities: Any = UNCHANGED,
        terms: Terms | None = None,
    ) -> Rule:
        """Return a rule for another capacity, from the same calibration samples."""
        if not is_unchanged(segment_capacities):
            raise CapacityError(
                "segment_capacities were not given to fit, and the segments of the calibration "
                "items are not known. Fit with segments."
            )
        return self.recalibrated(self.samples, capacity=capacity, terms=terms)

    def recalibrated(
        self,
        samples: Sequence[CalibrationSample],
        *,
        capacity: Any = UNCHANGED,
        segments: Any = UNCHANGED,
        terms: Terms | None = None,
    ) -> Rule:
        """Return the same kind of rule from other calibration samples, one for each model.

        With a single sample, one threshold is for the mean score of all models.
        """
        if not (is_unchanged(segments) or segments is None):
            raise CapacityError("This rule has no segments. To introduce them, fit again.")
        capacity = self.capacity if is_unchanged(capacity) else check_capacity(capacity)
        terms = terms or self.terms
        if len(samples) > 1:
            return FoldRule(samples, capacity, terms)
        return ThresholdRule(samples, capacity, terms)

    def describe(self) -> dict[str, Any]:
        """Return the capacity, the promise and the thresholds as plain values."""
        terms, prevalence = self.terms, self.terms.reference.value
        return {
            "capacity": None if self.capacity is None else self.capacity.to_json(),
            "guarantee": terms.guarantee,
            "confidence": terms.confidence,
            "n_batches": terms.n_batches,
            "reference_prevalence": None if prevalence is None else float(prevalence),
            "n_calibration": [calibration.n_calibration for calibration in self.calibrations],
            "thresholds": [calibration.value for calibration in self.calibrations],
            "segment_thresholds": self.segment_thresholds,
        }

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.describe().items() if value)
        return f"{type(self).__name__}({given})"

    @property
    def promise(self) -> str:
        """What holds for the flags of single items, and what for lists, in plain words."""
        return promise_in_words(self.capacity, self.terms, self.samples, self.segments is not None)

    @property
    def flag_rate_interval(self) -> Interval:
        """Confidence interval of the true flag rate; of the mean over all folds, if there are any.

        Below, all bounds of the folds hold at once; above, the means of their worst cases are
        averaged. Both hold however the folds depend on each other.
        """
        if len(self.calibrations) == 1:
            return self.calibrations[0].interval
        return mixed_interval(self.calibrations, error=1 - self.terms.confidence)

    @property
    def max_fraction(self) -> float:
        """The capacity as a fraction of all items; 1 where only segments have capacities.

        With a budget of work, the share of items that may be flagged if each takes the most.
        """
        if self.capacity is not None and self.capacity.kind == "effort":
            return self.calibrations[0].capacity_fraction
        return (self.capacity or EVERYTHING).as_fraction(self.terms.reference.value)

    @property
    def precision(self) -> np.dtype[Any]:
        """The type of the calibration scores."""
        return self.samples[0].scores.dtype

    @property
    def calibration_scores(self) -> Floats:
        """The scores of all calibration items."""
        return np.concatenate([sample.scores for sample in self.samples])

    @property
    def segment_thresholds(self) -> dict[Any, Any]:
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
        self.calibrations = terms.thresholds(self.samples, capacity, terms.confidence)


class FoldRule(Rule):
    """One threshold for the model of each fold; a hash picks the fold that decides on an item."""

    def __init__(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, terms: Terms
    ) -> None:
        super().__init__(samples, capacity, terms)
        self.calibrations = terms.thresholds(self.samples, capacity, terms.confidence)


def _joined(parts: list[Decisions], rows: list[Rows], keys: TieKeys | None) -> Decisions:
    """Put decisions about some of the rows each back into the order of the rows."""
    back = np.argsort(np.concatenate(rows))

    def joined(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if columns[0] is None else np.concatenate(columns)[back]

    flagged, scores, thresholds = (joined(name) for name in ("flagged", "scores", "thresholds"))
    return Decisions(flagged, scores, thresholds, joined("by_class"), keys)
