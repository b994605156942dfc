"""Calibration scores with what is known about their items, and the cut that a promise allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.labels import EstimatedShare, rare_share
from .._core.ranking import BEFORE_ALL, Cut, TieKeys, cut_after, flag_above
from .._core.validation import check_confidence
from .._core.work import weigh
from ..capacity import Capacity
from ..exceptions import CapacityError
from ..worth import Worth
from ._choosing import check_capacity_for
from ._decisions import CalibratedThreshold
from ._described import threshold_at
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

__all__ = ["calibrate_scores"]


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
    weighed = scores if are_weighed else weigh(scores, values, efforts)
    sample = _Sample(
        weighed,
        tie_keys,
        seed,
        is_rare=is_rare,
        weights=weights,
        max_weight=max_weight,
        groups=groups,
        drawn=None if groups is None else draw_one_of_each(weighed, groups, tie_keys, seed=seed),
        budget=_check_budget(capacity, efforts, max_effort, weights),
    )
    sample.refuse_groups_with(worth)
    asked = Promise(capacity, Fraction(0), guarantee, 1 - confidence, n_batches)
    promise, walks = sample.promise(asked, prevalence)
    k, cut = sample.cut(promise, walks=walks)
    limit = Limit(k)
    if worth is not None:
        probabilities = None if are_weighed else scores
        limit = worth_limit(worth, k, probabilities, weighed, is_rare, promise, tie_keys)
        cut = limit.applied(cut, weighed, k, tie_keys)
    found = threshold_at(
        cut,
        k,
        weighed,
        promise,
        tie_keys,
        confidence=confidence,
        seed=seed,
        weights=weights,
        knows_rate=sample.is_plain and worth is None,
    )
    return replace(
        found,
        k=limit.k,
        **sample.work_of(cut),
        has_values=values is not None,
        has_efforts=efforts is not None,
        least_probability=limit.least_probability,
        limited_by=limited_by(limit, k, cut),
    )


@dataclass(frozen=True)
class _Sample:
    """Scores to calibrate on: with labels, weights, groups, or a budget of work, where given.

    `drawn` is one item of each group.
    """

    scores: Floats
    tie_keys: TieKeys | None
    seed: int
    is_rare: Mask | None = None
    weights: NDArray[np.float64] | None = None
    max_weight: float | None = None
    groups: Rows | None = None
    drawn: Rows | None = None
    budget: Budget | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the flag rate of a threshold is known from counts."""
        return self.weights is None and self.groups is None and self.budget is None

    def promise(self, asked: Promise, prevalence: Any) -> tuple[Promise, bool]:
        """Return the promise with its exact ratio, and whether labels are to be walked along."""
        if self.budget is not None:
            return replace(asked, ratio=self.budget.ratio), False
        share, error, walks = prevalence, asked.error, False
        if prevalence is None and self.is_rare is not None:
            share = _share(self.is_rare, self.weights)
            covers = asked.capacity.kind == "multiple" and asked.guarantee in COVER_PREVALENCE
            walks = covers and asked.guarantee == "confident"
            if covers and asked.guarantee == "simultaneous":
                error /= 2  # the other half is spent on a lower bound of the prevalence
                known = self.is_rare if self.drawn is None else self.is_rare[self.drawn]
                n_rare = int(np.count_nonzero(known))
                share = prevalence_lower_bound(n_rare, known.size, error=error)
        promise = replace(asked, ratio=asked.capacity.as_ratio(share), error=error)
        is_estimated = isinstance(share, EstimatedShare) and not walks and self.weights is None
        if is_estimated and promise.ratio == 0 and asked.capacity.value:
            warn_too_few(promise, "needs rare items among the labels; got none")
        return promise, walks

    def cut(self, promise: Promise, *, walks: bool) -> tuple[int, Cut]:
        """Return how many scores may lie above the cut, and the cut."""
        walked = self.is_rare if walks else None
        if self.groups is not None and self.drawn is not None:
            cut = cut_for_groups(
                self.scores,
                self.groups,
                self.drawn,
                promise,
                self.tie_keys,
                walked=walked,
                seed=self.seed,
            )
            above = flag_above(self.scores, cut, self.tie_keys)
            return (-1 if cut == BEFORE_ALL else int(np.count_nonzero(above))), cut
        k = self._k(promise, walked)
        return k, cut_after(self.scores, k, self.tie_keys)

    def _k(self, promise: Promise, walked: Mask | None) -> int:
        if self.budget is not None:
            return effort_k(self.scores, self.budget, promise, self.tie_keys)
        if self.weights is not None:
            return weighted_k(self.scores, self.weights, promise, self.tie_keys, self.max_weight)
        if walked is not None:
            return walked_k(self.scores, walked, promise, self.tie_keys, self.seed)
        return promised_k(self.scores.size, promise)

    def work_of(self, cut: Cut) -> dict[str, Any]:
        """Return the work of the flagged items per item, what is allowed, and its bound."""
        if self.budget is None:
            return {}
        flagged = flag_above(self.scores, cut, self.tie_keys)
        return {
            "effort_spent": float(self.budget.efforts[flagged].sum() / self.scores.size),
            "effort_allowed": float(self.budget.per_item),
            "max_effort": self.budget.max_effort,
        }

    def refuse_groups_with(self, worth: Worth | None) -> None:
        """Raise an error for what has no exact rule if items come in groups."""
        if self.groups is None:
            return
        if self.weights is not None:
            raise ValueError("sample_weight and groups cannot be combined: no rule is exact then.")
        if self.budget is not None:
            raise ValueError(
                "efforts and groups cannot be combined: no rule is exact then. Keep one random "
                "item of each group, and calibrate on these without groups."
            )
        if worth is not None and worth.kind == "precision" and self.is_rare is not None:
            raise ValueError(
                "A precision with labels and groups cannot be combined: the labels of a group are "
                "not independent. Keep one random item of each group, and calibrate on these."
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


def _share(is_rare: Mask, weights: NDArray[np.float64] | None) -> EstimatedShare:
    if weights is None:
        return rare_share(is_rare)
    total = Fraction(float(weights.sum()))
    return EstimatedShare(Fraction(float(weights[is_rare].sum())) / total)
