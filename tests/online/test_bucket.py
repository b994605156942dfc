"""The token bucket: its threshold, its refill and its units."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import QuantileTracker, TokenBucketController


def test_an_empty_bucket_does_not_mislead_the_threshold(rng):
    """However often the bucket is empty, the threshold is that of a tracker without a bucket."""
    options = {"calibration_scores": rng.normal(size=2_000), "step": 0.1}
    tracker = QuantileTracker(Capacity.fraction(0.05), **options)
    bucket = TokenBucketController(Capacity.fraction(0.05), burst=1, **options)
    scores = np.where(np.arange(5_000) % 1_000 < 200, 3.0, 0.0) + rng.normal(size=5_000)
    free, gated = tracker.decide_many(scores), bucket.decide_many(scores)
    assert np.array_equal(free.thresholds, gated.thresholds)
    assert (gated.reasons == "capacity used up").sum() > 20


def test_time_refills_the_bucket(rng):
    """Six flags a minute are one every ten seconds, however many items arrive."""
    bucket = TokenBucketController(
        Capacity.count(6),
        calibration_scores=rng.normal(size=500),
        burst=1,
        period=60,
        expected_arrivals=600,
    )
    times = np.arange(0, 60, 0.1)
    flagged = bucket.decide_many(np.full(600, 50.0) + np.arange(600), at=times).flagged
    assert np.diff(times[flagged]).min() >= 10 - 1e-9
    assert flagged.sum() >= 3


@pytest.mark.parametrize("period", [86_400.0, "day UTC"])
def test_a_change_of_capacity_neither_fills_nor_stops_the_bucket(period):
    """Until the change the old capacity refills it, afterwards the new one, in any period."""
    bucket = TokenBucketController(
        Capacity.count(2),
        calibration_scores=np.arange(100.0),
        burst=5,
        period=period,
        expected_arrivals=100,
    )
    hours, start = 3_600.0, 1_767_225_600.0
    assert [bucket.decide(1e9, at=start + i).flag for i in range(6)] == [True] * 5 + [False]
    bucket.set_capacity(Capacity.count(24), at=start + 12 * hours)
    flags = [bucket.decide(1e9, at=start + 12.01 * hours + i).flag for i in range(3)]
    assert flags == [True, False, False]  # the flag of half a day
    assert bucket.decide(1e9, at=start + 13.1 * hours).flag


def test_units_are_explained():
    """A rate takes no period, and a period needs a count and the expected arrivals."""
    with pytest.raises(CapacityError, match="period"):
        TokenBucketController(
            Capacity.fraction(0.1), calibration_scores=[0.0], period=60, expected_arrivals=5
        )
    with pytest.raises(ValueError, match="expected_arrivals"):
        TokenBucketController(Capacity.count(5), calibration_scores=[0.0], period=60)
    with pytest.raises(ValueError, match="burst"):
        TokenBucketController(Capacity.fraction(0.1), calibration_scores=[0.0], burst=0)
