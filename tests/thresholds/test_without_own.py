"""Calibration items, each judged by the threshold that the others give."""

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import norm

from shortlist import Capacity, Worth
from shortlist._core.ids import hash_ids
from shortlist._core.ranking import lift
from shortlist.thresholds.samples import CalibrationSample
from shortlist.thresholds.terms import Terms, _Calibration

pytestmark = pytest.mark.filterwarnings(
    "ignore::shortlist.exceptions.InsufficientCalibrationWarning"
)


def one_by_one(terms, samples, capacity):
    """Calibrate as many times as there are items, each time without one of them or its group."""
    flags = []
    for fold, sample in enumerate(samples):
        units = np.arange(sample.scores.size) if sample.groups is None else sample.groups
        for item, unit in enumerate(units):
            others = list(samples)
            others[fold] = sample.take(np.flatnonzero(units != unit))
            found = terms.thresholds(others, capacity)[fold]
            keys = sample.keys_of and sample.take(np.array([item])).keys_of
            flags += found.flag_with_keys(sample.scores[[item]], keys).tolist()
    return np.array(flags)


@st.composite
def samples(draw, *, n_folds=None, work=False, grouped=False, keyed=None):
    """Return samples with ties, with or without keys, some of them shared by items."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    keyed = draw(st.booleans()) if keyed is None else keyed
    n_values, repeated, first = draw(st.sampled_from([2, 5, 1_000])), draw(st.booleans()), 0
    found = []
    for _ in range(n_folds or draw(st.integers(1, 3))):
        n = draw(st.integers(3, 14))
        ids = np.arange(first, first + n)
        if repeated and not (grouped or work):  # lots of items with one key go by their positions
            ids = rng.integers(4, size=n)
        first += n
        scores = lift(rng.integers(n_values, size=n) / n_values)
        groups = np.unique(rng.integers(5, size=n), return_inverse=True)[1] if grouped else None
        if grouped and groups.max() == 0:
            groups[0] = 1
        found.append(
            CalibrationSample(
                scores,
                hash_ids(ids) if keyed else None,
                groups=groups,
                efforts=rng.integers(1, 5, size=n) / 4 if work else None,
            )
        )
    return found


FRACTIONS = st.integers(0, 40).map(lambda n: Capacity.fraction(n / 40))


@given(samples(), FRACTIONS, st.sampled_from(["plug-in", "expected", "confident"]))
def test_an_item_is_judged_by_the_threshold_of_the_others(samples, capacity, guarantee):
    """With ties, shared keys and folds, or left out: as if calibrated without each in turn."""
    terms = Terms(guarantee, 0.8)
    flagged = terms.flags_without_own(samples, capacity, [each.keys_of for each in samples])
    assert_array_equal(flagged, one_by_one(terms, samples, capacity))


@given(samples(n_folds=1, keyed=True), st.integers(1, 4))
def test_a_batch_is_promised_without_the_item(samples, max_flags):
    """Promises of one threshold: the same law."""
    for guarantee in ("next-batch", "simultaneous"):
        terms, capacity = Terms(guarantee, 0.8), Capacity.count(max_flags, per=5)
        flagged = terms.flags_without_own(samples, capacity, [samples[0].keys_of])
        assert_array_equal(flagged, one_by_one(terms, samples, capacity))


@given(samples(work=True, keyed=True), st.integers(1, 20), st.sampled_from([None, 0.4]))
def test_work_is_judged_without_the_item(samples, budget, least):
    """A budget of work thins the others; a least value is the same for all items."""
    worth = None if least is None else Worth.value(least)
    terms, capacity = Terms(max_effort=1.0, worth=worth), Capacity.effort(budget, per=20)
    flagged = terms.flags_without_own(samples, capacity, [each.keys_of for each in samples])
    assert_array_equal(flagged, one_by_one(terms, samples, capacity))


@given(samples(grouped=True, keyed=True), FRACTIONS, st.sampled_from(["expected", "confident"]))
def test_an_item_is_judged_without_its_group(samples, capacity, guarantee):
    """One item of each other group, with the same part of the capacity for all groups."""
    terms = Terms(guarantee, 0.8)
    with patch.object(_Calibration, "_part_of_capacity", lambda self: Fraction(3, 4)):
        flagged = terms.flags_without_own(samples, capacity, [each.keys_of for each in samples])
        assert_array_equal(flagged, one_by_one(terms, samples, capacity))


def test_the_part_of_all_groups_judges_none_of_them_otherwise():
    """Sizes from 1 to 7: as much of an average group is flagged as of new groups, within 3 %."""
    of, seen, new = np.arange(150).repeat(np.arange(150) % 7 + 1), [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=150)[of] + rng.normal(size=of.size)
        sample = CalibrationSample(scores, rng.random(of.size), groups=of)
        terms, capacity = Terms(seed=seed), Capacity.fraction(0.05)
        flagged = terms.flags_without_own([sample], capacity, [sample.keys_of])
        seen.append((np.bincount(of, flagged) / np.bincount(of)).mean())
        found = terms.thresholds([sample], capacity)[0]
        upper, lower = norm.sf([found.value, found.lower_value], scale=np.sqrt(2))
        new.append((1 - found.share) * upper + found.share * lower)
    assert abs(np.mean(seen) / np.mean(new) - 1) < 0.03


@given(st.integers(2, 60), st.integers(1, 39), st.integers(0, 2**32))
def test_the_whole_capacity_is_flagged_in_expectation(n, percent, seed):
    """With k + 1 places for sure and one by lot: c * n items, not c * n - 1."""
    rng = np.random.default_rng(seed)
    sample = CalibrationSample(rng.normal(size=n), rng.random(n))
    n_flags = Terms().flags_without_own([sample], Capacity.fraction(percent / 40), [sample.keys_of])
    assert abs(n_flags.sum() - n * percent / 40) < 1


def test_where_labels_make_the_threshold_all_items_are_judged_by_it():
    """A promised precision depends on the labels; no short cut finds it without each item."""
    rng = np.random.default_rng(0)
    scores, keys = rng.normal(size=200), rng.random(200)
    sample = CalibrationSample(scores, keys, is_rare=scores + rng.normal(size=200) > 1.5)
    terms, capacity = Terms(worth=Worth.precision(0.5)), Capacity.fraction(0.3)
    (found,) = terms.thresholds([sample], capacity)
    flagged = terms.flags_without_own([sample], capacity, [sample.keys_of])
    assert_array_equal(flagged, found.flag_with_keys(scores, sample.keys_of))
