"""Thresholds keep what they promise, and say when they cannot."""

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import shortlist
from shortlist import Capacity
from shortlist.exceptions import CapacityError, InsufficientCalibrationWarning
from shortlist.thresholds import guarantees as rules

# The rule of the paper, unless a test asks for another one.
calibrate_threshold = partial(shortlist.calibrate_threshold, guarantee="plug-in")
# k of the plug-in, expected, confident (0.95) and next-batch (N = 1000, K = 1000 c) rules.
PUBLISHED_K = {
    (200, "0.01"): (2, 1, -1, -1),
    (200, "0.02"): (4, 3, 0, 0),
    (200, "0.06"): (12, 11, 6, 5),
    (1000, "0.01"): (10, 9, 4, 3),
    (1000, "0.02"): (20, 19, 12, 10),
    (1000, "0.06"): (60, 59, 47, 43),
    (4000, "0.01"): (40, 39, 29, 21),
    (4000, "0.02"): (80, 79, 65, 52),
    (4000, "0.06"): (240, 239, 215, 189),
}


@pytest.mark.parametrize(("n", "c"), PUBLISHED_K)
def test_each_rule_leaves_the_published_number_of_scores(n, c):
    """Four rules, nine settings."""
    c_exact = Fraction(c)
    found = (
        rules.plug_in_k(n, c_exact),
        rules.expected_place(n, c_exact).k,
        rules.confident_place(n, c_exact, error=0.05).k,
        rules.next_batch_place(n, int(1000 * c_exact), 1000, error=0.05).k,
    )
    assert found == PUBLISHED_K[n, c]


@pytest.mark.parametrize("n", [50, 300, 999])
@pytest.mark.parametrize("c", ["0.01", "0.1", "0.5"])
def test_rules_are_the_largest_that_keep_their_promise(n, c):
    """k keeps it and k + 1 would not, by the distribution of the rate itself."""
    c_exact = Fraction(c)
    k = rules.confident_place(n, c_exact, error=0.05).k
    assert k < 0 or stats.beta.sf(float(c), k + 1, n - k) <= 0.05
    assert stats.beta.sf(float(c), k + 2, n - k - 1) > 0.05
    k = rules.next_batch_place(n, int(200 * c_exact), 200, error=0.05).k
    assert k < 0 or stats.betabinom.sf(int(200 * c_exact), 200, k + 1, n - k) <= 0.05
    assert stats.betabinom.sf(int(200 * c_exact), 200, k + 2, n - k - 1) > 0.05


def test_too_few_scores_without_ids_flag_nothing_and_warn():
    """Two per cent with 95 % confidence: not even the highest of 100 scores can be flagged."""
    with pytest.warns(InsufficientCalibrationWarning, match="more calibration scores than 100"):
        threshold = calibrate_threshold(
            np.arange(100), Capacity.fraction(0.02), guarantee="confident"
        )
    assert threshold.value == np.inf
    assert threshold.k == -1
    assert threshold.interval == (0, 0)
    assert not threshold.flag([1e300, np.inf]).any()


@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident"])
@pytest.mark.parametrize(
    "nothing", [Capacity.multiple(0), Capacity.fraction(0), Capacity.count(0, per=10)]
)
def test_no_capacity_flags_nothing_without_a_warning(nothing, guarantee):
    """b = 0 is a legitimate wish."""
    threshold = calibrate_threshold(np.arange(10), nothing, prevalence=0.1, guarantee=guarantee)
    assert not threshold.flag([100, np.inf]).any()


def test_full_capacity_flags_everything():
    """Even an item with the lowest possible score, when ties are filled."""
    strict = calibrate_threshold([1, 2, 3], Capacity.fraction(1))
    assert strict.flag([-5, 5]).all()
    filled = calibrate_threshold([1, 2, 3], Capacity.fraction(1), ties="hash")
    assert filled.flag([-np.inf, 5], ids=[1, 2]).all()


def test_a_tie_at_the_cut_is_left_out_whole():
    """Two items share the last place, so neither is flagged."""
    scores = np.array([0.9, 0.5, 0.5, 0.1])
    threshold = calibrate_threshold(scores, Capacity.count(2, per=4))
    assert_array_equal(threshold.flag(scores), [True, False, False, False])
    assert threshold.flagged_fraction == 0.25


def test_hashed_ties_fill_the_capacity_and_agree_row_by_row():
    """A constant score flags its share, the same items alone as in the batch."""
    ids = np.arange(1_000)
    scores = np.zeros(1_000)
    threshold = calibrate_threshold(scores, Capacity.fraction(0.1), ties="hash", ids=ids)
    batch = threshold.flag(scores, ids=ids)
    assert batch.sum() == 100
    alone = [threshold.flag([0.0], ids=[number])[0] for number in ids]
    assert_array_equal(batch, alone)


def test_hashed_ties_without_ids_are_an_error_in_use():
    """Row positions would make the answer depend on the batch."""
    threshold = calibrate_threshold(np.zeros(10), Capacity.fraction(0.5), ties="hash")
    with pytest.raises(ValueError, match="Pass ids="):
        threshold.flag([0.0])


def test_the_interval_is_that_of_the_order_statistic():
    """Above a quantile of Beta(k + 1, n - k), and below one that also holds with ties."""
    threshold = calibrate_threshold(np.arange(1000), Capacity.fraction(0.02), confidence=0.9)
    assert_allclose(threshold.interval.high, stats.beta(21, 980).ppf(0.95))
    assert_allclose(threshold.interval.low, stats.beta(20, 981).ppf(0.05))


def test_the_interval_reaches_lower_where_ties_were_left_out():
    """With a huge tied block at the cut the rate may be nearly nothing."""
    scores = np.r_[np.zeros(900), np.ones(100)]
    threshold = calibrate_threshold(scores, Capacity.fraction(0.05))
    assert threshold.flagged_fraction == 0
    assert threshold.interval.low == 0


def test_labels_give_the_prevalence_of_a_multiple():
    """Two rare items among ten: b = 1 leaves two scores above."""
    y = ["ok"] * 8 + ["bad"] * 2
    assert calibrate_threshold(np.arange(10), Capacity.multiple(1), y=y).k == 2
    assert calibrate_threshold(np.arange(10), Capacity.multiple(1), y=y, rare_label="bad").k == 2
    assert calibrate_threshold(np.arange(10), Capacity.multiple(1), prevalence=0.1, y=y).k == 1


def test_an_unknown_prevalence_costs_capacity(rng):
    """Covering it flags less than knowing it, and still something."""
    y = rng.uniform(size=4_000) < 0.02
    scores = rng.normal(size=4_000) + 2 * y
    options = {"guarantee": "confident", "y": y}
    for b in (1, 3):
        known = calibrate_threshold(
            scores, Capacity.multiple(b), prevalence=y.mean(), guarantee="confident"
        )
        unknown = calibrate_threshold(scores, Capacity.multiple(b), **options)
        assert 0 < unknown.k < known.k


def test_too_few_rare_items_for_an_unknown_prevalence():
    """The warning counts rare items, not scores."""
    y = np.arange(100) < 3
    with pytest.warns(InsufficientCalibrationWarning, match="more calibration scores than 100"):
        calibrate_threshold(np.arange(100), Capacity.multiple(1), y=y, guarantee="confident")


def test_next_batch_needs_a_count_per_batch():
    """A fraction does not say how large the batch is."""
    with pytest.raises(CapacityError, match=r"Capacity.count\(K, per=N\)"):
        calibrate_threshold([1.0, 2.0], Capacity.fraction(0.1), guarantee="next-batch")


def test_labels_that_are_not_needed_are_not_looked_at():
    """A fraction needs no prevalence."""
    assert calibrate_threshold([1, 2, 3], Capacity.fraction(0.4), y=[0, 0, 0]).k == 1


def test_warnings_point_at_the_line_of_the_user():
    """Not into this package."""
    with pytest.warns(InsufficientCalibrationWarning) as caught:
        calibrate_threshold([1.0], Capacity.fraction(0.1), guarantee="expected")
    assert caught[0].filename == __file__
    assert "confidence" not in str(caught[0].message)


def test_unknown_options_are_listed():
    """The complaint shows what there is."""
    with pytest.raises(ValueError, match="'plug-in', 'expected', 'confident', 'next-batch'"):
        calibrate_threshold([1.0], Capacity.fraction(0.1), guarantee="hopeful")
    with pytest.raises(ValueError, match="'exclude', 'hash'"):
        calibrate_threshold([1.0], Capacity.fraction(0.1), ties="include")
    with pytest.raises(ValueError, match="confidence"):
        calibrate_threshold([1.0], Capacity.fraction(0.1), confidence=95)
    with pytest.raises(ValueError, match="at least one score"):
        calibrate_threshold([], Capacity.fraction(0.1))


def test_large_samples_take_the_sampled_path(rng):
    """Two million scores give the same threshold as sorting them."""
    scores = rng.normal(size=2_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threshold = calibrate_threshold(scores, Capacity.fraction(0.01))
    assert threshold.value == np.sort(scores)[-20_001]
