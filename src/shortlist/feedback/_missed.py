"""What the policy in use misses, estimated from probes below the cut and their outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Mask
from .._core.formatting import percent, stated_percent
from .._core.intervals import Interval
from .._core.validation import check_confidence, check_count
from ._reviews import (
    MissedValue,
    Reviews,
    check_reviews,
    count_interval,
    found_and_missed,
    in_values,
    known_estimate,
    largest_value,
)

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
        decided. Probes must have one. Cases listed with a probability of 0, such as those of a
        segment with too few slots for a probe, are not part of the estimate; all of them may be
        rare at the upper ends.
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
    largest = largest_value(reviews, max_value)
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


def _estimate(
    reviews: Reviews, n_cases: int | None, confidence: float, error: float, largest: float
) -> MissedEstimate:
    probed, by_score = reviews.is_probe, reviews.is_selected & ~reviews.is_probe
    not_missed = by_score | (probed & ~reviews.is_rare & ~reviews.is_unknown)
    most_below = None if n_cases is None else n_cases - reviews.count(not_missed)
    everyone = np.ones(reviews.is_rare.size, dtype=int)
    below = _rare_below(reviews, everyone > 0, most_below, error)
    amounts = found_and_missed(reviews, everyone, below)
    found, missed = amounts[:2]
    hits = reviews.count(probed & reviews.is_rare)
    at_most = found + reviews.count(by_score & reviews.is_unknown)
    rare = np.array([found + missed + hits, found + below.low, at_most + below.high])
    share, low, high = np.minimum(rare / (n_cases or math.nan), 1.0).tolist()
    return MissedEstimate(
        reviews.count(probed),
        hits,
        reviews.count((reviews.is_selected | probed) & reviews.is_unknown),
        *amounts,
        share,
        low,
        high,
        confidence,
        challenger=_judge_challenger(reviews, error),
        value=in_values(reviews, n_cases, error, largest),
    )


def _rare_below(reviews: Reviews, among: Mask, below: int | None, error: float) -> Interval:
    """Return the interval for the rare cases below the cut, whatever unknown outcomes may be."""
    hits, shares, _ = reviews.strata(reviews.is_rare & among)
    if not shares.size:
        return Interval(0.0, math.inf if below is None else float(below))
    most = reviews.strata((reviews.is_rare | reviews.is_unknown) & among)[0]
    low = count_interval(hits, shares, error=error).low
    high = count_interval(most, shares, error=error).high
    high += reviews.count(reviews.never_drawn & among)
    return Interval(low, high if below is None else min(high, float(below)))


def _judge_challenger(reviews: Reviews, error: float) -> ChallengerResult | None:
    if reviews.challenger is None or not reviews.strata(reviews.is_rare)[1].size:
        return None
    gained = known_estimate(reviews, reviews.challenger)
    lost = reviews.is_selected & ~reviews.is_probe & reviews.is_rare & ~reviews.challenger
    below = _rare_below(reviews, reviews.challenger, None, error)
    return ChallengerResult(gained, *below, reviews.count(lost))
