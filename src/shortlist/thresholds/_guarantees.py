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

from .._core.arrays import Mask, Rows
from .._core.binomial import clopper_pearson_upper

__all__ = [
    "confident_k",
    "confident_k_by_walking",
    "confident_sample_size",
    "expected_k",
    "expected_sample_size",
    "next_batch_k",
    "next_batch_sample_size",
    "plug_in_k",
    "rare_items_needed",
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


def next_batch_k(n: int, max_flags: int, batch: int, *, error: float) -> int:
    """Keep P(more than `max_flags` flags among the next `batch` items) at most `error`.

    The number of flags is beta-binomial. The same probability is hypergeometric and quicker so:
    too many new items lie above the threshold exactly when at most `k` of the first
    k + 1 + max_flags places of the joint ranking belong to calibration items.
    """
    if max_flags >= batch:
        return n
    if max_flags == 0:
        return -1
    low, high = -1, n - 1  # `low` keeps the promise; P grows with k
    while low < high:
        k = (low + high + 1) // 2
        if _overrun_probability(k, n, max_flags, batch) <= error:
            low = k
        else:
            high = k - 1
    return low


def next_batch_sample_size(max_flags: int, batch: int, *, error: float) -> int:
    """Return the smallest n for which :func:`next_batch_k` flags anything."""
    low, high = 0, 1
    while _overrun_probability(0, high, max_flags, batch) > error:
        low, high = high, 2 * high
    while high - low > 1:
        n = (low + high) // 2
        if _overrun_probability(0, n, max_flags, batch) <= error:
            high = n
        else:
            low = n
    return high


def _overrun_probability(k: int, n: int, max_flags: int, batch: int) -> float:
    return float(stats.hypergeom.cdf(k, n + batch, n, k + 1 + max_flags))


# --- a multiple of an unknown prevalence ----------------------------------------------------------
#
# With labelled calibration items, walk down the ranking and test after every step that the true
# flag rate is still at most b times the prevalence; stop at the first step that fails. The rate
# grows along the walk, so the whole walk errs only if the one test at the true crossing errs: many
# tests need no correction.

# Share of the allowed error spent on bounding the sensitivity (Berger and Boos, JASA 89, 1994).
_NUISANCE_SHARE = 0.1


def confident_k_by_walking(is_rare: Mask, steps: Rows, b: Fraction, *, error: float) -> int:
    r"""Return the largest `k` with P(rate > b * prevalence) at most `error`.

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
    """
    n_rare = int(np.count_nonzero(is_rare))
    # Beyond b times the rare items even the sample is over capacity, and no test can pass.
    steps = steps[steps <= math.floor(b * n_rare)]
    found = np.concatenate([[0], np.cumsum(is_rare)])[steps]
    passed = _passes(found, steps - found, n_rare, b, error)
    n_passed = passed.size if passed.all() else int(np.argmin(passed))
    return int(steps[n_passed - 1]) if n_passed else -1


def rare_items_needed(b: Fraction, *, error: float) -> int | None:
    """Return how many rare calibration items it takes to flag anything; `None` if over 10^6."""
    n_rare = np.unique(np.geomspace(1, 1e6, 4000).astype(int))
    none = np.zeros_like(n_rare)
    passed = _passes(none, none, n_rare, b, error)
    return int(n_rare[np.argmax(passed)]) if passed.any() else None


def _passes(found, false_alarms, n_rare, b: Fraction, error: float) -> Mask:
    if b == 1:
        return _sign_test(found, false_alarms, n_rare, error)
    return _berger_boos_test(found, false_alarms, n_rare, float(b), error)


def _sign_test(found, false_alarms, n_rare, error: float) -> Mask:
    """With b = 1 the rate is within capacity when false alarms are no likelier than misses."""
    missed = n_rare - found
    return stats.binom.cdf(false_alarms, false_alarms + missed, 0.5) <= error


def _berger_boos_test(found, false_alarms, n_rare, b: float, error: float) -> Mask:
    """Bound the sensitivity first, then test the share of false alarms beside the rare items."""
    nuisance_error = _NUISANCE_SHARE * error
    sensitivity = clopper_pearson_upper(found, n_rare, error=nuisance_error)
    room = np.maximum(b - sensitivity, 0.0)
    p_value = stats.binom.cdf(false_alarms, n_rare + false_alarms, room / (1 + room))
    return p_value <= error - nuisance_error
