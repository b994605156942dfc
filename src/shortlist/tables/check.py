"""Unlabelled rows against the model card: what has drifted, column by column, in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import TableError
from .drift import compare_columns, compare_scores, judge_shifts, verdict_on
from .model import TableModel
from .monitor import DriftMonitor, Finding, date_text
from .options import ReadOptions

_NOTABLE = ("moderate", "large")


@dataclass(frozen=True)
class TableCheck:
    """How rows differ from those that a model was calibrated on.

    Attributes
    ----------
    n_items, n_flagged, room : int
        Number of rows, of flags, and of flags that the capacity allows.
    chance_of_as_many, chance_of_as_few : float
        Probability of so many flags or more, and of so few or fewer, if nothing has changed.
    score : dict
        The shift of the scores: counts by bin, stability index, p-value and size.
    columns : list of dict
        The same for each column, and `in_words`; the largest shift first.
    findings : list of Finding
        What visibly does not fit the model card, with the remedy.
    verdict : str
        A sentence or two.
    has_drifted : bool
        Whether the scores or a column have shifted moderately or largely, or a finding is serious.
        Dates that are later than those of the calibration do not count.
    """

    n_items: int
    n_flagged: int
    room: int
    chance_of_as_many: float
    chance_of_as_few: float
    score: dict[str, Any]
    columns: list[dict[str, Any]]
    findings: list[Finding]
    verdict: str
    has_drifted: bool


def check_table(model: TableModel, path: Path, *, reading: ReadOptions | None = None) -> TableCheck:
    """Compare the rows of a table with the calibration rows of a model; no labels are needed.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs, of any length.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.

    Returns
    -------
    TableCheck
    """
    monitor, scores = DriftMonitor(model), []
    with model.schema.open(path, reading=reading) as source:
        for rows in model.schema.rows(source):
            if len(rows.X):
                decided = model.decide(rows)
                monitor.add(rows, decided.flagged)
                scores.append(np.asarray(decided.scores))
    if not scores:
        raise TableError(f"{path} has a heading, but no rows. There is nothing to check.")
    score = compare_scores(model.classifier.calibration_scores_, np.concatenate(scores))
    profiles = () if model.card is None else model.card.profiles
    columns = compare_columns(profiles, monitor.counts)
    judge_shifts([score, *columns])
    columns = [{**column, "in_words": _in_words(column)} for column in columns]
    columns.sort(key=lambda column: -column["psi"])
    findings = monitor.findings(advice="See which columns have shifted.")
    shifted = [each for each in (score, *columns) if each["shift"] in _NOTABLE]
    has_drifted = any(finding.is_serious for finding in findings)
    return TableCheck(
        monitor.n_items,
        monitor.n_flagged,
        monitor.room,
        *monitor.chances,
        score=score,
        columns=columns,
        findings=findings,
        verdict=_verdict(score, columns, findings),
        has_drifted=has_drifted or any(each["kind"] != "date" for each in shifted),
    )


def _verdict(score: dict[str, Any], columns: list[dict[str, Any]], findings: list[Finding]) -> str:
    spoiled = [repr(each.column) for each in findings if each.column and each.is_serious]
    if not spoiled:
        return verdict_on(score, columns)
    return (
        f"The table does not fit the model card: see the warnings about {', '.join(spoiled)}. "
        "Correct the table first, and then check again."
    )


def _in_words(column: dict[str, Any]) -> str:
    """Name the bin whose share has changed most."""
    before, after = (np.array(column[when]) / sum(column[when]) for when in ("before", "after"))
    place = int(np.argmax(np.abs(after - before)))
    return f"{_bin_in_words(column, place)}: {before[place]:.1%} before, {after[place]:.1%} now"


def _bin_in_words(column: dict[str, Any], place: int) -> str:
    bins = column["bins"]
    if place == len(column["before"]) - 1:
        return "missing"
    if column["kind"] == "categorical":
        return repr(bins[place]) if place < len(bins) else "other categories"
    if column["kind"] == "boolean":
        return "true" if place == len(bins) and bins else "false"
    show = date_text if column["kind"] == "date" else "{:.6g}".format
    if not bins:
        return "all values"
    if place == 0:
        return f"up to {show(bins[0])}"
    return f"above {show(bins[place - 1])}" + (
        f", up to {show(bins[place])}" if place < len(bins) else ""
    )
