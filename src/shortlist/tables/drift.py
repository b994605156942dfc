"""Drift since calibration: which columns and scores have shifted, and how sure that is.

Tests are valid for any counts. They need no labels, so that reports and checks can share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import hypergeom, ks_2samp

from .._core.arrays import Floats
from .._core.formatting import percent
from .._core.ranking import lift
from ._source import ReadOptions
from .cases import CaseReader
from .columns import date_text
from .learned_rows import ColumnProfile
from .model import TableModel
from .monitor import SIGNIFICANT, DriftMonitor, Finding

# The usual limits of the index for a moderate and for a large shift.
_MODERATE, _LARGE = 0.1, 0.25
_NOTABLE = ("moderate", "large")
_PSEUDO_COUNT = 0.5
# Up to this number of scores, the law of the largest distance is computed exactly.
_MOST_EXACT = 10_000


# --- shifts ---


def stability_index(before: Any, after: Any) -> float:
    """Return the population stability index of two rows of counts.

    This is the sum of (q - p) log(q / p) over the bins. Half a case is added to each count, because
    an empty bin would make the sum infinite. Without a shift it is about (bins - 1)(1/n + 1/m).
    """
    p, q = (np.asarray(counts, dtype=np.float64) + _PSEUDO_COUNT for counts in (before, after))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((q - p) * np.log(q / p)))


def compare_scores(before: Floats, after: Floats) -> dict[str, Any]:
    """Compare scores with those of the calibration, by the largest distance of their laws."""
    # On one grid, in the precision of calibration: otherwise ties would be broken one way.
    after = lift(np.asarray(after, dtype=before.dtype)).astype(np.float64)
    before = lift(before).astype(np.float64)
    profile = ColumnProfile.from_values("score", "numeric", before)
    method = "exact" if max(before.size, after.size) <= _MOST_EXACT else "asymp"
    test = ks_2samp(before, after, method=method)  # with ties the p-value is too large, if anything
    return {
        **_compared(profile, profile.count(after)),
        "ks": float(test.statistic),
        "p_value": float(test.pvalue),
    }


def compare_columns(
    profiles: tuple[ColumnProfile, ...], counts: list[tuple[int, ...]]
) -> list[dict[str, Any]]:
    """Compare the columns of other rows with those of the calibration rows."""
    return [
        {**_compared(profile, after), "p_value": homogeneity(profile.counts, after)}
        for profile, after in zip(profiles, counts, strict=True)
    ]


def _compared(profile: ColumnProfile, after: tuple[int, ...]) -> dict[str, Any]:
    before = profile.counts
    return {
        "name": profile.name,
        "kind": profile.kind,
        "bins": list(profile.bins),
        "before": list(before),
        "after": list(after),
        "missing_before": before[-1] / sum(before),
        "missing_after": after[-1] / sum(after),
        "psi": stability_index(before, after),
    }


def homogeneity(before: Any, after: Any) -> float:
    """Return a p-value for the hypothesis that both counts have the same distribution.

    If they have, and the bins were chosen without these rows, every division of all rows into as
    many before and after is equally likely. The smallest exact p-value of a single bin counts,
    times the number of bins. It is valid for any counts: at most x with probability at most x.
    """
    counts = np.array([before, after])
    counts = counts[:, counts.sum(axis=0) > 0]
    totals, n_after = counts.sum(axis=0), int(counts[1].sum())
    if totals.size < 2 or not 0 < n_after < totals.sum():
        return 1.0
    law = (int(totals.sum()), totals, n_after)
    one_sided = np.minimum(hypergeom.cdf(counts[1], *law), hypergeom.sf(counts[1] - 1, *law))
    return float(min(1.0, 2 * totals.size * one_sided.min()))


# --- verdicts ---


def judge_shifts(compared: list[dict[str, Any]]) -> None:
    """Name the size of each shift that is significant after Holm's correction for many tests."""
    adjusted = _holm([each["p_value"] for each in compared])
    for each, p_value in zip(compared, adjusted, strict=True):
        each["adjusted_p_value"] = p_value
        each["shift"] = _size(each["psi"]) if p_value < SIGNIFICANT else "none seen"


def _holm(p_values: list[float]) -> list[float]:
    """Return p-values that are corrected for the number of tests, by Holm's method."""
    order = np.argsort(p_values, kind="stable")
    factors = order.size - np.arange(order.size)
    adjusted = np.empty(order.size)
    adjusted[order] = np.maximum.accumulate(np.minimum(1, factors * np.take(p_values, order)))
    return adjusted.tolist()


def _size(psi: float) -> str:
    return "large" if psi >= _LARGE else "moderate" if psi >= _MODERATE else "slight"


def verdict_on(score: dict[str, Any], columns: list[dict[str, Any]]) -> str:
    """Say in a sentence or two what has shifted."""
    if score["shift"] in _NOTABLE:
        return "The scores have shifted. Recalibrate the threshold on recent cases."
    moved = [each["name"] for each in columns if each["shift"] in _NOTABLE]
    if moved:
        return (
            f"The scores have hardly shifted, but {len(moved)} of {len(columns)} columns have. "
            "Watch these columns."
        )
    if score["shift"] == "slight" or any(each["shift"] == "slight" for each in columns):
        return "There are significant shifts, but only slight ones."
    return "No drift detected since calibration."


def measure_shifts(
    model: TableModel, scores: Floats, counts: list[tuple[int, ...]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Compare scores, and counts of columns, with the calibration; the largest shift first."""
    score = compare_scores(model.classifier.calibration_scores_, scores)
    columns = compare_columns(model.card.profiles, counts)
    judge_shifts([score, *columns])
    return score, sorted(columns, key=lambda column: -column["psi"])


# --- all rows of a table ---


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


def check_table(model: TableModel, path: Any, *, reading: ReadOptions | None = None) -> TableCheck:
    """Compare the rows of a table with the calibration rows of a model; no labels are needed.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path, str or data frame
        A table with the columns that the model needs, of any length.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.

    Returns
    -------
    TableCheck
    """
    read, scores = CaseReader(model, path, reading=reading), []
    for rows in read:
        decided = model.decide(rows)
        read.monitor.add_flags(decided.flagged)
        scores.append(np.asarray(decided.scores))
    return check_rows(read.monitor, np.concatenate(scores))


def check_rows(monitor: DriftMonitor, scores: Floats) -> TableCheck:
    """Compare rows that a monitor has seen, and their scores, with the calibration rows."""
    score, columns = measure_shifts(monitor.model, scores, monitor.counts)
    columns = [{**column, "in_words": _in_words(column)} for column in columns]
    findings = monitor.findings(advice="See which columns have shifted.")
    has_drifted = any(finding.is_serious for finding in findings) or any(
        each["shift"] in _NOTABLE and each["kind"] != "date" for each in (score, *columns)
    )
    return TableCheck(
        monitor.n_items,
        monitor.n_flagged,
        monitor.room,
        *monitor.chances,
        score=score,
        columns=columns,
        findings=findings,
        verdict=_verdict(score, columns, findings),
        has_drifted=has_drifted,
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
    shares = f"{percent(before[place])} before, {percent(after[place])} now"
    return f"{_bin_in_words(column, place)}: {shares}"


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
