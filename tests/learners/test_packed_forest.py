"""A forest in a few arrays says what it said before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from shortlist._core.trees import packed
from shortlist.learners.packed_forest import n_averaged, packed_if_forest

RNG = np.random.default_rng(0)
# Ties, tiny numbers and numbers between two floats of single precision.
X = np.round(RNG.normal(size=(600, 4)), 2) + RNG.choice([0.0, 1e-36, 1e-9], size=(600, 4))
Y = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=600) > 0.7).astype(int)
MODELS = {
    "forest": RandomForestClassifier(15, random_state=0),
    "extra-trees": ExtraTreesClassifier(15, random_state=0),
    "one tree": RandomForestClassifier(1, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def both(request):
    """A fitted model, and its trees alone."""
    model = MODELS[request.param].fit(X, Y)
    return model, packed_if_forest(model)


def test_probabilities_are_those_of_the_library(both):
    """Dense or sparse, on rows that it has seen and on others."""
    model, trees = both
    for rows in (X, RNG.normal(size=(500, 4)), X[:1], X[:0]):
        want = model.predict_proba(rows) if len(rows) else np.zeros((0, 2))
        assert_allclose(trees.predict_proba(rows), want, rtol=1e-12, atol=1e-15)
    assert_array_equal(trees.predict_proba(sparse.csr_matrix(X)), trees.predict_proba(X))


def test_trees_survive_the_packing(both):
    """One by one, they can be packed again into the same arrays."""
    _, trees = both
    nodes, roots = packed(trees.trees(), [0] * trees.roots.size)
    assert_array_equal(nodes, trees.nodes)
    assert_array_equal(roots, trees.roots)
    assert trees.is_sound


def test_arrays_and_columns_of_another_kind_are_refused():
    """Compiled code would read beyond them."""
    trees = packed_if_forest(MODELS["forest"].fit(X, Y))
    with pytest.raises(ValueError, match="X has 3 columns"):
        trees.predict_proba(X[:, :3])
    trees.roots = trees.roots.astype(np.float64)
    assert not trees.is_sound


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_number_never_leads_a_walk_astray(data):
    """A file with any other child, feature or root is refused, or every walk in it still ends."""
    trees = packed_if_forest(RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, Y))
    place = data.draw(st.integers(0, trees.nodes.size - 1))
    part = data.draw(st.sampled_from(["left", "code", "root"]))
    number = data.draw(st.integers(-3, trees.nodes.size + 3) | st.integers(-(2**31), 2**31 - 1))
    if part == "root":
        trees.roots[place % 3] = number
    else:
        trees.nodes[part][place] = number
    if trees.is_sound:
        shares = trees.predict_proba(X[:50])
        assert np.isfinite(shares).all()


def test_a_walk_into_the_tree_before_is_no_leaf():
    """The place before a root is -1 within its tree, which must not pass for the mark of a leaf."""
    trees = packed_if_forest(RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, Y))
    root = trees.roots[1]
    trees.nodes["left"][root], trees.nodes["code"][root] = root - 1, 2 * 10**5
    assert not trees.is_sound


def test_other_models_stay_as_they_are():
    """They have no trees to count."""
    logistic = LogisticRegression().fit(X, Y)
    assert packed_if_forest(logistic) is logistic
    forest = packed_if_forest(RandomForestClassifier(5, random_state=0).fit(X, Y))
    assert (n_averaged(logistic), n_averaged(forest)) == (0, 5)


def test_a_few_walks_without_compiled_code_give_the_same_numbers(monkeypatch):
    """Bit for bit, also for gaps, and for a tree that is a single leaf."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=300) > 1).astype(int)
    y[:280] = 0  # some trees see one label only
    forest = packed_if_forest(RandomForestClassifier(9, random_state=0).fit(X, y))
    shares = []
    for limit in (0, 10**9):
        monkeypatch.setattr("shortlist._core.trees._FEW_WALKS", limit)
        shares.append(forest.predict_proba(X))
    assert_array_equal(*shares)
    assert np.ptp(shares[0]) > 0
