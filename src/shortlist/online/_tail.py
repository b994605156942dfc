r"""A scale on which scores of any model are alike: how far out in the tail they are.

A score that a share p of the calibration scores reaches lies at -log p. Steps on this scale change
the flag rate by the same factor everywhere, and a new model's scores can take the place of the old
one's without a jump. The scale is bounded, also beyond the calibration scores: that is what makes
the promise of :class:`~shortlist.online.QuantileTracker` possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["FARTHEST_SCORE", "central_spread", "map_scores", "score_at", "tail_range", "tail_scale"]

_MOST_KNOTS = 1_024
FARTHEST_SCORE = 1e300  # so that differences of scores are finite too


def tail_scale(calibration: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return knots of the scale: scores in rising order, above what lies as far out as they do.

    Ranks are thinned geometrically, so that knots lie evenly on the scale and a million scores
    take no more room than a thousand.
    """
    falling = np.sort(calibration)[::-1]
    n = falling.size
    ranks = np.unique(np.round(np.geomspace(1, n, min(n, _MOST_KNOTS))).astype(np.int64))
    # Of tied scores the last counts: all of them reach the value.
    knots, from_back = np.unique(falling[ranks - 1][::-1], return_index=True)
    reached = ranks[::-1][from_back]
    return np.vstack([knots, -np.log(reached / (n + 1))])


def tail_range(scale: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the scale, which no score lies beyond."""
    return float(scale[1, 0]) - 1.0, float(scale[1, -1]) + 1.0


@njit(cache=True)
def score_at(level: float, scale: Any) -> float:
    """Return the score that lies at a level of the scale; infinite beyond its ends."""
    last = scale.shape[1] - 1
    spread = scale[0, last] - scale[0, 0]
    if spread <= 0.0:
        spread = 1.0
    if level >= scale[1, last]:
        beyond = level - scale[1, last]
        return np.inf if beyond >= 1.0 else scale[0, last] + spread * beyond / (1.0 - beyond)
    if level < scale[1, 0]:
        beyond = scale[1, 0] - level
        return -np.inf if beyond > 1.0 - 1e-12 else scale[0, 0] - spread * beyond / (1.0 - beyond)
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if scale[1, middle] <= level:
            low = middle
        else:
            high = middle
    share = (level - scale[1, low]) / (scale[1, high] - scale[1, low])
    return scale[0, low] + share * (scale[0, high] - scale[0, low])


def map_scores(
    scores: NDArray[np.float64], old: NDArray[np.float64], new: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Turn scores of an old model into scores of a new one that lie as far out in the tail."""
    scores = np.clip(scores, -FARTHEST_SCORE, FARTHEST_SCORE)
    levels = np.interp(scores, old[0], old[1])
    mapped = np.interp(levels, new[1], new[0])
    # Beyond the calibration scores, distances are kept in units of the spread.
    ratio = min(_spread(new) / _spread(old), FARTHEST_SCORE)
    with np.errstate(over="ignore"):
        above = np.clip(scores - old[0, -1], 0, None) * ratio
        below = np.clip(old[0, 0] - scores, 0, None) * ratio
    return np.clip(mapped + above - below, -FARTHEST_SCORE, FARTHEST_SCORE)


def central_spread(scale: NDArray[np.float64]) -> float:
    """Return the distance of the scores that 16 and 84 per cent of all scores reach."""
    low, high = np.interp(-np.log([0.84, 0.16]), scale[1], scale[0])
    return float(high - low) or _spread(scale)


def _spread(scale: NDArray[np.float64]) -> float:
    return float(scale[0, -1] - scale[0, 0]) or 1.0
