"""Detection at a capacity, from scores and as a scikit-learn scorer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Mask
from .._core.labels import find_rare, rare_share
from .._core.ranking import rank
from .._core.scoring import MetadataRequester, rare_label_of, rare_scores
from .._core.validation import check_same_length, check_scores
from .._core.work import are_equal, check_efforts, check_values
from ..capacity import Capacity, check_capacity
from ..worth import check_worth
from ._counts import Items, check_effort_given, ranked_by, room_in

__all__ = ["CapacityScorer", "capacity_scorer", "detection_at_capacity"]


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
    check_effort_given(capacity, effort)
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
                "A least precision together with values is no cut of the ranking by value. Use "
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
