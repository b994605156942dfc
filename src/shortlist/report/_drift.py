"""Drift since calibration: what has shifted, and the bars that show it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from .._core.arrays import Floats
from .._core.binomial import proportion_interval
from .._core.ranking import lift
from ..tables import ColumnProfile, TableModel
from ._cases import Cases

__all__ = ["drift_bars", "measure_drift", "stability_index"]

# The usual limits of the index for a moderate and for a large shift.
_MODERATE, _LARGE = 0.1, 0.25
_SIGNIFICANT = 0.01
_PSEUDO_COUNT = 0.5
_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001


def measure_drift(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Compare new cases with the calibration cases of a model."""
    score = _scores(model.classifier.calibration_scores_, cases.scores)
    card = model.card
    columns = [] if card is None else _columns(card.profiles, cases.X)
    _judge([score, *columns])
    columns.sort(key=lambda column: -column["psi"])
    calibration = model.classifier.calibration_
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
        "verdict": _overall(score, columns),
    }


def stability_index(before: Any, after: Any) -> float:
    """Return the population stability index of two rows of counts.

    This is the sum of (q - p) log(q / p) over the bins. Half a case is added to each count, because
    an empty bin would make the sum infinite. Without a shift it is about (bins - 1)(1/n + 1/m).
    """
    p, q = (np.asarray(counts, dtype=np.float64) + _PSEUDO_COUNT for counts in (before, after))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((q - p) * np.log(q / p)))


def _scores(before: Floats, after: Floats) -> dict[str, Any]:
    before = np.asarray(before, dtype=np.float64)
    after = np.asarray(lift(after), dtype=np.float64)
    profile = ColumnProfile.from_values("score", "numeric", before)
    test = ks_2samp(before, after, method="asymp")
    return {
        **_compared(profile, after),
        "ks": float(test.statistic),
        "p_value": float(test.pvalue),
    }


def _columns(profiles: tuple[ColumnProfile, ...], X: Any) -> list[dict[str, Any]]:
    return [_compared(profile, X[profile.name]) for profile in profiles]


def _compared(profile: ColumnProfile, values: Any) -> dict[str, Any]:
    before, after = profile.counts, profile.count(values)
    return {
        "name": profile.name,
        "kind": profile.kind,
        "bins": list(profile.bins),
        "before": list(before),
        "after": list(after),
        "missing_before": before[-1] / sum(before),
        "missing_after": after[-1] / sum(after),
        "psi": stability_index(before, after),
        "p_value": _homogeneity(before, after),
    }


def _homogeneity(before: Any, after: Any) -> float:
    """Return the p-value of the chi-squared test that both counts have the same distribution."""
    counts = np.array([before, after])
    counts = counts[:, counts.sum(axis=0) > 0]
    return 1.0 if counts.shape[1] < 2 else float(chi2_contingency(counts).pvalue)


def _judge(compared: list[dict[str, Any]]) -> None:
    """Name the size of each shift that is significant after Holm's correction for many tests."""
    ranked = sorted(compared, key=lambda each: each["p_value"])
    least = 0.0
    for place, each in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - place) * each["p_value"]))
        each["adjusted_p_value"] = least
        each["shift"] = _size(each["psi"]) if least < _SIGNIFICANT else "none seen"


def _size(psi: float) -> str:
    return "large" if psi >= _LARGE else "moderate" if psi >= _MODERATE else "slight"


def _overall(score: dict[str, Any], columns: list[dict[str, Any]]) -> str:
    if score["shift"] in ("moderate", "large"):
        return "The scores have shifted. Recalibrate the threshold on recent cases."
    moved = [each["name"] for each in columns if each["shift"] in ("moderate", "large")]
    if moved:
        return (
            f"The scores have hardly shifted, but {len(moved)} of {len(columns)} columns have. "
            "Watch these columns."
        )
    if score["shift"] == "slight" or any(each["shift"] == "slight" for each in columns):
        return "There are significant shifts, but only slight ones."
    return "No drift detected since calibration."


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
