"""The rule that decides about rows: what calibration learns.

A rule has a threshold for the model of each fold, or a single one, and where segments have
capacities also one for each segment. It gets scores and what is known about the rows, and returns
decisions. It keeps its calibration samples, from which a rule for another capacity can be made. A
rule never changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask, Rows, TieKeys
from .._core.ids import tie_keys_of
from .._core.intervals import Interval, clopper_pearson_lower
from .._core.probing import probe_seed
from .._core.ranking import as_calibrated, check_scores, keys_within, lift, weigh
from .._core.scoring import Scores, n_rows
from .._core.validation import warn_user
from .._core.work import check_max_effort
from ..capacity import Capacity, check_capacity, check_efforts_suit
from ..exceptions import InsufficientCalibrationWarning
from ..worth import Worth
from .guarantees import Place, tail_mean
from .lists import Candidates, Selection, check_act, tiers_of
from .precision import CommonScores
from .samples import CalibrationSample, RowFacts, SegmentCapacities
from .terms import Terms
from .threshold import CalibratedThreshold, check_as_calibrated

# Without a capacity for all items, as many may be flagged as the segments allow.
_EVERYTHING, _NOTHING = Capacity.count(1, per=1), Capacity.count(0, per=1)
_NO_PROBES = Fraction(0)
_ALL = -1  # in place of the number of a segment


@dataclass(frozen=True)
class Decisions:
    """Decisions about items, with everything they were made from.

    Attributes
    ----------
    flagged : ndarray of bool, shape (n_items,)
        True where the item is to be followed up.
    scores : ndarray of shape (n_items,)
        Higher is more suspicious.
    thresholds : ndarray of shape (n_items,)
        What each score had to exceed.
    by_class : ndarray of shape (n_items, n_classes) or None
        Scores of every class, when there are more than two.
    tie_keys : ndarray of shape (n_items,) or None
        With hashed ties, the key that decides about an item on its threshold: the lower, the
        sooner it is flagged.
    acted : ndarray of bool, shape (n_items,), or None
        The items to act on at once; None if there is no such tier.
    """

    flagged: Mask
    scores: Floats
    thresholds: Floats
    by_class: Floats | None = None
    keys_of: TieKeys | None = field(default=None, repr=False)
    acted: Mask | None = None

    @property
    def tiers(self) -> NDArray[np.str_]:
        """What to do with each item: "act" at once, "review" what else is flagged, or "pass"."""
        return tiers_of(self.flagged, self.acted)

    @cached_property
    def tie_keys(self) -> NDArray[np.float64] | None:
        """The tie key of each item, hashed when it is asked for; None if ties are left out."""
        return None if self.keys_of is None else self.keys_of(np.arange(self.flagged.size))


class Rule:
    """What decides after a fit: thresholds, with the capacity and the samples they come from.

    Attributes
    ----------
    capacity : Capacity or None
        For all items together; None where only segments have capacities.
    terms : Terms
        Guarantee, confidence and reference prevalence.
    samples : list of CalibrationSample
        One for each model that decides; one alone is for the mean score of all models.
    calibrations : list of CalibratedThreshold
        One for each sample.
    segments : SegmentCapacities or None
        Capacities of segments.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.thresholds.rules import Rule
    >>> from shortlist.thresholds.samples import CalibrationSample
    >>> from shortlist.thresholds.terms import Terms
    >>> rule = Rule([CalibrationSample(np.arange(100.0))], Capacity.fraction(0.1), Terms())
    >>> rule.calibrations[0].value
    90.0
    >>> Rule(rule.samples, Capacity.fraction(0.2), Terms()).calibrations[0].value
    80.0
    """

    def __init__(
        self,
        samples: Sequence[CalibrationSample],
        capacity: Capacity | None,
        terms: Terms,
        segments: SegmentCapacities | None = None,
    ) -> None:
        if segments is None or capacity is not None:
            check_capacity(capacity)
        self.samples, self.capacity, self.terms = list(samples), capacity, terms
        self.segments = segments
        shared = replace(terms, confidence=self._shared_confidence())
        self.calibrations: list[CalibratedThreshold] = []  # none yet, where segments come first
        self._by_segment = [
            (code, self._segment_thresholds(shared, name, code, limit))
            for code, name, limit in self._limited
        ]
        self.calibrations = self._overall_thresholds(shared)

    @property
    def _limited(self) -> list[tuple[int, Any, Capacity]]:
        return [] if self.segments is None else self.segments.limited

    # --- deciding -------------------------------------------------------------------------------

    def fold_of(self, facts: RowFacts) -> Rows | None:
        """Return the number of the model that judges each row, by a hash; None if there is one."""
        if len(self.samples) == 1:
            return None
        picks = self.fold_keys(facts)(np.arange(n_rows(facts.X)))
        return (picks * len(self.samples)).astype(np.intp)

    def fold_keys(self, facts: RowFacts) -> TieKeys:
        """Return the numbers that pick the model of a row: by its id, or by the row itself.

        Rows of groups may be equal. Such rows lie in the fold that their model has not seen.
        """
        by_row = self.samples[0].groups is not None
        return keys_of(replace(facts, ids=None) if by_row else facts, self.terms.seed + 1)

    def decide(
        self,
        scores: Scores,
        facts: RowFacts,
        fold_of: Rows | None = None,
        act: float | None = None,
    ) -> Decisions:
        """Decide about each row on its own, by its score and the threshold of its fold."""
        keys, rare = self._keys_as_calibrated(facts), check_scores(scores.rare)
        if facts.efforts is not None and self.max_effort is not None:
            check_max_effort(self.max_effort, facts.efforts)
        rare = as_calibrated(weigh(rare, facts.values, facts.efforts), self.precision)
        flagged, thresholds = np.ones(rare.size, dtype=bool), np.full(rare.size, -np.inf)
        for rows, found in self._limits_on(rare.size, fold_of, facts.segments):
            also, least = _compare(found, rare[rows], keys and keys_within(keys, rows))
            flagged[rows] &= also
            thresholds[rows] = np.maximum(thresholds[rows], least)
        acted = None
        if act is not None:
            acted, every = np.zeros(rare.size, dtype=bool), np.arange(rare.size)
            for rows, found in _by_fold(every, acting_thresholds(self, act), fold_of):
                acted[rows] = _compare(found, rare[rows], keys and keys_within(keys, rows))[0]
        return Decisions(flagged, rare, thresholds, scores.by_class, keys, acted)

    def _limits_on(
        self, n_items: int, fold_of: Rows | None, segments: Rows | None
    ) -> Iterator[tuple[Rows, CalibratedThreshold]]:
        """Yield the thresholds that must be exceeded, each with its rows: of folds and segments."""
        for code, found in [*self._by_segment, (_ALL, self.calibrations)]:
            rows = np.arange(n_items) if code == _ALL else np.flatnonzero(segments == code)
            yield from _by_fold(rows, found, fold_of)

    def passed(self, scores: Floats, keys: TieKeys | None, segments: Rows | None = None) -> Mask:
        """Tell which scores exceed all thresholds of a rule for one model."""
        flagged = np.ones(scores.size, dtype=bool)
        for rows, found in self._limits_on(scores.size, None, segments):
            flagged[rows] &= found.flag_with_keys(scores[rows], keys and keys_within(keys, rows))
        return flagged

    def _keys_as_calibrated(self, facts: RowFacts) -> TieKeys | None:
        """Return tie keys, made from what they were made from in calibration; None without."""
        sample = self.samples[0]
        if sample.tie_keys is None:
            return None
        check_as_calibrated(ids=(facts.ids is not None, sample.keyed_by_ids))
        return keys_of(facts, self.terms.seed)

    def check_work(self, facts: RowFacts) -> None:
        """Raise an error if rows come with other values and efforts than in calibration."""
        sample = self.samples[0]
        check_as_calibrated(
            values=(facts.values is not None, sample.has_values),
            efforts=(facts.efforts is not None, sample.efforts is not None),
        )

    # --- lists ----------------------------------------------------------------------------------

    def choose(
        self,
        scores: Floats,
        facts: RowFacts,
        capacity: Capacity | None = None,
        *,
        worth: Worth | None = None,
        probe: Fraction = _NO_PROBES,
        act: float | None = None,
    ) -> Selection:
        """Choose the best list within the capacity for this batch, or within that of the rule."""
        limit = (self.capacity if capacity is None else check_capacity(capacity)) or _EVERYTHING
        if act is not None:  # tiers within the capacity of all items
            n_items, prevalence = n_rows(facts.X), self.terms.reference.value
            limit = Capacity.count(limit.max_flags(n_items, prevalence))
        keys, by_ids = keys_of(facts, self.terms.seed), facts.ids is not None
        items = Candidates(
            check_scores(scores), keys, facts.values, facts.efforts, True, facts.segments
        )
        return items.listed(
            lambda some, worth: self._best_list(some, limit, worth),
            worth=worth,
            act=act,
            common=lambda: self.common_scores(by_ids=by_ids),
            probe=probe,
            draw_keys=keys_of(facts, probe_seed(self.terms.seed)),
        )

    def common_scores(self, *, by_ids: bool) -> CommonScores:
        """Return the calibration scores of items that are known to be common.

        They must be unseen by the model that ranks lists. Ties count against a new item unless its
        key comes from what theirs came from, ids or rows.
        """
        sample, *others = self.samples
        is_weighed = sample.has_values or sample.efforts is not None
        if others or sample.is_rare is None or sample.out_of_bag or is_weighed:
            raise ValueError(
                "A promised precision needs calibration items with labels, without values and "
                "efforts, that the model of lists has not seen, and there are none. Hold items out "
                "(cv=0.5, or fit --folds 1), or recalibrate with labels (y=..., or recalibrate "
                "--target)."
            )
        if sample.groups is not None:
            sample = sample.one_of_each_group(self.terms.seed)
        assert sample.is_rare is not None
        own = sample.take(np.flatnonzero(~sample.is_rare))
        keys = own.sorting_keys if by_ids == sample.keyed_by_ids else np.zeros(own.scores.size)
        return CommonScores(own.scores, keys)

    def _best_list(self, items: Candidates, limit: Capacity, worth: Worth | None) -> Selection:
        """Choose within each segment, and then among what the segments allow.

        Every limit is kept. With efforts the list is the best one within each segment, and may be
        below the best one where the capacity for all items cuts it short.
        """
        prevalence, n_items = self.terms.reference.value, items.scores.size
        if self.segments is None:
            check_efforts_suit(limit, items.efforts)
            return items.choose(limit, worth, prevalence)

        def best_of(rows: Rows, own: Capacity) -> Selection:
            some = items.within(rows)
            if own.kind == "effort":
                check_efforts_suit(own, some.efforts)
            else:
                some = replace(some, efforts=None)
            return some.choose(own, worth, prevalence).among(rows, n_items)

        allowed = np.ones(n_items, dtype=bool)
        for code, _, own_limit in self._limited:
            own = np.flatnonzero(items.segments == code)
            allowed[own] = best_of(own, own_limit).flagged[own]
        rows = np.flatnonzero(allowed)
        if limit.kind == "effort":
            return best_of(rows, Capacity.effort(limit.max_effort(n_items)))
        most = min(limit.max_flags(n_items, prevalence), rows.size)
        return best_of(rows, Capacity.count(most))

    # --- what it has learned --------------------------------------------------------------------

    @property
    def flag_rate_interval(self) -> Interval:
        """Confidence interval of the true flag rate; of the mean over all folds, if there are any.

        Below, all bounds of the folds hold at once; above, the means of their worst cases are
        averaged. Both hold however the folds depend on each other.
        """
        if len(self.calibrations) == 1:
            return self.calibrations[0].interval
        return _mixed_interval(self.calibrations, error=1 - self.terms.confidence)

    @property
    def max_effort(self) -> float | None:
        """What no item may take: the bound, or what all calibration items take; None without."""
        every = chain(self.calibrations, *(found for _, found in self._by_segment))
        return max((e.max_effort for e in every if e.max_effort is not None), default=None)

    @property
    def precision(self) -> np.dtype[Any]:
        """The type of the calibration scores."""
        return self.samples[0].scores.dtype

    @property
    def calibration_scores(self) -> Floats:
        """The scores of all calibration items."""
        return np.concatenate([sample.scores for sample in self.samples])

    @property
    def segment_calibrations(self) -> dict[Any, Any]:
        """The threshold of each segment with a capacity; with folds, a list of one for each."""
        pairs = zip(self._limited, self._by_segment, strict=True)
        return {name: each if len(each) > 1 else each[0] for (_, name, _), (_, each) in pairs}

    # --- calibrating ----------------------------------------------------------------------------

    def _shared_confidence(self) -> float:
        """Return the confidence for each limit under which all hold at once (Bonferroni)."""
        if self.segments is None:
            return self.terms.confidence
        limits = [self.capacity, *self.segments.limits]
        n_limits = sum(limit is not None and limit.value > 0 for limit in limits)
        return 1 - (1 - self.terms.confidence) / max(n_limits, 1)

    def _overall_thresholds(self, terms: Terms) -> list[CalibratedThreshold]:
        samples = self.samples
        if self.capacity is None:
            return replace(terms, worth=None).thresholds(samples, _EVERYTHING)
        if self._limited and terms.kind.of_sample and len(samples) == 1:
            # The other guarantees rest on a sample in which nothing has been chosen yet.
            own = samples[0]
            samples = [own.only(self.passed(own.scores, own.keys_of, own.segments))]
        return terms.thresholds(samples, self.capacity)

    def _segment_thresholds(
        self, terms: Terms, name: Any, code: int, limit: Capacity
    ) -> list[CalibratedThreshold]:
        within = [sample.within(code) for sample in self.samples]
        if any(sample.scores.size for sample in within):
            return terms.thresholds(within, limit)
        warn_user(
            f"No calibration item belongs to {'other segments' if name is None else repr(name)}. "
            "Nothing is flagged there; fit or recalibrate with items of it.",
            InsufficientCalibrationWarning,
        )
        return terms.thresholds(within, _NOTHING)


@lru_cache(maxsize=1)
def acting_thresholds(rule: Rule, precision: float) -> list[CalibratedThreshold]:
    """Return thresholds above which a share of the items is rare, with the confidence of a rule."""
    check_act(precision)
    terms, worth = rule.terms, Worth.precision(precision)
    terms = replace(terms, guarantee="confident", n_batches=1, worth=worth)
    return terms.thresholds(rule.samples, _EVERYTHING)


def keys_of(facts: RowFacts, seed: int) -> TieKeys:
    """Return the tie keys of rows: a hash of their ids, or else of their own values."""
    return tie_keys_of(facts.X, facts.ids, seed=seed, columns=facts.columns)


def _by_fold(
    rows: Rows, thresholds: Sequence[CalibratedThreshold], fold_of: Rows | None
) -> Iterator[tuple[Rows, CalibratedThreshold]]:
    """Yield thresholds, one for each fold, with the rows that it judges."""
    if fold_of is None:
        yield from ((rows, found) for found in thresholds)
    else:
        for fold in np.unique(fold_of).tolist():
            yield rows[fold_of[rows] == fold], thresholds[fold]


def _compare(
    calibration: CalibratedThreshold, scores: Floats, keys: TieKeys | None
) -> tuple[Mask, Floats]:
    """Return which scores are flagged, and what each had to exceed."""
    flagged = calibration.flag_with_keys(lift(scores), keys)
    by_lot = flagged & (scores < calibration.value)
    return flagged, np.where(by_lot, calibration.lower_value, calibration.value)


def _mixed_interval(calibrations: Sequence[CalibratedThreshold], *, error: float) -> Interval:
    """Bound the mean rate of several thresholds that may depend on each other."""
    if any(np.isnan(each.interval.low) for each in calibrations):
        return Interval(np.nan, np.nan)
    tail, n_folds, lows, highs = error / 2, len(calibrations), [], []
    for each in calibrations:
        # One calibration score, that of place k + 1, lies between the cuts and counts in part.
        n, place = each.n_calibration, Place(each.k, each.share)
        n_flagged = max(round(each.flagged_fraction * n - each.share), 0)
        lows.append(clopper_pearson_lower(n_flagged, n, error=tail / n_folds))
        highs.append(tail_mean(place, n, error=tail))
    return Interval(float(np.mean(lows)), float(np.mean(highs)))
