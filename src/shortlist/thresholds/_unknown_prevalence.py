r"""A confident threshold when the capacity is a multiple of a prevalence that nobody knows.

With labelled calibration items, walk down the ranking and test after every step that the true flag
rate is still at most :math:`b\pi_0`; stop at the first step that fails. The rate grows along the
walk, so the whole walk errs only if the one test at the true crossing errs: no correction for
many tests is needed.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._core.binomial import clopper_pearson_upper

__all__ = ["confident_k_by_walking", "rare_items_needed"]

# Share of the allowed error spent on bounding the sensitivity (Berger and Boos, JASA 89, 1994).
_NUISANCE_SHARE = 0.1


def confident_k_by_walking(
    is_rare: NDArray[np.bool_], steps: NDArray[np.intp], b: Fraction, *, error: float
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


def _passes(found, false_alarms, n_rare, b: Fraction, error: float) -> NDArray[np.bool_]:
    if b == 1:
        return _sign_test(found, false_alarms, n_rare, error)
    return _berger_boos_test(found, false_alarms, n_rare, float(b), error)


def _sign_test(found, false_alarms, n_rare, error: float) -> NDArray[np.bool_]:
    """With b = 1 the rate is within capacity when false alarms are no likelier than misses."""
    missed = n_rare - found
    return stats.binom.cdf(false_alarms, false_alarms + missed, 0.5) <= error


def _berger_boos_test(found, false_alarms, n_rare, b: float, error: float) -> NDArray[np.bool_]:
    """Bound the sensitivity first, then test the share of false alarms beside the rare items."""
    nuisance_error = _NUISANCE_SHARE * error
    sensitivity = clopper_pearson_upper(found, n_rare, error=nuisance_error)
    room = np.maximum(b - sensitivity, 0.0)
    p_value = stats.binom.cdf(false_alarms, n_rare + false_alarms, room / (1 + room))
    return p_value <= error - nuisance_error
