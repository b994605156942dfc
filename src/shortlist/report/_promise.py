"""What was promised, what came of it, and whether luck can explain the difference."""

from __future__ import annotations

from typing import Any

from scipy.stats import betabinom

from ..tables import TableModel
from ..tables._measure import proportion
from ._words import capacity_in_words, guarantee_in_words, percent

__all__ = ["judge_promise"]

_UNLIKELY = 0.05


def judge_promise(model: TableModel, n_items: int, n_flagged: int) -> dict[str, Any]:
    """Compare the flags on new cases with what the capacity allows."""
    classifier = model.classifier
    calibration = classifier.calibration_
    room = classifier.capacity.max_flags(n_items, classifier.reference_prevalence_)
    as_many, as_few = _chances(n_items, n_flagged, calibration.k, calibration.n_calibration)
    verdict = _verdict(n_flagged, room, as_many, calibration.k)
    rate = proportion(n_flagged, n_items)
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
        "flag_rate_interval": rate,
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
    of n scores follows Beta(k + 1, n - k), and the flags among N cases a beta-binomial law: that
    counts the luck of the calibration as well as that of these cases. (Where k was found by walking
    the labels, for a confident multiple, this holds nearly.)
    """
    if k < 0 or k >= n_calibration:  # nothing or everything is flagged, surely
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
    "chance": "Over the capacity, but no more than chance explains",
    "broken": "The capacity was not kept",
    "silent": "This model flags nothing",
}
_EXPLANATIONS = {
    "kept": "The rule flagged {flagged} of {n} cases. The capacity allows {room}.",
    "chance": (
        "The rule flagged {flagged} of {n} cases, {over} more than the capacity of {room}. If "
        "these cases are like those that set the threshold, as many or more come about with "
        "probability {chance}."
    ),
    "broken": (
        "The rule flagged {flagged} of {n} cases, {over} more than the capacity of {room}. If "
        "these cases were like those that set the threshold, as many or more would have had "
        "probability {chance}. They are probably not: see what has moved below, and set the "
        "threshold anew from recent cases."
    ),
    "silent": (
        "There were too few calibration cases for its guarantee, so it keeps its promise by "
        "flagging none of {n} cases. Fit it on more cases, or with a weaker guarantee."
    ),
}
_FEW = (
    " So few have probability {few} if these cases are like those that set the threshold: the "
    "scores have probably moved, and capacity is left unused."
)
