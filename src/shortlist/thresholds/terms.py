"""What a rule promises, and the way from a sample of scores to a threshold that keeps it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.arrays import Mask, TieKeys
from .._core.formatting import percent
from .._core.ids import lots_of
from .._core.intervals import Interval
from .._core.labels import ReferencePrevalence
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cuts, cut_after, dense_places, flag_above, rank
from .._core.validation import check_confidence, warn_user
from ..capacity import Capacity, exact, largest_effort
from ..worth import Worth
from .guarantees import Place, confident_k_by_walking, plug_in_k
from .precision import worth_limit
from .promise import (
    Guarantee,
    Promise,
    check_folds,
    check_guarantee,
    guarantee_of,
    place_of,
    rate_interval,
    warn_too_few,
)
from .samples import CalibrationSample
from .threshold import CalibratedThreshold

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

    @property
    def kind(self) -> Guarantee:
        """The guarantee, with all that is known about it."""
        return guarantee_of(self.guarantee)

    def check(self, capacity: Capacity, *, labelled: bool, grouped: bool) -> None:
        """Raise an error for what cannot be promised about items with labels or groups."""
        check_guarantee(self.guarantee, capacity, self.n_batches)
        refused = self.refuses_groups(capacity, labelled=labelled)
        if grouped and refused is not None:
            raise ValueError(
                f"{refused} and groups cannot be combined: no rule is exact then. Keep one random "
                "item of each group, and calibrate on these without groups."
            )
        tests_precision = labelled and self.promises_precision
        if self.kind.over_time and (self.estimates(capacity) or tests_precision):
            raise ValueError(
                f"guarantee={self.guarantee!r} needs the stated prevalence of a multiple, and no "
                f"promised precision; got {self.worth if tests_precision else capacity}. Use "
                "Capacity.fraction(...), or guarantee='confident'."
            )

    def estimates(self, capacity: Capacity) -> bool:
        """Whether a capacity refers to a prevalence that was counted in labels."""
        return capacity.kind == "multiple" and self.reference.is_estimated

    def refuses_groups(self, capacity: Capacity, *, labelled: bool) -> str | None:
        """Return what has no exact rule if items come in groups; None if all has one."""
        if capacity.kind == "effort":
            return "efforts"
        if self.kind.of_batches or self.kind.over_time:
            return f"guarantee={self.guarantee!r}"
        return "A precision with labels" if labelled and self.promises_precision else None

    @property
    def promises_precision(self) -> bool:
        """Whether a least precision is asked for."""
        return self.worth is not None and self.worth.kind == "precision"

    def thresholds(
        self, samples: Sequence[CalibrationSample], capacity: Capacity
    ) -> list[CalibratedThreshold]:
        """Calibrate one threshold for each sample; several of them keep the capacity together."""
        found = self._calibrations(samples, capacity)
        thresholds = [replace(each.threshold, confidence=self.confidence) for each in found]
        warn_too_few(found[0].promise, thresholds, samples)
        if samples[0].out_of_bag:
            _warn_at_the_bottom(samples[0], thresholds[0].value)
        return thresholds

    def flags_without_own(
        self, samples: Sequence[CalibrationSample], capacity: Capacity, tie_keys: Sequence[TieKeys]
    ) -> Mask:
        """Flag the items of all samples, each by the threshold that the others of its own give.

        `tie_keys` are those of all items; a sample without ties may have none.
        """
        pairs = zip(self._calibrations(samples, capacity), tie_keys, strict=True)
        return np.concatenate([found.flags_without_own(keys) for found, keys in pairs])

    def _calibrations(
        self, samples: Sequence[CalibrationSample], capacity: Capacity
    ) -> list[_Calibration]:
        terms, in_folds = self, len(samples) > 1
        check_folds(self.guarantee, [each.scores.size for each in samples])
        if self.worth is not None:  # each fold keeps its precision by itself (Bonferroni)
            terms = replace(self, confidence=1 - (1 - self.confidence) / len(samples))
        if capacity.kind == "effort":  # a fold may have few efforts, or none
            efforts = [each.efforts for each in samples if each.efforts is not None]
            every = np.concatenate(efforts) if efforts else None
            terms = replace(terms, max_effort=largest_effort(capacity, every, self.max_effort))
        return [_Calibration(terms, each, capacity, in_folds) for each in samples]


class _Calibration:
    r"""The way from a sample to a threshold: the promise, the cuts, a worth, and their description.

    With `in_folds`, the threshold is one of several of which a hash picks one for each item.

    *Work.* A flagged item costs its effort, any other nothing, and no item takes more than E, the
    `max_effort`. The mean cost of a threshold, :math:`E[e \cdot 1\{\text{flagged}\}]`, must stay
    within the budget per item, c. Thinning makes this a promise about a number of flags: keep each
    calibration item with probability e / E, by a lot of its own, and put the others below all
    scores. The mean cost is :math:`E \cdot P(\text{kept and flagged})`, so a threshold that keeps
    the rate c / E on the thinned sample keeps the budget, under every guarantee about a rate. In a
    batch, every flag counts with the largest effort.

    *Groups.* The items of a group are alike; G groups say much less than as many items as they
    have. The promises are about an item that is drawn at random from a new group, and rest on one
    item of each group, drawn by lot. The rate of all items is the same if the sizes of groups have
    nothing to do with their scores. If large groups are the more suspicious ones it is higher.
    Therefore the lots keep a lower level then: where the highest scores make up the capacity among
    all calibration items, the share of an average group that lies there, if that is less. A lower
    level flags less, so the promises stay exact; and in the long run, the rate of all items is
    within the capacity, too.
    """

    def __init__(
        self, terms: Terms, sample: CalibrationSample, capacity: Capacity, in_folds: bool
    ) -> None:
        labelled = sample.is_rare is not None
        terms.check(capacity, labelled=labelled, grouped=sample.groups is not None)
        if not (sample.scores.size or in_folds or capacity.value == 0):
            raise ValueError("Calibration needs at least one score; got none.")
        self.terms, self.sample, self.capacity = terms, sample, capacity
        self.of_work = capacity.kind == "effort"
        self.tests_precision = labelled and terms.promises_precision
        covers_prevalence = terms.estimates(capacity) and terms.kind.surely
        # Labels can be walked along, which covers an unknown prevalence at less cost.
        by_labels = labelled and not (terms.kind.at_once or in_folds)
        self.walks = covers_prevalence and by_labels
        self.promise = self._find_promise(covers_prevalence and not by_labels, in_folds)

    def _find_promise(self, bounds_prevalence: bool, in_folds: bool) -> Promise:
        """Return the promise with its exact ratio, about flags."""
        terms, capacity = self.terms, self.capacity
        error = 1 - check_confidence(terms.confidence)
        if self.of_work:
            largest = exact(terms.max_effort)
            ratio = min(capacity.effort_per_item() / largest, Fraction(1))
            if terms.kind.of_batches:
                capacity = capacity.as_flags(largest)
        elif bounds_prevalence:
            error /= 2  # the other half is spent on a lower bound of the prevalence
            ratio = capacity.as_ratio(terms.reference.lower_bound(error=error))
        else:
            ratio = capacity.as_ratio(terms.reference.value)
        return Promise(capacity, ratio, terms.kind, error, terms.n_batches, in_folds)

    # --- the cuts -------------------------------------------------------------------------------

    def _single_items(self) -> CalibrationSample:
        """Return a sample of independent items that count one flag each."""
        if self.sample.groups is not None:
            return self.sample.one_of_each_group(self.terms.seed)
        if self.of_work and not self.terms.kind.of_batches:
            return self.sample.thinned(self.terms.max_effort, self.terms.seed)
        return self.sample

    def _place(self, own: CalibrationSample, n: int) -> Place:
        """Return the place of the threshold among n scores of a sample of single items."""
        if self.promise.ratio == 0:
            return Place(-1)
        part = self._part_of_capacity()
        if self.walks:
            return Place(self._walked_k(own, part))
        place = place_of(n, replace(self.promise, ratio=part * self.promise.ratio))
        # A precision is tested at whole places.
        return place if self._draws_lots(own) and not self.tests_precision else Place(place.k)

    def _draws_lots(self, own: CalibrationSample) -> bool:
        """Whether some of the items between two places can be flagged.

        Not without keys. If rows that are alike share a lot, the rate between the places is right
        on average only.
        """
        on_average = not self.promise.guarantee.surely
        return own.keys_of is not None and (on_average or own.keyed_by_ids)

    def _walked_k(self, own: CalibrationSample, part: Fraction) -> int:
        """Cover the unknown prevalence by walking the labelled ranking."""
        assert own.is_rare is not None
        order, steps = rank(own.scores, own.keys_of)
        is_rare, b = own.is_rare[order], part * exact(self.capacity.value)
        # Lots of their own: those of the items may have drawn them from groups, or by weight.
        lots = lots_of(own.lots(self.terms.seed))[order][is_rare]
        return confident_k_by_walking(is_rare, steps, b, error=self.promise.error, lots=lots)

    def _find_cuts(self) -> tuple[Place, Cuts]:
        """Return the place of the threshold, and the cuts at both of its ends."""
        sample, own, at_most = self.sample, self._single_items(), AFTER_ALL
        place = self._place(own, own.scores.size)
        if sample.groups is not None and self.terms.kind.of_sample:
            k = plug_in_k(sample.scores.size, self.promise.ratio)
            at_most = cut_after(sample.scores, k, sample.keys_of)
        upper = cut_after(own.scores, place.k, own.keys_of)
        lower = cut_after(own.scores, place.k + 1, own.keys_of) if place.share else upper
        return place, Cuts(upper, lower, place.share).within(at_most)

    def _part_of_capacity(self) -> Fraction:
        """Return which part of the capacity large groups leave; all of it if sizes are equal.

        At the capacity of all items, the share of an average group as a part of that of all items.
        """
        sample, n = self.sample, self.sample.scores.size
        if sample.groups is None or self.terms.kind.of_sample:
            return Fraction(1)
        _, units, sizes = np.unique(sample.groups, return_inverse=True, return_counts=True)
        if np.unique(sizes).size < 2:
            return Fraction(1)
        places, last = dense_places(sample.scores, sample.sorting_keys), n * self.promise.ratio
        above = places <= np.sort(places)[math.ceil(last) - 1]  # with all that is tied there
        share = Fraction(float((np.bincount(units, above) / sizes).mean()))
        return min(share * n / int(above.sum()), Fraction(1))

    # --- each item by the others ----------------------------------------------------------------

    def flags_without_own(self, tie_keys: TieKeys) -> Mask:
        """Flag each item by the threshold that the items of all other groups would give.

        An item is above place k + 1 of the others if at most k of them come before it, or are tied
        with it. What large groups leave of the capacity is that of all groups. Labels make
        thresholds that this does not find: where a precision is tested or an unknown prevalence
        covered by them, the items are flagged by the threshold of all of them.
        """
        sample = self.sample
        by_cap = sample.groups is not None and self.terms.kind.of_sample
        if self.walks or self.tests_precision or by_cap:
            return self.threshold.flag_with_keys(sample.scores, tie_keys)
        own = self._single_items()
        pairs = [(each.scores, each.sorting_keys) for each in (sample, own)]
        scores, keys = (np.concatenate(each) for each in zip(*pairs, strict=True))
        items, others = np.split(dense_places(scores, keys), [sample.scores.size])
        mine = others  # that of each item's group
        if sample.groups is not None:
            mine = others[np.unique(sample.groups, return_inverse=True)[1]]
        n_before = np.searchsorted(np.sort(others), items, side="right")
        n_before = n_before - (mine <= items)
        k, share = self._place(own, others.size - 1)
        flagged = n_before <= k
        if share:
            drawn = np.flatnonzero(n_before == k + 1)
            flagged[drawn] = lots_of(tie_keys(drawn)) < share
        if sample.keys_of is None:
            flagged &= sample.scores > -np.inf
        if self.terms.worth is not None:
            limit = worth_limit(self.terms.worth, k, sample, self.promise)
            flagged &= flag_above(sample.scores, limit, sample.keys_of)
        return flagged

    # --- the threshold --------------------------------------------------------------------------

    @property
    def threshold(self) -> CalibratedThreshold:
        """The lowest threshold that keeps the promise, with all that is known about it."""
        sample, worth = self.sample, self.terms.worth
        place, found = self._find_cuts()
        cuts, has_law = found, sample.groups is None and not self.of_work
        k = place.k if has_law else _n_above(found, sample)
        if worth is not None:
            cuts = found.within(worth_limit(worth, k, sample, self.promise))
            k = k if cuts == found else _n_above(cuts, sample)
        above, between = cuts.divide(sample.scores, sample.keys_of)
        known: dict[str, Any] = {"k": k}
        if worth is not None or not has_law:
            known["interval"] = _UNKNOWN_RATE
        if self.of_work and sample.efforts is not None:
            spent = sample.efforts[above].sum() + cuts.share * sample.efforts[between].sum()
            known["effort_spent"] = float(spent) / max(sample.scores.size, 1)
            known["max_effort"] = self.terms.max_effort
        return described(
            self.promise,
            place,
            cuts,
            (sample.scores.size, int(np.count_nonzero(above)), int(np.count_nonzero(between))),
            confidence=self.terms.confidence,
            ties="exclude" if sample.keys_of is None else "hash",
            seed=self.terms.seed,
            has_values=sample.has_values,
            has_efforts=sample.efforts is not None,
            limited_by="capacity" if cuts == found else "worth",
            **known,
        )


def _n_above(cuts: Cuts, sample: CalibrationSample) -> int:
    """Return how many scores lie above a threshold; -1 if nothing is flagged for sure."""
    if cuts.upper == BEFORE_ALL:
        return -1
    return int(np.count_nonzero(cuts.divide(sample.scores, sample.keys_of)[0]))


def described(
    promise: Promise, place: Place, cuts: Cuts, counts: tuple[int, int, int], **known: Any
) -> CalibratedThreshold:
    """Return the threshold at a place among n scores, with all that is known about it.

    `counts` are the scores: all, those above the threshold, and those that lots decide about.
    """
    n, n_above, n_between = counts
    if "interval" not in known:
        known["interval"] = rate_interval(
            place, n_above, n, promise, hashed=known["ties"] == "hash"
        )
    return CalibratedThreshold(
        value=cuts.upper.value,
        n_calibration=n,
        flagged_fraction=(n_above + cuts.share * n_between) / max(n, 1),
        capacity_fraction=float(promise.ratio),
        guarantee=promise.guarantee.name,
        tie_key=cuts.upper.key,
        lower_value=cuts.lower.value,
        lower_tie_key=cuts.lower.key,
        share=cuts.share,
        **({"k": place.k} | known),
    )


def _warn_at_the_bottom(sample: CalibrationSample, threshold: float) -> None:
    """Warn of a threshold at the lowest score, which fewer items will have with all trees."""
    tied = float(np.mean(sample.scores == threshold))
    if threshold == sample.scores.min() and tied > _MANY_TIED:
        warn_user(
            f"The threshold is the lowest out-of-bag score, which {percent(tied)} of the items "
            "have. With all trees, fewer items have this score, and more items than the capacity "
            "may be flagged. Use larger leaves (min_samples_leaf), another learner, or cv=0.5.",
            UserWarning,
        )
