"""The interval of the detection at a capacity, against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc

from shortlist import Capacity, capacity_curve
from shortlist._core.intervals import clopper_pearson_lower, clopper_pearson_upper
from shortlist.metrics._detection_region import _lower, _upper

samples = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=25).filter(
    lambda rows: 0 < sum(rare for rare, _ in rows) < len(rows)
)
TAIL = 0.025  # each end of an interval at 95 %


def reference(rows, *, fraction=None, multiple=None):
    """Return both ends by testing every point of the path with exact binomial probabilities."""
    n, r = len(rows), sum(rare for rare, _ in rows)
    lower, upper = corners(rows)
    low, high = 1.0, 0.0
    for prevalence in prevalences(n, r):
        c = fraction if multiple is None else min(1.0, multiple * prevalence)
        low = min(low, min(lowest(*point, n, r, c, prevalence) for point in lower))
        high = max(high, max(highest(*point, n, r, c, prevalence) for point in upper))
    return low, high


def corners(rows):
    """Return the points that a path through all tied blocks cannot get around, for both ends."""
    found, alarms, lower, upper = 0, 0, [], []
    for value in sorted({score for _, score in rows}, reverse=True):
        new_found = found + sum(rare for rare, score in rows if score == value)
        new_alarms = alarms + sum(not rare for rare, score in rows if score == value)
        lower.append((found, new_alarms))
        upper.append((new_found, alarms))
        found, alarms = new_found, new_alarms
    return [*lower, (found, alarms)], [*upper, (found, alarms)]


def prevalences(n, r):
    """Return the prevalences at which a quarter of the error lies beyond the observed number."""
    low = brentq(lambda share: bdtrc(r - 1, n, share) - TAIL / 4, 0, 1)
    high = brentq(lambda share: bdtr(r, n, share) - TAIL / 4, 0, 1)
    return low, high


def lowest(found, alarms, n, r, c, prevalence):
    """Return the smallest detection that agrees with so many rare and other items above the cut."""

    def agrees(d):
        e = (c - prevalence * d) / (1 - prevalence)
        if e > 1:  # more items flagged than there are
            return False
        e = max(e, 0.0)
        return bdtrc(found - 1, r, d) >= TAIL / 2 and bdtr(alarms, n - r, e) >= TAIL / 4

    return bisect(agrees, 0.0, 1.0)


def highest(found, alarms, n, r, c, prevalence):
    """Return the largest detection that agrees with them."""

    def agrees(d):
        if c - prevalence * d < 0:  # more rare items found than items flagged
            return False
        e = min((c - prevalence * d) / (1 - prevalence), 1)
        return bdtr(found, r, d) >= TAIL / 2 and bdtrc(alarms - 1, n - r, e) >= TAIL / 4

    return bisect(agrees, 1.0, 0.0)


def bisect(agrees, out, inside):
    """Return where the values that agree begin, going from `out` to `inside`."""
    if agrees(out):
        return out
    for _ in range(25):
        middle = (out + inside) / 2
        out, inside = (out, middle) if agrees(middle) else (middle, inside)
    return inside


@settings(max_examples=30, deadline=None)
@given(rows=samples, share=st.integers(0, 20))
def test_it_is_what_agrees_with_some_cut(rows, share):
    """A detection lies in the interval if one cut passes all three exact binomial tests."""
    is_rare, scores = (np.array(column) for column in zip(*rows, strict=True))
    curve = capacity_curve(is_rare, scores.astype(float), rare_label=True)
    assert_allclose(
        curve.interval_at(Capacity.fraction(share / 20)),
        reference(rows, fraction=share / 20),
        atol=1e-6,
    )


@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("direction", [1, -1])
def test_both_ends_of_the_prevalence_count(fraction, direction):
    """A higher prevalence is worse for a good ranking, and a lower one for a bad ranking."""
    rows = [(place < 12, -direction * place) for place in range(120)]
    curve = capacity_curve(
        [rare for rare, _ in rows], [score for _, score in rows], rare_label=True
    )
    assert_allclose(
        curve.interval_at(Capacity.fraction(fraction)),
        reference(rows, fraction=fraction),
        atol=1e-6,
    )


@settings(max_examples=15, deadline=None)
@given(rows=samples, multiple=st.sampled_from([0.5, 1, 1.5]))
def test_a_multiple_takes_the_worse_prevalence(rows, multiple):
    """Its share of all items moves with the prevalence."""
    is_rare, scores = (np.array(column) for column in zip(*rows, strict=True))
    curve = capacity_curve(is_rare, scores.astype(float), rare_label=True)
    assert_allclose(
        curve.interval_at(Capacity.multiple(multiple)),
        reference(rows, multiple=multiple),
        atol=1e-6,
    )


@given(rows=samples, count=st.integers(0, 25))
def test_it_contains_the_detection_of_the_row(rows, count):
    """At every cut and at every capacity, with and without ties; it grows with the capacity."""
    is_rare, scores = (np.array(column) for column in zip(*rows, strict=True))
    curve = capacity_curve(is_rare, scores.astype(float), rare_label=True)
    assert (curve.detection_low <= curve.detection + 1e-12).all()
    assert (curve.detection <= curve.detection_high + 1e-12).all()
    assert (np.diff(curve.detection_low) >= -1e-12).all()
    assert (np.diff(curve.detection_high) >= -1e-12).all()
    row = curve.at(Capacity.count(min(count, len(rows))))
    assert row["detection_low"] <= row["detection"] + 1e-12
    assert row["detection"] <= row["detection_high"] + 1e-12


def test_the_ends_are_known():
    """No flags find nothing, and flagging everything finds everything."""
    curve = capacity_curve([1, 0, 1, 0, 0, 0], [6, 5, 5, 3, 2, 1])
    assert (curve.detection_low[0], curve.detection_high[0]) == (0, 0)
    assert (curve.detection_low[-1], curve.detection_high[-1]) == pytest.approx((1, 1))


def test_a_count_refers_to_as_many_items_as_there_are():
    """A count of items without a base, the same count per items, and the same share agree."""
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.1
    curve = capacity_curve(y, rng.normal(size=500) + y, rare_label=True)
    ways = (Capacity.count(25), Capacity.count(5, per=100), Capacity.fraction(0.05))
    first, *others = [curve.interval_at(capacity) for capacity in ways]
    assert others == [first, first]
    assert first == (curve.at(ways[0])["detection_low"], curve.at(ways[0])["detection_high"])


def test_bounds_of_large_counts_are_a_little_worse():
    """Beyond twenty thousand, not every count has its own bound, and none is too good."""
    trials, error = 200_000, 0.01
    counts = np.linspace(0, trials, 999).astype(np.intp)
    low, high = (bound(counts, trials, error=error) for bound in (_lower, _upper))
    exact_low = clopper_pearson_lower(counts, trials, error=error)
    exact_high = clopper_pearson_upper(counts, trials, error=error)
    slack = (np.sqrt(counts) / 16 + 1) / trials
    assert (low <= exact_low).all()
    assert (high >= exact_high).all()
    assert (exact_low - low <= slack).all()
    assert (high - exact_high <= slack).all()
    few = counts <= 20_000
    assert_allclose(low[few], exact_low[few])
    assert_allclose(high[few], exact_high[few])
