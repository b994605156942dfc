"""The tracker: rates beyond the scale, and its arguments."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import (
    EmaController,
    QuantileTracker,
    WindowController,
)

CONTROLLERS = [QuantileTracker, WindowController, EmaController]


@pytest.fixture
def scores(rng):
    """Return scores that do not change."""
    return rng.normal(size=40_000)


def test_a_rate_beyond_the_scale_starts_at_its_end():
    """Ten scores carry no information about one in a million; the threshold starts above them."""
    tracker = QuantileTracker(Capacity.fraction(1e-6), calibration_scores=np.arange(10.0))
    assert tracker.decide(8.9).flag is False
    assert np.isfinite(tracker.interval_bound())


def test_all_scores_may_be_equal():
    """The tracker keeps the rate of a model whose scores are all the same."""
    tracker = QuantileTracker(Capacity.fraction(0.5), calibration_scores=np.ones(10), step=0.1)
    flagged = tracker.decide_many(np.ones(2_000)).flagged
    assert abs(flagged.sum() - 1_000) <= tracker.interval_bound()


def test_a_batch_count_is_no_rate(scores):
    """A count without `per` raises an error that names the alternative."""
    with pytest.raises(CapacityError, match="per="):
        QuantileTracker(Capacity.count(5), calibration_scores=scores)


def test_a_multiple_needs_the_prevalence(scores):
    """A multiple is a rate only with a prevalence."""
    tracker = QuantileTracker(
        Capacity.multiple(2), calibration_scores=scores, prevalence=0.005, step=0.1
    )
    assert tracker.decide_many(scores).flagged.mean() == pytest.approx(0.01, rel=0.1)
    with pytest.raises(CapacityError, match="prevalence"):
        QuantileTracker(Capacity.multiple(2), calibration_scores=scores)


@pytest.mark.parametrize("step", [0, -1, np.nan, "fast"])
def test_a_step_is_above_zero(scores, step):
    """Any other step raises an error, because the threshold could not follow."""
    with pytest.raises((ValueError, TypeError), match="step"):
        QuantileTracker(Capacity.fraction(0.1), calibration_scores=scores, step=step)


@pytest.mark.parametrize("bad", [[], [np.nan], [np.inf], [[1.0]], ["a"]])
def test_calibration_scores_are_finite_numbers(bad):
    """The error names the argument."""
    with pytest.raises(ValueError, match="calibration_scores"):
        QuantileTracker(Capacity.fraction(0.1), calibration_scores=bad)


def test_the_bound_at_a_capacity_of_zero():
    """Nothing is flagged, so nothing can differ."""
    tracker = QuantileTracker(Capacity.fraction(0), calibration_scores=np.arange(99))
    assert tracker.interval_bound() == 0


def test_pauses_at_zero_forgive_nothing():
    """Weeks at two capacities with a pause after each day keep one bound, however many there are.

    When each pause clipped the offset to the scale, the surplus grew by 74 flags a week.
    """
    high, low, pause = (Capacity.fraction(each) for each in (0.05, 0.005, 0))
    tracker = QuantileTracker(high, calibration_scores=np.arange(1_000.0))
    errors = [0.0]
    for day in range(12 * 7):
        rate = high if day % 7 < 5 else low
        tracker.set_capacity(rate)
        flagged = tracker.decide_many(np.full(1_000, 1e9)).flagged
        errors.extend(errors[-1] + np.cumsum(flagged - rate.as_fraction()))
        tracker.set_capacity(pause)
    bound = tracker.interval_bound()
    without_pauses = QuantileTracker(high, calibration_scores=np.arange(1_000.0))
    assert bound == without_pauses.set_capacity(low).interval_bound()
    assert max(errors) - min(errors) <= bound


def test_a_swap_to_a_shorter_scale_keeps_the_bound():
    """What was flagged too much on a long scale is paid back; the bound covers both scales."""
    tracker = QuantileTracker(Capacity.fraction(0.1), calibration_scores=np.arange(100_000.0))
    before = tracker.interval_bound()
    errors = np.cumsum(tracker.decide_many(np.full(5_000, 1e9)).flagged - 0.1)
    tracker.swap_model(np.arange(20.0))
    later = np.cumsum(tracker.decide_many(np.full(20_000, 1e9)).flagged - 0.1)
    assert -later.min() > 250  # the debt, more than the short scale allows for
    assert -later.min() <= tracker.interval_bound()
    assert np.ptp([0, *errors, *(errors[-1] + later)]) <= tracker.interval_bound()
    assert tracker.interval_bound() == pytest.approx(before, rel=0.01)


def test_the_bound_remembers_every_capacity():
    """A smaller capacity in the past, or announced, widens the bound; zero does not."""
    tracker = QuantileTracker(Capacity.fraction(0.1), calibration_scores=np.arange(99), step=1)
    alone = tracker.interval_bound()
    tracker.set_capacity(Capacity.fraction(0))
    assert tracker.interval_bound() == alone
    tracker.set_capacity(Capacity.fraction(0.01), at=5.0)
    both = alone + np.log(10) + 0.09
    assert tracker.interval_bound() == pytest.approx(both)
    tracker.decide(0.0, at=6.0)
    tracker.set_capacity(Capacity.fraction(0.1))
    loaded = QuantileTracker.from_state(tracker.state())
    assert tracker.interval_bound() == loaded.interval_bound() == pytest.approx(both)


@pytest.mark.parametrize("prevalence", ["0.1", True, 5, -1, np.nan])
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_an_invalid_prevalence_is_refused(kind, prevalence):
    """An invalid prevalence is refused even with a fraction, which does not need it."""
    with pytest.raises((TypeError, ValueError), match="prevalence"):
        kind(Capacity.fraction(0.1), calibration_scores=np.arange(99), prevalence=prevalence)


# --- bursts --------------------------------------------------------------------------------------


def test_an_empty_bucket_does_not_mislead_the_threshold(rng):
    """However often the bucket is empty, the threshold is that of a tracker without a bucket."""
    options = {"calibration_scores": rng.normal(size=2_000), "step": 0.1}
    tracker = QuantileTracker(Capacity.fraction(0.05), **options)
    bucket = QuantileTracker(Capacity.fraction(0.05), burst=1, **options)
    scores = np.where(np.arange(5_000) % 1_000 < 200, 3.0, 0.0) + rng.normal(size=5_000)
    free, gated = tracker.decide_many(scores), bucket.decide_many(scores)
    assert np.array_equal(free.thresholds, gated.thresholds)
    assert (gated.reasons == "capacity used up").sum() > 20


def test_items_under_a_capacity_of_zero_do_not_refill_the_bucket():
    """Until the change the old capacity refills it, afterwards the new one."""
    bucket = QuantileTracker(Capacity.fraction(0.1), calibration_scores=np.arange(100.0), burst=3)
    assert [bucket.decide(1e9).flag for _ in range(4)] == [True] * 3 + [False]
    bucket.set_capacity(Capacity.fraction(0))
    assert not bucket.decide_many(np.full(50, 1e9)).flagged.any()
    bucket.set_capacity(Capacity.fraction(0.5))
    assert [bucket.decide(1e10).flag for _ in range(5)] == [False, True, False, True, False]


def test_a_burst_is_a_whole_number(scores):
    """Zero would never flag."""
    with pytest.raises(ValueError, match="burst"):
        QuantileTracker(Capacity.fraction(0.1), calibration_scores=scores, burst=0)


def test_a_multiple_follows_the_base_rate_within_the_bound(rng):
    """Flags and b times the base rate in force differ by at most the bound, on every stretch."""
    tracker = QuantileTracker(
        Capacity.multiple(2), calibration_scores=rng.normal(size=500), prevalence=0.02, step=0.1
    )
    errors = [0.0]
    for prevalence in (0.02, 0.05, 0.005, 0.03):
        tracker.set_prevalence(prevalence)
        flagged = tracker.decide_many(rng.normal(size=2_000)).flagged
        errors.extend(errors[-1] + np.cumsum(flagged - 2 * prevalence))
    assert np.ptp(errors) <= tracker.interval_bound()


@pytest.mark.parametrize("kind", CONTROLLERS)
@pytest.mark.parametrize("option", ["brust", "period", "probe_key"])
def test_an_option_that_a_rate_does_not_have_is_an_error(kind, option):
    """A misspelt limit on bursts must not mean that there is none."""
    with pytest.raises(TypeError, match=f"no option '{option}'"):
        kind(Capacity.fraction(0.1), calibration_scores=[0.0, 1.0], **{option: 3})
