r"""Exact confidence bounds: of a proportion, and of the mean of bounded numbers.

The bounds of a mean rest on bets. Let :math:`x_1, \dots, x_n` be independent, between 0 and 1, with
mean :math:`m`. Somebody who claims :math:`m \ge c` must accept the bets :math:`1 + b (c - x_i)`,
which pay at most 1 on average and never less than 0 if :math:`0 \le b \le 1 / (1 - c)`. The
capital :math:`\prod_i (1 + b (c - x_i))` then exceeds :math:`1 / \delta` with probability at most
:math:`\delta` (Markov). So does the average capital of several such gamblers, each with a stake b
of its own that does not depend on the sample. The order of the sample does not matter.

This is the test of Waudby-Smith and Ramdas (JRSS B 86, 2024) with fixed stakes. Numbers that are 0
or r are a coin of another size: the stake that is best against it is known. Gamblers for r = 1,
1/2, 1/4 and 1/8 cover what the spread of the numbers may be.
"""

from __future__ import annotations

import math
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


# --- means, by betting -----------------------------------------------------------------------

_SIZES = 0.5 ** np.arange(4)
_SAFE = 1e-9  # more than rounding can add to a log capital
_LARGEST_STAKE = 0.999  # of what a gambler may stake at most, who must not lose everything


def _stakes_against(c: float, n: int, *, error: float) -> Doubles:
    """Return stakes, chosen before seeing the sample, against the claim that the mean is >= c."""
    sizes = _SIZES[c < _SIZES] if c < 1 else _SIZES[:1]
    most = _LARGEST_STAKE / (1 - c)
    return np.array([min(_best_stake(c / size, n, error) / size, most) for size in sizes])


def _best_stake(c: float, n: int, error: float) -> float:
    """Return the stake on a coin that grows fastest at the mean that is just told from c."""
    wanted = math.log(1 / error) / n
    if -math.log1p(-c) <= wanted:
        return 1 / (1 - c)
    mean = brentq(lambda m: _divergence(m, c) - wanted, 0.0, c)
    return (c - mean) / (c * (1 - c))


def _divergence(m: float, c: float) -> float:
    """Return the Kullback-Leibler divergence of two coins."""
    heads = m * math.log(m / c) if m > 0 else 0.0
    return heads + (1 - m) * (math.log1p(-m) - math.log1p(-c)) if m < 1 else -math.log(c)


def mean_lower(numbers: Doubles, *, error: float) -> float:
    """Return what the mean of numbers in [0, 1] lies below with probability at most `error`."""
    return 1 - mean_upper(1 - numbers, error=error)


def mean_upper(numbers: Doubles, *, error: float) -> float:
    """Return what the mean of numbers in [0, 1] exceeds with probability at most `error`."""
    if numbers.size == 0:
        return 1.0
    least, needed = float(numbers.mean()), math.log(1 / error) + _SAFE

    def is_refuted(c: float) -> bool:
        stakes = _stakes_against(c, numbers.size, error=error)
        capital = np.log1p(np.outer(stakes, c - numbers)).sum(axis=1)
        return bool(logsumexp(capital) - math.log(capital.size) >= needed)  # on average

    # From above: the first claim of a grid that stands, and then its neighbourhood.
    grid = np.geomspace(max(least, 1e-9), 1, 48)
    standing = [i for i in range(47) if not is_refuted(float(grid[i]))]
    place = max(standing, default=0)
    low, high = float(grid[place]), float(grid[place + 1])
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if is_refuted(middle) else (middle, high)
    return float(high)


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
