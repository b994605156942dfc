"""The bounds hold where they can be checked, and the loss is that of the paper."""

import math

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity
from shortlist.theory import OptimalRule, deviation_bound, empirical_loss, log_shatter_bound


def labellings_of_thresholds(points):
    """Return all ways in which thresholds of one score label some points."""
    cuts = [-np.inf, *points, np.inf]
    return {tuple(points > cut) for cut in cuts}


def test_the_shatter_bound_is_above_what_networks_can_label():
    """A network with one unit on a line can label as a threshold does, in both directions."""
    points = np.arange(1.0, 8.0)
    labellings = labellings_of_thresholds(points)
    both = labellings | {tuple(not each for each in row) for row in labellings}
    assert math.log(len(both)) <= log_shatter_bound(points.size, hidden_units=1, features=1)


def test_no_more_than_all_labellings():
    """Few points: every labelling is the bound."""
    assert log_shatter_bound(3, hidden_units=5, features=23) == pytest.approx(3 * math.log(2))


@pytest.mark.parametrize("n", [50, 400])
def test_rates_of_all_thresholds_stay_within_the_bound(n):
    """Flag rate and share found, for all thresholds at once: at most 1 of 20 samples fails."""
    rng = np.random.default_rng(0)
    grid = stats.norm.ppf(np.linspace(0.001, 0.999, 400))
    true_rate = 0.1 * stats.norm.sf(grid, 1) + 0.9 * stats.norm.sf(grid)
    true_found = 0.1 * stats.norm.sf(grid, 1)
    fails = 0
    for _ in range(400):
        is_rare = rng.uniform(size=n) < 0.1
        above = (rng.normal(size=n) + is_rare)[:, np.newaxis] > grid
        rate, found = above.mean(axis=0), (above & is_rare[:, np.newaxis]).mean(axis=0)
        gap = max(np.abs(rate - true_rate).max(), np.abs(found - true_found).max())
        fails += gap > deviation_bound(n)
    assert fails <= stats.binom.ppf(0.999, 400, 0.05)
    assert fails >= 1  # the bound is not idle


def test_the_bounds_invert_the_inequalities():
    """Of Vapnik and Chervonenkis, and of Massart, each for the flag rate and for the detection."""
    n, log_shatter, error = 10**6, 200.0, 0.1
    margin = deviation_bound(n, log_shatter=log_shatter, confidence=1 - error)
    assert 2 * 8 * math.exp(log_shatter - n * margin**2 / 32) == pytest.approx(error)
    margin = deviation_bound(n, confidence=1 - error)
    assert 2 * 2 * math.exp(-2 * n * margin**2) == pytest.approx(error)


def test_missed_items_are_not_among_the_sets_of_errors():
    """As a sentence in the proof of Theorem 1 has it; but there are no more of them."""
    points = [(x, y) for x in (1, 2, 3) for y in (0, 1)]
    rules = labellings_of_thresholds(np.array([1, 2, 3]))  # True: flagged, so labelled 0
    missed = {frozenset(p for p in points if p[1] == 0 and not g[p[0] - 1]) for g in rules}
    errors = {frozenset((x, y) for x, y in points if g[x - 1] != (y == 0)) for g in rules}
    assert not missed <= errors
    assert len(missed) <= len(errors)


def test_a_rule_that_keeps_the_capacity_on_the_sample():
    """It exceeds the capacity by at most the bound, and loses at most twice the bound."""
    n, c, rng = 2_000, 0.1, np.random.default_rng(1)
    margin = deviation_bound(n)
    best = OptimalRule(
        stats.norm(1), stats.norm(), prevalence=0.1, capacity=Capacity.fraction(c - margin)
    )
    for _ in range(100):
        is_rare = rng.uniform(size=n) < 0.1
        threshold = np.sort(rng.normal(size=n) + is_rare)[::-1][int(c * n)]
        rate = 0.1 * stats.norm.sf(threshold, 1) + 0.9 * stats.norm.sf(threshold)
        assert rate <= c + margin
        assert 1 - 0.1 * stats.norm.sf(threshold, 1) <= best.loss + 2 * margin


def test_the_empirical_loss_comes_to_that_of_the_rule():
    """L of the optimal rule, from its formula and from a sample."""
    rule = OptimalRule(stats.norm(2), stats.norm(), prevalence=0.1, capacity=Capacity.multiple(1))
    rng = np.random.default_rng(2)
    y = (rng.uniform(size=200_000) < 0.1).astype(int)
    flagged = rule.predict(rng.normal(size=y.size) + 2 * y)
    assert empirical_loss(y, flagged.astype(int)) == pytest.approx(rule.loss, abs=0.002)


def test_predictions_for_all_items():
    """A length that does not fit is refused."""
    with pytest.raises(ValueError, match="y_true"):
        empirical_loss([0, 0, 1], [1])
