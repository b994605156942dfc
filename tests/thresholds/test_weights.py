"""Known weights: items are kept by lot, and those kept are like future items."""

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity, calibrate_threshold
from shortlist.thresholds.samples import CalibrationSample

GUARANTEES = ["plug-in", "expected", "confident", "next-batch", "simultaneous"]


@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize("ties", ["exclude", "hash"])
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
def test_equal_weights_are_no_weights(n, ties, guarantee, rng):
    """Weights of 2, and at most 2, leave the unweighted threshold."""
    scores, options = rng.integers(0, 40, size=n), {"guarantee": guarantee, "ties": ties}
    capacity, weights = Capacity.count(10, per=100), {"sample_weight": np.full(n, 2)}
    weighted = calibrate_threshold(scores, capacity, max_weight=2, **weights, **options)
    assert weighted == calibrate_threshold(scores, capacity, **options)


def expected_rate(n, c, weights, **options):
    """Return the exact mean rate under the target, for a stratum of high and one of low scores.

    Half of the sample comes from each. Of the items of a stratum, a binomial number is kept by
    lot; within a stratum scores are uniform, and the (j + 1)-th largest of m leaves an expected
    share (j + 1) / (m + 1) above.
    """
    target, mean = np.array(weights) / sum(weights), 0.0
    with pytest.MonkeyPatch.context() as patch:
        for upper in range(n + 1):
            scores = np.r_[np.arange(upper) + 2 * n, np.arange(n - upper)]
            strata = np.r_[np.zeros(upper, int), np.ones(n - upper, int)]
            place = np.r_[np.arange(upper), np.arange(n - upper)]
            for kept in np.ndindex(upper + 1, n - upper + 1):
                chance = stats.binom.pmf(upper, n, 0.5) * np.prod(
                    stats.binom.pmf(kept, [upper, n - upper], np.array(weights) / 9)
                )
                if chance == 0 or sum(kept) == 0:
                    continue
                lots = np.where(place < np.array(kept)[strata], 0.0, 0.999)
                patch.setattr(CalibrationSample, "lots", lambda self, seed, lots=lots: lots)
                own = {"sample_weight": np.array(weights)[strata]} if options else {}
                k = calibrate_threshold(scores, Capacity.fraction(c), **own, **options).k
                high, low = kept if options else (upper, n - upper)
                rate = np.select(
                    [k < 0, k < high, k < high + low],
                    [
                        0.0,
                        target[0] * (k + 1) / (high + 1),
                        target[0] + target[1] * (k - high + 1) / (low + 1),
                    ],
                    1.0,
                )
                mean += chance * rate
    return mean


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("weights", [(1.0, 9.0), (9.0, 1.0)])
@pytest.mark.parametrize("c", [0.1, 0.3, 0.6])
def test_the_expected_rate_is_kept_exactly(weights, c):
    """In future, nine times as many items come from one stratum as from the other."""
    assert expected_rate(12, c, weights, max_weight=9) <= c + 1e-12


def test_without_weights_the_capacity_is_exceeded():
    """The design would show a missing correction."""
    assert expected_rate(12, 0.3, (9.0, 1.0)) > 0.3


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_every_guarantee_rests_on_the_kept_items(guarantee, rng):
    """Kept with probability weight / largest weight, by lots that do not depend on the scores."""
    upper = rng.uniform(size=40_000) < 0.5
    scores, weights = np.where(upper, 1.0, 0.0), np.where(upper, 1.0, 9.0)
    found = calibrate_threshold(
        scores + rng.uniform(size=40_000), Capacity.count(50, per=1_000), sample_weight=weights,
        max_weight=9, guarantee=guarantee,
    )  # fmt: skip
    # Half of the sample, and a ninth of the other half: 22,222 with a standard error of 44.
    assert abs(found.n_calibration - 22_222) < 5 * 44
    # A tenth of the future lies above 1, and the capacity is half of that.
    assert abs(found.value - 1.5) < 0.1
    assert found.interval.low < 0.05


def test_weights_without_a_bound_are_refused():
    """The largest weight of a sample depends on the sample."""
    with pytest.raises(ValueError, match="needs max_weight"):
        calibrate_threshold([1, 2], Capacity.fraction(0.5), sample_weight=[1, 2])


@pytest.mark.parametrize("options", [{"groups": [1, 1]}, {"efforts": [1, 1]}])
def test_what_has_no_exact_rule_is_refused_with_what_to_do(options):
    """The message names the exact way."""
    capacity = Capacity.effort(1, per=2) if "efforts" in options else Capacity.fraction(0.5)
    with pytest.raises(ValueError, match="with probability sample_weight / max_weight"):
        calibrate_threshold([1, 0], capacity, sample_weight=[1, 2], max_weight=2, **options)


def test_a_bound_below_a_weight_is_a_mistake():
    """As is a bound without weights."""
    with pytest.raises(ValueError, match="at least the largest sample_weight, 3"):
        calibrate_threshold([1, 2], Capacity.fraction(0.5), sample_weight=[1, 3], max_weight=2)
    with pytest.raises(ValueError, match="belongs to sample_weight"):
        calibrate_threshold([1, 2], Capacity.fraction(0.5), max_weight=2)
