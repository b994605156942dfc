"""Known weights keep the expected guarantee, and show the way to the others."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from shortlist import Capacity, calibrate_threshold
from shortlist.exceptions import InsufficientCalibrationWarning


@pytest.mark.parametrize("n", [20, 55, 300])
@pytest.mark.parametrize("ties", ["exclude", "hash"])
def test_equal_weights_are_no_weights(n, ties, rng):
    """Weights of 2, and at most 2, leave the unweighted threshold."""
    scores = rng.integers(0, 40, size=n)
    options = {"guarantee": "expected", "ties": ties}
    weighted = calibrate_threshold(
        scores, Capacity.fraction(0.1), sample_weight=np.full(n, 2), max_weight=2, **options
    )
    plain = calibrate_threshold(scores, Capacity.fraction(0.1), **options)
    assert (weighted.value, weighted.k, weighted.tie_key) == (plain.value, plain.k, plain.tie_key)


def test_the_future_item_takes_its_largest_weight():
    """Weights of 1, one at most 4: of (20 + 4) / 4 = 6 the future item has 4, and two remain."""
    threshold = calibrate_threshold(
        np.arange(20), Capacity.fraction(0.25), sample_weight=np.ones(20), max_weight=4,
        guarantee="expected",
    )  # fmt: skip
    assert threshold.k == 2


def expected_rate(n, c, shares, weights, guarantee, max_weight=None):
    """Return the exact mean rate under the target, for a stratum of high and one of low scores.

    The number of sampled items of the upper stratum is binomial; within a stratum, scores are
    uniform, and the (j + 1)-th largest of m leaves an expected share (j + 1) / (m + 1) above.
    """
    from scipy import stats

    target = np.array(shares) * weights / np.dot(shares, weights)
    mean = 0.0
    for upper in range(n + 1):
        scores = np.r_[np.arange(upper) + 2 * n, np.arange(n - upper)]
        sample_weight = np.r_[np.full(upper, weights[0]), np.full(n - upper, weights[1])]
        k = calibrate_threshold(
            scores, Capacity.fraction(c), sample_weight=sample_weight, guarantee=guarantee,
            **({} if max_weight is None else {"max_weight": max_weight}),
        ).k  # fmt: skip
        if k < 0:
            rate = 0.0
        elif k < upper:
            rate = target[0] * (k + 1) / (upper + 1)
        elif k < n:
            rate = target[0] + target[1] * (k - upper + 1) / (n - upper + 1)
        else:
            rate = 1.0
        mean += stats.binom.pmf(upper, n, shares[0]) * rate
    return mean


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("weights", [(1.0, 9.0), (9.0, 1.0)])
@pytest.mark.parametrize("c", [0.1, 0.3, 0.6])
def test_the_expected_rate_is_kept_exactly(weights, c):
    """Half of the sample comes from each stratum; in future, nine times as many from one."""
    for n in (12, 40):
        mean = expected_rate(n, c, (0.5, 0.5), np.array(weights), "expected", max_weight=9)
        assert mean <= c + 1e-12
    assert expected_rate(200, c, (0.5, 0.5), np.array(weights), "expected", max_weight=9) > 0.6 * c


def test_the_plug_in_rule_with_weights_exceeds_the_capacity_on_average():
    """The design would show a missing correction."""
    assert expected_rate(40, 0.1, (0.5, 0.5), np.array([9.0, 1.0]), "plug-in") > 0.1


def test_thinning_by_weight_is_the_way_to_other_guarantees(rng):
    """Kept with probability weight / largest weight, items are like future items.

    The upper stratum is half of the sample and a tenth of the future. The mean of 0.1 over 20,000
    kept items has a standard error of 0.002, and 0.01 is five of them.
    """
    upper = rng.uniform(size=40_000) < 0.5
    weights = np.where(upper, 1.0, 9.0)
    kept = rng.uniform(size=40_000) < weights / 9
    assert abs(upper[kept].mean() - 0.1) < 0.01


def test_weights_without_a_bound_are_refused():
    """The future item might weigh anything."""
    with pytest.raises(ValueError, match="needs max_weight"):
        calibrate_threshold(
            [1, 2], Capacity.fraction(0.5), sample_weight=[1, 2], guarantee="expected"
        )


@pytest.mark.parametrize("guarantee", ["confident", "next-batch", "simultaneous"])
def test_other_guarantees_are_refused_with_what_to_do(guarantee):
    """The message names the exact way."""
    with pytest.raises(ValueError, match="keep each calibration item with probability"):
        calibrate_threshold(
            [1, 2], Capacity.count(1, per=2), sample_weight=[1, 2], max_weight=2,
            guarantee=guarantee,
        )  # fmt: skip


def test_a_bound_below_a_weight_is_a_mistake():
    """As is a bound without weights."""
    with pytest.raises(ValueError, match="at least the largest sample_weight, 3"):
        calibrate_threshold([1, 2], Capacity.fraction(0.5), sample_weight=[1, 3], max_weight=2)
    with pytest.raises(ValueError, match="belongs to sample_weight"):
        calibrate_threshold([1, 2], Capacity.fraction(0.5), max_weight=2)


def test_too_little_weight_is_reported():
    """Nine times the largest weight is needed for one in ten."""
    with pytest.warns(InsufficientCalibrationWarning, match="more calibration scores than"):
        threshold = calibrate_threshold(
            np.arange(20), Capacity.fraction(0.1), sample_weight=np.ones(20), max_weight=4,
            guarantee="expected",
        )  # fmt: skip
    assert_array_equal(threshold.flag([np.inf]), [False])
