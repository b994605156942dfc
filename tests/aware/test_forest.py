"""A forest with large leaves, of two kinds of trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shortlist import Capacity
from shortlist.aware import CapacityAwareForestClassifier

CAPACITY = Capacity.multiple(2)


def fit(data, **options):
    """Fit a small one with a seed."""
    options = {"n_estimators": 60, "random_state": 0, **options}
    return CapacityAwareForestClassifier(CAPACITY, **options).fit(*data)


@pytest.fixture(scope="module")
def forest(few_rare):
    """Return a fitted forest."""
    return fit(few_rare)


def test_the_score_is_the_weighted_mean_of_both_kinds(forest, others):
    """Half and half, where neither alone is clearly better."""
    X = others[0][:200]
    assert_array_equal(forest.weights_, [0.5, 0.5])
    both = [kind.predict_proba(X)[:, 1] for kind in forest.forests_]
    assert_allclose(forest.score_samples(X), np.mean(both, axis=0))


def test_there_are_as_many_trees_as_asked_for(few_rare):
    """Half of each kind; of an odd number, one more random tree."""
    assert [len(kind.estimators_) for kind in fit(few_rare, n_estimators=61).forests_] == [31, 30]


def test_growing_in_parts_changes_nothing(forest, few_rare):
    """The trees are those that one call would have grown."""
    random_trees = forest.forests_[0]
    params = random_trees.get_params() | {"warm_start": False}
    again = type(random_trees)(**params).fit(*few_rare)
    assert_array_equal(again.oob_decision_function_, random_trees.oob_decision_function_)


def test_leaves_are_large(forest, few_rare):
    """One item in a hundred, counted among those that a tree has drawn."""
    for kind in forest.forests_:
        tree = kind.estimators_[0].tree_
        assert tree.n_node_samples[tree.children_left == -1].min() >= 0.01 * len(few_rare[1])


def test_one_kind_alone_is_taken_where_it_clearly_detects_more(few_rare, monkeypatch):
    """Scores of the other kind that point the wrong way."""
    model = CapacityAwareForestClassifier(CAPACITY)
    _, is_rare = few_rare
    model._n_rare, model._n_labelled = int(is_rare.sum()), is_rare.size
    scores = np.array([is_rare * 1.0, -100.0 * is_rare])
    assert_array_equal(model._weigh(scores, is_rare), scores[0])
    assert_array_equal(model.weights_, [1, 0])
    assert model.detection_ == {"blend": 0.0, "random": 1.0, "extra": 0.0}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"n_estimators": 1}, "n_estimators must be a whole number of at least 2"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be a whole number of at least 1"),
        ({"min_samples_leaf": 1.5}, "a share of all items"),
        ({"max_features": 0}, "max_features=0 is the share"),
    ],
)
def test_bad_settings_are_named(options, complaint, few_rare):
    """Before anything is grown."""
    with pytest.raises(ValueError, match=complaint):
        fit(few_rare, **options)
