"""What is missed in values, such as money: each hit stands for its value over its probability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._core.arrays import Floats
from .._core.formatting import number, percent
from .._core.intervals import Interval, total_lower, total_upper
from .._core.validation import check_positive
from ._reviews import Reviews, found_and_missed

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
