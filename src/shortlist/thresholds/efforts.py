r"""Items that count differently: by the work they take, or by sample weights.

A flagged item costs its effort, any other nothing, and no item takes more than E, the `max_effort`.
The mean cost of a threshold, :math:`E[e \cdot 1\{\text{flagged}\}]`, must stay within the budget
per item, c. *Thinning* makes this a promise about a number of flags: keep each calibration item
with probability e / E, by a lot of its own, and put the others below all scores. The mean cost is
:math:`E \cdot P(\text{kept and flagged})`, so a threshold that keeps the rate c / E on the thinned
sample keeps the budget, under every guarantee about a rate.

Values enter the ranking only. A wrong value or probability costs value, never the promise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from .._core.ranking import rank
from .._core.work import are_equal, check_max_effort, count_in_units
from ..capacity import Capacity, check_efforts_suit, exact
from .guarantees import expected_k
from .promise import Promise
from .samples import CalibrationSample

__all__ = ["Budget", "budget_of", "heaviest_k", "weighted_k"]


@dataclass(frozen=True)
class Budget:
    """A budget of effort per item, flagged or not, and the largest effort of any item."""

    per_item: Fraction
    max_effort: float

    @property
    def ratio(self) -> Fraction:
        """The share of items that may be flagged if each takes the largest effort."""
        return min(self.per_item / exact(self.max_effort), Fraction(1))

    def thinned(self, sample: CalibrationSample, seed: int) -> CalibrationSample:
        """Put each item below all others by lot, the sooner the less work it takes."""
        assert sample.efforts is not None
        kept = sample.lots(seed) < sample.efforts / self.max_effort
        lowest = sample.scores.dtype.type(-np.inf)
        return replace(sample, scores=np.where(kept, sample.scores, lowest))

    def as_flags(self, promise: Promise) -> Promise:
        """Return the promise about a number of flags in a batch that all take the most work."""
        return replace(promise, capacity=promise.capacity.as_flags(exact(self.max_effort)))


def budget_of(capacity: Capacity, efforts: Doubles | None, max_effort: Any) -> Budget:
    """Return the budget; efforts that differ need a bound."""
    check_efforts_suit(capacity, efforts)
    assert efforts is not None
    per_item = capacity.effort_per_item()
    if max_effort is not None:
        return Budget(per_item, check_max_effort(max_effort, efforts))
    if not are_equal(efforts):
        raise ValueError(
            "Efforts that differ need max_effort=..., the largest effort that any item can take, "
            f"in future too (the largest here is {efforts.max():g}). A promise about effort "
            "without such a bound is impossible: a single case could take everything. If work is "
            "cut off after some hours, that is the bound."
        )
    return Budget(per_item, float(efforts[0]))


def weighted_k(sample: CalibrationSample, promise: Promise) -> int:
    """Take items from the top while their weight stays within the capacity.

    "expected" is weighted conformal calibration (Tibshirani, Foygel Barber, Candes and Ramdas,
    2019). The future item is one more item, of unknown weight w, that may lie above: the weight
    above the threshold, plus w, may be at most c times all weight, plus w. The share
    (above + w) / (all + w) grows with w, so the largest possible weight is safe for every item.
    """
    assert sample.weights is not None
    future = _future_weight(promise.guarantee, sample.max_weight)
    total = Fraction(float(sample.weights.sum()))
    if promise.guarantee == "plug-in" and expected_k(sample.scores.size, promise.ratio) < 0:
        return -1
    return heaviest_k(sample, sample.weights, promise.ratio * (total + future) - future)


def heaviest_k(sample: CalibrationSample, weights: Doubles, limit: Fraction) -> int:
    """Return how many items, from the top, weigh no more than a limit; -1 if it is negative."""
    if limit < 0:
        return -1
    if not weights.size:
        return 0
    order, _ = rank(sample.scores, sample.keys_of)
    units = count_in_units(weights[order])
    used = np.cumsum(units.efforts)
    return int(np.searchsorted(used, min(units.count(limit), int(used[-1])), side="right"))


def _future_weight(guarantee: str, max_weight: float | None) -> Fraction:
    """Return the weight set aside for the future item, and refuse what has no exact rule."""
    if guarantee == "plug-in":
        return Fraction(0)
    if guarantee != "expected":
        raise ValueError(
            "sample_weight is defined for guarantee='plug-in' and, with max_weight, 'expected'; "
            f"got {guarantee!r}. The flag rate of a weighted sample follows no known "
            "distribution. Instead, keep each calibration item with probability "
            "sample_weight / max_weight, and calibrate on the kept items without weights: these "
            "are like future items, and every guarantee holds."
        )
    if max_weight is None:
        raise ValueError(
            "guarantee='expected' with sample_weight needs max_weight, the largest weight that "
            "any item can have, in future too (1 / the lowest sampling rate, for example). "
            "Future items of a larger weight would break the promise."
        )
    return Fraction(max_weight)
