"""Numbers, capacities and guarantees in words."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ..tables import TableModel
from ..thresholds.promise import capacity_in_words, guarantee_in_words


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


def short(text: str, length: int = 30) -> str:
    """Cut a long text short; in a sentence, for instance, of a name that the card has whole."""
    return text if len(text) <= length else text[: length - 1] + "…"


def model_capacity(model: TableModel) -> str:
    """Describe how many cases can be followed up, or how much work may be spent."""
    unit = "units" if model.schema.work is None else model.schema.work.unit
    return capacity_in_words(model.classifier.capacity, unit=unit)


def model_guarantee(model: TableModel) -> str:
    """Describe the guarantee of a model in two sentences."""
    classifier, capacity = model.classifier, model.classifier.capacity
    limit = f"{percent(classifier.capacity_fraction_)} of all cases"
    if capacity.kind == "effort":
        limit = model_capacity(model)
    elif classifier.guarantee == "next-batch":
        limit = f"{number(capacity.value)} flags"
    words = guarantee_in_words(
        classifier.guarantee,
        limit,
        confidence=classifier.confidence,
        n_batches=classifier.n_batches,
        of_work=capacity.kind == "effort",
    )
    words = words[0].upper() + words[1:]
    if classifier.guarantee == "plug-in":
        return words
    return f"{words} This holds for any model if new cases are like the calibration cases."
