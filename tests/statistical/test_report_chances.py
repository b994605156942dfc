"""What a report says about luck."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import betabinom

from shortlist import Capacity, calibrate_threshold
from shortlist.report._summary import expected_flags
from shortlist.tables.monitor import chances_of_flags


def test_chances_are_those_of_the_beta_binomial_law(rng):
    """Simulated: a threshold at an order statistic, then new items above it."""
    n_calibration, k, n_items, runs = 60, 5, 40, 20_000
    calibration = np.sort(rng.random((runs, n_calibration)), axis=1)
    rates = 1 - calibration[:, -(k + 1)]
    flags = rng.binomial(n_items, rates)
    threshold = calibrate_threshold(
        calibration[0], Capacity.count(k, per=n_calibration), guarantee="plug-in", ties="exclude"
    )
    as_many, as_few = chances_of_flags([threshold], n_items, 7)
    # Four standard errors of a share from 20,000 runs are at most 4 * 0.5 / sqrt(20,000) = 0.015.
    assert_allclose([as_many, as_few], [(flags >= 7).mean(), (flags <= 7).mean()], atol=0.015)
    assert as_many == pytest.approx(betabinom.sf(6, n_items, k + 1, n_calibration - k))
    low, high = expected_flags([threshold], n_items)
    # At most 2.5 % on either side, and four standard errors: 4 sqrt(0.025 / 20,000) = 0.0045.
    assert max((flags < low).mean(), (flags > high).mean()) <= 0.025 + 0.0045
    assert betabinom.cdf(low - 1, n_items, k + 1, n_calibration - k) <= 0.025
    assert betabinom.cdf(low, n_items, k + 1, n_calibration - k) > 0.025
    assert betabinom.sf(high, n_items, k + 1, n_calibration - k) <= 0.025
    assert betabinom.sf(high - 1, n_items, k + 1, n_calibration - k) > 0.025
