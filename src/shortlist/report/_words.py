"""Numbers, capacities and guarantees in words."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ..tables import TableModel
from ..thresholds.words import capacity_in_words, guarantee_in_words


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
    too_many = (
        f"there is room to follow up only {number(room)} of the {number(rule['flagged'])} flags"
    )
    if budget is not None:
        too_many = f"all flags together take more than {budget}"
    return (
        f"{found}, but {too_many}. Followed up in a random order, they find "
        f"{number(rule['detection'] * n_rare)} rare cases on average. So the capacity finds {m} of "
        "the rare cases."
    )


def model_capacity(model: TableModel) -> str:
    """Describe how many cases can be followed up, or how much work may be spent."""
    unit = "units" if model.schema.work is None else model.schema.work.unit
    return capacity_in_words(model.classifier.capacity, unit=unit)


def model_guarantee(model: TableModel) -> str:
    """Describe the guarantee of a model in a few sentences."""
    classifier, capacity = model.classifier, model.classifier.capacity
    of_work, in_batch = capacity.kind == "effort", classifier.guarantee == "next-batch"
    flags = f"{number(capacity.value)} flags" if in_batch else ""
    words = guarantee_in_words(
        classifier.guarantee,
        model_capacity(model) if of_work else flags or _share(classifier),
        confidence=classifier.confidence,
        n_batches=classifier.n_batches,
        of_work=of_work,
    )
    words = words[0].upper() + words[1:]
    if of_work:
        most = "that" if classifier.max_effort is None else number(classifier.max_effort)
        words += f" A case that takes more than {most} is never flagged."
    else:
        unsure = f"{100 - 100 * classifier.confidence:.3g}\u00a0%"
        words += _REMARKS.get(classifier.guarantee, "").format(unsure=unsure)
    if classifier.guarantee == "plug-in":
        return words
    return f"{words} This holds for any model if new cases are like the calibration cases."


def _share(classifier: Any) -> str:
    return f"{percent(classifier.capacity_fraction_)} of all cases"


_REMARKS = {
    "plug-in": " New cases have more flags than that about half of the time.",
    "expected": " On a single day there may be more or fewer.",
    "confident": " Of all thresholds set this way, at most {unsure} flag more in the long run.",
}
