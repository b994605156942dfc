"""One calibrated threshold, and the scores that it flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Floats, Mask, TieKeys
from .._core.ids import check_ids, keys_by_id
from .._core.intervals import Interval
from .._core.ranking import Cut, Cuts, check_scores, weigh
from .._core.work import check_efforts, check_max_effort, check_values


@dataclass(frozen=True, slots=True)
class CalibratedThreshold:
    """A threshold that keeps a capacity, made by :func:`~shortlist.calibrate_threshold`.

    Attributes
    ----------
    value : float
        An item is flagged when its score is strictly above: the (k + 1)-th largest calibration
        score, or infinity if k is -1.
    lower_value, share : float
        The next largest calibration score, and the share of the items between the two scores that
        is flagged, drawn by lot. The lot is a hash of the item's tie key. 0 if ties are left out,
        which needs no ids.
    k : int
        How many calibration scores lie above the threshold; -1 if not even an item above all of
        them is flagged for sure.
    n_calibration : int
        Number of calibration scores.
    flagged_fraction : float
        Share of the calibration scores (of their weight) that the threshold flags, on average
        over the lots.
    interval : Interval
        Confidence interval ``(low, high)`` of the true flag rate, from the calibration scores
        alone. It covers for every distribution of the scores, tied or not, if the capacity was
        fixed beforehand, and with ``guarantee="simultaneous"`` for any capacity. A multiple of an
        estimated prevalence is taken as given.
        NaN with sample weights, groups, efforts or worth.
    capacity_fraction : float
        The capacity as a fraction of all items; an estimate when the prevalence was one.
    guarantee, confidence, ties : str, float, str
        What was asked for.
    tie_key, lower_tie_key : float
        With hashed ties, a score equal to `value` (or `lower_value`) lies above it when its key is
        below this.
    seed : int
        Key of the hash.
    effort_spent : float or None
        With ``Capacity.effort``: work of the flagged calibration items per calibration item.
        `interval` is then NaN, and `capacity_fraction` the share of items that may be flagged if
        each takes `max_effort`.
    max_effort : float or None
        No item may take more, in future too.
    has_values, has_efforts : bool
        Whether scores were weighed: `value` is then compared with value * probability / effort.
    limited_by : {"capacity", "worth"}
        What keeps the threshold from being lower. With "worth", capacity stays empty.
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
    lower_value: float = np.inf
    lower_tie_key: float = 0.0
    share: float = 0.0
    effort_spent: float | None = None
    max_effort: float | None = None
    has_values: bool = False
    has_efforts: bool = False
    limited_by: str = "capacity"

    def flag(
        self,
        scores: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> Mask:
        """Flag the scores above the threshold, each on its own.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Higher is more suspicious.
        ids : array-like of shape (n_items,), default=None
            Identifiers; required when ties are hashed.
        values, efforts : array-like of shape (n_items,), default=None
            Required if the threshold was calibrated with them. An effort above `max_effort` is an
            error: the promise would not cover it.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item is to be followed up.
        """
        scores = check_scores(scores)
        values, efforts = check_values(values, scores.size), check_efforts(efforts, scores.size)
        check_as_calibrated(
            values=(values is not None, self.has_values),
            efforts=(efforts is not None, self.has_efforts),
        )
        if efforts is not None and self.max_effort is not None:
            check_max_effort(self.max_effort, efforts)
        if ids is None and self.ties == "hash":
            raise ValueError(
                "This threshold breaks ties by a hash of the item's id. Pass ids=..., or calibrate "
                "with ties='exclude'."
            )
        hashed = None if self.ties == "exclude" else check_ids(ids, scores.size)
        keys = keys_by_id(hashed, seed=self.seed)  # not asked for where ties are left out
        return self.flag_with_keys(weigh(scores, values, efforts), keys)

    def flag_with_keys(self, scores: Floats, tie_keys: TieKeys | None) -> Mask:
        """Flag checked scores; `tie_keys` gives the keys of items, if ties are hashed."""
        return self.cuts.flag(scores, None if self.ties == "exclude" else tie_keys)

    @property
    def cuts(self) -> Cuts:
        """Both ends of the place of the threshold, and the share that is flagged in between."""
        upper, lower = Cut(self.value, self.tie_key), Cut(self.lower_value, self.lower_tie_key)
        return Cuts(upper, lower, self.share)


def check_as_calibrated(**given: tuple[bool, bool]) -> None:
    """Raise an error if something is given with items here, but was not in calibration, or not."""
    for name, (here, then) in given.items():
        if here != then:
            raise ValueError(
                f"The threshold was calibrated {'with' if then else 'without'} {name}, and these "
                f"items come {'with' if here else 'without'} them. Pass {name}=... both in "
                "calibration (fit or recalibrate) and here, or nowhere."
            )
