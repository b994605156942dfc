"""What a rule promises, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from ..capacity import Capacity
from ._terms import CalibrationSample, Terms

__all__ = ["describe_promise"]


def describe_promise(
    capacity: Capacity | None,
    terms: Terms,
    samples: Sequence[CalibrationSample],
    has_segments: bool,
) -> str:
    """Say what holds for the flags of single items, and what for lists."""
    flags = _flags(capacity, terms, samples, has_segments)
    return f"Row by row: {flags} {_basis(samples)} {_lists(samples)}"


def _flags(
    capacity: Capacity | None,
    terms: Terms,
    samples: Sequence[CalibrationSample],
    has_segments: bool,
) -> str:
    limit = "the capacity of each segment"
    if capacity is not None and capacity.kind == "effort":
        limit = f"the work of {capacity!r}" + (f", and {limit}" if has_segments else "")
    elif capacity is not None:
        share = capacity.as_fraction(terms.reference.value)
        limit = f"{100 * share:.4g} % of all items" + (f", and {limit}" if has_segments else "")
    item = "items of new groups" if samples[0].groups is not None else "future items"
    surely = f"with {100 * terms.confidence:g} % confidence"
    batches = "the next batch" if terms.n_batches == 1 else f"each of {terms.n_batches} batches"
    return {
        "plug-in": f"the calibration items are within {limit}; about {item} nothing is promised.",
        "expected": f"the flags among {item} are at most {limit}, on average over calibrations.",
        "confident": f"the flags among {item} are at most {limit}, {surely}.",
        "next-batch": f"{batches} has at most {_count(capacity)} flags, {surely}.",
        "simultaneous": f"the flags among {item} are at most {limit}, {surely}, whichever capacity "
        "is chosen.",
    }[terms.guarantee]


def _count(capacity: Capacity | None) -> str:
    return "its number of" if capacity is None else f"{capacity.value:g}"


def _basis(samples: Sequence[CalibrationSample]) -> str:
    if samples[0].out_of_bag:
        return "This is approximate: each calibration item was scored by some of the trees only."
    if samples[0].refitted:
        return "This is approximate: the model in use is not one of those that gave the scores."
    if len(samples) > 1:
        return (
            f"One of {len(samples)} models decides about each item, picked by a hash; each was "
            "calibrated on items that it has not seen."
        )
    return "It was calibrated on items that the model has not seen."


def _lists(samples: Sequence[CalibrationSample]) -> str:
    ranked = " ranked by the mean of all models," if len(samples) > 1 else ""
    return f"Lists (select):{ranked} never longer than the capacity."
