"""What a capacity finds, measured on scores out of fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata
from scipy.stats import t as student_t

from .._core.arrays import Floats, Rows
from .._core.ids import number_groups
from .._core.labels import rare_share
from .._core.validation import check_same_length
from ..capacity import Capacity, check_capacity
from ._curve import capacity_curve
from ._scorer import detection_at_capacity

__all__ = ["OutOfFoldDetection", "out_of_fold_detection"]


@dataclass(frozen=True)
class OutOfFoldDetection:
    """What a capacity finds, by scores out of fold; made by :func:`out_of_fold_detection`.

    Attributes
    ----------
    detection : float
        Share of the rare items that are found, of all folds together.
    low, high : float
        Confidence interval of the detection by one of these models on new items.
    n_rare, n_items, n_folds : int
        Numbers of rare items, of items and of folds.
    """

    detection: float
    low: float
    high: float
    n_rare: int
    n_items: int
    n_folds: int


def out_of_fold_detection(
    is_rare: ArrayLike,
    scores: ArrayLike,
    folds: ArrayLike,
    capacity: Capacity,
    *,
    confidence: float = 0.95,
    groups: ArrayLike | None = None,
) -> OutOfFoldDetection:
    """Measure what a capacity finds from scores out of fold, without any rows held out.

    Each fold has a model of its own, whose scores need not be comparable with those of the others.
    Items are therefore ranked within their fold; the same share of each fold is followed up, and
    what is found is counted together. That estimates what one of these models finds, which has
    learned from the other folds; a model of all folds together, or of all rows, finds rather more.

    Parameters
    ----------
    is_rare : array-like of bool, shape (n_items,)
        Which items are rare.
    scores : array-like of shape (n_items,)
        Scores by a model that has not seen the item; NaN leaves an item out.
    folds : array-like of int, shape (n_items,)
        The fold of each item; items of a negative number are left out.
    capacity : Capacity
        How many items can be followed up. A multiple refers to the share of rare items here.
    confidence : float, default=0.95
        Of the interval.
    groups : array-like of shape (n_items,), default=None
        The group of each item, if several belong together: the rows of one customer. They are
        found or missed together, so the interval is wider.

    Returns
    -------
    OutOfFoldDetection
        With `detection`, `low`, `high` and `n_rare`.

    Notes
    -----
    The interval is that of :meth:`~shortlist.CapacityCurve.interval_at` for the places of
    items within their folds, as if one model had scored all of them. It covers three unknowns at
    once and is conservative. Models of different folds have seen each other's items, so they
    depend on each other; what an interval could lose by that, it has in reserve
    (`studies/promises/folds.py`).

    With groups, both sides of the interval are stretched by the root of the design effect: the
    variance of the detection between groups, divided by that of as many single items. This is
    approximate, and needs some ten groups with rare items.

    Examples
    --------
    Two folds of four items, with room for one in four: both lists find a rare item.

    >>> from shortlist import Capacity
    >>> from shortlist.metrics import out_of_fold_detection
    >>> found = out_of_fold_detection(
    ...     is_rare=[1, 0, 0, 0, 0, 1, 1, 0],
    ...     scores=[9, 3, 2, 1, 0.2, 0.9, 0.4, 0.1],
    ...     folds=[0, 0, 0, 0, 1, 1, 1, 1],
    ...     capacity=Capacity.fraction(0.25),
    ... )
    >>> round(found.detection, 3), found.n_rare
    (0.667, 3)
    """
    rare, numbers = np.asarray(is_rare).astype(bool), np.asarray(folds)
    values = np.asarray(scores, dtype=np.float64)
    check_same_length(is_rare=rare, scores=values, folds=numbers)
    together = number_groups(groups, values.size)
    known = np.flatnonzero(~np.isnan(values) & (numbers >= 0))
    rare, numbers = rare[known], numbers[known]
    if not rare.any():
        raise ValueError(
            f"Detection needs rare items with a score; got none among {known.size} items. Pass "
            "is_rare as truth values, and the scores and folds of the same items."
        )
    places = _places(values[known], numbers)
    limit = Capacity.fraction(check_capacity(capacity).as_ratio(rare_share(rare)))
    detection = detection_at_capacity(rare, -places, limit)
    curve = capacity_curve(rare, -places, rare_label=True, confidence=confidence)
    # With the capacity itself, the interval covers that the share of rare items is an estimate.
    low, high = curve.interval_at(capacity)
    if together is not None:
        found = _shares_listed(places, limit.max_flags(rare.size))[rare]
        wider = _stretch(found, together[known][rare])
        low = max(0.0, detection - wider * (detection - low))
        high = min(1.0, detection + wider * (high - detection))
    return OutOfFoldDetection(
        detection=detection,
        low=low,
        high=high,
        n_rare=int(np.count_nonzero(rare)),
        n_items=rare.size,
        n_folds=np.unique(numbers).size,
    )


def _places(scores: Floats, folds: Rows) -> Floats:
    """Return the share of its fold that lies before each item; tied items share theirs."""
    places = np.empty(scores.size)
    for number in np.unique(folds):
        own = np.flatnonzero(folds == number)
        places[own] = (rankdata(-scores[own]) - 0.5) / own.size
    return places


def _shares_listed(places: Floats, n_listed: int) -> Floats:
    """Return the probability that each item is listed, where tied items are drawn at random."""
    ordered = np.sort(places)
    before = np.searchsorted(ordered, places, side="left")
    tied = np.searchsorted(ordered, places, side="right") - before
    return np.clip((n_listed - before) / tied, 0.0, 1.0)


def _stretch(found: Floats, groups: Rows) -> float:
    """Return how much wider an interval is if items of a group are found or missed together.

    `found` has one number for each rare item. Where all or none are found, nothing is known about
    how they depend, and those of one group count as one item.
    """
    sizes = np.bincount(groups)
    n_groups, total = np.count_nonzero(sizes), found.size
    mean = found.mean()
    alone = float(((found - mean) ** 2).sum())
    together = float((np.bincount(groups, found - mean) ** 2).sum())
    effect = together / alone if alone > 0 else float((sizes**2).sum()) / total
    few = student_t.ppf(0.975, n_groups - 1) / norm.ppf(0.975) if n_groups > 1 else 1.0
    return float(few * np.sqrt(max(effect, 1.0)))
