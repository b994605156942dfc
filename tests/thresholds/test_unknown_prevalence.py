"""The test for a multiple of an unknown prevalence is exact and continuous in the multiple."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity, calibrate_threshold
from shortlist.thresholds.guarantees import (
    confident_k_by_walking,
    keeps_multiple,
)


def chance_of_passing(n_counted, shares, b, error):
    """Return the exact probability that the test passes, given hits + alarms + misses.

    All counts of (hits, alarms, misses) are visited, and for each of them all numbers of turned
    hits, which are binomial.
    """
    turn = 1 - min(b, 1 / b)
    passing = 0.0
    for hits in range(n_counted + 1):
        for alarms in range(n_counted - hits + 1):
            misses = n_counted - hits - alarms
            weight = stats.multinomial(n_counted, shares).pmf([hits, alarms, misses])
            for turned in range(hits + 1):
                lots = np.r_[np.zeros(turned), np.ones(hits - turned), np.ones(misses)]
                passed = keeps_multiple(
                    np.array([hits]), np.array([alarms]), hits + misses, b, error=error, lots=lots
                )
                drawn = stats.binom.pmf(turned, hits, float(turn)) if hits else 1.0
                passing += weight * drawn * passed[0]
    return passing


@pytest.mark.parametrize("sensitivity", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("b", ["1/2", "9/10", "1", "11/10", "3"])
def test_the_level_is_kept_exactly_at_the_edge_of_the_capacity(b, sensitivity):
    """By enumeration of 14 items, where the rate is b times the prevalence."""
    b, error = Fraction(b), 0.1
    if sensitivity > b:
        sensitivity = 0.45
    alarms = float(b) - sensitivity
    shares = np.array([sensitivity, alarms, 1 - sensitivity])
    assert chance_of_passing(14, shares / shares.sum(), b, error) <= error


def test_over_the_capacity_the_test_passes_even_less_often():
    """Twice the capacity, in false alarms."""
    shares = np.array([0.5, 2 * 3 - 0.5, 0.5])
    assert chance_of_passing(12, shares / shares.sum(), Fraction(3), 0.1) <= 0.01


@pytest.mark.parametrize("b", ["0.9999999", "1.0000001"])
def test_there_is_no_jump_at_one(b, rng):
    """A multiple next to 1 gives the threshold of the sign test."""
    y = rng.uniform(size=4_000) < 0.02
    order = np.argsort(-(rng.normal(size=4_000) + 2 * y))
    steps, lots = np.arange(4_001), rng.uniform(size=y.sum())
    found = [
        confident_k_by_walking(y[order], steps, Fraction(multiple), error=0.05, lots=lots)
        for multiple in ("1", b)
    ]
    assert found[0] == found[1] > 0


def test_one_is_the_sign_test():
    """Seven misses and one false alarm pass at 5 %, seven and two do not."""
    passed = keeps_multiple(
        np.array([3, 3]), np.array([1, 2]), 10, Fraction(1), error=0.05, lots=np.zeros(10)
    )
    assert passed.tolist() == [True, False]
    assert stats.binomtest(1, 8, alternative="less").pvalue < 0.05
    assert stats.binomtest(2, 9, alternative="less").pvalue > 0.05


def test_turned_hits_count_on_the_right_side():
    """With b = 2 half of the hits become misses, with b = 1/2 half of them false alarms."""
    lots = np.r_[np.zeros(4), np.ones(16)]  # of the first 8 hits, 4 are turned
    for b, alarms, misses in ((Fraction(2), 1, 12 + 4), (Fraction(1, 2), 1 + 4, 12)):
        p_value = stats.binom.cdf(alarms, alarms + misses, float(b / (1 + b)))
        for error in (p_value * 1.001, p_value * 0.999):
            passed = keeps_multiple(np.array([8]), np.array([1]), 20, b, error=error, lots=lots)
            assert passed[0] == (error > p_value)


@pytest.mark.parametrize(("b", "needed"), [("1", 5), ("3", 3), ("1/2", 8), ("1/10", 32)])
def test_some_rare_items_are_needed(b, needed):
    """One fewer, and not even the first step passes."""
    b = Fraction(b)
    for n_rare, passes in ((needed, True), (needed - 1, False)):
        passed = keeps_multiple(
            np.array([0]), np.array([0]), n_rare, b, error=0.05, lots=np.ones(n_rare)
        )
        assert passed[0] == passes


def test_the_lots_belong_to_the_items_and_not_to_their_order(rng):
    """Shuffled rows with their ids give the same threshold; another seed may give another."""
    y, ids = rng.uniform(size=2_000) < 0.05, np.arange(2_000)
    scores = np.round(rng.normal(size=2_000) + 2 * y, 1)
    options = {"guarantee": "confident", "rare_label": True, "capacity": Capacity.multiple(2.5)}
    found = calibrate_threshold(scores, y=y, ids=ids, **options)
    rows = rng.permutation(2_000)
    again = calibrate_threshold(scores[rows], y=y[rows], ids=ids[rows], **options)
    assert found == again
    others = {calibrate_threshold(scores, y=y, random_state=seed, **options).k for seed in range(9)}
    assert len(others) > 1
