"""A cut among calibration scores, described as a threshold with the interval of its flag rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats
from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.hashing import keys_by_id
from .._core.ranking import Cut, TieKeys, count_above, flag_above
from .._core.validation import check_confidence
from ..capacity import Capacity
from ._bands import simultaneous_interval
from ._decisions import CalibratedThreshold
from ._promise import Promise, check_guarantee, promised_k

__all__ = ["calibrate_counts", "threshold_at"]


def calibrate_counts(
    n: int,
    capacity: Capacity,
    *,
    find_cut: Callable[[int], tuple[Cut, int]],
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    ties: str = "hash",
    seed: int = 0,
    n_batches: int = 1,
) -> CalibratedThreshold:
    """Calibrate a threshold on scores that somebody else holds.

    Parameters
    ----------
    n : int
        Number of calibration scores.
    capacity, prevalence, guarantee, confidence, ties, seed, n_batches
        As for :func:`~shortlist.calibrate_threshold`.
    find_cut : callable
        Returns for a number k the cut at the (k + 1)-th largest score, and how many scores lie
        before it.

    Returns
    -------
    CalibratedThreshold
        The same as from the scores themselves.
    """
    if n == 0:
        raise ValueError("Calibration needs at least one score; got none.")
    check_guarantee(guarantee, capacity, n_batches)
    error = 1 - check_confidence(confidence)
    promise = Promise(capacity, capacity.as_ratio(prevalence), guarantee, error, n_batches)
    k = promised_k(n, promise)
    cut, n_flagged = find_cut(k)
    keys = None if ties == "exclude" else keys_by_id(None, seed=seed)
    return CalibratedThreshold(
        value=cut.value,
        k=k,
        n_calibration=n,
        flagged_fraction=n_flagged / n,
        interval=_interval(k, n_flagged, n, promise, keys),
        capacity_fraction=float(promise.ratio),
        guarantee=guarantee,
        confidence=confidence,
        ties=ties,
        tie_key=cut.key,
        seed=seed,
    )


def threshold_at(
    cut: Cut,
    k: int,
    scores: Floats,
    promise: Promise,
    tie_keys: TieKeys | None,
    *,
    confidence: float,
    seed: int,
    weights: NDArray[np.float64] | None = None,
    knows_rate: bool = True,
) -> CalibratedThreshold:
    """Describe a cut that leaves at most `k` scores above it; `knows_rate` adds its interval."""
    n_flagged, flagged_fraction = _count_flagged(scores, cut, tie_keys, weights)
    interval = _UNKNOWN
    if knows_rate:
        interval = _interval(k, n_flagged, scores.size, promise, tie_keys)
    return CalibratedThreshold(
        value=cut.value,
        k=k,
        n_calibration=scores.size,
        flagged_fraction=flagged_fraction,
        interval=interval,
        capacity_fraction=float(promise.ratio),
        guarantee=promise.guarantee,
        confidence=confidence,
        ties="exclude" if tie_keys is None else "hash",
        tie_key=cut.key,
        seed=seed,
    )


def _count_flagged(
    scores: Floats,
    cut: Cut,
    tie_keys: TieKeys | None,
    weights: NDArray[np.float64] | None,
) -> tuple[int, float]:
    """Return how many calibration items are flagged, and their share (of the weight)."""
    if weights is None and tie_keys is None:
        n_flagged = count_above(scores, cut.value)
        return n_flagged, n_flagged / max(scores.size, 1)
    flagged = flag_above(scores, cut, tie_keys)
    n_flagged = int(np.count_nonzero(flagged))
    share = (
        n_flagged / max(scores.size, 1)
        if weights is None
        else weights[flagged].sum() / weights.sum()
    )
    return n_flagged, float(share)


_UNKNOWN = Interval(np.nan, np.nan)


def _interval(
    k: int, n_flagged: int, n: int, promise: Promise, tie_keys: TieKeys | None
) -> Interval:
    """Bound the true flag rate R of the threshold t, for every distribution of the scores S.

    Above: R is at most the (k + 1)-th smallest of n uniform numbers, the upper-tail probabilities
    of the scores with ties broken at random, which follows Beta(k + 1, n - k).

    Below: the bound L(j) of Clopper and Pearson at the number j of scores above t, although t
    itself depends on the scores. Proof: j is at most k, so the bound can fail only where
    P(S > t) < L(k); let a be the lowest such value. If t = a, the bound fails at a. If t > a, all
    k + 1 scores from t on lie above a, and the bound fails at a as well. At the fixed value a it
    fails with at most the allowed probability. (If there is no lowest value, take limits.)
    """
    if k < 0:
        return Interval(0.0, 0.0)
    if k >= n and tie_keys is not None:
        return Interval(1.0, 1.0)  # scores of minus infinity are flagged, too
    if promise.guarantee == "simultaneous":
        return simultaneous_interval(k, n_flagged, n, error=promise.error)
    tail = promise.error / 2
    return Interval(
        float(clopper_pearson_lower(n_flagged, n, error=tail)),
        float(clopper_pearson_upper(k, n, error=tail)),
    )
