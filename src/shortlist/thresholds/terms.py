"""What a rule promises, and the thresholds that keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Floats
from .._core.intervals import Interval, clopper_pearson_lower
from .._core.ranking import Cuts, TieKeys, cut_after, rank, stricter
from .._core.validation import check_confidence, warn_user
from ..capacity import Capacity, exact
from ..worth import Worth
from ._bands import simultaneous_interval
from ._unknown_prevalence import confident_k_by_walking
from ._worth import Limit, worth_limit
from .efforts import Budget, budget_of, heaviest_k, weighted_k
from .guarantees import Place, plug_in_k, rate_above
from .promise import (
    COVER_PREVALENCE,
    FOLD_GUARANTEES,
    Promise,
    check_guarantee,
    place_in_folds,
    place_of,
    warn_too_few,
)
from .samples import CalibrationSample, ReferencePrevalence
from .threshold import CalibratedThreshold

__all__ = ["Terms", "rate_interval"]

_UNKNOWN_PREVALENCE = ReferencePrevalence()
_UNKNOWN_RATE = Interval(np.nan, np.nan)
_MANY_TIED = 0.05  # share of the items that tie with a threshold


@dataclass(frozen=True)
class Terms:
    """What a rule promises, and what its numbers refer to.

    Attributes
    ----------
    guarantee, confidence, n_batches : str, float, int
        As for :func:`~shortlist.calibrate_threshold`.
    reference : ReferencePrevalence
        What a capacity in multiples of the prevalence refers to.
    seed : int
        Key of the hash.
    max_effort, worth
        As for :func:`~shortlist.calibrate_threshold`.
    """

    guarantee: str = "expected"
    confidence: float = 0.95
    reference: ReferencePrevalence = _UNKNOWN_PREVALENCE
    seed: int = 0
    n_batches: int = 1
    max_effort: float | None = None
    worth: Worth | None = None

    def thresholds(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, confidence: float
    ) -> list[CalibratedThreshold]:
        """Calibrate one threshold for each sample; several of them keep the capacity together."""
        if len(samples) == 1:
            return [self.threshold(samples[0], capacity, confidence)]
        if self.guarantee not in FOLD_GUARANTEES:
            raise ValueError(
                f"guarantee={self.guarantee!r} needs one model with one threshold, but each fold "
                "has its own. Hold items out with cv=0.5, or recalibrate."
            )
        shared = confidence
        if self.worth is not None:  # each fold keeps its precision by itself (Bonferroni)
            shared = 1 - (1 - confidence) / len(samples)
        terms = self._of_all_folds(samples, capacity)
        found = [_Calibration(terms, each, capacity, shared, in_folds=True) for each in samples]
        thresholds = [replace(each.threshold, confidence=confidence) for each in found]
        _warn_if_too_few(found[0].promise, samples, thresholds)
        return thresholds

    def _of_all_folds(self, samples: Sequence[CalibrationSample], capacity: Capacity) -> Terms:
        """Return the terms with the largest effort of any item: a fold may have few or none."""
        if capacity.kind != "effort":
            return self
        given = [each.efforts for each in samples if each.efforts is not None]
        budget = budget_of(capacity, np.concatenate(given) if given else None, self.max_effort)
        return replace(self, max_effort=budget.max_effort)

    def threshold(
        self, sample: CalibrationSample, capacity: Capacity, confidence: float
    ) -> CalibratedThreshold:
        """Calibrate one threshold, and warn of too few items and of misleading scores."""
        found = _Calibration(self, sample, capacity, confidence)
        _warn_if_too_few(found.promise, [sample], [found.threshold])
        if sample.out_of_bag:
            _warn_at_the_bottom(sample.scores, found.threshold.value)
        return found.threshold


class _Calibration:
    """The way from a sample to a threshold: the promise, the cuts, a worth, and their description.

    With `in_folds`, the threshold is one of several of which a hash picks one for each item.
    """

    def __init__(
        self,
        terms: Terms,
        sample: CalibrationSample,
        capacity: Capacity,
        confidence: float,
        *,
        in_folds: bool = False,
    ) -> None:
        check_guarantee(terms.guarantee, capacity, terms.n_batches)
        self.terms, self.sample, self.capacity, self.in_folds = terms, sample, capacity, in_folds
        self.confidence = check_confidence(confidence)
        self.budget = self._find_budget()
        self._refuse_groups()
        self.promise = self._find_promise()

    # --- the promise ----------------------------------------------------------------------------

    @property
    def _covers_prevalence(self) -> bool:
        covers = self.capacity.kind == "multiple" and self.terms.guarantee in COVER_PREVALENCE
        return covers and self.terms.reference.is_estimated

    @property
    def _walks(self) -> bool:
        """Whether labels are walked along, which covers an unknown prevalence at less cost."""
        by_labels = self.sample.is_rare is not None and self.terms.guarantee == "confident"
        return self._covers_prevalence and by_labels and not self.in_folds

    @property
    def _tests_precision(self) -> bool:
        """Whether a precision must be reached by labelled items."""
        worth = self.terms.worth
        return worth is not None and worth.kind == "precision" and self.sample.is_rare is not None

    def _find_promise(self) -> Promise:
        """Return the promise with its exact ratio."""
        terms, error = self.terms, 1 - self.confidence
        if self.budget is not None:
            ratio = self.budget.ratio
        elif self._covers_prevalence and not self._walks:
            error /= 2  # the other half is spent on a lower bound of the prevalence
            ratio = self.capacity.as_ratio(terms.reference.lower_bound(error=error))
        else:
            ratio = self.capacity.as_ratio(terms.reference.value)
        return Promise(self.capacity, ratio, terms.guarantee, error, terms.n_batches)

    def _find_budget(self) -> Budget | None:
        if self.capacity.kind != "effort":
            return None
        if self.sample.weights is not None:
            raise ValueError(
                "sample_weight together with efforts has no exact rule. Keep each calibration item "
                "with probability sample_weight / max_weight, and calibrate on the kept items."
            )
        return budget_of(self.capacity, self.sample.efforts, self.terms.max_effort)

    def _refuse_groups(self) -> None:
        """Raise an error for what has no exact rule if items come in groups."""
        if self.sample.groups is None:
            return
        for name, is_given in (
            ("sample_weight", self.sample.weights is not None),
            ("efforts", self.budget is not None),
            ("guarantee='next-batch'", self.terms.guarantee == "next-batch"),
            ("A precision with labels", self._tests_precision),
        ):
            if is_given:
                raise ValueError(
                    f"{name} and groups cannot be combined: no rule is exact then. Keep one random "
                    "item of each group, and calibrate on these without groups."
                )

    # --- the cuts -------------------------------------------------------------------------------

    def _place(self, own: CalibrationSample) -> Place:
        """Return the place of the threshold among the scores of a sample of single items."""
        promise, n = self.promise, own.scores.size
        if promise.ratio == 0:
            return Place(-1)
        if own.weights is not None:
            return Place(weighted_k(own, promise))
        if self._walks:
            return Place(self._walked_k(own))
        if self.budget is not None and promise.guarantee == "plug-in":
            return Place(self._plug_in_work(own))
        if self.budget is not None and promise.guarantee == "next-batch":
            promise = self.budget.as_flags(promise)
        place = place_in_folds(n, promise) if self.in_folds else place_of(n, promise)
        return place if self._draws_lots(own) else Place(place.k)

    def _draws_lots(self, own: CalibrationSample) -> bool:
        """Whether some of the items between two places can be flagged.

        Not without keys, nor if a precision is promised, which is tested at whole places. If rows
        that are alike share a lot, the rate between the places is right on average only.
        """
        on_average = self.promise.guarantee in ("plug-in", "expected")
        own_lots = own.keys_of is not None and (on_average or not own.share_lots)
        return own_lots and not self._tests_precision

    def _walked_k(self, own: CalibrationSample) -> int:
        """Cover the unknown prevalence by walking the labelled ranking."""
        assert own.is_rare is not None
        order, steps = rank(own.scores, own.keys_of)
        is_rare, b = own.is_rare[order], exact(self.capacity.value)
        lots = own.lots(self.terms.seed)[order][is_rare]
        return confident_k_by_walking(is_rare, steps, b, error=self.promise.error, lots=lots)

    def _plug_in_work(self, own: CalibrationSample) -> int:
        """Spend at most the budget on the calibration items, unless one could take too much."""
        assert self.budget is not None
        assert own.efforts is not None
        budget, n = self.budget, own.scores.size
        if budget.per_item * (n + 1) < exact(budget.max_effort):
            return -1
        return heaviest_k(own, own.efforts, budget.per_item * n)

    def _single_items(self) -> CalibrationSample:
        """Return a sample of independent items that count one flag each."""
        if self.sample.groups is not None:
            return self.sample.one_of_each_group(self.terms.seed)
        if self.budget is not None and self.terms.guarantee not in ("plug-in", "next-batch"):
            return self.budget.thinned(self.sample, self.terms.seed)
        return self.sample

    def _find_cuts(self) -> tuple[int, Cuts]:
        """Return how many scores lie above, and the cuts at both ends of the place below them.

        The items of a group are alike; G groups say much less than as many items as they have. The
        promises are about an item that is drawn at random from a new group, and rest on one item of
        each group, drawn by lot. The rate of all items is the same if the sizes of groups have
        nothing to do with their scores. If large groups are the more suspicious ones it is higher.
        Therefore no more than the capacity is flagged among the calibration items themselves.
        """
        own = self._single_items()
        place = self._place(own)
        if self.sample.groups is not None and self.terms.guarantee == "plug-in" and place.k >= 0:
            place, own = Place(plug_in_k(self.sample.scores.size, self.promise.ratio)), self.sample
        upper = cut_after(own.scores, place.k, own.keys_of)
        lower = cut_after(own.scores, place.k + 1, own.keys_of) if place.share else upper
        if self.sample.groups is not None and place.k < own.scores.size:
            k = plug_in_k(self.sample.scores.size, self.promise.ratio)
            at_most = cut_after(self.sample.scores, k, self.sample.keys_of)
            upper, lower = stricter(upper, at_most), stricter(lower, at_most)
        cuts = Cuts(upper, lower, place.share)
        if own is self.sample or place.k < 0:
            return place.k, cuts
        return int(np.count_nonzero(cuts.divide(self.sample.scores, self.sample.keys_of)[0])), cuts

    # --- the threshold --------------------------------------------------------------------------

    @cached_property
    def threshold(self) -> CalibratedThreshold:
        """The lowest threshold that keeps the promise, with all that is known about it."""
        sample, terms = self.sample, self.terms
        if not sample.scores.size and not self.in_folds:
            raise ValueError("Calibration needs at least one score; got none.")
        k, found = self._find_cuts()
        limit, cuts = Limit(k), found
        if terms.worth is not None:
            limit = worth_limit(terms.worth, k, sample, self.promise)
            cuts = limit.applied(found, k, sample)
        by_worth = cuts != found or limit.least_probability > 0
        above, between = cuts.divide(sample.scores, sample.keys_of)

        def flagged_part(of: Doubles) -> float:
            return float(of[above].sum() + cuts.share * of[between].sum())

        flagged = float(np.count_nonzero(above) + cuts.share * np.count_nonzero(between))
        total = float(max(sample.scores.size, 1))
        if sample.weights is not None:
            flagged, total = flagged_part(sample.weights), float(sample.weights.sum())
        work: dict[str, Any] = {}
        if self.budget is not None and sample.efforts is not None:
            work = {
                "effort_spent": flagged_part(sample.efforts) / total,
                "effort_allowed": float(self.budget.per_item),
                "max_effort": self.budget.max_effort,
            }
        return CalibratedThreshold(
            value=cuts.upper.value,
            k=limit.k,
            n_calibration=sample.scores.size,
            flagged_fraction=flagged / total,
            interval=self._interval(Place(k, cuts.share), int(np.count_nonzero(above))),
            capacity_fraction=float(self.promise.ratio),
            guarantee=terms.guarantee,
            confidence=self.confidence,
            ties="exclude" if sample.keys_of is None else "hash",
            tie_key=cuts.upper.key,
            seed=terms.seed,
            lower_value=cuts.lower.value,
            lower_tie_key=cuts.lower.key,
            share=cuts.share,
            has_values=sample.has_values,
            has_efforts=sample.efforts is not None,
            least_probability=limit.least_probability,
            limited_by="worth" if by_worth else "capacity",
            **work,
        )

    def _interval(self, place: Place, n_flagged: int) -> Interval:
        sample = self.sample
        is_plain = sample.weights is None and sample.groups is None and self.budget is None
        if not is_plain or self.terms.worth is not None:
            return _UNKNOWN_RATE
        return rate_interval(place, n_flagged, sample.scores.size, self.promise, sample.keys_of)


def rate_interval(
    place: Place, n_flagged: int, n: int, promise: Promise, tie_keys: TieKeys | None
) -> Interval:
    """Bound the true flag rate R of a threshold, for every distribution of the scores S.

    Above: R is at most what it is for the upper-tail probabilities of scores with ties broken at
    random, whose law is known.

    Below, without lots: the bound L(j) of Clopper and Pearson at the number j of scores above t,
    although t itself depends on the scores. Proof: j is at most k, so the bound can fail only where
    P(S > t) < L(k); let a be the lowest such value. If t = a, the bound fails at a. If t > a, all
    k + 1 scores from t on lie above a, and the bound fails at a as well. At the fixed value a it
    fails with at most the allowed probability. (If there is no lowest value, take limits.) Lots
    only add to the rate.
    """
    if place.k >= n and tie_keys is not None:
        return Interval(1.0, 1.0)  # scores of minus infinity are flagged, too
    if n == 0:
        return Interval(0.0, place.share)
    if promise.guarantee == "simultaneous":
        return simultaneous_interval(place, n_flagged, n, error=promise.error)
    tail = promise.error / 2
    low = float(clopper_pearson_lower(n_flagged, n, error=tail))
    return Interval(low, rate_above(place, n, error=tail))


def _warn_if_too_few(
    promise: Promise,
    samples: Sequence[CalibrationSample],
    thresholds: Sequence[CalibratedThreshold],
) -> None:
    """Warn if not even the highest score of all folds together is flagged for sure."""
    n_places = sum(each.k + 1 + each.share for each in thresholds)
    is_limited = any(each.limited_by == "worth" for each in thresholds)
    if n_places >= 1 or is_limited or not promise.capacity.value:
        return
    sizes = [
        each.scores.size if each.groups is None else np.unique(each.groups).size for each in samples
    ]
    unit = "calibration scores" if samples[0].groups is None else "calibration groups"
    folds = f" in {len(samples)} folds" if len(samples) > 1 else ""
    by_lot = float(np.mean([each.share for each in thresholds]))
    warn_too_few(promise, f"{unit} than {sum(sizes)}{folds}", by_lot)


def _warn_at_the_bottom(scores: Floats, threshold: float) -> None:
    """Warn of a threshold at the lowest score, which fewer items will have with all trees."""
    tied = float(np.mean(scores == threshold))
    if threshold == scores.min() and tied > _MANY_TIED:
        warn_user(
            f"The threshold is the lowest out-of-bag score, which {tied:.0%} of the items have. "
            "With all trees, fewer items have this score, and more items than the capacity may be "
            "flagged. Use larger leaves (min_samples_leaf), another learner, or cv=0.5.",
            UserWarning,
        )
