"""Laws of the joint rule: however values tie, the calibration sample keeps every capacity."""

import warnings
from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist import Capacity, calibrate_threshold
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.multiclass._capacities import JointCapacities
from shortlist.multiclass._rule import JointRule, JointSample
from shortlist.thresholds.samples import SegmentCapacities

coarse = st.sampled_from([-1.0, 0.0, 0.1, 0.3, 1 / 3, 1.0, 2.0])
ratios = st.none() | st.integers(0, 10).map(lambda tenths: Fraction(tenths, 10))


@st.composite
def samples(draw):
    """Draw calibration items with ties, and limits for them."""
    n, m = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    n_segments = draw(st.integers(1, 3))
    gains = draw(hnp.arrays(np.float64, (n, m), elements=coarse | st.floats(-2, 2)))
    segments = draw(hnp.arrays(np.intp, n, elements=st.integers(0, n_segments - 1)))
    keys = draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(0, 1, exclude_max=True)))
    sample = JointSample(gains, segments, keys, False)
    n_limits = m + n_segments + 1  # of the classes, of the segments, of the total
    return sample, draw(st.lists(ratios, min_size=n_limits, max_size=n_limits))


def plug_in_rule(sample, limits):
    """Return the rule that keeps limits of classes, segments and the total on a sample itself."""
    *of_both, total = (None if ratio is None else Capacity.fraction(ratio) for ratio in limits)
    m = sample.gains.shape[1]
    classes, segments = dict(enumerate(of_both[:m])), dict(enumerate(of_both[m:]))
    counts = dict.fromkeys([*classes, "common"], 1)
    joint = JointCapacities(classes, counts, total, SegmentCapacities(segments, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        return JointRule.calibrate(sample, joint, guarantee="plug-in")


def choose(rule, sample):
    """Return the column of each item by this rule."""
    return rule.decide(sample)[0]


@given(samples())
def test_the_plug_in_rule_keeps_every_capacity_on_its_own_sample(drawn):
    """Capacities hold by class, by segment and in total, with ties and with hashed ties."""
    sample, limits = drawn
    columns = choose(plug_in_rule(sample, limits), sample)
    n, m = sample.gains.shape
    for j, ratio in enumerate(limits[:m]):
        assert ratio is None or (columns == j + 1).sum() <= ratio * n
    assert limits[-1] is None or (columns > 0).sum() <= limits[-1] * n
    for s, ratio in enumerate(limits[m:-1]):
        own = sample.segments == s
        assert ratio is None or (columns[own] > 0).sum() <= ratio * own.sum()


@given(samples(), st.data())
def test_items_are_decided_one_at_a_time(drawn, data):
    """An item gets the same column alone and in its batch."""
    sample, limits = drawn
    rule = plug_in_rule(sample, limits)
    row = data.draw(st.integers(0, len(sample) - 1))
    alone = choose(rule, sample.take(np.array([row])))
    assert_array_equal(alone, choose(rule, sample)[[row]])


@given(samples())
def test_only_strict_gains_are_flagged(drawn):
    """Without the hash, every flagged item is worth more than leaving it alone."""
    sample, limits = drawn
    if sample.keys is None:
        flagged = np.flatnonzero(choose(plug_in_rule(sample, limits), sample))
        assert (sample.gains[flagged].max(axis=1, initial=-1) > 0).all()


@given(samples())
def test_the_order_of_the_sample_does_not_change_the_prices(drawn):
    """The sample in reverse order gives the same prices."""
    sample, limits = drawn
    rule = plug_in_rule(sample, limits)
    reversed_rule = plug_in_rule(sample.take(np.arange(len(sample))[::-1]), limits)
    assert_array_equal(rule.prices, reversed_rule.prices)


@given(
    hnp.arrays(
        np.float64,
        st.integers(1, 40),
        elements=st.sampled_from([0.1, 0.2, 0.25, 1 / 3, 0.9]) | st.floats(0.01, 1),
    ),
    st.integers(0, 100),
)
def test_one_class_alone_is_the_threshold_of_its_scores(scores, percent):
    """The price is the threshold of the plug-in rule, with ties left out whole."""
    assume(percent == 0 or (scores.size + 1) * percent >= 100)  # enough for a threshold
    capacity = Capacity.fraction(percent / 100)
    limits = [capacity.as_ratio(), None, None]
    nowhere = np.zeros(scores.size, dtype=np.intp)
    # Scores that differ by less than a unit of the fixed point are equal for the joint rule only.
    rounded = np.rint(scores * 2.0**40) / 2.0**40
    sample = JointSample(rounded[:, np.newaxis], nowhere, None, False)
    flagged = calibrate_threshold(rounded, capacity, guarantee="plug-in").flag(rounded)
    assert_array_equal(choose(plug_in_rule(sample, limits), sample) == 1, flagged)
