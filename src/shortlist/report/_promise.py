"""Whether the promise was kept, whether chance explains a difference, and what has shifted."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.intervals import Interval, mean_lower, proportion_interval
from .._core.written import number
from ..tables import TableModel
from ..tables.drift import measure_shifts, verdict_on
from ..tables.learned_rows import SeenRows
from ..tables.monitor import chances_of_flags, law_of_flags
from ..thresholds import CalibratedThreshold
from ._cases import Cases
from ._words import model_capacity, model_guarantee, percent

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
    of_work: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Compare the number of flags on new cases with the capacity.

    `room` is how many the capacity allows. `seen` tells how many of the cases the model was fitted
    on; None if that is not known. If there are more of them than chance explains, there is no
    verdict. For a budget of work, `of_work` is the verdict about it and its explanation.
    """
    classifier = model.classifier
    calibrations = classifier.calibrations_
    as_many, as_few = chances_of_flags(calibrations, n_items, n_flagged)
    verdict = _verdict(n_flagged, room, as_many, calibrations)
    explanation = _EXPLANATIONS[verdict].format(
        flagged=f"{n_flagged:,}",
        n=f"{n_items:,}",
        room=f"{room:,}",
        over=f"{n_flagged - room:,}",
        chance=percent(as_many),
    )
    if verdict == "kept" and as_few < _UNLIKELY:
        explanation += _FEW.format(few=percent(as_few))
    if of_work is not None and verdict != "silent":
        verdict, explanation = of_work
    if seen is not None and seen.is_surprising:
        verdict = "seen"
    if seen is not None and seen.in_words is not None:
        explanation = f"{seen.in_words} {explanation}"
    return {
        "capacity": model_capacity(model),
        "capacity_fraction": classifier.capacity_fraction_,
        "unit": classifier.capacity.kind,
        "room": room,
        "room_in_words": _room_in_words(model, n_items, room),
        "allowed": float(classifier.capacity.max_effort(n_items)) if of_work else room,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "in_words": model_guarantee(model),
        "n_items": n_items,
        "n_flagged": n_flagged,
        "seen": seen,
        "flag_rate": n_flagged / n_items,
        "expected_flags": expected_flags(calibrations, n_items),
        "chance_of_as_many": as_many,
        "chance_of_as_few": as_few,
        "verdict": verdict,
        "headline": _HEADLINES[verdict],
        "explanation": explanation,
    }


def judge_work(model: TableModel, cases: Cases) -> tuple[str, str] | None:
    """Compare the work of the flags with a budget; return the verdict and why; None without one.

    If it is exceeded, bets against "the mean work is within the budget" tell whether chance can
    explain that. They are exact for every law of the work, because it is bounded.
    """
    classifier = model.classifier
    _, efforts = model.weighed_by(cases.rows)
    if efforts is None or classifier.capacity.kind != "effort":
        return None
    costs = np.where(cases.flagged, efforts, 0.0)
    spent, allowed = float(costs.sum()), float(classifier.capacity.max_effort(cases.n_items))
    said = (
        f"The rule flagged {cases.n_flagged:,} of {cases.n_items:,} cases, which take "
        f"{number(spent)} {model.unit}. The capacity allows {number(allowed)}."
    )
    if spent <= allowed:
        return "kept", said
    most = float(classifier.max_effort or efforts.max())
    surely = most * mean_lower(np.minimum(costs / most, 1.0), error=_UNLIKELY)
    if surely <= allowed / cases.n_items:
        return "chance", f"{said} The difference is no more than chance can explain."
    return "broken", (
        f"{said} If these cases were like the calibration cases, so much more would have a "
        f"probability below {percent(_UNLIKELY)}. They have probably changed: see the section on "
        "drift, and recalibrate the threshold on recent cases."
    )


def _room_in_words(model: TableModel, n_items: int, room: int) -> str:
    capacity = model.classifier.capacity
    if capacity.kind != "effort":
        return number(room)
    return f"{number(float(capacity.max_effort(n_items)))} {model.unit}"


def _verdict(
    n_flagged: int, room: int, as_many: float, calibrations: list[CalibratedThreshold]
) -> str:
    if all(each.k < 0 and each.share == 0 for each in calibrations):
        return "silent"
    if n_flagged <= room:
        return "kept"
    return "chance" if as_many >= _UNLIKELY else "broken"


_HEADLINES = {
    "kept": "The capacity was kept",
    "chance": "Over the capacity, but chance can explain it",
    "broken": "The capacity was not kept",
    "silent": "This model flags nothing",
    "seen": "No verdict: the model has seen these cases before",
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


# --- what has shifted since calibration ---


def measure_drift(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Compare new cases with the calibration cases of a model."""
    card = model.card
    counts = [profile.count(cases.rows.X[profile.name]) for profile in model.card.profiles]
    score, columns = measure_shifts(model, cases.decided_scores, counts)
    n_calibration = model.classifier.calibration_scores_.size
    return {
        "n_calibration": n_calibration,
        "n_items": cases.n_items,
        "score": score,
        "columns": columns,
        "flag_rate": {
            "before": _flagged_in_calibration(model),
            "after": cases.n_flagged / cases.n_items,
        },
        "prevalence": None
        if cases.rows.is_rare is None
        else _rates(
            card.n_calibration_rare,
            card.n_calibration,
            int(cases.rows.is_rare.sum()),
            cases.n_items,
        ),
        "verdict": verdict_on(score, columns),
    }


def _flagged_in_calibration(model: TableModel) -> float:
    """Return the share of the calibration cases above the threshold of their own model."""
    calibrations = model.classifier.calibrations_
    sizes = [each.n_calibration for each in calibrations]
    return float(np.average([each.flagged_fraction for each in calibrations], weights=sizes))


def _rates(n_before: int, all_before: int, n_after: int, all_after: int) -> dict[str, Any]:
    return {
        "before": n_before / all_before,
        "before_interval": proportion_interval(n_before, all_before),
        "after": n_after / all_after,
        "after_interval": proportion_interval(n_after, all_after),
    }
