r"""Where a threshold lies among calibration scores, for each promise.

To add a guarantee, write its function here, and its record in `promise.py`.

Let :math:`U_{(1)} < U_{(2)} < \dots < U_{(n)}` be the upper-tail probabilities of n calibration
scores, the most suspicious first: n ordered uniform numbers, whatever the model, with
:math:`U_{(0)} = 0` and :math:`U_{(n + 1)} = 1`. A threshold lies between two neighbouring places.
Items above place k + 1 are flagged, and of those between the places k + 1 and k + 2 a share s,
drawn by lot. The true flag rate is

.. math:: R = (1 - s) \, U_{(k + 1)} + s \, U_{(k + 2)}.

With s = 0 it follows :math:`\mathrm{Beta}(k + 1, n - k)`. Tied scores that are put in order by a
hash change nothing; if they are left out as a block, R is stochastically smaller, and s must be 0.
Each function below returns the largest k, and then the largest s, that keep one promise about a
capacity c. With k = -1 nothing is flagged for sure, and with k = n everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc

from .._core.arrays import Doubles, Mask, Rows
from .._core.intervals import clopper_pearson_upper, largest


class Place(NamedTuple):
    """A threshold between the places k + 1 and k + 2, with the share that is flagged in between."""

    k: int
    share: float = 0.0


def plug_in_k(n: int, c: Fraction) -> int:
    """Flag at most the fraction `c` of the calibration sample itself: the rule of the paper.

    The true rate then exceeds `c` in about half of all calibrations.
    """
    return math.floor(c * n) if c > 0 else -1


def plug_in_place(n: int, c: Fraction) -> Place:
    """Return the rule of the paper, unless even the highest score is over capacity on average."""
    return Place(plug_in_k(n, c) if expected_place(n, c).k >= 0 else -1)


def expected_place(n: int, c: Fraction) -> Place:
    """Make the expected flag rate, (k + 1 + s) / (n + 1), equal to `c`."""
    k = math.floor((n + 1) * c) - 1
    rest = (n + 1) * c - (k + 1)
    return Place(min(k, n), math.floor(rest * 2**53) / 2**53)  # a lot has 53 digits


def last_place(n: int, law: Callable[[Place], float], most: float) -> Place:
    """Return the last place at which a number, which grows from place to place, is at most `most`.

    With a chance to err, this is the error of a test, and all of it is used.
    """
    k = largest(lambda k: law(Place(k)) <= most, n)
    if k == n:
        return Place(n)

    def excess(share: float) -> float:
        return law(Place(k, share)) - most

    share = 1.0 if excess(1.0) <= 0 else float(brentq(excess, 0.0, 1.0, xtol=1e-9))
    return Place(k, max(share - 1e-8, 0.0))  # no rounding makes it too large


def confident_place(n: int, c: Fraction, *, error: float) -> Place:
    """Make P(R > c) equal to `error`.

    P(U_(k+1) > c) = P(Binomial(n, c) <= k): the order-statistic rule of Tong, Feng and Li,
    Science Advances 4 (2018) eaao1659, with the flag rate in place of the type I error.
    """
    return last_place(n, lambda place: exceedance(place, n, c), error)


def shortfall_place(n: int, c: Fraction, *, error: float) -> Place:
    """Keep the mean of R over the worst share `error` of all calibrations at most `c`.

    That mean is subadditive: at most (1 - s) times that of U_(k+1), plus s times that of U_(k+2).
    """
    return last_place(n, lambda place: tail_mean(place, n, error=error), float(c))


def next_batch_place(
    n: int, max_flags: int, batch: int, *, error: float, n_batches: int = 1
) -> Place:
    """Make P(more than `max_flags` flags among the next `batch` items) equal to `error`.

    With several batches, this is the probability that any of the next `n_batches` has too many.
    They share one threshold with one rate: if its uncertainty is what matters, because batches are
    larger than the calibration sample, many of them cost little more than one.
    """
    if max_flags == 0 or max_flags >= batch:
        return Place(n if max_flags else -1)
    return last_place(
        n, lambda place: _overrun_probability(place, n, max_flags, batch, n_batches), error
    )


def anytime_place(n: int, c: Fraction, *, error: float) -> Place:
    r"""Make P(R > c after any calibration) at most `error`, if each sample contains the last one.

    Of n scores, let N lie above the level that a share c of all scores exceeds; R exceeds c if N is
    at most k. N grows like a walk with steps of probability c. The likelihood ratio of smaller
    steps, on average over all of them,

    .. math:: \frac{1}{c} \int_0^c \frac{p^N (1 - p)^{n - N}}{c^N (1 - c)^{n - N}} \, dp
        = \frac{P(\mathrm{Binomial}(n + 1, c) > N)}{(n + 1) \, c \, P(\mathrm{Binomial}(n, c) = N)},

    is a martingale. It ever reaches 1 / error with probability at most `error` (Ville), and it
    falls in N. Therefore the largest k that reaches 1 / error will do, for all n together.
    """
    if c >= 1 or c == 0:
        return Place(n if c else -1)

    def holds(k: int) -> bool:
        chance, beyond = stats.binom.pmf(k, n, float(c)), stats.binom.sf(k, n + 1, float(c))
        return bool((n + 1) * float(c) * chance <= error * beyond)

    return Place(largest(holds, math.floor(c * n)))


# --- a multiple of an unknown prevalence --------------------------------------------------------


def confident_k_by_walking(
    is_rare: Mask, steps: Rows, b: Fraction, *, error: float, lots: Doubles
) -> int:
    r"""Return the largest `k` with P(rate > b * prevalence) at most `error`.

    With labelled calibration items, walk down the ranking and test after every step that the true
    flag rate is still at most b times the prevalence; stop at the first step that fails. The rate
    grows along the walk, so the whole walk errs only if the one test at the true crossing errs:
    many tests need no correction.

    The test. At a fixed threshold each item is a hit (TP), a false alarm (FP), a miss (FN) or
    neither. The rate is within b times the prevalence when

    .. math:: p_{FP} + p_{TP} \le b \, (p_{TP} + p_{FN}).

    Divide the hits by lot, independently of all data:

    - for b > 1 each hit is turned into a miss with probability 1 - 1/b. The condition becomes
      :math:`p_{FP} \le b \, (p_{FN} + (1 - 1/b) \, p_{TP})`: false alarms are at most b times as
      likely as misses, with the turned hits;
    - for b < 1 each hit is turned into a false alarm with probability 1 - b. The condition becomes
      :math:`p_{FP} + (1 - b) \, p_{TP} \le b \, p_{FN}`: the same, with the turned hits on the
      other side;
    - for b = 1 none is turned.

    Items stay independent, so given the number m of false alarms and misses, the number of false
    alarms is binomial, with a chance of at least q = b / (1 + b) whenever the rate is *not* within
    capacity. P(Binomial(m, q) <= false alarms) <= error is therefore a test of exactly that level,
    whatever the prevalence and the sensitivity are, and whatever m is. At b = 1 it is the sign
    test, and it is continuous there: near b = 1 hardly any hit is turned.

    The lots cost little. Turned hits add (b - 1) to a variance of (b - 1)^2 per hit, b^2 per miss
    and 1 per false alarm. In return there is no nuisance parameter to bound.

    Parameters
    ----------
    is_rare : array of bool
        Labels of the calibration items in ranking order, the most suspicious first.
    steps : array of int
        Increasing numbers of items at which a threshold can be put; the first is 0.
    b : Fraction
        Capacity as a multiple of the prevalence.
    error : float
        Allowed probability of exceeding the capacity.
    lots : array of shape (n_rare,)
        Independent uniform numbers, for the hits in the order in which they are found.
    """
    n_rare = int(np.count_nonzero(is_rare))
    # Beyond b times the rare items even the sample is over capacity.
    steps = steps[steps <= math.floor(b * n_rare)]
    found = np.concatenate([[0], np.cumsum(is_rare)])[steps]
    passed = keeps_multiple(found, steps - found, n_rare, b, error=error, lots=lots)
    n_passed = passed.size if passed.all() else int(np.argmin(passed))
    return int(steps[n_passed - 1]) if n_passed else -1


def keeps_multiple(
    found: Rows,
    false_alarms: Rows,
    n_rare: int,
    b: Fraction,
    *,
    error: float,
    lots: Doubles,
) -> Mask:
    """Test that the rate is at most b times the prevalence, for several thresholds."""
    turned = np.concatenate([[0], np.cumsum(lots < float(1 - min(b, 1 / b if b else b)))])[found]
    misses, alarms = n_rare - found, false_alarms
    if b > 1:
        misses = misses + turned
    else:
        alarms = alarms + turned
    return stats.binom.cdf(alarms, alarms + misses, float(b / (1 + b))) <= error


# --- the law of the rate --------------------------------------------------------------------------


def exceedance(place: Place, n: int, c: float | Fraction) -> float:
    r"""Return P(R > c).

    :math:`A = U_{(k + 1)}` and :math:`B = (U_{(k + 2)} - A) / (1 - A)` are independent, and
    R = A (1 - s B) + s B. Therefore :math:`P(R > c) = E[P(A > (c - s B) / (1 - s B) \mid B)]`.
    """
    c, (k, share) = float(c), place
    if share == 0:
        return float(k >= n and c < 1) if k in (-1, n) else float(stats.beta.sf(c, k + 1, n - k))
    gaps, weights = _gap_nodes(n - k - 1, c / share)
    least = np.clip((c - share * gaps) / np.maximum(1 - share * gaps, 1e-300), 0, 1)
    beyond = 1 - weights.sum()  # gaps so large that R > c whatever A is
    above = 1 - betainc(k + 1, n - k, least) if k >= 0 else 0.0
    return float(np.sum(weights * above) + beyond)


@lru_cache(maxsize=256)
def rate_above(place: Place, n: int, *, error: float) -> float:
    """Return what R exceeds with probability `error`."""
    low = float(clopper_pearson_upper(place.k, n, error=error)) if place.k >= 0 else 0.0
    if place.share == 0:
        return low
    high = float(clopper_pearson_upper(place.k + 1, n, error=error))
    return float(brentq(lambda c: exceedance(place, n, c) - error, low, high))


def tail_mean(place: Place, n: int, *, error: float) -> float:
    """Return the mean of R over the worst share `error` of all calibrations, or a little more.

    Above its (1 - error)-quantile q, U ~ Beta(a, b) has the mean
    P(Beta(a + 1, b) > q) / error * a / (a + b). Unlike quantiles, such means may be averaged over
    several thresholds, however they depend on each other.
    """
    k, share = place
    if share:
        low, high = (tail_mean(Place(each), n, error=error) for each in (k, k + 1))
        return (1 - share) * low + share * high
    if k < 0 or k >= n:
        return float(k >= n)
    a, b = k + 1, n - k
    worst = stats.beta.isf(error, a, b)
    return float(stats.beta.sf(worst, a + 1, b) / error * a / (a + b))


def _overrun_probability(
    place: Place, n: int, max_flags: int, batch: int, n_batches: int = 1
) -> float:
    """Return the probability that any batch has more than `max_flags` flags.

    Given the rate R, the batches are independent: P = 1 - E[F(R)^n_batches] with F the binomial
    distribution function at `max_flags`. For a whole place and one batch the probability is
    hypergeometric, and quicker so: too many new items lie above the threshold exactly when at most
    `k` of the first k + 1 + max_flags places of the joint ranking belong to calibration items.
    """
    k, share = place
    if share == 0 and (n_batches == 1 or k < 0):
        return float(stats.hypergeom.cdf(k, n + batch, n, k + 1 + max_flags))
    rates, weights = _beta_nodes(k + 1, n - k) if k >= 0 else (np.zeros(1), np.ones(1))
    if share:
        gaps, of_gaps = _gap_nodes(n - k - 1, n_panels=_MANY if k < 0 else 24 if k < 9 else 4)
        rates = rates[:, np.newaxis] * (1 - share * gaps) + share * gaps
        weights = weights[:, np.newaxis] * of_gaps
    with np.errstate(divide="ignore"):  # an overrun that is certain
        log_kept = np.log1p(-stats.binom.sf(max_flags, batch, rates))
    return float(np.sum(weights * -np.expm1(n_batches * log_kept)))


# --- numbers --------------------------------------------------------------------------------------

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_MANY = 64  # panels, for functions that rise steeply
_NEGLIGIBLE = 1e-17


def _panels(low: float, high: float, n_panels: int) -> tuple[Doubles, Doubles]:
    """Return nodes and weights that integrate smooth functions from `low` to `high`."""
    edges = np.linspace(low, high, n_panels + 1)
    half = np.diff(edges)[:, np.newaxis] / 2
    nodes = (edges[:-1, np.newaxis] + half * (1 + _NODES)).ravel()
    return nodes, (half * _NODE_WEIGHTS).ravel()


def _beta_nodes(a: int, b: int) -> tuple[Doubles, Doubles]:
    """Return nodes and weights that integrate smooth functions under Beta(a, b)."""
    law = stats.beta(a, b)
    nodes, weights = _panels(law.ppf(_NEGLIGIBLE), law.isf(_NEGLIGIBLE), _MANY)
    weights = weights * law.pdf(nodes)
    return nodes, weights / weights.sum()


def _gap_nodes(n_below: int, limit: float = 1.0, n_panels: int = 8) -> tuple[Doubles, Doubles]:
    """Return nodes and weights for the gap B between two places, Beta(1, n_below), up to a limit.

    B = 1 - exp(-E / n_below) with an exponential number E; without scores below, B = 1.
    """
    if n_below == 0:
        return np.ones(1), np.full(1, float(limit >= 1))
    last = -math.log(_NEGLIGIBLE)
    if limit < 1:
        last = min(last, -n_below * math.log1p(-limit))
    nodes, weights = _panels(0.0, last, n_panels)
    return -np.expm1(-nodes / n_below), weights * np.exp(-nodes)
