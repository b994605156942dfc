"""What a report says about luck."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import betabinom

from shortlist import Capacity, calibrate_threshold
from shortlist.report._promise import FlagLaw


def test_chances_are_those_of_the_beta_binomial_law(rng):
    """Simulated: a threshold at an order statistic, then new items above it."""
    n_calibration, k, n_items, runs = 60, 5, 40, 20_000
    calibration = np.sort(rng.random((runs, n_calibration)), axis=1)
    rates = 1 - calibration[:, -(k + 1)]
    flags = rng.binomial(n_items, rates)
    threshold = calibrate_threshold(
        calibration[0], Capacity.count(k, per=n_calibration), guarantee="plug-in", ties="exclude"
    )
    law = FlagLaw([threshold], n_items)
    as_many, as_few = law.chance_of_as_many(7), law.chance_of_as_few(7)
    # Four standard errors of a share from 20,000 runs are at most 4 * 0.5 / sqrt(20,000) = 0.015.
    assert_allclose([as_many, as_few], [(flags >= 7).mean(), (flags <= 7).mean()], atol=0.015)
    assert as_many == pytest.approx(betabinom.sf(6, n_items, k + 1, n_calibration - k))
    low, high = law.expected()
    outside = (flags < low).mean(), (flags > high).mean()
    # At most 2.5 % on either side, and four standard errors: 4 sqrt(0.025 / 20,000) = 0.0045.
    assert max(outside) <= 0.025 + 0.0045
    assert law.chance_of_as_few(low - 1) <= 0.025 < law.chance_of_as_few(low)
    assert law.chance_of_as_many(high + 1) <= 0.025 < law.chance_of_as_many(high)
