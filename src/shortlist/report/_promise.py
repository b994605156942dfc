"""Whether the promise was kept, and whether chance explains a difference."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Doubles
from .._core.formatting import number, percent
from .._core.intervals import Interval, total_lower
from ..tables import TableModel
from ..tables.learned_rows import SeenRows
from ..tables.monitor import chances_of_flags, law_of_flags
from ..thresholds import CalibratedThreshold
from ..thresholds.promise import capacity_in_words, flags_in_words

_UNLIKELY = 0.05


def expected_flags(calibrations: list[CalibratedThreshold], n_items: int) -> Interval | None:
    """Return a range that holds the number of flags with a probability of 95 % at least.

    None if the number of flags is certain.
    """
    law = law_of_flags(calibrations, n_items)
    return None if law is None else Interval(*map(int, law.interval(1 - _UNLIKELY)))


def judge_promise(
    model: TableModel,
    n_items: int,
    n_flagged: int,
    *,
    room: int,
    seen: SeenRows | None = None,
    work: Doubles | None = None,
) -> dict[str, Any]:
    """Compare the number of flags on new cases, or their work, with the capacity.

    `room` is how many the capacity allows. `seen` tells how many of the cases the model was fitted
    on; None if that is not known. If there are more of them than chance explains, there is no
    verdict. For a budget, `work` is what the flag of each case takes, and 0 without a flag.
    """
    classifier = model.classifier
    as_many, as_few = chances_of_flags(classifier.calibrations_, n_items, n_flagged)
    said = f"The rule flagged {n_flagged:,} of {n_items:,} cases"
    if all(each.k < 0 and each.share == 0 for each in classifier.calibrations_):
        verdict, explanation = "silent", f"{said}. {_SILENT}"
    elif work is None:
        verdict, explanation = _judge_flags(n_flagged, room, as_many, as_few)
        explanation = f"{said}. The capacity allows {room:,}.{explanation}"
    else:
        verdict, explanation = _judge_work(model, work)
        explanation = f"{said}, {explanation}"
    if seen is not None and seen.in_words is not None:
        if seen.is_surprising:
            verdict, explanation = "seen", f"{seen.in_words} {explanation}"
        else:
            explanation += f" {seen.in_words}"
    allowed = room if work is None else float(classifier.capacity.max_effort(n_items))
    return {
        "capacity": capacity_in_words(classifier.capacity, unit=model.unit),
        "capacity_fraction": classifier.capacity_fraction_,
        "unit": classifier.capacity.kind,
        "room": room,
        "room_in_words": number(allowed) + ("" if work is None else f" {model.unit}"),
        "allowed": allowed,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "in_words": guarantee_in_words(model),
        "n_items": n_items,
        "n_flagged": n_flagged,
        "seen": seen,
        "flag_rate": n_flagged / n_items,
        "expected_flags": expected_flags(classifier.calibrations_, n_items),
        "chance_of_as_many": as_many,
        "chance_of_as_few": as_few,
        "verdict": verdict,
        "headline": _HEADLINES[verdict],
        "explanation": explanation,
    }


def guarantee_in_words(model: TableModel) -> str:
    """Describe the guarantee of a model in two sentences."""
    rule = model.classifier.rule_
    words = flags_in_words(rule, cases="cases", unit=model.unit)
    words = words[0].upper() + words[1:]
    if rule.terms.kind.of_sample:
        return words
    return f"{words} This holds for any model if new cases are like the calibration cases."


def _judge_flags(n_flagged: int, room: int, as_many: float, as_few: float) -> tuple[str, str]:
    if n_flagged > room:
        explanation = f" {_ALIKE} many flags or more would be {percent(as_many)}."
        if as_many >= _UNLIKELY:
            return "chance", explanation
        return "broken", f"{explanation} {_CHANGED}"
    if as_few >= _UNLIKELY:
        return "kept", ""
    return "kept", (
        f" {_ALIKE} few flags or fewer would be {percent(as_few)}. The scores have probably "
        "shifted, and capacity is left unused."
    )


def _judge_work(model: TableModel, work: Doubles) -> tuple[str, str]:
    """Compare the work of the flags with a budget.

    If it is exceeded, bets against "such flags take no more than the budget on average" tell
    whether chance can explain that. They hold for every law of the work, because it is bounded.
    """
    spent = float(work.sum())
    allowed = float(model.classifier.capacity.max_effort(work.size))
    said = f"which take {number(spent)} {model.unit}. The capacity allows {number(allowed)}."
    if spent <= allowed:
        return "kept", said
    most = float(model.classifier.max_effort or work.max())
    surely = most * total_lower(np.minimum(work[work > 0] / most, 1.0), error=_UNLIKELY)
    if surely <= allowed:
        return "chance", f"{said} The difference is no more than chance can explain."
    return "broken", f"{said} {_ALIKE} much or more would be below {percent(_UNLIKELY)}. {_CHANGED}"


_HEADLINES = {
    "kept": "The capacity was kept",
    "chance": "Over the capacity, but chance can explain it",
    "broken": "The capacity was not kept",
    "silent": "This model flags nothing",
    "seen": "No verdict: the model has seen these cases before",
}
_ALIKE = "If these cases were like the calibration cases, the probability of so"
_CHANGED = (
    "They have probably changed: see the section on drift, and recalibrate the threshold on recent "
    "cases."
)
_SILENT = (
    "There were too few calibration cases for the guarantee, so the rule keeps its promise by "
    "flagging none. Fit the model on more cases, or with a weaker guarantee."
)
