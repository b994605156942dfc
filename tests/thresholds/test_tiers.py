"""Three tiers: act at once with a precision, review within the capacity, pass."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, Worth, calibrate_threshold, select
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds.rules import acting_thresholds
from shortlist.thresholds.samples import RowFacts

SCORES = st.lists(st.integers(0, 9), max_size=30).map(lambda s: np.array(s, dtype=float))


@given(SCORES, SCORES, st.integers(0, 12), st.integers(1, 20), st.integers(0, 2**32))
def test_tiers_compose_a_precise_list_and_a_full_one(batch, common, most, level, seed):
    """However scores tie: the first tier knows no capacity, and takes none of it."""
    options = {"common_scores": common, "random_state": seed, "return_details": True}
    found = select(batch, Capacity.count(most), act=level / 20, **options)
    precise = select(
        batch, Capacity.fraction(1), worth=Worth.precision(level / 20), **options
    ).flagged
    assert_array_equal(found.acted, precise)
    assert found.flagged.sum() == found.used == min(most, (~precise).sum())
    assert not (found.flagged & precise).any()
    both = precise.sum() + found.flagged.sum()
    assert_array_equal(
        precise | found.flagged, select(batch, Capacity.count(int(both)), random_state=seed)
    )
    assert_array_equal(found.tiers == "act", precise)
    assert_array_equal(found.tiers == "review", found.flagged)


@pytest.mark.parametrize("rare", [(), (99.5,), (9.5,) * 5])
@pytest.mark.parametrize("act", [0.2, 0.5, 0.8])
def test_the_first_tier_keeps_its_precision(rare, act):
    """Exactly, over all orders of eleven common scores, four of which are in the batch."""
    total, worlds = Fraction(0), list(combinations(range(1, 12), 4))
    for in_batch in worlds:
        common = np.setdiff1d(np.arange(1.0, 12.0), in_batch)
        batch = np.concatenate([in_batch, rare])
        acted = select(batch, Capacity.count(1), common_scores=common, act=act) == "act"
        total += Fraction(int(acted[:4].sum()), max(int(acted.sum()), 1))
    assert total / len(worlds) <= (1 - Fraction(str(act))) * Fraction(4, 4 + len(rare))


@pytest.mark.parametrize(
    "options", [{"worth": Worth.precision(0.5)}, {"probe": 0.5}, {"values": [1, 2]}]
)
def test_what_tiers_cannot_have(options):
    """Another promise about the share of rare items, probes, and values."""
    with pytest.raises(ValueError, match=r"cannot be combined|no values or efforts"):
        select([0.9, 0.2], Capacity.count(1), common_scores=[0.1], act=0.5, **options)
    with pytest.raises(ValueError, match="needs common_scores"):
        select([0.9, 0.2], Capacity.count(1), act=0.5)


@pytest.mark.parametrize("act", [90, 1.5, 0, -1])
def test_a_share_to_act_on_that_is_none(act):
    """A precision of -1 would act on everything, and one of 90 on nothing."""
    with pytest.raises(ValueError, match="act must lie above 0 and be at most 1"):
        select([0.9, 0.2], Capacity.count(1), common_scores=[0.1] * 9, act=act)
    X = np.linspace(-1, 1, 40)[:, np.newaxis]
    model = CapacityClassifier(MODEL, capacity=TENTH).fit(X, [0, 0, 0, 1] * 10)
    with pytest.raises(ValueError, match="act must lie above 0"):
        model.decide([[0.5]], act=act)


# --- models -----------------------------------------------------------------------------------

TENTH = Capacity.fraction(0.1)
MODEL = FrozenEstimator(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))


def items(n, seed):
    """Draw items of which a tenth is rare, and higher."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.1
    return rng.normal(size=(n, 1)) + 4 * y[:, np.newaxis], y


def test_a_classifier_lists_in_tiers():
    """By the common items that it has not seen; a fraction refers to the whole batch."""
    (X, y), (new, is_rare) = items(1_000, 0), items(500, 1)
    model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True).fit(X, y)
    found = model.select(new, act=0.9, return_details=True)
    assert_array_equal(found.tiers, model.select(new, act=0.9))
    assert found.flagged.sum() == 50
    assert found.acted.sum() > 20
    assert is_rare[found.acted].mean() > 0.8
    team = np.arange(500) % 2
    limits = {0: Capacity.fraction(0.02), 1: Capacity.fraction(1)}
    divided = CapacityClassifier(
        MODEL, capacity=TENTH, segment_capacities=limits, rare_label=True
    ).fit(X, y, segments=np.arange(1_000) % 2)
    tiers = divided.select(new, act=0.9, segments=team)
    assert_array_equal(tiers == "act", found.acted)
    assert (tiers[team == 0] == "review").sum() <= 5
    assert (tiers == "review").sum() <= 50


@pytest.mark.parametrize("cv", [0.5, 3])
def test_single_items_are_decided_in_tiers(cv):
    """Flags stay those of the capacity; the tier to act on has a threshold of its own."""
    (X, y), (new, is_rare) = items(4_000, 2), items(2_000, 3)
    model = CapacityClassifier(LogisticRegression(), capacity=TENTH, cv=cv, random_state=0)
    model.fit(X, y)
    plain, found = model.decide(new), model.decide(new, act=0.8)
    assert plain.acted is None
    assert set(plain.tiers) == {"review", "pass"}
    assert_array_equal(found.flagged, plain.flagged)
    assert_array_equal(found.tiers == "review", found.flagged & ~found.acted)
    assert found.acted.sum() > 50
    assert is_rare[found.acted].mean() > 0.8
    assert (found.acted <= model.decide(new, act=0.5).acted).all()


def test_each_fold_acts_by_a_threshold_of_its_own():
    """That of the model which a hash picks for an item."""
    (X, y), (new, _) = items(3_000, 7), items(3_000, 8)
    model = CapacityClassifier(LogisticRegression(), capacity=TENTH, cv=3, random_state=0)
    model.fit(X, y)
    values = np.array([each.value for each in acting_thresholds(model.rule_, 0.5)])
    assert np.unique(values).size == 3
    found, fold = model.decide(new, act=0.5), model.rule_.fold_of(RowFacts(new))
    assert_array_equal(found.acted, found.scores > values[fold])


def test_the_threshold_of_the_first_tier_is_a_confident_one():
    """As `calibrate_threshold` finds it, within any capacity."""
    X, y = items(2_000, 4)
    model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True, ties="exclude").fit(X, y)
    threshold = calibrate_threshold(
        model.calibration_scores_,
        Capacity.fraction(1),
        y=y,
        rare_label=True,
        guarantee="confident",
        worth=Worth.precision(0.8),
    )
    new, _ = items(500, 5)
    acted = model.decide(new, act=0.8).acted
    assert_array_equal(acted, threshold.flag(model.score_samples(new)))


def test_too_few_labels_make_no_first_tier():
    """Nothing is acted on, with a warning; without labels, an error says what is missing."""
    X, y = items(40, 6)
    model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True).fit(X, y)
    # The capacity has no say in it, and is not named.
    no_precision = r"No threshold has a precision of at least 0\.9"
    with pytest.warns(InsufficientCalibrationWarning, match=no_precision):
        assert not model.decide(X, act=0.9).acted.any()
    with pytest.raises(ValueError, match="needs labels here"):
        model.recalibrate(X).decide(X, act=0.9)
