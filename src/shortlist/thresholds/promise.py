"""A promise about a capacity: how many scores may lie above its threshold, and the threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask
from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.hashing import keys_by_id
from .._core.labels import EstimatedShare
from .._core.ranking import Cut, TieKeys, count_above, flag_above, rank
from .._core.validation import check_confidence, check_count, check_option, warn_user
from ..capacity import Capacity, check_capacity, exact
from ..exceptions import CapacityError, InsufficientCalibrationWarning
from . import _bands as bands
from . import guarantees
from ._unknown_prevalence import confident_k_by_walking, draw_lots, rare_items_needed
from .threshold import CalibratedThreshold

__all__ = [
    "COVER_PREVALENCE",
    "FOLD_GUARANTEES",
    "GUARANTEES",
    "TIES",
    "Promise",
    "calibrate_counts",
    "check_guarantee",
    "prevalence_lower_bound",
    "promised_k",
    "threshold_at",
    "walked_k",
    "warn_too_few",
    "weighted_k",
]

GUARANTEES = ("plug-in", "expected", "confident", "next-batch", "simultaneous")
# The guarantees that the thresholds of several folds can keep together.
FOLD_GUARANTEES = ("plug-in", "expected", "confident")
TIES = ("exclude", "hash")
# The guarantees that cover the uncertainty of an estimated prevalence.
COVER_PREVALENCE = ("confident", "simultaneous")
_UNKNOWN = Interval(np.nan, np.nan)


@dataclass(frozen=True)
class Promise:
    """A capacity, its exact value as a fraction, and how surely it is to be kept."""

    capacity: Capacity
    ratio: Fraction
    guarantee: str
    error: float
    n_batches: int = 1


def check_guarantee(guarantee: str, capacity: Capacity, n_batches: Any = 1) -> None:
    """Raise an error for an unknown guarantee, or one that does not fit the capacity.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.thresholds.promise import check_guarantee
    >>> check_guarantee("next-batch", Capacity.count(5, per=100), n_batches=7)
    """
    check_option("guarantee", guarantee, GUARANTEES)
    check_capacity(capacity)
    of_batch = capacity.kind in ("count", "effort") and capacity.per is not None
    if guarantee == "next-batch" and not of_batch:
        raise CapacityError(
            "guarantee='next-batch' promises a number of flags in a batch of known size; got "
            f"{capacity!r}. Use Capacity.count(K, per=N), or Capacity.effort(B, per=N)."
        )
    if check_count("n_batches", n_batches) != 1 and guarantee != "next-batch":
        raise ValueError(
            f"n_batches={n_batches} belongs to guarantee='next-batch'; got guarantee="
            f"{guarantee!r}, which makes no promise about single batches."
        )


def promised_k(n: int, promise: Promise, *, unit: str = "calibration scores") -> int:
    """Apply the rule of the guarantee, and warn when there are too few scores for it."""
    if promise.ratio == 0:
        return -1
    k = _K[promise.guarantee](n, promise)
    if k < 0:
        needed = _SAMPLE_SIZE[promise.guarantee](promise)
        warn_too_few(promise, f"needs at least {needed} {unit}; got {n}")
    return k


def _plug_in_k(n: int, promise: Promise) -> int:
    """Apply the rule of the paper, unless even the highest score is over capacity on average."""
    enough = n >= guarantees.expected_sample_size(promise.ratio)
    return guarantees.plug_in_k(n, promise.ratio) if enough else -1


# For each guarantee, how many of n scores may lie above the threshold ...
_K: dict[str, Callable[[int, Promise], int]] = {
    "plug-in": _plug_in_k,
    "expected": lambda n, p: guarantees.expected_k(n, p.ratio),
    "confident": lambda n, p: guarantees.confident_k(n, p.ratio, error=p.error),
    "next-batch": lambda n, p: guarantees.next_batch_k(
        n, *_batch(p), error=p.error, n_batches=p.n_batches
    ),
    "simultaneous": lambda n, p: bands.simultaneous_k(n, p.ratio, error=p.error),
}
# ... and how many scores it takes before anything can be flagged.
_SAMPLE_SIZE: dict[str, Callable[[Promise], int]] = {
    "plug-in": lambda p: guarantees.expected_sample_size(p.ratio),
    "expected": lambda p: guarantees.expected_sample_size(p.ratio),
    "confident": lambda p: guarantees.confident_sample_size(p.ratio, error=p.error),
    "next-batch": lambda p: guarantees.next_batch_sample_size(
        *_batch(p), error=p.error, n_batches=p.n_batches
    ),
    "simultaneous": lambda p: bands.simultaneous_sample_size(p.ratio, error=p.error),
}


def _batch(promise: Promise) -> tuple[int, int]:
    return int(promise.capacity.value), int(promise.capacity.per or 0)


def warn_too_few(promise: Promise, shortage: str) -> None:
    """Warn that a promise needs more than there is, and flags nothing."""
    on_average = promise.guarantee in ("plug-in", "expected")
    surely = "" if on_average else f" with confidence {1 - promise.error:g}"
    batches = f" in each of {promise.n_batches} batches" if promise.n_batches > 1 else ""
    warn_user(
        f"guarantee={promise.guarantee!r}{surely} for {promise.capacity!r}{batches} {shortage}. "
        "The threshold flags nothing.",
        InsufficientCalibrationWarning,
    )


# --- the threshold --------------------------------------------------------------------------------


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
    """Calibrate a threshold from counts alone, for scores that are not held together.

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
        return bands.simultaneous_interval(k, n_flagged, n, error=promise.error)
    tail = promise.error / 2
    return Interval(
        float(clopper_pearson_lower(n_flagged, n, error=tail)),
        float(clopper_pearson_upper(k, n, error=tail)),
    )


# --- a prevalence that is not known ---------------------------------------------------------------


def walked_k(
    scores: Floats,
    is_rare: Mask,
    promise: Promise,
    tie_keys: TieKeys | None,
    seed: int,
) -> int:
    """Cover the unknown prevalence by walking the labelled ranking."""
    if promise.capacity.value == 0:
        return -1
    order, steps = rank(scores, tie_keys)
    b = exact(promise.capacity.value)
    lots = draw_lots(scores, is_rare, seed=seed)
    k = confident_k_by_walking(is_rare[order], steps, b, error=promise.error, lots=lots)
    if k < 0:
        warn_too_few(
            promise,
            f"needs at least {rare_items_needed(b, error=promise.error)} rare calibration items "
            f"to cover the unknown prevalence; got {np.count_nonzero(is_rare)}",
        )
    return k


def prevalence_lower_bound(n_rare: int, n: int, *, error: float) -> EstimatedShare:
    """Return what the prevalence exceeds, except with probability `error`."""
    return EstimatedShare(float(clopper_pearson_lower(n_rare, n, error=error)))


# --- weights --------------------------------------------------------------------------------------


def weighted_k(
    scores: Floats,
    weights: NDArray[np.float64],
    promise: Promise,
    tie_keys: TieKeys | None,
    max_weight: float | None,
) -> int:
    """Take items from the top while their weight stays within the capacity.

    "expected" is weighted conformal calibration (Tibshirani, Foygel Barber, Candes and Ramdas,
    2019). The future item is one more item, of unknown weight w, that may lie above: the weight
    above the threshold, plus w, may be at most c times all weight, plus w. The share
    (above + w) / (all + w) grows with w, so the largest possible weight is safe for every item.
    """
    future = _future_weight(promise.guarantee, max_weight)
    if promise.ratio == 0:
        return -1
    order, _ = rank(scores, tie_keys)
    weight = np.cumsum(weights[order])
    limit = promise.ratio * (Fraction(float(weight[-1])) + future) - future
    if limit < 0:
        needed = float(future * (1 - promise.ratio) / promise.ratio)
        shortage = f"needs calibration scores of a total weight of at least {needed:g}; got"
        warn_too_few(promise, f"{shortage} {weight[-1]:g}")
        return -1
    if promise.guarantee == "plug-in" and promised_k(scores.size, promise) < 0:
        return -1
    k = int(np.searchsorted(weight, float(limit), side="right"))
    while k > 0 and Fraction(float(weight[k - 1])) > limit:  # undo the rounding of float(limit)
        k -= 1
    return k


def _future_weight(guarantee: str, max_weight: float | None) -> Fraction:
    """Return the weight set aside for the future item, and refuse what has no exact rule."""
    if guarantee == "plug-in":
        return Fraction(0)
    if guarantee != "expected":
        raise ValueError(
            "sample_weight is defined for guarantee='plug-in' and, with max_weight, 'expected'; "
            f"got {guarantee!r}. The flag rate of a weighted sample follows no known "
            "distribution. Instead, keep each calibration item with probability "
            "sample_weight / max_weight, and calibrate on the kept items without weights: these "
            "are like future items, and every guarantee holds."
        )
    if max_weight is None:
        raise ValueError(
            "guarantee='expected' with sample_weight needs max_weight, the largest weight that "
            "any item can have, in future too (1 / the lowest sampling rate, for example). "
            "Future items of a larger weight would break the promise."
        )
    return Fraction(max_weight)
