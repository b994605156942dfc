"""Where a threshold ends because more is not worth it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.arrays import Floats, Mask
from .._core.ranking import Cut, TieKeys, cell_of, cut_after
from .._core.validation import warn_user
from .._core.work import check_probabilities
from ..exceptions import InsufficientCalibrationWarning
from ..worth import Worth
from ._guarantees import plug_in_k
from ._precision import precise_k
from ._promise import Promise

__all__ = ["Limit", "limited_by", "worth_limit"]


class Limit(NamedTuple):
    """How far down a threshold may lie: by rank, by worth, and what a probability must reach."""

    k: int
    least_worth: float = -np.inf
    least_probability: float = 0.0

    def applied(self, cut: Cut, scores: Floats, k: int, tie_keys: TieKeys | None) -> Cut:
        """Return the cut of the capacity at k, or a stricter one."""
        if self.k < k:
            cut = cut_after(scores, self.k, tie_keys)
        is_stricter = self.least_worth > -np.inf and self.least_worth >= cut.value
        return Cut(self.least_worth) if is_stricter else cut


def worth_limit(
    worth: Worth,
    k: int,
    probabilities: Floats | None,
    scores: Floats,
    is_rare: Mask | None,
    promise: Promise,
    tie_keys: TieKeys | None,
) -> Limit:
    """Return the limit that leaves capacity empty below a worth."""
    if worth.kind == "precision" and is_rare is not None:
        return Limit(_precise(worth, k, scores, is_rare, promise, tie_keys))
    if probabilities is not None:
        check_probabilities(probabilities)
    if worth.kind == "precision" and probabilities is None:
        raise ValueError(
            f"{worth!r} needs labels: pass y, or use worth=..., a value per unit of effort."
        )
    if worth.kind == "precision":
        return Limit(k, least_probability=worth.least)
    return Limit(k, least_worth=float(cell_of(worth.least, scores.dtype)[0]))


def _precise(
    worth: Worth,
    k: int,
    scores: Floats,
    is_rare: Mask,
    promise: Promise,
    tie_keys: TieKeys | None,
) -> int:
    """Return how many flags reach a precision; warn if none do."""
    promised = promise.guarantee not in ("plug-in", "expected")
    by_count = promise.capacity.kind in ("count", "fraction")
    fewer = precise_k(
        scores,
        is_rare,
        k,
        worth.least,
        tie_keys,
        error=promise.error if promised else None,
        largest=plug_in_k(scores.size, promise.ratio) + 1 if by_count else None,
    )
    if fewer < 0 <= k:
        surely = f" with confidence {1 - promise.error:g}" if promised else ""
        warn_user(
            f"No threshold within {promise.capacity!r} has a precision of at least "
            f"{worth.least:g}{surely} on these {scores.size} calibration items, of which "
            f"{np.count_nonzero(is_rare)} are rare. The threshold flags nothing.",
            InsufficientCalibrationWarning,
        )
    return fewer


def limited_by(limit: Limit, k: int, cut: Cut) -> str:
    """Return whether the worth or the capacity decided."""
    by_worth = limit.least_worth > -np.inf and cut.value == limit.least_worth
    raised = limit.k < k or by_worth or limit.least_probability > 0
    return "worth" if raised else "capacity"
