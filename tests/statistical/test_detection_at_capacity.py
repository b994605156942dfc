"""The interval of a capacity curve covers what the top share of a population finds.

The truth is the share of rare items among the highest c of the population, ties broken at random.
Intervals at 90 % may miss it in 10 % of the samples, plus four standard errors of a share from
`TRIALS` samples, 4 sqrt(0.1 * 0.9 / 300) = 0.069.
"""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from shortlist import Capacity, capacity_curve

TRIALS, CONFIDENCE = 300, 0.9
ENOUGH = CONFIDENCE - 0.069


def sample(rng, n, prevalence, shift, *, steps=None):
    """Return labels and scores: standard normal, and `shift` higher for rare items."""
    y = rng.random(n) < prevalence
    y[0], y[1] = True, False
    scores = rng.normal(size=n) + shift * y
    return y, scores if steps is None else np.floor(scores * steps)


def truth(prevalence, shift, *, fraction):
    """Return the share of rare items among the highest scores of the population."""

    def excess(threshold):
        rare, common = norm.sf(threshold - shift), norm.sf(threshold)
        return prevalence * rare + (1 - prevalence) * common - fraction

    return norm.sf(brentq(excess, -30, 30) - shift)


def tied_truth(prevalence, shift, *, fraction, steps):
    """Return the same for scores rounded down to a grid: blocks are shared out evenly."""
    edges = np.arange(-40 * steps, 40 * steps) / steps
    rare, common = norm.sf(edges - shift)[::-1], norm.sf(edges)[::-1]
    return np.interp(fraction, prevalence * rare + (1 - prevalence) * common, rare)


def covered(rows, low, high, detection):
    """Return how often the interval contains the truth."""
    return np.mean([row[low] <= detection <= row[high] for row in rows])


def test_a_near_perfect_model_at_a_capacity_below_the_prevalence():
    """The interval for a fixed threshold covers about half the time; that of the capacity covers.

    The number of rare items is random, and all flags find one.
    """
    rng = np.random.default_rng(0)
    detection = truth(0.05, 8, fraction=0.045)
    rows = [
        capacity_curve(*sample(rng, 1_000, 0.05, 8), rare_label=True).at(Capacity.fraction(0.045))
        for _ in range(TRIALS)
    ]
    assert covered(rows, "detection_low", "detection_high", detection) >= 0.95 - 0.05
    # Four standard errors of a share near one half are 4 * 0.5 / sqrt(300) = 0.116.
    assert covered(rows, "at_threshold_low", "at_threshold_high", detection) <= 0.56 + 0.116


@pytest.mark.parametrize(
    ("n", "prevalence", "shift", "fraction"),
    [
        (1_000, 0.05, 8, 0.045),
        (1_000, 0.05, 8, 0.02),
        (1_000, 0.05, 3, 0.045),
        (400, 0.05, 1, 0.1),
        (60, 0.1, 1.5, 0.2),
        (2_000, 0.003, 2, 0.01),
        (300, 0.5, 0.5, 0.4),
        (300, 0.1, -1, 0.2),
    ],
)
def test_it_covers_for_good_and_bad_models(n, prevalence, shift, fraction):
    """Near-perfect, useful, poor and harmful models; few cases; very rare and common cases."""
    rng = np.random.default_rng([n, int(1_000 * fraction)])
    detection = truth(prevalence, shift, fraction=fraction)
    rows = []
    for _ in range(TRIALS):
        curve = capacity_curve(
            *sample(rng, n, prevalence, shift), rare_label=True, confidence=CONFIDENCE
        )
        rows.append(curve.at(Capacity.fraction(fraction)))
    assert covered(rows, "detection_low", "detection_high", detection) >= ENOUGH


@pytest.mark.parametrize("steps", [1, 4])
def test_it_covers_where_scores_are_tied(steps):
    """A tied block across the cut is shared out evenly; the row covers, too."""
    rng = np.random.default_rng(steps)
    hits = []
    for _ in range(TRIALS):
        y, scores = sample(rng, 500, 0.08, 2, steps=steps)
        curve = capacity_curve(y, scores, rare_label=True, confidence=CONFIDENCE)
        low, high = curve.interval_at(Capacity.fraction(0.1))
        row = curve.at(Capacity.fraction(0.1))
        assert row["detection_low"] <= low <= high == row["detection_high"]
        hits.append(low <= tied_truth(0.08, 2, fraction=0.1, steps=steps) <= high)
    assert np.mean(hits) >= ENOUGH


@pytest.mark.parametrize(("prevalence", "shift", "b"), [(0.05, 3, 1), (0.05, 8, 0.9), (0.02, 1, 4)])
def test_a_multiple_covers_the_unknown_prevalence(prevalence, shift, b):
    """A multiple refers to the prevalence of the population, which is estimated, too."""
    rng = np.random.default_rng(int(10 * b))
    detection = truth(prevalence, shift, fraction=b * prevalence)
    hits = []
    for _ in range(TRIALS):
        curve = capacity_curve(
            *sample(rng, 600, prevalence, shift), rare_label=True, confidence=CONFIDENCE
        )
        row = curve.at(Capacity.multiple(b))
        hits.append(row["detection_low"] <= detection <= row["detection_high"])
    assert np.mean(hits) >= ENOUGH
