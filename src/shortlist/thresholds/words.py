"""A capacity and a guarantee in plain words: what programs, pages and `promise_` show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..capacity import Capacity

__all__ = ["capacity_in_words", "guarantee_in_short", "guarantee_in_words", "promise_in_words"]

_SURE = ("confident", "next-batch", "simultaneous")  # these hold with a confidence


def capacity_in_words(capacity: Capacity, *, unit: str = "units", cases: str = "cases") -> str:
    """Describe how many cases can be followed up, or how much work may be spent on them."""
    value, per = float(capacity.value), f"{capacity.per:,}" if capacity.per else ""
    return {
        "count": f"{value:,.0f} of every {per} {cases}" if per else f"{value:,.0f} {cases}",
        "fraction": f"{100 * value:.4g} % of all {cases}",
        "multiple": f"{value:g} follow-ups for each rare case",
        "effort": f"{value:,g} {unit}" + (f" for every {per} {cases}" if per else ""),
    }[capacity.kind]


def guarantee_in_short(guarantee: str, confidence: float, n_batches: int = 1) -> str:
    """Name a guarantee, with its confidence where it has one."""
    surely = f", with {100 * confidence:.4g} % confidence" if guarantee in _SURE else ""
    return f"{guarantee}{surely}" + (f", for {n_batches} batches" if n_batches > 1 else "")


def guarantee_in_words(
    guarantee: str,
    limit: str,
    *,
    confidence: float,
    n_batches: int = 1,
    of_work: bool = False,
    cases: str = "cases",
    which: str = "future cases",
) -> str:
    """Say what holds for the flags, which have the given `limit` in words, in one sentence."""
    at_most = f"{'take' if of_work else 'are'} at most {limit}"
    surely = f"with {100 * confidence:.4g} % confidence"
    batches = "the next batch" if n_batches == 1 else f"each of {n_batches} batches"
    in_batch = f"the flags of {batches} {at_most}" if of_work else f"{batches} has at most {limit}"
    return {
        "plug-in": f"the flags among the calibration {cases} {at_most}; about {which} nothing is "
        "promised.",
        "expected": f"the flags among {which} {at_most}, on average over calibrations.",
        "confident": f"the flags among {which} {at_most}, {surely}.",
        "next-batch": f"{in_batch}, {surely}.",
        "simultaneous": f"the flags among {which} {at_most}, {surely}, whichever capacity is "
        "chosen.",
    }[guarantee]


def promise_in_words(
    capacity: Capacity | None, terms: Any, samples: Sequence[Any], has_segments: bool
) -> str:
    """Say what a rule promises: for the flags of single items, and for lists."""
    flags = guarantee_in_words(
        terms.guarantee,
        _limit(capacity, terms, has_segments),
        confidence=terms.confidence,
        n_batches=terms.n_batches,
        of_work=capacity is not None and capacity.kind == "effort",
        cases="items",
        which="items of new groups" if samples[0].groups is not None else "future items",
    )
    ranked = " ranked by the mean of all models," if len(samples) > 1 else ""
    lists = f"Lists (select):{ranked} never longer than the capacity."
    return f"Row by row: {flags} {_basis(samples)} {lists}"


def _limit(capacity: Capacity | None, terms: Any, has_segments: bool) -> str:
    by_segment = "the capacity of each segment"
    if capacity is None:
        return by_segment
    if capacity.kind == "effort":
        limit = capacity_in_words(capacity, cases="items")
    elif terms.guarantee == "next-batch":
        limit = f"{capacity.value:,g} flags"
    else:
        limit = f"{100 * capacity.as_fraction(terms.reference.value):.4g} % of all items"
    return f"{limit}, and {by_segment}" if has_segments else limit


def _basis(samples: Sequence[Any]) -> str:
    if samples[0].out_of_bag:
        return "This is approximate: each calibration item was scored by some of the trees only."
    if len(samples) > 1:
        return (
            f"One of {len(samples)} models decides about each item, picked by a hash; each was "
            "calibrated on items that it has not seen."
        )
    return "It was calibrated on items that the model has not seen."
