"""Every number of a report, as one plain dict."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._core.arrays import Rows
from .._core.files import to_plain
from ..tables import ReadOptions, TableModel
from ..tables.drift import TableCheck, check_rows
from ..tables.monitor import DriftMonitor
from ..tables.read import table_at
from ..tables.reasons import reasons_for, value_in_words
from ._cases import Cases, read_cases, short
from ._found import (
    by_segment,
    compare_rules,
    cut_table,
    judge_reviews,
    spread_cuts,
    value_found,
)
from ._promise import judge_promise


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
