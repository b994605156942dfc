"""Whether the promise about flags was kept, and whether chance explains a difference."""

from __future__ import annotations

from typing import Any

from scipy.stats import betabinom

from .._core.binomial import proportion_interval
from ..tables import TableModel
from ._words import capacity_in_words, guarantee_in_words, percent

__all__ = ["judge_promise"]

_UNLIKELY = 0.05


def judge_promise(model: TableModel, n_items: int, n_flagged: int) -> dict[str, Any]:
    """Compare the number of flags on new cases with the capacity."""
    classifier = model.classifier
    calibration = classifier.pooled_calibration_
    room = classifier.capacity.max_flags(n_items, classifier.reference_prevalence_)
    as_many, as_few = _chances(n_items, n_flagged, calibration.k, calibration.n_calibration)
    verdict = _verdict(n_flagged, room, as_many, calibration.k)
    return {
        "capacity": capacity_in_words(classifier.capacity),
        "capacity_fraction": classifier.capacity_fraction_,
        "room": room,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "in_words": guarantee_in_words(model),
        "n_items": n_items,
        "n_flagged": n_flagged,
        "flag_rate": n_flagged / n_items,
        "flag_rate_interval": proportion_interval(n_flagged, n_items),
        "chance_of_as_many": as_many,
        "chance_of_as_few": as_few,
        "verdict": verdict,
        "headline": _HEADLINES[verdict],
        "explanation": _EXPLANATIONS[verdict].format(
            flagged=f"{n_flagged:,}",
            n=f"{n_items:,}",
            room=f"{room:,}",
            over=f"{n_flagged - room:,}",
            unused=f"{room - n_flagged:,}",
            chance=percent(as_many),
            few=percent(as_few),
        )
        + (_FEW.format(few=percent(as_few)) if verdict == "kept" and as_few < _UNLIKELY else ""),
    }


def _chances(n_items: int, n_flagged: int, k: int, n_calibration: int) -> tuple[float, float]:
    """Return the chances of as many flags or more, and of as few or fewer.

    If new cases are like calibration cases, the flag rate of a threshold at the (k + 1)-th largest
    of n scores follows Beta(k + 1, n - k), and the number of flags among N cases follows a
    beta-binomial distribution. It covers the randomness of calibration and of the new cases. (For
    a confident multiple, where k depends on the labels, this holds approximately.)
    """
    if k < 0 or k >= n_calibration:  # certainly nothing or everything is flagged
        return 1.0, 1.0
    law = betabinom(n_items, k + 1, n_calibration - k)
    return float(law.sf(n_flagged - 1)), float(law.cdf(n_flagged))


def _verdict(n_flagged: int, room: int, as_many: float, k: int) -> str:
    if k < 0:
        return "silent"
    if n_flagged <= room:
        return "kept"
    return "chance" if as_many >= _UNLIKELY else "broken"


_HEADLINES = {
    "kept": "The capacity was kept",
    "chance": "Over the capacity, but chance can explain it",
    "broken": "The capacity was not kept",
    "silent": "This model flags nothing",
}
_EXPLANATIONS = {
    "kept": "The rule flagged {flagged} of {n} cases. The capacity allows {room}.",
    "chance": (
        "The rule flagged {flagged} of {n} cases, {over} more than the capacity of {room}. If "
        "these cases are like the calibration cases, the probability of so many flags or more is "
        "{chance}."
    ),
    "broken": (
        "The rule flagged {flagged} of {n} cases, {over} more than the capacity of {room}. If "
        "these cases were like the calibration cases, the probability of so many flags or more "
        "would be {chance}. They have probably changed: see the section on drift, and recalibrate "
        "the threshold on recent cases."
    ),
    "silent": (
        "There were too few calibration cases for the guarantee, so the rule keeps its promise by "
        "flagging none of {n} cases. Fit the model on more cases, or with a weaker guarantee."
    ),
}
_FEW = (
    " If these cases are like the calibration cases, the probability of so few flags or fewer is "
    "{few}. The scores have probably shifted, and capacity is left unused."
)
