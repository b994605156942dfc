"""Drift since calibration: what has shifted, and the bars that show it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.binomial import proportion_interval
from ..tables import (
    TableModel,
    compare_columns,
    compare_scores,
    count_columns,
    judge_shifts,
    verdict_on,
)
from ._cases import Cases

__all__ = ["drift_bars", "measure_drift"]

_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001


def measure_drift(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Compare new cases with the calibration cases of a model."""
    score = compare_scores(model.classifier.calibration_scores_, cases.scores)
    card = model.card
    columns = (
        []
        if card is None
        else compare_columns(card.profiles, count_columns(card.profiles, cases.X))
    )
    judge_shifts([score, *columns])
    columns.sort(key=lambda column: -column["psi"])
    calibration = model.calibration
    return {
        "n_calibration": calibration.n_calibration,
        "n_items": cases.is_rare.size,
        "score": score,
        "columns": columns,
        "flag_rate": _rates(
            calibration.flagged_fraction, calibration.n_calibration, cases.n_flagged, cases
        ),
        "prevalence": None
        if card is None
        else _rates(
            card.n_calibration_rare / card.n_calibration,
            card.n_calibration,
            int(cases.is_rare.sum()),
            cases,
        ),
        "verdict": verdict_on(score, columns),
    }


def _rates(share: float, n_before: int, n_after: int, cases: Cases) -> dict[str, Any]:
    n_items = cases.is_rare.size
    return {
        "before": share,
        "before_interval": proportion_interval(round(share * n_before), n_before),
        "after": n_after / n_items,
        "after_interval": proportion_interval(n_after, n_items),
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
