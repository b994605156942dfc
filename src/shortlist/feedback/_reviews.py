"""Reviews: which cases were selected and what came out; how many rare cases probes stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, chi2

from .._core.arrays import Floats, Mask, Rows
from .._core.formatting import number, percent
from .._core.ids import values_of
from .._core.intervals import Interval, total_lower, total_upper
from .._core.probing import NOT_SELECTED, PROBE, PROBE_WITHOUT_SLOT
from .._core.validation import check_count, check_positive, name_rows
from .._core.work import check_values

#: Reasons of cases that were not selected, and have no outcome.
NOT_REVIEWED = (NOT_SELECTED, "below threshold", "capacity used up", "capacity used up elsewhere")
#: Reasons of rows that are not cases: a case that comes a second time, or was not decided.
NO_CASES = ("seen before", "moment refused")
#: What was found by score, the estimate, low and high of what is missed, and of the share found.
Amounts = tuple[Any, float, float, float, float, float, float]


@dataclass(frozen=True)
class Reviews:
    """Checked reviews, one entry per case."""

    is_rare: Mask
    is_unknown: Mask
    is_probe: Mask
    is_selected: Mask
    probabilities: Floats
    challenger: Mask | None = None
    values: Floats | None = None

    @staticmethod
    def count(mask: Mask) -> int:
        """Return how many cases a mask marks."""
        return int(np.count_nonzero(mask))

    def strata(self, marked: Mask) -> tuple[Rows, Floats, Rows]:
        """Return for each probability: the probes marked, the probability, and the probes drawn.

        Cases below the cut that are listed with their probabilities count, drawn or not.
        """
        below = self.is_probe | (~self.is_selected & (self.probabilities > 0))
        shares, codes = np.unique(self.probabilities[below], return_inverse=True)
        drawn = np.bincount(codes[self.is_probe[below]], minlength=shares.size)
        hits = np.bincount(codes[(marked & self.is_probe)[below]], minlength=shares.size)
        return hits.astype(np.intp), shares, drawn.astype(np.intp)

    @property
    def never_drawn(self) -> Mask:
        """Cases below the cut that no probe stands for: each of them may be rare."""
        return ~(self.is_selected | self.is_probe) & (self.probabilities == 0)

    def count_cases(self, n_cases: int | None) -> int | None:
        """Return how many cases there were; unknown if only reviewed ones are listed."""
        if n_cases is None:
            drawn_or_selected = self.is_selected | self.is_probe
            return None if drawn_or_selected.all() else drawn_or_selected.size
        return check_count("n_cases", n_cases, at_least=self.count(self.is_selected))

    def split(self, periods: ArrayLike | None) -> list[tuple[Any, Reviews]]:
        """Return each period, in order, with its reviews; nothing without periods."""
        if periods is None:
            return []
        named = _column("periods", periods, self.is_rare.size)
        return [(period, self._part(named == period)) for period in np.unique(named).tolist()]

    def _part(self, own: Mask) -> Reviews:
        parts: dict[str, Any] = {
            name: None if each is None else each[own] for name, each in vars(self).items()
        }
        return Reviews(**parts)


def check_reviews(
    outcomes: ArrayLike,
    reasons: ArrayLike,
    probabilities: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    challenger: ArrayLike | None = None,
    values: ArrayLike | None = None,
) -> Reviews:
    """Check reviews, with errors that name the rows."""
    is_rare, is_unknown = _check_outcomes(outcomes)
    n = is_rare.size
    words = np.array([str(word).strip().lower() for word in _column("reasons", reasons, n)], str)
    _refuse(
        np.isin(words, NO_CASES),
        f"have a reason like {NO_CASES[0]!r}: they were not decided then. Keep the first answer to "
        "each case, with its own reason",
    )
    is_lost = words == PROBE_WITHOUT_SLOT
    is_selected, is_probe = ~np.isin(words, NOT_REVIEWED) & ~is_lost, (words == PROBE) | is_lost
    _refuse(
        ~is_selected & ~is_unknown,
        "have an outcome but were never selected. Only reviewed cases have outcomes: correct the "
        "reason, or leave the outcome empty",
    )
    drawn = _check_probabilities(_column("probabilities", probabilities, n), is_probe)
    if ids is not None:
        _check_once(_column("ids", ids, n))
    chosen = None if challenger is None else _column("challenger", challenger, n).astype(bool)
    worth = check_values(values, n)
    return Reviews(is_rare, is_unknown, is_probe, is_selected, drawn, chosen, worth)


def _column(name: str, values: ArrayLike, n: int) -> NDArray[Any]:
    array = values_of(values)
    if array.shape != (n,):
        raise ValueError(f"{name} must have one entry per outcome, {n}; got shape {array.shape}.")
    return array


def _check_outcomes(outcomes: ArrayLike) -> tuple[Mask, Mask]:
    array = values_of(outcomes)
    if array.ndim != 1:
        raise ValueError(f"outcomes must be one-dimensional; got shape {array.shape}.")
    if array.dtype.kind == "b":
        return array, np.zeros(array.size, dtype=bool)
    is_unknown = np.array([value is None or value != value for value in array.tolist()], bool)
    is_known = np.array([_is_outcome(value) for value in array.tolist()], dtype=bool)
    _refuse(~is_unknown & ~is_known, "must have the outcome True, False or None (1, 0 or NaN)")
    return is_known & (array == 1), is_unknown


def _is_outcome(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and value in (0, 1)


def _check_probabilities(probabilities: NDArray[Any], is_probe: Mask) -> Floats:
    try:
        numbers = np.where(probabilities == None, np.nan, probabilities).astype(float)  # noqa: E711
    except (TypeError, ValueError) as error:
        raise ValueError("probabilities must be numbers between 0 and 1.") from error
    _refuse(
        is_probe & ~((numbers > 0) & (numbers <= 1)),
        "are probes without a probability above 0 and up to 1. It is part of the answer that "
        "selected them; without it nothing can be estimated",
    )
    return numbers


def _check_once(ids: NDArray[Any]) -> None:
    _, first, counts = np.unique(ids.astype(str), return_index=True, return_counts=True)
    if counts.max(initial=0) > 1:
        repeated = ids[first[counts > 1][0]]
        rows = np.flatnonzero(ids.astype(str) == str(repeated))
        raise ValueError(
            f"The case {repeated!r} comes {rows.size} times, at {name_rows(rows)}. Each case has "
            "one outcome: keep the row that holds."
        )


def _refuse(wrong: Mask, words: str) -> None:
    rows = np.flatnonzero(wrong)
    if rows.size:
        raise ValueError(f"{rows.size} cases {words}; see {name_rows(rows)}.")


# --- how many rare cases there are below the cut, given the hits among probes ---


def known_estimate(reviews: Reviews, weights: Any) -> float:
    """Return the estimate from known outcomes; unknown ones count as if they were like those.

    Each hit stands for as many cases as one probe was drawn of, and each case counts its weight.
    """
    _, shares, drawn = reviews.strata(reviews.is_rare)
    known = drawn - reviews.strata(reviews.is_unknown)[0]
    if not shares.size or np.any((known == 0) & (drawn > 0)):
        return math.nan
    hits = reviews.is_probe & reviews.is_rare
    places = np.searchsorted(shares, reviews.probabilities[hits])
    chances = (shares * known / np.maximum(drawn, 1))[places]
    return float(np.sum(weights[hits] / chances))


def found_and_missed(reviews: Reviews, weights: Any, below: Interval) -> Amounts:
    """Return what is found and missed, in cases or in values, given an interval for all below."""
    probed, rare = reviews.is_probe, reviews.is_rare
    by_score, maybe = reviews.is_selected & ~probed, rare | reviews.is_unknown
    hits, most, found, at_most = (
        weights[mask].sum().item()
        for mask in (probed & rare, probed & maybe, by_score & rare, by_score & maybe)
    )
    estimate = known_estimate(reviews, weights)
    return (
        found,
        estimate - hits,
        max(below.low - most, 0.0),
        below.high - hits,
        share_found(found, hits, estimate, otherwise=math.nan),
        share_found(found, hits, below.high, otherwise=0.0),
        share_found(at_most, most, max(below.low, most), otherwise=1.0),
    )


def share_found(found: float, hits: float, rare_below: float, *, otherwise: float) -> float:
    """Return the share found; `otherwise` if there may be no rare case at all."""
    if math.isinf(rare_below):
        return 0.0
    rare = found + rare_below
    return (found + hits) / rare if rare > 0 else otherwise


def count_interval(hits: Rows, shares: Floats, *, error: float) -> Interval:
    """Return an interval for the number of rare cases that the probes were drawn from.

    `hits` are the rare probes of each stratum, `shares` the share of its cases that was drawn.
    """
    if np.ptp(shares) <= 1e-9 * shares.max():
        return from_shares(int(hits.sum()), float(shares.max()), error=error)
    return from_strata(hits, shares, error=error)


def from_shares(hits: int, share: float, *, error: float) -> Interval:
    """Invert the binomial tests: each rare case was drawn with the same probability.

    Draws without replacement, from one batch or several, are sums of independent indicators
    (Vatutin and Mikhailov, 1982), and their tails lie below the binomial ones (Hoeffding, 1956)
    one case or more away from the mean. Closer to it, Markov's inequality takes over.
    """
    low = _first(lambda n: _upper_tail(hits, n, share) > error / 2, hits)
    high = _first(lambda n: binom.cdf(hits, n, share) <= error / 2, hits) - 1
    return Interval(float(low), float(max(high, low)))


def _upper_tail(hits: int, n: int, share: float) -> float:
    if hits == 0:
        return 1.0
    tail, mean = float(binom.sf(hits - 1, n, share)), n * share
    return tail if hits >= mean + 1 else max(tail, min(1.0, mean / hits))


def from_strata(hits: Rows, shares: Floats, *, error: float) -> Interval:
    """Return the gamma interval of Fay and Feuer for a weighted sum of counts."""
    weights = 1 / shares
    total, variance, largest = (
        float(np.sum(weights * hits)),
        float(np.sum(weights**2 * hits)),
        float(weights.max()),
    )
    low = 0.0
    if total > 0:
        low = variance / (2 * total) * float(chi2.ppf(error / 2, 2 * total**2 / variance))
    above, spread = total + largest, variance + largest**2
    high = spread / (2 * above) * float(chi2.ppf(1 - error / 2, 2 * above**2 / spread))
    return Interval(max(low, float(hits.sum())), max(high, float(hits.sum())))


def _first(holds: Callable[[int], bool], start: int) -> int:
    """Return the first whole number from `start` on for which a monotone statement holds."""
    if holds(start):
        return start
    low, high = start, start + 1
    while not holds(high):
        low, high = high, start + 2 * (high - start)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- in values, such as money: each hit stands for its value over its probability ---

# About how many times the largest value the upper end is if no probe is rare.
_WITHOUT_HITS = 4.0


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

    Examples
    --------
    Two probes at one in ten, one of them a rare case worth 50, which stands for nine others:

    >>> from shortlist.feedback import estimate_missed
    >>> reasons, chances = ["score", "probe", "probe"], [1, 0.1, 0.1]
    >>> answer = estimate_missed([True, True, False], reasons, chances, values=[80, 50, 20])
    >>> answer.value.found, answer.value.missed
    (80.0, 450.0)
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


def largest_value(reviews: Reviews, max_value: float | None) -> float:
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


def in_values(
    reviews: Reviews, n_cases: int | None, error: float, largest: float
) -> MissedValue | None:
    """Estimate the value of what is missed, whatever unknown outcomes may be."""
    if (values := reviews.values) is None:
        return None
    all_listed = n_cases == values.size
    below = _value_below(reviews, values, error, largest, all_listed)
    return MissedValue(*found_and_missed(reviews, values, below), largest)


def _value_below(
    reviews: Reviews, values: Floats, error: float, largest: float, all_listed: bool
) -> Interval:
    """Return the interval for the value of all rare cases below the cut.

    If all cases are listed, a few large values are not left to the draw: they count as rare above,
    unless a probe was common, and below only if one was rare. Which ones is fixed by the values.
    """
    shares, rare = reviews.strata(reviews.is_rare)[1], reviews.is_rare
    below = ~reviews.is_selected | reviews.is_probe
    maybe = (rare | reviews.is_unknown | ~reviews.is_probe) & below
    most = float(values[maybe].sum()) if all_listed else math.inf
    if not shares.size:
        return Interval(0.0, most)
    weights, chances = np.zeros(values.size), reviews.probabilities
    if np.isnan(chances[below]).any():  # listed without one: it may be that of any probe
        chances = np.full(values.size, shares.min())
    # How much a case stands for at most, if it is drawn.
    np.divide(values, chances, out=weights, where=below & (chances > 0))
    unit = _largest_drawn(values[below], weights[below]) if all_listed else largest / shares.min()
    drawn = reviews.is_probe & (weights <= unit)
    large = below & (weights > unit) | reviews.never_drawn
    scaled = np.zeros(values.size)
    scaled[drawn] = values[drawn] / reviews.probabilities[drawn] / (unit or 1.0)
    low = unit * total_lower(scaled[drawn & rare], error=error / 2)
    high = unit * total_upper(scaled[drawn & maybe], error=error / 2)
    low += float(values[large & rare].sum())
    return Interval(low, min(high + float(values[large & maybe].sum()), most))


def _largest_drawn(values: Floats, weights: Floats) -> float:
    """Return the weight up to which the draw is better than to count all values above it."""
    order = np.argsort(-weights, kind="stable")
    ranked, above = np.append(weights[order], 0.0), np.append(0.0, np.cumsum(values[order]))
    return float(ranked[np.argmin(above + _WITHOUT_HITS * ranked)])
