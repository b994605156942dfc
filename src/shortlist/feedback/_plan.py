"""What probes cost now, and how much they will tell after a day, a week, a month."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq
from scipy.stats import norm

from .._core.binomial import Interval
from .._core.validation import check_confidence, check_count, check_number, check_positive
from ._counts import from_shares
from ._missed import ENOUGH_HITS

_WIDEST = 0.5  # an interval of use is shorter than half of the scale
_LARGEST_SHIFT = 40.0


@dataclass(frozen=True)
class ProbePlan:
    """What one share of probes costs, and what it will tell after a number of periods.

    Attributes
    ----------
    probe : float
        The share of the slots.
    n_probes : int
        Probes in one period.
    cost : float
        Detection lost now, as a share of all rare cases: those that the last slots would have
        found, less those that probes find by chance.
    n_periods : int
        After how many periods.
    hits : float
        Rare cases to be expected among the probes by then.
    detection : float
        Detection to be expected of the policy, probes included.
    detection_low, detection_high : float
        The interval to be expected for the detection by then.
    """

    probe: float
    n_probes: int
    cost: float
    n_periods: int
    hits: float
    detection: float
    detection_low: float
    detection_high: float

    @property
    def is_useful(self) -> bool:
        """Whether ten hits are expected, and an interval shorter than half of the scale."""
        narrow = self.detection_high - self.detection_low < _WIDEST
        return self.hits >= ENOUGH_HITS and narrow

    def __str__(self) -> str:
        after = f"after {self.n_periods} period{'s' if self.n_periods > 1 else ''}"
        if self.n_probes == 0:
            return f"{self.probe:.0%} of the slots is less than one probe: nothing will be known."
        costs = f"{self.n_probes} probes a period cost {max(self.cost, 0):.1%} of the rare cases"
        if not self.is_useful:
            return (
                f"{costs}; {after} useless: {self.hits:.1f} hits expected, detection between "
                f"{self.detection_low:.0%} and {self.detection_high:.0%}."
            )
        return (
            f"{costs}; {after} detection {self.detection:.0%} will be known to lie between "
            f"{self.detection_low:.0%} and {self.detection_high:.0%}."
        )


def plan_probes(
    n_cases: int,
    slots: int,
    prevalence: float,
    *,
    detection: Any,
    shares: Sequence[float] = (0.05, 0.1, 0.2),
    n_periods: Sequence[int] = (1, 7, 30),
    confidence: float = 0.95,
) -> list[ProbePlan]:
    """Show what probes cost in detection now, and how wide their answer will be later.

    Parameters
    ----------
    n_cases, slots : int, int
        Cases and slots in one period.
    prevalence : float
        Share of rare cases.
    detection : float or callable
        Detection with all slots given to the highest scores; what lies below is then computed as
        for normal scores with a shift. Or a function that returns the detection for a number of
        slots, such as ``lambda slots: curve.at(Capacity.count(slots)).detection``.
    shares : sequence of float, default=(0.05, 0.1, 0.2)
        Shares of the slots to look at.
    n_periods : sequence of int, default=(1, 7, 30)
        After how many periods to look.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    list of ProbePlan
        One for each share and number of periods. Print one to read it as a sentence.

    Examples
    --------
    >>> from shortlist.feedback import plan_probes
    >>> for plan in plan_probes(20_000, 400, 0.02, detection=0.55, shares=[0.1]):
    ...     print(plan)
    40 probes a period cost 2.5% of the rare cases; after 1 period useless: 0.4 hits expected, ...
    40 probes a period cost 2.5% of the rare cases; after 7 periods useless: 2.7 hits expected, ...
    40 probes a period cost 2.5% of the rare cases; after 30 periods detection ...
    """
    n_cases = check_count("n_cases", n_cases)
    slots = check_count("slots", slots, at_most=n_cases)
    if not 0 < check_positive("prevalence", prevalence) < 1:
        raise ValueError(f"prevalence must lie between 0 and 1; got {prevalence!r}.")
    found = (
        detection
        if callable(detection)
        else _normal_curve(n_cases, slots, prevalence, float(check_number("detection", detection)))
    )
    error = 1 - check_confidence(confidence)
    return [
        _plan(n_cases, slots, n_cases * prevalence, found, float(share), periods, error)
        for share in shares
        for periods in n_periods
    ]


def _plan(
    n_cases: int, slots: int, rare: float, found: Any, share: float, periods: int, error: float
) -> ProbePlan:
    n_probes = int(share * slots)
    by_score = float(found(slots - n_probes))
    below = (1 - by_score) * rare
    drawn = n_probes / (n_cases - slots + n_probes)
    hits = below * drawn
    detection = by_score + hits / rare
    limits = _expected_interval(by_score * rare * periods, hits * periods, drawn, error)
    return ProbePlan(
        share,
        n_probes,
        float(found(slots)) - detection,
        check_count("n_periods", periods),
        hits * periods,
        detection,
        *limits,
    )


def _expected_interval(found: float, hits: float, drawn: float, error: float) -> Interval:
    """Return the interval for the detection if the hits are as many as expected."""
    if drawn == 0:
        return Interval(0.0, 1.0)
    below = from_shares(round(hits), drawn, error=error)

    def share(rare_below: float) -> float:
        rare = found + max(rare_below, hits)
        return min((found + hits) / rare, 1.0) if rare > 0 else math.nan

    return Interval(share(below.high), share(below.low))


def _normal_curve(
    n_cases: int, slots: int, prevalence: float, detection: float
) -> Callable[[int], float]:
    """Return the detection for each number of slots, for normal scores with a shift that fits."""
    chance = slots / n_cases
    if not chance <= detection <= min(1.0, chance / prevalence):
        raise ValueError(
            f"detection must lie between {chance:.3g}, which chance would find, and "
            f"{min(1.0, chance / prevalence):.3g}, since {slots} slots find no more; got "
            f"{detection!r}."
        )

    rare, common = n_cases * prevalence, n_cases * (1 - prevalence)
    shift = norm.ppf(detection) - norm.ppf((slots - detection * rare) / common)
    shift = min(float(shift), _LARGEST_SHIFT)

    def found(slots: int) -> float:
        def excess(share: float) -> float:
            false_alarms = max(slots - share * rare, 0.0) / common
            return float(norm.cdf(norm.ppf(false_alarms) + shift)) - share

        return float(brentq(excess, 0.0, min(1.0, slots / rare))) if slots > 0 else 0.0

    return found
