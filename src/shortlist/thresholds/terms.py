"""What a rule is calibrated on, what it promises, and which prevalence a multiple refers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.drawing import MOST_ITEMS, is_drawn
from .._core.labels import EstimatedShare
from .._core.ranking import TieKeys, lift, tied_positions
from .._core.rows import RowFacts
from .._core.validation import check_scores, warn_user
from .._core.work import weigh
from ..capacity import Capacity
from ..worth import Worth
from ._folds import fold_thresholds
from .calibrate import ScoredItems
from .promise import COVER_PREVALENCE, FOLD_GUARANTEES, Promise, prevalence_lower_bound
from .threshold import CalibratedThreshold

__all__ = ["CalibrationSample", "ReferencePrevalence", "Terms"]

_MANY_TIED = 0.05  # share of the items that tie with a threshold


@dataclass(frozen=True)
class CalibrationSample:
    """Scores of items that the model has not seen, kept for later changes of the capacity.

    Attributes
    ----------
    scores : ndarray of shape (n_items,)
        Lifted to the grid that makes them independent of noise in the last digits.
    tie_keys : ndarray of shape (n_items,) or None
        Keys that put tied items in order; None when ties are left out.
    keyed_by_ids : bool
        Whether the keys come from ids rather than from the rows. Keys in use must come from the
        same source.
    is_rare : ndarray of shape (n_items,) or None
        Labels, if they are known.
    segments : ndarray of shape (n_items,) or None
        Numbers of the items' segments.
    out_of_bag : bool
        Whether each item was scored by only some of the trees.
    refitted : bool
        Whether each item was scored by another model than the one in use, which has seen it.
    groups : ndarray of shape (n_items,) or None
        Numbers of the items' groups, if some belong together.
    efforts : ndarray of shape (n_items,) or None
        How much work the items take. Scores are then what they are worth per unit of it.
    has_values : bool
        Whether scores were multiplied by values.
    """

    scores: Floats
    tie_keys: NDArray[np.float64] | None = None
    keyed_by_ids: bool = False
    is_rare: Mask | None = None
    segments: Rows | None = None
    out_of_bag: bool = False
    groups: Rows | None = None
    efforts: Doubles | None = None
    has_values: bool = False
    refitted: bool = False

    @classmethod
    def of(
        cls,
        scores: Floats,
        rows: Rows,
        facts: RowFacts,
        *,
        tie_keys: TieKeys | None,
        is_rare: Mask | None = None,
        out_of_bag: bool = False,
        refitted: bool = False,
    ) -> CalibrationSample:
        """Keep the scores of some `rows` with what later capacities need of these rows.

        `facts`, `tie_keys` and `is_rare` belong to all rows. Only tied rows are hashed. Of more
        than 1,048,576 rows without segments and groups, some are drawn.
        """
        scores, segments, groups = check_scores(scores, rows=rows), facts.segments, facts.groups
        if segments is None and groups is None and scores.size > MOST_ITEMS:
            drawn = is_drawn(np.arange(scores.size), scores.size)
            scores, rows = scores[drawn], rows[drawn]
        efforts = None
        if facts.values is not None or facts.efforts is not None:
            values, efforts = facts.work_of(rows)
            scores = weigh(scores, values, efforts)
        scores = lift(scores)
        if not scores.size:
            raise ValueError("Calibration needs at least one item; got none.")
        keys = None
        if tie_keys is not None:
            # An item that ties with no other is alone in its block and needs no key.
            keys, tied = np.zeros(scores.size), tied_positions(scores)
            if tied.size:
                keys[tied] = tie_keys(rows[tied])
        return cls(
            scores,
            keys,
            facts.ids is not None,
            None if is_rare is None else is_rare[rows],
            None if segments is None else segments[rows],
            out_of_bag,
            None if groups is None else groups[rows],
            efforts,
            facts.values is not None,
            refitted,
        )

    @property
    def keys_of(self) -> TieKeys | None:
        """The tie keys of items at given positions; None when ties are left out."""
        return None if self.tie_keys is None else self.tie_keys.__getitem__

    def within(self, segment: int) -> CalibrationSample:
        """Return the items of one segment, without labels: a multiple refers to all items."""
        own = np.flatnonzero(self.segments == segment)
        keys = None if self.tie_keys is None else self.tie_keys[own]
        groups = None if self.groups is None else self.groups[own]
        return replace(
            self,
            scores=self.scores[own],
            tie_keys=keys,
            is_rare=None,
            segments=None,
            groups=groups,
            efforts=None if self.efforts is None else self.efforts[own],
        )


class ReferencePrevalence(NamedTuple):
    """The prevalence that a multiple refers to: as stated, or else the share in labelled items."""

    stated: Any = None
    n_rare: int | None = None
    n_labelled: int | None = None
    n_rare_independent: int | None = None
    n_independent: int | None = None

    @classmethod
    def of_labels(
        cls, is_rare: Mask | None, groups: Rows | None = None, *, seed: int = 0
    ) -> ReferencePrevalence:
        """Count the rare items; without labels nothing is known.

        With groups, a lower bound rests on one item of each, drawn by lot.
        """
        if is_rare is None:
            return cls()
        counts = int(np.count_nonzero(is_rare)), is_rare.size
        if groups is None:
            return cls(None, *counts)
        shuffled = np.random.default_rng(seed % 2**64).permutation(groups.size)
        drawn = shuffled[np.unique(groups[shuffled], return_index=True)[1]]
        return cls(None, *counts, int(np.count_nonzero(is_rare[drawn])), drawn.size)

    @property
    def share(self) -> EstimatedShare | None:
        """The share of rare items among the labelled ones, exactly; None without labels."""
        if self.n_rare is None or self.n_labelled is None:
            return None
        return EstimatedShare(self.n_rare, self.n_labelled)

    @property
    def value(self) -> Any:
        """The prevalence, or None where it is not known."""
        return self.share if self.stated is None else self.stated

    def lower_bound(self, *, error: float) -> EstimatedShare:
        """Return what the share in the population exceeds, except with probability `error`."""
        n_rare, n = self.n_rare, self.n_labelled
        if self.n_independent is not None:
            n_rare, n = self.n_rare_independent, self.n_independent
        return prevalence_lower_bound(n_rare or 0, n or 1, error=error)


_UNKNOWN_PREVALENCE = ReferencePrevalence()


@dataclass(frozen=True)
class Terms:
    """What a rule promises, and what its numbers refer to.

    Attributes
    ----------
    guarantee, confidence, n_batches : str, float, int
        As for :func:`~shortlist.calibrate_threshold`.
    reference : ReferencePrevalence
        What a capacity in multiples of the prevalence refers to.
    seed : int
        Key of the hash.
    max_effort, worth
        As for :func:`~shortlist.calibrate_threshold`.
    """

    guarantee: str = "expected"
    confidence: float = 0.95
    reference: ReferencePrevalence = _UNKNOWN_PREVALENCE
    seed: int = 0
    n_batches: int = 1
    max_effort: float | None = None
    worth: Worth | None = None

    def thresholds(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, confidence: float
    ) -> list[CalibratedThreshold]:
        """Calibrate one threshold for each sample; several of them keep the capacity together."""
        if len(samples) == 1:
            return [self.threshold(samples[0], capacity, confidence)]
        if capacity.kind == "effort" or self.worth is not None:
            return self._one_by_one(samples, capacity, confidence)
        error, prevalence = 1 - confidence, self.reference.value
        if self._covers_prevalence(capacity):
            error /= 2  # the other half is spent on a lower bound of the prevalence
            prevalence = self.reference.lower_bound(error=error)
        promise = Promise(capacity, capacity.as_ratio(prevalence), self.guarantee, error)
        return fold_thresholds(samples, promise, confidence=confidence, seed=self.seed)

    def _one_by_one(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, confidence: float
    ) -> list[CalibratedThreshold]:
        """Let each fold keep the capacity by itself; they share the error (Bonferroni)."""
        if self.guarantee not in FOLD_GUARANTEES:
            raise ValueError(
                f"guarantee={self.guarantee!r} needs one model with one threshold, but each fold "
                "has its own. Hold items out with cv=0.5, or recalibrate."
            )
        share = 1 - (1 - confidence) / len(samples)
        found = [self.threshold(sample, capacity, share) for sample in samples]
        return [replace(each, confidence=confidence) for each in found]

    def _covers_prevalence(self, capacity: Capacity) -> bool:
        is_estimated = self.reference.stated is None and self.reference.share is not None
        is_covered = self.guarantee in COVER_PREVALENCE
        return capacity.kind == "multiple" and is_estimated and is_covered

    def threshold(
        self, sample: CalibrationSample, capacity: Capacity, confidence: float
    ) -> CalibratedThreshold:
        """Calibrate one threshold, and warn where out-of-bag scores are known to mislead."""
        by_precision = self.worth is not None and self.worth.kind == "precision"
        covers = self._covers_prevalence(capacity)
        walks = covers and self.guarantee == "confident" and sample.is_rare is not None
        prevalence, promised = None if walks else self.reference.value, confidence
        if covers and not walks:
            # Without labels, half of the error is spent on a lower bound of the prevalence.
            error = (1 - confidence) / 2
            prevalence, promised = self.reference.lower_bound(error=error), 1 - error
        items = ScoredItems(
            sample.scores,
            sample.keys_of,
            self.seed,
            is_rare=sample.is_rare if by_precision or walks else None,
            groups=sample.groups,
            efforts=sample.efforts,
            has_values=sample.has_values,
        )
        found = items.threshold(
            capacity,
            prevalence=prevalence,
            guarantee=self.guarantee,
            confidence=promised,
            n_batches=self.n_batches,
            max_effort=self.max_effort,
            worth=self.worth,
        )
        if sample.out_of_bag:
            _warn_at_the_bottom(sample.scores, found.value)
        return replace(found, confidence=confidence)


def _warn_at_the_bottom(scores: Floats, threshold: float) -> None:
    """Warn of a threshold at the lowest score, which fewer items will have with all trees."""
    tied = float(np.mean(scores == threshold))
    if threshold == scores.min() and tied > _MANY_TIED:
        warn_user(
            f"The threshold is the lowest out-of-bag score, which {tied:.0%} of the items have. "
            "With all trees, fewer items have this score, and more items than the capacity may be "
            "flagged. Use larger leaves (min_samples_leaf), another learner, or cv=0.5.",
            UserWarning,
        )
