"""The result of a calibration: a threshold, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.binomial import Interval
from .._core.hashing import keys_by_id
from .._core.ranking import Cut, TieKeys, flag_above
from .._core.validation import check_ids, check_scores

__all__ = ["CalibratedThreshold"]


@dataclass(frozen=True, slots=True)
class CalibratedThreshold:
    """A threshold that keeps a capacity, made by :func:`~shortlist.calibrate_threshold`.

    Attributes
    ----------
    value : float
        An item is flagged when its score is strictly above. Infinity flags nothing.
    k : int
        The threshold is the (k + 1)-th largest calibration score; -1 when nothing is flagged.
    n_calibration : int
        Number of calibration scores.
    flagged_fraction : float
        Share of the calibration scores (of their weight) that the threshold flags.
    interval : Interval
        Confidence interval ``(low, high)`` of the true flag rate, from the calibration scores
        alone: quantiles of Beta(k + 1, n - k), and the lower bound of Clopper and Pearson
        where a tied block was left out. NaN with sample weights.
    capacity_fraction : float
        The capacity as a fraction of all items; an estimate when the prevalence was one.
    guarantee, confidence, ties : str, float, str
        What was asked for.
    tie_key : float
        With hashed ties, a score equal to `value` is flagged when its key is below this.
    seed : int
        Key of the hash.
    """

    value: float
    k: int
    n_calibration: int
    flagged_fraction: float
    interval: Interval
    capacity_fraction: float
    guarantee: str
    confidence: float
    ties: str
    tie_key: float = 0.0
    seed: int = 0

    def flag(self, scores: ArrayLike, ids: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Flag the scores above the threshold, each on its own.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Higher is more suspicious.
        ids : array-like of shape (n_items,), default=None
            Identifiers; required when ties are hashed.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is to be followed up.
        """
        scores = check_scores(scores)
        if self.ties == "exclude":
            return self.flag_with_keys(scores, None)
        if ids is None:
            raise ValueError(
                "This threshold breaks ties by a hash of the item's id. Pass ids=..., or calibrate "
                "with ties='exclude'."
            )
        keys = keys_by_id(check_ids(ids, scores.size), seed=self.seed)
        return self.flag_with_keys(scores, keys)

    def flag_with_keys(
        self, scores: NDArray[np.floating], tie_keys: TieKeys | None
    ) -> NDArray[np.bool_]:
        """Flag checked scores; `tie_keys` gives the keys of tied items, if ties are hashed."""
        keys = None if self.ties == "exclude" else tie_keys
        return flag_above(scores, Cut(self.value, self.tie_key), keys)
