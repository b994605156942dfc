"""Detection at a capacity: from scores, as a scikit-learn scorer, and out of fold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata
from scipy.stats import t as student_t

from .._core.arrays import Floats, Mask, Rows
from .._core.ids import number_groups
from .._core.labels import find_rare, rare_share
from .._core.ranking import are_equal, check_scores, rank
from .._core.scoring import MetadataRequester, rare_label_of, rare_scores
from .._core.validation import check_same_length
from .._core.work import check_efforts, check_values
from ..capacity import Capacity, check_capacity, check_efforts_suit
from ..worth import check_worth
from ._curve import capacity_curve
from .detection import Items, ranked_by, room_in


def capacity_scorer(
    capacity: Capacity, *, rare_label: Any = None, worth: Any = None
) -> CapacityScorer:
    """Make a scikit-learn scorer that measures detection at a capacity.

    The scorer ranks the validation items by the model's scores, cuts the ranking at the capacity
    and returns the share of the rare items that come before the cut. It measures the ranking alone
    and ignores the model's own threshold. A tied block across the cut is shared out evenly.
    Therefore constant scores find as much as chance would.

    Parameters
    ----------
    capacity : Capacity
        How many items can be followed up; a multiple refers to the prevalence of the validation
        items.
    rare_label : label, default=None
        The rare label; `None` uses the model's `rare_label_` if it has one, and otherwise the
        rarest label of the validation items. Name it if the classes are nearly balanced: folds
        could then disagree.
    worth : number or Worth, default=None
        Slots stay empty below it; see :func:`~shortlist.select`.

    Returns
    -------
    CapacityScorer
        Callable as ``scorer(estimator, X, y, sample_weight=None, values=None, efforts=None)``;
        higher is better. With values it returns the share of the rare items' value that is found.
        In a search, request values and efforts as metadata:
        ``scorer.set_score_request(values=True, efforts=True)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from shortlist import Capacity, capacity_scorer
    >>> X, y = make_classification(n_samples=2000, weights=[0.95], random_state=0)
    >>> search = GridSearchCV(
    ...     LogisticRegression(), {"C": [0.01, 1]}, scoring=capacity_scorer(Capacity.multiple(2))
    ... )
    >>> bool(0 < search.fit(X, y).best_score_ < 1)
    True
    """
    return CapacityScorer(capacity, rare_label=rare_label, worth=worth)


class CapacityScorer(MetadataRequester):
    """Scorer made by :func:`~shortlist.capacity_scorer`."""

    def __init__(self, capacity: Capacity, *, rare_label: Any = None, worth: Any = None) -> None:
        self.capacity = check_capacity(capacity)
        self.rare_label = rare_label
        self.worth = check_worth(worth)

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> float:
        """Return the detection of the fitted `estimator` at the capacity."""
        label = rare_label_of(estimator) if self.rare_label is None else self.rare_label
        is_rare, rare_label = find_rare(y, label)
        scores = rare_scores(estimator, X, rare_label=rare_label)
        return detection_at_capacity(
            is_rare,
            scores,
            self.capacity,
            sample_weight=sample_weight,
            values=values,
            efforts=efforts,
            worth=self.worth,
        )

    # scikit-learn looks under this name for the metadata that a scorer takes.
    score = __call__

    def __repr__(self) -> str:
        label = "" if self.rare_label is None else f", rare_label={self.rare_label!r}"
        worth = "" if self.worth is None else f", worth={self.worth!r}"
        return f"capacity_scorer({self.capacity!r}{label}{worth})"


def detection_at_capacity(
    is_rare: ArrayLike,
    scores: ArrayLike,
    capacity: Capacity,
    *,
    sample_weight: ArrayLike | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    worth: Any = None,
) -> float:
    """Return the share of rare items among the highest scores, as many as the capacity allows.

    Where a block of tied scores crosses the limit, each of its items counts in part: the result is
    the mean over all orders of the tied items.

    Parameters
    ----------
    is_rare : array-like of bool, shape (n_items,)
        True for the rare items.
    scores : array-like of shape (n_items,)
        Higher is more suspicious. NaN is an error.
    capacity : Capacity
        How many items can be followed up; a multiple refers to the share of these rare items.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items.
    values, efforts, worth
        As for :func:`~shortlist.select`. With values, the share of the rare items' value. The last
        item that fits only in part counts in part.

    Returns
    -------
    float
        Between 0 and 1. Without rare items it is 0, with an `UndefinedMetricWarning`.

    See Also
    --------
    shortlist.capacity_scorer : The same for a model, as a scikit-learn scorer.
    shortlist.capacity_curve : The same for every capacity at once.

    Examples
    --------
    The best item is rare. One place is left for three tied items, one of them rare:

    >>> from shortlist import Capacity
    >>> from shortlist.metrics import detection_at_capacity
    >>> is_rare = [True, True, False, False, False]
    >>> found = detection_at_capacity(is_rare, [0.9, 0.5, 0.5, 0.5, 0.1], Capacity.count(2))
    >>> round(found, 3)
    0.667
    """
    is_rare, scores = _check_mask(is_rare), check_scores(scores)
    check_same_length(is_rare=is_rare, scores=scores, sample_weight=sample_weight)
    n = scores.size
    value, effort = check_values(values, n), check_efforts(efforts, n)
    check_efforts_suit(check_capacity(capacity), effort)
    items = Items.of(is_rare, value, effort, sample_weight)
    order, cuts = rank(ranked_by(scores, value, effort))
    spent, found = items.down_to(order, cuts)
    counts = items.counts(np.zeros(n, dtype=bool))
    if counts.is_empty:
        return 0.0
    if sample_weight is None and capacity.kind != "effort":
        limit: float = capacity.max_flags(n, rare_share(is_rare))
    else:
        limit = float(room_in(capacity, counts))
    if (least := check_worth(worth)) is not None:
        suffices = least.suffices(scores, value, effort)
        if least.kind == "precision" and not are_equal(value):
            raise ValueError(
                "A least precision cannot be combined with values, by which items are ranked. Use "
                "worth=..., a value per unit of effort, or select(...) for the list itself."
            )
        limit = min(limit, float(spent[np.count_nonzero(suffices[order][cuts[1:] - 1])]))
    # Between two cuts lies one tied block; sharing it out evenly is a straight line.
    return float(np.interp(limit, spent, found) / found[-1])


def _check_mask(is_rare: ArrayLike) -> Mask:
    mask = np.asarray(is_rare)
    if mask.dtype != bool:
        raise ValueError(
            f"is_rare must be a boolean mask, such as y == rare_label; got dtype {mask.dtype}."
        )
    return mask


# --- out of fold ---


class OutOfFold(NamedTuple):
    """The share of the rare items that are found, and both ends of its confidence interval."""

    detection: float
    low: float
    high: float


def out_of_fold_detection(
    is_rare: ArrayLike,
    scores: ArrayLike,
    folds: ArrayLike,
    capacity: Capacity,
    *,
    confidence: float = 0.95,
    groups: ArrayLike | None = None,
) -> OutOfFold:
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
    OutOfFold
        Named tuple ``(detection, low, high)``: the share of the rare items that are found, of all
        folds together, and the confidence interval of what one of these models finds on new items.

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
    >>> round(found.detection, 3)
    0.667
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
    return OutOfFold(detection, low, high)


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
