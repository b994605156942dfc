"""From calibration scores to a threshold that keeps a capacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from .._core.arrays import Floats, Mask
from .._core.binomial import Interval, clopper_pearson_lower
from .._core.hashing import keys_by_id
from .._core.labels import find_rare, rare_share
from .._core.ranking import Cut, TieKeys, count_above, cut_after, flag_above, rank
from .._core.validation import (
    check_confidence,
    check_ids,
    check_option,
    check_same_length,
    check_sample_weight,
    check_scores,
    check_seed,
    warn_user,
)
from ..capacity import Capacity, check_capacity, exact
from ..exceptions import CapacityError, InsufficientCalibrationWarning
from . import _guarantees as guarantees
from ._decisions import CalibratedThreshold

__all__ = ["GUARANTEES", "TIES", "calibrate_scores", "calibrate_threshold", "check_guarantee"]

GUARANTEES = ("plug-in", "expected", "confident", "next-batch")
TIES = ("exclude", "hash")


def calibrate_threshold(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    ties: str = "auto",
    ids: ArrayLike | None = None,
    y: ArrayLike | None = None,
    rare_label: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> CalibratedThreshold:
    r"""Find the lowest threshold that keeps a capacity on future items.

    The calibration scores must come from the finished model, on items like the future ones that
    the model has not been trained on. No labels are needed.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Calibration scores; higher is more suspicious. NaN is an error.
    capacity : Capacity
        How much can be followed up. A count needs `per`.
    prevalence : number, default=None
        Share of rare items, for a capacity that is a multiple of it. `None` takes the share in
        `y`; then ``guarantee="confident"`` covers the uncertainty of that share as well.
    guarantee : {"plug-in", "expected", "confident", "next-batch"}, default="expected"
        What is promised, when calibration and future items are exchangeable, about the true flag
        rate R of the threshold and the capacity c:

        - ``"plug-in"``: the calibration sample itself is within capacity, as in the paper.
          R exceeds c in about half of all calibrations.
        - ``"expected"``: R is at most c on average over calibrations.
        - ``"confident"``: R exceeds c with probability at most 1 - `confidence`.
        - ``"next-batch"``: with ``Capacity.count(K, per=N)``, more than K flags among the next N
          items have probability at most 1 - `confidence`.
    confidence : float, default=0.95
        For the last two guarantees, and for the interval of the true flag rate.
    ties : {"auto", "exclude", "hash"}, default="auto"
        Scores tied with the threshold are left out as a block, or flagged in part, chosen by a
        hash of their ids. "auto" hashes if there are `ids`. With coarse scores (nearest
        neighbours, forests, rules), only the hash uses the whole capacity.
    ids : array-like of shape (n_items,), default=None
        Identifiers for the hash; row positions when absent.
    y : array-like of shape (n_items,), default=None
        Labels of the calibration items, for the prevalence.
    rare_label : label, default=None
        The label that is looked for; `None` takes the rarest in `y`.
    sample_weight : array-like of shape (n_items,), default=None
        Weights under which the flag rate is measured, for example when common items were
        sampled less often. Only the plug-in rule is defined with weights.
    random_state : int, RandomState instance or None, default=None
        Key of the hash; `None` is a fixed key.

    Returns
    -------
    CalibratedThreshold
        With `value`, `k`, `n_calibration`, `flagged_fraction`, `interval` and `flag(scores)`.

    Warns
    -----
    InsufficientCalibrationWarning
        When there are too few scores for the guarantee. The threshold then flags nothing.

    Notes
    -----
    The threshold is an order statistic, so its flag rate follows a Beta distribution whatever the
    model. Formulas and references stand with each rule in the source.

    Examples
    --------
    A hundred scores, room for one item in ten. On average over calibrations, at most one in ten
    future items exceeds the tenth largest score:

    >>> import numpy as np
    >>> from shortlist import Capacity, calibrate_threshold
    >>> scores = np.arange(100)
    >>> calibrate_threshold(scores, Capacity.fraction(0.1)).value
    90.0

    To be 95 % sure of the capacity, only the top four may lie above the threshold:

    >>> safe = calibrate_threshold(scores, Capacity.fraction(0.1), guarantee="confident")
    >>> safe.value, safe.k
    (95.0, 4)
    >>> safe.flag([96, 95, 12]).tolist()
    [True, False, False]
    """
    scores = check_scores(scores)
    if check_option("ties", ties, ("auto", *TIES)) == "auto":
        ties = "exclude" if ids is None else "hash"
    y = None if y is None else np.asarray(y)
    weights = None if sample_weight is None else check_sample_weight(sample_weight)
    check_same_length(scores=scores, y=y, sample_weight=weights)
    ids, seed = check_ids(ids, scores.size), check_seed(random_state)
    needs_labels = check_capacity(capacity).kind == "multiple" and prevalence is None
    return calibrate_scores(
        scores,
        capacity,
        prevalence=prevalence,
        guarantee=guarantee,
        confidence=confidence,
        tie_keys=keys_by_id(ids, seed=seed) if ties == "hash" else None,
        is_rare=find_rare(y, rare_label)[0] if needs_labels and y is not None else None,
        weights=weights,
        seed=seed,
    )


def calibrate_scores(
    scores: Floats,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    tie_keys: TieKeys | None = None,
    is_rare: Mask | None = None,
    weights: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> CalibratedThreshold:
    """Do the work of :func:`~shortlist.calibrate_threshold` for checked arrays and any tie keys."""
    if scores.size == 0:
        raise ValueError("Calibration needs at least one score; got none.")
    check_guarantee(guarantee, capacity)
    confidence = check_confidence(confidence)
    covers_prevalence = prevalence is None and capacity.kind == "multiple"
    if prevalence is None and is_rare is not None:
        prevalence = _share(is_rare, weights)
    promise = _Promise(capacity, capacity.as_ratio(prevalence), guarantee, 1 - confidence)

    if weights is not None:
        k = _weighted_k(scores, weights, promise, tie_keys)
    elif is_rare is not None and covers_prevalence and guarantee == "confident":
        k = _walked_k(scores, is_rare, promise, tie_keys)
    else:
        k = _k(scores.size, promise)
    cut = cut_after(scores, k, tie_keys)
    n_flagged, flagged_fraction = _count_flagged(scores, cut, tie_keys, weights)
    return CalibratedThreshold(
        value=cut.value,
        k=k,
        n_calibration=scores.size,
        flagged_fraction=flagged_fraction,
        interval=_UNKNOWN if weights is not None else _interval(k, n_flagged, scores.size, promise),
        capacity_fraction=float(promise.ratio),
        guarantee=guarantee,
        confidence=confidence,
        ties="exclude" if tie_keys is None else "hash",
        tie_key=cut.key,
        seed=seed,
    )


@dataclass(frozen=True)
class _Promise:
    """A capacity, its exact value as a fraction, and how surely it is to be kept."""

    capacity: Capacity
    ratio: Fraction
    guarantee: str
    error: float


def check_guarantee(guarantee: str, capacity: Capacity) -> None:
    """Raise an error for an unknown guarantee, or one that does not fit the capacity.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.thresholds import check_guarantee
    >>> check_guarantee("next-batch", Capacity.count(5, per=100))
    """
    check_option("guarantee", guarantee, GUARANTEES)
    check_capacity(capacity)
    if guarantee == "next-batch" and (capacity.kind != "count" or capacity.per is None):
        raise CapacityError(
            "guarantee='next-batch' promises a number of flags in a batch of known size; got "
            f"{capacity!r}. Use Capacity.count(K, per=N)."
        )


def _k(n: int, promise: _Promise) -> int:
    """Apply the rule of the guarantee, and say so when there are too few scores for it."""
    if promise.ratio == 0:
        return -1
    k = _K[promise.guarantee](n, promise)
    if k < 0:
        needed = _SAMPLE_SIZE[promise.guarantee](promise)
        _warn_too_few(promise, f"needs at least {needed} calibration scores; got {n}")
    return k


# For each guarantee, how many of n scores may lie above the threshold ...
_K: dict[str, Callable[[int, _Promise], int]] = {
    "plug-in": lambda n, p: guarantees.plug_in_k(n, p.ratio),
    "expected": lambda n, p: guarantees.expected_k(n, p.ratio),
    "confident": lambda n, p: guarantees.confident_k(n, p.ratio, error=p.error),
    "next-batch": lambda n, p: guarantees.next_batch_k(n, *_batch(p), error=p.error),
}
# ... and how many scores it takes before anything can be flagged; the plug-in rule always can.
_SAMPLE_SIZE: dict[str, Callable[[_Promise], int]] = {
    "expected": lambda p: guarantees.expected_sample_size(p.ratio),
    "confident": lambda p: guarantees.confident_sample_size(p.ratio, error=p.error),
    "next-batch": lambda p: guarantees.next_batch_sample_size(*_batch(p), error=p.error),
}


def _batch(promise: _Promise) -> tuple[int, int]:
    return int(promise.capacity.value), int(promise.capacity.per or 0)


def _walked_k(
    scores: Floats,
    is_rare: Mask,
    promise: _Promise,
    tie_keys: TieKeys | None,
) -> int:
    """Cover the unknown prevalence by walking the labelled ranking."""
    if promise.ratio == 0 and promise.capacity.value == 0:
        return -1
    order, steps = rank(scores, tie_keys)
    b = exact(promise.capacity.value)
    k = guarantees.confident_k_by_walking(is_rare[order], steps, b, error=promise.error)
    if k < 0:
        n_rare, needed = (
            int(np.count_nonzero(is_rare)),
            guarantees.rare_items_needed(b, error=promise.error),
        )
        _warn_too_few(
            promise,
            f"needs {needed or 'more than a million'} rare calibration items "
            f"to cover the unknown prevalence; got {n_rare}",
        )
    return k


def _weighted_k(
    scores: Floats,
    weights: NDArray[np.float64],
    promise: _Promise,
    tie_keys: TieKeys | None,
) -> int:
    """Take items from the top while their weight stays within the capacity."""
    if promise.guarantee != "plug-in":
        raise ValueError(
            f"sample_weight is defined for guarantee='plug-in' only; got {promise.guarantee!r}. "
            "No exact finite-sample rule is known here for weighted calibration scores."
        )
    if promise.ratio == 0:
        return -1
    order, _ = rank(scores, tie_keys)
    weight = np.cumsum(weights[order])
    limit = promise.ratio * Fraction(float(weight[-1]))
    k = int(np.searchsorted(weight, float(limit), side="right"))
    while k > 0 and Fraction(float(weight[k - 1])) > limit:  # undo the rounding of float(limit)
        k -= 1
    return k


def _warn_too_few(promise: _Promise, shortage: str) -> None:
    surely = "" if promise.guarantee == "expected" else f" with confidence {1 - promise.error:g}"
    warn_user(
        f"guarantee={promise.guarantee!r}{surely} for {promise.capacity!r} {shortage}. "
        "The threshold flags nothing.",
        InsufficientCalibrationWarning,
    )


def _share(is_rare: Mask, weights: NDArray[np.float64] | None) -> Fraction:
    if weights is None:
        return rare_share(is_rare)
    return Fraction(float(weights[is_rare].sum())) / Fraction(float(weights.sum()))


def _count_flagged(
    scores: Floats,
    cut: Cut,
    tie_keys: TieKeys | None,
    weights: NDArray[np.float64] | None,
) -> tuple[int, float]:
    """Return how many calibration items are flagged, and their share (of the weight)."""
    if weights is None and tie_keys is None:
        n_flagged = count_above(scores, cut.value)
        return n_flagged, n_flagged / scores.size
    flagged = flag_above(scores, cut, tie_keys)
    n_flagged = int(np.count_nonzero(flagged))
    share = n_flagged / scores.size if weights is None else weights[flagged].sum() / weights.sum()
    return n_flagged, float(share)


_UNKNOWN = Interval(np.nan, np.nan)


def _interval(k: int, n_flagged: int, n: int, promise: _Promise) -> Interval:
    """Bound the true flag rate, which follows Beta(k + 1, n - k), or less where ties were cut."""
    tail = promise.error / 2
    if k < 0:
        return Interval(0.0, 0.0)
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    if n_flagged < k:
        return Interval(float(clopper_pearson_lower(n_flagged, n, error=tail)), high)
    return Interval(float(betaincinv(k + 1, n - k, tail)) if k < n else 1.0, high)
