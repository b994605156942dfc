"""Numbers, capacities and guarantees in words."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ..tables import TableModel

__all__ = [
    "capacity_in_words",
    "detection_in_words",
    "guarantee_in_words",
    "number",
    "percent",
]


def percent(share: float | None) -> str:
    """Format a share with a suitable number of digits; a dash if there is none."""
    if share is None or share != share:
        return "–"
    if 0 < share < 0.0001:
        return "below 0.01\u00a0%"
    digits = 2 if 0 < share < 0.01 else 0 if share == 1 else 1
    # Halves are rounded up, as in the script of the page, which shows the same numbers.
    exact = Decimal(100 * share).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{exact}\u00a0%"


def number(value: Any) -> str:
    """Format a number for readers; a dash if there is none."""
    if value is None or value != value:
        return "–"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def capacity_in_words(model: TableModel) -> str:
    """Describe how many cases can be followed up, or how much work may be spent."""
    capacity = model.classifier.capacity
    if capacity.kind == "effort":
        unit = "units" if model.schema.work is None else model.schema.work.unit
        return f"{number(float(capacity.value))} {unit} for every {number(capacity.per)} cases"
    if capacity.kind == "count":
        return f"{number(int(capacity.value))} of every {number(capacity.per)} cases"
    if capacity.kind == "fraction":
        return f"{percent(float(capacity.value))} of all cases"
    return f"{number(float(capacity.value))} follow-ups for each rare case"


def detection_in_words(
    rule: dict[str, Any], *, n_rare: int, room: int, budget: str | None = None
) -> str:
    """Say what the adjusted detection score M of a rule means, with its own numbers.

    `budget` is the room for work in words, if work is what is limited.
    """
    found = f"{number(rule['found'])} of {number(n_rare)} rare cases are among the flags"
    m = percent(rule["detection"])
    if not rule["over_capacity"]:
        return (
            f"{found}, and there is room to follow up every flag. So the capacity finds {m} of "
            "the rare cases."
        )
    seen = number(rule["detection"] * n_rare)
    if budget is not None:
        return (
            f"{found}, but all flags together take more than {budget}. Worked off in a random "
            f"order, they find {seen} rare cases on average. So the budget finds {m} of the rare "
            "cases."
        )
    return (
        f"{found}, but there is room to follow up only {number(room)} of the "
        f"{number(rule['flagged'])} flags. Drawn at random, these find {seen} rare cases on "
        f"average. So the capacity finds {m} of the rare cases."
    )


def _about_work(model: TableModel) -> str:
    classifier, amount = model.classifier, capacity_in_words(model)
    sure = f"{100 * classifier.confidence:g}\u00a0%"
    promise = {
        "plug-in": "No promise about new cases. The flags of the calibration cases take at most",
        "expected": "On average over calibrations, the flags of new cases take at most",
        "confident": f"With {sure} confidence, the flags of new cases take in the long run at most",
        "next-batch": f"With {sure} confidence, the flags of the next cases take at most",
        "simultaneous": f"With {sure} confidence, the flags of new cases take at most",
    }[classifier.guarantee]
    most = f"{number(classifier.max_effort)}" if classifier.max_effort is not None else "that"
    return (
        f"{promise} {amount}. This holds for any model if new cases are like the calibration "
        f"cases. A case that takes more than {most} is never flagged."
    )


def guarantee_in_words(model: TableModel) -> str:
    """Describe the guarantee of a model in one or two sentences."""
    classifier = model.classifier
    if classifier.capacity.kind == "effort":
        return _about_work(model)
    share = percent(classifier.capacity_fraction_)
    sure = f"{100 * classifier.confidence:g}\u00a0%"
    unsure = f"{100 - 100 * classifier.confidence:.3g}\u00a0%"
    capacity = classifier.capacity
    return {
        "plug-in": (
            f"No promise about new cases. The threshold flags at most {share} of the calibration "
            "cases; on new cases it flags more than that about half of the time."
        ),
        "expected": (
            f"On average over calibrations, at most {share} of new cases are flagged. On a single "
            "day there may be more or fewer."
        ),
        "confident": (
            f"With {sure} confidence, the long-run share of flagged cases is at most {share}. Of "
            f"all thresholds set this way, at most {unsure} flag more."
        ),
        "next-batch": (
            f"With {sure} confidence, at most {number(int(capacity.value))} of the next "
            f"{number(capacity.per)} cases are flagged."
        ),
    }[classifier.guarantee] + (
        " This holds for any model if new cases are like the calibration cases."
        if classifier.guarantee != "plug-in"
        else ""
    )
