"""Random folds keep the expected rate of flags at the capacity; stratified folds do not.

A fold in which rare items are as frequent as in the whole sample is not like new items: the
threshold of a score that separates the two kinds lies too low, or too high. The score here is
uniform on [0, 1] for common and on [1, 2] for rare items, so each rate of flags is known exactly.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shortlist._core.folds import random_parts, stratified_folds
from shortlist.thresholds.guarantees import expected_place

TRIALS, FOLDS = 3_000, 10


def rate_above(threshold, prevalence):
    """Return the share of all new items with a higher score."""
    rare, common = np.clip(2 - threshold, 0, 1), np.clip(1 - threshold, 0, 1)
    return prevalence * rare + (1 - prevalence) * common


def rate_of_fold(scores, prevalence, capacity):
    """Return the rate of flags of the threshold that a fold sets: between two places."""
    place = expected_place(scores.size, capacity)
    edges = np.concatenate([[2.0], np.sort(scores)[::-1], [0.0]])
    above, below = rate_above(edges[[place.k + 1, min(place.k + 2, scores.size + 1)]], prevalence)
    return above + place.share * (below - above)


def mean_rate(n, prevalence, capacity, divide):
    """Return E[R] / c over samples, and its standard error."""
    rng, ratios = np.random.default_rng(2_026), []
    for _ in range(TRIALS):
        is_rare = rng.random(n) < prevalence
        if min(is_rare.sum(), n - is_rare.sum()) < 2:
            continue  # an error for users
        scores = rng.random(n) + is_rare
        rates = [rate_of_fold(scores[f], prevalence, capacity) for f in divide(is_rare, rng)]
        ratios.append(np.mean(rates) / float(capacity))
    return np.mean(ratios), np.std(ratios) / len(ratios) ** 0.5


def at_random(is_rare, rng):
    """Return folds as they are drawn for users."""
    return [left_out for _, left_out in random_parts(is_rare, FOLDS, rng)]


def evenly(is_rare, rng):
    """Return folds with the same number of rare items, up to one."""
    folds = stratified_folds(is_rare, FOLDS, rng)
    return [np.flatnonzero(folds == fold) for fold in range(FOLDS)]


WORLDS = [(100, 0.3, Fraction(2, 5)), (1_000, 0.03, Fraction(1, 100))]


@pytest.mark.parametrize("world", WORLDS)
def test_random_folds_flag_as_many_new_items_as_the_capacity(world):
    """On average over samples, within four standard errors."""
    mean, error = mean_rate(*world, at_random)
    assert abs(mean - 1) < 4 * error
    assert error < 0.01


@pytest.mark.parametrize(("world", "ratio"), [(WORLDS[0], 1.03), (WORLDS[1], 0.77)])
def test_stratified_folds_would_flag_too_many_or_too_few(world, ratio):
    """They exceed the capacity in one world, and waste a quarter of it in the other."""
    mean, error = mean_rate(*world, evenly)
    assert abs(mean - ratio) < 4 * error
    assert abs(mean - 1) > 8 * error
