"""What items count for: their numbers or weights, values and efforts, and exact bounds of these."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.intervals import (
    Interval,
    mean_lower,
    mean_upper,
    proportion_interval,
    share_lower,
    share_upper,
)
from .._core.labels import EstimatedShare
from .._core.ranking import lift
from .._core.validation import check_positive, check_sample_weight, name_rows, warn_user
from .._core.work import are_equal, check_efforts, check_values, in_order_of_worth
from ..capacity import Capacity, check_capacity, exact
from ..exceptions import CapacityError

__all__ = ["Bounds", "Counts", "Items", "check_effort_given", "ranked_by", "room_in"]


class Counts(NamedTuple):
    """Numbers (or weights) of items, rare items, flags, and rare items among the flags.

    Rare items count with their values and flags with their efforts, where there are any;
    `n_rare` is the number of rare items themselves.
    """

    items: float
    rare: float
    flagged: float
    found: float
    n_rare: float

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to detect; warns if so."""
        if self.rare == 0:
            what = "of any value" if self.n_rare else "in y_true"
            warn_user(f"Detection is undefined without a rare item {what}.", UndefinedMetricWarning)
        return self.rare == 0


class Items(NamedTuple):
    """The weight of items, what is found with each, and what it takes to look at each."""

    is_rare: Mask
    weight: Doubles
    gain: Doubles
    cost: Doubles

    @classmethod
    def of(
        cls,
        is_rare: Mask,
        values: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Items:
        """Check the numbers of items, and multiply them."""
        n = is_rare.size
        weight = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight)
        value, effort = check_values(values, n), check_efforts(efforts, n)
        gain = is_rare * (weight if value is None else weight * value)
        return cls(is_rare, weight, gain, weight if effort is None else weight * effort)

    def counts(self, flagged: Mask) -> Counts:
        """Return what some flags take and find."""
        return Counts(
            items=float(self.weight.sum()),
            rare=float(self.gain[self.is_rare].sum()),
            flagged=float(self.cost[flagged].sum()),
            found=float(self.gain[self.is_rare & flagged].sum()),
            n_rare=float(self.weight[self.is_rare].sum()),
        )

    def down_to(self, order: Rows, cuts: Rows) -> tuple[Doubles, Doubles]:
        """Return what it takes to look at the items before each cut of an order, and the finds."""
        spent, found = (
            np.concatenate([[0.0], np.cumsum(numbers[order])])[cuts]
            for numbers in (self.cost, self.gain)
        )
        return spent, found


def ranked_by(scores: Floats, values: Doubles | None, efforts: Doubles | None) -> Floats:
    """Return what items are ranked by: value * probability / effort, or else the scores."""
    ratios, are_products = in_order_of_worth(scores, values, efforts)
    return lift(ratios) if are_products else ratios


def check_effort_given(capacity: Capacity, efforts: Any) -> None:
    """Raise an error if a budget comes without efforts, or efforts come without a budget."""
    if check_capacity(capacity).kind == "effort" and efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work. Pass efforts=..., the work that each item takes."
        )
    if capacity.kind != "effort" and efforts is not None and np.any(np.asarray(efforts) != 1):
        raise CapacityError(
            f"efforts were given, but {capacity!r} limits the number of flags, whatever they take. "
            "Use Capacity.effort(480), say, for a budget in the unit of the efforts."
        )


def room_in(capacity: Capacity, counts: Counts, prevalence: Any = None) -> Fraction:
    """Return the exact number (or weight, or effort) of these items that can be followed up."""
    items = Fraction(counts.items)
    if check_capacity(capacity).kind == "effort":
        return exact(capacity.value) if capacity.per is None else capacity.max_effort(1) * items
    if capacity.kind == "count" and capacity.per is None:
        return min(Fraction(int(capacity.value)), items)
    share = EstimatedShare(Fraction(counts.n_rare) / items) if prevalence is None else prevalence
    return capacity.as_ratio(share) * items


class Bounds(NamedTuple):
    """Intervals of the share that is found of all rare items, and of what flags take per item."""

    found: Interval
    spent: Interval

    @classmethod
    def of_counts(cls, counts: Counts, error: float) -> Bounds:
        """Bound two proportions; each of the four ends may fail with a quarter of the error."""
        return cls(
            proportion_interval(counts.found, counts.rare, error=error / 2),
            proportion_interval(counts.flagged, counts.items, error=error / 2),
        )

    @classmethod
    def of_values(
        cls,
        is_rare: Mask,
        flagged: Mask,
        values: tuple[Doubles | None, Any],
        efforts: tuple[Doubles | None, Any],
        error: float,
    ) -> Bounds:
        """Bound means of bounded numbers; values and efforts come with their largest possible."""
        found, spent = cls.of_counts(Items.of(is_rare).counts(flagged), error)
        tail = error / 4
        if values[0] is not None and not are_equal(values[0]):
            weights, _ = _shares("max_value", *values)
            own, hits = weights[is_rare], flagged[is_rare]
            found = Interval(share_lower(hits, own, error=tail), share_upper(hits, own, error=tail))
        if efforts[0] is None:
            return cls(found, spent)
        parts, largest = _shares("max_effort", *efforts)
        if np.any(parts != 1):
            parts = np.where(flagged, parts, 0.0)
            spent = Interval(mean_lower(parts, error=tail), mean_upper(parts, error=tail))
        return cls(found, Interval(spent.low * largest, spent.high * largest))

    def within(self, allowed: float) -> Interval:
        """Return the interval of what is found if so much per item can be spent."""
        least = 1.0 if self.spent.high <= allowed else allowed / self.spent.high
        most = 1.0 if self.spent.low <= allowed else allowed / self.spent.low
        return Interval(self.found.low * least, self.found.high * most)


def _shares(name: str, numbers: Any, bound: Any) -> tuple[Doubles, float]:
    """Return numbers as shares of the largest possible, which must be known if they differ."""
    if bound is None and not are_equal(numbers):
        raise ValueError(
            f"{name.removeprefix('max_')}s that differ need {name}=..., the largest one that any "
            f"item of the population can have (the largest here is {numbers.max():g}). Without a "
            "bound no interval is exact: one item that was not sampled could be worth everything."
        )
    largest = float(numbers[0]) if bound is None else check_positive(name, bound)
    above = np.flatnonzero(numbers > largest)
    if above.size:
        raise ValueError(
            f"{name}={largest:g} is below {numbers[above[0]]:g} at {name_rows(above)}."
        )
    return numbers / largest, largest
