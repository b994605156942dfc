"""Simulated data for examples and tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["FRAUD_FEATURES", "make_fraud"]

#: Names of the columns that :func:`make_fraud` returns.
FRAUD_FEATURES = (
    "amount",
    "hour",
    "km_from_home",
    "payments_last_day",
    "card_age_days",
    "merchant_risk",
    "new_device",
    "abroad",
)


def make_fraud(
    n_samples: int = 40_000, *, prevalence: float = 0.01, random_state: Any = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Simulate card payments of which a small share is fraudulent.

    Some frauds are obvious (large, at night, far away, from a new device), others look almost like
    ordinary payments, and most lie in between. The simulation is not based on real data.

    Parameters
    ----------
    n_samples : int, default=40_000
        Number of payments.
    prevalence : float, default=0.01
        Share of frauds, rounded to whole payments.
    random_state : int, RandomState instance or None, default=0
        The same number gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 8)
        Columns as in `FRAUD_FEATURES`.
    y : ndarray of shape (n_samples,)
        1 for a fraud, 0 for an ordinary payment.

    Examples
    --------
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(10_000)
    >>> X.shape, int(y.sum())
    ((10000, 8), 100)
    """
    rng = check_random_state(random_state)
    y = np.zeros(n_samples, dtype=np.int64)
    y[: round(prevalence * n_samples)] = 1
    rng.shuffle(y)
    # How far a payment departs from ordinary ones: from 0, not at all, to 1, blatantly.
    oddity = np.where(y == 1, rng.beta(1.3, 1.0, size=n_samples), 0.0)
    X = np.column_stack(
        [
            rng.lognormal(3.2 + 1.5 * oddity, 1.0),
            (rng.normal(15 - 11 * oddity, 4.5) % 24).round(1),
            rng.lognormal(1.5 + 2.0 * oddity, 1.4),
            rng.poisson(2 + 4 * oddity),
            rng.gamma(2.0, 500 / (1 + 2 * oddity)).round(),
            rng.beta(2 + 2 * oddity, 8),
            rng.uniform(size=n_samples) < 0.05 + 0.45 * oddity,
            rng.uniform(size=n_samples) < 0.04 + 0.30 * oddity,
        ]
    )
    return X, y
