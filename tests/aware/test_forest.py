"""A forest with large leaves, or with small ones where they find more."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from shortlist import Capacity, CapacityClassifier, select
from shortlist.aware import CapacityAwareForestClassifier

CAPACITY = Capacity.multiple(2)


def fit(data, **options):
    """Fit a small forest with a seed."""
    options = {"capacity": CAPACITY, "n_estimators": 60, "random_state": 0, **options}
    return CapacityAwareForestClassifier(**options).fit(*data)


def wrapped(data, cv="oob", capacity=CAPACITY, **options):
    """Fit a small forest with a seed, and a threshold."""
    forest = CapacityAwareForestClassifier(**{"n_estimators": 60, "random_state": 0, **options})
    return CapacityClassifier(forest, capacity=capacity, cv=cv, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def forest(few_rare):
    """Return a fitted forest."""
    return fit(few_rare)


def draw_blocks(n_items, rng):
    """Draw items that are rare in two of sixty-four blocks of the plane, and nowhere else."""
    X = rng.uniform(size=(n_items, 4))
    across, down = (X[:, :2] * 8).astype(int).T
    return X, ((across == 2) & (down == 5)) | ((across == 6) & (down == 1))


@pytest.fixture(scope="module")
def blocks():
    """Return 1,500 items whose classes only small leaves can separate."""
    return draw_blocks(1500, np.random.default_rng(0))


def leaf_sizes(kind):
    """Return the number of different items in each leaf of a forest's first tree."""
    tree = kind.estimators_[0].tree_
    return tree.n_node_samples[tree.children_left == -1]


def test_the_score_is_the_weighted_mean_of_the_forests_in_use(forest, others):
    """Forests with large leaves alone have equal weights."""
    X = others[0][:200]
    assert_array_equal(forest.weights_, [0.25] * 4)
    each = [kind.predict_proba(X)[:, 1] for kind in forest.forests_]
    assert_allclose(forest.score_samples(X), np.mean(each, axis=0))


@pytest.mark.parametrize(
    ("name", "n_trees"), [("few_rare", [16, 15, 15, 15]), ("blocks", [16, 15, 15, 15, 31, 30])]
)
def test_there_are_as_many_trees_as_asked_for(name, n_trees, request):
    """They have large leaves; as many again with small leaves are added where these are used."""
    forests = fit(request.getfixturevalue(name), n_estimators=61).forests_
    assert [len(kind.estimators_) for kind in forests] == n_trees


def test_noise_is_left_to_large_leaves(forest, few_rare):
    """A leaf holds one in a hundred drawn items, and in half of the trees at least 20."""
    assert not forest.falls_back_
    assert forest.detection_["large"] > forest.detection_["small"]
    assert all(leaf_sizes(kind).min() >= 0.01 * len(few_rare[1]) for kind in forest.forests_)
    few = fit((few_rare[0][:600], few_rare[1][:600]), fall_back=False)
    least = [kind.min_samples_leaf for kind in few.forests_]
    assert least == [6, 6, 20, 20]


def test_small_leaves_are_used_where_they_tell_classes_apart(blocks):
    """They also detect clearly more of the new items than large leaves."""
    noticed, large = fit(blocks), fit(blocks, fall_back=False)
    assert noticed.falls_back_
    assert not large.falls_back_
    assert noticed.detection_["small"] > noticed.detection_["large"]
    assert_allclose(noticed.weights_, [0.05, 0.05, 0.05, 0.05, 0.4, 0.4])
    assert [leaf_sizes(kind).min() < 10 for kind in noticed.forests_] == [False] * 4 + [True] * 2
    X, is_rare = draw_blocks(20_000, np.random.default_rng(1))
    share = Capacity.fraction(CAPACITY.as_fraction(blocks[1].mean()))
    found = [np.mean(select(m.score_samples(X), share)[is_rare]) for m in (noticed, large)]
    assert found[0] > found[1] + 0.05


def test_a_wide_capacity_is_not_stopped_by_ties(blocks):
    """Small leaves score most items 0; large ones rank them."""
    X, _ = draw_blocks(2000, np.random.default_rng(2))
    model = wrapped(blocks)
    forests = model.estimator_.forests_
    small = np.mean([kind.predict_proba(X)[:, 1] for kind in forests[4:]], axis=0)
    assert np.mean(small == 0) > 0.6
    flagged = model.with_capacity(Capacity.fraction(0.5)).flag(X)
    # Four standard errors: two samples, of 1,500 and 2,000 items, differ by 0.017 at most.
    assert abs(flagged.mean() - 0.5) < 4 * 0.017


def test_a_threshold_among_items_tied_at_the_bottom_is_warned_of(blocks):
    """The warning comes with small leaves and without held-out items."""
    wide = {"min_samples_leaf": 1, "fall_back": False, "capacity": Capacity.fraction(0.9)}
    with pytest.warns(UserWarning, match=r"lowest out-of-bag score.*cv=0\.5"):
        wrapped(blocks, **wide)
    wrapped(blocks, cv=0.25, **wide)


def test_small_leaves_are_copied_and_calibrated_like_large_ones(blocks):
    """Held-out items set the threshold, and a copy decides the same."""
    model = wrapped(blocks, cv=0.25)
    assert model.estimator_.falls_back_
    assert model.calibration_.n_calibration == 375  # a quarter
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.flag(blocks[0]), model.flag(blocks[0]))


def test_without_falling_back_nothing_is_compared(few_rare, forest, others):
    """The large leaves are the same as with the comparison."""
    alone = fit(few_rare, fall_back=False)
    assert not hasattr(alone, "detection_")
    assert_array_equal(alone.score_samples(others[0][:200]), forest.score_samples(others[0][:200]))


@pytest.mark.parametrize(("lead", "falls_back"), [(0, False), (2, False), (40, True)])
def test_small_leaves_have_to_be_clearly_ahead(lead, falls_back):
    """Two more items are within a standard error of the difference; forty are not."""
    is_rare = np.repeat([True, False], [80, 4000])
    large = np.where(is_rare, 0.0, 0.5)
    large[:10] = 1
    small = large.copy()
    small[:5], small[10:15] = 0, 1
    small[20 : 20 + lead] = 1
    model = CapacityAwareForestClassifier(Capacity.count(80, per=4080))
    model._learned_for = Capacity.fraction(80 / 4080)
    assert model._compare(large, small, is_rare) == falls_back
    # What stands above the common items is found; they take the other places at any capacity.
    assert_allclose(model.detection_["large"], 10 / 80)


def test_few_trees_leave_enough_items_for_the_threshold(few_rare):
    """An item is scored by the forests with a tree that has not seen it."""
    model = wrapped(few_rare, n_estimators=4)
    # Four trees have all seen an item with probability 0.63 ** 4, with large leaves and with small
    # ones: 0.84 ** 2, or 0.71, are left.
    assert model.calibration_.n_calibration > 0.6 * len(few_rare[1])


def test_a_clone_is_unfitted_and_falls_back_as_asked(forest):
    """All settings are kept."""
    copy = clone(CapacityAwareForestClassifier(CAPACITY, fall_back=False))
    assert copy.fall_back is False
    assert not hasattr(clone(forest), "forests_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 3}, "n_estimators must be a whole number of at least 4"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be a whole number of at least 1"),
        ({"min_samples_leaf": 1.5}, "a share of all items"),
    ],
)
def test_bad_settings_are_named(options, message, few_rare):
    """The error comes before anything is grown."""
    with pytest.raises(ValueError, match=message):
        fit(few_rare, **options)
