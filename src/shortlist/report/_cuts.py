"""What each cut of the ranking finds, and who stands near it; thinned out for long lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import CapacityCurve, capacity_curve
from ..tables._measure import proportion
from ._cases import Cases

__all__ = ["cut_table", "neighbours", "spread_cuts"]

#: Up to so many flags every cut can be chosen; beyond, some of them.
MOST_CUTS = 1_000
_SPREAD_CUTS = 400
#: Cases that are named on either side of a cut.
NEAR = 8
_REACH = 4  # times the capacity
_FEWEST = 20
_LONGEST_ID = 80


def spread_cuts(n_items: int, *, room: int, n_flagged: int) -> NDArray[np.intp]:
    """Return numbers of flags to choose from: up to four times the capacity, with both of these."""
    most = min(n_items, max(_REACH * room, n_flagged + n_flagged // 4, _FEWEST))
    if most <= MOST_CUTS:
        return np.arange(most + 1)
    near = np.arange(-NEAR, NEAR + 1)
    spread = np.linspace(0, most, _SPREAD_CUTS).round().astype(np.intp)
    every = np.concatenate([spread, room + near, n_flagged + near])
    return np.unique(every[(every >= 0) & (every <= most)])


def cut_table(cases: Cases, cuts: NDArray[np.intp]) -> dict[str, list[Any]]:
    """Measure each cut, as columns."""
    curve = _curve(cases, int(cuts[-1]))
    precision = [proportion(int(curve.n_found[cut]), int(cut)) for cut in cuts]
    scores = cases.scores[cases.order]
    return {
        "flags": cuts.tolist(),
        "found": curve.n_found[cuts].tolist(),
        "detection": curve.detection[cuts].tolist(),
        "detection_low": curve.detection_low[cuts].tolist(),
        "detection_high": curve.detection_high[cuts].tolist(),
        "precision": [None if cut == 0 else curve.precision[cut].item() for cut in cuts.tolist()],
        "precision_low": [interval.low for interval in precision],
        "precision_high": [interval.high for interval in precision],
        "one_more_finds": curve.marginal[cuts].tolist(),
        "lowest_score": [None if cut == 0 else scores[cut - 1].item() for cut in cuts.tolist()],
    }


def _curve(cases: Cases, most: int) -> CapacityCurve:
    """Return the curve of the ranking itself, in which ties have been broken."""
    places = np.arange(cases.is_rare.size, dtype=np.float64)
    in_order = cases.is_rare[cases.order]
    share = min(1.0, (most + 1) / places.size)
    return capacity_curve(in_order, -places, rare_label=True, max_fraction=share)


def neighbours(cases: Cases, cuts: NDArray[np.intp]) -> dict[str, list[Any]]:
    """Name the cases on either side of each cut, as columns by rank (from 1)."""
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
