"""What one rule finds on labelled rows: M, its interval and the precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask, Rows
from .._core.binomial import Interval, proportion_interval
from .._core.labels import rare_share
from ..capacity import Capacity
from ..metrics import adjusted_detection_interval, adjusted_detection_score
from ._intervals import curve_of, interval_of_rule
from ._model import RuleResult, TableModel

__all__ = [
    "default_name",
    "measure_default",
    "measure_list",
    "measure_random",
    "measure_rule",
    "random_of_counts",
    "rule_of_counts",
]


def measure_rule(
    rule: str,
    is_rare: Mask,
    flagged: Mask,
    capacity: Capacity,
    *,
    order: Rows | None = None,
    efforts: Doubles | None = None,
) -> RuleResult:
    """Count what a rule flagged and found.

    Parameters
    ----------
    rule : str
        Name of the rule.
    is_rare, flagged : ndarray of bool
        Which rows are rare, and which the rule flagged.
    capacity : Capacity
        How many rows can be followed up.
    order : ndarray of int, default=None
        Positions of the rows, the most suspicious first.
    efforts : ndarray of float, default=None
        The work of each row, if the capacity is a budget of it.

    Returns
    -------
    RuleResult
        The intervals are for the same rule on new rows: its threshold is fixed. With an `order`,
        that of M is for as large a share of new rows, whatever the threshold is then.

    Examples
    --------
    Two of four flags are rare, and there is room for four: all flags are followed up.

    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables import measure_rule
    >>> is_rare, flagged = np.arange(100) < 8, np.arange(100) >= 6
    >>> flagged &= np.arange(100) < 10
    >>> result = measure_rule("by hand", is_rare, flagged, Capacity.count(4))
    >>> result.found, result.precision, result.detection
    (2, 0.5, 0.25)
    """
    options: dict[str, Any] = {"capacity": capacity, "rare_label": True, "efforts": efforts}
    counts = (is_rare.size, *(int(each.sum()) for each in (is_rare, flagged, flagged & is_rare)))
    detection = adjusted_detection_score(is_rare, flagged, **options)
    if order is not None:
        filled = interval_of_rule(is_rare, order, flagged, capacity)
        return rule_of_counts(rule, counts, detection, filled, is_filled=True)
    interval = adjusted_detection_interval(is_rare, flagged, **options)
    return rule_of_counts(rule, counts, detection, interval)


def rule_of_counts(
    rule: str,
    counts: tuple[int, ...],
    detection: float,
    interval: Interval,
    *,
    is_filled: bool = False,
) -> RuleResult:
    """Describe a rule by the numbers of items, rare items, flags and rare items among these.

    An interval that `is_filled` is that of the share found, when as large a share is flagged.
    """
    _, n_rare, n_flagged, n_found = counts
    if is_filled:
        followed_up = detection * n_rare / n_found if n_found else 1.0
        interval = Interval(followed_up * interval.low, followed_up * interval.high)
    precision = n_found / n_flagged if n_flagged else float("nan")
    of_flags = proportion_interval(n_found, n_flagged)
    return RuleResult(rule, n_flagged, n_found, detection, interval, precision, of_flags)


def measure_list(rule: str, is_rare: Mask, order: Rows, capacity: Capacity) -> RuleResult:
    """Count what a list of the highest scores finds, which is as long as the capacity allows.

    Parameters
    ----------
    rule : str
        Name of the rule.
    is_rare : ndarray of bool
        Which rows are rare.
    order : ndarray of int
        Positions of the rows, the most suspicious first.
    capacity : Capacity
        How many rows can be followed up.

    Returns
    -------
    RuleResult
        Its `detection_interval` is for lists of other rows with the same capacity, whatever the
        threshold is then.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables import measure_list
    >>> is_rare = np.arange(100) < 8
    >>> result = measure_list("a list", is_rare, np.arange(100), Capacity.count(6))
    >>> result.flagged, result.found, result.detection
    (6, 6, 0.75)
    """
    room = capacity.max_flags(is_rare.size, rare_share(is_rare))
    listed = np.zeros(is_rare.size, dtype=bool)
    listed[order[:room]] = True
    curve = curve_of(is_rare, order)
    measured = measure_rule(rule, is_rare, listed, capacity)
    return replace(measured, detection_interval=curve.interval_at(capacity))


def measure_default(model: TableModel, X: Any, is_rare: Mask) -> RuleResult:
    """Count what the learner flags by its own prediction.

    Most learners predict the likelier label. A learner that knows the capacity has its own
    threshold.
    """
    return measure_rule(default_name(model), is_rare, model.predict(X), model.flag_capacity)


def default_name(model: TableModel) -> str:
    """Return the name of the rule that a learner has without calibration."""
    return "its own threshold" if model.knows_capacity else "default threshold"


def measure_random(is_rare: Mask, capacity: Capacity, efforts: Doubles | None = None) -> RuleResult:
    """Return what as many randomly chosen rows find on average; this is exact.

    Parameters
    ----------
    is_rare : ndarray of bool
        Which rows are rare.
    capacity : Capacity
        How many rows can be followed up.
    efforts : ndarray of float, default=None
        The work of each row, if the capacity is a budget of it.

    Returns
    -------
    RuleResult
        Without intervals.
    """
    share = rare_share(is_rare)
    return random_of_counts(is_rare.size, int(is_rare.sum()), share, capacity, efforts)


def random_of_counts(
    n_items: int, n_rare: int, share: Any, capacity: Capacity, efforts: Doubles | None = None
) -> RuleResult:
    if efforts is None:
        n_flagged: float = capacity.max_flags(n_items, share)
    else:
        budget = float(capacity.max_effort(n_items))
        n_flagged = n_items * min(1.0, budget / float(efforts.sum()))
    detection = n_flagged / n_items
    return RuleResult("random", n_flagged, detection * n_rare, detection, None, float(share), None)
