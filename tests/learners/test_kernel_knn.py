"""Weighted nearest neighbours."""

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist.learners import KERNELS, KernelKNeighborsClassifier
from shortlist.learners._neighbors import NeighborSearch

REFERENCE = Path(__file__).with_name("kknn")


def kknn(X, y, Q, k, kernel):
    """Return the vote of class 1 by the formulas of the package, written out."""
    deviation = X.std(axis=0, ddof=1)
    distances = pairwise_distances(Q / deviation, X / deviation)
    order = np.argsort(distances, axis=1, kind="stable")[:, : k + 1]
    sorted_distances = np.take_along_axis(distances, order, axis=1)
    u = sorted_distances[:, :k] / np.maximum(sorted_distances[:, [k]], 1e-6)
    u = np.clip(u, 1e-6, 1 - 1e-6)
    d, i = X.shape[1], np.arange(1, k + 1)
    weights = {
        "rectangular": np.ones_like(u),
        "triangular": 1 - u,
        "epanechnikov": 0.75 * (1 - u**2),
        "gaussian": stats.norm.pdf(u * abs(stats.norm.ppf(1 / (2 * (k + 1))))),
        "inv": 1 / u,
        "optimal": np.ones_like(u)
        * (1 + d / 2 - d / (2 * k ** (2 / d)) * (i ** (1 + 2 / d) - (i - 1) ** (1 + 2 / d)))
        / k,
    }[kernel]
    return (weights * y[order[:, :k]]).sum(axis=1) / weights.sum(axis=1)


def test_scores_equal_those_of_kknn():
    """All 300 reference cases agree to 1e-12, copies of training rows among them."""
    train = np.genfromtxt(
        REFERENCE / "train.csv", delimiter=",", skip_header=1, dtype=None, encoding=None
    )
    X = np.array([list(row)[:5] for row in train], dtype=float)
    y = np.array([row[5].strip('"') for row in train])
    Q = np.loadtxt(REFERENCE / "query.csv", delimiter=",", skiprows=1)
    expected = np.loadtxt(REFERENCE / "expected.csv", delimiter=",", skiprows=1)
    for algorithm in ("brute", "tree"):
        for k in (1, 2, 5, 15, 50):
            model = KernelKNeighborsClassifier(k, algorithm=algorithm).fit(X, y)
            rare = model.predict_proba(Q)[:, 1]
            assert_allclose(rare, expected[expected[:, 0] == k, 2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [1, 4, 30])
def test_every_kernel_equals_its_formula(kernel, k, rng):
    """The compiled votes agree with the formulas of the package in NumPy."""
    X, Q = rng.normal(size=(80, 3)) * [1, 10, 0.1], rng.normal(size=(20, 3)) * [1, 10, 0.1]
    y = rng.integers(2, size=80)
    model = KernelKNeighborsClassifier(k, kernel=kernel).fit(X, y)
    assert_allclose(model.predict_proba(Q)[:, 1], kknn(X, y, Q, k, kernel), atol=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "spread"),
    # A tree raises an error where squares overflow.
    [*product(["brute", "tree"], [1e-3, 1.0, 1e8, 1e20, 1e142]), ("brute", 1e154)],
)
def test_the_search_is_exact(algorithm, spread, rng):
    """Far from the origin, with copies and with huge numbers, no neighbour is missed."""
    X = rng.normal(size=(300, 12)) * spread + 1e4 * spread
    X[100:120] = X[0]
    Q = np.vstack([X[:40], rng.normal(size=(40, 12)) * spread + 1e4 * spread])
    distances, rows = NeighborSearch(X, algorithm=algorithm).query(Q, 7)
    with np.errstate(over="ignore"):  # the squares of the largest numbers
        expected = np.linalg.norm(Q[:, np.newaxis] - X, axis=2)
    assert_allclose(distances, np.sort(expected, axis=1)[:, :7], rtol=1e-9, atol=1e-6 * spread)
    assert_array_equal(rows[0], [0, *range(100, 106)])


@pytest.mark.parametrize("algorithm", ["brute", "tree"])
def test_equal_distances_go_by_row_number_in_every_batch(algorithm, rng):
    """On a grid most distances tie; batches and numbers of neighbours change nothing."""
    X, Q = rng.integers(3, size=(200, 4)) * 1.0, rng.integers(3, size=(20, 4)) * 1.0
    search = NeighborSearch(X, algorithm=algorithm)
    expected = np.argsort(((Q[:, np.newaxis] - X) ** 2).sum(axis=2), axis=1, kind="stable")
    for k in (1, 9, 60, 200):
        assert_array_equal(search.query(Q, k)[1], expected[:, :k])
    for item, rows in zip(Q, expected, strict=True):
        assert_array_equal(search.query(item[np.newaxis], 9)[1][0], rows[:9])


def test_a_training_row_is_not_its_own_neighbour(rng):
    """Also when it has more copies than neighbours are requested."""
    X = rng.normal(size=(50, 10))
    X[10:30] = X[0]
    distances, rows = NeighborSearch(X).query_training(4)
    assert rows.shape == distances.shape == (50, 4)
    single = np.setdiff1d(np.arange(50), [0, *range(10, 30)])
    assert (rows[single] != single[:, np.newaxis]).all()
    assert_array_equal(distances[0], np.zeros(4))


def test_sparse_items_get_the_scores_of_dense_ones(rng):
    """Scaling keeps zeros, and sparse matrices stay sparse."""
    X = rng.poisson(0.5, size=(100, 12)).astype(float)
    y = rng.integers(2, size=100)
    dense = KernelKNeighborsClassifier().fit(X, y).predict_proba(X[:30])
    for container in (sparse.csr_array, sparse.csc_matrix):
        model = KernelKNeighborsClassifier().fit(container(X), y)
        # Many distances tie; scikit-learn's sparse search may pick other ones of equal distance.
        agree = np.isclose(model.predict_proba(container(X[:30])), dense, atol=1e-6).all(axis=1)
        assert agree.mean() > 0.5


def test_a_constant_feature_has_no_influence(rng):
    """A constant feature is left out, whatever its value in a new item."""
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    with_constant = np.column_stack([X, np.full(60, 0.1)])
    Q = rng.normal(size=(10, 4)) * 100
    expected = KernelKNeighborsClassifier().fit(X, y).predict_proba(Q[:, :3])
    actual = KernelKNeighborsClassifier().fit(with_constant, y).predict_proba(Q)
    assert_allclose(actual, expected, atol=1e-12)


def test_too_many_neighbours_raise_an_error(rng):
    """The message says how many rows are needed."""
    X, y = rng.normal(size=(5, 2)), [0, 1, 0, 1, 0]
    with pytest.raises(ValueError, match="n_neighbors=5 needs at least 6 training rows"):
        KernelKNeighborsClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be one of 'rectangular'"),
        ({"algorithm": "magic"}, "algorithm must be one of"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number"),
    ],
)
def test_wrong_parameters_are_named(wrong, message, rng):
    """Each message names the argument and what it must be."""
    with pytest.raises(ValueError, match=message):
        KernelKNeighborsClassifier(**wrong).fit(rng.normal(size=(20, 2)), np.arange(20) % 2)


def test_approximate_neighbours_are_nearly_the_exact_ones(rng):
    """Approximate neighbours give almost the same scores."""
    pytest.importorskip("faiss")
    X, y = rng.normal(size=(2_000, 10)), rng.integers(2, size=2_000)
    exact = KernelKNeighborsClassifier(15).fit(X, y).predict_proba(X[:200])
    near = KernelKNeighborsClassifier(15, algorithm="approximate").fit(X, y).predict_proba(X[:200])
    assert np.abs(near - exact).mean() < 0.02


def test_a_pickled_model_scores_alike(rng):
    """Fitted models can be pickled, also with sparse data."""
    X, y = rng.normal(size=(100, 10)), rng.integers(2, size=100)
    pickle.loads(pickle.dumps(KernelKNeighborsClassifier().fit(sparse.csr_array(X), y)))
    model = KernelKNeighborsClassifier().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


@parametrize_with_checks([KernelKNeighborsClassifier(), KernelKNeighborsClassifier(kernel="inv")])
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """The classifier passes the checks of scikit-learn."""
    check(estimator)
