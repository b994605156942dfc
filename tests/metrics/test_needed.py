"""What it takes to find a share of the rare items: the inverse of the detection at a capacity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import binom, norm

from shortlist import Capacity, CapacityClassifier, capacity_curve


@st.composite
def samples(draw):
    """Draw labels with both classes, and scores that may tie."""
    is_rare = draw(st.lists(st.booleans(), min_size=2, max_size=40).filter(lambda x: any(x)))
    scores = draw(st.lists(st.integers(0, 12), min_size=len(is_rare), max_size=len(is_rare)))
    return np.array(is_rare), np.array(scores, dtype=float)


@given(samples(), st.integers(1, 100))
def test_the_fewest_flags_that_find_the_share(sample, percent):
    """By hand: no cut with fewer flags finds as much; both ends enclose it."""
    is_rare, scores = sample
    needed = capacity_curve(is_rare, scores, rare_label=True).needed_for(percent / 100)
    cuts = [scores > level for level in (*np.unique(scores), -np.inf)]
    enough = [c.sum() for c in cuts if 100 * (c & is_rare).sum() >= percent * is_rare.sum()]
    assert needed.n_flagged == min(enough)
    assert needed.low <= needed.fraction <= needed.high


@given(samples(), st.integers(1, 100))
def test_the_ends_are_the_next_capacities_that_are_ruled_out(sample, percent):
    """Below the lower end the detection is too high for any interval, from the upper end it is in
    none that begins lower.
    """
    is_rare, scores = sample
    curve = capacity_curve(is_rare, scores, rare_label=True)
    needed = curve.needed_for(percent / 100)
    low, high = np.searchsorted(curve.fraction, [needed.low, needed.high])
    assert curve.detection_high[low] < percent / 100 <= curve.detection_high[low + 1]
    assert curve.detection_low[high - 1] < percent / 100 <= curve.detection_low[high] + 1e-12


@given(samples())
def test_more_detection_takes_more(sample):
    """All numbers rise with the share, because the intervals of a curve rise with the capacity."""
    is_rare, scores = sample
    curve = capacity_curve(is_rare, scores, rare_label=True)
    for ends in (curve.detection_low, curve.detection_high):
        assert (np.diff(ends) >= -1e-12).all()
    plans = [curve.needed_for(share) for share in (0.1, 0.5, 0.9, 1.0)]
    for name in ("n_flagged", "low", "high"):
        numbers = [getattr(plan, name) for plan in plans]
        assert numbers == sorted(numbers)
    levels = [plan.threshold for plan in plans]
    assert levels == sorted(levels, reverse=True)


SHARE, SHIFT = 0.05, 2.0
N, TRIALS = 1_500, 400


@pytest.mark.parametrize("detection", [0.5, 0.9])
def test_the_interval_covers_what_the_population_takes(detection):
    """Normal scores, whose detection at any capacity is known.

    Each end may fail in 2.5 % of the samples: with 400 of them, four standard errors are 0.031.
    The capacity of the sample itself is too small about half of the time.
    """
    level = SHIFT - norm.ppf(detection)
    truth = SHARE * detection + (1 - SHARE) * norm.sf(level)
    rng, above, below, plug_in = np.random.default_rng(20), 0, 0, 0
    for _ in range(TRIALS):
        is_rare = rng.random(N) < SHARE
        curve = capacity_curve(is_rare, rng.normal(size=N) + SHIFT * is_rare, rare_label=True)
        needed = curve.needed_for(detection)
        above += needed.low > truth
        below += needed.high < truth
        plug_in += needed.fraction < truth
    assert above / TRIALS <= 0.025 + 0.031
    assert below / TRIALS <= 0.025 + 0.031
    assert plug_in / TRIALS > 0.3


@pytest.mark.parametrize("n_rare", [1, 20, 73, 400])
@pytest.mark.parametrize("detection", [0.5, 0.9, 0.99])
def test_the_threshold_keeps_the_detection_exactly(n_rare, detection):
    """Of r rare scores, the j-th largest has less than the share d above it with the probability
    that j or more of r are among the share d: at most 2.5 %, and more for one rank fewer.
    """
    curve = capacity_curve(np.arange(1_000) < n_rare, -np.arange(1_000), rare_label=True)
    threshold = curve.needed_for(detection).threshold
    rank = int((-np.arange(n_rare) > threshold).sum())
    if np.isneginf(threshold):
        assert detection**n_rare > 0.025
    else:
        assert (
            binom.sf(rank - 1, n_rare, detection) <= 0.025 < binom.sf(rank - 2, n_rare, detection)
        )


def test_a_promised_detection_is_a_capacity(fraud):
    """Its lists find the share on new items, and it is judged beside any other capacity."""
    X, y = fraud
    from sklearn.linear_model import LogisticRegression

    half = y.size // 2
    model = CapacityClassifier(
        LogisticRegression(max_iter=1_000), capacity=Capacity.fraction(0.05), random_state=0
    ).fit(X[:half:2], y[:half:2])
    curve = capacity_curve(y[1:half:2], model.score_samples(X[1:half:2]), rare_label=1)
    capacity = Capacity.for_detection(0.5, curve)
    listed = model.select(X[half:], capacity)
    assert listed[y[half:] == 1].mean() >= 0.5
    needed = curve.needed_for(0.5)
    middle = (needed.low + needed.high) / 2
    verdicts = [needed.judge(share) for share in (needed.low / 2, middle, needed.high)]
    assert verdicts == [False, None, True]
    assert_array_equal(curve.interval_at(capacity).low >= 0.5, True)


@pytest.mark.parametrize("n", [57, 99, 300, 393])
def test_a_promised_detection_loses_no_review_to_decimals(n):
    """A share of 33 in 393 has no end in decimal; all 33 reviews are allowed."""
    curve = capacity_curve(np.arange(n) < n // 10, -np.arange(n), rare_label=True)
    for detection in (0.3, 0.5, 0.7):
        capacity, high = Capacity.for_detection(detection, curve), curve.needed_for(detection).high
        assert capacity.max_flags(n) == round(high * n)
        assert capacity.as_fraction() == high


@pytest.mark.parametrize(
    ("detection", "message"),
    [(0, "above 0"), (1.2, "at most 1"), (float("nan"), "finite"), ("0.9", "must be a number")],
)
def test_other_shares_are_refused(detection, message):
    """The message says what arrived and what is needed."""
    curve = capacity_curve([1, 0, 0], [3, 2, 1])
    with pytest.raises((ValueError, TypeError), match=message):
        curve.needed_for(detection)
