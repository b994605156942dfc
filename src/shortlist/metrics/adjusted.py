"""The adjusted detection rate M: the rare items found within the capacity, and an interval."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from .._core.arrays import Mask
from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.labels import EstimatedShare, rarest_label
from .._core.validation import (
    check_confidence,
    check_same_length,
    check_sample_weight,
    warn_user,
)
from .._core.work import are_equal, check_efforts, check_values
from ..capacity import Capacity, check_capacity, check_prevalence, exact
from ._weighed_interval import WeighedSample, check_effort_given, weighed_interval

__all__ = [
    "Counts",
    "adjusted_detection_interval",
    "adjusted_detection_of_counts",
    "adjusted_detection_score",
    "capacity_room",
    "has_rare_items",
]


def adjusted_detection_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    capacity: Capacity,
    rare_label: Any = None,
    prevalence: Any = None,
    sample_weight: ArrayLike | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
) -> float:
    r"""Return the share of the rare items that are flagged and followed up within the capacity.

    When more items are flagged than can be followed up, the follow-ups are assumed to be drawn at
    random among the flags. Detection then shrinks by the fraction that is followed up.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True labels.
    y_pred : array-like of shape (n_items,)
        Predicted labels; items with `rare_label` are to be followed up. Or a boolean mask of the
        items to follow up, if the labels themselves are not booleans.
    capacity : Capacity
        How many items can be followed up.
    rare_label : label, default=None
        The rare label; `None` uses the rarest in `y_true`.
    prevalence : number, default=None
        Share of rare items that a multiple refers to; `None` uses the share in `y_true`.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items.
    values : array-like of shape (n_items,), default=None
        What each item is worth if it is rare. The result is then the share of the value of all
        rare items that is found.
    efforts : array-like of shape (n_items,), default=None
        How much work each item takes, for ``Capacity.effort(...)``. If the flags take more than
        the budget, it is spent on a random order of them.

    Returns
    -------
    float
        Between 0 and 1; equals the detection rate if the flags are within the capacity. Without
        rare items, or without any value, it is 0, with an `UndefinedMetricWarning`.

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
    Two rare items among ten, four flags, room for two: each flag is seen half the time.

    >>> from shortlist import Capacity, adjusted_detection_score
    >>> y_true = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> y_pred = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    >>> adjusted_detection_score(y_true, y_pred, capacity=Capacity.count(2))
    0.5

    The two rare items are worth 90 and 10 euros. Their flags take 60 of the 30 minutes that there
    are:

    >>> adjusted_detection_score(
    ...     y_true,
    ...     [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ...     capacity=Capacity.effort(30),
    ...     values=[90, 10, 5, 5, 5, 5, 5, 5, 5, 5],
    ...     efforts=[60, 20, 20, 20, 20, 20, 20, 20, 20, 20],
    ... )
    0.45
    """
    counts = _count_flags(
        y_true,
        y_pred,
        rare_label=rare_label,
        sample_weight=sample_weight,
        values=values,
        efforts=efforts,
    )
    check_effort_given(capacity, efforts)
    return _score_of(counts, capacity, prevalence)


def _score_of(counts: Counts, capacity: Capacity, prevalence: Any) -> float:
    if not has_rare_items(counts):
        return 0.0
    sensitivity = counts.found / counts.rare
    room = capacity_room(capacity, counts, prevalence)
    # Both sides are exact: a perfect prediction at b = 1 fills its capacity without exceeding it.
    return sensitivity if counts.flagged <= room else sensitivity * float(room / counts.flagged)


def adjusted_detection_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    capacity: Capacity,
    rare_label: Any = None,
    prevalence: Any = None,
    confidence: float = 0.95,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    max_value: float | None = None,
    max_effort: float | None = None,
) -> Interval:
    r"""Return an exact confidence interval for the adjusted detection rate, from a test sample.

    It combines bounds for binomial proportions, without a bootstrap, and holds for any sample size.
    The items must be an independent sample that neither the model nor the threshold has seen.

    Parameters
    ----------
    y_true, y_pred, capacity, rare_label, prevalence
        As for :func:`adjusted_detection_score`. Sample weights are not supported: exact bounds
        are known for counts only.
    confidence : float, default=0.95
        The interval covers the true value at least this often.
    values, efforts : array-like of shape (n_items,), default=None
        As for :func:`adjusted_detection_score`. Bounds for counts are then replaced by bounds for
        means of bounded numbers, by betting; they are exact, too, and wider.
    max_value, max_effort : float, default=None
        The largest value and effort that any item can have, in the population. Required with
        values and efforts that differ.

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
    check_effort_given(capacity, efforts)
    equal = values is None or are_equal(check_values(values, len(np.asarray(y_true))))
    if capacity.kind == "effort" or not equal:
        is_rare, flagged = _rare_and_flagged(y_true, y_pred, rare_label)
        if not is_rare.any():
            return Interval(0.0, 1.0)
        sample = WeighedSample.of(is_rare, flagged, values, efforts, max_value, max_effort)
        return weighed_interval(sample, capacity, prevalence, error=error)
    counts = _count_flags(y_true, y_pred, rare_label=rare_label)
    return _interval_of(counts, capacity, prevalence, error)


def adjusted_detection_of_counts(
    *, n_items: int, n_rare: int, n_flagged: int, n_found: int, capacity: Capacity
) -> tuple[float, Interval]:
    """Return the adjusted detection rate and its interval at 95 %, from four counts."""
    check_effort_given(capacity, None)
    counts = Counts(float(n_items), float(n_rare), float(n_flagged), float(n_found))
    return _score_of(counts, capacity, None), _interval_of(counts, capacity, None, 1 - 0.95)


def _interval_of(counts: Counts, capacity: Capacity, prevalence: Any, error: float) -> Interval:
    if not has_rare_items(counts):
        return Interval(0.0, 1.0)
    b = _known_multiple(check_capacity(capacity), prevalence)
    if b is not None:
        return _interval_for_multiple(counts, b, error)
    room = capacity_room(capacity, counts, prevalence)
    return _interval_for_fraction(counts, float(room) / counts.items, error)


class Counts(NamedTuple):
    """Numbers (or weights) of items, rare items, flags, and rare items among the flags.

    Rare items count with their values and flags with their efforts, where there are any;
    `n_rare` is then the number of rare items themselves.
    """

    items: float
    rare: float
    flagged: float
    found: float
    n_rare: float | None = None


def _count_flags(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    rare_label: Any,
    sample_weight: ArrayLike | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
) -> Counts:
    """Count items, rare items, items predicted `rare_label`, and rare items among the latter."""
    is_rare, flagged = _rare_and_flagged(y_true, y_pred, rare_label, sample_weight)
    n = is_rare.size
    weight = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight)
    value, effort = check_values(values, n), check_efforts(efforts, n)
    gain = weight if value is None else weight * value
    return Counts(
        items=float(weight.sum()),
        rare=float(gain[is_rare].sum()),
        flagged=float((weight if effort is None else weight * effort)[flagged].sum()),
        found=float(gain[is_rare & flagged].sum()),
        n_rare=float(weight[is_rare].sum()),
    )


def _rare_and_flagged(
    y_true: ArrayLike, y_pred: ArrayLike, rare_label: Any, sample_weight: ArrayLike | None = None
) -> tuple[Mask, Mask]:
    """Return where the rare items are, and where the flags are."""
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    check_same_length(y_true=y_true, y_pred=y_pred, sample_weight=sample_weight)
    if y_true.ndim != 1 or y_pred.ndim != 1:
        raise ValueError(
            f"Labels must be one-dimensional; got shapes {y_true.shape} and {y_pred.shape}."
        )
    if y_true.size == 0:
        raise ValueError("At least one item is needed; got none.")
    if rare_label is None:
        rare_label = _rarest_of(y_true, y_pred)
    return y_true == rare_label, _as_flags(y_true, y_pred, rare_label)


def _as_flags(y_true: Any, y_pred: Any, rare_label: Any) -> Mask:
    """Return predictions as flags: labels that equal the rare one, or a mask as it is."""
    if y_pred.dtype == bool and y_true.dtype != bool:
        return y_pred
    if y_pred.dtype.kind == "f" and np.any(y_pred != np.floor(y_pred)):
        raise ValueError(
            "y_pred must hold predicted labels or flags; got fractions, as scores are. Turn scores "
            "into flags with select or a CapacityClassifier, or pass them to capacity_curve."
        )
    if (y_pred.dtype.kind in "biuf") != (y_true.dtype.kind in "biuf"):
        raise ValueError(
            f"y_pred has dtype {y_pred.dtype} and y_true {y_true.dtype}; no prediction can equal a "
            "true label. Pass labels of the same kind, or a boolean mask."
        )
    return y_pred == rare_label


def _rarest_of(y_true: Any, y_pred: Any) -> Any:
    """Return the rarest true label; if all true labels agree, the one that is only predicted."""
    if np.unique(y_true).size > 1:
        return rarest_label(y_true)
    only_predicted = np.setdiff1d(y_pred, y_true)
    return only_predicted[0] if only_predicted.size == 1 else rarest_label(y_true)


def capacity_room(capacity: Capacity, counts: Counts, prevalence: Any = None) -> Fraction:
    """Return the exact number (or weight, or effort) of these items that can be followed up."""
    items = Fraction(counts.items)
    if check_capacity(capacity).kind == "effort":
        return exact(capacity.value) if capacity.per is None else capacity.max_effort(1) * items
    if capacity.kind == "count" and capacity.per is None:
        return min(Fraction(int(capacity.value)), items)
    n_rare = Fraction(counts.rare if counts.n_rare is None else counts.n_rare)
    share = EstimatedShare(n_rare / items) if prevalence is None else prevalence
    return capacity.as_ratio(share) * items


def has_rare_items(counts: Counts) -> bool:
    """Return whether there is anything to detect, and warn if not."""
    if counts.rare == 0:
        what = "of any value" if counts.n_rare else "in y_true"
        warn_user(f"Detection is undefined without a rare item {what}.", UndefinedMetricWarning)
    return counts.rare > 0


def _known_multiple(capacity: Capacity, prevalence: Any) -> float | None:
    if capacity.kind == "multiple":
        return float(capacity.value)
    is_rate = not (capacity.kind == "count" and capacity.per is None)
    if prevalence is not None and is_rate and check_prevalence(prevalence) > 0:
        return float(capacity.as_ratio() / check_prevalence(prevalence))
    return None


def _interval_for_multiple(counts: Counts, b: float, error: float) -> Interval:
    _, rare, flagged, found, _ = counts
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
    items, rare, flagged, found, _ = counts
    most_flagged = clopper_pearson_upper(flagged, items, error=error / 4)
    least_flagged = clopper_pearson_lower(flagged, items, error=error / 4)
    low = clopper_pearson_lower(found, rare, error=error / 4) * min(1.0, c / most_flagged)
    processed = 1.0 if least_flagged <= c else c / least_flagged
    return Interval(
        float(low), float(clopper_pearson_upper(found, rare, error=error / 4) * processed)
    )
