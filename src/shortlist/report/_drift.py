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
from ._charts import round_ticks

_N_BINS = 36
_LEAST = 1e-4
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_TAIL = 0.02  # the outer bins hold everything far beyond these quantiles


def score_distribution(
    scores: NDArray[np.float64], is_rare: Mask | None, *, threshold: float | None
) -> dict[str, Any]:
    """Count scores by class in bins of equal width, on the scale of log-odds for probabilities.

    The outer bins also hold everything beyond them. Shares are within each class. Without labels
    all cases are counted together. `threshold` is None if there is no single one.
    """
    scale = "log-odds" if scores.min() >= 0 and scores.max() <= 1 else "linear"
    places = _placed(scores, scale)
    low, high = _range(places, scale)
    edges = np.linspace(low, high, _N_BINS + 1)
    ticks = _ticks(low, high, scale)
    threshold = threshold if threshold is not None and np.isfinite(threshold) else None
    cut = None if threshold is None else float(_placed(np.array([threshold]), scale)[0])
    return {
        "scale": scale,
        "edges": _scores(edges, scale).tolist(),
        **_counts(np.clip(places, low, high), is_rare, edges),
        "threshold": threshold,
        "threshold_place": None if cut is None else float(np.clip(_share(cut, low, high), 0, 1)),
        "ticks": [[_share(place, low, high), value] for place, value in ticks],
    }


def _counts(
    places: NDArray[np.float64], is_rare: Mask | None, edges: NDArray[np.float64]
) -> dict[str, Any]:
    def counted(mask: Any) -> NDArray[np.intp]:
        return np.histogram(places[mask], edges)[0]

    if is_rare is None:
        every = counted(slice(None))
        return {"n_all": every.tolist(), "share_of_all": (every / places.size).tolist()}
    rare, common = counted(is_rare), counted(~is_rare)
    return {
        "n_rare": rare.tolist(),
        "n_common": common.tolist(),
        "share_of_rare": (rare / is_rare.sum()).tolist(),
        "share_of_common": (common / (~is_rare).sum()).tolist(),
    }


def _placed(scores: NDArray[np.float64], scale: str) -> NDArray[np.float64]:
    if scale == "linear":
        return scores
    kept = np.clip(scores, _LEAST, 1 - _LEAST)
    return np.log(kept / (1 - kept))


def _scores(places: NDArray[np.float64], scale: str) -> NDArray[np.float64]:
    return places if scale == "linear" else 1 / (1 + np.exp(-places))


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


def _ticks(low: float, high: float, scale: str) -> list[tuple[float, float]]:
    if scale == "log-odds":
        values = np.array(_TICKS)
        ticks = list(zip(_placed(values, scale).tolist(), _TICKS, strict=True))
    else:
        ticks = [(value, value) for value in round_ticks(low, high, 5)]
    return [(place, value) for place, value in ticks if low <= place <= high]


def _share(place: float, low: float, high: float) -> float:
    return (place - low) / (high - low)


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
