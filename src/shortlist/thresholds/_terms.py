"""What a rule promises, and which prevalence a multiple of it refers to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Floats, Mask
from .._core.binomial import clopper_pearson_lower
from .._core.validation import warn_user
from ..capacity import Capacity
from ._calibrate import calibrate_scores
from ._calibrated import CalibratedThreshold
from ._sample import CalibrationSample

__all__ = ["ReferencePrevalence", "Terms"]

_MANY_TIED = 0.05  # share of the items that tie with a threshold


class ReferencePrevalence(NamedTuple):
    """The prevalence that a multiple refers to: as stated, or else the share in labelled items."""

    stated: Any = None
    n_rare: int | None = None
    n_labelled: int | None = None

    @classmethod
    def of_labels(cls, is_rare: Mask | None) -> ReferencePrevalence:
        """Count the rare items; without labels nothing is known."""
        return cls() if is_rare is None else cls(None, int(np.count_nonzero(is_rare)), is_rare.size)

    @property
    def share(self) -> Fraction | None:
        """The share of rare items among the labelled ones, exactly; None without labels."""
        if self.n_rare is None or self.n_labelled is None:
            return None
        return Fraction(self.n_rare, self.n_labelled)

    @property
    def value(self) -> Any:
        """The prevalence, or None where it is not known."""
        return self.share if self.stated is None else self.stated

    def lower_bound(self, *, error: float) -> float:
        """Return what the share in the population exceeds, except with probability `error`."""
        return float(clopper_pearson_lower(self.n_rare or 0, self.n_labelled or 1, error=error))


_UNKNOWN_PREVALENCE = ReferencePrevalence()


@dataclass(frozen=True)
class Terms:
    """What a rule promises, and what its numbers refer to.

    Attributes
    ----------
    guarantee, confidence : str, float
        As for :func:`~shortlist.calibrate_threshold`.
    reference : ReferencePrevalence
        What a capacity in multiples of the prevalence refers to.
    seed : int
        Key of the hash.
    """

    guarantee: str = "plug-in"
    confidence: float = 0.95
    reference: ReferencePrevalence = _UNKNOWN_PREVALENCE
    seed: int = 0

    def threshold(
        self, sample: CalibrationSample, capacity: Capacity, confidence: float
    ) -> CalibratedThreshold:
        """Calibrate one threshold, and warn where out-of-bag scores are known to mislead."""
        calibration = self._calibrated(sample, capacity, confidence)
        if sample.out_of_bag:
            _warn_at_the_bottom(sample.scores, calibration.value)
        return calibration

    def _calibrated(
        self, sample: CalibrationSample, capacity: Capacity, confidence: float
    ) -> CalibratedThreshold:
        options: dict[str, Any] = {
            "prevalence": self.reference.value,
            "guarantee": self.guarantee,
            "confidence": confidence,
            "tie_keys": None if sample.tie_keys is None else sample.keys_of,
            "seed": self.seed,
        }
        is_estimated = self.reference.stated is None and self.reference.share is not None
        if not (capacity.kind == "multiple" and is_estimated and self.guarantee == "confident"):
            return calibrate_scores(sample.scores, capacity, **options)
        if sample.is_rare is not None:
            options |= {"prevalence": None, "is_rare": sample.is_rare}
            return calibrate_scores(sample.scores, capacity, **options)
        # Without labels, half of the error is spent on a lower bound of the prevalence.
        error = (1 - confidence) / 2
        lowest = self.reference.lower_bound(error=error)
        options |= {"prevalence": lowest, "confidence": 1 - error}
        return replace(calibrate_scores(sample.scores, capacity, **options), confidence=confidence)


def _warn_at_the_bottom(scores: Floats, threshold: float) -> None:
    """Warn of a threshold at the lowest score, which fewer items will have with all trees."""
    tied = float(np.mean(scores == threshold))
    if threshold == scores.min() and tied > _MANY_TIED:
        warn_user(
            f"The threshold is the lowest out-of-bag score, which {tied:.0%} of the items have. "
            "With all trees, fewer items have this score, and more items than the capacity may be "
            "flagged. Use larger leaves (min_samples_leaf), or hold items out: cv=0.5.",
            UserWarning,
        )
