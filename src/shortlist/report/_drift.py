"""Whether cases are still like those that set the threshold: scores, labels and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, ks_2samp

from .._core.steady import lift
from ..tables import ColumnProfile, Feature, TableModel, TableSchema
from ..tables._measure import proportion
from ..tables._profile import column_profiles
from ._cases import Cases

__all__ = ["measure_drift", "stability_index"]

#: From here on a shift is called moderate, and large, as is usual for this index.
MODERATE, LARGE = 0.1, 0.25
_SURE = 0.01
_PSEUDO_COUNT = 0.5


def measure_drift(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Compare new cases with the calibration cases of a model."""
    sample = model.classifier.rule_.samples[0]
    score = _scores(np.asarray(sample.scores, dtype=np.float64), cases.scores)
    columns = [] if model.card is None else _columns(model.card.profiles, cases.X)
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
        if sample.is_rare is None
        else _rates(
            float(sample.is_rare.mean()),
            sample.is_rare.size,
            int(cases.is_rare.sum()),
            cases,
        ),
        "verdict": _overall(score, columns),
    }


def stability_index(before: Any, after: Any) -> float:
    """Return the population stability index of two rows of counts.

    The sum of (q - p) log(q / p) over the bins, half a case being added to each count, so that an
    empty bin does not make it infinite. Without any shift it is about (bins - 1)(1/n + 1/m).
    """
    p, q = (np.asarray(counts, dtype=np.float64) + _PSEUDO_COUNT for counts in (before, after))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((q - p) * np.log(q / p)))


def _scores(before: NDArray[np.float64], after: NDArray[np.float64]) -> dict[str, Any]:
    after = np.asarray(lift(after), dtype=np.float64)
    schema = TableSchema((Feature("score", "numeric"),), target="", rare_label="")
    (profile,) = column_profiles({"score": before}, schema)
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
    """Return the p-value of the chi-squared test that both counts come from one law."""
    counts = np.array([before, after])
    counts = counts[:, counts.sum(axis=0) > 0]
    return 1.0 if counts.shape[1] < 2 else float(chi2_contingency(counts).pvalue)


def _judge(compared: list[dict[str, Any]]) -> None:
    """Call a shift by its size once it is sure, corrected for the number of looks (Holm)."""
    ranked = sorted(compared, key=lambda each: each["p_value"])
    least = 0.0
    for place, each in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - place) * each["p_value"]))
        each["adjusted_p_value"] = least
        each["shift"] = _size(each["psi"]) if least < _SURE else "none seen"


def _size(psi: float) -> str:
    return "large" if psi >= LARGE else "moderate" if psi >= MODERATE else "slight"


def _overall(score: dict[str, Any], columns: list[dict[str, Any]]) -> str:
    if score["shift"] in ("moderate", "large"):
        return "The scores have moved: set the threshold anew from recent cases."
    moved = [each["name"] for each in columns if each["shift"] in ("moderate", "large")]
    if moved:
        return (
            f"The scores are about where they were, but {len(moved)} of {len(columns)} columns "
            "have moved. Watch them."
        )
    if score["shift"] == "slight" or any(each["shift"] == "slight" for each in columns):
        return "Some things have moved for sure, but only slightly."
    return "Nothing speaks against these cases being like the calibration cases."


def _rates(share: float, n_before: int, n_after: int, cases: Cases) -> dict[str, Any]:
    n_items = cases.is_rare.size
    return {
        "before": share,
        "before_interval": proportion(round(share * n_before), n_before),
        "after": n_after / n_items,
        "after_interval": proportion(n_after, n_items),
    }
