"""The interval of the true flag rate covers for every distribution of the scores, tied or not.

Coverage is computed, not simulated: for scores with a few values, the counts of the values are
multinomial, and every possible count is calibrated once.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity, calibrate_threshold


def compositions(n, parts):
    """Return all counts of `parts` values among n items, one row each."""
    heads = np.array(list(product(range(n + 1), repeat=parts - 1)), dtype=int)
    heads = heads[heads.sum(axis=1) <= n]
    return np.column_stack([heads, n - heads.sum(axis=1)])


def misses(n, c, chances, confidence, lowest=0.0):
    """Return the exact probabilities that the rate lies below and above its interval."""
    chances = np.asarray(chances)
    values = np.r_[lowest, np.arange(1, chances.size)]
    counts = compositions(n, chances.size)
    below = above = 0.0
    for count, weight in zip(counts, stats.multinomial(n, chances).pmf(counts), strict=True):
        found = calibrate_threshold(
            np.repeat(values, count), Capacity.fraction(c), confidence=confidence
        )
        rate = chances[values > found.value].sum()
        below += weight * (rate < found.interval.low - 1e-12)
        above += weight * (rate > found.interval.high + 1e-12)
    return below, above


DISTRIBUTIONS = [
    (1.0,),
    (0.5, 0.5),
    (0.9, 0.1),
    (0.99, 0.01),
    (0.1, 0.9),
    (0.6, 0.3, 0.1),
    (0.9, 0.09, 0.01),
    (0.2, 0.3, 0.5),
    (0.05, 0.05, 0.9),
]


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("chances", DISTRIBUTIONS)
def test_the_interval_covers_whatever_the_ties(chances):
    """Each end errs with at most half of the allowed probability, in every setting."""
    for n, c, confidence in product((5, 12), (0.1, 0.2, 0.35, 0.5, 0.9), (0.5, 0.8, 0.95)):
        below, above = misses(n, c, chances, confidence)
        assert max(below, above) <= (1 - confidence) / 2 + 1e-12, (n, c, confidence)


def test_a_constant_score_has_a_rate_of_zero():
    """Its interval begins at 0: nothing lies strictly above the only value."""
    threshold = calibrate_threshold(np.zeros(1_999), Capacity.fraction(0.0005))
    assert threshold.k == 0
    assert threshold.interval.low == 0


def test_a_full_capacity_leaves_out_scores_of_minus_infinity():
    """One score in ten is minus infinity, is never flagged, and may be missing in calibration."""
    below, above = misses(5, 1.0, (0.1, 0.9), 0.9, lowest=-np.inf)
    assert max(below, above) <= 0.05
