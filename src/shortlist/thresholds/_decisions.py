"""One calibrated threshold, the items it is asked about, and its decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.binomial import Interval
from .._core.hashing import keys_by_id, tie_keys_of
from .._core.ranking import Cut, TieKeys, as_calibrated, flag_above, flag_above_lifted
from .._core.scoring import Scores, n_rows, take_rows
from .._core.validation import check_ids, check_scores
from .._core.work import Work, check_efforts, check_max_effort, check_values, reaches, weigh

__all__ = ["CalibratedThreshold", "Decisions", "Items", "judge"]

_NO_WORK = Work()


@dataclass(frozen=True, slots=True)
class CalibratedThreshold:
    """A threshold that keeps a capacity, made by :func:`~shortlist.calibrate_threshold`.

    Attributes
    ----------
    value : float
        An item is flagged when its score is strictly above. Infinity flags nothing.
    k : int
        The threshold is the (k + 1)-th largest calibration score; -1 when nothing is flagged. With
        groups, the number of calibration scores above.
    n_calibration : int
        Number of calibration scores.
    flagged_fraction : float
        Share of the calibration scores (of their weight) that the threshold flags.
    interval : Interval
        Confidence interval ``(low, high)`` of the true flag rate, from the calibration scores
        alone: the bounds of Clopper and Pearson, the lower one at the number of scores above the
        threshold, the upper one at k. It covers for every distribution of the scores, tied or
        not, if k was fixed beforehand, and with ``guarantee="simultaneous"`` for any k. A
        multiple of an estimated prevalence makes k an estimate, which the interval takes as given.
        NaN with sample weights, groups, efforts or worth.
    capacity_fraction : float
        The capacity as a fraction of all items; an estimate when the prevalence was one.
    guarantee, confidence, ties : str, float, str
        What was asked for.
    tie_key : float
        With hashed ties, a score equal to `value` is flagged when its key is below this.
    seed : int
        Key of the hash.
    effort_spent, effort_allowed : float or None
        With ``Capacity.effort``: work of the flagged calibration items per calibration item, and
        what the capacity allows. `interval` is then NaN, and `capacity_fraction` the share of
        items that may be flagged if each takes `max_effort`.
    max_effort : float or None
        No item may take more, in future too.
    has_values, has_efforts : bool
        Whether scores were weighed: `value` is then compared with value * probability / effort.
    least_probability : float
        What the probability of a flagged item must reach, if a precision was asked for without
        labels.
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
    effort_spent: float | None = None
    effort_allowed: float | None = None
    max_effort: float | None = None
    has_values: bool = False
    has_efforts: bool = False
    least_probability: float = 0.0
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
        if self.ties == "exclude":
            return self.flag_weighed(scores, None, values, efforts)
        if ids is None:
            raise ValueError(
                "This threshold breaks ties by a hash of the item's id. Pass ids=..., or calibrate "
                "with ties='exclude'."
            )
        keys = keys_by_id(check_ids(ids, scores.size), seed=self.seed)
        return self.flag_weighed(scores, keys, values, efforts)

    def flag_weighed(
        self,
        scores: Floats,
        tie_keys: TieKeys | None,
        values: Doubles | None,
        efforts: Doubles | None,
    ) -> Mask:
        """Flag checked scores, weighed by checked values and efforts as in calibration."""
        flagged = self.flag_with_keys(self.weigh(scores, values, efforts), tie_keys)
        if self.least_probability > 0:
            flagged &= reaches(scores, self.least_probability)
        return flagged

    def weigh(self, scores: Floats, values: Doubles | None, efforts: Doubles | None) -> Floats:
        """Return what is compared with the threshold: the scores, or what they are worth."""
        for name, given, needed in (
            ("values", values, self.has_values),
            ("efforts", efforts, self.has_efforts),
        ):
            if (given is not None) != needed:
                raise ValueError(
                    f"This threshold was calibrated {'with' if needed else 'without'} {name}, and "
                    f"these items come {'without' if needed else 'with'} them. Pass {name}=... "
                    "both in calibration and here, or nowhere."
                )
        if efforts is not None and self.max_effort is not None:
            check_max_effort(self.max_effort, efforts)
        return weigh(scores, values, efforts)

    def flag_with_keys(self, scores: Floats, tie_keys: TieKeys | None) -> Mask:
        """Flag checked scores; `tie_keys` gives the keys of tied items, if ties are hashed."""
        keys = None if self.ties == "exclude" else tie_keys
        return flag_above(scores, Cut(self.value, self.tie_key), keys)


class Items:
    """Items to decide about: rules ask them for scores, tie keys and segments.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix
        The items, in any form the model takes.
    score : function of (X, model)
        Scores items by the model of that number, or by all of them together if it is None.
    ids : array-like of shape (n_items,), default=None
        Identifiers for tie keys; the row's own values are hashed when absent.
    segments : ndarray of int, default=None
        Numbers of the items' segments.
    work : Work
        Values and efforts of the items, if there are any: scores are then what they are worth.
    """

    def __init__(
        self,
        X: Any,
        score: Callable[[Any, int | None], Scores],
        *,
        ids: ArrayLike | None = None,
        segments: Rows | None = None,
        work: Work = _NO_WORK,
    ) -> None:
        self.X, self.ids, self.segments, self.work = X, ids, segments, work
        self._score = score

    def __len__(self) -> int:
        return n_rows(self.X)

    def scores(self, model: int | None = None, rows: Rows | None = None) -> Scores:
        """Return the scores of some rows, or of all, by one model or by all of them together."""
        X = self.X if rows is None else take_rows(indexable(self.X)[0], rows)
        scores = self._score(X, model)
        if not self.work.is_given:
            return scores
        return scores._replace(rare=self.work.within(rows).weigh(check_scores(scores.rare)))

    def keys(self, seed: int) -> TieKeys:
        """Return tie keys made with that seed."""
        return tie_keys_of(self.X, self.ids, seed=seed)


@dataclass(frozen=True)
class Decisions:
    """Decisions about items, with everything they were made from.

    Attributes
    ----------
    flagged : ndarray of bool, shape (n_items,)
        True where the item is to be followed up.
    scores : ndarray of shape (n_items,)
        Higher is more suspicious.
    thresholds : ndarray of shape (n_items,)
        What each score had to exceed.
    by_class : ndarray of shape (n_items, n_classes) or None
        Scores of every class, when there are more than two.
    tie_keys : ndarray of shape (n_items,) or None
        With hashed ties, the key that decides about an item on its threshold: the lower, the
        sooner it is flagged.
    """

    flagged: Mask
    scores: Floats
    thresholds: Floats
    by_class: Floats | None = None
    keys_of: TieKeys | None = field(default=None, repr=False)

    @cached_property
    def tie_keys(self) -> NDArray[np.float64] | None:
        """The tie key of each item, hashed when it is asked for; None if ties are left out."""
        return None if self.keys_of is None else self.keys_of(np.arange(self.flagged.size))


def judge(
    calibration: CalibratedThreshold,
    precision: np.dtype[Any],
    scores: Scores,
    tie_keys: TieKeys | None,
    rows: Rows | None = None,
) -> Decisions:
    """Compare scores with one threshold, in the precision of its calibration scores.

    `rows` are the user's numbers of the items, for errors.
    """
    rare = as_calibrated(check_scores(scores.rare, rows=rows), precision)
    keys = None if calibration.ties == "exclude" else tie_keys
    flagged = flag_above_lifted(rare, Cut(calibration.value, calibration.tie_key), keys)
    thresholds = np.broadcast_to(np.float64(calibration.value), rare.shape)
    return Decisions(flagged, rare, thresholds, scores.by_class, tie_keys)
