r"""A bound for every order statistic at once: a capacity may then be chosen after looking.

Let :math:`U_{(1)} < \dots < U_{(n)}` be the upper-tail probabilities of the calibration scores,
the most suspicious first; without ties they are n ordered uniform numbers. The threshold that
leaves k scores above it has the rate :math:`U_{(k+1)}`, and with ties at most that. If

.. math:: P(U_{(k+1)} > u_k \text{ for some } k) \le \delta,

then with probability 1 - delta *every* k with :math:`u_k \le c` keeps its capacity c, whichever c
is chosen, and whatever it was chosen by. Between two places the bound is interpolated, as the rate
is.

All :math:`u_k` are taken at the same local level: :math:`P(U_{(k+1)} > u_k) = \alpha` for each k
(Berk and Jones 1979; Gontscharuk and Finner 2016). Larger than delta / n by far, the level is found
from the exact probability of a crossing. That follows the number N(t) of uniform numbers below t:
a bound is crossed when :math:`N(u_k) \le k`. N is a Poisson process of rate n, conditioned on
N(1) = n (Moscovich and Nadler, Statistics & Probability Letters 123, 2017); its distribution over
the paths that have crossed no bound is carried from each bound to the next by one convolution.

Neighbouring order statistics say nearly the same, and capacities are mostly small. Only some k
have a bound: all up to 200, then at distances of 1 % of k, and above n / 2 at distances of a sixth
of n. The probability is exact for these; any other k is covered by the next larger one, because the
rate grows with k.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaln

from .._core.arrays import Rows
from .._core.intervals import Interval
from .guarantees import Place, last_place

_STATES = 10.0  # standard deviations of a Poisson count kept; less than 1e-18 lies beyond
_NEGLIGIBLE = 40


def simultaneous_place(n: int, c: Fraction, *, error: float) -> Place:
    """Return the place whose rate is bounded by `c`, for all `c` at once up to `error`."""
    if c >= 1 or c == 0:
        return Place(n if c else -1)
    return last_place(n, lambda place: _upper(place, n, error), float(c))


def simultaneous_interval(place: Place, n_flagged: int, n: int, *, error: float) -> Interval:
    """Bound the rate of a threshold that was chosen by looking: above its place, below the flags.

    Each side holds for all thresholds at once up to half of `error`. The flagged items have the
    lowest upper-tail probabilities, and all of them lie below the rate: the rate is at least the
    `n_flagged`-th. Its lower bound mirrors the upper one of place n - `n_flagged`.
    """
    low = 1 - _bound(n - n_flagged, n, error / 2, mirrored=True) if n_flagged else 0.0
    return Interval(low, _upper(place, n, error / 2))


def _upper(place: Place, n: int, error: float) -> float:
    """Return the bound of the rate of a threshold."""
    upper, lower = (_bound(k, n, error) for k in (place.k, place.k + 1))
    return (1 - place.share) * upper + place.share * lower


def _bound(k: int, n: int, error: float, *, mirrored: bool = False) -> float:
    places = bounded_places(n, mirrored=mirrored)
    if k < 0 or k > places[-1]:
        return float(k >= 0)
    place = int(places[np.searchsorted(places, k)])
    level = local_level(n, error, mirrored=mirrored)
    return float(betaincinv(place + 1, n - place, 1 - level))


@lru_cache(maxsize=256)
def local_level(n: int, error: float, *, mirrored: bool = False) -> float:
    """Return the error for each single bound at which all of them hold together up to `error`."""
    places = bounded_places(n, mirrored=mirrored)
    if places.size == 1:
        return error

    def excess(log_level: float) -> float:
        return crossing_probability(n, math.exp(log_level), places) - error

    # At least an equal share of the error, by Bonferroni, and at most all of it.
    level = math.exp(brentq(excess, math.log(error / places.size), math.log(error), rtol=1e-7))
    while crossing_probability(n, level, places) > error:  # to the safe side of the root
        level *= 1 - 1e-6
    return level


def crossing_probability(n: int, level: float, places: Rows) -> float:
    """Return the probability that any bound of these places, at this local level, is crossed."""
    from scipy.signal import convolve  # takes longer to import than a small model to fit

    bounds = betaincinv(places + 1.0, n - places, 1 - level)
    times = n * np.concatenate([[0.0], bounds])
    kept, first = np.ones(1), 0  # probabilities of N = first, first + 1, ... without a crossing
    for place, before, time in zip(places.tolist(), times[:-1], times[1:], strict=True):
        kept = convolve(kept, _poisson(time - before))
        last = min(n, math.ceil(time + _STATES * math.sqrt(time)) + _NEGLIGIBLE)
        kept = kept[place + 1 - first : last + 1 - first]
        first = place + 1
    states = np.arange(first, first + kept.size)
    to_the_end = _log_poisson(n - states, n - times[-1]) - _log_poisson(np.array([n]), n)
    return max(0.0, 1 - float(np.sum(kept * np.exp(to_the_end))))


def _poisson(mean: float) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1, 2, ... until they are negligible."""
    last = math.ceil(mean + _STATES * math.sqrt(mean)) + _NEGLIGIBLE
    return np.exp(_log_poisson(np.arange(last + 1), mean))


def _log_poisson(counts: Rows, mean: float) -> NDArray[np.float64]:
    return counts * math.log(mean) - mean - gammaln(counts + 1.0)


@lru_cache(maxsize=64)
def bounded_places(n: int, *, mirrored: bool = False) -> Rows:
    """Return the numbers k that have a bound of their own, fine at 0 or, mirrored, at n - 1."""
    places = [0]
    while (k := places[-1]) < n - 1:
        step = max(1, k // 100 if 2 * k < n else n // 6)
        if k + step > n - 1:
            break
        places.append(k + step)
    ascending = np.array(places, dtype=np.intp)
    return n - 1 - ascending[::-1] if mirrored else ascending
