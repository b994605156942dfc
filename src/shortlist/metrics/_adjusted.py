"""The adjusted detection rate M: what is found once the capacity limit has been paid for."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.validation import check_confidence
from ..capacity import Capacity, check_capacity, check_prevalence
from ._counts import Counts, count_flags

__all__ = ["adjusted_detection_interval", "adjusted_detection_score"]


def adjusted_detection_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    capacity: Capacity,
    rare_label: Any = None,
    prevalence: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of the rare items found, once the capacity limit has been paid for.

    When more items are flagged than can be followed up, the follow-ups are assumed to be drawn at
    random among the flags, so that detection shrinks by the fraction that is processed.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True labels.
    y_pred : array-like of shape (n_items,)
        Predicted labels, of which `rare_label` are the ones to follow up; or a boolean mask of
        the items to follow up, where the labels are not themselves booleans.
    capacity : Capacity
        How much can be followed up.
    rare_label : label, default=None
        The label that is looked for; `None` takes the rarest in `y_true`.
    prevalence : number, default=None
        Share of rare items that a multiple refers to; `None` takes the share in `y_true`.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items.

    Returns
    -------
    float
        Between 0 and 1; equals the detection rate while the limit is respected. Without any rare
        item it is 0, with an `UndefinedMetricWarning`.

    See Also
    --------
    adjusted_detection_interval : An exact confidence interval.
    capacity_scorer : The same for models that rank, as a scikit-learn scorer.

    Notes
    -----
    Definition 1 of the paper: :math:`M = \text{sensitivity} \cdot \min(1, c / R)` for the
    capacity :math:`c = b\pi_0` and the flag rate :math:`R`. Equivalently
    :math:`M = \min(\text{sensitivity}, b \cdot \text{precision})`.

    Examples
    --------
    Two rare items among ten, four flags, room for two: each is seen half the time.

    >>> from shortlist import Capacity, adjusted_detection_score
    >>> y_true = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> y_pred = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    >>> adjusted_detection_score(y_true, y_pred, capacity=Capacity.count(2))
    0.5
    """
    counts = count_flags(y_true, y_pred, rare_label=rare_label, sample_weight=sample_weight)
    if not has_rare_items(counts):
        return 0.0
    sensitivity = counts.found / counts.rare
    room = capacity_room(capacity, counts, prevalence)
    # Exact on both sides: a perfect prediction at b = 1 fills its capacity, and does not exceed it.
    return sensitivity if counts.flagged <= room else sensitivity * float(room / counts.flagged)


def adjusted_detection_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    capacity: Capacity,
    rare_label: Any = None,
    prevalence: Any = None,
    confidence: float = 0.95,
) -> Interval:
    r"""Exact confidence interval for the adjusted detection rate on a test sample.

    It holds for any sample size, made of bounds for binomial proportions; no bootstrap. The
    items must be an independent sample that neither the model nor the threshold has seen.

    Parameters
    ----------
    y_true, y_pred, capacity, rare_label, prevalence
        As for :func:`adjusted_detection_score`. There are no sample weights: exact bounds are
        known for counts only.
    confidence : float, default=0.95
        The interval covers the true value at least this often.

    Returns
    -------
    Interval
        Named tuple ``(low, high)``.

    Notes
    -----
    When the multiple :math:`b` is known (a multiple, or a fraction together with `prevalence`),
    :math:`M = \min(\text{sensitivity}, b \cdot \text{precision})`: the lower end is the minimum of
    two lower bounds of Clopper and Pearson, each at the full level, because it fails only if the
    bound of the smaller of the two fails; the upper end splits the level. For a fraction or count
    with unknown prevalence, :math:`M = \text{sensitivity} \cdot \min(1, c / R)`, and both ends
    split the level between the sensitivity and the flag rate :math:`R`.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity, adjusted_detection_interval
    >>> y_true = np.repeat([1, 0], [20, 980])
    >>> y_pred = np.repeat([1, 0, 1, 0], [12, 8, 8, 972])
    >>> low, high = adjusted_detection_interval(y_true, y_pred, capacity=Capacity.multiple(2))
    >>> round(low, 3), round(high, 3)
    (0.361, 0.83)
    """
    error = 1 - check_confidence(confidence)
    counts = count_flags(y_true, y_pred, rare_label=rare_label)
    if not has_rare_items(counts):
        return Interval(0.0, 1.0)
    b = _known_multiple(check_capacity(capacity), prevalence)
    if b is not None:
        return _interval_for_multiple(counts, b, error)
    room = capacity_room(capacity, counts, prevalence)
    return _interval_for_fraction(counts, float(room) / counts.items, error)


def capacity_room(capacity: Capacity, counts: Counts, prevalence: Any = None) -> Fraction:
    """Return how many (or how much weight) of the items at hand can be followed up, exactly."""
    items = Fraction(counts.items)
    if check_capacity(capacity).kind == "count" and capacity.per is None:
        return min(Fraction(int(capacity.value)), items)
    share = Fraction(counts.rare) / items if prevalence is None else prevalence
    return capacity.as_ratio(share) * items


def has_rare_items(counts: Counts) -> bool:
    """Tell whether there is anything to detect, and warn if not."""
    if counts.rare == 0:
        warnings.warn(
            "Detection is undefined without a rare item in y_true.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    return counts.rare > 0


def _known_multiple(capacity: Capacity, prevalence: Any) -> float | None:
    if capacity.kind == "multiple":
        return float(capacity.value)
    is_rate = not (capacity.kind == "count" and capacity.per is None)
    if prevalence is not None and is_rate and check_prevalence(prevalence) > 0:
        return float(capacity.as_ratio() / check_prevalence(prevalence))
    return None


def _interval_for_multiple(counts: Counts, b: float, error: float) -> Interval:
    _, rare, flagged, found = counts
    low = min(
        clopper_pearson_lower(found, rare, error=error / 2),
        b * clopper_pearson_lower(found, flagged, error=error / 2),
    )
    high = min(
        clopper_pearson_upper(found, rare, error=error / 4),
        b * clopper_pearson_upper(found, flagged, error=error / 4),
    )
    return Interval(float(low), float(high))


def _interval_for_fraction(counts: Counts, c: float, error: float) -> Interval:
    items, rare, flagged, found = counts
    most_flagged = clopper_pearson_upper(flagged, items, error=error / 4)
    least_flagged = clopper_pearson_lower(flagged, items, error=error / 4)
    low = clopper_pearson_lower(found, rare, error=error / 4) * min(1.0, c / most_flagged)
    processed = 1.0 if least_flagged <= c else c / least_flagged
    return Interval(
        float(low), float(clopper_pearson_upper(found, rare, error=error / 4) * processed)
    )
