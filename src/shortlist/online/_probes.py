"""Probes of a budget: some of its flags go to items below the threshold, drawn by a keyed hash.

An item below the threshold is drawn if its number, a keyed hash of its id, lies below a rate. The
rate is fixed at the start of a period from earlier arrivals: in a period as busy as the busiest one
remembered, the share of the flags is drawn on average. Each item is drawn with exactly this
probability, whatever happened before it.

The number of draws varies. Flags are kept for those still to come, with a margin that shrinks
towards the end of the period; scores get all others. A limit that 999 of 1,000 such periods keep
protects the scores from a flood of arrivals. Whatever is drawn beyond it is not flagged, and says
so: it is a probe whose outcome stays unknown, not an item that nobody drew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.stats import poisson

from . import _ledger as book
from .decisions import ABOVE_THRESHOLD, PROBE, PROBE_WITHOUT_SLOT

_SUFFICES = 0.999
_MARGIN = 3.1  # standard deviations of the number of draws still to come
_ROUND_UP = 0.7  # the last flag is kept until fewer than about 0.01 draws are to come
_HIGHEST_RATE = 0.5
_STEPS = 8  # rates are powers of two to the eighth part: steady arrivals keep the same one


def most_probes(mean: float, n_flags: int) -> int:
    """Return the most draws that get a flag in a period with so many on average."""
    return min(int(poisson.ppf(_SUFFICES, mean)) if mean > 0 else 0, n_flags)


@njit(cache=True)
def set_rate(ledger: Any) -> None:
    """Fix the rate for arrivals as in the busiest remembered period."""
    floats = ledger.floats
    arrivals = max(floats[book.EXPECTED], ledger.sizes[2].max())
    below = max(arrivals - (ledger.ints[book.TOTAL] - floats[book.MEAN_DRAWS]), 1.0)
    rate = min(floats[book.MEAN_DRAWS] / below, _HIGHEST_RATE)
    floats[book.RATE] = 0.0 if rate <= 0 else 2.0 ** (np.floor(_STEPS * np.log2(rate)) / _STEPS)


@njit(cache=True)
def keep_for_probes(still_to_come: float, ledger: Any) -> None:
    """Leave to scores the flags that neither drawn items have used nor later ones will need."""
    ints = ledger.ints
    mean = ledger.floats[book.RATE] * still_to_come
    needed = int(min(mean + _MARGIN * np.sqrt(mean) + _ROUND_UP, 1e15))
    left = max(ints[book.ALLOWED] - ints[book.DRAWN], 0)
    ints[book.CAPACITY] = max(ints[book.TOTAL] - ints[book.DRAWN] - min(needed, left), 0)


@njit(cache=True)
def draw_probe(code: int, number: float, ledger: Any) -> tuple[int, float]:
    """Draw an item unless it was flagged; return the reason's code and the probability."""
    if code == ABOVE_THRESHOLD:
        return code, 1.0
    ints, rate = ledger.ints, ledger.floats[book.RATE]
    if number >= rate:
        return code, rate
    if (
        ints[book.DRAWN] < ints[book.ALLOWED]
        and ints[book.USED] + ints[book.DRAWN] < ints[book.TOTAL]
    ):
        ints[book.DRAWN] += 1
        ints[book.CAPACITY] = max(min(ints[book.CAPACITY], ints[book.TOTAL] - ints[book.DRAWN]), 0)
        return PROBE, rate
    return PROBE_WITHOUT_SLOT, rate
