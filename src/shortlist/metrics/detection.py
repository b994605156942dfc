"""The adjusted detection rate M: the rare items found within the capacity, and an interval."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.intervals import Interval, proportion_interval
from .._core.labels import EstimatedShare, rarest_label, without_gaps
from .._core.ranking import in_order_of_worth, lift
from .._core.validation import (
    check_confidence,
    check_same_length,
    check_sample_weight,
    warn_user,
)
from .._core.work import check_efforts, check_values
from ..capacity import Capacity, check_capacity, check_efforts_suit, check_prevalence, exact
from ..exceptions import CapacityError


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
    is_rare, flagged = _rare_and_flagged(y_true, y_pred, rare_label, sample_weight)
    check_efforts_suit(check_capacity(capacity), check_efforts(efforts, is_rare.size))
    counts = Items.of(is_rare, values, efforts, sample_weight).counts(flagged)
    return _score_of(counts, capacity, prevalence)


def _score_of(counts: Counts, capacity: Capacity, prevalence: Any) -> float:
    if counts.is_empty:
        return 0.0
    sensitivity = counts.found / counts.rare
    room = room_in(capacity, counts, prevalence)
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
) -> Interval:
    r"""Return an exact confidence interval for the adjusted detection rate, from a test sample.

    It combines bounds for binomial proportions, without a bootstrap, and holds for any sample size.
    The items must be an independent sample that neither the model nor the threshold has seen.

    Parameters
    ----------
    y_true, y_pred, capacity, rare_label, prevalence
        As for :func:`adjusted_detection_score`. Sample weights, values and efforts are not
        supported: exact bounds are known for counts only.
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
    is_rare, flagged = _rare_and_flagged(y_true, y_pred, rare_label)
    counts = Items.of(is_rare).counts(flagged)
    if counts.is_empty:
        return Interval(0.0, 1.0)
    return _interval_of(counts, capacity, prevalence, 1 - check_confidence(confidence))


def adjusted_detection_of_counts(
    n_items: int, n_rare: int, n_flagged: int, n_found: int, *, capacity: Capacity
) -> tuple[float, Interval]:
    """Return the adjusted detection rate and its interval at 95 %, from four counts."""
    counts = Counts(n_items, n_rare, n_flagged, n_found, n_rare)
    return _score_of(counts, capacity, None), _interval_of(counts, capacity, None, 1 - 0.95)


def _interval_of(counts: Counts, capacity: Capacity, prevalence: Any, error: float) -> Interval:
    if check_capacity(capacity).kind == "effort":
        raise CapacityError(
            f"{capacity!r} is a budget of work, for which no exact interval is known. Use a "
            "capacity that limits the number of flags, such as Capacity.fraction(0.02)."
        )
    if counts.rare == 0:
        return Interval(0.0, 1.0)
    b = _known_multiple(capacity, prevalence)
    if b is not None:
        return _interval_for_multiple(counts, b, error)
    # Each of the four ends may fail with a quarter of the error.
    found = proportion_interval(counts.found, counts.rare, error=error / 2)
    spent = proportion_interval(counts.flagged, counts.items, error=error / 2)
    allowed = float(room_in(capacity, counts, prevalence)) / counts.items
    least = 1.0 if spent.high <= allowed else allowed / spent.high
    most = 1.0 if spent.low <= allowed else allowed / spent.low
    return Interval(found.low * least, found.high * most)


def _rare_and_flagged(
    y_true: ArrayLike, y_pred: ArrayLike, rare_label: Any, sample_weight: ArrayLike | None = None
) -> tuple[Mask, Mask]:
    """Return where the rare items are, and where the flags are."""
    y_true, y_pred = without_gaps(y_true), np.asarray(y_pred)
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
    are_scores = y_pred.dtype.kind == "f" and np.any(y_pred != np.floor(y_pred))
    if are_scores or (y_pred.dtype.kind in "biuf") != (y_true.dtype.kind in "biuf"):
        raise ValueError(
            f"y_pred must hold labels as y_true does ({y_true.dtype}), or a boolean mask; got "
            f"{'fractions, as scores are' if are_scores else y_pred.dtype}. Turn scores into flags "
            "with select or a CapacityClassifier, or pass them to capacity_curve."
        )
    return y_pred == rare_label


def _rarest_of(y_true: Any, y_pred: Any) -> Any:
    """Return the rarest true label; if all true labels agree, the one that is only predicted."""
    if np.unique(y_true).size > 1:
        return rarest_label(y_true)
    only_predicted = np.setdiff1d(y_pred, y_true)
    return only_predicted[0] if only_predicted.size == 1 else rarest_label(y_true)


def _known_multiple(capacity: Capacity, prevalence: Any) -> float | None:
    if capacity.kind == "multiple":
        return float(capacity.value)
    is_rate = not (capacity.kind == "count" and capacity.per is None)
    if prevalence is not None and is_rate and check_prevalence(prevalence) > 0:
        return float(capacity.as_ratio() / check_prevalence(prevalence))
    return None


def _interval_for_multiple(counts: Counts, b: float, error: float) -> Interval:
    def ends(error: float) -> tuple[Interval, Interval]:
        sensitivity = proportion_interval(counts.found, counts.rare, error=error)
        return sensitivity, proportion_interval(counts.found, counts.flagged, error=error)

    (low, low_precision), (high, high_precision) = ends(error), ends(error / 2)
    return Interval(min(low.low, b * low_precision.low), min(high.high, b * high_precision.high))


# --- what items count for: their numbers or weights, values and efforts ---


class Counts(NamedTuple):
    """Numbers (or weights) of items, rare items, flags, and rare items among the flags.

    Rare items count with their values and flags with their efforts, where there are any;
    `n_rare` is the number of rare items themselves.
    """

    items: float
    rare: float
    flagged: float
    found: float
    n_rare: float

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to detect; warns if so."""
        if self.rare == 0:
            what = "of any value" if self.n_rare else "in y_true"
            warn_user(f"Detection is undefined without a rare item {what}.", UndefinedMetricWarning)
        return self.rare == 0


class Items(NamedTuple):
    """The weight of items, what is found with each, and what it takes to look at each."""

    is_rare: Mask
    weight: Doubles
    gain: Doubles
    cost: Doubles

    @classmethod
    def of(
        cls,
        is_rare: Mask,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Items:
        """Check the numbers of items, and multiply them."""
        n = is_rare.size
        weight = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight)
        value, effort = check_values(values, n), check_efforts(efforts, n)
        gain = is_rare * (weight if value is None else weight * value)
        return cls(is_rare, weight, gain, weight if effort is None else weight * effort)

    def counts(self, flagged: Mask) -> Counts:
        """Return what some flags take and find."""
        return Counts(
            items=float(self.weight.sum()),
            rare=float(self.gain[self.is_rare].sum()),
            flagged=float(self.cost[flagged].sum()),
            found=float(self.gain[self.is_rare & flagged].sum()),
            n_rare=float(self.weight[self.is_rare].sum()),
        )

    def down_to(self, order: Rows, cuts: Rows) -> tuple[Doubles, Doubles]:
        """Return what it takes to look at the items before each cut of an order, and the finds."""
        spent, found = (
            np.concatenate([[0.0], np.cumsum(numbers[order])])[cuts]
            for numbers in (self.cost, self.gain)
        )
        return spent, found


def ranked_by(scores: Floats, values: Doubles | None, efforts: Doubles | None) -> Floats:
    """Return what items are ranked by: value * probability / effort, or else the scores."""
    ratios, are_products = in_order_of_worth(scores, values, efforts)
    return lift(ratios) if are_products else ratios


def room_in(capacity: Capacity, counts: Counts, prevalence: Any = None) -> Fraction:
    """Return the exact number (or weight, or effort) of these items that can be followed up."""
    items = Fraction(counts.items)
    if check_capacity(capacity).kind == "effort":
        return exact(capacity.value) if capacity.per is None else capacity.max_effort(1) * items
    if capacity.kind == "count" and capacity.per is None:
        return min(Fraction(int(capacity.value)), items)
    share = EstimatedShare(Fraction(counts.n_rare) / items) if prevalence is None else prevalence
    return capacity.as_ratio(share) * items
