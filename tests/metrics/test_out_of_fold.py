"""What a capacity finds, measured out of fold."""

import numpy as np
import pytest
from scipy import optimize, stats

from shortlist import Capacity
from shortlist.metrics import detection_at_capacity, out_of_fold_detection


def drawn(rng, n=600, n_folds=5):
    """Draw labels, scores that fit them, and folds whose models score on scales of their own."""
    is_rare = rng.random(n) < 0.1
    folds = rng.permutation(n) % n_folds
    scores = (rng.normal(size=n) + 1.5 * is_rare) * (1 + folds) + 100.0 * folds
    return is_rare, scores, folds


def test_folds_with_scales_of_their_own_are_ranked_by_themselves():
    """One fold with high scores does not take all places; within one fold nothing changes."""
    rng = np.random.default_rng(0)
    is_rare, scores, folds = drawn(rng)
    tenth = Capacity.fraction(0.1)
    found = out_of_fold_detection(is_rare, scores, folds, tenth)
    one = np.mean(
        [
            detection_at_capacity(is_rare[folds == fold], scores[folds == fold], tenth)
            for fold in range(5)
        ]
    )
    assert found.detection == pytest.approx(one, abs=0.1)
    assert found.detection > detection_at_capacity(is_rare, scores, tenth) + 0.1
    alone = out_of_fold_detection(is_rare, scores, np.zeros(600, dtype=int), tenth)
    assert alone.detection == detection_at_capacity(is_rare, scores, tenth)


def test_items_without_a_score_are_left_out():
    """NaN, or a fold of -1."""
    rng = np.random.default_rng(1)
    is_rare, scores, folds = drawn(rng)
    expected = out_of_fold_detection(is_rare, scores, folds, Capacity.multiple(1))
    padded = out_of_fold_detection(
        np.append(is_rare, [True, True]),
        np.append(scores, [np.nan, 1e9]),
        np.append(folds, [0, -1]),
        Capacity.multiple(1),
    )
    assert padded == expected
    with pytest.raises(ValueError, match="needs rare items with a score; got none among 600"):
        out_of_fold_detection(np.zeros(600), scores, folds, Capacity.multiple(1))
    with pytest.raises(ValueError, match="same number of items"):
        out_of_fold_detection(is_rare, scores[1:], folds, Capacity.multiple(1))


def test_groups_make_the_interval_wider_where_their_items_are_alike():
    """Five copies of each row say no more than one; groups of unlike rows say nearly as much."""
    is_rare, scores, folds = drawn(np.random.default_rng(2), n=2_000)
    tenth, single = Capacity.fraction(0.1), np.arange(2_000)

    def width(copies, groups):
        rows = np.repeat(single, copies)
        found = out_of_fold_detection(
            is_rare[rows], scores[rows], folds[rows], tenth, groups=groups[rows]
        )
        return found.high - found.low

    alone = width(1, single)
    assert width(5, single) == pytest.approx(alone, rel=0.2)
    assert width(1, single // 2) == pytest.approx(alone, rel=0.15)


def test_the_interval_covers_what_the_folds_find():
    """The threshold of a tenth of all items finds a known share; 200 intervals cover it.

    At 95 %, fewer than 180 of 200 would come by chance once in 500 times; it is conservative.
    """
    rng = np.random.default_rng(2)

    def flagged(t):
        return 0.9 * stats.norm.sf(t) + 0.1 * stats.norm.sf(t - 1.5) - 0.1

    truth = stats.norm.sf(optimize.brentq(flagged, -5, 5) - 1.5)
    found = [out_of_fold_detection(*drawn(rng), Capacity.fraction(0.1)) for _ in range(200)]
    covered = sum(each.low <= truth <= each.high for each in found)
    assert covered >= 180
    assert np.mean([each.detection for each in found]) == pytest.approx(truth, abs=0.02)
