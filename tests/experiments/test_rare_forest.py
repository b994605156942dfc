"""The quick forest makes the splits of scikit-learn's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from shortlist.experiments._rare_forest import RareForest


@pytest.fixture
def sample(rng):
    """Return 600 items with five continuous features, so that no two cuts tie."""
    X = rng.normal(size=(600, 5))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=600) > 2.6).astype(int)
    return X, y


@pytest.mark.parametrize("feature", range(5))
def test_a_tree_of_one_feature_is_that_of_scikit_learn(sample, rng, feature):
    """Nothing is random: the same nodes and shares. (Several features may tie in small nodes.)"""
    X, y = sample[0][:, [feature]], sample[1]
    ours = RareForest(1, min_samples_split=6, bootstrap=False, random_state=0).fit(X, y)
    theirs = DecisionTreeClassifier(min_samples_split=6, random_state=0).fit(X, y)
    new = rng.normal(size=(2_000, 1))
    assert len(ours.trees_[0].feature) == theirs.tree_.node_count
    assert_allclose(ours.predict_proba(new), theirs.predict_proba(new))
    assert_array_equal(ours.predict(new), theirs.predict(new))


def test_with_all_features_the_first_split_is_that_of_scikit_learn(sample):
    """The best cut of all features, in the same place."""
    X, y = sample
    ours = RareForest(1, max_features=5, bootstrap=False, random_state=0).fit(X, y).trees_[0]
    theirs = DecisionTreeClassifier(random_state=0).fit(X, y).tree_
    assert ours.feature[0] == theirs.feature[0]
    assert ours.threshold[0] == pytest.approx(theirs.threshold[0])


def test_features_with_few_values_are_cut_between_them(sample, rng):
    """Ties within a feature stay together; both ways of counting agree with scikit-learn."""
    X, y = sample
    X = np.round(X * 3) / 3 + np.arange(5)  # the shift keeps features from tying with each other
    ours = RareForest(1, max_features=1, bootstrap=False, random_state=0).fit(X[:, :1], y)
    theirs = DecisionTreeClassifier(random_state=0).fit(X[:, :1], y)
    assert_allclose(ours.predict_proba(X[:, :1]), theirs.predict_proba(X[:, :1]))


def test_forests_agree_in_the_mean(sample, rng):
    """The scores of both differ by less than those of two seeds of one program, twice over."""
    X, y = sample
    new = rng.normal(size=(2_000, 5))

    def scores(kind, seed):
        forest = kind(200, min_samples_split=6, random_state=seed)
        return forest.fit(X, y).predict_proba(new)[:, 1]

    theirs, again = (scores(RandomForestClassifier, seed) for seed in (0, 1))
    ours = scores(RareForest, 0)
    assert np.abs(ours - theirs).mean() < 2 * np.abs(theirs - again).mean()
    # Means over 2,000 items: within the difference of two seeds, tripled.
    assert abs(ours.mean() - theirs.mean()) < 3 * abs(theirs.mean() - again.mean()) + 1e-3


def test_the_seed_decides(sample):
    """The same again for the same seed, another forest for another."""
    X, y = sample
    first, again, other = (
        RareForest(5, random_state=seed).fit(X, y).predict_proba(X) for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_constant_features_make_one_leaf(rng):
    """There is nothing to cut, and the answer is the share of rare items."""
    forest = RareForest(1, bootstrap=False).fit(np.ones((50, 3)), np.arange(50) % 10 == 0)
    assert_allclose(forest.predict_proba(np.zeros((2, 3)))[:, 1], 0.1)
