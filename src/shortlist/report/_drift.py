"""Drift since calibration: what has shifted, and the bars that show it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.binomial import proportion_interval
from ..tables import TableModel
from ..tables.drift import compare_columns, compare_scores, count_columns, judge_shifts, verdict_on
from ._cases import Cases

__all__ = ["drift_bars", "measure_drift"]

_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001


def measure_drift(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Compare new cases with the calibration cases of a model."""
    score = compare_scores(model.classifier.calibration_scores_, cases.decided_scores)
    card = model.card
    columns = (
        []
        if card is None
        else compare_columns(card.profiles, count_columns(card.profiles, cases.X))
    )
    judge_shifts([score, *columns])
    columns.sort(key=lambda column: -column["psi"])
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
        if card is None or cases.is_rare is None
        else _rates(
            card.n_calibration_rare, card.n_calibration, int(cases.is_rare.sum()), cases.n_items
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


def drift_bars(column: dict[str, Any]) -> dict[str, Any]:
    """Lay out the shares of all bins as pairs of bars, before and after, for one column."""
    shares = {when: np.array(column[when]) / sum(column[when]) for when in ("before", "after")}
    highest = max(*shares["before"], *shares["after"], _LOWEST_BAR)
    return {
        "width": _BIN_WIDTH * len(column["before"]),
        "bars": [
            {
                "when": when,
                "x": _BIN_WIDTH * place + (0 if when == "before" else _BIN_WIDTH * 0.45),
                "y": round(float(_BARS_HEIGHT + 1 - height), 1),
                "height": round(float(height), 1),
            }
            for when in shares
            for place, height in enumerate(_BARS_HEIGHT * shares[when] / highest)
        ],
    }
