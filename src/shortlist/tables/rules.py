"""What one rule flags and finds: counts, M and intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask, Rows
from .._core.binomial import Interval, proportion_interval
from .._core.labels import rare_share
from ..capacity import Capacity
from ..metrics import CapacityCurve, capacity_curve
from ..metrics.adjusted import adjusted_detection_of_counts
from .model import RuleResult, TableModel


def curve_of(is_rare: Mask, order: Rows) -> CapacityCurve:
    """Return the capacity curve of a ranking, in which ties are broken already."""
    return capacity_curve(is_rare[order], -np.arange(order.size, dtype=np.float64), rare_label=True)


def interval_of_flags(curve: CapacityCurve, n_flagged: int, capacity: Capacity) -> Interval:
    """Return the interval of the detection when as large a share of new cases is flagged."""
    return curve.interval_at(as_filled(n_flagged, curve.n_rare, capacity))


def as_filled(n_flagged: int, n_rare: int, capacity: Capacity) -> Capacity:
    """Return the capacity that some flags fill, in the unit of another one."""
    if capacity.kind == "multiple" and n_flagged > 0:
        return Capacity.multiple(n_flagged / n_rare)
    return Capacity.count(n_flagged)


def interval_of_rule(is_rare: Mask, order: Rows, flagged: Mask, capacity: Capacity) -> Interval:
    """Return the interval of the detection of any rule, when it flags as large a share.

    What the rule flags comes first in the ranking. Such a ranking is a score, too, for which the
    interval holds.
    """
    flagged_first = order[np.argsort(~flagged[order], kind="stable")]
    return interval_of_flags(curve_of(is_rare, flagged_first), int(flagged.sum()), capacity)


#: A capacity that is never exceeded.
EVERYTHING = Capacity.fraction(1)


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

    Examples
    --------
    Two of four flags are rare, and there is room for four: all flags are followed up.

    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables.rules import measure_rule
    >>> is_rare, flagged = np.arange(100) < 8, np.arange(100) >= 6
    >>> flagged &= np.arange(100) < 10
    >>> result = measure_rule("by hand", is_rare, flagged, Capacity.count(4))
    >>> result.found, result.precision, result.detection
    (2, 0.5, 0.25)
    """
    if efforts is not None:
        whole = measure_rule(rule, is_rare, flagged, EVERYTHING, order=order)
        return within(whole, share_paid(flagged, capacity, efforts))
    counts = (is_rare.size, *(int(each.sum()) for each in (is_rare, flagged, flagged & is_rare)))
    filled = None if order is None else interval_of_rule(is_rare, order, flagged, capacity)
    return rule_of_counts(rule, counts, capacity, filled)


def rule_of_counts(
    rule: str, counts: tuple[int, ...], capacity: Capacity, filled: Interval | None
) -> RuleResult:
    """Measure a rule by the numbers of items, rare items, flags and rare items among these.

    `filled` is the interval of the detection, when as large a share of new rows is flagged.
    """
    names = ("n_items", "n_rare", "n_flagged", "n_found")
    _, n_rare, n_flagged, n_found = counts
    detection, interval = adjusted_detection_of_counts(
        **dict(zip(names, counts, strict=True)), capacity=capacity
    )
    if filled is not None:
        followed_up = detection * n_rare / n_found if n_found else 1.0
        interval = Interval(followed_up * filled.low, followed_up * filled.high)
    precision = n_found / n_flagged if n_flagged else float("nan")
    of_flags = proportion_interval(n_found, n_flagged)
    return RuleResult(rule, n_flagged, n_found, detection, interval, precision, of_flags)


def measure_list(rule: str, is_rare: Mask, order: Rows, capacity: Capacity) -> RuleResult:
    """Count what a list of the highest scores finds, which is as long as the capacity allows.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables.rules import measure_list
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
    """Return what as many randomly chosen rows find on average; this is exact."""
    if efforts is not None:
        share = share_paid(np.ones(is_rare.size, dtype=bool), capacity, efforts)
        capacity = Capacity.fraction(share)
    return random_of(is_rare.size, rare_share(is_rare), int(is_rare.sum()), capacity)


def random_of(n_items: int, share: Any, n_rare: int, capacity: Capacity) -> RuleResult:
    """Return what a random choice of as many rows as the capacity allows finds."""
    n_flagged = capacity.max_flags(n_items, share)
    detection = n_flagged / n_items
    return RuleResult("random", n_flagged, detection * n_rare, detection, None, float(share), None)


# --- a budget of work ---


def share_paid(flagged: Mask, budget: Capacity, efforts: Doubles) -> float:
    """Return which share of the work of flags a budget pays for."""
    work = float(efforts[flagged].sum())
    return min(1.0, float(budget.max_effort(flagged.size)) / work) if work else 1.0


def within(rule: RuleResult, share: float) -> RuleResult:
    """Return what a rule finds if a share of its flags is worked off, in a random order."""
    interval = rule.detection_interval
    if interval is not None:
        interval = Interval(share * interval.low, share * interval.high)
    return replace(rule, detection=share * rule.detection, detection_interval=interval)
