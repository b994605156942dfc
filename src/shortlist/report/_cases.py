"""The labelled cases of a report: read and ranked, cut at every number of flags, and by score."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask, Rows
from .._core.binomial import proportion_interval
from ..metrics import CapacityCurve, capacity_curve
from ..tables import Reading, TableModel, read_labelled

__all__ = [
    "NEAR",
    "Cases",
    "cut_table",
    "neighbours",
    "read_cases",
    "score_distribution",
    "spread_cuts",
]

#: Number of cases that are named on either side of a cut.
NEAR = 8
# Up to this number of flags, every cut can be chosen; with more flags, only some of them.
_MOST_CUTS = 1_000
_SPREAD_CUTS = 400
_REACH = 4  # times the capacity
_FEWEST = 20
_LONGEST_ID = 80
_N_BINS = 36
_LEAST = 1e-4
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_TAIL = 0.02  # the outer bins hold everything far beyond these quantiles


@dataclass(frozen=True)
class Cases:
    """Labelled cases with their scores and flags; all arrays are in the order of the file.

    Attributes
    ----------
    X : data frame
        Features.
    ids : ndarray or None
        Ids of the cases.
    is_rare, scores, flagged : ndarray
        Labels, scores, and the decisions of the calibrated rule.
    order : ndarray of int
        Positions, the most suspicious first. The rule flags the first ones.
    """

    X: Any
    ids: NDArray[Any] | None
    is_rare: Mask
    scores: NDArray[np.float64]
    flagged: Mask
    order: Rows

    @property
    def n_flagged(self) -> int:
        """Number of cases that the rule flagged."""
        return int(self.flagged.sum())

    def first(self, count: int) -> Mask:
        """Return a mask of the `count` most suspicious cases."""
        mask = np.zeros(self.is_rare.size, dtype=bool)
        mask[self.order[:count]] = True
        return mask


def read_cases(model: TableModel, path: Path, target: str, reading: Reading | None = None) -> Cases:
    """Read, score, decide and rank all rows of a labelled table."""
    rows = read_labelled(model, path, target=target, reading=reading)
    assert rows.is_rare is not None
    decided = model.classifier.decide(rows.X, ids=rows.ids)
    scores = np.asarray(decided.scores, dtype=np.float64)
    order = model.rank(rows.X, rows.ids, scores)
    return Cases(rows.X, rows.ids, rows.is_rare, scores, decided.flagged, order)


# --- cuts ---


def spread_cuts(n_items: int, *, room: int, n_flagged: int) -> Rows:
    """Return the numbers of flags to choose from: up to four times the room, or more."""
    most = min(n_items, max(_REACH * room, n_flagged + n_flagged // 4, _FEWEST))
    if most <= _MOST_CUTS:
        return np.arange(most + 1)
    near = np.arange(-NEAR, NEAR + 1)
    spread = np.linspace(0, most, _SPREAD_CUTS).round().astype(np.intp)
    every = np.concatenate([spread, room + near, n_flagged + near])
    return np.unique(every[(every >= 0) & (every <= most)])


def cut_table(cases: Cases, cuts: Rows) -> dict[str, list[Any]]:
    """Measure each cut; return columns."""
    curve = _curve(cases, int(cuts[-1]))
    precision = [proportion_interval(int(curve.n_found[cut]), int(cut)) for cut in cuts]
    scores = cases.scores[cases.order]
    return {
        "flags": cuts.tolist(),
        "found": curve.n_found[cuts].tolist(),
        "detection": curve.detection[cuts].tolist(),
        "detection_low": curve.detection_low[cuts].tolist(),
        "detection_high": curve.detection_high[cuts].tolist(),
        "at_threshold_low": curve.at_threshold_low[cuts].tolist(),
        "at_threshold_high": curve.at_threshold_high[cuts].tolist(),
        "precision": [None if cut == 0 else curve.precision[cut].item() for cut in cuts.tolist()],
        "precision_low": [interval.low for interval in precision],
        "precision_high": [interval.high for interval in precision],
        "one_more_finds": curve.marginal[cuts].tolist(),
        "lowest_score": [None if cut == 0 else scores[cut - 1].item() for cut in cuts.tolist()],
    }


def _curve(cases: Cases, most: int) -> CapacityCurve:
    """Return the capacity curve of the ranking, in which ties are broken already."""
    places = np.arange(cases.is_rare.size, dtype=np.float64)
    in_order = cases.is_rare[cases.order]
    share = min(1.0, (most + 1) / places.size)
    return capacity_curve(in_order, -places, rare_label=True, max_fraction=share)


def neighbours(cases: Cases, cuts: Rows) -> dict[str, list[Any]]:
    """List the cases on either side of each cut; return columns, by rank from 1."""
    near = (cuts[:, np.newaxis] + np.arange(-NEAR, NEAR)).ravel()
    ranks = np.unique(near[(near >= 0) & (near < cases.order.size)])
    chosen = cases.order[ranks]
    return {
        "rank": (ranks + 1).tolist(),
        "name": [_name(cases, place) for place in chosen.tolist()],
        "score": cases.scores[chosen].tolist(),
        "rare": cases.is_rare[chosen].tolist(),
    }


def _name(cases: Cases, place: int) -> str:
    if cases.ids is None:
        return f"row {place + 1}"
    name = str(cases.ids[place])
    return name if len(name) <= _LONGEST_ID else name[: _LONGEST_ID - 1] + "…"


# --- scores ---


def score_distribution(
    scores: NDArray[np.float64], is_rare: Mask, *, threshold: float
) -> dict[str, Any]:
    """Count scores by class in bins of equal width, on the scale of log-odds for probabilities.

    The outer bins also hold everything beyond them. Shares are within each class.
    """
    scale = "log-odds" if scores.min() >= 0 and scores.max() <= 1 else "linear"
    places = _placed(scores, scale)
    low, high = _range(places, scale)
    edges = np.linspace(low, high, _N_BINS + 1)
    rare, common = (
        np.histogram(np.clip(places[mask], low, high), edges)[0] for mask in (is_rare, ~is_rare)
    )
    ticks = _ticks(low, high, scale)
    cut = float(_placed(np.array([threshold]), scale)[0]) if np.isfinite(threshold) else None
    return {
        "scale": scale,
        "edges": _scores(edges, scale).tolist(),
        "n_rare": rare.tolist(),
        "n_common": common.tolist(),
        "share_of_rare": (rare / is_rare.sum()).tolist(),
        "share_of_common": (common / (~is_rare).sum()).tolist(),
        "threshold": threshold if np.isfinite(threshold) else None,
        "threshold_place": None if cut is None else float(np.clip(_share(cut, low, high), 0, 1)),
        "ticks": [[_share(place, low, high), value] for place, value in ticks],
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
        step = _round_step((high - low) / 5)
        first = np.ceil(low / step) * step
        ticks = [(value, value) for value in np.arange(first, high, step).round(12).tolist()]
    return [(place, value) for place, value in ticks if low <= place <= high]


def _round_step(step: float) -> float:
    size = 10 ** np.floor(np.log10(step))
    return float(size * min((1, 2, 5, 10), key=lambda digit: abs(digit * size - step)))


def _share(place: float, low: float, high: float) -> float:
    return (place - low) / (high - low)
