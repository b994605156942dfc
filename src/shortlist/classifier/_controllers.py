"""The controller that goes on from a calibrated rule, one item at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..thresholds.rules import Rule


def controller_of(rule: Rule, capacity: Capacity | None, options: dict[str, Any]) -> Any:
    """Return a controller for the capacity, or that of the rule, from its calibration scores."""
    from ..online import BudgetController, QuantileTracker  # compiled, and only needed here

    if rule.segments is not None:
        raise CapacityError(
            "A controller keeps one capacity, and this classifier has one for each segment. "
            "Make a BudgetController or QuantileTracker for each of them, and pass it the "
            "scores of its segment."
        )
    if rule.terms.promises_precision:
        raise ValueError(
            f"worth={rule.terms.worth!r} promises a precision, which no controller keeps: its "
            "threshold moves with the cases that come. Decide by the threshold of the classifier "
            "(flag, predict), make lists of batches (select), or leave worth out."
        )
    capacity = check_capacity(rule.capacity if capacity is None else capacity)
    options = {"calibration_scores": rule.calibration_scores, **options}
    if capacity.kind == "effort":
        options = {"expected_effort": _usual_effort(rule, capacity), **options}
    if capacity.kind in ("count", "effort") and "period" in options:
        if capacity.per is not None:
            options = {"expected_arrivals": capacity.per, **options}
        return BudgetController(replace(capacity, per=None), **options)
    if capacity.kind == "effort" or (capacity.kind == "count" and capacity.per is None):
        return BudgetController(capacity, **options)
    return QuantileTracker(capacity, **{"prevalence": rule.terms.reference.value} | options)


def _usual_effort(rule: Rule, capacity: Capacity) -> float:
    """Return the mean work of the calibration items that the rule flags."""
    sample = rule.samples[0]
    if sample.efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work, and the classifier was fitted without efforts. "
            "Fit with efforts=..., or make a BudgetController yourself."
        )
    flagged = rule.calibrations[0].flag_with_keys(sample.scores, sample.keys_of)
    return float((sample.efforts[flagged] if flagged.any() else sample.efforts).mean())
