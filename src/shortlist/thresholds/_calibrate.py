"""From calibration scores to a threshold that keeps a capacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.groups import number_groups
from .._core.hashing import keys_by_id
from .._core.labels import EstimatedShare, find_rare, rare_share
from .._core.ranking import BEFORE_ALL, Cut, TieKeys, count_above, cut_after, flag_above
from .._core.validation import (
    check_confidence,
    check_ids,
    check_option,
    check_positive,
    check_same_length,
    check_sample_weight,
    check_scores,
    check_seed,
)
from .._core.work import check_efforts, check_values, weigh
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..worth import Worth, check_worth
from ._bands import simultaneous_interval
from ._decisions import CalibratedThreshold
from ._efforts import Budget, budget_of, effort_k
from ._groups import cut_for_groups, draw_one_of_each
from ._limits import Limit, limited_by, worth_limit
from ._promise import (
    COVER_PREVALENCE,
    Promise,
    check_guarantee,
    prevalence_lower_bound,
    promised_k,
    walked_k,
    warn_too_few,
    weighted_k,
)
from ._select import check_capacity_for

__all__ = [
    "TIES",
    "calibrate_counts",
    "calibrate_scores",
    "calibrate_threshold",
    "threshold_at",
]

TIES = ("exclude", "hash")


def calibrate_threshold(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    n_batches: int = 1,
    ties: str = "auto",
    ids: ArrayLike | None = None,
    y: ArrayLike | None = None,
    rare_label: Any = None,
    sample_weight: ArrayLike | None = None,
    max_weight: float | None = None,
    random_state: Any = None,
    groups: ArrayLike | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    max_effort: float | None = None,
    worth: Any = None,
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
        `y`; then ``guarantee="confident"`` and ``"simultaneous"`` cover the uncertainty of that
        share as well.
    guarantee : str, default="expected"
        What is promised, when calibration and future items are exchangeable, about the true flag
        rate R of the threshold and the capacity c:

        - ``"plug-in"``: the calibration sample itself is within capacity, as in the paper.
          R exceeds c in about half of all calibrations.
        - ``"expected"``: R is at most c on average over calibrations.
        - ``"confident"``: R exceeds c with probability at most 1 - `confidence`.
        - ``"next-batch"``: with ``Capacity.count(K, per=N)``, more than K flags among the next N
          items have probability at most 1 - `confidence`.
        - ``"simultaneous"``: as "confident", for every capacity at once. With probability
          `confidence`, no capacity that you might ask for is exceeded by its threshold. Use it if
          you choose the capacity after looking at the scores.
    confidence : float, default=0.95
        For the last three guarantees, and for the interval of the true flag rate.
    n_batches : int, default=1
        For ``guarantee="next-batch"``: the promise is that *none* of the next `n_batches` batches
        of N items has more than K flags.
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
        sampled less often. Defined for the guarantees "plug-in" and, with `max_weight`,
        "expected".
    max_weight : float, default=None
        The largest weight that any item can have, in calibration or in future. Known weights have
        such a bound: 1 over the lowest sampling rate, for example.
    random_state : int, RandomState instance or None, default=None
        Key of the hash; `None` is a fixed key.
    groups : array-like of shape (n_items,), default=None
        The group of each item, if several items belong together: the rows of one customer. Groups
        are then what is exchangeable, and R is the chance that a random item of a new group is
        flagged. The number of groups is what counts for the sample size.
    values : array-like of shape (n_items,), default=None
        What each item is worth if it is rare. The threshold is then one of value * probability,
        and scores must be probabilities. Values choose what is flagged; the promise does not
        depend on them.
    efforts : array-like of shape (n_items,), default=None
        How much work each item takes, for ``Capacity.effort(budget, per=n)``. The threshold is one
        of value * probability / effort, R is the mean work per item, flagged or not, and c the
        budget per item. If the work is known only afterwards, pass estimates, here and for future
        items: the promise is then about the estimates.
    max_effort : float, default=None
        The largest effort that any item can take, in future too. Required if efforts differ. The
        guarantees "next-batch" and "simultaneous" count every flag at this effort.
    worth : number or Worth, default=None
        The least expected value per unit of effort for which capacity is used, or
        ``Worth.precision(0.2)``: with labels `y`, the share of the flags that are rare is at least
        this, on the calibration items for "plug-in" and "expected", and on unseen items with
        probability `confidence` for the other guarantees. Without labels, every flagged item has
        at least this probability.

    Returns
    -------
    CalibratedThreshold
        With `value`, `k`, `n_calibration`, `flagged_fraction`, `interval` and `flag(scores)`.

    Warns
    -----
    InsufficientCalibrationWarning
        When there are too few scores for the guarantee; for "plug-in", when even the highest
        score has an expected flag rate above the capacity. The threshold then flags nothing.

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

    Eight hours for every thousand cases, which take from 5 to 60 minutes each:

    >>> rng = np.random.default_rng(0)
    >>> p, minutes = rng.beta(1, 20, size=5_000), rng.integers(5, 61, size=5_000)
    >>> budget = Capacity.effort(480, per=1_000)
    >>> found = calibrate_threshold(p, budget, efforts=minutes, max_effort=60)
    >>> round(found.effort_spent * 1_000), found.flag([0.3], efforts=[45]).tolist()
    (468, [False])
    """
    scores = check_scores(scores)
    if check_option("ties", ties, ("auto", *TIES)) == "auto":
        ties = "exclude" if ids is None else "hash"
    y = None if y is None else np.asarray(y)
    weights = None if sample_weight is None else check_sample_weight(sample_weight)
    check_same_length(scores=scores, y=y, sample_weight=weights)
    ids, seed = check_ids(ids, scores.size), check_seed(random_state)
    needs_labels = check_capacity(capacity).kind == "multiple" and prevalence is None
    if max_weight is not None:
        max_weight = _check_max_weight(max_weight, weights)
    worth = check_worth(worth)
    promises_precision = worth is not None and worth.kind == "precision"
    return calibrate_scores(
        scores,
        capacity,
        prevalence=prevalence,
        guarantee=guarantee,
        confidence=confidence,
        tie_keys=keys_by_id(ids, seed=seed) if ties == "hash" else None,
        is_rare=(
            find_rare(y, rare_label)[0]
            if (needs_labels or promises_precision) and y is not None
            else None
        ),
        weights=weights,
        max_weight=max_weight,
        seed=seed,
        n_batches=n_batches,
        groups=number_groups(groups, scores.size),
        values=check_values(values, scores.size),
        efforts=check_efforts(efforts, scores.size),
        max_effort=max_effort,
        worth=worth,
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
    max_weight: float | None = None,
    seed: int = 0,
    n_batches: int = 1,
    groups: Rows | None = None,
    values: Doubles | None = None,
    efforts: Doubles | None = None,
    max_effort: float | None = None,
    worth: Worth | None = None,
    are_weighed: bool = False,
) -> CalibratedThreshold:
    """Do the work of :func:`~shortlist.calibrate_threshold` for checked arrays and any tie keys.

    If `are_weighed`, the scores are what items are worth already, and values are not needed.
    """
    if scores.size == 0:
        raise ValueError("Calibration needs at least one score; got none.")
    check_guarantee(guarantee, capacity, n_batches)
    confidence = check_confidence(confidence)
    budget = _check_budget(capacity, efforts, max_effort, weights)
    error, covers = 1 - confidence, False
    probabilities = scores
    scores = scores if are_weighed else weigh(scores, values, efforts)
    drawn = None if groups is None else draw_one_of_each(scores, groups, tie_keys, seed=seed)
    if prevalence is None and is_rare is not None:
        prevalence = _share(is_rare, weights)
        covers = capacity.kind == "multiple" and guarantee in COVER_PREVALENCE
        if covers and guarantee == "simultaneous":
            error /= 2  # the other half is spent on a lower bound of the prevalence
            known = is_rare if drawn is None else is_rare[drawn]
            n_rare = int(np.count_nonzero(known))
            prevalence = prevalence_lower_bound(n_rare, known.size, error=error)
    ratio = capacity.as_ratio(prevalence) if budget is None else budget.ratio
    promise = Promise(capacity, ratio, guarantee, error, n_batches)

    walked = is_rare if covers and guarantee == "confident" else None
    if groups is not None and drawn is not None:
        _refuse_with_groups(weights, budget, worth, is_rare)
        cut = cut_for_groups(scores, groups, drawn, promise, tie_keys, walked=walked, seed=seed)
        k = -1 if cut == BEFORE_ALL else int(np.count_nonzero(flag_above(scores, cut, tie_keys)))
    else:
        if budget is not None:
            k = effort_k(scores, budget, promise, tie_keys)
        elif weights is not None:
            k = weighted_k(scores, weights, promise, tie_keys, max_weight)
        elif walked is not None:
            k = walked_k(scores, walked, promise, tie_keys, seed)
        else:
            k = promised_k(scores.size, promise)
        cut = cut_after(scores, k, tie_keys)
    is_estimated = isinstance(prevalence, EstimatedShare) and walked is None and budget is None
    if is_estimated and promise.ratio == 0 and capacity.value and weights is None:
        warn_too_few(promise, "needs rare items among the labels; got none")
    limit = Limit(k)
    if worth is not None:
        limit = worth_limit(
            worth, k, None if are_weighed else probabilities, scores, is_rare, promise, tie_keys
        )
        cut = limit.applied(cut, scores, k, tie_keys)
    found = threshold_at(
        cut,
        k,
        scores,
        promise,
        tie_keys,
        confidence=confidence,
        seed=seed,
        weights=weights,
        knows_rate=weights is None and groups is None and budget is None and worth is None,
    )
    return replace(
        found,
        k=limit.k,
        effort_spent=_effort_spent(scores, cut, tie_keys, budget),
        effort_allowed=None if budget is None else float(budget.per_item),
        max_effort=None if budget is None else budget.max_effort,
        has_values=values is not None,
        has_efforts=efforts is not None,
        least_probability=limit.least_probability,
        limited_by=limited_by(limit, k, cut),
    )


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


def _check_budget(
    capacity: Capacity, efforts: Doubles | None, max_effort: float | None, weights: Any
) -> Budget | None:
    """Return the budget of an effort; efforts and budgets belong together."""
    check_capacity_for(capacity, efforts)
    if capacity.kind != "effort" or efforts is None:
        if max_effort is not None:
            raise CapacityError(
                f"max_effort belongs to Capacity.effort(...); {capacity!r} limits the number of "
                "flags."
            )
        return None
    if weights is not None:
        raise ValueError(
            "sample_weight together with efforts has no exact rule. Keep each calibration item "
            "with probability sample_weight / max_weight, and calibrate on the kept items."
        )
    return budget_of(capacity, efforts, max_effort)


def _refuse_with_groups(
    weights: Any, budget: Budget | None, worth: Worth | None, is_rare: Mask | None
) -> None:
    """Raise an error for what has no exact rule if items come in groups."""
    if weights is not None:
        raise ValueError("sample_weight and groups cannot be combined: no rule is exact then.")
    if budget is not None:
        raise ValueError(
            "efforts and groups cannot be combined: no rule is exact then. Keep one random item of "
            "each group, and calibrate on these without groups."
        )
    if worth is not None and worth.kind == "precision" and is_rare is not None:
        raise ValueError(
            "A precision with labels and groups cannot be combined: the labels of a group are not "
            "independent. Keep one random item of each group, and calibrate on these."
        )


def _effort_spent(
    scores: Floats, cut: Cut, tie_keys: TieKeys | None, budget: Budget | None
) -> float | None:
    """Return the work of the flagged calibration items, per calibration item."""
    if budget is None:
        return None
    flagged = flag_above(scores, cut, tie_keys)
    return float(budget.efforts[flagged].sum() / scores.size)


def _check_max_weight(max_weight: Any, weights: NDArray[np.float64] | None) -> float:
    if weights is None:
        raise ValueError("max_weight belongs to sample_weight, which was not given.")
    max_weight = check_positive("max_weight", max_weight)
    if weights.size and weights.max() > max_weight:
        raise ValueError(
            f"max_weight={max_weight:g} must be at least the largest sample_weight, "
            f"{weights.max():g}."
        )
    return max_weight


def _share(is_rare: Mask, weights: NDArray[np.float64] | None) -> EstimatedShare:
    if weights is None:
        return rare_share(is_rare)
    total = Fraction(float(weights.sum()))
    return EstimatedShare(Fraction(float(weights[is_rare].sum())) / total)


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
