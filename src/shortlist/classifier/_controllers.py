"""The controller that goes on from a calibrated rule, one item at a time."""

from __future__ import annotations

from typing import Any

from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..online import BudgetController, Controller, QuantileTracker
from ..thresholds.rules import Rule

__all__ = ["controller_of"]


def controller_of(rule: Rule, capacity: Capacity | None, options: dict[str, Any]) -> Controller:
    """Return a controller for the capacity, or that of the rule, from its calibration scores."""
    if rule.segments is not None:
        raise CapacityError(
            "A controller keeps one capacity, and this classifier has one for each segment. "
            "Make a BudgetController or QuantileTracker for each of them, and pass it the "
            "scores of its segment."
        )
    capacity = check_capacity(rule.capacity if capacity is None else capacity)
    options = {"calibration_scores": rule.calibration_scores, **options}
    if capacity.kind == "effort":
        return _of_work(rule, capacity, options)
    if _has_a_budget(capacity, options):
        return BudgetController(Capacity.count(int(capacity.value)), **_arrivals(capacity, options))
    return QuantileTracker(capacity, **{"prevalence": rule.terms.reference.value, **options})


def _has_a_budget(capacity: Capacity, options: dict[str, Any]) -> bool:
    return capacity.kind in ("count", "effort") and (capacity.per is None or "period" in options)


def _arrivals(capacity: Capacity, options: dict[str, Any]) -> dict[str, Any]:
    return options if capacity.per is None else {"expected_arrivals": capacity.per, **options}


def _of_work(rule: Rule, capacity: Capacity, options: dict[str, Any]) -> Controller:
    """Return a controller of work, which takes value * probability / effort as scores."""
    calibration, (sample, *_) = rule.calibrations[0], rule.samples
    if sample.efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work, and the classifier was fitted without efforts. "
            "Fit with efforts=..., or make a BudgetController yourself."
        )
    flagged = calibration.flag_with_keys(sample.scores, sample.keys_of)
    usual = sample.efforts[flagged] if flagged.any() else sample.efforts
    options = {"expected_effort": float(usual.mean()), **options}
    if _has_a_budget(capacity, options):
        return BudgetController(Capacity.effort(capacity.value), **_arrivals(capacity, options))
    return QuantileTracker(capacity, **{"max_effort": calibration.max_effort, **options})
