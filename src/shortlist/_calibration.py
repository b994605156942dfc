"""Thresholds from scores of items that a model has not seen, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from ._core.binomial import clopper_pearson_lower
from ._core.hashing import check_keyed_alike, hash_rows, keys_by_id
from ._core.ranking import TieKeys, tied_positions
from ._core.scoring import n_rows, take_rows
from ._core.steady import lift
from ._core.validation import check_ids, check_scores, warn_user
from .capacity import Capacity
from .thresholds import CalibratedThreshold
from .thresholds._calibrate import calibrate_scores

__all__ = ["CalibratedMixin", "CalibrationSample"]

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]

_MANY_TIED = 0.05  # share of the items that tie with a threshold


@dataclass(frozen=True)
class CalibrationSample:
    """Scores of items the model has not seen, kept so that the capacity can change later.

    `tie_keys` are there when ties are hashed; `keyed_by_ids` says whether they come from ids or
    from the rows, since the keys in use must come from the same source. `is_rare` are labels, and
    `segments` the numbers of the items' segments. `out_of_bag` says that each item was scored by
    some of the trees only.
    """

    scores: Floats
    tie_keys: NDArray[np.float64] | None = None
    keyed_by_ids: bool = False
    is_rare: Mask | None = None
    segments: NDArray[np.intp] | None = None
    out_of_bag: bool = False


class CalibratedMixin:
    """One threshold or several, calibrated for a capacity.

    A subclass stores the parameters `capacity`, `guarantee`, `confidence` and `ties`, and in `fit`
    sets `_seed`, `_n_labelled` and `_n_rare` (both None without labels), and hands calibration
    samples to `_calibrate_on` at last.
    """

    capacity: Any
    prevalence: Any = None
    guarantee: str
    confidence: float
    ties: str
    calibrations_: list[CalibratedThreshold]
    _seed: int
    _n_rare: int | None
    _n_labelled: int | None
    _calibrated_capacity: Capacity
    _samples: list[CalibrationSample]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrations_")

    @property
    def calibration_(self) -> CalibratedThreshold:
        """The calibrated threshold, with all that is known about it."""
        if len(self.calibrations_) > 1:
            raise AttributeError("There are several calibrated thresholds: see calibrations_.")
        return self.calibrations_[0]

    @property
    def threshold_(self) -> Any:
        """An item is flagged when its score is strictly above; an array if there are several."""
        values = [calibration.value for calibration in self.calibrations_]
        return values[0] if len(values) == 1 else np.array(values)

    @property
    def prevalence_(self) -> float:
        """Share of rare items in the data given to `fit`; NaN when no labels were given."""
        share = self._share_in_fit()
        return np.nan if share is None else float(share)

    @property
    def capacity_fraction_(self) -> float:
        """The capacity of the threshold as a fraction of all items."""
        return self._calibrated_capacity.as_fraction(self._reference_prevalence())

    # --- for subclasses -----------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():  # asked here, because check_is_fitted takes its time
            check_is_fitted(self)

    def _share_in_fit(self) -> Fraction | None:
        if self._n_rare is None or self._n_labelled is None:
            return None
        return Fraction(self._n_rare, self._n_labelled)

    def _reference_prevalence(self) -> Any:
        """Return the prevalence that a multiple refers to: as stated, or else that of `fit`."""
        return self._share_in_fit() if self.prevalence is None else self.prevalence

    def _keys(self, X: Any, ids: ArrayLike | None, *, seed: int | None = None) -> TieKeys:
        seed = self._seed if seed is None else seed
        if ids is None:
            return lambda tied: hash_rows(take_rows(indexable(X)[0], tied), seed=seed)
        return keys_by_id(check_ids(ids, n_rows(X)), seed=seed)

    def _keys_as_calibrated(self, X: Any, ids: ArrayLike | None) -> TieKeys:
        """Hash what was hashed in calibration: a cut among ids says nothing about rows."""
        if self._samples[0].tie_keys is not None:
            check_keyed_alike(ids is not None, self._samples[0].keyed_by_ids)
        return self._keys(X, ids)

    def _sample(
        self,
        scores: Floats,
        tie_keys: TieKeys,
        keyed_by_ids: bool,
        is_rare: Mask | None = None,
        rows: NDArray[np.intp] | None = None,
        segments: NDArray[np.intp] | None = None,
    ) -> CalibrationSample:
        """Keep scores with what later capacities need: the keys of tied items, and the labels."""
        scores = lift(check_scores(scores, rows=rows))
        if not scores.size:
            raise ValueError("Calibration needs at least one item; got none.")
        keys = None
        if self.ties == "hash":
            # An item that ties with nobody stands alone in its block, and needs no key.
            keys, tied = np.zeros(scores.size), tied_positions(scores)
            if tied.size:
                keys[tied] = tie_keys(tied)
        return CalibrationSample(scores, keys, keyed_by_ids, is_rare, segments)

    def _calibrate_on(self, samples: list[CalibrationSample]) -> None:
        """Set the threshold of each model from the scores of items it has not seen."""
        self.calibrations_ = [
            self._threshold_for(sample, self.capacity, self.confidence) for sample in samples
        ]
        self._samples, self._calibrated_capacity = samples, self.capacity

    def _threshold_for(
        self, sample: CalibrationSample, capacity: Capacity, confidence: float
    ) -> CalibratedThreshold:
        calibration = self._calibrated(sample, capacity, confidence)
        if sample.out_of_bag:
            _warn_at_the_bottom(sample.scores, calibration.value)
        return calibration

    def _calibrated(
        self, sample: CalibrationSample, capacity: Capacity, confidence: float
    ) -> CalibratedThreshold:
        keys = sample.tie_keys
        options: dict[str, Any] = {
            "prevalence": self._reference_prevalence(),
            "guarantee": self.guarantee,
            "confidence": confidence,
            "tie_keys": None if keys is None else (lambda tied: keys[tied]),
            "seed": self._seed,
        }
        estimated = capacity.kind == "multiple" and self._share_in_fit() is not None
        if self.prevalence is not None or not (estimated and self.guarantee == "confident"):
            return calibrate_scores(sample.scores, capacity, **options)
        if sample.is_rare is not None:
            options |= {"prevalence": None, "is_rare": sample.is_rare}
            return calibrate_scores(sample.scores, capacity, **options)
        # Without labels, half of the error is spent on a lower bound of the prevalence.
        error = (1 - confidence) / 2
        lowest = clopper_pearson_lower(self._n_rare or 0, self._n_labelled or 1, error=error)
        options |= {"prevalence": float(lowest), "confidence": 1 - error}
        calibration = calibrate_scores(sample.scores, capacity, **options)
        return replace(calibration, confidence=confidence)


def _warn_at_the_bottom(scores: Floats, threshold: float) -> None:
    """Warn of a threshold at the lowest score, which fewer items will have with all trees."""
    tied = float(np.mean(scores == threshold))
    if threshold == scores.min() and tied > _MANY_TIED:
        warn_user(
            f"The threshold is the lowest out-of-bag score, which {tied:.0%} of the items have. "
            "Scored by all trees, fewer will have it, and more items than the capacity may be "
            "flagged. Use larger leaves (min_samples_leaf), or hold items out (cv=0.5 of "
            "CapacityClassifier, hold_out=0.25 of an aware forest).",
            UserWarning,
        )
