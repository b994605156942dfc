"""Exact intervals for proportions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

__all__ = ["Interval", "clopper_pearson_lower", "clopper_pearson_upper", "proportion_interval"]


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
