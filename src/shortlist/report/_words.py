"""Shares, capacities and guarantees in words."""

from __future__ import annotations

from .._core import formatting
from .._core.formatting import number
from ..tables import TableModel
from ..thresholds.promise import capacity_in_words, guarantee_in_words, guarantee_of


def percent(share: float | None) -> str:
    """Write a share as everywhere, with a space where no line ends."""
    return unbroken(formatting.percent(share))


def unbroken(text: str) -> str:
    """Return a text with shares that no line ends within."""
    return text.replace(" %", "\u00a0%")


def short(text: str, length: int = 30) -> str:
    """Cut a long text short; in a sentence, for instance, of a name that the card has whole."""
    return text if len(text) <= length else text[: length - 1] + "…"


def model_capacity(model: TableModel) -> str:
    """Describe how many cases can be followed up, or how much work may be spent."""
    return capacity_in_words(model.classifier.capacity, unit=model.unit)


def model_guarantee(model: TableModel) -> str:
    """Describe the guarantee of a model in two sentences."""
    classifier, capacity = model.classifier, model.classifier.capacity
    limit = f"{unbroken(formatting.stated_percent(classifier.capacity_fraction_))} of all cases"
    if capacity.kind == "effort":
        limit = model_capacity(model)
    elif guarantee_of(classifier.guarantee).of_batches:
        limit = f"{number(capacity.value)} flags"
    words = guarantee_in_words(
        classifier.guarantee,
        limit,
        confidence=classifier.confidence,
        n_batches=classifier.n_batches,
        of_work=capacity.kind == "effort",
    )
    words = words[0].upper() + words[1:]
    if guarantee_of(classifier.guarantee).of_sample:
        return words
    return f"{words} This holds for any model if new cases are like the calibration cases."
