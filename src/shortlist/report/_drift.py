"""How scores are distributed, and what has shifted since calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.binomial import proportion_interval
from ..tables import TableModel
from ..tables.drift import compare_columns, compare_scores, count_columns, judge_shifts, verdict_on
from ._cases import Cases

_N_BINS = 36
_LEAST = 1e-4
_TAIL = 0.02  # the outer bins hold everything far beyond these quantiles


def score_distribution(
    scores: NDArray[np.float64], is_rare: Mask | None, *, threshold: float | None
) -> dict[str, Any]:
    """Count scores by class in bins of equal width, on the scale of log-odds for probabilities.

    The outer bins also hold everything beyond them. Without labels all cases are counted together.
    `threshold` is None if there is no single one.
    """
    scale = "log-odds" if scores.min() >= 0 and scores.max() <= 1 else "linear"
    places = on_scale(scores, scale)
    low, high = _range(places, scale)
    edges = np.linspace(low, high, _N_BINS + 1)
    classes = {"all": slice(None)} if is_rare is None else {"rare": is_rare, "common": ~is_rare}
    return {
        "scale": scale,
        "edges": (edges if scale == "linear" else 1 / (1 + np.exp(-edges))).tolist(),
        **{
            f"n_{name}": np.histogram(np.clip(places[own], low, high), edges)[0].tolist()
            for name, own in classes.items()
        },
        "threshold": threshold if threshold is not None and np.isfinite(threshold) else None,
    }


def on_scale(scores: Any, scale: str) -> NDArray[np.float64]:
    """Return where scores lie on a linear axis, or on one of log-odds."""
    if scale == "linear":
        return np.asarray(scores, dtype=np.float64)
    kept = np.clip(scores, _LEAST, 1 - _LEAST)
    return np.log(kept / (1 - kept))


def _range(places: NDArray[np.float64], scale: str) -> tuple[float, float]:
    finite = places[np.isfinite(places)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if scale == "linear":
        left, right = (float(end) for end in np.quantile(finite, (_TAIL, 1 - _TAIL)))
        if right > left:
            reach = (right - left) / 2
            low, high = max(low, left - reach), min(high, right + reach)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


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
