"""What the policy in use misses, by the outcomes of its probes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..feedback import MissedEstimate
from ..tables import TableModel
from ..tables.reviews import missed_in_table
from ._words import percent

__all__ = ["judge_reviews"]


def judge_reviews(
    model: TableModel, reviews: Path | None, *, period: str | None = None
) -> dict[str, Any] | None:
    """Estimate what is missed from a table of reviews, in all and by period; None without one."""
    if reviews is None:
        return None
    result = missed_in_table(model, reviews, period=period)
    estimate, expected = result.estimate, result.expected_detection
    rows = [*estimate.by_period.items(), ("all", estimate)]
    return {
        "file": reviews.name,
        "in_words": str(estimate),
        "confidence": estimate.confidence,
        "is_enough": estimate.is_enough,
        "has_fallen": result.has_fallen,
        "expected_detection": expected,
        "verdict": _verdict(result.has_fallen, expected, estimate),
        "periods": [{"period": str(period), **_numbers(each)} for period, each in rows],
    }


def _verdict(has_fallen: bool, expected: float | None, estimate: MissedEstimate) -> str:
    if expected is None:
        return "The model has no card to compare with."
    if has_fallen:
        return (
            f"Alarm: the model card says that the list finds {percent(expected)}, and detection "
            "has fallen below that. Fit the model to recent labelled cases."
        )
    if not estimate.is_enough:
        return f"It is too early to say whether the list still finds {percent(expected)}."
    return f"Nothing contradicts the model card, by which the list finds {percent(expected)}."


def _numbers(estimate: MissedEstimate) -> dict[str, Any]:
    return {
        "n_probes": estimate.n_probes,
        "n_hits": estimate.n_hits,
        "n_unknown": estimate.n_unknown,
        "found": estimate.found,
        "missed": estimate.missed,
        "missed_interval": [estimate.missed_low, estimate.missed_high],
        "detection": estimate.detection,
        "detection_interval": [estimate.detection_low, estimate.detection_high],
    }
