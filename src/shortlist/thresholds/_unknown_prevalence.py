r"""A multiple of a prevalence that is not known: an exact test without the prevalence.

With labelled calibration items, walk down the ranking and test after every step that the true
flag rate is still at most b times the prevalence; stop at the first step that fails. The rate
grows along the walk, so the whole walk errs only if the one test at the true crossing errs: many
tests need no correction.

The test. At a fixed threshold each item is a hit (TP), a false alarm (FP), a miss (FN) or neither.
The rate is within b times the prevalence when

.. math:: p_{FP} + p_{TP} \le b \, (p_{TP} + p_{FN}).

Divide the hits by lot, independently of all data:

- for b > 1 each hit is turned into a miss with probability 1 - 1/b. The condition becomes
  :math:`p_{FP} \le b \, (p_{FN} + (1 - 1/b) \, p_{TP})`: false alarms are at most b times as likely
  as misses, with the turned hits;
- for b < 1 each hit is turned into a false alarm with probability 1 - b. The condition becomes
  :math:`p_{FP} + (1 - b) \, p_{TP} \le b \, p_{FN}`: the same, with the turned hits on the other
  side;
- for b = 1 none is turned.

Items stay independent, so given the number m of false alarms and misses, the number of false alarms
is binomial, with a chance of at least q = b / (1 + b) whenever the rate is *not* within capacity.
P(Binomial(m, q) <= false alarms) <= error is therefore a test of exactly that level, whatever the
prevalence and the sensitivity are, and whatever m is. At b = 1 it is the sign test, and it is
continuous there: near b = 1 hardly any hit is turned.

The lots cost little. Turned hits add (b - 1) to a variance of (b - 1)^2 per hit, b^2 per miss and 1
per false alarm. In return there is no nuisance parameter to bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._core.arrays import Mask, Rows

__all__ = ["confident_k_by_walking", "keeps_multiple"]


def confident_k_by_walking(
    is_rare: Mask, steps: Rows, b: Fraction, *, error: float, lots: NDArray[np.float64]
) -> int:
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
    lots: NDArray[np.float64],
) -> Mask:
    """Test that the rate is at most b times the prevalence, for several thresholds."""
    turned = np.concatenate([[0], np.cumsum(lots < float(1 - min(b, 1 / b if b else b)))])[found]
    misses, alarms = n_rare - found, false_alarms
    if b > 1:
        misses = misses + turned
    else:
        alarms = alarms + turned
    return stats.binom.cdf(alarms, alarms + misses, float(b / (1 + b))) <= error
