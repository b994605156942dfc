"""How many rare cases there are below the cut, given the hits among probes drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import binom, chi2, hypergeom

from .._core.arrays import Floats, Rows
from .._core.intervals import Interval


def estimated_count(hits: Rows, shares: Floats) -> float:
    """Return the unbiased estimate: each hit stands for as many cases as one probe was drawn of."""
    return float(np.sum(hits / shares))


def count_interval(
    hits: Rows, shares: Floats, *, error: float, drawn: int = 0, total: int | None = None
) -> Interval:
    """Return an interval for the number of rare cases that the probes were drawn from.

    Parameters
    ----------
    hits : ndarray of int
        Rare probes in each stratum.
    shares : ndarray of float
        The share of the cases that was drawn in each stratum.
    error : float
        Probability of missing the truth, half of it on each side.
    drawn, total : int, int
        For one stratum in which exactly `drawn` of `total` cases were drawn.

    Returns
    -------
    Interval
        Exact for one batch (hypergeometric) and for equal shares (binomial); for several shares by
        the gamma intervals of Fay and Feuer (1997).
    """
    if total is not None and hits.size == 1:
        return from_total(int(hits[0]), drawn, total, error=error)
    if np.ptp(shares) <= 1e-9 * shares.max():
        return from_shares(int(hits.sum()), float(shares.max()), error=error)
    return from_strata(hits, shares, error=error)


def from_total(hits: int, drawn: int, total: int, *, error: float) -> Interval:
    """Invert the hypergeometric tests: `drawn` cases of `total`, of which `hits` are rare."""
    least, most = hits, total - drawn + hits
    low = _first(lambda n: hypergeom.sf(hits - 1, total, n, drawn) > error / 2, least, most)
    high = _first(lambda n: hypergeom.cdf(hits, total, n, drawn) <= error / 2, least, most + 1) - 1
    return Interval(float(low), float(max(high, low)))


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


def _first(holds: Callable[[int], bool], start: int, most: int | None = None) -> int:
    """Return the first whole number from `start` on for which a monotone statement holds.

    At most `most`, which is returned unchecked.
    """
    step, low = 1, start
    if holds(low) or low == most:
        return low
    high = low + step
    while (most is None or high < most) and not holds(high):
        low, step = high, 2 * step
        high = low + step
    high = high if most is None else min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
