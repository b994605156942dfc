"""Shares, capacities and guarantees in words."""

from __future__ import annotations

from .._core import formatting
from ..tables import TableModel
from ..thresholds.promise import capacity_in_words, flags_in_words


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
    rule = model.classifier.rule_
    words = unbroken(flags_in_words(rule, cases="cases", unit=model.unit))
    words = words[0].upper() + words[1:]
    if rule.terms.kind.of_sample:
        return words
    return f"{words} This holds for any model if new cases are like the calibration cases."
