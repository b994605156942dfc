"""From the parameters of a classifier to the calibrator that makes its rule."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from .._core.arrays import Mask
from .._core.groups import number_groups
from .._core.hashing import tie_keys_of
from .._core.scoring import n_rows
from .._core.validation import check_confidence, check_ids, check_option
from .._core.work import Work
from ..capacity import Capacity
from ..exceptions import CapacityError
from ..thresholds import TIES, Calibrator, ReferencePrevalence, Terms, check_guarantee
from ..thresholds.segments import check_segment_capacities, segment_codes
from ..worth import check_worth

__all__ = ["Promising", "calibrator_of", "check_promise", "terms_of"]


class Promising(Protocol):
    """The parameters of a classifier that concern the capacity and what is promised about it."""

    capacity: Any
    segment_capacities: dict[Any, Capacity | None] | None
    default_segment_capacity: Capacity | None
    prevalence: Any
    guarantee: str
    confidence: float
    n_batches: int
    ties: str
    worth: Any
    max_effort: float | None


def check_promise(params: Promising) -> None:
    """Check all parameters that concern the capacity and what is promised about it.

    Parameters
    ----------
    params : classifier
        With the parameters of a :class:`~shortlist.CapacityClassifier` as attributes.
    """
    segments = check_segment_capacities(params.segment_capacities, params.default_segment_capacity)
    if params.capacity is None and segments is None:
        raise CapacityError(
            "No capacity was given. Pass capacity=Capacity.fraction(0.02), say, or "
            "segment_capacities."
        )
    for limit in (params.capacity, *(segments.limits if segments else [])):
        if limit is not None:
            check_guarantee(params.guarantee, limit, params.n_batches)
    check_option("ties", params.ties, TIES)
    check_confidence(params.confidence)
    check_worth(params.worth)


def terms_of(params: Promising, labels: ReferencePrevalence, seed: int) -> Terms:
    """Return what is promised, about the prevalence in labels or the one that was stated."""
    return Terms(
        params.guarantee,
        params.confidence,
        labels._replace(stated=params.prevalence),
        seed,
        params.n_batches,
        params.max_effort,
        check_worth(params.worth),
    )


def calibrator_of(
    params: Promising,
    X: Any,
    is_rare: Mask | None,
    ids: ArrayLike | None,
    segments: ArrayLike | None,
    *,
    seed: int,
    labels: ReferencePrevalence | None = None,
    groups: ArrayLike | None = None,
    work: Work | None = None,
) -> Calibrator:
    """Gather what turns scores of unseen items into a rule; impossible capacities fail here.

    Parameters
    ----------
    params : classifier
        With the parameters of a :class:`~shortlist.CapacityClassifier` as attributes.
    X : array-like, data frame or sparse matrix of shape (n_items, n_features)
        Items, as they were given: their values are hashed if there are no ids.
    is_rare : ndarray of bool, shape (n_items,), or None
        Which of them are rare.
    ids, segments, groups : array-like of shape (n_items,), or None
        As for the `fit` of a :class:`~shortlist.CapacityClassifier`.
    seed : int
        Key of all hashes.
    labels : ReferencePrevalence, default=None
        Where the prevalence comes from; `None` takes `is_rare`.
    work : Work, default=None
        Checked values and efforts.

    Returns
    -------
    Calibrator
        Its method `rule` makes the rule from scores of items that the model has not seen.
    """
    limits = check_segment_capacities(params.segment_capacities, params.default_segment_capacity)
    numbered = number_groups(groups, n_rows(X))
    if labels is None:
        labels = ReferencePrevalence.of_labels(is_rare, numbered, seed=seed)
    ids = check_ids(ids, n_rows(X))
    without = segments is None and limits is None
    return Calibrator(
        params.capacity,
        limits,
        terms_of(params, labels, seed),
        tie_keys=tie_keys_of(X, ids, seed=seed) if params.ties == "hash" else None,
        keyed_by_ids=ids is not None,
        is_rare=is_rare,
        segment_of=None if without else segment_codes(segments, limits, n_rows(X)),
        group_of=numbered,
        work=Work() if work is None else work,
    )
