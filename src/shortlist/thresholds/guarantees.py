r"""How many of the calibration scores a threshold may leave above it, for each promise.

To add a guarantee, write its function here, and list it in `_calibrate`.

The threshold is the (k + 1)-th largest of `n` calibration scores, and an item is flagged when its
score is strictly above. For scores without ties the true flag rate `R` of that threshold is
distributed as :math:`\mathrm{Beta}(k + 1, n - k)`, whatever the model; with ties it is
stochastically smaller. Each function below returns the largest `k` that keeps one promise about a
capacity `c`; k = -1 stands for a threshold at infinity, which flags nothing, and k = n for one at
minus infinity.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from .._core.arrays import Floats

__all__ = [
    "confident_k",
    "confident_sample_size",
    "expected_k",
    "expected_sample_size",
    "next_batch_k",
    "next_batch_sample_size",
    "plug_in_k",
    "tail_mean",
]


def plug_in_k(n: int, c: Fraction) -> int:
    """Flag at most the fraction `c` of the calibration sample itself: the rule of the paper.

    The true rate then exceeds `c` in about half of all calibrations.
    """
    return math.floor(c * n) if c > 0 else -1


def expected_k(n: int, c: Fraction) -> int:
    """Keep the expected flag rate, (k + 1) / (n + 1), at most `c`: split conformal calibration."""
    return math.floor((n + 1) * c) - 1


def expected_sample_size(c: Fraction) -> int:
    """Return the smallest n for which :func:`expected_k` flags anything."""
    return math.ceil(1 / c) - 1


def confident_k(n: int, c: Fraction, *, error: float) -> int:
    """Keep P(R > c) at most `error`.

    P(R > c) = P(Binomial(n, c) <= k): the order-statistic rule of Tong, Feng and Li,
    Science Advances 4 (2018) eaao1659, with the flag rate in place of the type I error.
    """
    if c >= 1:
        return n
    if c == 0:
        return -1
    k = int(stats.binom.ppf(error, n, float(c)))
    return k if stats.binom.cdf(k, n, float(c)) <= error else k - 1


def confident_sample_size(c: Fraction, *, error: float) -> int:
    """Return the smallest n for which :func:`confident_k` flags anything."""
    return math.ceil(math.log(error) / math.log1p(-float(c)))


def tail_mean(k: int, n: int, *, error: float) -> float:
    """Return the mean of R over the worst share `error` of all calibrations.

    Above its (1 - error)-quantile q, R ~ Beta(a, b) has the mean
    P(Beta(a + 1, b) > q) / error * a / (a + b). Unlike quantiles, such means may be averaged over
    several thresholds, however they depend on each other.
    """
    if k < 0 or k >= n:
        return float(k >= n)
    a, b = k + 1, n - k
    worst = stats.beta.isf(error, a, b)
    return float(stats.beta.sf(worst, a + 1, b) / error * a / (a + b))


def next_batch_k(n: int, max_flags: int, batch: int, *, error: float, n_batches: int = 1) -> int:
    """Keep P(more than `max_flags` flags among the next `batch` items) at most `error`.

    With several batches, this is the probability that any of the next `n_batches` has too many.
    They share one threshold with one rate: if its uncertainty is what matters, because batches are
    larger than the calibration sample, many of them cost little more than one.
    """
    if max_flags >= batch:
        return n
    if max_flags == 0:
        return -1
    low, high = -1, n - 1  # `low` keeps the promise; P grows with k
    while low < high:
        k = (low + high + 1) // 2
        if _overrun_probability(k, n, max_flags, batch, n_batches) <= error:
            low = k
        else:
            high = k - 1
    return low


def next_batch_sample_size(max_flags: int, batch: int, *, error: float, n_batches: int = 1) -> int:
    """Return the smallest n for which :func:`next_batch_k` flags anything."""
    low, high = 0, 1
    while _overrun_probability(0, high, max_flags, batch, n_batches) > error:
        low, high = high, 2 * high
    while high - low > 1:
        n = (low + high) // 2
        if _overrun_probability(0, n, max_flags, batch, n_batches) <= error:
            high = n
        else:
            low = n
    return high


def _overrun_probability(k: int, n: int, max_flags: int, batch: int, n_batches: int = 1) -> float:
    """Return the probability that any batch has more than `max_flags` flags.

    In one batch the number of flags is beta-binomial. The same probability is hypergeometric and
    quicker so: too many new items lie above the threshold exactly when at most `k` of the first
    k + 1 + max_flags places of the joint ranking belong to calibration items.

    Given the rate R, the batches are independent: P = 1 - E[F(R)^n_batches] with R as above and F
    the binomial distribution function at `max_flags`.
    """
    if n_batches == 1:
        return float(stats.hypergeom.cdf(k, n + batch, n, k + 1 + max_flags))
    rates, weights = _beta_quadrature(k + 1, n - k)
    with np.errstate(divide="ignore"):  # an overrun that is certain
        log_kept = np.log1p(-stats.binom.sf(max_flags, batch, rates))
    overruns = -np.expm1(n_batches * log_kept)
    return float(weights @ overruns)


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
_PANELS = 64
_BEYOND = 1e-17  # probability on each side that the quadrature leaves out


def _beta_quadrature(a: int, b: int) -> tuple[Floats, Floats]:
    """Return nodes and weights that integrate smooth functions under Beta(a, b)."""
    law = stats.beta(a, b)
    edges = np.linspace(law.ppf(_BEYOND), law.isf(_BEYOND), _PANELS + 1)
    half = np.diff(edges)[:, np.newaxis] / 2
    nodes = (edges[:-1, np.newaxis] + half * (1 + _NODES)).ravel()
    weights = (half * _NODE_WEIGHTS).ravel() * law.pdf(nodes)
    return nodes, weights / weights.sum()
