"""Exact confidence bounds: of a proportion, and of a sum of bounded numbers.

The bounds of a sum rest on bets: a gambler with a fixed stake b turns a capital of 1 into a product
that is at most 1 on average if a claim about the sum is true, and exceeds 1 / error with
probability at most `error` (Markov). So does the average capital of several gamblers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betaincinv, logsumexp

from .arrays import Doubles


class Interval(NamedTuple):
    """Two ends of a confidence interval."""

    low: float
    high: float


def clopper_pearson_lower(successes: ArrayLike, trials: ArrayLike, *, error: float) -> Any:
    """Return the lower bound that exceeds the true proportion with probability at most `error`.

    Clopper and Pearson (1934). Without trials nothing is known and the bound is 0.
    """
    x, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    return np.where(x > 0, betaincinv(np.maximum(x, 1), n - x + 1, error), 0.0)[()]


def clopper_pearson_upper(successes: ArrayLike, trials: ArrayLike, *, error: float) -> Any:
    """Return the upper bound that lies below the true proportion with probability <= `error`."""
    x, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    return np.where(x < n, betaincinv(x + 1, np.maximum(n - x, 1), 1 - error), 1.0)[()]


def proportion_interval(successes: float, trials: float, *, error: float = 0.05) -> Interval:
    """Return the two-sided interval of Clopper and Pearson, at 95 % by default.

    Without trials it is (0, 1).
    """
    if trials == 0:
        return Interval(0.0, 1.0)
    return Interval(
        float(clopper_pearson_lower(successes, trials, error=error / 2)),
        float(clopper_pearson_upper(successes, trials, error=error / 2)),
    )


def largest(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to `most` for which a promise holds; -1 always does."""
    low, high = -1, most
    while low < high:
        k = (low + high + 1) // 2
        low, high = (k, high) if holds(k) else (low, k - 1)
    return low


# --- sums of numbers that are mostly 0, by betting -------------------------------------------

# Most is staked on numbers that are far below 1, such as the amounts of most cases.
_ABOVE, _CAPITAL = np.array([0.99, 0.5, 0.25, 0.1]), np.log([0.55, 0.2, 0.15, 0.1])
_BELOW = np.array([20, 5, 1.2, 0.3, 0.1])


def total_upper(numbers: Doubles, *, error: float) -> float:
    """Return what the mean of a sum of numbers in [0, 1] exceeds with probability at most `error`.

    The numbers may have any laws, and be independent or drawn without replacement; those that are 0
    need not be given. A stake of b turns a capital of 1 into ``exp(b m)`` times the product of
    ``1 - b x``, which is at most 1 on average unless m is above the mean of the sum.
    """
    capital = _CAPITAL + np.log1p(-np.outer(_ABOVE, numbers)).sum(axis=1)
    needed = math.log(1 / error)
    most = float(((needed - capital) / _ABOVE).min())
    return float(brentq(lambda m: logsumexp(_ABOVE * m + capital) - needed, 0.0, most))


def total_lower(numbers: Doubles, *, error: float) -> float:
    """Return what the mean of such a sum lies below with probability at most `error`."""
    capital = np.log1p(np.outer(_BELOW, numbers)).sum(axis=1)
    needed = math.log(_BELOW.size / error)
    if logsumexp(capital) <= needed:
        return 0.0
    most = float(numbers.sum())
    return float(brentq(lambda m: logsumexp(capital - _BELOW * m) - needed, 0.0, most))
