"""An exact interval of the value found within a capacity, from bounds of bounded means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Doubles, Mask
from .._core.betting import mean_lower, mean_upper, share_lower, share_upper
from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.validation import check_positive, name_rows
from .._core.work import are_equal, check_efforts, check_max_effort, check_values
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError

__all__ = ["WeighedSample", "check_effort_given", "weighed_interval"]


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


@dataclass(frozen=True)
class WeighedSample:
    """Rare items, flags, and the shares that values and efforts have of their largest ones.

    `values` and `efforts` lie in [0, 1], or are None where they are equal.
    """

    is_rare: Mask
    flagged: Mask
    values: Doubles | None
    efforts: Doubles | None
    max_effort: float

    @classmethod
    def of(
        cls,
        is_rare: Mask,
        flagged: Mask,
        values: ArrayLike | None,
        efforts: ArrayLike | None,
        max_value: Any,
        max_effort: Any,
    ) -> WeighedSample:
        """Check values and efforts, and divide them by their bounds."""
        value, effort = check_values(values, is_rare.size), check_efforts(efforts, is_rare.size)
        if value is not None and not are_equal(value):
            value = value / _bound("max_value", max_value, value)
        else:
            value = None
        largest = 1.0
        if effort is not None:
            largest = float(effort[0])
            if not are_equal(effort):
                largest = _bound("max_effort", max_effort, effort)
            elif max_effort is not None:
                largest = check_max_effort(max_effort, effort)
            effort = None if np.all(effort == largest) else effort / largest
        return cls(is_rare, flagged, value, effort, largest)

    def value_found(self, *, error: float) -> Interval:
        """Bound the share of the rare items' value that is flagged; each end has this error."""
        found = self.flagged[self.is_rare]
        if self.values is None:
            n_found = int(np.count_nonzero(found))
            return Interval(
                float(clopper_pearson_lower(n_found, found.size, error=error)),
                float(clopper_pearson_upper(n_found, found.size, error=error)),
            )
        weights = self.values[self.is_rare]
        return Interval(
            share_lower(found, weights, error=error), share_upper(found, weights, error=error)
        )

    def effort_spent(self, *, error: float) -> Interval:
        """Bound the work of the flags per item, flagged or not."""
        n, n_flagged = self.flagged.size, int(np.count_nonzero(self.flagged))
        if self.efforts is None:
            low = float(clopper_pearson_lower(n_flagged, n, error=error))
            high = float(clopper_pearson_upper(n_flagged, n, error=error))
        else:
            spent = np.where(self.flagged, self.efforts, 0.0)
            low, high = mean_lower(spent, error=error), mean_upper(spent, error=error)
        return Interval(low * self.max_effort, high * self.max_effort)


def _bound(name: str, bound: Any, numbers: Doubles) -> float:
    if bound is None:
        raise ValueError(
            f"{name.removeprefix('max_')}s that differ need {name}=..., the largest one that any "
            f"item of the population can have (the largest here is {numbers.max():g}). Without a "
            "bound no interval is exact: one item that was not sampled could be worth everything."
        )
    largest = check_positive(name, bound)
    above = np.flatnonzero(numbers > largest)
    if above.size:
        raise ValueError(
            f"{name}={largest:g} is below {numbers[above[0]]:g} at {name_rows(above)}."
        )
    return largest


def weighed_interval(
    sample: WeighedSample, capacity: Capacity, prevalence: Any, *, error: float
) -> Interval:
    """Combine bounds of value found and effort spent, each with a quarter of the error."""
    allowed = _per_item(capacity, prevalence, sample.flagged.size)
    found = sample.value_found(error=error / 4)
    spent = sample.effort_spent(error=error / 4)
    least = 1.0 if spent.high <= allowed else allowed / spent.high
    most = 1.0 if spent.low <= allowed else allowed / spent.low
    return Interval(found.low * least, found.high * most)


def _per_item(capacity: Capacity, prevalence: Any, n: int) -> float:
    """Return how much of the capacity there is for each item."""
    if capacity.kind == "effort":
        return float(capacity.max_effort(n)) / n
    if capacity.kind == "count" and capacity.per is None:
        return min(int(capacity.value) / n, 1.0)
    if capacity.kind == "multiple" and prevalence is None:
        raise ValueError(
            f"{capacity!r} with values needs prevalence=...: the interval would otherwise have to "
            "cover an estimated prevalence as well. Or use Capacity.fraction(...)."
        )
    return capacity.as_fraction(prevalence)
