"""M as a scikit-learn scorer, for any search or cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.labels import find_rare, rare_share
from .._core.ranking import rank
from .._core.scoring import MetadataRequester, rare_label_of, rare_scores
from .._core.validation import check_same_length, check_sample_weight, check_scores
from ..capacity import Capacity, check_capacity
from ._adjusted import capacity_room, has_rare_items
from ._counts import Counts

__all__ = ["CapacityScorer", "capacity_scorer", "detection_at_capacity"]


def capacity_scorer(capacity: Capacity, *, rare_label: Any = None) -> CapacityScorer:
    """Make a scikit-learn scorer that measures detection at a capacity.

    The scorer ranks the validation items by the model's scores, cuts the ranking at the capacity
    and returns the share of rare items before the cut. It judges the ranking alone: the model's
    own threshold plays no part. A tied block across the cut is shared out evenly, so that
    constant scores earn what chance would.

    Parameters
    ----------
    capacity : Capacity
        How much can be followed up; for a multiple, the prevalence is that of the
        validation items.
    rare_label : label, default=None
        The label that is looked for; `None` takes that of the model where it has a
        `rare_label_`, or else the rarest of the validation items. Name it when classes are nearly
        balanced, or folds may disagree.

    Returns
    -------
    CapacityScorer
        Callable as ``scorer(estimator, X, y, sample_weight=None)``; higher is better.

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
    return CapacityScorer(capacity, rare_label=rare_label)


class CapacityScorer(MetadataRequester):
    """Scorer made by :func:`~shortlist.capacity_scorer`."""

    def __init__(self, capacity: Capacity, *, rare_label: Any = None) -> None:
        self.capacity = check_capacity(capacity)
        self.rare_label = rare_label

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the detection of the fitted `estimator` at the capacity."""
        label = rare_label_of(estimator) if self.rare_label is None else self.rare_label
        is_rare, rare_label = find_rare(y, label)
        scores = rare_scores(estimator, X, rare_label=rare_label)
        return detection_at_capacity(is_rare, scores, self.capacity, sample_weight=sample_weight)

    # The name under which scikit-learn looks for the metadata a scorer can take.
    score = __call__

    def __repr__(self) -> str:
        label = "" if self.rare_label is None else f", rare_label={self.rare_label!r}"
        return f"capacity_scorer({self.capacity!r}{label})"


def detection_at_capacity(
    is_rare: NDArray[np.bool_],
    scores: ArrayLike,
    capacity: Capacity,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the share of rare items before the cut, averaged over all orders of tied items."""
    scores = check_scores(scores)
    check_same_length(y=is_rare, scores=scores, sample_weight=sample_weight)
    weight = np.ones(scores.size) if sample_weight is None else check_sample_weight(sample_weight)
    order, cuts = rank(scores)
    flagged = _running_total(weight[order])[cuts]
    found = _running_total((weight * is_rare)[order])[cuts]
    counts = Counts(items=flagged[-1], rare=found[-1], flagged=0, found=0)
    if not has_rare_items(counts):
        return 0.0
    if sample_weight is None:
        budget: float = capacity.max_flags(scores.size, rare_share(is_rare))
    else:
        budget = float(capacity_room(capacity, counts))
    # Between two cuts lies one tied block; sharing it out evenly is a straight line.
    return float(np.interp(budget, flagged, found) / found[-1])


def _running_total(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(values)])
