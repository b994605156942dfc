"""Every number of a report, as one plain dict."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._core.arrays import Doubles, Rows
from .._core.files import to_plain
from .._core.formatting import number, percent
from .._core.intervals import Interval, total_lower
from ..capacity import capacity_in_words
from ..tables import ReadOptions, TableModel
from ..tables.drift import TableCheck, check_rows
from ..tables.learned_rows import SeenRows
from ..tables.monitor import DriftMonitor, chances_of_flags, law_of_flags
from ..tables.read import table_at
from ..tables.reasons import reasons_for, value_in_words
from ..thresholds import CalibratedThreshold
from ..thresholds.promise import flags_in_words
from ._found import (
    Cases,
    by_segment,
    compare_rules,
    cut_table,
    judge_reviews,
    read_cases,
    short,
    spread_cuts,
    value_found,
)


def make_report(
    model: TableModel,
    path: Any,
    *,
    target: str | None = None,
    reading: ReadOptions | None = None,
    segment: str | None = None,
    title: str | None = None,
    reviews: Any = None,
    reviews_period: str | None = None,
) -> dict[str, Any]:
    """Summarise the promise of a model and its results on cases that it has not seen.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path, str or data frame
        A table. Without labels, the report has flags, drift and the list, but no detection.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit, if the table has it and it
        is not empty in every row.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    segment : str, default=None
        A column; results are also given for each of its values.
    title : str, default=None
        For the heading of the page.
    reviews, reviews_period : Path, str, default=None
        A table of reviews with probes, as for ``shortlist evaluate --reviews``, and its
        column with periods. The report then says what is missed.

    Returns
    -------
    dict
        Plain JSON: dicts, lists, texts and numbers; NaN and infinities are None. Without labels,
        `comparison`, `cuts` and `money` are None.
    """
    path, reviews = table_at(path), None if reviews is None else table_at(reviews)
    cases = read_cases(model, path, target, reading=reading, segment=segment)
    summary: dict[str, Any] = {
        "format": "shortlist report",
        "version": 2,
        "title": title,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "shortlist_version": __version__,
        "data": _data(model, cases, path),
        "promise": judge_promise(
            model,
            cases.n_items,
            cases.n_flagged,
            room=cases.room(model, model.classifier.reference_prevalence_),
            seen=cases.seen,
            work=cases.work(model),
        ),
        "list": top_of_list(model, cases),
        "groups": None if segment is None else by_segment(cases, segment),
        "calibration": _calibration(model),
        "drift": _drift(model, cases),
        "card": _card(model),
    }
    summary |= _found(model, cases, summary["promise"])
    summary["money"] = value_found(model, cases)
    summary["missed"] = judge_reviews(model, reviews, period=reviews_period)
    return to_plain(summary)


def _data(model: TableModel, cases: Cases, path: Path) -> dict[str, Any]:
    n_rare = None if cases.rows.is_rare is None else int(cases.rows.is_rare.sum())
    return {
        "name": "standard input" if str(path) == "-" else path.name,
        "n_items": cases.n_items,
        "has_labels": cases.rows.is_rare is not None,
        "n_rare": n_rare,
        "prevalence": None if n_rare is None else n_rare / cases.n_items,
        "target": cases.target or model.schema.target,
        "rare_label": model.schema.rare_label,
        "id": model.schema.id,
        "n_columns": len(model.schema.features),
    }


def _calibration(model: TableModel) -> dict[str, Any]:
    found = model.classifier.calibrations_
    sizes = [each.n_calibration for each in found]
    return {
        "n": sum(sizes),
        "thresholds": [each.value for each in found],
        "flagged": float(np.average([each.flagged_fraction for each in found], weights=sizes)),
    }


def _drift(model: TableModel, cases: Cases) -> TableCheck:
    """Compare the cases with those of the calibration, as `check` does."""
    monitor = DriftMonitor(model)
    monitor.add(cases.rows)
    monitor.add_flags(cases.flagged)
    return check_rows(monitor, cases.decided_scores)


def _found(model: TableModel, cases: Cases, promise: dict[str, Any]) -> dict[str, Any]:
    """Return what only labels can tell."""
    if cases.rows.is_rare is None:
        return dict.fromkeys(("comparison", "cuts"))
    cuts = spread_cuts(cases.n_items, room=promise["room"], n_flagged=cases.n_flagged)
    return {
        "comparison": compare_rules(model, cases),
        "cuts": cut_table(cases, cuts, model.flag_capacity),
    }


def _card(model: TableModel) -> dict[str, Any]:
    schema, card = model.schema, model.card
    return {
        "learner": model.learner,
        "target": schema.target,
        "rare_label": schema.rare_label,
        "id": schema.id,
        "columns": [{"name": each.name, "kind": each.in_words} for each in schema.features],
        "fit": {key: value for key, value in to_plain(card).items() if key != "profiles"},
    }


_MOST_CASES = 10
_LONGEST_VALUE = 60


def top_of_list(model: TableModel, cases: Cases) -> list[dict[str, Any]]:
    """Return the most suspicious cases, and what raised the score of each.

    As on a list of `select`, each id takes one place.
    """
    chosen = _once_each(cases)[:_MOST_CASES]
    X, scores = cases.rows.X.iloc[chosen], cases.scores[chosen]
    return [
        {
            "rank": rank,
            "name": cases.name(place),
            "score": score,
            "flagged": bool(cases.flagged[place]),
            "rare": None if cases.rows.is_rare is None else bool(cases.rows.is_rare[place]),
            "reasons": [
                {**vars(each), "value": short(value_in_words(each.value), _LONGEST_VALUE)}
                for each in reasons
            ],
        }
        for rank, (place, score, reasons) in enumerate(
            zip(chosen.tolist(), scores.tolist(), reasons_for(model, X), strict=True), 1
        )
    ]


def _once_each(cases: Cases) -> Rows:
    """Return the first row of each id, the most suspicious first."""
    if cases.rows.ids is None:
        return cases.order
    _, first = np.unique(cases.rows.ids[cases.order].astype(str), return_index=True)
    return cases.order[np.sort(first)]


# --- the promise ---

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
