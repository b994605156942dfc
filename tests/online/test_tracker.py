"""The tracker: late announcements, rates beyond the scale, and its arguments."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import (
    EmaController,
    QuantileTracker,
    TokenBucketController,
    WindowController,
)

CONTROLLERS = [QuantileTracker, TokenBucketController, WindowController, EmaController]


@pytest.fixture
def scores(rng):
    """Return scores that do not change."""
    return rng.normal(size=40_000)


def offset(tracker):
    """Return the sum of the errors, times the step."""
    return tracker.state()["floats"][0]


def test_a_late_announcement_is_made_up_for(scores):
    """Errors since then are counted again with the true rate, to within sixteen items."""
    announced, late = (
        QuantileTracker(Capacity.fraction(0.02), calibration_scores=scores[:5_000], step=0.03)
        for _ in range(2)
    )
    times = np.arange(2_000.0)
    announced.decide_many(scores[:1_000], at=times[:1_000])
    announced.set_capacity(Capacity.fraction(0.01), at=999.5)
    announced.decide_many(scores[1_000:2_000], at=times[1_000:])
    flags = late.decide_many(scores[:2_000], at=times).flagged
    before = offset(late)
    late.set_capacity(Capacity.fraction(0.01), at=1_000.0)
    assert offset(late) - before == pytest.approx(0.03 * 0.01 * 1_000, rel=0.02)
    errors = flags.sum() - 0.02 * 1_000 - 0.01 * 1_000
    assert offset(late) == pytest.approx(0.03 * errors, abs=0.03 * 0.01 * 16 + 1e-9)


def test_a_late_announcement_brings_the_long_run_back(scores):
    """After a late cut of the capacity, the overrun is made up for, but only with a correction."""
    flags = {}
    for corrected in (True, False):
        tracker = QuantileTracker(
            Capacity.fraction(0.02), calibration_scores=scores[:5_000], step=0.03
        )
        times = np.arange(40_000.0)
        first = tracker.decide_many(scores[:4_000], at=times[:4_000]).flagged.sum()
        since = 0.0 if corrected else None
        tracker.set_capacity(Capacity.fraction(0.01), at=since)
        rest = tracker.decide_many(scores[4_000:], at=times[4_000:]).flagged.sum()
        flags[corrected] = first + rest
    assert abs(flags[True] - 400) < 20  # one per cent of 40,000
    assert flags[False] - flags[True] == pytest.approx(40, abs=20)  # one per cent of 4,000


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
    """At zero the bound is zero; a range must begin above zero and not be reversed."""
    tracker = QuantileTracker(Capacity.fraction(0), calibration_scores=np.arange(99))
    assert tracker.interval_bound() == 0
    low, high = Capacity.fraction(0.01), Capacity.fraction(0.02)
    assert tracker.interval_bound(low, high) > 0
    for smallest, largest in ((Capacity.fraction(0), high), (high, low)):
        with pytest.raises(CapacityError, match="smallest"):
            tracker.interval_bound(smallest, largest)


@pytest.mark.parametrize("prevalence", ["0.1", True, 5, -1, np.nan])
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_an_invalid_prevalence_is_refused(kind, prevalence):
    """An invalid prevalence is refused even with a fraction, which does not need it."""
    with pytest.raises((TypeError, ValueError), match="prevalence"):
        kind(Capacity.fraction(0.1), calibration_scores=np.arange(99), prevalence=prevalence)
