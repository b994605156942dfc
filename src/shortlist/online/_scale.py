r"""A scale on which the scores of any two models are comparable: how far out in the tail they lie.

A score that a share p of the calibration scores reaches lies at the level -log p. A step on this
scale changes the flag rate by the same factor everywhere, and the scores of a new model can replace
those of the old one without a jump. The scale is bounded, even beyond the calibration scores; the
guarantee of :class:`~shortlist.online.QuantileTracker` rests on that.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numba import njit

from .._core.arrays import Floats

_MOST_KNOTS = 1_024
FARTHEST_SCORE = 1e300  # differences of two such scores are still finite


class TailScale:
    """Translates between scores and tail levels, and between the scores of two models.

    `knots` are scores in rising order, and the level of each.
    """

    __slots__ = ("knots",)

    def __init__(self, knots: Floats) -> None:
        self.knots = knots

    @classmethod
    def from_scores(cls, calibration_scores: Floats) -> Self:
        """Return the scale of a model, given finite scores of recent items.

        The ranks are thinned geometrically: knots lie evenly on the scale, and a million scores
        take no more room than a thousand.
        """
        falling = np.sort(calibration_scores)[::-1]
        n = falling.size
        ranks = np.unique(np.round(np.geomspace(1, n, min(n, _MOST_KNOTS))).astype(np.int64))
        # The last of tied scores counts, because all of them reach the value.
        knots, from_back = np.unique(falling[ranks - 1][::-1], return_index=True)
        reached = ranks[::-1][from_back]
        return cls(np.vstack([knots, -np.log(reached / (n + 1))]))

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest level; no score lies beyond them."""
        return float(self.knots[1, 0]) - 1.0, float(self.knots[1, -1]) + 1.0

    @property
    def central_spread(self) -> float:
        """The distance between the scores that 16 and 84 per cent of all scores reach."""
        low, high = np.interp(-np.log([0.84, 0.16]), self.knots[1], self.knots[0])
        return float(high - low) or self._spread

    @property
    def _spread(self) -> float:
        return float(self.knots[0, -1] - self.knots[0, 0]) or 1.0

    def translate(self, scores: Floats, *, to: TailScale) -> Floats:
        """Turn scores of this model into scores of another one that lie as far out in the tail."""
        scores = np.clip(scores, -FARTHEST_SCORE, FARTHEST_SCORE)
        levels = np.interp(scores, self.knots[0], self.knots[1])
        translated = np.interp(levels, to.knots[1], to.knots[0])
        # Beyond the calibration scores, distances are kept in units of the spread.
        ratio = min(to._spread / self._spread, FARTHEST_SCORE)
        with np.errstate(over="ignore"):
            above = np.clip(scores - self.knots[0, -1], 0, None) * ratio
            below = np.clip(self.knots[0, 0] - scores, 0, None) * ratio
        return np.clip(translated + above - below, -FARTHEST_SCORE, FARTHEST_SCORE)


@njit(cache=True)
def score_at(level: float, knots: Any) -> float:
    """Return the score at a level of the scale with these knots; infinite beyond its ends."""
    last = knots.shape[1] - 1
    spread = knots[0, last] - knots[0, 0]
    if spread <= 0.0:
        spread = 1.0
    if level >= knots[1, last]:
        beyond = level - knots[1, last]
        return np.inf if beyond >= 1.0 else knots[0, last] + spread * beyond / (1.0 - beyond)
    if level < knots[1, 0]:
        beyond = knots[1, 0] - level
        return -np.inf if beyond > 1.0 - 1e-12 else knots[0, 0] - spread * beyond / (1.0 - beyond)
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if knots[1, middle] <= level:
            low = middle
        else:
            high = middle
    share = (level - knots[1, low]) / (knots[1, high] - knots[1, low])
    return knots[0, low] + share * (knots[0, high] - knots[0, low])
