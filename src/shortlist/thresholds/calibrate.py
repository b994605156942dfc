"""From calibration scores to a threshold that keeps a capacity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.groups import number_groups
from .._core.hashing import keys_by_id
from .._core.labels import EstimatedShare, find_rare, rare_share
from .._core.ranking import BEFORE_ALL, Cut, TieKeys, cut_after, flag_above
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
from ..capacity import Capacity, check_capacity, check_efforts_suit
from ..exceptions import CapacityError
from ..worth import Worth, check_worth
from ._groups import cut_for_groups, draw_one_of_each
from ._worth import Limit, limited_by, worth_limit
from .efforts import Budget, budget_of, effort_k
from .promise import (
    COVER_PREVALENCE,
    TIES,
    Promise,
    check_guarantee,
    prevalence_lower_bound,
    promised_k,
    threshold_at,
    walked_k,
    warn_too_few,
    weighted_k,
)
from .threshold import CalibratedThreshold

__all__ = ["ScoredItems", "calibrate_threshold"]


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
    by_precision = worth is not None and worth.kind == "precision"
    labels = y if needs_labels or by_precision else None
    values, efforts = check_values(values, scores.size), check_efforts(efforts, scores.size)
    check_efforts_suit(capacity, efforts)
    if max_effort is not None and capacity.kind != "effort":
        raise CapacityError(
            f"max_effort belongs to Capacity.effort(...); {capacity!r} limits the number of flags."
        )
    items = ScoredItems(
        weigh(scores, values, efforts),
        keys_by_id(ids, seed=seed) if ties == "hash" else None,
        seed,
        is_rare=None if labels is None else find_rare(labels, rare_label)[0],
        weights=weights,
        max_weight=max_weight,
        groups=number_groups(groups, scores.size),
        efforts=efforts,
        has_values=values is not None,
        probabilities=scores,
    )
    return items.threshold(
        capacity,
        prevalence=prevalence,
        guarantee=guarantee,
        confidence=confidence,
        n_batches=n_batches,
        max_effort=max_effort,
        worth=worth,
    )


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


@dataclass(frozen=True)
class ScoredItems:
    """Scores to calibrate on, with what is known about their items.

    If items have values or efforts, the scores are what they are worth, and `probabilities` are the
    scores before.
    """

    scores: Floats
    tie_keys: TieKeys | None = None
    seed: int = 0
    is_rare: Mask | None = None
    weights: NDArray[np.float64] | None = None
    max_weight: float | None = None
    groups: Rows | None = None
    efforts: Doubles | None = None
    has_values: bool = False
    probabilities: Floats | None = None

    def threshold(
        self,
        capacity: Capacity,
        *,
        prevalence: Any = None,
        guarantee: str = "expected",
        confidence: float = 0.95,
        n_batches: int = 1,
        max_effort: float | None = None,
        worth: Worth | None = None,
    ) -> CalibratedThreshold:
        """Find the lowest threshold that keeps a capacity."""
        if self.scores.size == 0:
            raise ValueError("Calibration needs at least one score; got none.")
        check_guarantee(guarantee, capacity, n_batches)
        confidence = check_confidence(confidence)
        budget = self._budget(capacity, max_effort)
        self._refuse_groups_with(budget, worth)
        asked = Promise(capacity, Fraction(0), guarantee, 1 - confidence, n_batches)
        promise, walks = self._promise(asked, prevalence, budget)
        k, cut = self._cut(promise, budget, walks=walks)
        limit = Limit(k)
        if worth is not None:
            limit = worth_limit(
                worth, k, self.probabilities, self.scores, self.is_rare, promise, self.tie_keys
            )
            cut = limit.applied(cut, self.scores, k, self.tie_keys)
        is_plain = self.weights is None and self.groups is None and budget is None
        found = threshold_at(
            cut,
            k,
            self.scores,
            promise,
            self.tie_keys,
            confidence=confidence,
            seed=self.seed,
            weights=self.weights,
            knows_rate=is_plain and worth is None,
        )
        return replace(
            found,
            k=limit.k,
            **({} if budget is None else self._work_of(cut, budget)),
            has_values=self.has_values,
            has_efforts=self.efforts is not None,
            least_probability=limit.least_probability,
            limited_by=limited_by(limit, k, cut),
        )

    @cached_property
    def _drawn(self) -> Rows | None:
        """The positions of one item of each group."""
        if self.groups is None:
            return None
        return draw_one_of_each(self.scores, self.groups, self.tie_keys, seed=self.seed)

    def _budget(self, capacity: Capacity, max_effort: float | None) -> Budget | None:
        if capacity.kind != "effort":
            return None
        if self.weights is not None:
            raise ValueError(
                "sample_weight together with efforts has no exact rule. Keep each calibration item "
                "with probability sample_weight / max_weight, and calibrate on the kept items."
            )
        return budget_of(capacity, self.efforts, max_effort)

    def _promise(
        self, asked: Promise, prevalence: Any, budget: Budget | None
    ) -> tuple[Promise, bool]:
        """Return the promise with its exact ratio, and whether labels are to be walked along."""
        if budget is not None:
            return replace(asked, ratio=budget.ratio), False
        share, error, walks = prevalence, asked.error, False
        if prevalence is None and self.is_rare is not None:
            share = _share(self.is_rare, self.weights)
            covers = asked.capacity.kind == "multiple" and asked.guarantee in COVER_PREVALENCE
            walks = covers and asked.guarantee == "confident"
            if covers and asked.guarantee == "simultaneous":
                error /= 2  # the other half is spent on a lower bound of the prevalence
                known = self.is_rare if self._drawn is None else self.is_rare[self._drawn]
                n_rare = int(np.count_nonzero(known))
                share = prevalence_lower_bound(n_rare, known.size, error=error)
        promise = replace(asked, ratio=asked.capacity.as_ratio(share), error=error)
        is_estimated = isinstance(share, EstimatedShare) and not walks and self.weights is None
        if is_estimated and promise.ratio == 0 and asked.capacity.value:
            warn_too_few(promise, "needs rare items among the labels; got none")
        return promise, walks

    def _cut(self, promise: Promise, budget: Budget | None, *, walks: bool) -> tuple[int, Cut]:
        """Return how many scores may lie above the cut, and the cut."""
        walked = self.is_rare if walks else None
        if self.groups is not None and self._drawn is not None:
            cut = cut_for_groups(
                self.scores,
                self.groups,
                self._drawn,
                promise,
                self.tie_keys,
                walked=walked,
                seed=self.seed,
            )
            above = flag_above(self.scores, cut, self.tie_keys)
            return (-1 if cut == BEFORE_ALL else int(np.count_nonzero(above))), cut
        k = self._k(promise, budget, walked)
        return k, cut_after(self.scores, k, self.tie_keys)

    def _k(self, promise: Promise, budget: Budget | None, walked: Mask | None) -> int:
        if budget is not None:
            return effort_k(self.scores, budget, promise, self.tie_keys)
        if self.weights is not None:
            return weighted_k(self.scores, self.weights, promise, self.tie_keys, self.max_weight)
        if walked is not None:
            return walked_k(self.scores, walked, promise, self.tie_keys, self.seed)
        return promised_k(self.scores.size, promise)

    def _work_of(self, cut: Cut, budget: Budget) -> dict[str, Any]:
        """Return the work of the flagged items per item, what is allowed, and its bound."""
        flagged = flag_above(self.scores, cut, self.tie_keys)
        return {
            "effort_spent": float(budget.efforts[flagged].sum() / self.scores.size),
            "effort_allowed": float(budget.per_item),
            "max_effort": budget.max_effort,
        }

    def _refuse_groups_with(self, budget: Budget | None, worth: Worth | None) -> None:
        """Raise an error for what has no exact rule if items come in groups."""
        if self.groups is None:
            return
        if self.weights is not None:
            raise ValueError("sample_weight and groups cannot be combined: no rule is exact then.")
        if budget is not None:
            raise ValueError(
                "efforts and groups cannot be combined: no rule is exact then. Keep one random "
                "item of each group, and calibrate on these without groups."
            )
        if worth is not None and worth.kind == "precision" and self.is_rare is not None:
            raise ValueError(
                "A precision with labels and groups cannot be combined: the labels of a group are "
                "not independent. Keep one random item of each group, and calibrate on these."
            )


def _share(is_rare: Mask, weights: NDArray[np.float64] | None) -> EstimatedShare:
    if weights is None:
        return rare_share(is_rare)
    total = Fraction(float(weights.sum()))
    return EstimatedShare(Fraction(float(weights[is_rare].sum())) / total)
