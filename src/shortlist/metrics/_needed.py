"""What it takes to find a share of the rare items: a capacity curve, read the other way round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.validation import check_number
from ..capacity import exact

if TYPE_CHECKING:
    from ._curve import CapacityCurve


@dataclass(frozen=True)
class NeededCapacity:
    """What it takes to find a share of the rare items; made by `CapacityCurve.needed_for`.

    Attributes
    ----------
    detection : float
        The share of the rare items to find. The others escape.
    n_flagged : int
        The fewest flags that find this share of the rare items of the sample.
    fraction, low, high : float
        The share of all items that must be followed up: in the sample, and both ends of its
        confidence interval in the population.
    threshold : float
        Kept from now on, at least this share of the rare items lies above it, with the same
        confidence; minus infinity if the sample has too few rare items to say so.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import capacity_curve
    >>> curve = capacity_curve(np.arange(1_000) < 40, -np.arange(1_000), rare_label=True)
    >>> needed = curve.needed_for(0.5)
    >>> needed.n_flagged, needed.low, needed.high
    (20, 0.013, 0.035)
    >>> needed.judge(0.05), needed.judge(0.02), needed.judge(0.01)
    (True, None, False)
    """

    detection: float
    n_flagged: int
    fraction: float
    low: float
    high: float
    threshold: float

    def judge(self, fraction: float) -> bool | None:
        """Whether a share of the items is enough, with confidence; None if that is not known."""
        return True if fraction >= self.high else False if fraction < self.low else None

    @classmethod
    def of(cls, curve: CapacityCurve, detection: Any) -> Self:
        """Find the capacities at which the intervals of a curve contain a detection."""
        wanted = exact(check_number("detection", detection))
        if not 0 < wanted <= 1:
            raise ValueError(f"detection must lie above 0 and be at most 1; got {detection!r}.")
        found = np.flatnonzero(curve.n_found >= math.ceil(wanted * curve.n_rare))
        unsure = np.flatnonzero(curve.detection_low < detection)
        if curve.fraction[-1] < 1 and (not found.size or unsure[-1] == curve.fraction.size - 1):
            raise ValueError(
                f"The curve ends at {curve.fraction[-1]:g} of the items, and {detection:g} of the "
                "rare ones may take more. Make it with a larger max_fraction."
            )
        can = int(np.argmax(curve.detection_high >= detection))
        kept = curve.thresholds[curve.at_threshold_low >= detection]
        return cls(
            detection=float(detection),
            n_flagged=int(curve.n_flagged[found[0]]),
            fraction=float(curve.fraction[found[0]]),
            low=float(curve.fraction[max(can - 1, 0)]),
            high=float(curve.fraction[min(unsure[-1] + 1, curve.fraction.size - 1)]),
            threshold=float(kept[0]) if kept.size else -np.inf,
        )
