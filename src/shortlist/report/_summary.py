"""Every number of a report, as one plain dict."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import __version__
from .._core.plain_json import to_plain
from ..tables import Reading, TableModel
from ._cases import (
    Cases,
    cut_table,
    neighbours,
    read_cases,
    score_distribution,
    spread_cuts,
)
from ._comparison import compare_rules
from ._drift import measure_drift
from ._promise import judge_promise
from ._words import capacity_in_words

__all__ = ["make_report"]


def make_report(
    model: TableModel, path: Path, *, target: str | None = None, reading: Reading | None = None
) -> dict[str, Any]:
    """Summarise the promise of a model and its results on labelled cases that it has not seen.

    Parameters
    ----------
    model : TableModel
        Fitted; loaded with its twin, if the report shall compare with SMOTE.
    path : Path
        A labelled table.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit.
    reading : Reading, default=None
        What to know about this file; `None` reads it as the table of the fit.

    Returns
    -------
    dict
        Plain JSON: dicts, lists, texts and numbers; NaN and infinities are None.
    """
    target = model.schema.target if target is None else target
    cases = read_cases(model, path, target, reading)
    promise = judge_promise(model, cases.is_rare.size, cases.n_flagged)
    cuts = spread_cuts(cases.is_rare.size, room=promise["room"], n_flagged=cases.n_flagged)
    return to_plain(
        {
            "format": "shortlist report",
            "version": 1,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "shortlist_version": __version__,
            "data": _data(model, cases, path, target),
            "promise": promise,
            "comparison": compare_rules(model, cases),
            "cuts": cut_table(cases, cuts),
            "cases": neighbours(cases, cuts),
            "scores": score_distribution(
                cases.scores, cases.is_rare, threshold=model.classifier.threshold_
            ),
            "calibration": _calibration(model),
            "drift": measure_drift(model, cases),
            "card": _card(model),
        }
    )


def _data(model: TableModel, cases: Cases, path: Path, target: str) -> dict[str, Any]:
    n_items, n_rare = cases.is_rare.size, int(cases.is_rare.sum())
    return {
        "name": "standard input" if str(path) == "-" else path.name,
        "n_items": n_items,
        "n_rare": n_rare,
        "prevalence": n_rare / n_items,
        "target": target,
        "rare_label": model.schema.rare_label,
        "id": model.schema.id,
        "n_columns": len(model.schema.features),
    }


def _calibration(model: TableModel) -> dict[str, Any]:
    calibration = model.classifier.calibration_
    return {
        "n": calibration.n_calibration,
        "n_above": max(calibration.k, 0),
        "flagged_fraction": calibration.flagged_fraction,
        "interval": calibration.interval,
        "threshold": calibration.value,
        "guarantee": calibration.guarantee,
        "confidence": calibration.confidence,
        "ties": calibration.ties,
        "capacity_fraction": calibration.capacity_fraction,
    }


def _card(model: TableModel) -> dict[str, Any]:
    schema, card = model.schema, model.card
    return {
        "learner": model.learner,
        "capacity": capacity_in_words(model.classifier.capacity),
        "target": schema.target,
        "rare_label": schema.rare_label,
        "id": schema.id,
        "columns": [{"name": each.name, "kind": each.kind} for each in schema.features],
        "fit": None
        if card is None
        else {key: value for key, value in card.to_json().items() if key != "profiles"},
    }
