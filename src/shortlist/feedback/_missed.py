"""What the policy in use misses, estimated from probes below the cut and their outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats, Mask
from .._core.intervals import Interval, total_lower, total_upper
from .._core.validation import check_confidence, check_count, check_positive
from .._core.written import number, percent, stated_percent
from ._reviews import Reviews, check_reviews, count_interval, estimated_count

# About how many times the largest value the upper end is if no probe is rare.
_WITHOUT_HITS = 4.0
#: With fewer rare cases among the probes, an interval is too wide to act on.
ENOUGH_HITS = 10


@dataclass(frozen=True)
class ChallengerResult:
    """What another model would have found on the same cases, compared with the policy in use.

    Attributes
    ----------
    gained, gained_low, gained_high : float
        Rare cases below the cut that the challenger would have selected: estimate and interval.
    lost : int
        Rare cases found by score that the challenger would not have selected; a known number.
    """

    gained: float
    gained_low: float
    gained_high: float
    lost: int

    @property
    def is_better(self) -> bool:
        """Whether the whole interval of the gain lies above the loss."""
        return self.gained_low > self.lost

    def __str__(self) -> str:
        verdict = "It is better." if self.is_better else "That does not show that it is better."
        return (
            f"The challenger would have selected {self.gained:,.0f} rare cases below the cut, "
            f"between {self.gained_low:,.0f} and {self.gained_high:,.0f}, and left out "
            f"{self.lost:,} that were found by score. {verdict}"
        )


@dataclass(frozen=True)
class MissedValue:
    """What is missed in values, such as money, rather than in cases.

    Attributes
    ----------
    found : float
        Value of the rare cases among those selected by score.
    missed, missed_low, missed_high : float
        Value of the rare cases that nobody reviewed: estimate and interval.
    share, share_low, share_high : float
        Share of the value of all rare cases that the policy found, probes included.
    max_value : float
        The intervals hold if no case below the cut is worth more than this.
    """

    found: float
    missed: float
    missed_low: float
    missed_high: float
    share: float
    share_low: float
    share_high: float
    max_value: float

    def __str__(self) -> str:
        return (
            f"In value: {number(self.found)} found by score, {number(self.missed)} missed, between "
            f"{number(self.missed_low)} and {number(self.missed_high)}, if no case below the cut "
            f"is worth more than {number(self.max_value)}; {percent(self.share)} of all value is "
            f"found, between {percent(self.share_low)} and {percent(self.share_high)}."
        )


@dataclass(frozen=True)
class MissedEstimate:
    """How many rare cases lie below the cut, and what share of all the policy finds.

    Attributes
    ----------
    n_probes, n_hits, n_unknown : int
        Probes drawn, rare ones among them, and probes or selected cases without an outcome.
    found : int
        Rare cases among those selected by score.
    missed, missed_low, missed_high : float
        Rare cases that nobody reviewed: estimate and interval.
    detection, detection_low, detection_high : float
        Share of the rare cases that the policy found, probes included. NaN if none exists.
    prevalence, prevalence_low, prevalence_high : float
        Share of rare cases among all cases; NaN if the number of cases is unknown.
    confidence : float
        Probability with which each interval holds, at every look if looks are counted.
    challenger : ChallengerResult or None
        What another model would have found.
    value : MissedValue or None
        What is missed in values, if there are any.
    by_period : dict
        The same estimate for each period.
    """

    n_probes: int
    n_hits: int
    n_unknown: int
    found: int
    missed: float
    missed_low: float
    missed_high: float
    detection: float
    detection_low: float
    detection_high: float
    prevalence: float
    prevalence_low: float
    prevalence_high: float
    confidence: float
    challenger: ChallengerResult | None = None
    value: MissedValue | None = None
    by_period: dict[Any, MissedEstimate] = field(default_factory=dict)

    @property
    def is_enough(self) -> bool:
        """Whether there are about ten hits, the fewest for a useful interval."""
        return self.n_hits >= ENOUGH_HITS

    @property
    def probes_needed(self) -> int | None:
        """About how many probes give ten hits at the present rate; None without any hit."""
        if self.n_hits == 0:
            return None
        return math.ceil(ENOUGH_HITS * self.n_probes / self.n_hits)

    def has_fallen_below(self, detection: float) -> bool:
        """Whether the policy finds less than this share: the whole interval lies below it."""
        return bool(self.detection_high < detection)

    def __str__(self) -> str:
        if not self.n_probes:
            return "There are no probes: what is missed is unknown."
        level = stated_percent(self.confidence)
        first = (
            f"{self.found:,} rare cases were found by score, and {self.n_hits:,} of "
            f"{self.n_probes:,} probes were rare. Detection: {percent(self.detection)}, between "
            f"{percent(self.detection_low)} and {percent(self.detection_high)} ({level}). Missed: "
            f"{self.missed:,.0f} rare cases, between {self.missed_low:,.0f} and "
            f"{self.missed_high:,.0f}."
        )
        if self.value is not None:
            first = f"{first} {self.value}"
        if self.is_enough:
            return first
        so_far = "there is none so far, and the upper end is all that is known."
        if self.probes_needed is not None:
            so_far = f"that is {self.probes_needed:,} probes at the present rate."
        return f"Not enough yet. {first} A useful answer takes about {ENOUGH_HITS} hits: {so_far}"


def estimate_missed(
    outcomes: ArrayLike,
    reasons: ArrayLike,
    probabilities: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    periods: ArrayLike | None = None,
    n_cases: int | None = None,
    challenger: ArrayLike | None = None,
    values: ArrayLike | None = None,
    max_value: float | None = None,
    confidence: float = 0.95,
    look: int | None = None,
) -> MissedEstimate:
    """Estimate how many rare cases the policy misses, from probes and their outcomes.

    Nobody learns the outcome of a case that was not followed up. Probes are cases below the cut,
    drawn at random, and every one of them stands for equally many others. Only the outcomes of
    reviewed cases are used.

    Parameters
    ----------
    outcomes : array-like of shape (n_items,)
        True for a rare case, False for a common one; None or NaN while the outcome is unknown.
        Unknown outcomes widen the intervals: they may all be rare, or none.
    reasons : array-like of str, shape (n_items,)
        Why each case was selected; ``"probe"`` for probes. Cases that were not selected
        (``"not selected"``, ``"below threshold"``, ``"capacity used up"``) may be listed without an
        outcome; they are counted. The outcome of a ``"probe without a slot"`` stays unknown.
    probabilities : array-like of shape (n_items,)
        The probability with which each case below the cut was drawn, as answered when it was
        decided. Probes must have one.
    ids : array-like of shape (n_items,), default=None
        Identifiers; an id that comes twice is an error.
    periods : array-like of shape (n_items,), default=None
        The period of each case, for an estimate of each.
    n_cases : int, default=None
        Number of all cases decided. `None` takes the number of rows if cases that were not selected
        are listed. No more cases can be rare than were not found common.
    challenger : array-like of bool, shape (n_items,), default=None
        Whether another model would have selected each case, to judge it on the same probes.
    values : array-like of shape (n_items,), default=None
        What each case is worth if it is rare, such as its amount, to estimate what is missed in
        values as well.
    max_value : float, default=None
        The largest value that a case below the cut can have. `None` takes the largest of `values`,
        which is right if all cases are listed.
    confidence : float, default=0.95
        Probability with which each interval holds.
    look : int, default=None
        Say 1 at the first look, 2 at the second, and so on, if you look again and again: all looks
        together then hold with the stated confidence. `None` is for one look.

    Returns
    -------
    MissedEstimate

    Notes
    -----
    Intervals are exact for equal probabilities (binomial), and valid for draws without
    replacement. Several probabilities are pooled by the gamma intervals of Fay and Feuer (1997).
    Look k spends the share 1 / (k (k + 1)) of the error. A value that is missed is estimated by
    Horvitz and Thompson: each hit stands for its value divided by its probability. Its interval
    rests on bets (Waudby-Smith and Ramdas, 2024), holds for any values up to `max_value`, and is
    wide if that is far above the others.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity, select
    >>> from shortlist.feedback import estimate_missed
    >>> rng = np.random.default_rng(0)
    >>> is_rare = rng.random(20_000) < 0.02
    >>> scores = rng.normal(size=20_000) + is_rare
    >>> picked = select(scores, Capacity.count(800), probe=0.5, return_details=True)
    >>> outcomes = np.where(picked.flagged, is_rare, None)  # nobody knows the others
    >>> answer = estimate_missed(outcomes, picked.reasons, picked.probabilities)
    >>> bool(answer.missed_low <= is_rare[~picked.flagged].sum() <= answer.missed_high)
    True
    """
    reviews = check_reviews(
        outcomes, reasons, probabilities, ids=ids, challenger=challenger, values=values
    )
    largest = _largest_value(reviews, max_value)
    confidence = check_confidence(confidence)
    error = 1 - confidence
    if look is not None:
        error /= check_count("look", look) * (look + 1)
    of_all = _estimate(reviews, reviews.count_cases(n_cases), confidence, error, largest)
    parts = {
        period: _estimate(part, part.count_cases(None), confidence, error, largest)
        for period, part in reviews.split(periods)
    }
    return replace(of_all, by_period=parts)


def _largest_value(reviews: Reviews, max_value: float | None) -> float:
    """Return the largest value that a case can have; no case at hand may exceed it."""
    if reviews.values is None:
        return math.nan
    largest = float(reviews.values.max(initial=0.0))
    if max_value is None:
        return largest or 1.0
    if check_positive("max_value", max_value) < largest:
        raise ValueError(
            f"max_value={max_value:g} must be at least the value of every case; got {largest:g}."
        )
    return float(max_value)


def _estimate(
    reviews: Reviews, n_cases: int | None, confidence: float, error: float, largest: float
) -> MissedEstimate:
    probed, by_score = reviews.is_probe, reviews.is_selected & ~reviews.is_probe
    not_missed = by_score | (probed & ~reviews.is_rare & ~reviews.is_unknown)
    below = None if n_cases is None else n_cases - reviews.count(not_missed)
    rare_below = _rare_below(reviews, below, error)
    hits = reviews.count(probed & reviews.is_rare)
    most = hits + reviews.count(probed & reviews.is_unknown)
    found = reviews.count(by_score & reviews.is_rare)
    at_most = found + reviews.count(by_score & reviews.is_unknown)
    estimate = _known_estimate(reviews)
    return MissedEstimate(
        n_probes=reviews.count(probed),
        n_hits=hits,
        n_unknown=reviews.count((reviews.is_selected | probed) & reviews.is_unknown),
        found=found,
        missed=estimate - hits,
        missed_low=max(rare_below.low - most, 0.0),
        missed_high=rare_below.high - hits,
        detection=_detection(found, hits, estimate, otherwise=math.nan),
        detection_low=_detection(found, hits, rare_below.high, otherwise=0.0),
        detection_high=_detection(at_most, most, max(rare_below.low, most), otherwise=1.0),
        prevalence=_share(found + estimate, n_cases),
        prevalence_low=_share(found + rare_below.low, n_cases),
        prevalence_high=min(_share(at_most + rare_below.high, n_cases), 1.0),
        confidence=confidence,
        challenger=_judge_challenger(reviews, error),
        value=_in_values(reviews, n_cases, error, largest),
    )


def _in_values(
    reviews: Reviews, n_cases: int | None, error: float, largest: float
) -> MissedValue | None:
    """Estimate the value of what is missed, whatever unknown outcomes may be."""
    if (values := reviews.values) is None:
        return None
    probed, rare = reviews.is_probe, reviews.is_rare
    by_score, maybe = reviews.is_selected & ~probed, rare | reviews.is_unknown
    hits, most, found, at_most = (
        float(values[mask].sum())
        for mask in (probed & rare, probed & maybe, by_score & rare, by_score & maybe)
    )
    estimate = _known_estimate(reviews, values)
    low, high = _value_below(reviews, values, ~by_score, error, largest, n_cases == values.size)
    return MissedValue(
        found=found,
        missed=estimate - hits,
        missed_low=max(low - most, 0.0),
        missed_high=high - hits,
        share=_detection(found, hits, estimate, otherwise=math.nan),
        share_low=_detection(found, hits, high, otherwise=0.0),
        share_high=_detection(at_most, most, max(low, most), otherwise=1.0),
        max_value=largest,
    )


def _value_below(
    reviews: Reviews, values: Floats, below: Mask, error: float, largest: float, all_listed: bool
) -> Interval:
    """Return the interval for the value of all rare cases below the cut.

    If all cases are listed, a few large values are not left to the draw: they count as rare above,
    unless a probe was common, and below only if one was rare. Which ones is fixed by the values.
    """
    shares, rare = reviews.strata(reviews.is_rare)[1], reviews.is_rare
    maybe = (rare | reviews.is_unknown | ~reviews.is_probe) & below
    most = float(values[maybe].sum()) if all_listed else math.inf
    if not shares.size:
        return Interval(0.0, most)
    limit = _largest_drawn(values[below], 1 / shares.min()) if all_listed else largest
    drawn, large = reviews.is_probe & (values <= limit), values > limit
    weights, unit = np.zeros(values.size), (limit or 1.0) / shares.min()
    weights[drawn] = values[drawn] / reviews.probabilities[drawn] / unit
    low = unit * total_lower(weights[drawn & rare], error=error / 2)
    high = unit * total_upper(weights[drawn & maybe], error=error / 2)
    low += float(values[large & below & rare].sum())
    return Interval(low, min(high + float(values[large & maybe].sum()), most))


def _largest_drawn(values: Floats, weight: float) -> float:
    """Return the value up to which the draw is better than to count all that is above it."""
    ranked = np.append(np.sort(values)[::-1], 0.0)
    above = np.append(0.0, np.cumsum(ranked[:-1]))
    return float(ranked[np.argmin(above + _WITHOUT_HITS * weight * ranked)])


def _share(rare: float, n_cases: int | None) -> float:
    return rare / n_cases if n_cases else math.nan


def _rare_below(reviews: Reviews, below: int | None, error: float) -> Interval:
    """Return the interval for the rare cases below the cut, whatever unknown outcomes may be."""
    hits, shares, _ = reviews.strata(reviews.is_rare)
    if not shares.size:
        return Interval(0.0, math.inf if below is None else float(below))
    most = reviews.strata(reviews.is_rare | reviews.is_unknown)[0]
    low = count_interval(hits, shares, error=error).low
    high = count_interval(most, shares, error=error).high
    return Interval(low, high if below is None else min(high, float(below)))


def _known_estimate(reviews: Reviews, values: Floats | None = None) -> float:
    """Return the estimate from known outcomes; unknown ones count as if they were like those."""
    _, shares, drawn = reviews.strata(reviews.is_rare)
    known = drawn - reviews.strata(reviews.is_unknown)[0]
    if not shares.size or np.any((known == 0) & (drawn > 0)):
        return math.nan
    hits = reviews.is_probe & reviews.is_rare
    places = np.searchsorted(shares, reviews.probabilities[hits])
    chances = (shares * known / np.maximum(drawn, 1))[places]
    return float(np.sum((np.ones(places.size) if values is None else values[hits]) / chances))


def _detection(found: float, hits: float, rare_below: float, *, otherwise: float) -> float:
    """Return the share found; `otherwise` if there may be no rare case at all."""
    if math.isinf(rare_below):
        return 0.0
    rare = found + rare_below
    return (found + hits) / rare if rare > 0 else otherwise


def _judge_challenger(reviews: Reviews, error: float) -> ChallengerResult | None:
    if reviews.challenger is None:
        return None
    chosen: Mask = reviews.challenger
    hits, shares, _ = reviews.strata(reviews.is_rare & chosen)
    if not shares.size:
        return None
    most: NDArray[Any] = reviews.strata((reviews.is_rare | reviews.is_unknown) & chosen)[0]
    lost = reviews.is_selected & ~reviews.is_probe & reviews.is_rare & ~chosen
    return ChallengerResult(
        estimated_count(hits, shares),
        count_interval(hits, shares, error=error).low,
        count_interval(most, shares, error=error).high,
        reviews.count(lost),
    )
